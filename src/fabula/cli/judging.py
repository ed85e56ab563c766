"""How to ask judges: the options of `fabula judge`, and what they mean."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.options import model_terms
from fabula.cli.progress import Bar, progress_bar

if TYPE_CHECKING:
    from fabula.judging.plan import JudgePlan
    from fabula.judging.prompts import Template
    from fabula.judging.session import Session, Spent
    from fabula.models.cost import Estimate
    from fabula.types import Measurement

__all__ = [
    "agree_to_cost",
    "agree_to_texts",
    "asking_options",
    "judging_options",
    "plan_of",
    "print_end",
    "print_json",
    "print_measurements",
    "run_shown",
    "session_of",
]

_PROMPT_TOKENS = 150
"""About what a question takes besides the text it is about."""


def judging_options(command: Any) -> Any:
    """How to ask; the same for stories and for calibration."""
    options = (
        click.option(
            "--rubric", "rubric_name", default="ttcw", show_default=True, metavar="NAME|FILE",
            help="A rubric that ships (see `fabula rubric list`), or a .toml file.",
        ),
        click.option(
            "--items", metavar="ID,ID", help="Ask only these items of the rubric, with commas."
        ),
        click.option(
            "--template", "template_file", type=click.Path(path_type=Path), metavar="FILE",
            help="A prompt with [STORY], [BACKGROUND], [QUESTION] in place of ours, such as the "
            "authors' with_background.txt.",
        ),
    )  # fmt: skip
    command = asking_options(command)
    for option in reversed(options):
        command = option(command)
    return command


def asking_options(command: Any) -> Any:
    """How often to ask, and how answers are drawn."""
    options = (
        click.option(
            "--style", type=click.Choice(["reason-first", "verdict-first"]),
            default="reason-first", show_default=True,
            help="Reasons before the verdict, or after it (quicker and cheaper).",
        ),
        click.option(
            "--samples", type=click.IntRange(1, 1000), default=1, show_default=True,
            help="Ask this often; the value is the share of Yes, or the most frequent choice.",
        ),
        click.option(
            "--temperature", type=click.FloatRange(0, 2),
            help="[default: 0 for one sample, 1 for more]",
        ),
        click.option(
            "--max-tokens", type=click.IntRange(min=1), help="Longest answer.  [default: 1024; 200 "
            "for verdict-first]",
        ),
        click.option(
            "--seed", type=click.IntRange(min=0), default=0, show_default=True,
            help="Seed of the order of items, of sampling, and of intervals.",
        ),
        click.option(
            "--max-unreadable", type=click.IntRange(min=0), default=10, show_default=True,
            metavar="N", help="Stop after N answers in a row that hold no verdict (0: never).",
        ),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def plan_of(
    options: dict[str, Any], *, pairwise: bool = False, template: Template | None = None
) -> JudgePlan:
    """What is asked; `template` takes the place of the one that the options name."""
    from fabula.errors import InputError
    from fabula.judging import JudgePlan, Template, read_template
    from fabula.judging.plan import MAX_TOKENS
    from fabula.rubrics import Condition, load_rubric

    rubric = load_rubric(options["rubric_name"])
    only = tuple(name.strip() for name in (options["items"] or "").split(",") if name.strip())
    known = [item.id for item in rubric.items]
    for name in only:
        if name not in known:
            raise InputError(f"--items {name}: {rubric.id} has {', '.join(known)}")
    asked = [item for item in rubric.items if not only or item.id in only]
    for item in asked:
        names = Condition.parse(item.show_if).names if only and item.show_if else frozenset()
        lacking = names - {*only, *rubric.facts}
        if lacking:
            raise InputError(
                f"--items {item.id}: is asked only after {', '.join(sorted(lacking))}; add it"
            )
        if item.scale.kind == "rank" and not pairwise:
            raise InputError(
                f"{rubric.id}: {item.id} ranks the stories of a group, and a model is shown one "
                f"story at a time; leave it out with --items, or compare with --pairwise"
            )
    style, samples = options["style"], options["samples"]
    file = options["template_file"]
    default = 0.0 if samples == 1 else 1.0
    return JudgePlan(
        rubric=rubric,
        template=template or (read_template(file, style) if file else Template(style)),
        n_samples=samples,
        temperature=default if options["temperature"] is None else options["temperature"],
        max_tokens=options["max_tokens"] or MAX_TOKENS[style],
        seed=options["seed"],
        only=only,
        kind="pairs" if pairwise else "stories",
        structured=options["structured"],
    )


def session_of(
    options: dict[str, Any],
    documents: Any,
    plan: JudgePlan,
    out: Path,
    restart: bool,
    **more: Any,
) -> Session:
    from fabula.judging.session import Session
    from fabula.models.cost import parse_price

    return Session(
        documents,
        options["models"],
        plan,
        out,
        options=model_terms(options),
        price=parse_price(options["price"]) if options["price"] else None,
        max_cost=options["max_cost"],
        restart=restart,
        max_unreadable=options["max_unreadable"],
        **more,
    )


def run_shown(session: Session, *, yes: bool) -> tuple[list[Measurement], list[Spent]]:
    """Judge under a progress bar, after the user has agreed to the cost."""
    from fabula.judging.session import run_session

    with progress_bar("asking", None) as bar:
        return run_session(
            session,
            agree=lambda model, estimate: agree_to_cost(model, estimate, yes=yes, bar=bar),
            begin=bar.begin,
            meter=bar.advance,
        )


def agree_to_cost(
    model: str,
    estimate: Estimate,
    *,
    yes: bool,
    bar: Bar,
    say_free: bool = False,
    per: str = "",
) -> None:
    """Say what is to come; ask first where it costs money. Raises `click.UsageError`."""
    is_free = estimate.cost == 0
    if not estimate.n_calls or (is_free and not say_free):
        return
    at_most = "at most " if estimate.is_most else ""
    cost = "price unknown, give it with --price IN/OUT"
    if estimate.cost is not None:
        cost = f"{at_most or 'about '}{estimate.cost:.2f} dollars"
    usage = estimate.usage
    with bar.paused():
        click.echo(
            f"{model}: {per}{at_most}{estimate.n_calls:,} calls, about {usage.n_input:,} tokens to "
            f"read ({usage.n_cached:,} of them shared prefixes), {usage.n_output:,} to write, "
            f"{cost}",
            err=True,
        )
        if yes or is_free or (estimate.cost is None and model.startswith(("http://", "https://"))):
            return
        if not sys.stdin.isatty():
            raise click.UsageError("nobody is here to agree to the cost; add --yes")
        click.confirm("go on?", abort=True, err=True)


def agree_to_texts(
    options: dict[str, Any],
    specs: Sequence[str],
    texts: Sequence[str],
    n_output: int,
    bar: Bar,
    *,
    n_again: int = 0,
) -> None:
    """As `agree_to_cost`, for a call on each text by each model, answered in about `n_output`
    tokens, which may be sent back `n_again` times. Raises `click.UsageError`."""
    from fabula.models import Usage
    from fabula.models.cost import Estimate, estimate_tokens, known_price, parse_price

    n = len(texts) * (1 + n_again)
    n_input = sum(map(estimate_tokens, texts)) * (1 + n_again) + _PROMPT_TOKENS * n
    usage = Usage(n_input + n_again * len(texts) * n_output, 0, n_output * n)
    for spec in dict.fromkeys(specs):
        price = parse_price(options["price"]) if options["price"] else known_price(spec)
        cost = None if price is None else price.of(usage)
        estimate = Estimate(n, usage, cost, is_most=n_again > 0)
        agree_to_cost(spec, estimate, yes=options["yes"], bar=bar)


def print_json(measurements: list[Measurement], **more: Any) -> None:
    """Measurements, and what was made of them, as one object."""
    from fabula.store import dump_json, measurement_row

    content = {"measurements": [measurement_row(one) for one in measurements], **more}
    click.echo(dump_json(content).encode(errors="replace").decode())


def print_measurements(measurements: list[Measurement]) -> None:
    from fabula.store import dump_json, measurement_row

    for one in measurements:
        # A model may write half of a surrogate pair, which no terminal can show.
        click.echo(dump_json(measurement_row(one)).encode(errors="replace").decode())


def print_end(spent: list[Spent], written: list[Path | None], *, quiet: bool) -> None:
    from fabula.report.judging_tables import spent_lines

    for line in spent_lines(spent):
        click.echo(line, err=quiet)
    for path in written:
        if path is not None:
            click.echo(f"written: {path}", err=quiet)

"""`fabula feedback`: stories with known faults, and feedback on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.confirming import agree_to_cost, confirm_on
from fabula.cli.derived import Group, Option, settings_options
from fabula.cli.feedback_for import for_draft
from fabula.cli.feedback_raters import label, rate
from fabula.cli.feedback_score import score
from fabula.cli.options import (
    check_outputs,
    json_option,
    seed_option,
    texts_argument,
    yes_option,
)
from fabula.cli.printing import print_done
from fabula.cli.progress import Bar, progress_bar
from fabula.cli.reading import read_stories
from fabula.jobs.models import ModelSettings, Spending
from fabula.jobs.reading import Reading
from fabula.jobs.writing import ask_models
from fabula.resume import kept_rows

if TYPE_CHECKING:
    from fabula.tasks.feedback.corrupting import LeftOut

__all__ = ["feedback"]


@click.group(cls=Group, short_help="Corrupt stories, ask for feedback, and measure it.")
def feedback() -> None:
    """Break stories in known ways, ask models for feedback on them, and measure it.

    \b
    fabula feedback corrupt stories.jsonl --out corrupted.jsonl
    fabula feedback elicit corrupted.jsonl --model openai/gpt-4o --yes --out feedback.jsonl
    fabula feedback score feedback.jsonl
    """


@feedback.command(short_help="Corrupt stories in known ways.")
@texts_argument("stories")
@click.option(
    "--methods", default="original,backtranslate,swap,delete", show_default=True, metavar="LIST",
    help="What is done to each story, separated by commas; beyond the paper, for longer stories: "
    "name, fact, tense, thread.",
)  # fmt: skip
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Write the stories here (.jsonl); interrupted runs resume.",
)  # fmt: skip
@click.option(
    "--translator", metavar="NAME",
    help="Translator: a language model as for `feedback elicit`, marian[:THERE,BACK] "
    "(Helsinki-NLP's English-German, or folders), or apertium[:THERE,BACK] (eng-spa,spa-eng), "
    "which is poor (median BLEU with the original below 50).  [default: marian where its models "
    "are on this machine, else apertium]",
)  # fmt: skip
@click.option(
    "--translator-language", default="German", show_default=True, metavar="NAME",
    help="The language that a language model translates to.",
)  # fmt: skip
@click.option(
    "--rounds", type=click.IntRange(min=1), default=10, show_default=True,
    help="How often a story is translated and back.",
)  # fmt: skip
@click.option(
    "--per-set", type=click.IntRange(min=1), metavar="N",
    help="Draw at most N stories of each set (--by).",
)  # fmt: skip
@click.option(
    "--by", "set_field", cls=Option, setting="by", formerly=("set",), default="source",
    show_default=True, metavar="FIELD",
    help="Field that names the set a story belongs to.",
)  # fmt: skip
@click.option("--restart", is_flag=True, help="Start over, ignoring what --out holds.")
@seed_option
@settings_options(Spending, "spending")
@yes_option
@json_option
@settings_options(Reading, "how_to_read")
def corrupt(
    stories: tuple[str, ...],
    methods: str,
    out: Path,
    translator: str | None,
    translator_language: str,
    rounds: int,
    per_set: int | None,
    set_field: str,
    restart: bool,
    seed: int,
    spending: Spending,
    yes: bool,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Corrupt STORIES: swap two sentences, delete one, or translate it and back ten times.

    Each row holds the corrupted text, the original, and exactly what was changed, in characters of
    both. What cannot be corrupted is left out, and said. Source: Rashkin et al. 2025, section 4.

    Beyond the paper, and only if named in --methods: a person is called by another name midway
    (name), a stated fact changes (fact), a few sentences are told in the present (tense), a thing
    is brought in and never mentioned again (thread).
    """
    from fabula.tasks.feedback.corrupting import (
        ALL_METHODS,
        CorruptPlan,
        sample_sets,
        without_repeats,
    )
    from fabula.tasks.feedback.translating import best_offline_translator

    check_outputs([out], map(Path, stories))
    named = [name.strip() for name in methods.split(",")]
    unknown = [name for name in named if name not in ALL_METHODS]
    if unknown:
        raise click.UsageError(f"--methods {unknown[0]}: there are {', '.join(ALL_METHODS)}")
    chosen = tuple(method for method in ALL_METHODS if method in named)
    read, repeated = without_repeats(read_stories(stories, how_to_read))
    documents = sample_sets(read, set_field, per_set, seed)
    plan = CorruptPlan(chosen, rounds, seed)
    if translator is None:
        translator = best_offline_translator()
        if translator == "apertium" and "backtranslate" in chosen:
            click.echo(
                "back-translation by Apertium, which is poor; --translator names a language model "
                "or marian, which are better",
                err=True,
            )
    named_translator = (translator, translator_language)
    found = _corrupt(documents, plan, named_translator, out, restart, spending, yes=yes)
    _report(*found, repeated, out, as_json=as_json)


def _corrupt(
    documents: list[Any],
    plan: Any,
    translator: tuple[str, str],
    out: Path,
    restart: bool,
    spending: Spending,
    *,
    yes: bool,
) -> tuple[Counter[str], list[Any]]:
    """How many rows of each method there are now, and what was left out."""
    from contextlib import ExitStack

    from fabula.tasks.feedback.corrupting import CORRUPTED, corrupt_stories, parts_needed
    from fabula.tasks.feedback.translating import open_translator
    from fabula.text.pipeline import load_pipeline

    n_written: Counter[str] = Counter()
    left_out: list[Any] = []
    terms = spending.options()
    with ExitStack() as stack:
        model = None
        if "backtranslate" in plan.methods:
            model = stack.enter_context(open_translator(*translator, terms))
        kept = stack.enter_context(kept_rows(out, CORRUPTED, restart=restart))
        kept.check_only({(f"{s.id}_{method}",) for s in documents for method in plan.methods})
        kept.begin()
        if model is not None:
            there = {row["id"] for row in kept.kept()}
            to_come = [s.text for s in documents if f"{s.id}_backtranslate" not in there]
            _agree_to_translate(translator[0], to_come, plan.rounds, terms, yes=yes)
        nlp = load_pipeline(parts_needed(plan.methods))
        bar = stack.enter_context(progress_bar("corrupting", len(documents)))
        for rows, failed in corrupt_stories(documents, plan, nlp, model, kept):
            n_written.update(row["method"] for row in rows)
            left_out += failed
            bar.advance(1)
    return n_written, left_out


def _agree_to_translate(
    translator: str, texts: list[str], rounds: int, terms: Any, *, yes: bool
) -> None:
    """Say what a language model will be asked, and ask first where it costs money."""
    from fabula.models.cost import known_price
    from fabula.tasks.feedback.model_translator import estimate_round_trips
    from fabula.tasks.feedback.translating import is_model

    if is_model(translator):
        price = terms.price or known_price(translator)
        expected = estimate_round_trips(texts, rounds, price)
        agree_to_cost(translator, expected, yes=yes, bar=Bar(), say_free=True)


def _report(
    n_written: Counter[str],
    left_out: Sequence[LeftOut],
    repeated: list[str],
    out: Path,
    *,
    as_json: bool,
) -> None:
    lines = [f"{method}: {n:,}" for method, n in n_written.items()]
    counts = sorted(Counter((one.method, one.reason) for one in left_out).items())
    for (method, reason), n in counts:
        ids = [o.story_id for o in left_out if (o.method, o.reason) == (method, reason)]
        shown = ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")
        lines.append(f"left out of {method}: {n:,}, since {reason} ({shown})")
    if repeated:
        lines.append(f"left out: {len(repeated):,} stories that are there already, word for word")
    content = {
        "out": str(out),
        "n": dict(n_written),
        "left_out": [asdict(one) for one in left_out],
        "repeated": repeated,
    }
    print_done(content, *lines, f"written: {out}", as_json=as_json)


@feedback.command(short_help="Ask models for feedback on corrupted stories.")
@click.argument("corrupted", type=click.Path(path_type=Path))
@click.option(
    "--prompts", "prompt_names", default="all", show_default=True, metavar="LIST",
    help="full (a list, with a taxonomy of issues), list, sentence, spot; or those of the file.",
)  # fmt: skip
@click.option(
    "--shots", default="0,2", show_default=True, metavar="LIST",
    help="Numbers of examples to ask with.",
)  # fmt: skip
@click.option(
    "--prompt-file", type=click.Path(path_type=Path), metavar="FILE",
    help="Prompts of your own, such as the published wording (.toml).",
)  # fmt: skip
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Write the feedback here (.jsonl); interrupted runs resume.",
)  # fmt: skip
@click.option("--temperature", type=click.FloatRange(0, 2), default=0.7, show_default=True)
@click.option("--max-tokens", type=click.IntRange(min=1), default=512, show_default=True)
@click.option("--restart", is_flag=True, help="Ask for everything again and replace --out.")
@seed_option
@settings_options(ModelSettings, "asked")
@yes_option
@json_option
def elicit(
    corrupted: Path,
    prompt_names: str,
    shots: str,
    prompt_file: Path | None,
    out: Path,
    temperature: float,
    max_tokens: int,
    restart: bool,
    seed: int,
    asked: ModelSettings,
    yes: bool,
    as_json: bool,
) -> None:
    """Ask models for feedback on the stories of CORRUPTED, which `feedback corrupt` wrote.

    Every story is asked about under every prompt, with and without examples. What it will take is
    said before it starts. Source: Rashkin et al. 2025, section 4.
    """
    from fabula.models import Sampling
    from fabula.reasons import explain
    from fabula.tasks.feedback.eliciting import ElicitPlan, read_corrupted
    from fabula.tasks.feedback.prompts import PROMPTS, load_prompts

    check_outputs([out], [corrupted])
    prompts = PROMPTS if prompt_file is None else load_prompts(prompt_file)
    names = tuple(dict.fromkeys(name.strip() for name in prompt_names.split(",")))
    if prompt_names == "all":
        names = tuple(prompts.prompts)
    unknown = [name for name in names if name not in prompts.prompts]
    if unknown:
        raise click.UsageError(f"--prompts {unknown[0]}: there are {', '.join(prompts.prompts)}")
    if not all(part.strip().isdecimal() for part in shots.split(",")):
        raise click.UsageError(f"--shots {shots}: write numbers such as 0,2")
    numbers = tuple(dict.fromkeys(map(int, shots.split(","))))
    sampling = Sampling(temperature, 1.0, max_tokens, seed)
    plan = ElicitPlan(prompts, names, numbers, sampling)
    stories = read_corrupted(corrupted)
    rows = _ask(stories, plan, out, restart, asked, yes=yes)
    missing = Counter(str(row["missing_reason"]) for row in rows if row["missing_reason"])
    n_cut = sum(bool(row.get("is_cut")) for row in rows)
    n = len(rows) - sum(missing.values())
    lines = [f"{n:,} of {len(rows):,} answers, written: {out}"]
    lines += [f"missing: {n:,}, {explain(why)}" for why, n in sorted(missing.items())]
    if n_cut:
        lines.append(f"cut at {max_tokens} tokens: {n_cut:,}")
    content = {
        "out": str(out),
        "n": n,
        "n_asked": len(rows),
        "missing": dict(sorted(missing.items())),
        "n_cut": n_cut,
    }
    print_done(content, *lines, as_json=as_json)


def _ask(
    stories: list[dict[str, Any]],
    plan: Any,
    out: Path,
    restart: bool,
    asked: ModelSettings,
    *,
    yes: bool,
) -> list[dict[str, Any]]:
    from fabula.tasks.feedback.eliciting import ANSWERS, estimate_grid
    from fabula.tasks.feedback.eliciting import elicit as ask_model

    n_each = len(stories) * len(plan.names) * len(plan.shots)
    with (
        kept_rows(out, ANSWERS, restart=restart) as kept,
        progress_bar("feedback", n_each * len(set(asked.models))) as bar,
    ):
        rows = ask_models(
            asked,
            lambda model: ask_model(stories, model, plan, kept, meter=bar.advance),
            lambda price: estimate_grid(stories, plan, price),
            confirm_on(bar, yes=yes, say_free=True),
        )
        kept.settle(rows)
    return rows


feedback.add_command(for_draft)
feedback.add_command(score)
feedback.add_command(rate)
feedback.add_command(label)

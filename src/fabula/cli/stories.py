"""`fabula stories`: plots, stories written to them, and texts from a first sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Group, Option, settings_options
from fabula.cli.options import json_option, texts_argument, yes_option
from fabula.cli.printing import print_done
from fabula.cli.progress import progress_bar
from fabula.cli.reading import read_stories
from fabula.jobs.models import ModelSettings
from fabula.jobs.reading import Reading
from fabula.jobs.writing import ask_models, estimate_texts
from fabula.resume import kept_rows

if TYPE_CHECKING:
    from fabula.tasks.stories import WritePlan

__all__ = ["stories"]

F = TypeVar("F", bound=Callable[..., Any])
_TOKENS_PER_WORD = 1.35


@click.group(cls=Group, short_help="Have models write the stories of a study.")
def stories() -> None:
    """Have models write the stories of a study: same plot, same length."""


def _out_option(what: str) -> Callable[[F], F]:
    return click.option(
        "--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help=what
    )


restart_option = click.option(
    "--restart", is_flag=True, help="Ask for everything again and replace --out."
)
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of sampling."
)


@stories.command(short_help="Summarise the plot of each story in a sentence.")
@texts_argument("sources")
@_out_option("Write a row with the plot of each story here (.jsonl).")
@seed_option
@restart_option
@settings_options(ModelSettings, "asked")
@yes_option
@json_option
@settings_options(Reading, "how_to_read")
def plot(
    sources: tuple[str, ...],
    out: Path,
    seed: int,
    restart: bool,
    asked: ModelSettings,
    yes: bool,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Summarise the plot of each story of SOURCES in a sentence.

    Read the plots, correct those that are wrong, and set `verified` to true, before stories are
    written to them.
    """
    from fabula.tasks.stories import PLOTS, make_plots

    documents = read_stories(sources, how_to_read)
    estimate = estimate_texts([document.text for document in documents], 60)
    with (
        kept_rows(out, PLOTS, restart=restart) as kept,
        progress_bar("plots", len(documents) * len(asked.models)) as bar,
    ):
        rows = ask_models(
            asked,
            lambda model: make_plots(documents, model, kept, seed=seed, meter=bar.advance),
            estimate,
            confirm_on(bar, yes=yes),
        )
        kept.settle(rows)
    _report("plots", rows, out, as_json=as_json)
    click.echo("read them, and set `verified` to true for those that are right", err=as_json)


@stories.command(short_help="Write a story to each plot, of a given length.")
@click.argument("plots", metavar="PLOTS", type=click.Path(path_type=Path))
@_out_option("Write the finished stories here (.jsonl); every round goes beside it.")
@click.option(
    "--words", type=click.IntRange(min=1), metavar="N",
    help="Length of every story.  [default: n_words of its row, the length of the human story]",
)  # fmt: skip
@click.option(
    "--within", type=click.IntRange(min=0), metavar="N",
    help="How many words a story may be off its length.  [default: 200, or a fifth of the length "
    "where that is less]",
)  # fmt: skip
@click.option(
    "--attempts", cls=Option, setting="attempts", formerly=("rounds",),
    type=click.IntRange(min=0), default=20, show_default=True, metavar="N",
    help="Rewrite a story up to N times.",
)  # fmt: skip
@click.option("--verified-only", is_flag=True, help="Only plots that a person has verified.")
@click.option(
    "--human", multiple=True, metavar="SOURCE",
    help="Put the human story of each plot (same id) into its group.",
)  # fmt: skip
@click.option(
    "--temperature", type=click.FloatRange(0, 2), default=1.0, show_default=True,
    help="Temperature of sampling.",
)  # fmt: skip
@click.option("--top-p", type=click.FloatRange(0, 1), default=1.0, show_default=True)
@seed_option
@restart_option
@settings_options(ModelSettings, "asked")
@yes_option
@json_option
@settings_options(Reading, "how_to_read")
def write(
    plots: Path,
    out: Path,
    words: int | None,
    within: int | None,
    attempts: int,
    verified_only: bool,
    human: tuple[str, ...],
    temperature: float,
    top_p: float,
    seed: int,
    restart: bool,
    asked: ModelSettings,
    yes: bool,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Have models write a story to each plot, near to a length.

    PLOTS is a file of `fabula stories plot`, or any .jsonl with id, plot and n_words. A story is
    written again until it is within --within words of its length, up to --attempts times; one that
    never comes near is reported and left out. All rounds are kept in FILE.rounds.jsonl.
    """
    from fabula.store import dump_json, write_whole
    from fabula.tasks.plots import check_output, read_plots
    from fabula.tasks.stories import WritePlan

    check_output(out, [plots, *map(Path, human)])
    wanted, n_unverified = read_plots(plots, n_words=words, verified_only=verified_only)
    if n_unverified:
        click.echo(f"note: {n_unverified} of {len(wanted)} plots are not verified", err=True)
    plan = WritePlan(within, attempts, temperature=temperature, top_p=top_p, seed=seed)
    finished: list[dict[str, Any]] = _human_rows(human, wanted, how_to_read) if human else []
    last = _written(wanted, plan, asked, out, restart=restart, yes=yes)
    finished += _finished(last)
    places = {plot.id: place for place, plot in enumerate(wanted)}
    finished.sort(key=lambda row: places[row["prompt_id"]])
    lines = "".join(dump_json(row) + "\n" for row in finished)
    write_whole(out, lines.encode(errors="replace"))
    _report("stories", last, out, as_json=as_json)


def _written(
    wanted: Sequence[Any],
    plan: WritePlan,
    asked: ModelSettings,
    out: Path,
    *,
    restart: bool,
    yes: bool,
) -> list[dict[str, Any]]:
    """The last round of each story; every round is kept beside `out`."""
    from fabula.tasks.stories import ROUNDS, write_stories

    lengths = [plot.n_words for plot in wanted]
    n_output = round(_TOKENS_PER_WORD * sum(lengths) / max(1, len(lengths)))
    texts = [plot.text for plot in wanted]
    with (
        kept_rows(out.with_name(f"{out.stem}.rounds.jsonl"), ROUNDS, restart=restart) as kept,
        progress_bar("stories", len(wanted) * len(asked.models)) as bar,
    ):
        last = ask_models(
            asked,
            lambda model: write_stories(wanted, model, plan, kept, meter=bar.advance),
            estimate_texts(texts, n_output, n_again=plan.max_rounds),
            confirm_on(bar, yes=yes),
        )
        kept.settle(())
    return last


@stories.command(short_help="Continue a first sentence, a headline or a theorem.")
@texts_argument("beginnings")
@_out_option("Write a row for each text here (.jsonl).")
@click.option(
    "--kind", type=click.Choice(["novel", "poem", "speech", "news", "proof", "continuation"]),
    default="novel", show_default=True, help="What to write.",
)  # fmt: skip
@click.option(
    "--prompt", "formats", multiple=True, default=("plain",), show_default=True, metavar="NAME",
    help="Prompt format: plain, ideas, perspectives, novelty, bold, free, writer, or all.",
)  # fmt: skip
@click.option("--top-p", type=click.FloatRange(0, 1), default=0.9, show_default=True)
@click.option("--temperature", type=click.FloatRange(0, 2), default=1.0, show_default=True)
@click.option("--max-tokens", type=click.IntRange(min=1), default=288, show_default=True)
@seed_option
@restart_option
@settings_options(ModelSettings, "asked")
@yes_option
@json_option
@settings_options(Reading, "how_to_read")
def openings(
    beginnings: tuple[str, ...],
    out: Path,
    kind: str,
    formats: tuple[str, ...],
    top_p: float,
    temperature: float,
    max_tokens: int,
    seed: int,
    restart: bool,
    asked: ModelSettings,
    yes: bool,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Have models go on from a first sentence, a headline or a theorem.

    BEGINNINGS hold one each: rows of a table, or files; a .txt file with one a line. The defaults
    are those of the Creativity Index (appendix B.1): top-p 0.9, 288 tokens.
    """
    from fabula.models import Sampling
    from fabula.tasks.openings import FORMATS, OPENINGS, write_openings
    from fabula.tasks.plots import by_line

    chosen = tuple(FORMATS) if "all" in formats else formats
    unknown = [name for name in chosen if name not in FORMATS]
    if unknown:
        raise click.UsageError(f"--prompt {unknown[0]}: there are {', '.join(FORMATS)}, and all")
    documents = by_line(read_stories(beginnings, how_to_read))
    sampling = Sampling(temperature, top_p, max_tokens, seed)
    texts = [document.text for document in documents for _ in chosen]
    with (
        kept_rows(out, OPENINGS, restart=restart) as kept,
        progress_bar("texts", len(texts) * len(asked.models)) as bar,
    ):
        rows = ask_models(
            asked,
            lambda model: write_openings(
                documents,
                model,
                kept,
                kind=kind,
                formats=chosen,
                sampling=sampling,
                meter=bar.advance,
            ),
            estimate_texts(texts, max_tokens),
            confirm_on(bar, yes=yes),
        )
        kept.settle(rows)
    _report("texts", rows, out, as_json=as_json)


def _finished(last: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stories that came near their length; what never did is marked as missing."""
    from fabula.tasks.stories import story_row

    for row in last:
        if not row["missing_reason"] and not row["is_done"]:
            row["missing_reason"] = "not_converged"
    return [story_row(row, row["model"]) for row in last if not row["missing_reason"]]


def _human_rows(
    sources: tuple[str, ...], wanted: Sequence[Any], how_to_read: Reading
) -> list[dict[str, Any]]:
    from fabula.tasks.stories import count_words

    plots = {plot.id: plot for plot in wanted}
    return [
        {
            "id": f"{document.id}_human",
            "text": document.text,
            "author": document.author or "human",
            "prompt_id": document.id,
            "plot": plots[document.id].text,
            "n_words": count_words(document.text),
        }
        for document in read_stories(sources, how_to_read)
        if document.id in plots
    ]


def _report(what: str, rows: Sequence[dict[str, Any]], out: Path, *, as_json: bool) -> None:
    """How many there are, and why others are not."""
    from fabula.reasons import explain

    missing = Counter(str(row["missing_reason"]) for row in rows if row["missing_reason"])
    n_framed = sum(bool(row.get("frame_removed")) for row in rows)
    n = len(rows) - sum(missing.values())
    lines = [f"{n:,} of {len(rows):,} {what}, written: {out}"]
    lines += [f"missing: {n:,} {what}: {explain(why)}" for why, n in sorted(missing.items())]
    if n_framed:
        lines.append(f"cut off what the model said around {n_framed:,} {what} (frame_removed)")
    lines += [
        f"  {row['id']} by {row['model']}: {row['n_words']:,} words after {row['round']} rounds, "
        f"{row['target_words']:,} were wanted"
        for row in rows
        if row["missing_reason"] == "not_converged"
    ]
    content = {
        "out": str(out),
        "n": n,
        "n_asked": len(rows),
        "missing": dict(sorted(missing.items())),
        "n_framed": n_framed,
    }
    print_done(content, *lines, as_json=as_json)

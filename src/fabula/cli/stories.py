"""`fabula stories`: plots, stories written to them, and texts from a first sentence."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from fabula.cli.judging import agree_to_texts
from fabula.cli.options import model_options, model_terms, text_options, texts_argument
from fabula.cli.progress import progress_bar
from fabula.cli.reading import read_stories

__all__ = ["stories"]

F = TypeVar("F", bound=Callable[..., Any])
_TOKENS_PER_WORD = 1.35


@click.group()
def stories() -> None:
    """Have models write the stories of a study: same plot, same length."""


def _out_option(what: str) -> Callable[[F], F]:
    return click.option(
        "--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help=what
    )


restart_option = click.option(
    "--restart", is_flag=True, help="Ask everything anew, whatever --out holds."
)
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of sampling."
)


@stories.command()
@texts_argument("sources")
@_out_option("Write a row with the plot of each story here (.jsonl).")
@seed_option
@restart_option
@model_options
@text_options
def plot(sources: tuple[str, ...], out: Path, seed: int, restart: bool, **options: Any) -> None:
    """Summarise the plot of each story of SOURCES in a sentence.

    Read the plots, mend them where they are wrong, and set `verified` to true, before stories are
    written to them.
    """
    from fabula.models import open_model
    from fabula.tasks.asking import resumed_rows
    from fabula.tasks.stories import make_plots

    documents = read_stories(sources, options)
    rows: list[dict[str, Any]] = []
    with (
        resumed_rows(out, ("id", "model"), ("plot", "text_digest"), restart=restart) as (
            kept,
            write,
            settle,
        ),
        progress_bar("plots", len(documents) * len(options["models"])) as bar,
    ):
        texts = [document.text for document in documents]
        agree_to_texts(options, options["models"], texts, 60, bar)
        terms = model_terms(options)

        async def run(spec: str) -> None:
            async with open_model(spec, terms) as model:
                rows.extend(
                    await make_plots(documents, model, kept, write, seed=seed, meter=bar.advance)
                )

        for spec in dict.fromkeys(options["models"]):
            asyncio.run(run(spec))
        settle(rows)
    _report("plots", rows, out)
    click.echo("read them, and set `verified` to true for those that are right")


@stories.command()
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
    "--rounds", type=click.IntRange(min=0), default=20, show_default=True,
    help="How often a story is written anew at most.",
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
@model_options
@text_options
def write(
    plots: Path,
    out: Path,
    words: int | None,
    within: int | None,
    rounds: int,
    verified_only: bool,
    human: tuple[str, ...],
    temperature: float,
    top_p: float,
    seed: int,
    restart: bool,
    **options: Any,
) -> None:
    """Have models write a story to each plot, near to a length.

    PLOTS is a file of `fabula stories plot`, or any .jsonl with id, plot and n_words. A story is
    written again until it is within --within words of its length, --rounds times at most; one that
    never comes near is reported and left out. All rounds are kept in FILE.rounds.jsonl.
    """
    from fabula.models import open_model
    from fabula.store import dump_json, write_whole
    from fabula.tasks.asking import resumed_rows
    from fabula.tasks.plots import check_output, read_plots
    from fabula.tasks.stories import ROUND_FIELDS, WritePlan, write_stories

    check_output(out, [plots, *map(Path, human)])
    wanted, n_unverified = read_plots(plots, n_words=words, verified_only=verified_only)
    if n_unverified:
        click.echo(f"note: {n_unverified} of {len(wanted)} plots are not verified", err=True)
    plan = WritePlan(within, rounds, temperature=temperature, top_p=top_p, seed=seed)
    finished: list[dict[str, Any]] = _human_rows(human, wanted, options) if human else []
    last: list[dict[str, Any]] = []
    log = out.with_name(f"{out.stem}.rounds.jsonl")
    with (
        resumed_rows(log, ("id", "model", "round"), ROUND_FIELDS, restart=restart) as (
            kept,
            write_row,
            settle,
        ),
        progress_bar("stories", len(wanted) * len(options["models"])) as bar,
    ):
        lengths = [plot.n_words for plot in wanted]
        n_output = round(_TOKENS_PER_WORD * sum(lengths) / max(1, len(lengths)))
        texts = [plot.text for plot in wanted]
        agree_to_texts(options, options["models"], texts, n_output, bar, n_again=rounds)
        terms = model_terms(options)

        async def run(spec: str) -> list[dict[str, Any]]:
            async with open_model(spec, terms) as model:
                return await write_stories(wanted, model, plan, kept, write_row, meter=bar.advance)

        for spec in dict.fromkeys(options["models"]):
            last += asyncio.run(run(spec))
        settle(())
    finished += _finished(last)
    places = {plot.id: place for place, plot in enumerate(wanted)}
    finished.sort(key=lambda row: places[row["prompt_id"]])
    lines = "".join(dump_json(row) + "\n" for row in finished)
    write_whole(out, lines.encode(errors="replace"))
    _report("stories", last, out)


@stories.command()
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
@model_options
@text_options
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
    **options: Any,
) -> None:
    """Have models go on from a first sentence, a headline or a theorem.

    BEGINNINGS hold one each: rows of a table, or files; a .txt file with one a line. The defaults
    are those of the Creativity Index (appendix B.1): top-p 0.9, 288 tokens.
    """
    from fabula.models import Sampling, open_model
    from fabula.tasks.asking import resumed_rows
    from fabula.tasks.openings import FORMATS, write_openings
    from fabula.tasks.plots import by_line

    chosen = tuple(FORMATS) if "all" in formats else formats
    unknown = [name for name in chosen if name not in FORMATS]
    if unknown:
        raise click.UsageError(f"--prompt {unknown[0]}: there are {', '.join(FORMATS)}, and all")
    documents = by_line(read_stories(beginnings, options))
    sampling = Sampling(temperature, top_p, max_tokens, seed)
    rows: list[dict[str, Any]] = []
    n_texts = len(documents) * len(chosen) * len(options["models"])
    with (
        resumed_rows(out, ("id", "model"), ("text", "prompt"), restart=restart) as (
            kept,
            write_row,
            settle,
        ),
        progress_bar("texts", n_texts) as bar,
    ):
        texts = [document.text for document in documents for _ in chosen]
        agree_to_texts(options, options["models"], texts, max_tokens, bar)
        terms = model_terms(options)

        async def run(spec: str) -> None:
            async with open_model(spec, terms) as model:
                rows.extend(
                    await write_openings(
                        documents, model, kept, write_row, kind=kind, formats=chosen,
                        sampling=sampling, meter=bar.advance,
                    )
                )  # fmt: skip

        for spec in dict.fromkeys(options["models"]):
            asyncio.run(run(spec))
        settle(rows)
    _report("texts", rows, out)


def _finished(last: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stories that came near their length; what never did is marked as missing."""
    from fabula.tasks.stories import story_row

    for row in last:
        if not row["missing_reason"] and not row["is_done"]:
            row["missing_reason"] = "not_converged"
    return [story_row(row, row["model"]) for row in last if not row["missing_reason"]]


def _human_rows(
    sources: tuple[str, ...], wanted: Sequence[Any], options: dict[str, Any]
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
        for document in read_stories(sources, options)
        if document.id in plots
    ]


def _report(what: str, rows: Iterable[dict[str, Any]], out: Path) -> None:
    """How many there are, and why others are not."""
    from fabula.tasks.asking import WITHHELD

    rows = list(rows)
    missing = Counter(str(row["missing_reason"]) for row in rows if row["missing_reason"])
    click.echo(f"{len(rows) - sum(missing.values()):,} of {len(rows):,} {what}, written: {out}")
    for reason, n in sorted(missing.items()):
        click.echo(f"missing: {n:,} {what}: {WITHHELD[reason]}")
    n_framed = sum(bool(row.get("frame_removed")) for row in rows)
    if n_framed:
        click.echo(f"cut off what the model said around {n_framed:,} {what} (frame_removed)")
    for row in rows:
        if row["missing_reason"] == "not_converged":
            click.echo(
                f"  {row['id']} by {row['model']}: {row['n_words']:,} words after "
                f"{row['round']} rounds, {row['target_words']:,} were wanted"
            )

"""`fabula feedback for`: what an editor would tell a writer about their own draft."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Command, Option, settings_options
from fabula.cli.options import (
    check_outputs,
    json_option,
    seed_option,
    yes_option,
)
from fabula.cli.printing import print_written
from fabula.cli.progress import Bar, progress_bar
from fabula.cli.reading import read_stories
from fabula.jobs.models import ModelSettings
from fabula.jobs.progress import Confirm
from fabula.jobs.reading import Reading

if TYPE_CHECKING:
    from fabula.resume import KeptRows
    from fabula.tasks.feedback.advising import Advice, AdvicePlan, Earlier
    from fabula.tasks.feedback.points import Point
    from fabula.types import Document

__all__ = ["for_draft"]


@click.command(cls=Command, name="for", short_help="Ask a model for feedback on your own draft.")
@click.argument("story", metavar="STORY")
@click.option(
    "--samples", "times", cls=Option, setting="n_samples", formerly=("times",), metavar="N",
    type=click.IntRange(1, 50), default=5, show_default=True,
    help="How often the model is asked; what it says more often stands higher.",
)  # fmt: skip
@click.option(
    "--points", type=click.IntRange(1, 50), default=7, show_default=True,
    help="At most so many points each time.",
)  # fmt: skip
@click.option("--temperature", type=click.FloatRange(0, 2), default=0.7, show_default=True)
@click.option(
    "--since", type=click.Path(path_type=Path), metavar="FILE",
    help="What --out wrote of an earlier draft: says which of its points are resolved.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE",
    help="Keep the points here (.jsonl), for --since of the next draft; the answers beside it "
    "(FILE with .answers before its ending) are not asked for again.",
)  # fmt: skip
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="PAGE",
    help="Write the draft with the points in its margin here.",
)  # fmt: skip
@seed_option
@settings_options(ModelSettings, "asked")
@yes_option
@settings_options(Reading, "how_to_read")
@json_option
def for_draft(
    story: str,
    times: int,
    points: int,
    temperature: float,
    since: Path | None,
    out: Path | None,
    html: Path | None,
    seed: int,
    asked: ModelSettings,
    yes: bool,
    how_to_read: Reading,
    as_json: bool,
) -> None:
    """Ask a model for feedback on your own draft, STORY: what it says consistently comes first.

    Every point stands at words that are in the draft; what quotes words that are not is dropped and
    counted, and so is praise. The embedded model is far too small for good advice: name a larger
    one with --model.
    """
    from fabula.errors import InputError
    from fabula.presentation.advice_tables import advice_text
    from fabula.presentation.page_file import check_page_path
    from fabula.store import dump_json, measurement_row, read_measurements, write_whole
    from fabula.tasks.feedback.advising import AdvicePlan, earlier_draft, earlier_points

    if len(asked.models) > 1:
        raise click.UsageError("--model: one editor at a time")
    if html is not None:
        check_page_path(html)
    check_outputs([out, html], [Path(story), *([since] if since else [])])
    stories = read_stories((story,), how_to_read)
    if len(stories) > 1:
        raise InputError(f"{story}: holds {len(stories):,} texts; give one draft")
    measured = list(read_measurements(since)) if since else []
    earlier, before = earlier_points(measured), earlier_draft(measured)
    plan = AdvicePlan(times, points, temperature, seed=seed)
    with progress_bar("reading the draft", times + len(earlier)) as bar, _kept(out) as kept:
        advice, fates, new = asyncio.run(
            _ask(stories[0], plan, (earlier, before), asked, confirm_on(bar, yes=yes), bar, kept)
        )
    rows = [measurement_row(one) for one in advice.measurements()]
    if out is not None:
        lines = "".join(dump_json(row) + "\n" for row in rows)
        write_whole(out, lines.encode(errors="replace"))
    if as_json:
        content = _json(advice, rows, fates, new)
        click.echo(dump_json(content).encode(errors="replace").decode())
    else:
        click.echo(advice_text(advice, fates, new).encode(errors="replace").decode(), nl=False)
    if html is not None:
        from fabula.presentation.advice_page import write_advice_page

        write_advice_page(html, advice, fates, new)
    print_written([out, html], as_json=as_json)


async def _ask(
    story: Document,
    plan: AdvicePlan,
    past: tuple[list[Earlier], str | None],
    asked: ModelSettings,
    confirm: Confirm,
    bar: Bar,
    rows: KeptRows,
) -> tuple[Advice, list[Earlier], list[Point]]:
    from fabula.models import open_model
    from fabula.models.caching import CachedModel
    from fabula.models.cost import known_price
    from fabula.models.encoder import Encoder
    from fabula.tasks.feedback.advising import advise, estimate, revisit

    (spec,), terms = asked.models, asked.options()
    earlier, before = past
    encoder = Encoder()
    expected = estimate(story, plan, len(earlier), terms.price or known_price(spec))
    confirm(spec, expected)
    async with open_model(spec, terms) as opened:
        # What is kept costs nothing, so the budget stands behind it.
        model = CachedModel(opened, rows)
        advice = await advise(story, model, plan, encoder, meter=bar.advance)
        if not earlier:
            return advice, [], []
        fates, new = await revisit(
            earlier, advice, model, encoder, before=before, meter=bar.advance
        )
    return advice, fates, new


@contextmanager
def _kept(out: Path | None) -> Iterator[KeptRows]:
    """Where answers are kept as they come: beside the points, so that none is paid for twice."""
    from fabula.errors import ModelError
    from fabula.models.caching import CALLS
    from fabula.resume import KeptRows, kept_rows

    if out is None:
        try:
            yield KeptRows(CALLS)
        except ModelError as error:
            raise ModelError(f"{error} (without --out nothing is kept)") from error
        return
    with kept_rows(out.with_suffix(".answers.jsonl"), CALLS) as kept:
        yield kept


def _json(
    advice: Advice, rows: list[dict[str, Any]], fates: list[Earlier], new: list[Point]
) -> dict[str, Any]:
    from dataclasses import asdict

    content: dict[str, Any] = {
        "points": rows,
        "n_answers": advice.n_answers,
        "n_perfect": advice.n_perfect,
        "n_pointless": advice.n_pointless,
        "missing": advice.missing,
        "dropped": advice.dropped,
        "other_lines": advice.other_lines,
        "signature": advice.signature,
    }
    if fates:
        content["earlier"] = [asdict(one) for one in fates]
        content["new"] = [f"point_{k}" for k, point in enumerate(advice.points, 1) if point in new]
    return content

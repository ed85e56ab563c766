"""The stories of a study: drawn at random, their plots, and texts that models write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fabula.core.errors import explain
from fabula.core.resume import kept_rows
from fabula.core.settings import (
    Between,
    Settings,
    SettingsError,
    of_field,
    part,
    seed_setting,
    setting,
)
from fabula.core.store import write_rows
from fabula.jobs import models as calls
from fabula.jobs.job import SILENT, Confirm, Progress, Stream, Texts, agreed
from fabula.jobs.models import WrittenStories
from fabula.jobs.result import Result, Row, picked
from fabula.jobs.shared_settings import (
    Reading,
    read_stories,
    restart_setting,
    rows_file,
    share_of,
    share_setting,
)

_CELLS = "model,method,prompt,shots"
_N_LISTED = 20
"""Groups that are listed one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawSettings(Settings):
    """How many texts or pieces are drawn, and from which groups."""

    n_each: int | None = setting(
        None,
        help="Draw N texts of each group, or all of a group that has fewer.",
        option="each",
        check=Between(1),
    )
    pieces: int | None = setting(
        None,
        help="Draw N pieces of feedback in all (1,920 in the paper), equally many of each cell.",
        check=Between(1),
    )
    by: str | None = of_field(
        "Field to group the texts by, such as author or model; of feedback, fields whose "
        "values together make a cell.",
        default_text=f"all texts are one group; of feedback, {_CELLS}",
    )
    out: Path = setting(help="Write what was drawn here (.jsonl); feedback is for `study new`.")
    seed: int = seed_setting()

    def check_together(self) -> None:
        if (self.n_each is None) == (self.pieces is None):
            raise SettingsError("n_each", "or, of feedback, `pieces` is required, but not both")


@dataclass(frozen=True, slots=True, repr=False)
class Drawn(Result):
    """What was drawn, of how many, and where it was written."""

    drawn: Sequence[Row]
    said: Sequence[str]
    counts: Mapping[str, Any]

    def rows(self) -> list[Row]:
        return list(self.drawn)

    def lines(self) -> Sequence[str]:
        return self.said

    def to_json(self) -> dict[str, Any]:
        return dict(self.counts)


def draw(sources: Stream, settings: DrawSettings) -> Drawn:
    """Draw texts of SOURCES at random, the same number of each group.

    For commands that keep all texts in memory, as `diversity` and `report` do, or pay for each, as
    `judge` does: SOURCES may have millions of texts, of which only the drawn ones are kept. With
    the same seed, the same texts are drawn whatever their order.

    With `pieces`, SOURCES are files that `feedback elicit` wrote, and pieces of feedback are drawn
    for people to rate, evenly from cells and stories; a cell is a model, a corruption, a prompt and
    a number of examples. Withheld feedback and models' refusals are left out. If a cell has too few
    pieces, all are used, and the other cells supply more. Source: Rashkin et al. 2025, section 6.

    Raises `InputError`, `SettingsError`.
    """
    from fabula.feedback.job import feedback_rows
    from fabula.stories.random_draw import draw_texts, sample_evenly
    from fabula.text import check_ids

    by, out, counts = settings.by, settings.out, dict[str, Any]()
    if settings.pieces is None:
        chosen = draw_texts(sources, settings.n_each or 1, by=by, seed=settings.seed)
        check_ids(chosen.documents)
        rows = [{**text.fields, "id": text.id, "text": text.text} for text in chosen.documents]
        sizes, drawn = chosen.n_there, chosen.n_drawn
        groups, n_there = [] if by is None else sorted(sizes), sum(sizes.values())
        lines = [f"{len(rows):,} of {n_there:,} texts"]
        if by is not None:
            lines[0] += f", from {len(groups):,} groups ({by})"
            lines += [f"  {g}: {drawn[g]:,} of {sizes[g]:,}" for g in groups[:_N_LISTED]]
        if len(groups) > _N_LISTED:
            lines.append(f"  and {len(groups) - _N_LISTED:,} more groups")
        by_group = [{"group": g, "n_there": sizes[g], "n_drawn": drawn[g]} for g in groups]
        counts = {"n_there": n_there, "groups": by_group}
    elif not sources.names:
        raise SettingsError("pieces", "needs files that `fabula feedback elicit` wrote")
    else:
        names = tuple(dict.fromkeys(name.strip() for name in (by or _CELLS).split(",")))
        pieces = feedback_rows(map(Path, sources.names), whole=True)
        sample = sample_evenly(pieces, settings.pieces, names, settings.seed)
        rows = [dict(row) for row in sample.rows]
        n_drawn = [cell.n_drawn for cell in sample.cells]
        least, most = min(n_drawn), max(n_drawn)
        of_cell = f"{most:,} each" if least == most else f"{least:,} to {most:,} each"
        lines = [
            f"{len(rows):,} of {sample.n_there:,} pieces, from {len(sample.cells):,} cells "
            f"({', '.join(names)}): {of_cell}",
            *(
                f"fully used: {', '.join(cell.values)} ({cell.n_drawn:,})"
                for cell in sample.cells
                if cell.n_drawn == cell.n_there and cell.n_drawn < most - 1
            ),
            f"{sample.n_stories:,} stories, each in {sample.n_of_story:,} pieces at most",
            *(f"left out: {n:,}, {explain(why)}" for why, n in sample.left_out.items()),
        ]
        counts = picked(sample, "n_there", "n_stories", "n_of_story", "left_out")
        counts["cells"] = [
            dict(zip(names, cell.values, strict=True)) | picked(cell, "n_there", "n_drawn")
            for cell in sample.cells
        ]
    write_rows(out, rows)
    counts = {"out": str(out), "n": len(rows), **counts}
    return Drawn(rows, [*lines, f"written: {out}"], counts)


_SEED_HELP = "Seed for sampling."
_PLOT_TOKENS = 60
_TOKENS_PER_WORD = 1.35


@dataclass(frozen=True, slots=True)
class PlotSettings(Settings):
    """How plots are summarised."""

    out: Path = setting(help="Write a row with the plot of each story here (.jsonl).")
    seed: int = seed_setting(_SEED_HELP)
    share: str | None = share_setting()
    restart: bool = restart_setting()
    models: calls.ModelSettings = part(calls.ModelSettings)


@dataclass(frozen=True, slots=True)
class StorySettings(Settings):
    """How stories are written from plots. The defaults are those of Chakrabarty et al. 2024."""

    out: Path = setting(
        help="Write the finished stories here (.jsonl); every round is kept beside it."
    )
    human: tuple[str, ...] = setting(
        (), help="Add the human story of each plot (same id) to its group.", unit="SOURCE"
    )
    n_words: int | None = setting(
        None,
        help="Target length of every story.",
        check=Between(1),
        default_text="n_words of its row, the length of the human story",
    )
    attempts: int = setting(20, help="Rewrite a story up to N times.", check=Between(0))
    verified_only: bool = setting(False, help="Use only plots that a person has verified.")
    temperature: float = calls.temperature_setting(1.0)
    seed: int = seed_setting(_SEED_HELP)
    share: str | None = share_setting()
    restart: bool = restart_setting()
    models: calls.ModelSettings = part(calls.ModelSettings)


def plot(
    sources: Texts,
    settings: PlotSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> WrittenStories:
    """Summarise the plot of each story of SOURCES in a sentence.

    Read the plots, correct those that are wrong, and set `verified` to true before stories are
    written from them.

    Raises `InputError`, `ModelError`, `BusyError`; finished plots are kept in `out`.
    """
    from fabula.stories.story_writing import PLOTS, make_plots

    share = share_of(settings.share, settings.out)
    documents = list(sources if share is None else share.of(sources))
    texts, seed = [document.text for document in documents], settings.seed
    with kept_rows(settings.out, PLOTS, restart=settings.restart, share=share) as kept:
        progress.begin("plots", len(texts) * settings.models.n_models)
        ask = partial(make_plots, documents, rows=kept, seed=seed, meter=progress.advance)
        cost = calls.estimate_texts(texts, _PLOT_TOKENS)
        rows = calls.ask_models(settings.models, kept, ask, cost, confirm)
        kept.settle(rows)
    return WrittenStories(rows, rows_file(settings.share, settings.out), "plots")


def write(
    plots: Path,
    settings: StorySettings,
    how_to_read: Reading,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> WrittenStories:
    """Have models write a story for each plot, close to a target length.

    PLOTS is a file from `fabula stories plot`, or any .jsonl with id, plot and n_words. A story is
    rewritten until it is within 200 words of its target length, or a fifth of it if that is less,
    up to `attempts` times; stories that never come close are reported and left out. All rounds are
    kept in FILE.rounds.jsonl.

    Raises `InputError`, `ModelError`, `BusyError`.
    """
    from fabula.stories import story_writing
    from fabula.text import count_words

    out = settings.out
    story_writing.check_output(out, [plots, *map(Path, settings.human)])
    human = read_stories(settings.human, how_to_read.documents) if settings.human else []
    wanted, n_unverified = story_writing.read_plots(
        plots, n_words=settings.n_words, verified_only=settings.verified_only
    )
    share = share_of(settings.share, out)
    wanted = list(wanted if share is None else share.of(wanted))
    if n_unverified:
        progress.tell(f"note: {n_unverified} of {len(wanted)} plots are not verified")
    plan = story_writing.WritePlan(
        settings.attempts,
        temperature=settings.temperature,
        seed=settings.seed,
        effort=settings.models.reasoning_effort,
    )
    n_output = round(_TOKENS_PER_WORD * sum(plot.n_words for plot in wanted) / len(wanted))
    rounds = out.with_name(f"{out.stem}.rounds.jsonl")
    with kept_rows(rounds, story_writing.ROUNDS, restart=settings.restart, share=share) as kept:
        progress.begin("stories", len(wanted) * settings.models.n_models)
        write_all, meter = story_writing.write_stories, progress.advance
        ask = partial(write_all, wanted, plan=plan, rows=kept, meter=meter)
        texts = [plot.text for plot in wanted]
        cost = calls.estimate_texts(texts, n_output, n_again=plan.max_rounds)
        last = calls.ask_models(settings.models, kept, ask, cost, confirm)
        kept.settle(())
    if share is not None:
        return WrittenStories(last, share.beside(rounds), "stories")
    for row in last:
        if not row["missing_reason"] and not row["is_done"]:
            row["missing_reason"] = "not_converged"
    places = {p.id: place for place, p in enumerate(wanted)}
    finished: list[Row] = [
        {
            "id": f"{document.id}_human",
            "text": document.text,
            "author": document.author or "human",
            "prompt_id": document.id,
            "plot": wanted[places[document.id]].text,
            "n_words": count_words(document.text),
        }
        for document in human
        if document.id in places
    ]
    written = [row for row in last if not row["missing_reason"]]
    finished += [story_writing.story_row(row, row["model"]) for row in written]
    finished.sort(key=lambda row: places[row["prompt_id"]])
    write_rows(out, finished)
    return WrittenStories(last, out, "stories", finished)

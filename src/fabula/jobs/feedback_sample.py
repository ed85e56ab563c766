"""Select the pieces of feedback that people rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.settings import Between, Settings, seed_setting, setting

if TYPE_CHECKING:
    from fabula.tasks.feedback.even_draw import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSettings(Settings):
    """How many pieces are drawn, and over which fields evenly."""

    n_pieces: int = setting(help="Number of pieces to draw (1,920 in the paper).", check=Between(1))
    by: str = setting(
        "model,method,prompt,shots",
        help="Fields whose values together make a cell; equally many pieces are drawn from each "
        "cell.",
        unit="LIST",
    )
    out: Path = setting(help="Write the pieces here (.jsonl), for `study new`.")
    seed: int = seed_setting()


@dataclass(frozen=True, slots=True)
class Sampled:
    """The sample, and where it was written."""

    out: Path
    by: tuple[str, ...]
    sample: Sample

    def lines(self) -> list[str]:
        from fabula.reasons import explain

        drawn = self.sample
        counts = [cell.n_drawn for cell in drawn.cells]
        least, most = min(counts), max(counts)
        each = f"{most:,} each" if least == most else f"{least:,} to {most:,} each"
        return [
            f"{len(drawn.rows):,} of {drawn.n_there:,} pieces, from {len(counts):,} cells "
            f"({', '.join(self.by)}): {each}",
            *(
                f"fully used: {', '.join(cell.values)} ({cell.n_drawn:,})"
                for cell in drawn.cells
                if cell.n_drawn == cell.n_there and cell.n_drawn < most - 1
            ),
            f"{drawn.n_stories:,} stories, each in {drawn.n_of_story:,} pieces at most",
            *(f"left out: {n:,}, {explain(why)}" for why, n in drawn.left_out.items()),
            f"written: {self.out}",
        ]

    def to_json(self) -> dict[str, Any]:
        drawn = self.sample
        return {
            "out": str(self.out),
            "n": len(drawn.rows),
            "n_there": drawn.n_there,
            "n_stories": drawn.n_stories,
            "n_of_story": drawn.n_of_story,
            "left_out": dict(drawn.left_out),
            "cells": [
                dict(zip(self.by, cell.values, strict=True))
                | {"n_there": cell.n_there, "n_drawn": cell.n_drawn}
                for cell in drawn.cells
            ],
        }


def sample_feedback(rows: Sequence[Mapping[str, Any]], settings: SampleSettings) -> Sampled:
    """Draw pieces of feedback evenly over cells and stories; write them. Raises `InputError`."""
    from fabula.store import write_rows
    from fabula.tasks.feedback.even_draw import sample_evenly

    by = tuple(dict.fromkeys(name.strip() for name in settings.by.split(",")))
    sample = sample_evenly(rows, settings.n_pieces, by, settings.seed)
    write_rows(settings.out, sample.rows)
    return Sampled(settings.out, by, sample)

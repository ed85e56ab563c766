"""Draw some texts of many, for instruments that compare texts with each other or cost money."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.settings import Between, Settings, seed_setting, setting

if TYPE_CHECKING:
    from fabula.tasks.random_draw import DrawnTexts
    from fabula.types import Document

_N_LISTED = 20
"""Groups that are listed one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawSettings(Settings):
    """How many texts are drawn, and from which groups."""

    n_each: int = setting(
        help="Draw N texts of each group, or all of a group that has fewer.",
        option="each",
        check=Between(1),
    )
    by: str | None = setting(
        None,
        help="Field to group the texts by, such as author or model.",
        unit="FIELD",
        default_text="all texts are one group",
    )
    out: Path = setting(help="Write the drawn texts here (.jsonl).")
    seed: int = seed_setting()


@dataclass(frozen=True, slots=True)
class Drawn:
    """The drawn texts, and where they were written."""

    out: Path
    by: str | None
    drawn: DrawnTexts

    def lines(self) -> list[str]:
        counts = self.drawn.n_there
        total = f"{len(self.drawn.documents):,} of {sum(counts.values()):,} texts"
        if self.by is None:
            return [total, f"written: {self.out}"]
        listed = sorted(counts)[:_N_LISTED]
        more = len(counts) - len(listed)
        return [
            f"{total}, from {len(counts):,} groups ({self.by})",
            *(f"  {group}: {self.drawn.n_drawn[group]:,} of {counts[group]:,}" for group in listed),
            *([f"  and {more:,} more groups"] if more else []),
            f"written: {self.out}",
        ]

    def to_json(self) -> dict[str, Any]:
        counts = self.drawn.n_there
        return {
            "out": str(self.out),
            "n": len(self.drawn.documents),
            "n_there": sum(counts.values()),
            "groups": [
                {"group": group, "n_there": n, "n_drawn": self.drawn.n_drawn[group]}
                for group, n in sorted(counts.items())
                if self.by is not None
            ],
        }


def draw_stories(documents: Iterable[Document], settings: DrawSettings) -> Drawn:
    """Draw texts from a stream, and write them. Raises `InputError`."""
    from fabula.store import write_rows
    from fabula.tasks.random_draw import draw_texts
    from fabula.text import check_ids

    drawn = draw_texts(documents, settings.n_each, by=settings.by, seed=settings.seed)
    check_ids(drawn.documents)
    rows = ({**one.fields, "id": one.id, "text": one.text} for one in drawn.documents)
    write_rows(settings.out, rows)
    return Drawn(settings.out, settings.by, drawn)

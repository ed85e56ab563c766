"""What a review is to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from fabula.models import ModelOptions
from fabula.models.cost import Price

__all__ = ["PARTS", "Part", "ReviewPlan"]

Part = Literal["originality", "fluency", "profile", "verdicts", "feedback"]
PARTS: tuple[Part, ...] = ("originality", "fluency", "profile", "verdicts", "feedback")


@dataclass(frozen=True, slots=True)
class ReviewPlan:
    """Which instruments, and how."""

    references: tuple[str, ...] = ()
    """What originality is measured against; none leaves it out."""
    levels: str | None = None
    near: bool = False
    """Matches in other words too."""
    exclude_copies: bool = False
    """Leave out documents of the reference that copy or quote the text."""
    fluency_model: str = "local"
    models: tuple[str, ...] = ()
    """Who judges and advises; none leaves both out."""
    rubric: str = "ttcw"
    style: Literal["reason-first", "verdict-first"] = "reason-first"
    n_readings: int = 5
    without: frozenset[Part] = frozenset()
    grammar: str = "harper"
    groups: tuple[Path, ...] = ()
    """Files of `fabula groups measure`, besides the groups that ship."""
    seed: int = 0
    n_jobs: int = 1
    keep: Path | None = None
    """A folder where models' answers are kept as they come, so that none is paid for twice."""
    options: ModelOptions = field(default_factory=ModelOptions)
    price: Price | None = None
    max_cost: float | None = None

    def asks(self, part: Part) -> bool:
        return part not in self.without

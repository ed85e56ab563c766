"""What a comparison of judges is given: people's labels, and runs of judges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fabula.core.errors import InputError
from fabula.core.types import Document, Measurement, Rubric
from fabula.jobs.given import Row, located_in, rows_in

if TYPE_CHECKING:
    from fabula.judging.judges import JudgeCost
    from fabula.models.cost import Prices


@dataclass(frozen=True, slots=True)
class Labels:
    """People's labels: a file, or rows with document, item, rater and value."""

    source: Path | list[Row]

    @classmethod
    def of(cls, value: Any) -> Self:
        """From a path, a frame or rows. Raises `InputError`."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str | Path):
            return cls(Path(value))
        if (rows := rows_in(value)) is None:
            raise InputError("labels: expected a table or rows with document, item, rater, value")
        return cls(rows)

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path | None:
        return self.source if isinstance(self.source, Path) else None

    @property
    def name(self) -> str:
        """What they are called in errors and signatures."""
        return "labels" if self.path is None else self.path.name

    def read(self, rubric: Rubric) -> list[Measurement]:
        """Raises `InputError`, naming the file or the row."""
        from fabula.raters.labels import labels_of, read_labels

        if isinstance(self.source, Path):
            return read_labels(self.source, rubric)
        return labels_of(located_in((self.source, self.name)), rubric, self.name)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of judges: the folder that it was kept in, or its result in memory."""

    name: str
    folder: Path | None
    judged: Any = None
    """A `Judged`, if it is in memory."""

    @classmethod
    def of(cls, value: Any) -> Self:
        """From a folder or a result of `judge`. Raises `InputError`."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str | Path):
            return cls(str(value), Path(value))
        if not hasattr(value, "plan") or not hasattr(value, "said"):
            raise InputError(
                f"expected the folder of a run or a result of `judge`, not {type(value).__name__}"
            )
        return cls("the verdicts", None, value)

    def read(self) -> tuple[Rubric, list[Measurement]]:
        """The rubric, and all verdicts. Raises `InputError`."""
        from fabula.judging.session import read_run

        if self.folder is None:
            return self.judged.plan.rubric, self.judged.said
        return read_run(self.folder)

    def documents(self) -> tuple[Document, ...]:
        """The judged texts, if they are in memory."""
        return () if self.judged is None else tuple(self.judged.documents)

    def costs(self, prices: Prices) -> dict[str, JudgeCost]:
        """What each judge cost, by model."""
        from fabula.judging.judges import JudgeCost, costs_of

        if self.folder is not None:
            return costs_of(self.folder, prices)
        # Existing answers were not counted.
        return {
            m.model: JudgeCost(m.n_calls, m.usage.n_input, m.usage.n_output, m.cost)
            for m in self.judged.spent
            if m.n_calls
        }

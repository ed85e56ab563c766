"""Results of the functions of `fabula` about sets of texts: their diversity, their phrases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.api.coercion import FrameKind, frame_of
from fabula.api.made import recorded_save
from fabula.api.results import Tabled

if TYPE_CHECKING:
    from fabula.measures.diversity import Diversity as _Diversity
    from fabula.measures.diversity.key_phrases import KeyPhrases as _KeyPhrases
    from fabula.presentation.sheet import Block


@dataclass(frozen=True, slots=True)
class Diversity(Tabled):
    """How similar the texts of groups are, with tests, shared phrases and pairs of texts."""

    diversity: _Diversity
    texts: Mapping[str, str]
    """By id, for the words that are shown."""
    kind: FrameKind | None = None

    def wide(self) -> Any:
        """A frame of the input's kind, one row per group and measure, with its interval."""
        return frame_of(
            (
                {
                    "group": group.name,
                    "measure": measure,
                    "value": one.value,
                    "low": one.low,
                    "high": one.high,
                    "n": group.n,
                    "n_units": one.n_units,
                }
                for group in self.diversity.groups
                for measure, one in group.estimates.items()
            ),
            self.kind,
        )

    @property
    def remarks(self) -> list[str]:
        """Notices for a reader of the numbers."""
        return self.diversity.remarks

    @property
    def signature(self) -> str:
        return self.diversity.signature

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values, as `fabula diversity --json` prints it."""
        return self.diversity.to_json()

    def tables(self) -> list[Block]:
        from fabula.presentation.diversity_tables import diversity_tables

        return diversity_tables(self.diversity, self.texts)


@dataclass(frozen=True, slots=True)
class KeyPhrases(Tabled):
    """What each of two groups uses more than the other, the largest z first."""

    found: _KeyPhrases
    n_listed: int
    """Number of phrases per group in the tables."""
    kind: FrameKind | None = None

    def wide(self) -> Any:
        """A frame of the input's kind, one row per phrase: `over`, its group, and the figures."""
        return frame_of(
            ({**row, "folded": "; ".join(row["folded"])} for row in self.to_json()["phrases"]),
            self.kind,
        )

    @property
    def remarks(self) -> Sequence[str]:
        """Notices for a reader of the numbers."""
        return self.found.remarks

    @property
    def signature(self) -> str:
        return self.found.signature

    @recorded_save
    def save(self, path: str | Path) -> None:
        """The list with its date (.jsonl), as `report` takes it in `phrases`."""
        from fabula.measures.phrase_list import write_key_phrases

        write_key_phrases(Path(path), self.found)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values, as `fabula groups phrases --json` prints it."""
        return self.found.to_json()

    def tables(self) -> list[Block]:
        from fabula.presentation.diversity_tables import phrase_tables

        return phrase_tables(self.found, self.n_listed)

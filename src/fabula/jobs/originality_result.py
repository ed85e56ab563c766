"""The result of `fabula originality`: rows for a table, remarks, texts for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from fabula.jobs.result import Result, Row, flat, without_parts

if TYPE_CHECKING:
    from fabula.measures.groups import Distribution
    from fabula.measures.scores import RankedPassage
    from fabula.presentation.sheet import Block
    from fabula.reference.info import Age
    from fabula.types import Document

_TECHNICAL = ("text_digest", "word_counts")
"""Fields of a row that no frame has."""
_UNFAMILIAR = 0.2
"""Share of words unknown to the reference above which a remark is made."""


@dataclass(slots=True, repr=False)
class OriginalityResult(Result):
    """A run of any length: rows for a table, remarks, and the first texts for a page."""

    MAX_KEPT: ClassVar[int] = 200
    keep_texts: bool = False
    kept: list[Row] | None = None
    """All rows, as in `out`, if they are kept."""
    n_marks: int | None = None
    """As in `Marking`."""
    texts: list[tuple[Document, dict[str, Any]]] = field(default_factory=list)
    """The first texts with their rows, if they are kept."""
    table: list[tuple[str, int, float | None, float | None, str | None]] = field(
        default_factory=list
    )
    """(id, words, Creativity Index, uniqueness at the lowest level, why it is missing)."""
    passages: list[RankedPassage] = field(default_factory=list)
    """The least probable over all texts."""
    n_passages: int = 0
    n_commonplaces: int = 0
    size: str = ""
    """The size and age of the reference, for display."""
    own: Distribution | None = None
    """The Creativity Index of the reference's own documents, if it was measured."""
    age: Age | None = None
    """The age of its documents."""
    signature: str = ""
    levels: list[str] = field(default_factory=list)
    n_rows: int = 0
    n_with_copies: int = 0
    n_unfamiliar: int = 0
    copied: list[str] = field(default_factory=list)
    younger: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    n_by_remark: dict[str, int] = field(default_factory=dict)

    def add(self, document: Document, row: dict[str, Any]) -> None:
        from fabula.measures.scores import COPIED_SHARE

        self.n_rows += 1
        if self.kept is not None:
            self.kept.append(row)
        self.n_with_copies += bool(row["excluded"])
        if self.age is not None:
            self.younger += self.age.younger([document])
        if (row["in_reference"] or 0) >= COPIED_SHARE:
            self.copied.append(row["id"])
        self.n_unfamiliar += 0 < (row["n_known_words"] or 0) < (1 - _UNFAMILIAR) * row["n_words"]
        for remark in row.get("remarks", ()):
            self.n_by_remark[remark] = self.n_by_remark.get(remark, 0) + 1
        if (detail := row.get("missing_detail")) is not None:
            self.failures.append(detail)
        self.signature = row["signature"]
        self.levels = list(row["uniqueness"])
        lowest = next(iter(row["uniqueness"].values()))
        self.table.append(
            (row["id"], row["n_words"], row["creativity_index"], lowest, row["missing_reason"])
        )
        self._add_passages(document, row)
        if self.keep_texts and len(self.texts) < self.MAX_KEPT:
            self.texts.append((document, row))

    def _add_passages(self, document: Document, row: dict[str, Any]) -> None:
        from fabula.measures.scores import RankedPassage, first_passages

        self.n_passages += len(row["passages"] or ())
        self.n_commonplaces += len(row["commonplaces"] or ())
        self.passages = first_passages([*self.passages, *RankedPassage.of_row(document, row)])

    def rows(self) -> list[Row]:
        return self.kept or []

    def frame_rows(self) -> list[Row]:
        """A row per text: `id`, its scores, `uniqueness_L` for each L, and its own fields."""
        first = ("id", "creativity_index", "n_words", "missing_reason", "uniqueness")
        return [
            flat({name: row[name] for name in first}) | without_parts(row, (*first, *_TECHNICAL))
            for row in self.rows()
        ]

    def tables(self) -> list[Block]:
        from fabula.presentation.originality_tables import originality_table, passages_table

        return [
            *originality_table(self.table, self.levels, self.signature, self.own),
            *passages_table(self.passages, self.n_passages, self.n_commonplaces),
        ]

    def notices(self) -> list[str]:
        return self.remarks()

    def writers(self) -> dict[str, Any]:
        return {".html": self.save_page}

    def lacking(self) -> str | None:
        # For scripts: some texts have no score. If a look-up failed, another run may find it.
        return "" if any(index is None for _, _, index, _, _ in self.table) else None

    def _repr_html_(self) -> str:
        from fabula.web.notebook import notebook_table

        lines = [(id_, index, why) for id_, _, index, _, why in self.table]
        return notebook_table("Creativity Index", lines, self.signature)

    def remarks(self) -> list[str]:
        """What a reader of the numbers should know."""
        of_all = f"of {self.n_rows:,} texts"
        remarks = []
        if self.n_with_copies:
            remarks.append(
                f"{self.n_with_copies:,} {of_all}: documents that copy or quote them were left out "
                "(named in the scores and on the page)"
            )
        if self.n_unfamiliar:
            remarks.append(
                f"{self.n_unfamiliar:,} {of_all}: over {_UNFAMILIAR:.0%} of the words do not occur "
                "in the reference at all, and count as new; check that it is in the same language"
            )
        remarks += [f"{n:,} {of_all}: {remark}" for remark, n in self.n_by_remark.items()]
        if self.age is not None and self.younger:
            remarks.append(younger_remark(self.younger, self.n_rows, self.age))
        if self.copied:
            remarks.append(
                f"{len(self.copied):,} {of_all}: at least half of the words occur in one document "
                f"of the reference (the first: {self.copied[0]}): copied, or borrowed? `exclude` "
                "auto and `exclude_same` leave such documents out"
            )
        if self.failures:
            remarks.append(
                f"{len(self.failures):,} {of_all} have no score, since a look-up failed "
                f"({self.failures[0]}); run again with `out` to retry"
            )
        return remarks

    def save_page(self, path: Path) -> None:
        from fabula.presentation.originality_page import write_page

        write_page(path, self.texts, self.n_rows, self.size, self.n_marks)


def younger_remark(ids: Sequence[str], n_texts: int, age: Age) -> str:
    """What a reference cannot contain, since it is older than the texts."""
    return (
        f"{len(ids):,} of {n_texts:,} texts were written after {age.youngest}, later than every "
        f"document of the reference: they cannot be in it (the first: {ids[0]})"
    )

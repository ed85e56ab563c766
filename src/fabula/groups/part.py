"""Diversity as a part of the report: what several texts have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from fabula.core.types import Signature
from fabula.groups.tables import together_tables
from fabula.show.parts import ReportPart, Review
from fabula.show.sheet import Block, html_of

if TYPE_CHECKING:
    from fabula.groups.diversity import Together


class DiversityPart(ReportPart):
    """About several texts together: none of its numbers belongs to a single text."""

    id, title, order, page_order = "diversity", "Diversity", 70, 70
    template = "groups/part.html.j2"
    has_groups = False

    def content_of_all(self, review: Review) -> Mapping[str, Any]:
        together = self._together(review)
        return {} if together is None else {"together": together.to_json()}

    def leads(self, review: Review) -> bool:
        together = self._together(review)
        return together is not None and together.is_class

    def blocks(self, review: Review) -> Sequence[Block]:
        """Which texts resemble which, and how similar all texts are."""
        together = self._together(review)
        if together is None:
            return []
        texts = {text.document.id: text.document.text for text in review.texts}
        return [*together_tables(together, texts, self.found_elsewhere(review)), ""]

    def view_of_all(self, review: Review, n_linked: int) -> Any:
        if self._together(review) is None:
            return None
        return {"tables": Markup(html_of(self.blocks(review))), "is_class": self.leads(review)}

    def found_elsewhere(self, review: Review) -> dict[str, float | None]:
        """For a class, by id, the share of a text's words that originality found in other sources.

        None if it is missing; empty if only the runs shared between texts were searched.
        """
        parts = dict(Signature.parse(review.signatures.get("originality", "originality")).parts)
        is_more = parts.get("match") == "near" or "+" in parts.get("ref", "")
        if not self.leads(review) or not is_more:
            return {}
        shares = {}
        for text in review.texts:
            originality = text.results.get("originality")
            levels = {} if originality is None else originality.uniqueness
            lowest = next(iter(levels.values()), None)
            shares[text.document.id] = None if lowest is None else 1 - lowest
        return shares

    def methods_of(self, review: Review) -> str:
        return (
            "The diversity of the set was measured at equal length after Shaib et al. (2024), "
            "with jackknife intervals over texts; pairs of texts were compared by runs of six or "
            "more words in common."
        )

    def _together(self, review: Review) -> Together | None:
        together: Together | None = review.of_all.get(self.id)
        return together


PARTS = (DiversityPart(),)

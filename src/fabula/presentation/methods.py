"""The paragraphs for a paper: what was measured and how, with references."""

from __future__ import annotations

from fabula import __version__
from fabula.review import Review
from fabula.review.citations import PPI
from fabula.review.report_parts import ReportPart, parts_of


def methods_of(review: Review) -> list[str]:
    """Sentences, one list entry per paragraph, about what was done to these texts."""
    n = len(review.texts)
    many = "one text was" if n == 1 else f"{n:,} texts were"
    first = f"With Fabula {__version__}, {many} measured as follows."
    return [first, *(part.methods(review) for part in _measured(review))]


def bibtex_of(review: Review) -> str:
    """The references of `methods_of`."""
    found = [entry for part in _measured(review) for entry in part.references(review)]
    found += [PPI] if review.corrected else []
    return "\n\n".join(dict.fromkeys(found))


def _measured(review: Review) -> list[ReportPart]:
    return [part for part in parts_of(review) if part.id in review.signatures]

"""Draw some texts of many at random, reading them once and keeping no others."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fabula.text import check_documents
from fabula.types import Document


@dataclass(frozen=True, slots=True)
class DrawnTexts:
    """Texts drawn from groups, in the order in which they were read."""

    documents: tuple[Document, ...]
    n_there: Mapping[str, int]
    """By group, how many texts were read."""
    n_drawn: Mapping[str, int]


def draw_texts(
    documents: Iterable[Document], n_each: int, *, by: str | None = None, seed: int = 0
) -> DrawnTexts:
    """Draw `n_each` texts of each group at random, or all of a group that has fewer.

    A text is drawn if a hash of the seed, its id and its words is among the smallest of its group,
    so the same texts are drawn whatever their order, and those of a larger draw include them. Takes
    memory for the drawn texts only. Without `by` all texts are one group, named "". Raises
    `InputError` if a text lacks the field `by`.
    """
    kept: dict[str, list[tuple[int, int, Document]]] = {}
    n_there: Counter[str] = Counter()
    for place, document in enumerate(check_documents(documents)):
        group = "" if by is None else document.group(by)
        n_there[group] += 1
        here = kept.setdefault(group, [])
        # The largest rank is on top, and leaves first.
        entry = -_rank(seed, document), place, document
        if len(here) < n_each:
            heapq.heappush(here, entry)
        else:
            heapq.heappushpop(here, entry)
    drawn = sorted((place, one) for here in kept.values() for _, place, one in here)
    return DrawnTexts(
        documents=tuple(document for _, document in drawn),
        n_there=n_there,
        n_drawn={group: len(here) for group, here in kept.items()},
    )


def _rank(seed: int, document: Document) -> int:
    named = f"{seed} {len(document.id)} {document.id}{document.text}"
    digest = hashlib.blake2b(named.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big")

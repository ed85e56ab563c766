"""Narrative person and tense of a stretch of prose, from function words outside quoted speech.

A first-person narrator says "I" and "we" between the speeches; otherwise those words occur in
speech alone. The tense is that of the plain forms of "be", "have", "do" and "say".
`bench/telling.py` measures the accuracy on chapters of twenty novels whose narrator is known. A
letter that fills a chapter is narrated by its writer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from fabula.text.marks import word_set

TELLING_RULES = "1"
"""Version: changes with any word or threshold below."""

_FIRST = word_set("i me my mine myself we us our ours ourselves")
_THIRD = word_set("he him his himself she her hers herself they them their theirs themselves")
_PRESENT = word_set("is are am has does says")
_PAST = word_set("was were had did said")
_MIN_WORDS = 20
"""Fewer such words are inconclusive."""
_MIN_FIRST, _MAX_THIRD = 0.15, 0.10
_MIN_PRESENT, _MAX_PAST = 0.65, 0.35


@dataclass(frozen=True, slots=True)
class Telling:
    """Person and tense of a stretch; None if there are too few words to tell."""

    first_person: float | None
    """First-person share of the personal pronouns in narration."""
    present: float | None
    """Present-tense share of the tense-marked forms in narration."""

    @property
    def person(self) -> Literal["first", "third"] | None:
        """Also None between the two."""
        if self.first_person is None or _MAX_THIRD < self.first_person < _MIN_FIRST:
            return None
        return "first" if self.first_person >= _MIN_FIRST else "third"

    @property
    def tense(self) -> Literal["past", "present", "mixed"] | None:
        if self.present is None:
            return None
        if self.present >= _MIN_PRESENT:
            return "present"
        return "past" if self.present <= _MAX_PAST else "mixed"


def telling_of(words: Iterable[str]) -> Telling:
    """Person and tense of a stretch, from its lower-case words outside speech."""
    counts = Counter(words)

    def share(ours: frozenset[str], others: frozenset[str]) -> float | None:
        n_ours, n_others = (sum(counts[word] for word in part) for part in (ours, others))
        n = n_ours + n_others
        return n_ours / n if n >= _MIN_WORDS else None

    return Telling(share(_FIRST, _THIRD), share(_PRESENT, _PAST))

"""L-uniqueness, and the range of L that the Creativity Index sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError


@dataclass(frozen=True, slots=True)
class Levels:
    """The values of L that are summed, ends included."""

    low: int = 5
    high: int = 12

    def __post_init__(self) -> None:
        if not 1 <= self.low <= self.high:
            raise InputError(
                f"`levels` {self.low}-{self.high}: must be LOW-HIGH with 1 <= LOW <= HIGH"
            )

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))

    def __len__(self) -> int:
        return self.high - self.low + 1

    def __str__(self) -> str:
        return f"{self.low}-{self.high}"

    @classmethod
    def parse(cls, text: str) -> Levels:
        low, dash, high = text.partition("-")
        if not (low.isdecimal() and (high.isdecimal() if dash else True)):
            raise InputError(f"`levels` {text}: must be a range such as 5-12")
        return cls(int(low), int(high or low))


def uniqueness(lengths: NDArray[np.int32], level: int) -> float | None:
    """L-uniqueness at L = `level` from the longest match at each word (int32, shape (n_words,)).

    None if the text has fewer than `level` words.
    """
    n_words = len(lengths)
    if n_words < level:
        return None
    begins = np.flatnonzero(lengths >= level)
    change = np.zeros(n_words + 1, np.int64)
    np.add.at(change, begins, 1)
    np.add.at(change, begins + lengths[begins], -1)
    return float(np.count_nonzero(np.cumsum(change)[:-1] == 0)) / n_words

"""Words whose neighbours suit another word of their confusion set better.

For two words that are written for each other (*though* and *through*) a logistic regression on the
tokens around them says which is likelier there. It is fitted to edited books, of which
`contexts.npz` has no text, only weights of hashed features: `bench/contexts.py` makes the file, and
measures how often a wrong word is suspected. What is suspected is wrong in few cases only: it is to
be read by a better model.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import as_file, files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabula.text.words import word_set

TOKEN = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*|\d+|[.!?;:,\"—–()…-]|\n\n+")
"""Of a text with straight quotation marks."""
_BREAK, _ENDS = "\n", '.!?"\n'
_WIDTH = 3
"""Tokens on each side."""
SLACK = 1.0
"""By how much less than a word's own threshold the odds of the other may be."""
_FREQUENT = word_set(
    "the a an of to in and that was he it his her i with as had for at on you not be she him but "
    "said is by from they all were which my me there so one this if have or when no what been up "
    "their would out them we who could into then your now do more some about very like over "
    "before after down than well back little any only never its will man see too how did know "
    "come here us our can just go upon where am must such other these again off even should "
    "through way got old made came"
)
"""Words that are features themselves; others are by their last letters too."""


class Suspect(NamedTuple):
    """A word of a text, half-open in characters, and the word that suits its place better; and by
    how many nats its odds are below the threshold."""

    start: int
    end: int
    other: str
    below: float


def features(tokens: Sequence[str], k: int) -> list[int]:
    """The hashed features of the tokens around the one at `k`."""
    around = [*range(k - _WIDTH, k), *range(k + 1, k + _WIDTH + 1)]
    a, b, c, d, e, f = (_word(tokens, at) for at in around)
    left2, left, right, right2 = (_kind(tokens, at) for at in around[1:-1])
    said = (
        f"a {a}", f"b {b}", f"c {c}", f"d {d}", f"e {e}", f"f {f}",
        f"bc {b} {c}", f"cd {c} {d}", f"de {d} {e}",
        f"l2 {left2}", f"l {left}", f"r {right}", f"r2 {right2}",
        f"ll {left2} {left}", f"lr {left} {right}", f"rr {right} {right2}",
    )  # fmt: skip
    return [zlib.crc32(one.encode()) for one in said]


def _word(tokens: Sequence[str], at: int) -> str:
    token = tokens[at] if 0 <= at < len(tokens) else _BREAK
    return _BREAK if token.isspace() else "#" if token.isdigit() else token.lower()


def _kind(tokens: Sequence[str], at: int) -> str:
    """A token as a word that is frequent, a mark, a name, or three last letters."""
    word = _word(tokens, at)
    if word in _FREQUENT or not word[0].isalpha():
        return word
    if tokens[at][0].isupper() and _word(tokens, at - 1) not in _ENDS:
        return "Name"
    return f"-{word[-3:]}"


class _Weights(NamedTuple):
    """One regression: sorted keys of its features, their weights, and the constant."""

    keys: NDArray[np.uint32]
    weights: NDArray[np.float32]
    constant: float

    def log_odds(self, hashed: NDArray[np.uint32]) -> float:
        """Of the second word."""
        at = np.minimum(np.searchsorted(self.keys, hashed), len(self.keys) - 1)
        found = self.weights[at[self.keys[at] == hashed]]
        return self.constant + float(found.sum(dtype=np.float64))


@cache
def _models() -> dict[str, list[tuple[str, float, float, _Weights]]]:
    """For each word those that may be meant, with the sign of their odds, the least, weights."""
    with as_file(files("fabula.style").joinpath("contexts.npz")) as path, np.load(path) as made:
        pairs, least, ends = made["pairs"], made["least"], made["ends"]
        keys, constants = made["keys"], made["constants"]
        weights = made["weights"].astype(np.float32)
    models: dict[str, list[tuple[str, float, float, _Weights]]] = {}
    for k, (first, second) in enumerate(pairs.tolist()):
        begin, end = (ends[k - 1] if k else 0), ends[k]
        own = _Weights(keys[begin:end], weights[begin:end], float(constants[k]))
        for sign, word, other in ((1.0, first, second), (-1.0, second, first)):
            if np.isfinite(margin := float(least[k][int(sign < 0)])):
                models.setdefault(word, []).append((other, sign, margin, own))
    return models


def suspects(text: str) -> Iterator[Suspect]:
    """Words of a text with straight quotation marks that another would suit better, in order."""
    matches = list(TOKEN.finditer(text))
    tokens = [match[0] for match in matches]
    for k, match in enumerate(matches):
        models = _models().get(match[0].lower())
        is_name = match[0][0].isupper() and _word(tokens, k - 1) not in _ENDS
        if models is None or is_name or match[0].isupper():
            continue
        hashed = np.array(features(tokens, k), dtype=np.uint32)
        others = [
            (sign * weights.log_odds(hashed) - least, other)
            for other, sign, least, weights in models
        ]
        above, other = max(others)
        if above > -SLACK:
            yield Suspect(*match.span(), other, max(0.0, -above))

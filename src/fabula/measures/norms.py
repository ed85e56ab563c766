"""Ratings of words by people, such as concreteness or valence, from a file that users provide.

No ratings ship with Fabula: the common ones (Brysbaert, Warriner and Kuperman 2014; Warriner,
Kuperman and Brysbaert 2013) have terms of their own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabula.errors import InputError
from fabula.instruments import Figure
from fabula.store import checksum
from fabula.text import read_table
from fabula.text.language import not_english
from fabula.text.pipeline import load_pipeline, pipeline_parts
from fabula.text.sentences import encodable
from fabula.types import Document, Measurement, Signature

_WORDS = ("word", "words", "lemma", "term")
_MIN_RATED = 10
"""Minimum number of rated words for a mean."""
_PARTS = ("tok2vec", "tagger", "attribute_ruler", "lemmatizer")


@dataclass(frozen=True, slots=True)
class Norms:
    """The name of a rating, and its value for each word, in lower case."""

    name: str
    values: Mapping[str, float]
    digest: str


def read_norms(spec: str) -> Norms:
    """Read a table with a column of words and one of numbers, named by `FILE#COLUMN`.

    Phrases of several words are skipped. Raises `InputError` with the line.
    """
    file, _, wanted = spec.partition("#")
    path = Path(file)
    values: dict[str, float] = {}
    column = ""
    for row, where in read_table(path):
        word_column = _word_column(row, where)
        column = column or _value_column(row, word_column, wanted, where)
        word, value = row.get(word_column), row.get(column)
        if word in (None, "") or value in (None, ""):
            continue
        key = str(word).strip().lower()
        if len(key.split()) != 1:
            continue
        number = _number(value)
        if number is None:
            raise InputError(
                f"{where}: {column} is {value!r}, not a number; correct it, or leave it empty"
            )
        if values.setdefault(key, number) != number:
            raise InputError(f"{where}: {key!r} already has another {column}; keep one of them")
    if not values:
        raise InputError(f"{path}: contains no rated words")
    return Norms(column, values, checksum(path)[:8])


def _word_column(row: Mapping[str, Any], where: str) -> str:
    for name in row:
        if name.strip().lower() in _WORDS:
            return name
    raise InputError(
        f"{where}: no column of words; name it word (the columns are {', '.join(map(repr, row))})"
    )


def _value_column(row: Mapping[str, Any], words: str, wanted: str, where: str) -> str:
    if wanted:
        if wanted not in row:
            raise InputError(
                f"{where}: no column {wanted!r}; the columns are {', '.join(map(repr, row))}"
            )
        return wanted
    found = [name for name, value in row.items() if name != words and _number(value) is not None]
    if len(found) != 1:
        raise InputError(
            f"{where}: {len(found)} columns contain numbers ({', '.join(map(repr, found))}); "
            "choose one, as in ratings.csv#valence"
        )
    return found[0]


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


class NormInstrument:
    """The mean rating of a text's words, and how many of them are rated. English only."""

    citation = ""

    def __init__(self, norms: Norms, number: int = 1) -> None:
        self._norms = norms
        self.id = "norms" if number == 1 else f"norms{number}"
        self.title = f"Ratings of words: {norms.name}"
        self.figures: Sequence[Figure] = (
            Figure(
                "mean",
                f"{norms.name}, the mean",
                ".2f",
                "over the words that are rated, as often as they stand; of words, not of what "
                "the text says",
            ),
            Figure("rated", f"{norms.name}, words rated", ".0%", "share of the text's words"),
        )

    @property
    def signature(self) -> Signature:
        return Signature.of(
            "norms",
            list=f"{self._norms.name}@{self._norms.digest}",
            lookup="word-else-lemma",
            **pipeline_parts(_pipeline()),
        )

    @property
    def methods(self) -> str:
        return (
            f"{len(self._norms.values):,} rated words ({self._norms.name}) were looked up as they "
            f"stand, and otherwise by their lemma; the mean is over all that were found."
        )

    def measure(self, documents: Sequence[Document]) -> Iterator[Sequence[Measurement]]:
        signature = str(self.signature)
        for document in documents:
            reason, mean, share = self._of(document.text)
            for_item = {"mean": mean, "rated": share}
            yield [
                Measurement(
                    document_id=document.id,
                    rubric=self.id,
                    item=item,
                    rater="fabula",
                    value=value,
                    missing_reason=None if value is not None else reason,
                    evidence=(),
                    rationale=None,
                    signature=signature,
                )
                for item, value in for_item.items()
            ]

    def _of(self, text: str) -> tuple[str | None, float | None, float | None]:
        """The reason if missing, the mean, and the share of words that are rated."""
        foreign = not_english(text)
        if foreign is not None:
            return foreign, None, None
        n_words, found = 0, []
        for token in _pipeline()(encodable(text)):
            if not any(map(str.isalnum, token.text)):
                continue
            n_words += 1
            word = token.text.lower().replace("’", "'")
            value = self._norms.values.get(word, self._norms.values.get(token.lemma_.lower()))
            if value is not None:
                found.append(value)
        if not n_words:
            return "no_words", None, None
        is_enough = len(found) >= _MIN_RATED
        mean = math.fsum(found) / len(found) if is_enough else None
        return "too_short", mean, len(found) / n_words


@functools.cache
def _pipeline() -> Any:
    return load_pipeline(_PARTS)

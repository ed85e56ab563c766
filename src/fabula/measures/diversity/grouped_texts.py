"""The texts of groups cut to one length: which are long enough, and what remains of each."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fabula.errors import InputError
from fabula.measures.diversity.equal_samples import Pool, plan_pool
from fabula.measures.diversity.shared_ngrams import SHARED, WordTable
from fabula.text import TextSettings, TextWords
from fabula.types import Document

_MOST_FIT = 0.9
"""The share of each group's texts that are long enough, if no length is requested."""
_MIN_WORDS = 10


def groups_by(documents: Sequence[Document], field: str) -> list[str]:
    """The group of each text; `(no FIELD)` for texts that lack a field others have."""
    values = [document.fields.get(field) for document in documents]
    if all(value is None for value in values):
        there = [k for k, value in documents[0].fields.items() if value is not None]
        raise InputError(
            f"no text has the field {field!r} to group by; the fields of the first text are "
            f"{', '.join(there) or 'none'}"
        )
    return [f"(no {field})" if value is None else str(value) for value in values]


def prompt_of(document: Document, field: str) -> str:
    value = document.fields.get(field)
    if value is None:
        raise InputError(
            f"{document.id}: no field {field!r}; set `prompt` to a field of every text that "
            "contains its prompt or the prompt's id"
        )
    return str(value)


@dataclass(frozen=True, slots=True)
class GroupedTexts:
    """Documents with their group, their prompt and their words."""

    documents: Sequence[Document]
    groups: Sequence[str]
    prompts: Sequence[str] | None
    located: Sequence[TextWords]

    def names(self) -> list[str]:
        return list(dict.fromkeys(self.groups))

    def table(self, settings: TextSettings) -> WordTable:
        words = [one.words for one in self.located]
        if self.prompts is None:
            return WordTable.of(words)
        numbers = {prompt: k for k, prompt in enumerate(dict.fromkeys(self.prompts))}
        return WordTable.of(
            words,
            [settings.words(prompt) for prompt in numbers],
            [numbers[prompt] for prompt in self.prompts],
        )

    def signature_parts(self, settings: TextSettings) -> dict[str, str]:
        """How words count, and whether those of prompts do: an id has too few to be echoed."""
        parts = settings.signature_parts()
        if self.prompts is None:
            return parts
        has_words = any(len(settings.words(prompt)) >= SHARED.start for prompt in set(self.prompts))
        return parts | {"echo": "left-out" if has_words else "kept"}

    def n_short(self, name: str, n_words: int) -> int:
        """Texts of a group with fewer words."""
        return sum(len(one.words) < n_words for one in self._words_of(name))

    def n_identical(self, name: str) -> int:
        """Texts of a group with exactly the same words, in order, as another of the group."""
        texts = (
            " ".join(one.words).encode(errors="surrogatepass")
            for one in self._words_of(name)
            if one.words
        )
        times = Counter(hashlib.blake2b(text, digest_size=12).digest() for text in texts)
        return sum(n for n in times.values() if n > 1)

    def _words_of(self, name: str) -> Iterator[TextWords]:
        return (one for group, one in zip(self.groups, self.located, strict=True) if group == name)

    def taken(self, kept: Sequence[int]) -> GroupedTexts:
        return GroupedTexts(
            [self.documents[k] for k in kept],
            [self.groups[k] for k in kept],
            None if self.prompts is None else [self.prompts[k] for k in kept],
            [self.located[k] for k in kept],
        )


def common_length(texts: GroupedTexts) -> int:
    """The length that nine tenths of the texts of every group reach, in words."""
    lengths: dict[str, list[int]] = {}
    for group, one in zip(texts.groups, texts.located, strict=True):
        lengths.setdefault(group, []).append(len(one.words))
    found = {}
    for group, some in lengths.items():
        some.sort(reverse=True)
        found[group] = some[math.ceil(_MOST_FIT * len(some)) - 1]
    shortest = min(found, key=lambda group: found[group])
    if found[shortest] < _MIN_WORDS:
        raise InputError(
            f"{shortest}: more than a tenth of its texts have fewer than {_MIN_WORDS} words; set "
            "the number of words that texts are cut to with `n_words`, or leave out the short "
            "texts"
        )
    return found[shortest]


@dataclass(frozen=True, slots=True)
class CutTexts:
    """The texts that are long enough, cut to one length, in random order."""

    texts: GroupedTexts
    pool: Pool
    names: tuple[str, ...]
    """Of the groups of the pool."""
    n_words: int

    def strings(self) -> list[str]:
        """What remains of each text."""
        return [
            document.text[int(words.starts[0]) : int(words.ends[-1])]
            for document, words in zip(self.texts.documents, self.texts.located, strict=True)
        ]


def cut_texts(texts: GroupedTexts, n_words: int, seed: int, n_texts: int | None = None) -> CutTexts:
    """n_texts: how many texts are drawn from each group; without it as many as the smallest has.

    Raises `InputError` if no group has two texts that are long enough, or one has fewer than
    `n_texts`.
    """
    long_enough = [k for k, one in enumerate(texts.located) if len(one.words) >= n_words]
    n_of: dict[str, int] = dict.fromkeys(texts.names(), 0)
    for k in long_enough:
        n_of[texts.groups[k]] += 1
    names = tuple(name for name, n in n_of.items() if n > 1)
    if not names:
        raise InputError(
            f"no group has two texts of at least {n_words} words; choose another field for `by`, "
            "or fewer words with `n_words`"
        )
    kept = [k for k in long_enough if texts.groups[k] in names]
    # gzip looks back only a few texts, so they are in random order.
    order = np.random.default_rng([seed, 3]).permutation(len(kept))
    chosen = texts.taken([kept[k] for k in order])
    numbers = {name: k for k, name in enumerate(names)}
    labels = np.array([numbers[group] for group in chosen.groups], np.int64)
    located = [one.part(0, n_words) for one in chosen.located]
    pool = plan_pool(labels, chosen.prompts, n_texts)
    available = {name: pool.n_available(k) for k, name in enumerate(names)}
    fewest = min(available, key=lambda name: available[name])
    if n_texts is not None and available[fewest] < n_texts:
        what = "texts" if pool.design == "texts" else "texts that the prompts allow,"
        raise InputError(
            f"`n_texts` {n_texts:,}: {fewest} has only {available[fewest]:,} {what} of {n_words:,} "
            f"words or more; choose fewer, or leave that group out"
        )
    return CutTexts(replace(chosen, located=located), pool, names, n_words)

"""The parts of a parsed text that metrics need: taken from spaCy once, then shared by all.

A word is a token of the pipeline that contains a letter or a digit, so "don't" is two words, as in
the paper. Phrases and categories come from the same parse.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabula.core.cached_results import Kept, Memo
from fabula.text.pipeline import GRAMMAR, load_pipeline, pipeline_name, pipeline_parts
from fabula.text.sentences import encodable
from fabula.text.words import word_set

CONTENT = frozenset(("ADJ", "ADV", "INTJ", "NOUN", "PRON", "PROPN", "VERB"))
"""Categories of content words (section 4.2 includes pronouns)."""
_BATCH = 256
_REMEMBERED_CHARS = 1_200_000
"""Two drafts of a novel of 100,000 words, which take 100 MB when parsed."""
# Dependents of a verb outside its phrase: its subject, and coordinated phrases.
_OUTER = word_set("nsubj nsubjpass csubj csubjpass expl mark cc conj punct parataxis intj preconj")
_HELPS = frozenset(("aux", "auxpass"))


@dataclass(frozen=True, slots=True)
class Token:
    """A token other than white space; `head` is the index of its governor, or its own."""

    text: str
    pos: str
    tag: str
    dep: str
    head: int
    start: int
    """Where it begins in the text, in characters."""
    is_word: bool
    lower: str
    """Lower-cased, with straight apostrophes: typography is not a matter of style."""

    @property
    def place(self) -> tuple[int, int]:
        """Its position in the text: half-open, in characters."""
        return self.start, self.start + len(self.text)


class Phrase(NamedTuple):
    """Tokens `start` to `end`, half-open; `root` is the one that governs the others."""

    start: int
    end: int
    root: int


@dataclass(frozen=True)
class Parsed:
    """A text as all metrics see it."""

    text: str
    tokens: tuple[Token, ...]
    sentence_starts: tuple[int, ...]
    """Indices of the tokens that begin a sentence."""
    noun_phrases: tuple[Phrase, ...]
    """Base noun phrases, pronouns included; none contains another."""
    verb_phrase_words: tuple[int, ...]
    """The number of words in each verb phrase."""

    @functools.cached_property
    def words(self) -> tuple[str, ...]:
        """Lower-cased."""
        return tuple(token.lower for token in self.tokens if token.is_word)

    @functools.cached_property
    def content(self) -> tuple[str, ...]:
        """The content words, lower-cased."""
        return tuple(token.lower for token in self.tokens if token.pos in CONTENT)

    @functools.cached_property
    def noun_phrase_words(self) -> list[int]:
        """The number of words in each noun phrase."""
        phrases = (self.tokens[phrase.start : phrase.end] for phrase in self.noun_phrases)
        return [sum(token.is_word for token in phrase) for phrase in phrases]

    @functools.cached_property
    def checked(self) -> str:
        """What determines the errors that a checker finds: the places of its names and of its verbs
        in the past tense, as JSON on a line, and its characters."""
        names = [t.place for t in self.tokens if t.pos == "PROPN" and t.text[:1].isupper()]
        past = [t.place for t in self.tokens if t.tag in ("VBD", "VBN")]
        return f"{json.dumps([names, past])}\n{self.text}"

    def categories(self) -> list[list[str]]:
        """The part of speech of each token, punctuation included, by sentence."""
        pos = [token.pos for token in self.tokens]
        return [pos[a:b] for a, b in itertools.pairwise([*self.sentence_starts, len(pos)])]


class Parser:
    """The English pipeline, as the metrics use it. Raises `ModelError` if it is missing."""

    def __init__(self) -> None:
        self._nlp = load_pipeline(GRAMMAR)
        self.signature_parts = pipeline_parts(self._nlp)
        self._row = functools.lru_cache(1 << 18)(self._find_row)
        name = f"parse 1|{pipeline_name(self._nlp)}"
        self._known = Memo(_REMEMBERED_CHARS, Kept(name, _to_json, _from_json))

    def parse(self, texts: Iterable[str]) -> Iterator[Parsed]:
        """Parse each text, in order; texts that were parsed before are cached, also on disk."""
        return self._known.each(
            map(encodable, texts),
            lambda new: map(_parsed, self._nlp.pipe(new, batch_size=_BATCH)),
            _BATCH,
        )

    def content_vectors(self, parsed: Parsed) -> tuple[int, NDArray[np.float64]]:
        """How many content words of a text have a vector, and the sum of their unit vectors:
        float64, shape (n_dimensions,)."""
        content = (token.text for token in parsed.tokens if token.pos in CONTENT)
        known = [row for word in content if (row := self._row(word)) >= 0]
        return len(known), self._units[0][known].sum(axis=0, dtype=np.float64)

    @functools.cached_property
    def _units(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """All vectors by their lengths, and which of them have one."""
        vectors = self._nlp.vocab.vectors.data
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(norms == 0, 1, norms), norms[:, 0] > 0

    def _find_row(self, word: str) -> int:
        """The row of a word's vector; -1 if it has none."""
        vocab = self._nlp.vocab
        row = int(vocab.vectors.find(key=vocab.strings.add(word)))
        return row if row >= 0 and self._units[1][row] else -1


def _parsed(doc: Any) -> Parsed:
    # The tokens other than white space, and the index of each spaCy token among them.
    kept = [token for token in doc if not token.is_space]
    places = [-1] * len(doc)
    for k, token in enumerate(kept):
        places[token.i] = k
    tokens = tuple(
        Token(t.text, t.pos_, t.tag_, t.dep_, head if head >= 0 else k, t.idx, *_form(t.text))
        for k, t in enumerate(kept)
        for head in [places[t.head.i]]
    )
    starts = tuple(place for sentence in doc.sents for place in _within(places, sentence)[:1])
    phrases = tuple(
        Phrase(inside[0], inside[-1] + 1, places[chunk.root.i])
        for chunk in doc.noun_chunks
        if (inside := _within(places, chunk)) and places[chunk.root.i] >= 0
    )
    return Parsed(doc.text, tokens, starts, phrases, tuple(_verb_phrase_words(tokens)))


def _within(places: Sequence[int], span: Any) -> list[int]:
    """The indices of the tokens of one of spaCy's spans."""
    return [place for place in places[span.start : span.end] if place >= 0]


def _from_json(text: str, row: Any) -> Parsed:
    columns, starts, nouns, verbs = row
    tokens = tuple(
        Token(word, pos, tag, dep, head, start, *_form(word))
        for start, n, pos, tag, dep, head in zip(*columns, strict=True)
        for word in [text[start : start + n]]
    )
    phrases = tuple(Phrase(*phrase) for phrase in nouns)
    return Parsed(text, tokens, tuple(starts), phrases, tuple(verbs))


def count_word_tokens(texts: Iterable[str]) -> Iterator[int]:
    """The number of words in each text, without parsing it."""
    for doc in load_pipeline(()).tokenizer.pipe(map(encodable, texts)):
        yield sum(_is_word(token.text) for token in doc)


def _is_word(text: str) -> bool:
    return any(map(str.isalnum, text))


@functools.lru_cache(1 << 16)
def _form(text: str) -> tuple[bool, str]:
    return _is_word(text), text.lower().replace("’", "'")


def _to_json(parsed: Parsed) -> list[Any]:
    """What the pipeline found: columns of tokens, and where sentences and phrases are."""
    rows = [(t.start, len(t.text), t.pos, t.tag, t.dep, t.head) for t in parsed.tokens]
    columns = list(zip(*rows, strict=True)) or [()] * 6
    return [columns, parsed.sentence_starts, parsed.noun_phrases, parsed.verb_phrase_words]


def _verb_phrase_words(tokens: Sequence[Token]) -> Iterator[int]:
    """The number of words in the phrase of each main verb: it and its dependents, less its subject.

    A main verb is a VERB, or an AUX that is not an auxiliary of another ("she *was* tall").
    """
    n_words = [int(token.is_word) for token in tokens]
    depths = [-1] * len(tokens)
    for k in range(len(tokens)):
        path: list[int] = []
        while depths[k] < 0 and tokens[k].head != k and len(path) <= len(tokens):
            path.append(k)
            k = tokens[k].head
        depths[k] = max(depths[k], 0)
        for depth, step in enumerate(reversed(path), depths[k] + 1):
            depths[step] = depth
    # Leaves first, so that each comes before its governor.
    for k in sorted(range(len(tokens)), key=lambda k: -depths[k]):
        if tokens[k].head != k:
            n_words[tokens[k].head] += n_words[k]
    outside = [0] * len(tokens)
    for k, token in enumerate(tokens):
        if token.dep in _OUTER and token.head != k:
            outside[token.head] += n_words[k]
    for k, token in enumerate(tokens):
        if token.pos in ("VERB", "AUX") and token.dep not in _HELPS and token.is_word:
            yield n_words[k] - outside[k]

"""Feedback in columns for the measures: what it is about, its trigrams, its sentences."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.models.encoder import Encoder
from fabula.tasks.feedback.feedback_prompts import says_perfect
from fabula.text import TextSettings
from fabula.text.feedback_pieces import feedback_id
from fabula.text.refusals import is_refusal
from fabula.text.sentences import sentences_of

Tokens = Literal["words", "authors"]
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CLITICS = re.compile(r"(?<=\w)(n't|'(?:s|m|d|ll|re|ve))(?!\w)", re.IGNORECASE)
_PIECES = re.compile(
    r"``|''|\.{2,}|--+"
    r"|\d+(?:[.,:]\d+)*"
    r"|n't(?!\w)|'(?:s|m|d|ll|re|ve)(?!\w)"
    r"|(?:[^\W_]\.){2,}"
    r"|\w+(?:[-&/]\w+)*"
    r"|\S",
    re.IGNORECASE,
)
_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'"})


def tokeniser(tokens: Tokens) -> Callable[[str], list[str]]:
    """Return the function that splits a text into lower-case words."""
    if tokens == "words":
        return TextSettings().words
    return lambda text: [
        token.lower() for token in treebank_tokens(text) if token not in _PUNCTUATION
    ]


def treebank_tokens(text: str) -> list[str]:
    """Penn Treebank tokens: clitics and punctuation split off, double quotation marks as `` and ''.

    Curly quotes count as straight ones.
    """
    plain = text.translate(_QUOTES)
    plain = re.sub(r'(^|[\s(\[{<])"', r"\1 `` ", plain)
    plain = plain.replace('"', " '' ")
    return _PIECES.findall(_CLITICS.sub(r" \1", plain))


DIMENSIONS = ("model", "prompt", "shots", "method")


@dataclass(frozen=True, slots=True)
class Trigrams:
    """The distinct trigrams of each answer: int64, shape (n,)."""

    kinds: NDArray[np.int64]
    """Ids of the trigrams."""
    owners: NDArray[np.int64]
    """The answer that each belongs to."""
    counts: NDArray[np.int64]
    """Its count in that answer."""

    @classmethod
    def of(cls, kinds: NDArray[np.int64], owners: NDArray[np.int64]) -> Trigrams:
        """From all trigrams of all answers, concatenated."""
        n_kinds = int(kinds.max(initial=0)) + 1
        once, counts = np.unique(owners * n_kinds + kinds, return_counts=True)
        return cls(once % n_kinds, once // n_kinds, counts)


@dataclass(frozen=True, slots=True)
class Answers:
    """All answers in columns. Arrays have shape (n_answers,) unless stated otherwise."""

    ids: list[str]
    """The ids that raters use."""
    labels: dict[str, list[str]]
    """By dimension, each answer's value."""
    stories: NDArray[np.int64]
    """Numbers of the stories they are about, the same for all versions of a story."""
    lengths: NDArray[np.float64]
    is_perfect: NDArray[np.bool_]
    is_original: NDArray[np.bool_]
    overlaps: NDArray[np.float64]
    """NaN if an answer has no trigrams."""
    bertscores: NDArray[np.float64]
    """NaN if it was not measured, or one of the two texts has no tokens."""
    one_sentence: NDArray[np.float64]
    """1 or 0; NaN if one sentence was not asked for."""
    trigrams: Trigrams
    n_words: NDArray[np.float64]
    """As counted for trigrams."""
    n_missing: dict[str, int]
    """Missing answers, by reason."""
    signature: str

    def __len__(self) -> int:
        return len(self.lengths)


def read_answers(
    rows: Sequence[Mapping[str, Any]],
    *,
    one_sentence: frozenset[str] = frozenset(),
    count_sentences: Callable[[list[str]], list[int]] | None = None,
    pipeline: str = "",
    similarity: Callable[[str, str], float] | None = None,
    encoder: str = "",
    keep_refusals: bool = False,
    tokens: Tokens = "words",
    meter: Callable[[int], None] = lambda _: None,
) -> Answers:
    """Read rows of `feedback elicit` into columns.

    `one_sentence` names the prompts that ask for a single sentence; `count_sentences` counts
    sentences by the language `pipeline` of this name. A model's refusal is missing, unless refusals
    are kept, as they are in published figures. `similarity` is BERTScore of feedback and story, by
    the encoder of this name, and `tokens` is what trigrams consist of. Raises `InputError` if a row
    lacks a field.
    """
    checked = list(map(checked_row, rows, count(1)))
    reasons = [why_missing(row, keep_refusals=keep_refusals) for row in checked]
    given = [row for row, reason in zip(checked, reasons, strict=True) if reason is None]
    missing = Counter(reason for reason in reasons if reason is not None)
    if not given:
        raise InputError("no answers to measure")
    texts = [str(row["feedback"]) for row in given]
    known_words: dict[str, int] = {}
    words_of = tokeniser(tokens)
    parts: list[NDArray[np.int64]] = []
    overlaps, nearness = [], []
    for row, text in zip(given, texts, strict=True):
        own, story = (_trigrams(words_of(part), known_words) for part in (text, str(row["story"])))
        held = set(story)
        parts.append(np.array(own, np.int64).reshape(-1, 3))
        overlaps.append(sum(gram in held for gram in own) / len(own) if own else np.nan)
        nearness.append(np.nan if similarity is None else similarity(text, str(row["story"])))
        meter(1)
    single = np.full(len(given), np.nan)
    asked = [k for k, row in enumerate(given) if row["prompt"] in one_sentence]
    if count_sentences is not None and asked:
        numbers = count_sentences([texts[k] for k in asked])
        single[asked] = [float(n == 1) for n in numbers]
    stories = list(dict.fromkeys(row["story_id"] for row in given))
    numbered = {story: k for k, story in enumerate(stories)}
    return Answers(
        ids=[feedback_id(row) for row in given],
        labels={name: [str(row[name]) for row in given] for name in DIMENSIONS},
        stories=np.array([numbered[row["story_id"]] for row in given], np.int64),
        lengths=np.array([len(text) for text in texts], np.float64),
        is_perfect=np.array([says_perfect(text) for text in texts], np.bool_),
        is_original=np.array([row["method"] == "original" for row in given], np.bool_),
        overlaps=np.array(overlaps, np.float64),
        bertscores=np.array(nearness, np.float64),
        one_sentence=single,
        trigrams=Trigrams.of(
            _numbered(np.concatenate(parts), len(known_words)),
            np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
        ),
        n_words=np.array([len(words_of(text)) for text in texts], np.float64),
        n_missing=dict(missing),
        signature="+".join(dict.fromkeys(str(row.get("signature", "")) for row in given))
        + ("" if keep_refusals else "|refusals:missing")
        + ("" if tokens == "words" else f"|tokens:{tokens}@1")
        + (f"|sentences:{pipeline}" if pipeline else "")
        + (f"|bertscore:{encoder}" if encoder else ""),
    )


def why_missing(row: Mapping[str, Any], *, keep_refusals: bool = False) -> str | None:
    """Why a row is not feedback; None if it is. Other tools may write refusals as feedback."""
    if row["feedback"] is None:
        return str(row.get("missing_reason"))
    return "refused" if not keep_refusals and is_refusal(str(row["feedback"])) else None


def checked_row(row: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    """The row. Raises `InputError` if it lacks a field of `feedback elicit`."""
    lacking = {"id", "story_id", "feedback", "story", *DIMENSIONS} - row.keys()
    if lacking:
        raise InputError(f"answer {number}: no field {', '.join(sorted(lacking))}")
    return row


def _trigrams(words: Sequence[str], known: dict[str, int]) -> list[tuple[int, int, int]]:
    """Each run of three words, as word numbers in `known`, which is extended."""
    ids = [known.setdefault(word, len(known)) for word in words]
    return list(zip(ids, ids[1:], ids[2:], strict=False))


def _numbered(grams: NDArray[np.int64], n_words: int) -> NDArray[np.int64]:
    """Ids for trigrams of word numbers of shape (n, 3): int64 (n,)."""
    # Two at a time: the cube of a large vocabulary would overflow 64 bits.
    pairs = np.unique(grams[:, 0] * n_words + grams[:, 1], return_inverse=True)[1]
    found: NDArray[np.int64] = np.unique(pairs * n_words + grams[:, 2], return_inverse=True)[1]
    return found


def sentence_counter(nlp: Any) -> Callable[[list[str]], list[int]]:
    """A function that counts the sentences of texts; list markers at the beginning do not count."""

    def count_all(texts: list[str]) -> list[int]:
        lines = (" ".join(text.lstrip("-*• ").split()) for text in texts)
        return list(map(len, sentences_of(lines, nlp)))

    return count_all


def bertscore(encoder: Encoder) -> Callable[[str, str], float]:
    """F1 of two texts' tokens, each matched with the most similar one (Zhang et al. 2020).

    Without idf weights and without rescaling; NaN if a text has no tokens.
    """
    vectors = functools.lru_cache(maxsize=4096)(encoder.token_vectors)

    def score(text: str, other: str) -> float:
        a, b = vectors(text), vectors(other)
        if not len(a) or not len(b):
            return math.nan
        cosines = a @ b.T
        precision, recall = float(cosines.max(axis=1).mean()), float(cosines.max(axis=0).mean())
        # Cosines may be negative, where a harmonic mean is undefined.
        return 2 * precision * recall / (precision + recall) if min(precision, recall) > 0 else 0.0

    return score

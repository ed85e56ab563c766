"""Fifteen metrics of a continuation, alone and in its story, and the tools that determine them.

Roemmele, Gordon and Swanson 2017, section 4. Details that the paper leaves open are decided as
follows, and are part of the signature:

- Counts and lengths of phrases are divided by the words of the continuation, as in section 4.1.
- A verb phrase is a main verb with everything it governs, except its subject and coordinated
  phrases; phrases nest.
- Because the type-token ratio falls with length, two measures that do not are added: MATTR
  (Covington and McFall 2010) and MTLD (McCarthy and Jarvis 2010).
- A metric with nothing to measure (the length of noun phrases where there are none) is missing,
  with its reason; the Jaccard similarity with an empty set is 0.
- Trigrams, of words and of categories, do not cross sentences or continuations.
- A continuation that is not English (`text/sentences.py`) is not measured, nor is one whose context
  is not English.
"""

from __future__ import annotations

import functools
import importlib.metadata
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fabula.core import __version__
from fabula.core.errors import InputError, ModelError
from fabula.core.packages import needing
from fabula.core.types import Signature
from fabula.linguistic.coreference import RULES, in_context
from fabula.text.chapters import CHAPTER_RULES
from fabula.text.grammar import Checker, faults_each, open_checker, share_correct
from fabula.text.parsing import CONTENT, Parsed, Parser
from fabula.text.pipeline import SENTENCES, load_pipeline
from fabula.text.reading import Reading
from fabula.text.sentences import language_gate, not_english
from fabula.text.speech import READER
from fabula.text.words import TOKENISER

if TYPE_CHECKING:
    from fabula.models.encoder import Encoder


# A clitic counts as the word it stands for; the list barely contains clitics themselves.
_CLITICS = {
    "n't": "not", "'s": "is", "'ll": "will", "'re": "are", "'ve": "have", "'m": "am", "'d": "would",
    "ca": "can", "wo": "will", "sha": "shall", "'em": "them", "'t": "it",
}  # fmt: skip

FLOOR = 1e-9
"""The frequency of a word missing from the list: the list's own smallest step."""
MATTR_WINDOW = 50
UNKNOWN_WORD = "<unknown>"
"""What generators write for an unknown word; not a word of any vocabulary."""

MTLD_THRESHOLD = 0.72


class Frequencies:
    """Word frequencies of English by wordfreq, whose sources include Reddit.

    Raises `ModelError` if the package is not installed.
    """

    def __init__(self) -> None:
        missing = "word frequencies need wordfreq; run: pip install 'fabula[nlp]'"
        wordfreq = needing("wordfreq", missing, ModelError)
        self.name = f"wordfreq-{importlib.metadata.version('wordfreq')}"
        self._log: Callable[[str], float] = functools.lru_cache(1 << 18)(
            lambda word: math.log(max(wordfreq.word_frequency(word, "en", minimum=FLOOR), FLOOR))
        )

    def log(self, word: str) -> float:
        """The natural logarithm of a word's share of all words; a clitic is its full word."""
        return self._log(_CLITICS.get(word, word))

    def zipf(self, word: str) -> float:
        """The logarithm to base 10 of how often a word occurs in a thousand million words."""
        return 9 + self.log(word) / math.log(10)

    def inverse(self, words: Sequence[str]) -> float:
        """The mean of the negative logarithms: higher is rarer. `words` is not empty."""
        return -math.fsum(map(self.log, words)) / len(words)


frequencies = functools.cache(Frequencies)
"""Those of this process, with what they looked up."""


def trigrams(tokens: Sequence[str]) -> list[tuple[str, str, str]]:
    """All runs of three consecutive items."""
    return list(zip(tokens, tokens[1:], tokens[2:], strict=False))


def type_token_ratio(tokens: Iterable[object]) -> float | None:
    """Distinct tokens as a share of all; None if there are none."""
    counts = Counter(tokens)
    return len(counts) / counts.total() if counts else None


def read_vocabulary(path: Path) -> frozenset[str]:
    """Words to count: one per line, or a `vocabulary.tsv` of `fabula continuation train`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a list of words ({error})") from error
    words = {line.partition("\t")[0].strip().lower() for line in lines} - {"", UNKNOWN_WORD}
    if not words:
        raise InputError(f"{path}: contains no words; write one per line")
    return frozenset(words)


def mattr(words: Sequence[str], window: int = MATTR_WINDOW) -> float | None:
    """The mean type-token ratio of every window of this many words; None for shorter texts."""
    n_windows = len(words) - window + 1
    if n_windows < 1:
        return None
    total, last = 0, dict[str, int]()
    for k, word in enumerate(words):
        # The windows in which this is the first occurrence of its word.
        first = max(k - window, last.get(word, -1)) + 1
        total += max(0, min(k + 1, n_windows) - first)
        last[word] = k
    return total / window / n_windows


def mtld(words: Sequence[str], threshold: float = MTLD_THRESHOLD) -> float | None:
    """The mean length of runs until their type-token ratio falls to the threshold, both directions.

    None if no word is repeated and the ratio therefore never falls.
    """
    lengths = []
    for one_way in (words, words[::-1]):
        n_runs, types, n = 0.0, set[str](), 0
        for word in one_way:
            types.add(word)
            n += 1
            if len(types) / n <= threshold:
                n_runs += 1
                types, n = set(), 0
        if n:
            n_runs += (1 - len(types) / n) / (1 - threshold)
        if n_runs:
            lengths.append(len(words) / n_runs)
    return math.fsum(lengths) / len(lengths) if lengths else None


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a continuation, numbered as in the paper's Table 2."""

    id: str
    number: int
    title: str
    needs_context: bool = False
    is_of_all: bool = False
    """One number for the whole output of a system, not a mean over its continuations."""
    n_digits: int = 3


METRICS = (
    Metric("sentence_length", 1, "Sentence length", n_digits=2),
    Metric("grammaticality", 2, "Grammaticality"),
    Metric("type_token_ratio", 3, "Type-token ratio", is_of_all=True),
    Metric("unique_trigram_ratio", 4, "Unique trigram ratio", is_of_all=True),
    Metric("inverse_word_frequency", 5, "Inverse word frequency"),
    Metric("noun_phrases", 6, "Noun phrases"),
    Metric("noun_phrase_length", 7, "Noun phrase length"),
    Metric("verb_phrases", 8, "Verb phrases"),
    Metric("verb_phrase_length", 9, "Verb phrase length"),
    Metric("jaccard_similarity", 10, "Jaccard similarity", needs_context=True),
    Metric("vector_similarity", 11, "Word vector similarity", needs_context=True),
    Metric("sentence_similarity", 12, "Sentence encoding similarity", needs_context=True),
    Metric("pos_similarity", 13, "Word POS similarity", needs_context=True),
    Metric("pos_trigram_similarity", 14, "Trigram POS similarity", needs_context=True),
    Metric("coreference_rate", 15, "Entity coreference rate", needs_context=True),
)


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The tools that measure; the same choice gives the same numbers."""

    grammar: str = "harper"
    """`harper`, `languagetool`, `languagetool@URL` or `none`."""
    encoder: Path | None = None
    """A folder with an exported sentence encoder; the packaged one by default."""


class TextTools:
    """The tools that need a text alone. Raises `ModelError` if one is not installed."""

    def __init__(self, grammar: str = "harper") -> None:
        self.parser = Parser()
        self.frequencies = frequencies()
        self._nlp = load_pipeline(SENTENCES)
        self.checker: Checker | None = open_checker(grammar)
        self._last: Reading | None = None

    def read(self, text: str) -> Reading:
        """A text, with its sentences when they are asked for; the last one is kept."""
        if self._last is None or self._last.text != text:
            self._last = Reading(text, self._nlp, self.parser, self.checker)
        return self._last

    def _parts(self) -> dict[str, str]:
        return {
            "lang": language_gate(),
            **self.parser.signature_parts,
            "word": "token-with-letter-or-digit",
            "grammar": f"{self.checker.name},names-capital-by-pos" if self.checker else "none",
            "freq": f"{self.frequencies.name},ln,clitics-in-full,floor {FLOOR:g}",
            "np": "base",
            "vp": "verb-and-governed-less-subject",
            "empty": "missing",
        }

    @functools.cached_property
    def profile_signature(self) -> Signature:
        """Everything that determines the numbers of a text's profile."""
        return Signature.of(
            "profile",
            **self._parts(),
            dialogue=READER,
            heads=CHAPTER_RULES,
            tok=TOKENISER,
            v=__version__,
        )


class Tools(TextTools):
    """The tools that need a continuation and its context."""

    def __init__(self, choice: ToolChoice) -> None:
        from fabula.models.encoder import Encoder

        super().__init__(choice.grammar)
        self.encoder = Encoder(choice.encoder, n_threads=1)

    @functools.cached_property
    def signature(self) -> Signature:
        """Everything that determines the numbers of a continuation."""
        return Signature.of(
            "linguistic",
            **self._parts(),
            content="+".join(sorted(CONTENT)),
            jaccard="types,empty-and-some-0",
            vec="pipe,mean-of-pairs",
            enc=self.encoder.name,
            style="8-categories,absent-in-both-1",
            trigrams="within-sentences",
            coref=RULES,
            v=__version__,
        )


open_tools = functools.cache(Tools)
"""The tools of this process, loaded once."""


def jaccard(a: Iterable[Hashable], b: Iterable[Hashable]) -> float | None:
    """The Jaccard similarity of two sets; None if both are empty.

    0 if only one is empty: there is something, and nothing of it is shared.
    """
    first, second = frozenset(a), frozenset(b)
    union = len(first | second)
    return len(first & second) / union if union else None


def encode_texts(texts: Sequence[str], encoder: Encoder) -> list[NDArray[np.float64]]:
    """The vector of each text, float64, shape (n_dimensions,).

    For a text longer than the encoder reads, the mean of the vectors of its parts.
    """
    parts = [encoder.parts(text) for text in texts]
    vectors = encoder.encode([part for windows in parts for part in windows])
    ends = np.cumsum([len(windows) for windows in parts])
    return [
        vectors[end - len(windows) : end].mean(axis=0, dtype=np.float64)
        for windows, end in zip(parts, ends, strict=True)
    ]


CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "adverb": ("ADV",),
    "adjective": ("ADJ",),
    "conjunction": ("CCONJ", "SCONJ"),
    "determiner": ("DET",),
    "noun": ("NOUN",),
    "pronoun": ("PRON",),
    "preposition": ("ADP",),
    "punctuation": ("PUNCT",),
}
"""The eight categories, as universal parts of speech; proper nouns are not included."""


def style_match(a: Counter[str], b: Counter[str]) -> float:
    """The mean over the categories of 1 - |share A - share B| / (share A + share B).

    Takes counts of parts of speech, punctuation included, of texts that have tokens. A category
    absent from both matches fully, as in language style matching (Ireland and Pennebaker 2010),
    which the paper follows.
    """
    total = 0.0
    for parts in CATEGORIES.values():
        share_a = sum(a[part] for part in parts) / a.total()
        share_b = sum(b[part] for part in parts) / b.total()
        both = share_a + share_b
        total += 1 - abs(share_a - share_b) / both if both else 1
    return total / len(CATEGORIES)


def category_trigrams(sentences: Iterable[Sequence[str]]) -> set[tuple[str, str, str]]:
    """Part-of-speech trigrams, punctuation included; none crosses a sentence boundary."""
    return {three for sentence in sentences for three in trigrams(sentence)}


_EACH = tuple(metric.id for metric in METRICS if not metric.is_of_all)


@dataclass(frozen=True, slots=True)
class Scored:
    """A continuation's metrics; `missing` says why a value is None."""

    values: Mapping[str, float | None]
    missing: Mapping[str, str]
    words: tuple[str, ...]
    """Lower-cased; the ratios of a system's whole output are computed from them."""
    sentence_ends: tuple[int, ...]
    """In words."""
    errors: tuple[tuple[int, int], ...] = ()
    """Where errors of grammar and spelling are: half-open, in characters."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A parsed text, and its vector if it contains a word."""

    parsed: Parsed
    n_vectors: int
    """Content words that have a vector."""
    vector_sum: NDArray[np.float64]
    """The sum of their unit vectors."""
    encoding: NDArray[np.float64] | None


def read_texts(tools: Tools, texts: Sequence[str]) -> list[Encoded]:
    """Parse and encode texts in one batch."""
    parsed = list(tools.parser.parse(texts))
    spoken = [k for k, part in enumerate(parsed) if part.words]
    vectors = encode_texts([parsed[k].text for k in spoken], tools.encoder)
    encodings = dict(zip(spoken, vectors, strict=True))
    content = tools.parser.content_vectors
    return [Encoded(part, *content(part), encodings.get(k)) for k, part in enumerate(parsed)]


class Context:
    """What all continuations of a story are compared with: its parsed sentences.

    `foreign` is the reason why nothing can be compared with it, if it is not English.
    """

    def __init__(self, sentences: Sequence[Encoded]) -> None:
        self.sentences = [reading.parsed for reading in sentences]
        self.foreign = not_english(" ".join(part.text for part in self.sentences))
        self.content = frozenset(word for part in self.sentences for word in part.content)
        self.n_vectors = sum(reading.n_vectors for reading in sentences)
        self.vector_sum = np.sum([reading.vector_sum for reading in sentences], axis=0)
        self.categories = _count_categories(self.sentences)
        self.trigrams = category_trigrams(c for part in self.sentences for c in part.categories())
        encodings = [r.encoding for r in sentences if r.encoding is not None]
        self.encoding = np.mean(encodings, axis=0) if encodings else None


def score_continuations(
    tools: Tools, context: Context, texts: Sequence[str | None], readings: Sequence[Encoded]
) -> list[Scored]:
    """Score continuations of one context; None is a text that a system failed to produce."""
    flags = in_context(context.sentences, [reading.parsed for reading in readings])
    scored = []
    for text, reading, is_known in zip(texts, readings, flags, strict=True):
        parsed = reading.parsed
        reason = "no_text" if text is None else not_english(text) if parsed.words else None
        if reason is not None:
            scored.append(Scored(dict.fromkeys(_EACH), dict.fromkeys(_EACH, reason), (), ()))
        elif not parsed.words:
            lacking = [key for key in _EACH if key != "sentence_length"]
            values = {**dict.fromkeys(_EACH), "sentence_length": 0.0}
            scored.append(Scored(values, dict.fromkeys(lacking, "no_words"), (), ()))
        else:
            outcome = {**alone(tools, parsed), **_in_story(context, reading, is_known)}
            missing = {key: outcome[key] for key in _EACH if isinstance(outcome[key], str)}
            n_words = [0, *accumulate(token.is_word for token in parsed.tokens)]
            ends = (*(n_words[start] for start in parsed.sentence_starts[1:]), n_words[-1])
            values = {key: None if key in missing else outcome[key] for key in _EACH}
            scored.append(Scored(values, missing, parsed.words, ends, tuple(outcome["errors"])))
    return scored


def alone(tools: TextTools, parsed: Parsed) -> dict[str, Any]:
    """Metrics 1, 2, and 5 to 9: numbers, or the reason why one is missing; `errors` by place."""
    faults = () if tools.checker is None else next(faults_each(tools.checker, [parsed]))
    errors = [fault.place for fault in faults]
    n_words = len(parsed.words)
    nouns, verbs = parsed.noun_phrase_words, parsed.verb_phrase_words
    grammar: float | str = "not_measured"
    if tools.checker is not None:
        grammar = share_correct([t.place for t in parsed.tokens if t.is_word], errors)
    return {
        "errors": errors,
        "sentence_length": float(n_words),
        "grammaticality": grammar,
        "inverse_word_frequency": tools.frequencies.inverse(parsed.words),
        "noun_phrases": len(nouns) / n_words,
        "noun_phrase_length": sum(nouns) / len(nouns) / n_words if nouns else "no_noun_phrase",
        "verb_phrases": len(verbs) / n_words,
        "verb_phrase_length": sum(verbs) / len(verbs) / n_words if verbs else "no_verb_phrase",
    }


def _in_story(context: Context, reading: Encoded, is_known: Sequence[bool]) -> dict[str, Any]:
    """Metrics 10 to 15: numbers, or the reason why one is missing."""
    ids = [metric.id for metric in METRICS if metric.needs_context]
    if context.foreign is not None:
        return dict.fromkeys(ids, f"the context is {context.foreign}")
    if context.encoding is None or reading.encoding is None:
        return dict.fromkeys(ids, "no_context")
    n_pairs = reading.n_vectors * context.n_vectors
    parsed, a, b = reading.parsed, reading.encoding, context.encoding
    # The cosine is 0 if a vector has zero length.
    lengths = max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-12)
    return {
        "jaccard_similarity": _or(jaccard(parsed.content, context.content), "no_content_word"),
        # The mean cosine over all pairs of vectors, which are of length 1.
        "vector_similarity": float(reading.vector_sum @ context.vector_sum) / n_pairs
        if n_pairs
        else "no_vector",
        "sentence_similarity": float(a @ b) / lengths,
        "pos_similarity": style_match(_count_categories([parsed]), context.categories),
        "pos_trigram_similarity": _or(
            jaccard(category_trigrams(parsed.categories()), context.trigrams), "no_trigram"
        ),
        "coreference_rate": sum(is_known) / len(is_known) if is_known else "no_noun_phrase",
    }


def _or(value: float | None, reason: str) -> float | str:
    return reason if value is None else value


def _count_categories(sentences: Iterable[Parsed]) -> Counter[str]:
    return Counter(token.pos for part in sentences for token in part.tokens)

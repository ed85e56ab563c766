"""The linguistic profile of a whole text, for its writer.

The story-independent metrics of Roemmele, Gordon and Swanson 2017 (section 4.1) with each sentence
as an item; the length-independent measures of lexical diversity; and what a writer looks for: the
rhythm of sentences, the share of quoted speech, rare words, and repeated phrases.
"""

from __future__ import annotations

import functools
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from fabula.measures.linguistic.grammar import parsed_and_checked
from fabula.measures.linguistic.lexis import (
    MATTR_WINDOW,
    MTLD_THRESHOLD,
    mattr,
    mtld,
    trigrams,
    type_token_ratio,
)
from fabula.measures.linguistic.metrics import ProfileMetric, TextTools, alone_checked
from fabula.measures.linguistic.parsing import Parsed
from fabula.text import check_documents
from fabula.text.chapters import without_headings
from fabula.text.language import not_english
from fabula.text.pipeline import sentence_pipeline
from fabula.text.sentences import encodable, paragraphs_of, sentence_spans
from fabula.text.speech import flags_within, speech_spans
from fabula.types import Document, Measurement, Span
from fabula.workers import InOrder, in_order

_MIN_REPEATED = 3
"""Minimum words of a phrase that is worth showing."""
_MAX_REPEATED_WORDS = 12
_N_SHOWN = 12


PROFILE_METRICS: tuple[ProfileMetric, ...] = (
    ProfileMetric(
        "n_words", "Word tokens", "words as the pipeline splits them: don't is two", ",.0f"
    ),
    ProfileMetric("n_sentences", "Sentences", "as the pipeline parts them", ",.0f"),
    ProfileMetric("sentence_length", "Sentence length", "words a sentence, the mean", ".1f"),
    ProfileMetric(
        "sentence_length_sd",
        "Spread of sentence length",
        "standard deviation in words; low is monotonous",
        ".1f",
    ),
    ProfileMetric("dialogue_share", "Dialogue", "words in quoted speech, as a share", ".1%"),
    ProfileMetric(
        "grammaticality",
        "Grammaticality",
        "words of a sentence free of errors of grammar and spelling, the mean share",
        ".1%",
    ),
    ProfileMetric(
        "inverse_word_frequency",
        "Inverse word frequency",
        "mean negative log frequency of the words; higher is rarer",
        ".2f",
    ),
    ProfileMetric(
        "rare_words", "Rare words", "words rarer than one in a million, as a share", ".1%"
    ),
    ProfileMetric(
        "type_token_ratio",
        "Type-token ratio",
        "different words as a share of all; falls with length",
    ),
    ProfileMetric(
        "mattr", "MATTR", f"mean type-token ratio of every {MATTR_WINDOW} words; length-proof"
    ),
    ProfileMetric(
        "mtld",
        "MTLD",
        f"words in a row before the type-token ratio falls to {MTLD_THRESHOLD}; length-proof",
        ".1f",
    ),
    ProfileMetric(
        "unique_trigram_ratio",
        "Unique trigram ratio",
        "different runs of three words as a share of all",
    ),
    ProfileMetric(
        "repeated_share",
        "Repetition",
        "words in runs of three that occurred before, as a share",
        ".1%",
    ),
    ProfileMetric("noun_phrases", "Noun phrases", "a word, the mean over sentences"),
    ProfileMetric("noun_phrase_words", "Words a noun phrase", "the mean over the text", ".2f"),
    ProfileMetric("verb_phrases", "Verb phrases", "a word, the mean over sentences"),
    ProfileMetric("verb_phrase_words", "Words a verb phrase", "the mean over the text", ".2f"),
)
"""The numbers of a profile, in display order."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in the rhythm of its text."""

    text: str
    paragraph: int
    n_words: int
    n_quoted: int
    """Words in quoted speech."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A phrase that occurs more than once."""

    phrase: str
    count: int


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of a text. `missing` says why a value is None."""

    document: Document
    values: dict[str, float | None]
    missing: dict[str, str]
    sentences: tuple[Sentence, ...]
    repeated: tuple[Repeated, ...]
    """Repeated phrases of three words or more, those that cost the most words first."""
    rarest: tuple[str, ...]
    """The rarest words that are not names."""
    zipf: tuple[float, ...]
    """The base-10 logarithm of each word's occurrences in a thousand million words."""
    signature: str
    errors: tuple[Span, ...] = ()
    """Positions of grammar and spelling errors in the document, in order."""

    def measurements(self) -> Iterator[Measurement]:
        """The profile as measurements."""
        for metric in PROFILE_METRICS:
            yield Measurement(
                document_id=self.document.id,
                rubric="profile",
                item=metric.id,
                rater="fabula",
                value=self.values[metric.id],
                missing_reason=self.missing.get(metric.id),
                evidence=self.errors if metric.id == "grammaticality" else (),
                rationale=None,
                signature=self.signature,
            )

    def _repr_html_(self) -> str:
        from fabula.web.notebook import measured_lines, notebook_table

        title = f"Profile of {self.document.id}"
        return notebook_table(title, measured_lines(self.measurements()), self.signature)

    def to_row(self) -> dict[str, Any]:
        """As written to JSON."""
        row = {
            "id": self.document.id,
            "values": self.values,
            "missing": self.missing,
            "sentences": [
                {"paragraph": s.paragraph, "n_words": s.n_words, "n_quoted": s.n_quoted}
                for s in self.sentences
            ],
            "repeated": list(map(asdict, self.repeated)),
            "rarest": list(self.rarest),
            "errors": [[span.start, span.end] for span in self.errors],
            "signature": self.signature,
        }
        return self.document.beside(row)


def profile_texts(
    documents: Iterable[Document],
    grammar: str = "harper",
    *,
    n_jobs: int = 1,
    spread: InOrder | None = None,
) -> Iterator[Profile]:
    """The profile of each text, in order; `spread` runs the work elsewhere than in processes."""
    run = spread or partial(in_order, n_jobs=n_jobs, n_small=4)
    yield from run(partial(_profile_one, grammar), check_documents(documents))


def _profile_one(grammar: str, document: Document) -> Profile:
    return profile_text(*opened_tools(grammar), document)


@functools.cache
def opened_tools(grammar: str) -> tuple[TextTools, Any]:
    """The tools of a profile, and the pipeline that finds sentences: loaded once."""
    return TextTools(grammar), sentence_pipeline()


def profile_text(tools: TextTools, nlp: Any, document: Document) -> Profile:
    """The profile of a text; `nlp` is spaCy's pipeline with sentence boundaries."""
    if (foreign := not_english(document.text)) is not None:
        return _nothing(tools, document, foreign)
    prose = without_headings(document)
    # White space is normalized, and paragraphs are separate.
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs_of(prose))
    spans = sentence_spans(text, nlp)
    stream = tools.parser.parse(text[start:end] for start, end in spans)
    parsed, faults = parsed_and_checked(stream, tools.checker, len(spans))
    spoken = [part for part in parsed if part.words]
    if not spoken:
        return _nothing(tools, document, "no_words")
    sentences = tuple(_sentences(text, spans, parsed))
    each = [
        alone_checked(tools, part, found)
        for part, found in zip(parsed, faults, strict=True)
        if part.words
    ]
    values, missing = _values(tools, spoken, sentences, each)
    logs = [tools.frequencies.log(word) for part in spoken for word in part.words]
    return Profile(
        document=document,
        values=values,
        missing=missing,
        sentences=sentences,
        repeated=tuple(_repeated(spoken)),
        rarest=tuple(_rarest(tools, spoken)),
        zipf=tuple(9 + log / math.log(10) for log in logs),
        signature=str(tools.profile_signature),
        errors=tuple(_errors(document.id, prose, spoken, [one["errors"] for one in each])),
    )


def _errors(
    id_: str, prose: str, parsed: Sequence[Parsed], errors: Sequence[Sequence[tuple[int, int]]]
) -> Iterator[Span]:
    """Errors by their positions in the document; those of a sentence are relative to its own text.

    A sentence's white space differs from the document's, so other characters are counted.
    """
    ink = [k for k, character in enumerate(prose) if not character.isspace()]
    text = "".join(encodable(prose).split())
    at = 0
    for part, places in zip(parsed, errors, strict=True):
        own = "".join(part.text.split())
        at = text.index(own, at)
        for start, end in places:
            first, n = (len("".join(part.text[a:b].split())) for a, b in ((0, start), (start, end)))
            if n:
                yield Span(id_, ink[at + first], ink[at + first + n - 1] + 1)
        at += len(own)


def _nothing(tools: TextTools, document: Document, reason: str) -> Profile:
    known = dict.fromkeys(("n_words", "n_sentences"), 0.0) if reason == "no_words" else {}
    values = {metric.id: known.get(metric.id) for metric in PROFILE_METRICS}
    missing = {name: reason for name in values if name not in known}
    return Profile(document, values, missing, (), (), (), (), str(tools.profile_signature))


def _sentences(
    text: str, spans: Sequence[tuple[int, int]], parsed: Sequence[Parsed]
) -> Iterator[Sentence]:
    speech = speech_spans(text)
    n_breaks = [match.start() for match in re.finditer("\n\n", text)]
    for (start, _), part in zip(spans, parsed, strict=True):
        words = [start + token.start for token in part.tokens if token.is_word]
        n_quoted = sum(flags_within(words, speech))
        yield Sentence(part.text, bisect_right(n_breaks, start), len(part.words), n_quoted)


def _values(
    tools: TextTools,
    parsed: Sequence[Parsed],
    sentences: Sequence[Sentence],
    each: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, float | None], dict[str, str]]:
    words = [word for part in parsed for word in part.words]
    lengths = [len(part.words) for part in parsed]
    threes = [three for part in parsed for three in trigrams(part.words)]
    nouns = [n for part in parsed for n in part.noun_phrase_words()]
    verbs = [n for part in parsed for n in part.verb_phrase_words]
    found: dict[str, float | str | None] = {
        "n_words": float(len(words)),
        "n_sentences": float(len(parsed)),
        "sentence_length": _mean(lengths),
        "sentence_length_sd": _deviation(lengths),
        "dialogue_share": sum(s.n_quoted for s in sentences) / len(words),
        "grammaticality": "not_measured"
        if tools.checker is None
        else _mean([sentence["grammaticality"] for sentence in each]),
        "inverse_word_frequency": tools.frequencies.inverse(words),
        "rare_words": sum(tools.frequencies.log(w) < math.log(1e-6) for w in words) / len(words),
        "type_token_ratio": type_token_ratio(words),
        "mattr": mattr(words) or "too_short",
        "mtld": mtld(words) or "too_short",
        "unique_trigram_ratio": type_token_ratio(threes) or "no_trigram",
        "repeated_share": _repeated_share(parsed) / len(words),
        "noun_phrases": _mean([sentence["noun_phrases"] for sentence in each]),
        "noun_phrase_words": _mean(nouns) if nouns else "no_noun_phrase",
        "verb_phrases": _mean([sentence["verb_phrases"] for sentence in each]),
        "verb_phrase_words": _mean(verbs) if verbs else "no_verb_phrase",
    }
    values = {key: None if isinstance(value, str) else value for key, value in found.items()}
    missing = {key: value for key, value in found.items() if isinstance(value, str)}
    return values, missing


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _deviation(values: Sequence[int]) -> float | str:
    if len(values) < 2:
        return "one_sentence"
    mean = _mean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _repeated_share(parsed: Sequence[Parsed]) -> int:
    """The number of words in a run of three that occurred before."""
    seen = set[tuple[str, str, str]]()
    n_words = 0
    for part in parsed:
        reach = 0
        for k, three in enumerate(trigrams(part.words)):
            if three in seen:
                n_words += k + 3 - max(reach, k)
                reach = k + 3
            seen.add(three)
    return n_words


def _repeated(parsed: Sequence[Parsed]) -> list[Repeated]:
    """Repeated phrases, none part of a longer one that occurs as often."""
    again = _occurring_again([part.words for part in parsed])
    inner = {
        piece
        for phrase, n in again.items()
        for piece in (phrase[1:], phrase[:-1])
        if again.get(piece) == n
    }
    found = sorted(again.keys() - inner, key=lambda one: (-(again[one] - 1) * len(one), one))
    shown: list[Repeated] = []
    taken = set[tuple[tuple[str, str, str], int]]()
    for phrase in found:
        n = again[phrase]
        # A repeated sentence is one repetition, not one for each of its parts.
        pieces = {(three, n) for three in trigrams(phrase)}
        if len(shown) < _N_SHOWN and not pieces & taken:
            shown.append(Repeated(" ".join(phrase), n))
            taken |= pieces
    return shown


def _occurring_again(sentences: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    """How often each phrase occurs that does so more than once, in one sentence or several."""
    again: dict[tuple[str, ...], int] = {}
    starts = [list(range(len(words) - _MIN_REPEATED + 1)) for words in sentences]
    for n in range(_MIN_REPEATED, _MAX_REPEATED_WORDS + 1):
        counts = Counter(
            words[k : k + n] for words, own in zip(sentences, starts, strict=True) for k in own
        )
        again |= {phrase: count for phrase, count in counts.items() if count > 1}
        # A longer phrase occurs again only if both the words without its last and those without
        # its first do.
        kept = [
            [k for k in own if words[k : k + n] in again]
            for words, own in zip(sentences, starts, strict=True)
        ]
        starts = [[k for k, after in pairwise(own) if after == k + 1] for own in kept]
    return again


def _rarest(tools: TextTools, parsed: Sequence[Parsed]) -> list[str]:
    words = {
        token.lower
        for part in parsed
        for token in part.tokens
        if token.is_word and token.pos != "PROPN" and token.text.isalpha()
    }
    return sorted(words, key=lambda word: (tools.frequencies.log(word), word))[:_N_SHOWN]

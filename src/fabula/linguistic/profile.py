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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np

from fabula.core.instruments import Figure
from fabula.core.types import Document, Measurement, Span
from fabula.core.workers import InOrder, in_order
from fabula.linguistic import metrics
from fabula.linguistic.metrics import TextTools, trigrams
from fabula.text import TextSettings, check_documents, count_words
from fabula.text.chapters import without_headings
from fabula.text.reading import ReadSentence
from fabula.text.sentences import encodable, not_english, paragraphs_of

_MIN_REPEATED = 3
"""Minimum words of a phrase that is worth showing."""
_MAX_REPEATED_WORDS = 12
_N_SHOWN = 12

PROFILE_METRICS: tuple[Figure, ...] = tuple(
    Figure(*line.split(" | "))
    for line in f"""\
n_words | Words | ,.0f | don't is one, well-known two; headings count
n_sentences | Sentences | ,.0f | as the pipeline parts them
sentence_length | Sentence length | .1f | words a sentence, the mean; don't is two here
sentence_length_sd | Spread of sentence length | .1f | standard deviation in words; low is \
monotonous
dialogue_share | Dialogue | .1% | words in quoted speech, as a share
grammaticality | Grammaticality | .1% | words of a sentence free of errors of grammar and \
spelling, the mean share
inverse_word_frequency | Inverse word frequency | .2f | mean negative log frequency of the words; \
higher is rarer
rare_words | Rare words | .1% | words rarer than one in a million, as a share
type_token_ratio | Type-token ratio | .3f | different words as a share of all; falls with length
mattr | MATTR | .3f | mean type-token ratio of every {metrics.MATTR_WINDOW} words; length-proof
mtld | MTLD | .1f | words in a row before the type-token ratio falls to {metrics.MTLD_THRESHOLD}; \
length-proof
unique_trigram_ratio | Unique trigram ratio | .3f | different runs of three words as a share of all
repeated_share | Repetition | .1% | words in runs of three that occurred before, as a share
noun_phrases | Noun phrases | .3f | a word, the mean over sentences
noun_phrase_words | Words a noun phrase | .2f | the mean over the text
verb_phrases | Verb phrases | .3f | a word, the mean over sentences
verb_phrase_words | Words a verb phrase | .2f | the mean over the text
""".splitlines()
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
    n_rare: int
    """Words rarer than one in a million."""
    n_repeated: int
    """Words in runs of three that occurred before."""


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
        for metric in PROFILE_METRICS:
            about = self.document.id, "profile", metric.item, "fabula"
            value, reason = self.values[metric.item], self.missing.get(metric.item)
            evidence = self.errors if metric.item == "grammaticality" else ()
            yield Measurement(*about, value, reason, evidence, None, self.signature)

    def _repr_html_(self) -> str:
        from fabula.web import measured_lines, notebook_table

        title = f"Profile of {self.document.id}"
        return notebook_table(title, measured_lines(self.measurements()), self.signature)

    def to_row(self) -> dict[str, Any]:
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
    return profile_text(opened_tools(grammar), document)


opened_tools = functools.cache(TextTools)
"""The tools for a checker of grammar, loaded once."""


def profile_text(tools: TextTools, document: Document) -> Profile:
    signature = str(tools.profile_signature)
    reason, sentences = not_english(document.text), list[ReadSentence]()
    if reason is None:
        prose = without_headings(document)
        # White space is normalized, and paragraphs are separate.
        text = spaced(prose)
        sentences = tools.read(text).parsed
        reason = None if any(sentence.parsed.words for sentence in sentences) else "no_words"
    if reason is not None:
        zeros = dict.fromkeys(("n_words", "n_sentences"), 0.0) if reason == "no_words" else {}
        values = {metric.item: zeros.get(metric.item) for metric in PROFILE_METRICS}
        missing = {name: reason for name in values if name not in zeros}
        return Profile(document, values, missing, (), (), (), (), signature)
    breaks = [match.start() for match in re.finditer("\n\n", text)]
    again = _n_repeated([sentence.parsed.words for sentence in sentences])
    words = {word for sentence in sentences for word in sentence.parsed.words}
    zipf = {word: tools.frequencies.zipf(word) for word in words}
    rare = {word for word in zipf if tools.frequencies.log(word) < math.log(1e-6)}
    rhythm = tuple(
        Sentence(
            s.parsed.text,
            bisect_right(breaks, s.start),
            n_words=len(s.parsed.words),
            n_quoted=len(s.spoken),
            n_rare=sum(word in rare for word in s.parsed.words),
            n_repeated=n_repeated,
        )
        for s, n_repeated in zip(sentences, again, strict=True)
    )
    spoken = [sentence for sentence in sentences if sentence.parsed.words]
    parsed = [sentence.parsed for sentence in spoken]
    outcomes: dict[str, float | str] = {"n_words": float(count_words(document.text))}
    outcomes |= _outcomes(tools, spoken, rhythm)
    # Errors by their places in the document: a sentence's white space differs from the document's,
    # so other characters are counted.
    ink = [k for k, character in enumerate(prose) if not character.isspace()]
    inked, at, errors = "".join(encodable(prose).split()), 0, []
    for sentence in spoken:
        letters = "".join(sentence.parsed.text.split())
        at = inked.index(letters, at)
        for fault in sentence.faults:
            start, end = (len("".join(sentence.parsed.text[:k].split())) for k in fault.place)
            if start < end:
                errors.append(Span(document.id, ink[at + start], ink[at + end - 1] + 1))
        at += len(letters)
    rarest = {
        token.lower
        for part in parsed
        for token in part.tokens
        if token.is_word and token.pos != "PROPN" and token.text.isalpha()
    }
    return Profile(
        document=document,
        values={k: None if isinstance(value, str) else value for k, value in outcomes.items()},
        missing={k: value for k, value in outcomes.items() if isinstance(value, str)},
        sentences=rhythm,
        repeated=tuple(_repeated(_whole_words(text, spoken))),
        rarest=tuple(sorted(rarest, key=lambda w: (tools.frequencies.log(w), w))[:_N_SHOWN]),
        zipf=tuple(zipf[word] for part in parsed for word in part.words),
        signature=signature,
        errors=tuple(errors),
    )


def _whole_words(text: str, sentences: Sequence[ReadSentence]) -> list[tuple[str, ...]]:
    """The words of each sentence; the pipeline's are "do" and "n't"."""
    words, starts, _ = TextSettings().locate(encodable(text))
    firsts, lasts = (
        np.searchsorted(starts, places).tolist()
        for places in ([s.start for s in sentences], [s.end for s in sentences])
    )
    return [tuple(words[first:last]) for first, last in zip(firsts, lasts, strict=True)]


def spaced(text: str) -> str:
    """The paragraphs of a text with single spaces, as its profile reads them."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs_of(text))


def _outcomes(
    tools: TextTools, sentences: Sequence[ReadSentence], rhythm: Sequence[Sentence]
) -> dict[str, float | str]:
    """Each metric of a text with words, or why it is missing."""
    parsed = [sentence.parsed for sentence in sentences]
    words = [word for part in parsed for word in part.words]
    lengths = [len(part.words) for part in parsed]
    n, mean = len(lengths), fmean(lengths)
    squares = math.fsum((length - mean) ** 2 for length in lengths)
    threes = [three for part in parsed for three in trigrams(part.words)]
    nouns = [n for part in parsed for n in part.noun_phrase_words]
    verbs = [n for part in parsed for n in part.verb_phrase_words]
    n_nouns = (len(part.noun_phrases) / len(part.words) for part in parsed)
    n_verbs = (len(part.verb_phrase_words) / len(part.words) for part in parsed)
    return {
        "n_sentences": float(n),
        "sentence_length": mean,
        "sentence_length_sd": math.sqrt(squares / (n - 1)) if n > 1 else "one_sentence",
        "dialogue_share": sum(s.n_quoted for s in rhythm) / len(words),
        "grammaticality": "not_measured"
        if tools.checker is None
        else fmean(sentence.share_correct for sentence in sentences),
        "inverse_word_frequency": tools.frequencies.inverse(words),
        "rare_words": sum(s.n_rare for s in rhythm) / len(words),
        "type_token_ratio": metrics.type_token_ratio(words) or "no_words",
        "mattr": metrics.mattr(words) or "too_short",
        "mtld": metrics.mtld(words) or "too_short",
        "unique_trigram_ratio": metrics.type_token_ratio(threes) or "no_trigram",
        "repeated_share": sum(s.n_repeated for s in rhythm) / len(words),
        "noun_phrases": fmean(n_nouns),
        "noun_phrase_words": fmean(nouns) if nouns else "no_noun_phrase",
        "verb_phrases": fmean(n_verbs),
        "verb_phrase_words": fmean(verbs) if verbs else "no_verb_phrase",
    }


def _n_repeated(sentences: Sequence[Sequence[str]]) -> list[int]:
    """Of the words of each sentence, how many are in a run of three that occurred before."""
    seen, counts = set[tuple[str, str, str]](), []
    for words in sentences:
        n_repeated = reach = 0
        for k, three in enumerate(trigrams(words)):
            if three in seen:
                n_repeated += k + 3 - max(reach, k)
                reach = k + 3
            seen.add(three)
        counts.append(n_repeated)
    return counts


def _repeated(sentences: Sequence[tuple[str, ...]]) -> list[Repeated]:
    """Phrases that occur more than once, none part of a longer one that occurs as often."""
    again = _occurring_again(sentences)
    inner = {p for run, n in again.items() for p in (run[1:], run[:-1]) if again.get(p) == n}
    shown: list[Repeated] = []
    taken = set[tuple[tuple[str, str, str], int]]()
    for phrase in sorted(again.keys() - inner, key=lambda p: (-(again[p] - 1) * len(p), p)):
        # A repeated sentence is one repetition, not one for each of its parts.
        pieces = {(three, again[phrase]) for three in trigrams(phrase)}
        if len(shown) < _N_SHOWN and not pieces & taken:
            shown.append(Repeated(" ".join(phrase), again[phrase]))
            taken |= pieces
    return shown


def _occurring_again(sentences: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    """How often each phrase occurs that does so more than once, in one sentence or several."""
    again: dict[tuple[str, ...], int] = {}
    starts = [list(range(len(words) - _MIN_REPEATED + 1)) for words in sentences]
    for n_words in range(_MIN_REPEATED, _MAX_REPEATED_WORDS + 1):
        pairs = list(zip(sentences, starts, strict=True))
        counts = Counter(words[k : k + n_words] for words, places in pairs for k in places)
        again |= {phrase: count for phrase, count in counts.items() if count > 1}
        # A longer phrase occurs again only if both the words without its last and those without
        # its first do.
        kept = [[k for k in places if words[k : k + n_words] in again] for words, places in pairs]
        starts = [[k for k, after in pairwise(places) if after == k + 1] for places in kept]
    return again

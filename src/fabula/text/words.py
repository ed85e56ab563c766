"""Split a text into words, with their places in the unmodified text.

A word is a run of letters, marks and digits, joined by an apostrophe, a middle dot or, between
digits, a point or comma: *don't*, *l'homme*, *3.14*. Scripts without spaces between words (Han,
kana, Thai, Lao, Khmer, Burmese) give a token for each character with its marks. An emoji, with its
modifiers, is a token. Hyphens separate words, so *well-known* and *well known* match.

Each word is compared in a normal form: Unicode NFKC, so that composed and combining accents,
ligatures and full-width letters agree; one kind of apostrophe; invisible characters (soft hyphen,
joiners) dropped; and, with `case="fold"`, full case folding. Accents are kept.

With `punct="keep"`, the setting in which the Creativity Index was published (Lu et al. 2024), each
punctuation mark is a token too (runs of dashes and of dots are one), quotes and dashes are unified,
and hyphenated compounds stay whole.
"""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from fabula.core.errors import InputError

TOKENISER = "word1"
"""Name of these rules; it changes when they do, and is part of every signature."""
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_DASHES = "‐‑‒–—―−﹘﹣－"
_EMOJI = (
    r"\p{RI}{2}"
    r"|(?:\p{Emoji_Presentation}|\p{Extended_Pictographic}\uFE0F)[\p{EMod}\uFE0F]*"
    r"(?:\u200D\p{Extended_Pictographic}[\p{EMod}\uFE0F]*)*"
)
# A fast superset of the characters that the rules for unspaced scripts and for emoji cover.
_needs_all_rules = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u2190-\U0010ffff]"
).search

_TO_PLAIN = str.maketrans(
    {
        **dict.fromkeys("’‘ʼ＇‛`´′", "'"),
        **dict.fromkeys("“”„‟«»″〝〞＂", '"'),
        **dict.fromkeys(_DASHES, "-"),
        **dict.fromkeys([*_INVISIBLE, *map(chr, range(0xFE00, 0xFE10))]),
    }
)

UNITS = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
)  # fmt: skip
ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth",
)  # fmt: skip


class TextWords(NamedTuple):
    """The words of a text in normal form, with their places."""

    words: list[str]
    starts: NDArray[np.int64]
    """int64, shape (n_words,): offset of each word's first character."""
    ends: NDArray[np.int64]
    """int64, shape (n_words,): offset after each word's last character."""

    def part(self, first: int, n_words: int) -> TextWords:
        """`n_words` words, starting at word `first`."""
        end = first + n_words
        return TextWords(self.words[first:end], self.starts[first:end], self.ends[first:end])


@dataclass(frozen=True, slots=True)
class TextSettings:
    """How texts become words; two numbers are comparable only if their settings agree."""

    case: Literal["fold", "keep"] = "fold"
    punct: Literal["drop", "keep"] = "drop"

    def __str__(self) -> str:
        return f"case {self.case}, punctuation {self.punct}"

    def signature_parts(self) -> dict[str, str]:
        return {"tok": TOKENISER, "case": self.case, "punct": self.punct}

    def words(self, text: str) -> list[str]:
        """The words of `text` in normal form."""
        return self.normalise(self.raw_words(text))

    def has_words(self, text: str) -> bool:
        """Whether `text` contains a word."""
        return _pattern(self.punct, bool(_needs_all_rules(text))).search(text) is not None

    def raw_words(self, text: str) -> list[str]:
        """The words of `text` as written."""
        words: list[str] = _pattern(self.punct, bool(_needs_all_rules(text))).findall(text)
        return words

    def locate(self, text: str) -> TextWords:
        """The words of `text` in normal form, with their offsets; shared, not to be changed."""
        return _located(self, text)

    def places(self, text: str, n_words: int) -> NDArray[np.int64]:
        """Where the first `n_words` words of `text` begin and end: int64, shape (n_found, 2)."""
        matches = islice(_pattern(self.punct, bool(_needs_all_rules(text))).finditer(text), n_words)
        places = chain.from_iterable(map(regex.Match.span, matches))
        return np.fromiter(places, np.int64).reshape(-1, 2)

    def normalise(self, words: Sequence[str]) -> list[str]:
        """The normal form of each word. Normalising twice changes nothing."""
        return list(map(_NORMAL_FORMS[self.case].__getitem__, words))


@functools.lru_cache(2)
def _located(settings: TextSettings, text: str) -> TextWords:
    """The words of a text: several instruments ask for those of the same text in turn."""
    matches = list(_pattern(settings.punct, bool(_needs_all_rules(text))).finditer(text))
    # Every text passes here, so the loops run in C.
    places = chain.from_iterable(map(regex.Match.span, matches))
    spans = np.fromiter(places, np.int64, 2 * len(matches)).reshape(-1, 2)
    starts, ends = np.ascontiguousarray(spans.T)
    return TextWords(settings.normalise(list(map(regex.Match.group, matches))), starts, ends)


def word_set(*lines: str) -> frozenset[str]:
    """The words of some lines as a set."""
    return frozenset(" ".join(lines).split())


@functools.lru_cache(8)
def count_words(text: str) -> int:
    """The length of a text in words, wherever a page, a table or a limit states it.

    As searched: *don't* is one word, *well-known* two, a number one, a dash none; headings count.
    """
    return len(TextSettings().raw_words(text))


@functools.cache
def _pattern(punct: Literal["drop", "keep"], all_rules: bool) -> regex.Pattern[str]:
    # The rules for unspaced scripts and emoji are slow, so they are skipped for texts without
    # either, where both patterns find the same words.
    letter = r"[\p{L}\p{Nd}\p{Nl}]"
    more = r"[\p{L}\p{M}\p{Nd}\p{Nl}\u00AD\u200C\u200D\u2060]"
    alternatives = []
    if all_rules:
        letter = rf"[{letter}--[{_UNSPACED}]]"
        more = rf"[{more}--[{_UNSPACED}]]"
        alternatives += [rf"[{_UNSPACED}]\p{{M}}*", _EMOJI]
    joints = "'’‘＇·\u05f3\u05f4" + ("‐‑-" if punct == "keep" else "")
    joint = rf"(?:[{joints}](?={letter})|(?<=\p{{Nd}})[.,](?=\p{{Nd}}))"
    alternatives.insert(0, rf"{letter}{more}*+(?:{joint}{more}++)*+")
    if punct == "keep":
        alternatives += [rf"[-{_DASHES}]+", r"\.{2,}", r"[^\s\p{Cc}\p{Cf}\p{Cs}]\p{M}*"]
    return regex.compile("|".join(alternatives), regex.V1)


class _NormalForms(dict[str, str]):
    """The normal form of each word: a cache, cleared when it is full."""

    _LIMIT = 1 << 18

    def __init__(self, *, fold: bool) -> None:
        self._fold = fold

    def __missing__(self, word: str) -> str:
        if len(self) >= self._LIMIT:
            self.clear()
        if word.isascii():
            plain = word.replace("`", "'")
        else:
            plain = unicodedata.normalize("NFKC", word.translate(_TO_PLAIN)).translate(_TO_PLAIN)
        if plain.startswith("-"):
            plain = "-"
        if self._fold:
            plain = unicodedata.normalize("NFKC", plain.casefold())
        self[word] = normal = plain or word
        return normal


_NORMAL_FORMS = {case: _NormalForms(fold=case == "fold") for case in ("fold", "keep")}


@dataclass(frozen=True, slots=True)
class StopWords:
    """A list of words with its name: `english@1a2b3c4d`."""

    name: str
    words: frozenset[str]

    @classmethod
    def of(cls, label: str, words: Iterable[str]) -> StopWords:
        chosen = frozenset(TextSettings().normalise(list(words)))
        digest = hashlib.sha256("\n".join(sorted(chosen)).encode()).hexdigest()[:8]
        return cls(f"{label}@{digest}", chosen)

    def is_content(self, word: str) -> bool:
        """Whether a word in normal form carries meaning: not listed, and not punctuation."""
        return word.casefold() not in self.words and any(map(str.isalnum, word))


def load_stop_words(spec: str = "english") -> StopWords:
    """Load the user's list: `english`, `none`, or a file of words, with `#` for comments.

    Raises `InputError` if the file cannot be read.
    """
    if spec == "none":
        return StopWords.of("none", ())
    if spec == "english":
        text = files("fabula.text").joinpath("function_words.txt").read_text(encoding="utf-8")
        label = "english"
    else:
        path = Path(spec)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"`stop_words` {path}: cannot be read as UTF-8 ({error})") from error
        label = path.stem
    # Each word matches in any case and with any tokeniser setting.
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return StopWords.of(label, (word for line in lines for word in TextSettings().words(line)))

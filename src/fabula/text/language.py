"""Whether a text is English, as the English pipeline, word lists and models require.

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
import math
import re
import unicodedata
from collections import Counter
from importlib.resources import files
from typing import Any

from fabula.core.cached_results import Kept, Memo
from fabula.text.sentences import encodable, paragraphs_of
from fabula.text.words import word_set

_PART_WORDS = 20
_MIN_DIFFERENT = 5
_MARGIN_NATS = 3.0
_BATCH = 64
_REMEMBERED_CHARS = 1 << 21
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


def _is_latin(text: str) -> bool:
    """Whether at least half of the letters are Latin; a text without letters counts as Latin."""
    if text.isascii():
        return True
    letters = [character for character in text if character.isalpha()]
    n_latin = sum(unicodedata.name(character, "").startswith("LATIN") for character in letters)
    return 2 * n_latin >= len(letters)


@functools.cache
def _identifier() -> Any:
    """Loaded for the first text: a third of a second and 100 MB."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

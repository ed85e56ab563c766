"""A writer's dictionary: words that are never noted as spelling or as a name, and those to offer.

The file is plain text (UTF-8), a word a line; case is ignored.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from fabula.core.errors import InputError
from fabula.style.lines import LineReview
from fabula.text.reading import Reading

_MIN_WORD, _MIN_NAME = 5, 3
"""Uses of an unknown word, and of an unknown name, from which it is not a slip."""
_MAX_OFFERED = 75
_OF_WORDS = ("spelling", "name")


def read_dictionary(path: Path | None) -> frozenset[str]:
    """The words of a dictionary, case-folded; none without a file. Raises `InputError`."""
    try:
        lines = "" if path is None else path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: not a dictionary; name a text file (UTF-8) with a word a line in `dictionary`"
        ) from error
    return frozenset(word for line in lines.splitlines() if (word := line.strip().casefold()))


def without_words(lines: LineReview, text: str, words: Collection[str]) -> LineReview:
    """The notes without those on the spelling of these words, case-folded, or on them as names; the
    signature names the words by a hash."""
    if not words:
        return lines
    notes = tuple(
        note
        for note in lines.notes
        if note.kind not in _OF_WORDS or text[note.start : note.end].casefold() not in words
    )
    digest = hashlib.sha256("\n".join(sorted(words)).encode(errors="replace")).hexdigest()[:8]
    return replace(lines, notes=notes, signature=f"{lines.signature}|dictionary:{digest}")


@dataclass(frozen=True, slots=True)
class OwnWords:
    """Words of a text that its checker does not know and that are no slips, most frequent first."""

    names: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def own_words(read: Reading) -> OwnWords:
    """Unknown names used three times or more, and unknown words five times in lower case."""
    names, words = Counter[str](), Counter[str]()
    unknown: set[str] = set()
    for sentence in read.parsed:
        for fault in sentence.faults:
            if fault.is_spelling:
                start, end = fault.place
                unknown.add(read.text[sentence.start + start : sentence.start + end])
        for token in filter(lambda token: token.text.isalpha(), sentence.tokens):
            if token.text.islower():
                words[token.text] += 1
            elif token.text.istitle():
                names[token.text] += 1
    often = [name for name, n in names.most_common() if n >= _MIN_NAME and not words[name.lower()]]
    # Asked of no more than are offered: the checker looks for corrections of each that it lacks.
    unlisted = (name for name in often if not read.is_accepted(name, as_name=True))
    return OwnWords(
        tuple(islice(unlisted, _MAX_OFFERED)),
        tuple(w for w, n in words.most_common() if n >= _MIN_WORD and w in unknown)[:_MAX_OFFERED],
    )

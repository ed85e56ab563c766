"""Rich text (RTF), as Word, TextEdit and Scrivener write it."""

from __future__ import annotations

import codecs
import re

from fabula.errors import InputError
from fabula.text.documents import ParsedText

_MARK = "\ufdd0"
"""Precedes the level of a heading during parsing; a code point without a character."""
_outline = re.compile(r"\\outlinelevel([0-8])(?!\d) ?")
_level = re.compile(f"{_MARK}([0-8])")
_code_page = re.compile(rb"\\ansicpg(\d{1,5})")


def parse_rtf(data: bytes, name: str) -> ParsedText:
    """Parse the paragraphs of a rich text; notes, headers and footers are left out.

    A heading is a paragraph with an outline level (RTF 1.9.1, paragraph formatting). Raises
    `InputError`.
    """
    from striprtf.striprtf import rtf_to_text

    if not data.lstrip().startswith(b"{\\rtf"):
        raise InputError(f"{name}: not rich text despite its extension; save it again as .rtf")
    page = _code_page.search(data)
    encoding = f"cp{page[1].decode()}" if page else "cp1252"
    try:
        codecs.lookup(encoding)
    except LookupError:
        encoding = "cp1252"
    text = data.decode(encoding, "replace").replace(_MARK, " ")
    text = _outline.sub(rf"{_MARK}\g<1>", text)
    try:
        plain: str = rtf_to_text(text, encoding=encoding, errors="replace")  # type: ignore[no-untyped-call]
    except (ValueError, IndexError, KeyError, TypeError, LookupError, OverflowError) as error:
        raise InputError(f"{name}: damaged rich text ({error}); save it again as .rtf") from error
    # Characters beyond the first 65,536 are written as surrogate pairs.
    plain = plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    paragraphs = []
    for line in plain.split("\n"):
        level = _level.search(line)
        if words := _level.sub("", line).strip():
            paragraphs.append((int(level[1]) + 1 if level else 0, words))
    return ParsedText(paragraphs)

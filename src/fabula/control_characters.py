"""Characters that must not occur in a name or a line in a terminal."""

from __future__ import annotations

import re

# C0 and C1 controls, which move a terminal's cursor or run its commands; line and paragraph
# separators; marks that change text direction, so that what follows reads as something else.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_BUT_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def without_controls(text: str, *, keep_lines: bool = False) -> str:
    """The text with each control character replaced by U+FFFD; its length does not change.

    With `keep_lines`, line feeds and tabs are kept.
    """
    return (_BUT_LINES if keep_lines else _CONTROLS).sub("\ufffd", text)


def as_text(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe goes before it."""
    if not cell or cell[0] not in "=+-@\t\r":
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell

"""The text of a file as its reader returns it, in any format."""

from __future__ import annotations

from typing import NamedTuple


class ParsedText(NamedTuple):
    """The paragraphs of a file, and its metadata."""

    paragraphs: list[tuple[int, str]]
    """Each with its level if it is a heading, else 0."""
    title: str = ""
    author: str = ""

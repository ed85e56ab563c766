"""A file's text as its reader finds it, whatever format it has."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ParsedText"]


class ParsedText(NamedTuple):
    """The paragraphs of a file, and what it says of itself."""

    paragraphs: list[tuple[int, str]]
    """Each with its level where it is a heading, else 0."""
    title: str = ""
    author: str = ""

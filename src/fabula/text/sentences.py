"""Paragraphs and sentences of prose."""

from __future__ import annotations

import re
from typing import Any

from fabula.text.words import TextSettings

__all__ = ["paragraphs_of", "sentences_of"]

_PARAGRAPH = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")


def paragraphs_of(text: str) -> list[str]:
    """The paragraphs of a text: what stands between blank lines."""
    return _PARAGRAPH.split(text.strip())


def sentences_of(paragraph: str, nlp: Any) -> list[str]:
    """The sentences of a paragraph. One that begins in small letters goes on with the last one.

    The pipeline parts `"Run!" cried the Cat.` after the quotation.
    """
    words = TextSettings()
    found: list[str] = []
    for span in nlp(" ".join(paragraph.split())).sents:
        text = span.text.strip()
        if not text:
            continue
        first = next((character for character in text if character.isalnum()), "")
        if found and (first.islower() or not words.has_words(text)):
            found[-1] = f"{found[-1]} {text}"
        elif words.has_words(text):
            found.append(text)
    return found

"""Interface text of participants' pages: one catalogue per language, all with the same keys.

English and German are included; a study may add a catalogue of its own. The questions and the texts
to read are in the study's file and its rubric, in any language.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import Formatter
from typing import Any

from markupsafe import Markup

from fabula.core.errors import InputError
from fabula.core.types import Item, Rubric

_HERE = Path(__file__).parent / "languages"
LANGUAGES = tuple(sorted(path.stem for path in _HERE.glob("*.toml")))
_SCRIPTED = (
    "saving", "saved_at", "not_saved_retrying", "not_saved_closed", "done_of", "same_place",
)  # fmt: skip
_TABLES = ("items", "answers")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, slots=True)
class Labels:
    """The catalogue of a language."""

    words: Mapping[str, Any]
    digest: str = ""
    """Digest of a study's own catalogue; empty for those included."""

    @property
    def language(self) -> str:
        """Language code for HTML: `de`."""
        return str(self.words["language"])

    def __call__(self, key: str, **values: object) -> str:
        """Return a label with these values filled in."""
        return self._words(key, values).format(**values)

    def marked(self, key: str, **values: object) -> Markup:
        """Return a label for a template: it may contain HTML, and values are escaped."""
        return Markup(self._words(key, values)).format(**values)

    def _words(self, key: str, values: Mapping[str, object]) -> str:
        label = self.words[key]
        if isinstance(label, str):
            return label
        return str(label.get(str(values["n"]), label["other"]))

    def answer(self, answer: str) -> str:
        """Return a fixed answer as displayed; a rubric's own answers are unchanged."""
        return str(self.words["answers"].get(answer, answer))

    def item(self, item: Item) -> Item:
        """Translate an item that is built into a design."""
        translation = self.words["items"].get(item.id)
        return item if translation is None else replace(item, **translation)

    def rubric(self, rubric: Rubric) -> Rubric:
        """Translate a rubric of built-in items; returns it unchanged if there is no translation."""
        items = tuple(map(self.item, rubric.items))
        return rubric if items == rubric.items else replace(rubric, items=items)

    def for_script(self) -> dict[str, str]:
        """Return the labels for the page's script, which fills in the values itself."""
        return {key: str(self.words[key]) for key in _SCRIPTED}


def load_labels(language: str, folder: Path | None = None) -> Labels:
    """Load an included catalogue or a `.toml` of `folder`. Raises `InputError` for missing keys."""
    if not language.endswith(".toml"):
        if language not in LANGUAGES:
            raise InputError(
                f"unknown language {language!r}; use one of {', '.join(LANGUAGES)}, or your own "
                "file that ends in .toml"
            )
        return Labels(tomllib.loads((_HERE / f"{language}.toml").read_text(encoding="utf-8")))
    path = (folder or Path()) / language
    try:
        data = path.read_bytes()
        words = tomllib.loads(data.decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not TOML: {error}") from error
    if (fault := _fault(words)) is not None:
        raise InputError(f"{path}: {fault}; {_HERE / 'en.toml'} has all keys")
    return Labels(words, hashlib.sha256(data).hexdigest()[:8])


def _fault(words: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a catalogue compared with the English one."""
    for key, english in ENGLISH.words.items():
        if (label := words.get(key)) is None:
            return f"the key {key} is missing"
        if key in _TABLES:
            if not isinstance(label, dict):
                return f"{key}: must be a table"
            continue
        texts = _texts_of(label)
        if not texts or not all(isinstance(text, str) for text in texts):
            return f"{key}: must be a text, or a table of texts with `other`"
        for text in texts:
            try:
                fields = _fields(text)
            except ValueError as error:
                return f"{key}: {error}"
            if more := fields - set().union(*map(_fields, _texts_of(english))):
                return f"{key}: unknown placeholder {{{min(more)}}}"
    if not _LANGUAGE.fullmatch(words["language"]):
        return f"language: {words['language']!r} is not a language such as de"
    for id_, table in words["items"].items():
        known = isinstance(table, dict) and set(table) <= {"title", "question"}
        if not known or not all(isinstance(text, str) for text in table.values()):
            return f"items.{id_}: must be a table with title and question"
    if not {"title", "question"} <= set(words["items"].get("own_feedback", {})):
        return "items.own_feedback: needs title and question"
    return None


def _texts_of(label: Any) -> list[Any]:
    """Return a text as a list, or the texts of a table with a key `other`."""
    if isinstance(label, str):
        return [label]
    return [*label.values()] if isinstance(label, dict) and "other" in label else []


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


ENGLISH = load_labels("en")

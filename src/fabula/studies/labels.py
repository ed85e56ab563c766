"""Interface text of participants' pages: one catalogue per language, all with the same keys.

The questions and the texts to read are in the study's file and its rubric, in any language.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from markupsafe import Markup

from fabula.core.types import Item, Rubric

_HERE = Path(__file__).parent / "languages"
Language = Literal["de", "en"]
_SCRIPTED = (
    "saving", "saved_at", "not_saved_retrying", "not_saved_closed", "done_of", "same_place",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Labels:
    """The catalogue of a language."""

    words: Mapping[str, Any]

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


def load_labels(language: Language) -> Labels:
    """Load the catalogue of a language."""
    return Labels(tomllib.loads((_HERE / f"{language}.toml").read_text(encoding="utf-8")))


ENGLISH = load_labels("en")

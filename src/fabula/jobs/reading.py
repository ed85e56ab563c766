"""How the input texts of a job are read, and by which checkers and encoders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.settings import Settings, setting

if TYPE_CHECKING:
    from fabula.types import Document


@dataclass(frozen=True, slots=True)
class Reading(Settings):
    """The format of files, and the fields of tables."""

    format: str | None = setting(
        None,
        help="Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl, "
        "csv, tsv, xlsx, parquet, wet.",
        unit="FORMAT",
        tunes="reading",
    )
    id_field: str = setting(
        "id", help="Field of a row that contains its id.", option="id", tunes="reading"
    )
    text_field: str = setting(
        "text", help="Field of a row that contains the text.", option="text", shared="reading"
    )

    def documents(self, sources: Any, **more: Any) -> Iterator[Document]:
        """The texts of sources, one after the other; both as `read_documents` takes them."""
        from fabula.text import read_documents

        return read_documents(
            sources, text_field=self.text_field, id_field=self.id_field, format_=self.format, **more
        )


def grammar_setting() -> Any:
    """The checker of grammar."""
    return setting(
        "harper",
        help="harper, languagetool (its server, as languagetool@URL if not on port 8081), or none.",
        unit="CHECKER",
        tunes="tools",
    )


def encoder_setting() -> Any:
    """The encoder of sentences."""
    return setting(
        None,
        help="Sentence encoder: a folder with model.onnx and tokenizer.json.",
        unit="DIR",
        default_text="MiniLM, packaged",
        tunes="tools",
    )


def read_stories(
    sources: Sequence[str], read: Callable[[tuple[str, ...]], Iterable[Document]]
) -> list[Document]:
    """The stories that sources name; the authors' released file is recognised by its name.

    `read` gives the texts of all other sources. Raises `InputError`.
    """
    from fabula.errors import InputError
    from fabula.rubrics.released import STORIES_FILE, read_released_stories
    from fabula.text import check_ids

    others = tuple(source for source in sources if Path(source).name != STORIES_FILE)
    released = (Path(source) for source in sources if source not in others)
    stories = [story for path in released for story in read_released_stories(path)]
    if others:
        stories += read(others)
    if not stories:
        raise InputError(f"{', '.join(sources)}: contains no stories")
    check_ids(stories)
    return stories

"""What jobs are given: texts, rows, labels and runs, from files or in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

from fabula.core.errors import InputError
from fabula.core.provenance import note_texts
from fabula.core.store import located_rows, read_rows
from fabula.core.types import Document
from fabula.jobs.shared_settings import Reading, read_stories

Row = dict[str, Any]
FrameKind = Literal["pandas", "polars", "arrow"]
_FRAMES: Mapping[tuple[str, str], FrameKind] = {
    ("pandas", "DataFrame"): "pandas",
    ("polars", "DataFrame"): "polars",
    ("pyarrow", "Table"): "arrow",
}

Texts = Any
"""A frame (pandas, Polars, Arrow), a list of documents, of strings or of dicts, one dict with a
`text`, a mapping from id to text, or the path of a file, a folder or a pattern."""
_LONGEST_NAME = 255
"""Of a file: longer strings are texts."""


class GivenTexts(NamedTuple):
    """Documents, and the kind of frame that they came in; None for anything else."""

    read: Callable[[], list[Document]]
    kind: FrameKind | None
    names: tuple[str, ...] = ()
    """The files, if they are files."""


def documents_of(texts: Texts, how: Reading = Reading()) -> GivenTexts:  # noqa: B008 (frozen)
    """The documents, and what kind of frame they came in.

    `how.text_field` and `how.id_field` name the columns of a frame and the keys of dicts; other
    columns become the documents' fields. Strings in a list get the ids "1", "2", ..., unless they
    name files, which are read. Raises `InputError` for anything else, and for duplicate ids.
    """
    from fabula.text import check_documents, check_ids
    from fabula.text.readers import Fields, document_of_row

    rows, kind = rows_of(texts)
    is_single = isinstance(texts, str | bytes | set | frozenset | Document)
    is_many = isinstance(texts, Iterable) and not is_single
    names: tuple[str, ...] = ()
    if isinstance(texts, str | Path) and str(texts):
        names = (str(texts),)
        if "\n" in names[0] or max(map(len, names[0].split("/"))) > _LONGEST_NAME:
            raise InputError(
                f"{names[0][:40]!r}...: a string names a file, a folder or a pattern; give a text "
                "itself in a list, as in [text]"
            )
    elif isinstance(texts, list | tuple) and texts and all(map(_is_file, texts)):
        names = tuple(map(str, texts))
    if names:
        return GivenTexts(lambda: read_stories(names, how.documents), None, names)
    if kind == "pandas" and rows and how.id_field not in texts and texts.index.name is not None:
        rows = [{how.id_field: str(key), **row} for key, row in zip(texts.index, rows, strict=True)]
    if rows is None and is_many:
        texts = list(texts)
        rows = list(texts) if texts and all(isinstance(row, Mapping) for row in texts) else None
    if rows is not None:
        fields = Fields(how.text_field, how.id_field)
        numbered = enumerate(rows, 1)
        documents = [document_of_row(row, f"row {k}", str(k), fields) for k, row in numbered]
    elif isinstance(texts, Document):
        documents = [texts]
    elif is_many:
        documents = list(check_documents(map(_numbered, texts, count(1))))
    else:
        raise InputError(
            "texts must be a frame, a list of documents, strings or dicts, a mapping from id to "
            f"text, or the path of files, not {type(texts).__name__}"
        )
    if not documents:
        raise InputError("no texts")
    note_texts(documents)
    check_ids(documents)
    return GivenTexts(lambda: documents, kind)


def read(texts: Texts, *, text: str = "text", id: str = "id") -> list[Document]:  # noqa: A002
    """Load texts as documents: a frame, list, mapping from id to text, file, folder or pattern.

    Raises `InputError`, naming the row or the file.
    """
    return documents_of(texts, Reading(id_field=id, text_field=text)).read()


def _is_file(text: Any) -> bool:
    """Whether an entry of a list is the name of a file rather than a text."""
    is_name = isinstance(text, str) and len(text) < 1000
    return isinstance(text, Path) or (is_name and os.path.exists(text))


def _numbered(text: Any, number: int) -> Any:
    """A string of a list as a document; anything else is unchanged.

    Raises `InputError` for the name of a file that is not there, which would be a text of one word.
    """
    from fabula.text.readers import READERS

    if not isinstance(text, str):
        return text
    ending = text.rpartition(".")[2].lower()
    if ending != text.lower() and not any(map(str.isspace, text)) and ending in READERS:
        raise InputError(f"{text}: no such file")
    return Document(str(number), text)


def rows_of(table: Any) -> tuple[list[dict[str, Any]] | None, FrameKind | None]:
    """The rows of a frame, of a list of dicts or of a mapping from id to text; None for others.

    Missing values of a frame are None in a row.
    """
    kind = _FRAMES.get((type(table).__module__.partition(".")[0], type(table).__name__))
    if kind == "pandas":
        filled = table.astype(object).where(table.notna(), None)
        columns, tuples = list(map(str, filled.columns)), filled.itertuples(index=False, name=None)
        return [dict(zip(columns, row, strict=True)) for row in tuples], kind
    if kind == "polars":
        return list(table.iter_rows(named=True)), kind
    if kind == "arrow":
        return table.to_pylist(), kind
    if isinstance(table, Mapping) and "text" in table:
        return [dict(table)], None
    is_series = type(table).__name__ == "Series" and hasattr(table, "items")
    if is_series or isinstance(table, Mapping):
        return [{"id": str(key), "text": value} for key, value in table.items()], None
    if isinstance(table, list | tuple) and table and all(isinstance(r, dict) for r in table):
        return list(table), None
    return None, None


def frame_of(rows: Iterable[dict[str, Any]], kind: FrameKind | None) -> Any:
    """Rows as a frame of a kind; by default of the first of pandas and Polars that is installed.

    An Arrow table if neither is, and the list of rows itself without PyArrow.
    """
    listed = list(rows)
    if kind not in (None, *get_args(FrameKind)):
        raise InputError(f"{kind!r}: must be one of {', '.join(get_args(FrameKind))}")
    for candidate in (kind,) if kind else ("pandas", "polars", "arrow"):
        try:
            if candidate == "pandas":
                import pandas

                return pandas.DataFrame(listed)
            if candidate == "polars":
                import polars

                return polars.DataFrame(listed, infer_schema_length=None)
            import pyarrow

            return pyarrow.Table.from_pylist(listed)
        except ImportError as error:
            if kind:
                raise InputError(f"{kind} is not installed; run: pip install {kind}") from error
    return listed


Part = Path | tuple[list[Row], str]
"""A file, the folder of a run, or rows with the words that name them in errors."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of results: of files, of runs, or in memory."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, value: Any) -> Self:
        """From a path, a result, a frame, rows, or several of them. Raises `InputError`."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str | Path):
            return cls((Path(value),))
        if (rows := rows_in(value)) is not None:
            return cls(((rows, "the rows"),))
        if not isinstance(value, Iterable):
            raise InputError(f"expected rows, a frame or a file, not {type(value).__name__}")
        return cls(tuple(part for entry in value for part in cls.of(entry).parts))

    def __iter__(self) -> Iterator[tuple[Row, str]]:
        """Each row, and where it is. Raises `InputError` for what cannot be read."""
        for part in self.parts:
            yield from located_in(part)


def rows_in(value: Any) -> list[Row] | None:
    from fabula.jobs.result import Result, nested

    if isinstance(value, Result):
        return value.compared_rows()
    rows, kind = rows_of(value)
    return rows if rows is None or kind is None else [nested(row) for row in rows]


def named_parts(several: Iterable[Rows]) -> Iterator[tuple[Iterable[Row], str]]:
    """The rows of each file, or of those in memory, and what names them in errors."""
    for rows in several:
        for part in rows.parts:
            yield (read_rows(part), str(part)) if isinstance(part, Path) else part


def located_in(part: Part) -> Iterator[tuple[Row, str]]:
    """The rows of a part of `Rows`, each with its place."""
    if isinstance(part, Path):
        yield from located_rows(part)
    else:
        for number, row in enumerate(part[0], 1):
            yield dict(row), f"row {number}"


@dataclass(frozen=True, slots=True)
class GivenSource:
    """Texts that a setting names: a file, a folder or a pattern, or texts in memory."""

    value: Texts

    @classmethod
    def of(cls, value: Any) -> Self:
        return value if isinstance(value, cls) else cls(value)

    @property
    def path(self) -> Path | None:
        return Path(self.value) if isinstance(self.value, str | Path) else None

    def read(self) -> list[Document]:
        """Raises `InputError`."""
        return documents_of(self.value).read()

"""Convert a caller's texts to documents, and rows to the kind of frame that came in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar

from fabula.errors import InputError
from fabula.provenance import note_texts
from fabula.settings import Settings, SettingsError, build, fields_of
from fabula.text import check_documents, check_ids, find_files, read_documents
from fabula.text.readers import Fields, document_of_row
from fabula.types import Document

FrameKind = Literal["pandas", "polars", "arrow"]

Texts = Any
"""A frame (pandas, Polars, Arrow), a list of documents, of strings or of dicts, a mapping from id
to text, or the path of a file, a folder or a pattern."""


@dataclass(frozen=True, slots=True)
class GivenTexts:
    """Documents, and the kind of frame that they came in; None for anything else."""

    documents: list[Document]
    kind: FrameKind | None


def documents_of(texts: Texts, *, text: str = "text", id: str = "id") -> GivenTexts:
    """The documents, and what kind of frame they came in.

    `text` and `id` name the columns of a frame and the keys of dicts; other columns become the
    documents' fields. Strings in a list get the ids "1", "2", ... Raises `InputError` for anything
    else, and for duplicate ids.
    """
    rows, kind = rows_of(texts)
    if rows is not None:
        fields = Fields(text, id)
        found = [
            document_of_row(row, f"row {number}", str(number), fields)
            for number, row in enumerate(rows, 1)
        ]
    elif isinstance(texts, str | Path):
        files = find_files((str(texts),))
        found = list(read_documents(files, text_field=text, id_field=id))
    elif isinstance(texts, Document):
        found = [texts]
    else:
        found = list(check_documents(_numbered(texts)))
    if not isinstance(texts, str | Path):
        note_texts(found)
    if not found:
        raise InputError("no texts")
    check_ids(found)
    return GivenTexts(found, kind)


def _numbered(texts: Any) -> Any:
    """Strings of a list as documents; other elements are unchanged."""
    if not isinstance(texts, Iterable) or isinstance(texts, bytes):
        return texts
    return (
        Document(str(number), one) if isinstance(one, str) else one
        for number, one in enumerate(texts, 1)
    )


def rows_of(table: Any) -> tuple[list[dict[str, Any]] | None, FrameKind | None]:
    """The rows of a frame, of a list of dicts or of a mapping from id to text; None for others.

    Missing values of a frame are None in a row.
    """
    kind = _frame_kind(table)
    if kind == "pandas":
        named = table.astype(object).where(table.notna(), None)
        return [
            dict(zip(map(str, named.columns), row, strict=True))
            for row in named.itertuples(index=False, name=None)
        ], kind
    if kind == "polars":
        return list(table.iter_rows(named=True)), kind
    if kind == "arrow":
        return table.to_pylist(), kind
    if isinstance(table, Mapping):
        return [{"id": str(key), "text": value} for key, value in table.items()], None
    if isinstance(table, list | tuple) and table and all(isinstance(r, dict) for r in table):
        return list(table), None
    return None, None


def _frame_kind(table: Any) -> FrameKind | None:
    package = type(table).__module__.partition(".")[0]
    kinds: dict[tuple[str, str], FrameKind] = {
        ("pandas", "DataFrame"): "pandas",
        ("polars", "DataFrame"): "polars",
        ("pyarrow", "Table"): "arrow",
    }
    return kinds.get((package, type(table).__name__))


def frame_of(rows: Iterable[dict[str, Any]], kind: FrameKind | None) -> Any:
    """Rows as a frame of a kind; by default of the first of pandas and Polars that is installed.

    An Arrow table if neither is, and the list of rows itself without PyArrow.
    """
    listed = list(rows)
    for candidate in (kind,) if kind else ("pandas", "polars", "arrow"):
        try:
            return _made(listed, candidate)
        except ImportError as error:
            if kind:
                raise InputError(f"{kind} is not installed; run: pip install {kind}") from error
    return listed


def _made(rows: list[dict[str, Any]], kind: str) -> Any:
    if kind == "pandas":
        import pandas

        return pandas.DataFrame(rows)
    if kind == "polars":
        import polars

        return polars.DataFrame(rows, infer_schema_length=None)
    import pyarrow

    return pyarrow.Table.from_pylist(rows)


def located(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Rows with a description of their origin."""
    for number, row in enumerate(rows, 1):
        yield row, f"row {number}"


S = TypeVar("S", bound=Settings)


def settings_from(kind: type[S], given: dict[str, Any], fixed: dict[str, Any]) -> S:
    """Settings of a class from values by name. Raises `SettingsError` for an unknown name.

    `fixed` are values set by the caller's own arguments; they cannot be given again.
    """
    paths = {one.path[-1]: one.path for one in fields_of(kind)}
    for name in given:
        if name not in paths or name in fixed:
            free = sorted(paths.keys() - fixed.keys())
            close = get_close_matches(name, free, n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"the settings are {', '.join(free)}"
            raise SettingsError(name, f"is not a setting here; {hint}")
    return build(kind, {paths[name]: value for name, value in {**given, **fixed}.items()})

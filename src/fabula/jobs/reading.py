"""How the input texts of a job are read."""

from __future__ import annotations

from dataclasses import dataclass

from fabula.settings import Settings, setting


@dataclass(frozen=True, slots=True)
class Reading(Settings):
    """The format of files, and the fields of tables."""

    format: str | None = setting(
        None,
        help="Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl, "
        "csv, tsv, xlsx, parquet, wet.",
        unit="FORMAT",
    )
    id_field: str = setting("id", help="Field of a row that contains its id.")
    text_field: str = setting("text", help="Field of a row that contains the text.")

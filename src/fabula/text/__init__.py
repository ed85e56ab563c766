"""Reading texts and finding their words."""

from fabula.text.sources import (
    FileSource,
    check_documents,
    check_ids,
    files_named,
    find_files,
    in_batches,
    open_filesystem,
    read_documents,
    read_ids,
    read_table,
)
from fabula.text.words import TOKENISER, TextSettings, TextWords, count_words

__all__ = [
    "TOKENISER", "FileSource", "TextSettings", "TextWords", "check_documents", "check_ids",
    "count_words", "files_named", "find_files", "in_batches", "open_filesystem", "read_documents",
    "read_ids", "read_table",
]  # fmt: skip

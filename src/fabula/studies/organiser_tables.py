"""What organisers decide: tables beside those of people's answers."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text

from fabula.studies.database import ID, metadata
from fabula.studies.people_tables import TABLES as EARLIER

__all__ = ["TABLES", "contents", "resolutions", "versions"]

# Never overwritten: the newest about a question counts.
resolutions = Table(
    "resolutions",
    metadata,
    Column("id", ID, primary_key=True, autoincrement=True),
    Column("document_id", Text, nullable=False),
    Column("item", Text, nullable=False),
    # NULL where nobody can say what is right.
    Column("value", Text),
    Column("note", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Index("resolutions_by_question", "document_id", "item"),
)

# What is shown. Numbered by hand: until somebody has a text there is one, and each change gives it
# a new number.
versions = Table(
    "versions",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("why", Text, nullable=False),
    Column("digest", Text, nullable=False),
    # JSON, with digests in place of words.
    Column("content", Text, nullable=False),
)

# Words that were shown, each once, as a string of JSON: no database minds what is in them.
contents = Table(
    "contents",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("words", Text, nullable=False),
)

TABLES = (*EARLIER, resolutions, versions, contents)
"""All tables of a study; those that others refer to come first."""

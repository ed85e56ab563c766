"""Tables for organisers' decisions, in addition to those for answers."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text

from fabula.studies.database import ID, metadata
from fabula.studies.people_tables import TABLES as EARLIER

__all__ = ["TABLES", "contents", "resolutions", "versions"]

# Never overwritten: the newest decision on a question counts.
resolutions = Table(
    "resolutions",
    metadata,
    Column("id", ID, primary_key=True, autoincrement=True),
    Column("document_id", Text, nullable=False),
    Column("item", Text, nullable=False),
    # NULL if the right answer cannot be determined.
    Column("value", Text),
    Column("note", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Index("resolutions_by_question", "document_id", "item"),
)

# Versions of what is shown. Numbered explicitly: there is one until somebody has been given a text,
# and each change then gets a new number.
versions = Table(
    "versions",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("why", Text, nullable=False),
    Column("digest", Text, nullable=False),
    # JSON, with digests instead of texts.
    Column("content", Text, nullable=False),
)

# Texts that were shown, each once, as a JSON string, which every database can store.
contents = Table(
    "contents",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("words", Text, nullable=False),
)

TABLES = (*EARLIER, resolutions, versions, contents)
"""All tables of a study, in order of their references."""

"""What organisers decide: tables beside those of people's answers."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Table, Text

from fabula.studies.database import ID, metadata
from fabula.studies.people_tables import TABLES as EARLIER

__all__ = ["TABLES", "resolutions"]

# Never overwritten: the newest about a question counts.
resolutions = Table(
    "resolutions", metadata,
    Column("id", ID, primary_key=True, autoincrement=True),
    Column("document_id", Text, nullable=False),
    Column("item", Text, nullable=False),
    # NULL where nobody can say what is right.
    Column("value", Text),
    Column("note", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Index("resolutions_by_question", "document_id", "item"),
)  # fmt: skip

TABLES = (*EARLIER, resolutions)
"""All tables of a study; those that others refer to come first."""

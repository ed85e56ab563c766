"""Tables for organisers' decisions, in addition to those for answers."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Table, Text

from fabula.studies.database import ID, metadata
from fabula.studies.people_tables import TABLES as EARLIER

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

TABLES = (*EARLIER, resolutions)
"""All tables of a study, in order of their references."""

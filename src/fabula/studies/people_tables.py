"""Tables for the people of a study, in addition to those for answers."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint

from fabula.studies.database import ID, metadata


def _of_participant() -> Column[int]:
    return Column("participant_id", ID, ForeignKey("participants.id"), nullable=False)


# Consent texts shown, and the response: agreed, declined, withdrawn.
consents = Table(
    "consents",
    metadata,
    Column("id", ID, primary_key=True, autoincrement=True),
    _of_participant(),
    Column("what", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)

consent_texts = Table(
    "consent_texts",
    metadata,
    Column("version", Text, primary_key=True),
    Column("text", Text, nullable=False),
)

quiz_tries = Table(
    "quiz_tries",
    metadata,
    Column("id", ID, primary_key=True, autoincrement=True),
    _of_participant(),
    Column("n_right", Integer, nullable=False),
    # The answers in the order of the questions, as a JSON list.
    Column("given", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)

# Completed pages before the first unit: tutorial, about.
steps = Table(
    "steps",
    metadata,
    Column("participant_id", ID, ForeignKey("participants.id"), primary_key=True),
    Column("step", Text, primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
)

about_answers = Table(
    "about_answers",
    metadata,
    Column("participant_id", ID, ForeignKey("participants.id"), primary_key=True),
    Column("item", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("saved_ms", BigInteger, nullable=False),
)

# Arrivals from a platform: one row per submission, with the latest status reported there.
visits = Table(
    "visits",
    metadata,
    Column("id", ID, primary_key=True, autoincrement=True),
    _of_participant(),
    Column("platform", Text, nullable=False),
    Column("study", Text, nullable=False),
    Column("session", Text, nullable=False),
    # A keyed digest; empty if unknown.
    Column("address", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("status", Text),
    Column("status_ms", BigInteger),
    # State of the participant before the platform reported that they left.
    Column("state_before", Text),
    UniqueConstraint("participant_id", "session"),
    Index("visits_by_address", "address", "at_ms"),
)

OF_PEOPLE = (consents, quiz_tries, steps, about_answers, visits)
"""Tables with a participant's data, which is deleted on request."""

TABLES = metadata.sorted_tables
"""All tables of a study, including those for answers, in order of their references."""

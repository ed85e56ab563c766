"""What is known of each participant beside their answers: how they came, what they agreed to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from sqlalchemy import Connection, func, select

from fabula.studies.people_tables import about_answers, consents, quiz_tries, visits

__all__ = ["PersonFacts", "facts_of_all"]


@dataclass(slots=True)
class PersonFacts:
    """Of one participant. None is what is not known."""

    platform_study: str | None = None
    platform_session: str | None = None
    platform_status: str | None = None
    """As the platform said last."""
    said: str | None = None
    """To the consent, last: agreed, declined, withdrawn."""
    consent_version: str | None = None
    """Of the text that they said it to."""
    n_tries: int = 0
    """At the quiz."""
    about: dict[str, str] = field(default_factory=dict)
    """What they said about themselves, by question."""

    def row(self) -> dict[str, object]:
        """A cell for each, also for each question about them."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "about"}
        return own | {f"about.{item}": value for item, value in self.about.items()}


def facts_of_all(connection: Connection) -> Mapping[int, PersonFacts]:
    """By participant, of those of whom anything is known."""
    found: dict[int, PersonFacts] = {}

    def of(id_: int) -> PersonFacts:
        return found.setdefault(id_, PersonFacts())

    # The last row of each counts.
    for row in connection.execute(select(visits).order_by(visits.c.id)):
        one = of(row.participant_id)
        one.platform_study, one.platform_session = row.study or None, row.session or None
        one.platform_status = row.status
    for row in connection.execute(select(consents).order_by(consents.c.id)):
        one = of(row.participant_id)
        one.said, one.consent_version = row.what, row.version
    counted = select(quiz_tries.c.participant_id, func.count().label("n"))
    for row in connection.execute(counted.group_by(quiz_tries.c.participant_id)):
        of(row.participant_id).n_tries = row.n
    for row in connection.execute(select(about_answers).order_by(about_answers.c.item)):
        of(row.participant_id).about[row.item] = row.value
    return found

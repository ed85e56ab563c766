"""Facts about participants in addition to their answers: how they arrived, what they agreed to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from sqlalchemy import Connection, func, select

from fabula.studies.checks import Checks, checks_of_all
from fabula.studies.design import StudyDesign
from fabula.studies.people_tables import about_answers, consents, quiz_tries, visits

_NESTED = ("about", "checks")


@dataclass(slots=True)
class PersonFacts:
    """Facts about one participant. None means unknown."""

    platform_study: str | None = None
    platform_session: str | None = None
    platform_status: str | None = None
    """Latest status reported by the platform."""
    said: str | None = None
    """Latest response to the consent text: agreed, declined, withdrawn."""
    consent_version: str | None = None
    """Version of the consent text they responded to."""
    n_tries: int = 0
    """Number of attempts at the quiz."""
    checks: Checks = field(default_factory=Checks)
    """Attention items and repeated questions."""
    about: dict[str, str] = field(default_factory=dict)
    """Answers about themselves, by question."""

    def row(self) -> dict[str, object]:
        """Return a cell for each fact, including each question about themselves."""
        own = {name: getattr(self, name) for name in self.__slots__ if name not in _NESTED}
        return (
            own
            | asdict(self.checks)
            | {f"about.{item}": value for item, value in self.about.items()}
        )


def facts_of_all(connection: Connection, design: StudyDesign) -> Mapping[int, PersonFacts]:
    """Return the facts by participant, for those with any."""
    found: dict[int, PersonFacts] = {}

    def of(id_: int) -> PersonFacts:
        return found.setdefault(id_, PersonFacts())

    # The last row for each participant counts.
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
    for id_, checks in checks_of_all(connection, design).items():
        of(id_).checks = checks
    return found

"""A study is frozen once somebody has been given a text.

What participants see and what decides the answers stays as it was then; a changed study is another
study. What is compared are digests, by name, so that an error can say what differs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select

from fabula.errors import InputError
from fabula.studies.database import Store, assignments, settings
from fabula.studies.design import StudyDesign
from fabula.studies.units import Unit

_MAX_NAMED = 3


def shown_by(design: StudyDesign, units: Sequence[Unit]) -> dict[str, str]:
    """Return a digest of each thing that participants see or that decides their answers."""
    shown: dict[str, object] = {
        "design": design.kind,
        "rubric": (design.rubric.digest, design.group_rubric and design.group_rubric.digest),
        "reason_words": design.reason_words,
        "seed": design.seed,
        "ties": design.ties,
        "at_once": design.at_once,
        "quiz": (design.quiz, design.quiz_pass),
        "language": (design.labels.language, design.labels.digest),
        "tutorial, about, attention or repeat": design.people.questions_digest,
    }
    shown |= {f"texts.{name}": text for name, text in design.texts.model_dump().items()}
    for unit in units:
        for one in unit.documents:
            own = sorted((str(name), str(value)) for name, value in one.meta.items())
            shown[f"document {one.id}"] = (own, one.text, one.author)
    shown["the groups of documents"] = sorted(
        (unit.key, [one.id for one in unit.documents]) for unit in units
    )
    return {
        name: hashlib.sha256(repr(value).encode(errors="replace")).hexdigest()[:16]
        for name, value in shown.items()
    }


def check_same(store: Store, design: StudyDesign, units: Sequence[Unit], where: str) -> None:
    """Check that a database holds this study, as it was started if it was.

    Raises `InputError` naming what differs.
    """
    store.shown = json.dumps(shown_by(design, units), sort_keys=True)
    with store.writing() as connection:
        held = _setting(connection, "study")
        if held not in (None, design.id):
            raise InputError(
                f"{where}: contains answers for another study ({held}, here {design.id}); "
                "name another with `database`"
            )
        shown = _setting(connection, "shown")
        is_started = connection.execute(select(assignments.c.id).limit(1)).first() is not None
        if is_started and shown is not None and shown != store.shown:
            raise InputError(
                f"{design.path}: differs in {_difference(shown, store.shown)} from the study that "
                f"participants were given ({where}); put it back, or copy it under another name "
                "with a new database, which is a new study"
            )
        for key, value in (("study", design.id), ("shown", store.shown)):
            connection.execute(delete(settings).where(settings.c.key == key))
            connection.execute(insert(settings).values(key=key, value=value))


def _difference(started: str, now: str) -> str:
    was, is_now = json.loads(started), json.loads(now)
    names = [name for name in {**was, **is_now} if was.get(name) != is_now.get(name)]
    more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more


def is_shown_now(connection: Connection, store: Store) -> bool:
    """Whether no other process has opened the study with another file since this one did."""
    return _setting(connection, "shown") == store.shown


def _setting(connection: Connection, key: str) -> str | None:
    value: str | None = connection.scalar(select(settings.c.value).where(settings.c.key == key))
    return value

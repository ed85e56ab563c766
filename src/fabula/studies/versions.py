"""Versions of what participants are shown.

What determines the answers (the questions, the quiz, the order) is fixed once somebody has been
given a text. Wording around the questions, typos in a text, its author, and additional texts may
change: each change is a new version with its reason, and every page view records which version it
showed.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType

from sqlalchemy import Connection, delete, insert, select

from fabula.errors import InputError
from fabula.studies.database import Store, assignments, now_ms, page_views, settings
from fabula.studies.design import StudyDesign
from fabula.studies.organiser_tables import contents, versions
from fabula.studies.participants import log
from fabula.studies.people_tables import texts_shown
from fabula.studies.units import Unit, units_digest

__all__ = [
    "NOBODY_YET",
    "Change",
    "Shown",
    "Version",
    "amend",
    "changes_between",
    "check_same",
    "first_digest",
    "has_begun",
    "newest_version",
    "note_texts",
    "read_versions",
    "shown_by",
    "versions_seen",
    "versions_viewed",
]

_READ = ("text", "story", "original")
"""Fields of a document that participants read."""
NOBODY_YET = "nobody has been given a text yet, so the study can be edited freely"
_AT_START = "as the study began"
_PUT_BACK = "people have read it with the texts that it had; put them back"
_GONE = "people have read it, and the study no longer has it; put its texts, and `max_pairs`, back"


@dataclass(frozen=True, slots=True)
class Shown:
    """Everything that determines what participants see, and its known properties."""

    fixed: Mapping[str, str]
    """Digests of what determines the answers, by name."""
    texts: Mapping[str, str]
    """Texts shown to participants, by name."""
    documents: Mapping[str, Mapping[str, str]]
    """The fields of each document, by its id."""
    units: Mapping[str, Sequence[str]]
    """The ids of each unit's documents."""
    set_fields: Sequence[str] = ()
    """Fields of documents that determine what is asked, or who may read what."""


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between two versions; None means absent."""

    where: str
    before: str | None
    after: str | None
    refused: str = ""
    """Why the change is not allowed; empty if it is."""

    def line(self) -> str:
        """Describe the change in a sentence: what is new, or which words changed."""
        if self.before is None or self.after is None:
            return f"{self.where}: {'new' if self.before is None else 'left out'}"
        edits = list(_edits(self.before, self.after))
        shown = "; ".join(f"{_quoted(old)} becomes {_quoted(new)}" for old, new in edits[:3])
        more = f"; and {len(edits) - 3:,} more" if len(edits) > 3 else ""
        return f"{self.where}: {shown or 'other spaces'}{more}"


@dataclass(frozen=True, slots=True)
class Version:
    """A version and its changes."""

    number: int
    """From 1, in order."""
    at_ms: int
    why: str
    digest: str
    """Digest of the study at the time: `StudyDesign.digest`."""
    changes: Sequence[Change] = field(default_factory=tuple)


def shown_by(design: StudyDesign, units: Sequence[Unit]) -> Shown:
    """Return what a study shows with its current file and documents."""
    group = design.group_rubric
    fixed = {
        "design": design.kind,
        "rubric": (design.rubric.digest, group and group.digest),
        "reason_words": design.reason_words,
        "seed": design.seed,
        "ties": design.ties,
        # Omitted for studies from before sets of four existed, which all show two at once.
        **({"at_once": design.at_once} if design.at_once > 2 else {}),
        "quiz": (design.quiz, design.quiz_pass),
        "language": (design.labels.language, design.labels.digest),
        "tutorial, about, attention or repeat": design.people.questions_digest,
    }
    documents: dict[str, dict[str, str]] = {}
    for unit in units:
        for one in unit.documents:
            own = {str(name): str(value) for name, value in one.meta.items()}
            documents[one.id] = {**own, "text": one.text, "author": one.author or ""}
    return Shown(
        fixed={name: _digest(repr(value)) for name, value in fixed.items()},
        texts=design.texts.model_dump(),
        documents=documents,
        units={unit.key: [one.id for one in unit.documents] for unit in units},
        set_fields=["story_id", *(design.rubric.facts if design.kind == "feedback" else ())],
    )


def changes_between(
    before: Shown,
    now: Shown,
    begun: Collection[str] = (),
    oldest: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> list[Change]:
    """Return the differences, in the order of the study.

    begun: units that have been assigned. oldest: the fields of each document as first shown, since
    a series of small corrections must not add up to another text.
    """
    return [
        *_fixed_changes(before, now),
        *(
            Change(f"texts.{name}", before.texts.get(name, ""), text)
            for name, text in now.texts.items()
            if before.texts.get(name, "") != text
        ),
        *_document_changes(before, now, begun, oldest),
    ]


def _fixed_changes(before: Shown, now: Shown) -> Iterator[Change]:
    why = "answers to other questions are another study's; undo it, or name another `database`"
    for name in {**before.fixed, **now.fixed}:
        was, is_now = before.fixed.get(name), now.fixed.get(name)
        if was != is_now:
            yield Change(name, was, is_now, why)


def _document_changes(
    before: Shown,
    now: Shown,
    begun: Collection[str],
    oldest: Mapping[str, Mapping[str, str]],
) -> Iterator[Change]:
    given = {id_ for key in begun for id_ in before.units.get(key, ())}
    for key in {**before.units, **now.units}:
        was, is_now = (list(one.units.get(key, ())) for one in (before, now))
        if was == is_now:
            continue
        if key in begun:
            yield Change(key, " ".join(was), " ".join(is_now), _PUT_BACK if is_now else _GONE)
        elif {*was, *is_now} <= before.documents.keys() & now.documents.keys():
            yield Change(key, " ".join(was) or None, " ".join(is_now) or None)
    for id_ in {**before.documents, **now.documents}:
        old, new = before.documents.get(id_), now.documents.get(id_)
        if old is None or new is None:
            # An assigned document that is missing from its unit was reported above.
            if id_ not in given:
                yield Change(id_, old["text"] if old else None, new["text"] if new else None)
            continue
        for name in sorted({*old, *new}):
            words, by_now = old.get(name, ""), new.get(name, "")
            if words != by_now:
                first = oldest.get(id_, old).get(name, words)
                why = _why_kept(name, first, by_now, now) if id_ in given else ""
                yield Change(f"{id_}: {name}", words, by_now, why)


def _why_kept(name: str, old: str, new: str, now: Shown) -> str:
    """Return why a field of a text already read cannot change this way; empty if it can."""
    if name in now.set_fields:
        return "decides what people were asked about it; put it back"
    if name not in _READ:
        return ""
    n_words = max(len(old.split()), 1)
    n_changed = sum(max(len(a.split()), len(b.split())) for a, b in _edits(old, new))
    if n_changed <= max(3, n_words // 20):
        return ""
    return (
        f"{n_changed:,} of {n_words:,} words differ from the text as it was first shown, which is "
        "more than a slip; give the new text an id of its own"
    )


def _edits(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield the runs of words that differ."""
    a, b = old.split(), new.split()
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    for kind, a0, a1, b0, b1 in matcher.get_opcodes():
        if kind != "equal":
            yield " ".join(a[a0:a1]), " ".join(b[b0:b1])


def _quoted(words: str) -> str:
    cut = words if len(words) <= 60 else f"{words[:57].rstrip()}..."
    return f"`{cut}`" if cut else "nothing"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def check_same(store: Store, design: StudyDesign, units: Sequence[Unit], where: str) -> None:
    """Raise `InputError` if the stored answers are to other content; otherwise note the version."""
    now = shown_by(design, units)
    with store.writing() as connection:
        held = {row.key: row.value for row in connection.execute(select(settings))}
        _check_study(held, design, where)
        _set(connection, study=design.id)
        begun = _begun(connection)
        newest = _newest(connection)
        if newest is None and begun:
            _check_older(held, design, units, where)
        if newest is None or (not begun and newest[1] != now):
            connection.execute(delete(versions))
            number = 1 if newest is None else newest[0] + 1
            _keep(connection, number, design, now, _AT_START)
            store.version = number
            return
        changed = changes_between(newest[1], now, begun, _oldest(connection))
        if changed:
            raise InputError(_refusal(changed, design, where))
        store.version = newest[0]


def _check_study(held: Mapping[str, str], design: StudyDesign, where: str) -> None:
    if held.get("study", design.id) != design.id:
        raise InputError(
            f"{where}: contains answers for another study ({held['study']}, here {design.id}); "
            "name another with `database`"
        )


def _refusal(changed: Sequence[Change], design: StudyDesign, where: str) -> str:
    refused = [one for one in changed if one.refused]
    if refused:
        first = refused[0]
        return f"{where}: contains answers, and {first.where} was changed: {first.refused}"
    names = ", ".join(one.where for one in changed[:3])
    more = f" and {len(changed) - 3:,} more" if len(changed) > 3 else ""
    amend = f"`fabula study amend {shlex.quote(str(design.path))} --why REASON`"
    return (
        f"{where}: contains answers, and participants were shown another version of {names}{more}; "
        f"undo the change, or record it with {amend}"
    )


def _check_older(
    held: Mapping[str, str], design: StudyDesign, units: Sequence[Unit], where: str
) -> None:
    """Check a database from a version that stored digests only. Raises `InputError`."""
    for name, now in (("questions", design.digest), ("documents", units_digest(units))):
        if held.get(name, now) != now:
            raise InputError(
                f"{where}: contains answers, and the {name} of {design.path} were changed since; "
                "undo the change, or name another `database`"
            )


def amend(store: Store, design: StudyDesign, units: Sequence[Unit], why: str) -> list[Change]:
    """Return the changes since the newest version; record them as a new one if a reason is given.

    Before anybody has been given a text, there are no versions to compare. Raises `InputError` if
    something that determines the answers has changed.
    """
    now, where = shown_by(design, units), str(design.path)
    with store.writing() as connection:
        held = {row.key: row.value for row in connection.execute(select(settings))}
        _check_study(held, design, where)
        begun, newest = _begun(connection), _newest(connection)
        if begun and newest is None:
            raise InputError(
                f"{where}: its database is from an earlier version of Fabula; undo the changes and "
                "run `fabula study serve` once, so that what people were shown is kept"
            )
        if newest is None or not begun:
            if not why:
                return []
            raise InputError(f"{where}: {NOBODY_YET}; there is nothing to record")
        changed = changes_between(newest[1], now, begun, _oldest(connection))
        if any(one.refused for one in changed):
            raise InputError(_refusal(changed, design, where))
        if changed and why:
            _keep(connection, newest[0] + 1, design, now, why)
            log(connection, "organiser", "amend", why)
            store.version = newest[0] + 1
    return changed


def read_versions(connection: Connection) -> list[Version]:
    """Return all versions with their changes, oldest first."""
    rows = connection.execute(select(versions).order_by(versions.c.number)).all()
    begun = _begun(connection)
    found: list[Version] = []
    before: Shown | None = None
    for place, row in enumerate(rows, 1):
        now = _read(connection, row.content)
        changed = changes_between(before, now, begun) if before else []
        found.append(Version(place, row.at_ms, row.why, row.digest, changed))
        before = now
    return found


def note_texts(connection: Connection, participant: int, version: int) -> None:
    """Record that a participant was shown the texts of a version."""
    known = select(texts_shown.c.version).where(
        texts_shown.c.participant_id == participant, texts_shown.c.version == version
    )
    if connection.execute(known).first() is None:
        connection.execute(
            insert(texts_shown).values(participant_id=participant, version=version, at_ms=now_ms())
        )


def versions_seen(connection: Connection) -> dict[int, str]:
    """Return by participant the versions of which they were shown anything: `1, 2`."""
    places = _places(connection)
    found: dict[int, set[int]] = {}
    in_units = select(assignments.c.participant_id, page_views.c.version).join(
        page_views, page_views.c.assignment_id == assignments.c.id
    )
    for query in (in_units, select(texts_shown.c.participant_id, texts_shown.c.version)):
        for participant, number in connection.execute(query.distinct()):
            found.setdefault(participant, set()).add(places.get(number, 1))
    return {key: ", ".join(map(str, sorted(seen))) for key, seen in found.items()}


def versions_viewed(connection: Connection) -> dict[tuple[int, str], list[tuple[int, int]]]:
    """Return when each page of an assignment was opened, and which version it showed.

    Empty while there is only one version.
    """
    places = _places(connection)
    if len(places) < 2:
        return {}
    found: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for row in connection.execute(select(page_views).order_by(page_views.c.id)):
        seen = found.setdefault((row.assignment_id, row.page), [])
        # Views from before versions existed are of the first.
        seen.append((row.at_ms, places.get(row.version, 1)))
    return found


def first_digest(connection: Connection) -> str | None:
    """Return the digest of the study at its start, unaffected by later corrections.

    None if no version was recorded.
    """
    query = select(versions.c.digest).order_by(versions.c.number).limit(1)
    digest: str | None = connection.execute(query).scalar()
    return digest


def newest_version(connection: Connection) -> int | None:
    """Return the number of the version to show now."""
    query = select(versions.c.number).order_by(versions.c.number.desc()).limit(1)
    number: int | None = connection.execute(query).scalar()
    return number


def _places(connection: Connection) -> dict[int | None, int]:
    """Return the position of each version, from 1, by its stored number."""
    rows = connection.execute(select(versions.c.number).order_by(versions.c.number))
    return {row.number: place for place, row in enumerate(rows, 1)}


def has_begun(connection: Connection) -> bool:
    """Return whether anybody has been given a text."""
    return bool(_begun(connection))


def _begun(connection: Connection) -> set[str]:
    return {row.unit for row in connection.execute(select(assignments.c.unit).distinct())}


def _oldest(connection: Connection) -> dict[str, Mapping[str, str]]:
    """Return the fields of each document in the first version that contains it."""
    found: dict[str, Mapping[str, str]] = {}
    for row in connection.execute(select(versions).order_by(versions.c.number)):
        for id_, fields in _read(connection, row.content).documents.items():
            found.setdefault(id_, fields)
    return found


def _newest(connection: Connection) -> tuple[int, Shown] | None:
    row = connection.execute(select(versions).order_by(versions.c.number.desc()).limit(1)).first()
    return None if row is None else (row.number, _read(connection, row.content))


def _keep(connection: Connection, number: int, design: StudyDesign, shown: Shown, why: str) -> None:
    words: dict[str, str] = {}

    def named(text: str) -> str:
        digest = _digest(text)
        words[digest] = json.dumps(text)
        return digest

    kept = asdict(shown) | {
        "texts": {name: named(text) for name, text in shown.texts.items()},
        "documents": {
            id_: {name: named(text) for name, text in fields.items()}
            for id_, fields in shown.documents.items()
        },
    }
    known = {row.digest for row in connection.execute(select(contents.c.digest))}
    new = [{"digest": key, "words": text} for key, text in words.items() if key not in known]
    if new:
        connection.execute(insert(contents), new)
    connection.execute(
        insert(versions).values(
            number=number, at_ms=now_ms(), why=why, digest=design.digest, content=json.dumps(kept)
        )
    )
    _set(connection, questions=design.digest)


def _read(connection: Connection, content: str) -> Shown:
    kept = json.loads(content)
    wanted = {*kept["texts"].values()}
    for fields in kept["documents"].values():
        wanted.update(fields.values())
    words = {
        row.digest: json.loads(row.words)
        for row in connection.execute(select(contents))
        if row.digest in wanted
    }
    return Shown(
        fixed=kept["fixed"],
        texts={name: words[digest] for name, digest in kept["texts"].items()},
        documents={
            id_: {name: words[digest] for name, digest in fields.items()}
            for id_, fields in kept["documents"].items()
        },
        units=kept["units"],
        set_fields=kept["set_fields"],
    )


def _set(connection: Connection, **values: str) -> None:
    for key, value in values.items():
        own = settings.c.key == key
        if connection.execute(settings.update().where(own).values(value=value)).rowcount == 0:
            connection.execute(settings.insert().values(key=key, value=value))

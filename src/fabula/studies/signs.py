"""Signs that a text was written elsewhere: counts of what was done in its field.

The page counts pastes, how often it was left during writing, and manual changes; never the text
itself. An answer is flagged if something was pasted into it, or if it has fewer changes than words,
since even a keyboard that enters a word at a time makes one change per word. That is a reason to
look, not proof: dictation and pasting one's own notes look the same. About 9 % of crowd workers'
texts were written elsewhere in a study that could detect it (doi 10.1177/25152459261424723).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from fabula.packages import scipy
from fabula.studies.database import answers, assignments, now_ms, participants
from fabula.studies.design import StudyDesign
from fabula.studies.forms import OWN, WHY, Key
from fabula.studies.people_tables import signs
from fabula.text import TextSettings

_COUNTS = re.compile(r"([0-9]{1,6}) ([0-9]{1,6}) ([0-9]{1,6})")
_LOAD = re.compile(r"[0-9a-f]{24}")
_MAX_FIELDS = 200
_LEAST_WORDS = 3
"""Shorter texts are ignored: anybody types `n/a`."""


@dataclass(frozen=True, slots=True)
class Signs:
    """Counts over the texts in a participant's submitted units."""

    n_texts: int = 0
    """Number of texts of three words or more."""
    n_counted: int = 0
    """Number of these whose page could count."""
    n_pastes: int = 0
    n_leaves: int = 0
    """How often the page was left while one of them was being written."""
    n_noticed: int = 0
    """Number of texts that were pasted, or changed fewer times than they have words."""
    n_counted_by_others: int = 0
    n_noticed_of_others: int = 0

    @property
    def reason(self) -> str | None:
        """The reason why there is no rate."""
        if self.n_counted:
            return None
        return "no_script" if self.n_texts else "no_words"

    @property
    def rate(self) -> float | None:
        return self.n_noticed / self.n_counted if self.n_counted else None

    @property
    def rate_of_others(self) -> float | None:
        n = self.n_counted_by_others
        return self.n_noticed_of_others / n if n else None

    @property
    def stands_out(self) -> bool:
        """Return whether the number of flagged texts is unlikely by chance (below 1 in 100).

        The null hypothesis is that this person is like the others: Fisher's exact test, one-sided.
        """
        if self.n_noticed < 2:
            return False
        if not self.n_counted_by_others:
            return self.n_noticed == self.n_counted
        hypergeom = scipy("stats").hypergeom
        n = self.n_counted + self.n_counted_by_others
        k = self.n_noticed + self.n_noticed_of_others
        return bool(hypergeom.sf(self.n_noticed - 1, n, k, self.n_counted) < 0.01)


def keep_signs(
    connection: Connection, assignment_id: int, known: Iterable[Key], form: Mapping[str, str]
) -> None:
    """Store the counts sent by a page; they replace earlier ones from the same page load.

    known: the existing fields; anything else sent is ignored. Call within `Store.writing`.
    """
    load = form.get("load", "")
    if not _LOAD.fullmatch(load):
        return
    fields = set(known)
    given = [(name.removeprefix("n-"), value) for name, value in form.items() if name[:2] == "n-"]
    for name, value in given[:_MAX_FIELDS]:
        part, _, item = name.partition(":")
        found = _COUNTS.fullmatch(value)
        if found is None or (part, item) not in fields:
            continue
        row = {"assignment_id": assignment_id, "part": part, "item": item, "load": load}
        own = [signs.c[column] == wanted for column, wanted in row.items()]
        connection.execute(delete(signs).where(*own))
        n_pastes, n_leaves, n_keys = map(int, found.groups())
        connection.execute(
            insert(signs).values(
                **row, n_pastes=n_pastes, n_leaves=n_leaves, n_keys=n_keys, saved_ms=now_ms()
            )
        )


def _is_text(item: str, prose: Collection[str]) -> bool:
    return item.endswith(WHY) or item in prose


def signs_of_all(connection: Connection, design: StudyDesign) -> dict[int, Signs]:
    """Return the counts by participant, over the texts in submitted units."""
    rubrics = [design.rubric, *([design.group_rubric] if design.group_rubric else [])]
    items = [OWN, *(item for rubric in rubrics for item in rubric.items)]
    prose = {item.id for item in items if item.scale.form == "prose"}
    counted: dict[tuple[int, str, str], list[int]] = {}
    for row in connection.execute(select(signs)):
        sums = counted.setdefault((row.assignment_id, row.part, row.item), [0, 0, 0])
        for k, n in enumerate((row.n_pastes, row.n_leaves, row.n_keys)):
            sums[k] += n
    texts: dict[tuple[int, str, str], str] = {}
    owners: dict[int, int] = {}
    rows = connection.execute(
        select(
            assignments.c.participant_id,
            answers.c.assignment_id,
            answers.c.part,
            answers.c.item,
            answers.c.value,
        )
        .join(assignments, assignments.c.id == answers.c.assignment_id)
        .join(participants, participants.c.id == assignments.c.participant_id)
        .where(
            assignments.c.state == "done",
            participants.c.state.not_in(("removed", "forgotten")),
        )
        .order_by(answers.c.id)
    )
    for owner, assignment_id, part, item, value in rows:
        if not _is_text(item, prose):
            continue
        owners[assignment_id] = owner
        texts[assignment_id, part, item] = value or ""
    words = TextSettings()
    mine: dict[int, Counter[str]] = {}
    for key, text in texts.items():
        n_words = len(words.words(text))
        if n_words < _LEAST_WORDS:
            continue
        own = mine.setdefault(owners[key[0]], Counter())
        own["n_texts"] += 1
        if key not in counted:
            continue
        n_pastes, n_leaves, n_keys = counted[key]
        own["n_counted"] += 1
        own["n_pastes"] += n_pastes
        own["n_leaves"] += n_leaves
        own["n_noticed"] += n_pastes > 0 or n_keys < n_words
    n_all = sum(own["n_counted"] for own in mine.values())
    n_noticed = sum(own["n_noticed"] for own in mine.values())
    return {
        owner: Signs(
            **own,
            n_counted_by_others=n_all - own["n_counted"],
            n_noticed_of_others=n_noticed - own["n_noticed"],
        )
        for owner, own in mine.items()
    }

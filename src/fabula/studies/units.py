"""Units of documents for participants, and what must never reach their browser.

For stories side by side, which are shown together: two, or the four of which the best and the worst
are named (best-worst scaling; Louviere, Flynn and Marley 2015).
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from fabula.core.errors import InputError
from fabula.core.store import read_rows
from fabula.core.types import Document
from fabula.raters.labels import pair_key
from fabula.rubrics.released import STORIES_FILE, read_released_stories
from fabula.stats.ranking import Pair, drawn_pairs, least_pairs
from fabula.studies.design import StudyDesign
from fabula.text import TextSettings, check_ids, read_documents
from fabula.text.feedback_pieces import feedback_documents

Units = Mapping[str, "Unit"]
_SETS_A_STORY = 2
"""Sets per story. With twice as many sets of four as texts, rankings are as reliable as those from
many more ratings (Kiritchenko and Mohammad 2017)."""


@dataclass(frozen=True, slots=True)
class Unit:
    """The texts one participant reads at a time: a group's stories, or a story and its feedback."""

    key: str
    """Visible to the researcher only."""
    documents: tuple[Document, ...]
    facts: Mapping[str, object] = field(default_factory=dict)
    """Facts available to conditions; never sent to a browser."""
    stories: Mapping[str, str | None] = field(default_factory=dict)
    """The version of each story it reveals, None for several: who knows two knows the change."""
    n_versions: int = 0
    """Maximum number of versions of one story within the unit; 0 and 1 reveal nothing."""


def read_units(design: StudyDesign) -> list[Unit]:
    """Return the units of a study, in the order of its documents. Raises `InputError`."""
    path = design.documents
    if not path.exists():
        raise InputError(f"{design.path}: documents: {path} does not exist")
    if design.kind == "feedback":
        shows_original = any(item.reveals for item in design.rubric.items)
        units = [
            Unit(
                document.id,
                (document,),
                {n: document.meta.get(n) for n in design.rubric.facts},
                *_marks([document], is_feedback=True, shows_original=shows_original),
            )
            for document in feedback_documents(list(read_rows(path)), str(path))
        ]
    else:
        grouped: dict[str, list[Document]] = {}
        stories = _stories(path)
        check_ids(stories)
        for story in stories:
            if not TextSettings().has_words(story.text):
                raise InputError(f"{design.documents}: the story {story.id!r} contains no words")
            label = story.meta.get(design.group_field)
            if label is None and design.group_field == "prompt_id":
                label = story.prompt_id
            if label is None or not str(label).strip():
                raise NoGroup(
                    f"{design.documents}: the story {story.id!r} has no {design.group_field!r}; "
                    f"name the field that groups stories as group_field in {design.path}"
                )
            grouped.setdefault(str(label), []).append(story)
        groups: dict[str, Sequence[Document]] = dict(grouped)
        if design.kind == "pairs":
            size, listed = design.at_once, list(groups.values())
            for group, members in groups.items():
                where = f"{design.documents}: the group {group!r} contains only"
                if len(members) == 1:
                    raise InputError(
                        f"{where} one story, with nothing to compare it with; remove it, or name "
                        f"another group_field in {design.path}"
                    )
                if len(members) < size:
                    raise InputError(
                        f"{where} {len(members)} stories, and {size} are shown at a time; remove "
                        f"it, or set at_once = 2 in {design.path}"
                    )
            chosen: Sequence[Sequence[Document]] = (
                chosen_pairs(listed, design.max_pairs, design.seed)
                if size == 2
                else chosen_sets(listed, size, design.max_pairs, design.seed)
            )
            groups = {pair_key(*together): together for together in chosen}
        units = [Unit(key, tuple(texts), {}, *_marks(texts)) for key, texts in groups.items()]
    if not units:
        raise InputError(f"{path}: contains nothing to read")
    n_for_one = count_for_one_person(units, design.per_story)
    for name, number in design.people.asked_with.items() if design.kind != "ttcw" else ():
        if number > n_for_one:
            raise InputError(
                f"{design.path}: {name}: these documents give nobody that many units "
                f"({n_for_one:,} at most); raise per_story ({design.per_story}), or name an "
                "earlier one"
            )
    return units


def _marks(
    documents: Sequence[Document], *, is_feedback: bool = False, shows_original: bool = False
) -> tuple[Mapping[str, str | None], int]:
    """Return the stories that documents are versions of, and the most versions of any.

    Stories are keyed by their ids and by their words; each has the version that is read, or None
    for several. is_feedback: whether the documents are pieces of feedback, each with the story it
    is about. shows_original: whether the reader is finally shown the story before it was changed.
    """
    versions: dict[str, set[str]] = {}
    for document in documents:
        read = _digest(document.meta["story"] if is_feedback else document.text)
        original = _digest(document.meta.get("original", ""))
        marks = {f"text {read}", f"text {original or read}"}
        if "story_id" in document.meta:
            marks.add(f"id {document.meta['story_id']}")
        for mark in marks:
            versions.setdefault(mark, set()).add(read)
            if shows_original and original:
                versions[mark].add(original)
    only = {mark: next(iter(seen)) if len(seen) == 1 else None for mark, seen in versions.items()}
    return only, max(map(len, versions.values()))


def _digest(text: object) -> str:
    """Return a digest of the words; empty for none."""
    words = " ".join(str(text).split())
    return hashlib.sha256(words.encode(errors="replace")).hexdigest() if words else ""


class Seen:
    """Versions of each story that one person has read, and what they may still read."""

    def __init__(self, per_story: int, units: Iterable[Unit] = ()) -> None:
        self._per_story = per_story
        self._versions: dict[str, list[str | None]] = {}
        for unit in units:
            self.add(unit)

    def add(self, unit: Unit) -> None:
        for mark, version in unit.stories.items():
            self._versions.setdefault(mark, []).append(version)

    def allows(self, unit: Unit) -> bool:
        """Return whether the unit, with earlier ones, keeps secret what was done to each story."""
        for mark, version in unit.stories.items():
            seen = self._versions.get(mark, [])
            is_other = version is None or any(earlier != version for earlier in seen)
            if seen and (is_other or len(seen) >= self._per_story):
                return False
        return True


def count_for_one_person(units: Sequence[Unit], per_story: int = 1) -> int:
    """Return how many units one person can read before a story has been revealed to them."""
    seen, n = Seen(per_story), 0
    for unit in units:
        if seen.allows(unit):
            seen.add(unit)
            n += 1
    return n


def _stories(path: Path) -> list[Document]:
    if path.name == STORIES_FILE:
        return read_released_stories(path)
    return list(read_documents([str(path)]))


class NoGroup(InputError):  # noqa: N818 (names what is wrong)
    """A story does not name its group."""


def group_field_of(path: Path) -> str:
    """Return what groups stories: `group`, or their plot, as recorded by `fabula stories write`."""
    stories = _stories(path)
    has_groups = any("group" in story.meta for story in stories)
    is_written = all(story.prompt_id is not None for story in stories)
    return "prompt_id" if is_written and not has_groups else "group"


def pairs_within(sets: Sequence[Sequence[Document]]) -> dict[str, tuple[Document, Document]]:
    """Return all pairs of stories shown together, by the pair id that a judge uses."""
    return {pair_key(*two): two for group in sets for two in combinations(group, 2)}


def chosen_pairs(
    groups: Sequence[Sequence[Document]], n: int | None, seed: int
) -> list[tuple[Document, Document]]:
    """Return all pairs of stories within groups, or `n` of them.

    Pairs that connect the stories of each group are drawn first, using each story about equally
    often, then others at random. Raises `InputError`.
    """
    stories = [story for group in groups for story in group]
    starts = np.cumsum([0, *map(len, groups)]).tolist()
    every: list[Pair] = [pair for a, b in pairwise(starts) for pair in combinations(range(a, b), 2)]
    if n is not None and n < len(every):
        if n < (low := least_pairs(every)):
            raise InputError(f"max_pairs: at least {low:,} pairs are needed to connect all stories")
        every = sorted(drawn_pairs(every, n, np.random.default_rng([seed, 3])))
    return [(stories[a], stories[b]) for a, b in every]


def chosen_sets(
    groups: Sequence[Sequence[Document]], size: int, n: int | None, seed: int
) -> list[tuple[Document, ...]]:
    """Return sets of `size` stories of a group: all, or `n`, or twice as many as stories.

    Every story is in about the same number of sets, every pair in a group appears together about
    equally often, and all stories of a group are connected. Raises `InputError`.
    """
    drawn: list[tuple[Document, ...]] = []
    every = [sum(1 for _ in combinations(range(len(group)), size)) for group in groups]
    shares = [min(of, _SETS_A_STORY * len(group)) for of, group in zip(every, groups, strict=True)]
    if n is not None:
        shares = [-(-(len(group) - 1) // (size - 1)) for group in groups]
        if n < (low := sum(shares)):
            raise InputError(f"max_pairs: at least {low:,} sets are needed to connect all stories")
        # Add one at a time, to the group with the fewest sets for its size.
        for _ in range(min(n, sum(every)) - low):
            open_ = [k for k, share in enumerate(shares) if share < every[k]]
            shares[min(open_, key=lambda k: shares[k] / len(groups[k]))] += 1
    for group, share in zip(groups, shares, strict=True):
        places = [*combinations(range(len(group)), size)]
        if share < len(places):
            # Each group is drawn separately: its sets stay the same when other groups are added.
            crc = zlib.crc32("\n".join(story.id for story in group).encode(errors="replace"))
            rng = np.random.default_rng([seed, 4, crc])
            places = sorted(_balanced(len(group), size, share, rng))
        drawn += [tuple(group[place] for place in chosen) for chosen in places]
    return drawn


def _balanced(n_stories: int, size: int, n: int, rng: np.random.Generator) -> set[tuple[int, ...]]:
    """Return `n` different sets: first a connecting chain, then those least seen together."""
    used: Counter[int] = Counter()
    together: Counter[Pair] = Counter()
    sets: set[tuple[int, ...]] = set()

    def add(members: Sequence[int]) -> None:
        sets.add(tuple(sorted(members)))
        used.update(members)
        together.update(combinations(sorted(members), 2))

    order = rng.permutation(n_stories).tolist()
    for start in range(0, n_stories - 1, size - 1):
        add(order[min(start, n_stories - size) :][:size])
    while len(sets) < n:
        rank = rng.permutation(n_stories).tolist()
        members = [min(range(n_stories), key=lambda k: (used[k], rank[k]))]
        while len(members) < size:
            left = [k for k in range(n_stories) if k not in members]
            met = {k: sum(together[min(k, m), max(k, m)] for m in members) for k in left}
            members.append(min(left, key=lambda k: (met[k], used[k], rank[k])))
        while tuple(sorted(members)) in sets:
            # All least-seen sets have been drawn: any other is as good.
            members = rng.choice(n_stories, size, replace=False).tolist()
        add(members)
    return sets

"""Who reads what: balanced, nobody twice, nothing lost when somebody vanishes."""

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.commands import write_rows
from tests.studies.running import Make, Running, feedback_rows, tales

from fabula.core.errors import InputError
from fabula.studies import participants
from fabula.studies.assigning import Assignment, finish, next_assignment, workload_of
from fabula.studies.database import assignments
from fabula.studies.design import StudyDesign, load_study, new_study
from fabula.studies.platforms import join_from_platform
from fabula.studies.units import Unit, read_units


class Sharing:
    def __init__(self, study: Running, **changes: Any) -> None:
        self.design = replace(study.design, **changes)
        self.store = study.store
        self.units = {unit.key: unit for unit in study.units}

    def people(self, n: int) -> list[participants.Participant]:
        with self.store.writing() as connection:
            ids = [one.id for one in participants.invite(connection, [""] * n, "test")]
            for id_ in ids:
                participants.set_state(connection, id_, "ready", was="invited")
        return [participants.Participant(id_, "ready") for id_ in ids]

    def given(self, one: participants.Participant, *, done: bool = False) -> Assignment | None:
        """What somebody has before them, which is handed in where it is done."""
        with self.store.writing() as connection:
            found = next_assignment(connection, one, self.design, self.units, self.store)
            if done:
                finish(connection, found)
            return found

    def take(self, one: participants.Participant) -> str | None:
        found = self.given(one)
        return None if found is None else found.unit.key

    def read_all(self, one: participants.Participant) -> list[str]:
        """What somebody is given who reads all that they can."""
        keys = []
        while (key := self.take(one)) is not None:
            keys.append(key)
            self.given(one, done=True)
        return keys

    def let_pass(self, hours: float, one: participants.Participant | None = None) -> None:
        late = assignments.c.seen_ms - int(hours * 3_600_000)
        update = assignments.update().values(seen_ms=late)
        if one is not None:
            update = update.where(assignments.c.participant_id == one.id)
        with self.store.writing() as connection:
            connection.execute(update)


@pytest.fixture
def sharing(opened: Make, database: str) -> Callable[..., Sharing]:
    return lambda kind, rows, **changes: Sharing(opened(kind, rows, url=database), **changes)


@pytest.fixture
def running(sharing: Any) -> Sharing:
    """Three units by two people each, two a person."""
    # By these names the last of them is left none that they have had.
    rows = [row | {"group": row["id"][0]} for row in tales(3, 2)]
    return sharing("ttcw", rows, raters=2, per_participant=2)


def test_units_are_shared_out_evenly_and_to_nobody_twice(running: Sharing):
    *first, last = running.people(4)
    given = [running.take(one) for one in first]
    assert sorted(map(str, given)) == sorted(running.units), "first one each"
    assert running.take(first[0]) == given[0], "who comes again has what they had"
    for one in first:
        running.given(one, done=True)
    again = [running.take(one) for one in first]
    assert all(a != b for a, b in zip(given, again, strict=True))
    # All six places are taken.
    assert running.take(last) is None
    for one in first:
        running.given(one, done=True)
        assert running.take(one) is None, "two units a person"


def test_many_at_once_get_what_there_is_and_no_more(running: Sharing):
    with ThreadPoolExecutor(12) as pool:
        given = Counter(pool.map(running.take, running.people(24)))
    assert given.pop(None) == 24 - 6
    assert set(given.values()) == {2}


def test_one_worker_s_clicks_at_the_same_moment_are_one_participant(running: Sharing):
    def click(k: int) -> str:
        with running.store.writing() as connection:
            return join_from_platform(connection, f"worker-{k // 6}")

    with ThreadPoolExecutor(12) as pool:
        came = list(pool.map(click, range(36)))
    with running.store.reading() as connection:
        people = {participants.find_by_token(connection, token) for token in came}
    assert None not in people
    assert len(people) == 6


def test_what_its_holder_left_goes_to_another(running: Sharing):
    first, *others, last = running.people(7)
    taken = running.take(first)
    for one in others:
        running.take(one)
    assert running.take(last) is None
    running.let_pass(running.design.hours + 0.001, first)
    assert running.take(last) == taken
    # The one who vanished comes back: their place is taken, another unit is not.
    assert running.take(first) is None
    with running.store.writing() as connection:
        assert participants.remove(connection, last.id, "test") == 1
    assert running.take(first) == taken, "and has it again while it is wanted"
    with running.store.reading() as connection:
        states = connection.execute(
            select(assignments.c.state).where(assignments.c.participant_id == last.id)
        ).scalars()
        assert list(states) == ["removed"]


def test_the_forgotten_leave_nothing_but_their_number(running: Sharing):
    one, other = running.people(2)
    assert running.take(one) is not None
    with running.store.writing() as connection:
        participants.forget(connection, one.id, "test")
        with pytest.raises(InputError, match="no such participant"):
            participants.forget(connection, 99, "test")
    with running.store.reading() as connection:
        assert connection.execute(select(assignments)).all() == []
    assert running.take(other) is not None


def test_each_has_an_order_of_their_own_and_keeps_it(opened: Make):
    running = Sharing(opened("ttcw", tales(1, 4)), raters=60)
    orders = []
    for one in running.people(60):
        found = running.given(one)
        assert found == running.given(one)
        orders.append(found.order)
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    # Each story was read in each place as often, in many of the 24 orders: several squares.
    placed = Counter((k, place) for one in orders for k, place in enumerate(one))
    assert set(placed.values()) == {15}
    assert len(set(orders)) >= 12


PIECE = feedback_rows()[0]


def feedback(n_stories: int, *, with_ids: bool = True) -> list[dict[str, Any]]:
    """Feedback on each story as it was, with two sentences swapped, and with one left out."""
    rows = []
    for k in range(n_stories):
        original = f"Story {k} began. Then it went on.\nAt last it ended."
        changed = {"swap": f"Then it went on. Story {k} began.", "delete": f"Story {k} began."}
        for method, text in ({"original": original} | changed).items():
            # White space may differ where a story went through another program.
            before = original.replace("\n", " ") if method == "swap" else original
            rows.append(PIECE | {"id": f"{k}_{method}", "method": method, "story_id": f"s{k}",
                                 "story": text, "original": before})  # fmt: skip
            if not with_ids:
                del rows[-1]["story_id"]
    return rows


@pytest.mark.parametrize("with_ids", [True, False])
def test_nobody_is_given_two_versions_of_one_story(sharing: Any, with_ids: bool):
    rows = feedback(4, with_ids=with_ids)
    running = sharing("feedback", rows, raters=2, per_participant=90)
    given = [running.read_all(one) for one in running.people(6)]
    assert all(sorted(key.partition("_")[0] for key in keys) == list("0123") for keys in given)
    # Twelve pieces by two people each, four a person: six people read all of them.
    assert set(Counter(key for keys in given for key in keys).values()) == {2}


def test_a_story_that_was_given_back_still_counts_as_seen(sharing: Any):
    running = sharing("feedback", feedback(1), raters=1, per_participant=90)
    first, second = running.people(2)
    seen = running.take(first)
    running.let_pass(1e6)
    assert running.take(second) is not None
    running.let_pass(1e6)
    assert running.take(first) in (seen, None)


@pytest.mark.parametrize("marked", ["id", "original", "text"])
def test_nobody_reads_a_group_that_gives_a_story_away(sharing: Any, marked: str):
    whole, changed = "She went away. Then she came back.", "She went away."
    rows = [
        {"id": f"{group}{k}", "group": group, "author": "a", "text": f"Another story, {group}{k}."}
        for group in "abc" for k in range(2)
    ]  # fmt: skip
    # Groups a and b hold one story, as it was and shortened; c holds neither.
    rows[0] |= {"text": whole}
    rows[2] |= {"text": whole.replace(" ", "\n") if marked == "text" else changed}
    if marked == "id":
        rows[0] |= {"story_id": "s"}
        rows[2] |= {"story_id": "s"}
    if marked == "original":
        rows[2] |= {"original": whole}
    running = sharing("ttcw", rows, raters=2, per_participant=3)
    for given in map(running.read_all, running.people(4)):
        assert given
        assert not {"a", "b"} <= set(given)


def test_several_pieces_about_one_story_are_given_where_they_show_the_same_text(opened: Make):
    rows = [
        PIECE | {"id": story, "story_id": story, "method": method, "model": f"m{k}",
                 "feedback": f"Point {k}.", "original": f"{story} began.", "story": text}
        for story, method, text in (("one", "original", "one began."), ("two", "swap", "It ended."))
        for k in range(3)
    ]  # fmt: skip
    running = Sharing(opened("feedback", rows), raters=3, per_participant=90, per_story=2)
    for mine in map(running.read_all, running.people(3)):
        # Whoever read one piece on the changed story was shown how it was.
        assert Counter(key.partition("_")[0] for key in mine) == {"one": 2, "two": 1}


def fits(design: StudyDesign, units: list[Unit], story_of: dict[str, int], n: int) -> bool:
    """Slow oracle: whether some way to share out fills the design with n people, as a flow."""
    from scipy.sparse import lil_array
    from scipy.sparse.csgraph import maximum_flow

    stories = sorted(set(story_of.values()))
    place = {("source",): 0, ("sink",): 1}

    def node(*name: object) -> int:
        return place.setdefault(name, len(place))

    arcs = []
    for person in range(n):
        arcs.append((0, node("person", person), design.per_participant))
        for story in stories:
            arcs.append((node("person", person), node("reads", person, story), 1))
            arcs += [(node("reads", person, story), node("unit", unit.key), 1)
                     for unit in units if story_of[unit.key] == story]  # fmt: skip
    arcs += [(node("unit", unit.key), 1, design.raters) for unit in units]
    graph = lil_array((len(place), len(place)), dtype="int32")
    for a, b, capacity in arcs:
        graph[a, b] = capacity
    return int(maximum_flow(graph.tocsr(), 0, 1).flow_value) == design.raters * len(units)


def test_the_number_of_people_is_the_least_that_can_fill_a_design(tmp_path: Path):
    rng = random.Random(3)
    for trial in range(25):
        sizes = [rng.randint(1, 4) for _ in range(rng.randint(1, 6))]
        rows = [
            PIECE | {"id": f"{story}-{k}", "story_id": f"{story}", "story": f"{k} of {story}.",
                     "method": "swap" if k else "original", "original": f"0 of {story}."}
            for story, size in enumerate(sizes) for k in range(size)
        ]  # fmt: skip
        file = tmp_path / f"study{trial}.toml"
        new_study(file, "feedback", write_rows(file.with_suffix(".jsonl"), rows))
        design = replace(load_study(file), raters=rng.randint(1, 4),
                         per_participant=rng.randint(1, 5))  # fmt: skip
        units = read_units(design)
        story_of = {unit.key: int(str(unit.documents[0].meta["story_id"])) for unit in units}
        work = workload_of(design, units)
        assert fits(design, units, story_of, work.n_people)
        assert not fits(design, units, story_of, work.n_people - 1)
        assert work.n_people_shared_out >= work.n_people

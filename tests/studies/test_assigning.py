"""Who reads what: balanced, nobody twice, nothing lost when somebody vanishes."""

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select
from tests.commands import write_rows

from fabula.core.errors import InputError
from fabula.studies.assigning import finish, next_assignment, workload_of
from fabula.studies.database import Store, assignments
from fabula.studies.design import StudyDesign, load_study, new_study
from fabula.studies.participants import (
    Participant,
    find_by_token,
    forget,
    invite_each,
    remove,
    set_state,
)
from fabula.studies.platforms import join_from_platform
from fabula.studies.study_engine import open_store
from fabula.studies.units import Unit, read_units


def make_design(folder: Path, n_groups: int = 3, n_stories: int = 2) -> StudyDesign:
    rows = [
        {"id": f"{g}_{a}", "text": f"Story {g} of {a}. It ends.", "author": a, "group": str(g)}
        for g in range(n_groups)
        for a in ("GPT4", "NewYorker", "Claude", "GPT3.5")[:n_stories]
    ]
    write_rows(folder / "s.jsonl", rows)
    new_study(folder / "study.toml", "ttcw", folder / "s.jsonl")
    return load_study(folder / "study.toml")


@pytest.fixture
def running(tmp_path: Path, database: str) -> Iterator[tuple[StudyDesign, dict[str, Unit], Store]]:
    design = replace(make_design(tmp_path), raters=2, per_participant=2)
    units = read_units(design)
    store = open_store(design, units, database)
    yield design, {unit.key: unit for unit in units}, store
    store.close()


def people(store: Store, n: int) -> list[Participant]:
    with store.writing() as connection:
        ids = [one.id for one in invite_each(connection, [""] * n, "test")]
        for id_ in ids:
            set_state(connection, id_, "ready", was="invited")
    return [Participant(id_, "ready") for id_ in ids]


def take(running: tuple[StudyDesign, dict[str, Unit], Store], one: Participant) -> str | None:
    design, units, store = running
    with store.writing() as connection:
        found = next_assignment(connection, one, design, units, store)
        return None if found is None else found.unit.key


def hand_in(running: tuple[StudyDesign, dict[str, Unit], Store], one: Participant) -> None:
    design, units, store = running
    with store.writing() as connection:
        found = next_assignment(connection, one, design, units, store)
        finish(connection, found)


def test_units_are_shared_out_evenly_and_to_nobody_twice(
    running: tuple[StudyDesign, dict[str, Unit], Store],
):
    _, units, store = running
    everybody = people(store, 4)
    given = [take(running, one) for one in everybody[:3]]
    assert sorted(map(str, given)) == sorted(units), "first one each"
    assert take(running, everybody[0]) == given[0], "who comes again has what they had"
    for one in everybody[:3]:
        hand_in(running, one)
    again = [take(running, one) for one in everybody[:3]]
    assert all(a != b for a, b in zip(given, again, strict=True))
    # Three units by two people each are six places: all are taken.
    assert take(running, everybody[3]) is None
    for one in everybody[:3]:
        hand_in(running, one)
        assert take(running, one) is None, "two units a person"


def test_two_hundred_at_once_get_what_there_is_and_no_more(
    running: tuple[StudyDesign, dict[str, Unit], Store],
):
    _, _, store = running
    everybody = people(store, 24)
    with ThreadPoolExecutor(12) as pool:
        given = Counter(pool.map(lambda one: take(running, one), everybody))
    assert given.pop(None) == 24 - 6
    assert set(given.values()) == {2}


def test_one_worker_s_clicks_at_the_same_moment_are_one_participant(
    running: tuple[StudyDesign, dict[str, Unit], Store],
):
    _, _, store = running

    def click(k: int) -> str:
        with store.writing() as connection:
            return join_from_platform(connection, f"worker-{k // 6}")

    with ThreadPoolExecutor(12) as pool:
        came = list(pool.map(click, range(36)))
    with store.reading() as connection:
        people = {find_by_token(connection, token) for token in came}
    assert None not in people
    assert len(people) == 6


def test_what_its_holder_left_goes_to_another(running: tuple[StudyDesign, dict[str, Unit], Store]):
    design, units, store = running
    everybody = people(store, 7)
    given = [take(running, one) for one in everybody[:6]]
    assert take(running, everybody[6]) is None
    with store.writing() as connection:
        late = assignments.c.participant_id == everybody[0].id
        old = assignments.c.seen_ms - int(design.hours * 3_600_000) - 1000
        connection.execute(assignments.update().where(late).values(seen_ms=old))
    assert take(running, everybody[6]) == given[0]
    # The one who vanished comes back: their place is taken, another unit is not.
    assert take(running, everybody[0]) is None
    with store.writing() as connection:
        assert remove(connection, everybody[6].id, "test") == 1
    assert take(running, everybody[0]) == given[0], "and has it again while it is wanted"
    with store.reading() as connection:
        states = connection.execute(
            select(assignments.c.state).where(assignments.c.participant_id == everybody[6].id)
        ).scalars()
        assert list(states) == ["removed"]
    assert units


def test_the_forgotten_leave_nothing_but_their_number(
    running: tuple[StudyDesign, dict[str, Unit], Store],
):
    _, _, store = running
    one, other = people(store, 2)
    first = take(running, one)
    with store.writing() as connection:
        forget(connection, one.id, "test")
        with pytest.raises(InputError, match="no such participant"):
            forget(connection, 99, "test")
    with store.reading() as connection:
        assert connection.execute(select(assignments)).all() == []
    assert take(running, other) is not None
    assert first is not None


def test_each_has_an_order_of_their_own_and_keeps_it(tmp_path: Path):
    design = replace(make_design(tmp_path, 1, 4), raters=60)
    units = read_units(design)
    store, own = open_store(design, units), {units[0].key: units[0]}
    orders = []
    for one in people(store, 60):
        with store.writing() as connection:
            found = next_assignment(connection, one, design, own, store)
            again = next_assignment(connection, one, design, own, store)
        assert found == again
        orders.append(found.order)
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    # Each story was read in each place as often, in many of the 24 orders: several squares.
    placed = Counter((k, place) for one in orders for k, place in enumerate(one))
    assert set(placed.values()) == {15}
    assert len(set(orders)) >= 12
    firsts = Counter(order[0] for order in orders)
    assert set(firsts) == {0, 1, 2, 3}
    store.close()


def test_a_database_of_another_study_is_refused(tmp_path: Path, database: str):
    design = make_design(tmp_path)
    units = read_units(design)
    store = open_store(design, units, database)
    take((design, {unit.key: unit for unit in units}, store), people(store, 1)[0])
    store.close()
    open_store(design, units, database).close()
    with pytest.raises(InputError, match="another study"):
        open_store(replace(design, id="other"), units, database)
    open_store(replace(design, raters=9), units, database).close()
    with pytest.raises(InputError, match="differs in reason_words from the study"):
        open_store(replace(design, reason_words=9), units, database)
    random.Random(0).shuffle(units)
    open_store(design, units, database).close()
    with pytest.raises(InputError, match=r"differs in document .* the groups of documents from"):
        open_store(design, units[:-1], database)


def write_feedback(folder: Path, n_stories: int, *, with_ids: bool = True) -> StudyDesign:
    """Feedback on each story as it was, with two sentences swapped, and with one left out."""
    rows = []
    for k in range(n_stories):
        original = f"Story {k} began. Then it went on.\nAt last it ended."
        changed = {"swap": f"Then it went on. Story {k} began.", "delete": f"Story {k} began."}
        for method, text in ({"original": original} | changed).items():
            row = {
                "id": f"{k}_{method}", "method": method, "prompt": "spot", "shots": 0, "model": "m",
                "feedback": f"Point {k}.", "story": text,
                # White space may differ where a story went through another program.
                "original": original.replace("\n", " ") if method == "swap" else original,
            }  # fmt: skip
            rows.append(row | ({"story_id": f"s{k}"} if with_ids else {}))
    write_rows(folder / "f.jsonl", rows)
    new_study(folder / "study.toml", "feedback", folder / "f.jsonl")
    return load_study(folder / "study.toml")


@pytest.mark.parametrize("with_ids", [True, False])
def test_nobody_is_given_two_versions_of_one_story(
    tmp_path: Path, database: str, *, with_ids: bool
):
    design = replace(write_feedback(tmp_path, 4, with_ids=with_ids), raters=2, per_participant=90)
    units = read_units(design)
    store = open_store(design, units, database)
    running = design, {unit.key: unit for unit in units}, store
    try:
        n_given: Counter[str] = Counter()
        for one in people(store, 6):
            stories = []
            while (key := take(running, one)) is not None:
                stories.append(key.partition("_")[0])
                n_given[key] += 1
                hand_in(running, one)
            assert sorted(stories) == ["0", "1", "2", "3"]
        # Twelve pieces by two people each, four a person: six people read all of them.
        assert set(n_given.values()) == {2}
    finally:
        store.close()


def test_a_story_that_was_given_back_still_counts_as_seen(tmp_path: Path, database: str):
    design = replace(write_feedback(tmp_path, 1), raters=1, per_participant=90)
    units = read_units(design)
    store = open_store(design, units, database)
    running = design, {unit.key: unit for unit in units}, store
    try:
        first, second = people(store, 2)
        seen = take(running, first)
        with store.writing() as connection:
            connection.execute(assignments.update().values(seen_ms=0))
        assert take(running, second) is not None
        with store.writing() as connection:
            connection.execute(assignments.update().values(seen_ms=0))
        assert take(running, first) in (seen, None)
    finally:
        store.close()


def write_groups(folder: Path, rows: list[dict[str, str]]) -> StudyDesign:
    write_rows(folder / "s.jsonl", rows)
    new_study(folder / "study.toml", "ttcw", folder / "s.jsonl")
    return load_study(folder / "study.toml")


def readings(design: StudyDesign, database: str, n_people: int) -> list[list[str]]:
    """What each of so many people is given, one after the other, who read all that they can."""
    units = read_units(design)
    store = open_store(design, units, database)
    running = design, {unit.key: unit for unit in units}, store
    found = []
    try:
        for one in people(store, n_people):
            found.append([])
            while (key := take(running, one)) is not None:
                found[-1].append(key)
                hand_in(running, one)
    finally:
        store.close()
    return found


@pytest.mark.parametrize("marked", ["id", "original", "text"])
def test_nobody_reads_a_group_that_gives_away_a_story_of_another(
    tmp_path: Path, database: str, marked: str
):
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
    design = replace(write_groups(tmp_path, rows), raters=2, per_participant=3)
    for given in readings(design, database, 4):
        assert not {"a", "b"} <= set(given)
        assert given


def test_several_pieces_about_one_story_are_given_where_they_show_the_same_text(tmp_path: Path):
    rows = [
        {"id": story, "story_id": story, "method": method, "prompt": "spot", "shots": 0,
         "model": model, "feedback": f"Point of {model}.", "original": f"{story} began. It ended.",
         "story": f"{story} began. It ended." if method == "original" else f"It ended. {story}."}
        for story, method in (("one", "original"), ("two", "swap"))
        for model in ("m1", "m2", "m3")
    ]  # fmt: skip
    write_rows(tmp_path / "f.jsonl", rows)
    new_study(tmp_path / "study.toml", "feedback", tmp_path / "f.jsonl")
    design = replace(load_study(tmp_path / "study.toml"), raters=3, per_participant=90, per_story=2)
    given = readings(design, f"sqlite:///{tmp_path / 's.db'}", 3)
    for mine in given:
        stories = Counter(key.partition("_")[0] for key in mine)
        # Whoever read one piece on the changed story was shown how it was.
        assert stories == {"one": 2, "two": 1}


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
            {"id": f"{story}-{k}", "story_id": str(story), "method": "swap" if k else "original",
             "prompt": "spot", "shots": 0, "model": "m", "feedback": "Say more.",
             "story": f"Version {k} of {story}.", "original": f"Version 0 of {story}."}
            for story, size in enumerate(sizes) for k in range(size)
        ]  # fmt: skip
        folder = tmp_path / str(trial)
        folder.mkdir()
        write_rows(folder / "f.jsonl", rows)
        new_study(folder / "study.toml", "feedback", folder / "f.jsonl")
        design = replace(
            load_study(folder / "study.toml"), raters=rng.randint(1, 4),
            per_participant=rng.randint(1, 5),
        )  # fmt: skip
        units = read_units(design)
        story_of = {unit.key: int(str(unit.documents[0].meta["story_id"])) for unit in units}
        work = workload_of(design, units)
        assert fits(design, units, story_of, work.n_people)
        assert not fits(design, units, story_of, work.n_people - 1)
        assert work.n_people_shared_out >= work.n_people

"""Two stories side by side: who is shown which first, what is asked, and what comes of it."""

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.commands import invoke, refused, write_rows
from tests.studies.test_app import Running, hidden, make
from tests.studies_data import story_rows

from fabula.core.errors import InputError
from fabula.studies.app import create_app
from fabula.studies.assigning import balanced_order, williams_square
from fabula.studies.design import load_study, new_study
from fabula.studies.exporting import export
from fabula.studies.forms import TIE
from fabula.studies.job import analyse_pairs
from fabula.studies.quality import agreement_by_item, standings
from fabula.studies.study_engine import open_store
from fabula.studies.units import read_units

ITEMS = ("overall", "creativity", "prose")


@pytest.mark.parametrize("n", range(1, 8))
def test_in_a_square_each_is_read_in_each_place_and_after_each_other_as_often(n: int):
    rows = williams_square(n)
    placed = Counter((place, k) for row in rows for k, place in enumerate(row))
    after = Counter(pair for row in rows for pair in pairwise(row))
    assert len(placed) == n * n
    assert len(set(placed.values())) == 1
    assert len(after) == n * (n - 1)
    assert len(set(after.values())) <= 1


def test_orders_are_balanced_by_unit_and_by_reader():
    authors = ("GPT4", "Claude", "Marta", "Oskar")
    given: list[tuple[int, ...]] = []
    own: list[list[str]] = []
    for reader in range(8):
        order = balanced_order(authors, given, [], unit="u", reader=f"{reader}")
        given.append(order)
    assert set(Counter((p, k) for o in given for k, p in enumerate(o)).values()) == {2}
    # A reader of four groups by the same authors meets each of them in each place.
    for unit in range(4):
        order = balanced_order(authors, [], own, unit=f"{unit}", reader="r")
        own.append([authors[place] for place in order])
    assert max(Counter((a, k) for names in own for k, a in enumerate(names)).values()) <= 2
    assert balanced_order(("x",), [], [], unit="u", reader="r") == (0,)


@pytest.fixture
def pairs(opened: Callable[..., Running]) -> Running:
    return opened("pairs", story_rows(2, 3))


def preferring(reader: TestClient, better: str, item: str = "overall") -> None:
    """Somebody reads all that they are given, and prefers the stories of an author."""
    while True:
        page = reader.get("/")
        if "Begin</a>" in page.text:
            page = reader.get("/page/pair")
        if 'name="unit"' not in page.text:
            return
        # A tale's last digit is the place of its author in the rows.
        tales = re.findall(r"Tale \d(\d):", page.text)
        choice = "Story 2" if tales[1] == better else "Story 1"
        answers = {f"unit:{one}": choice if one == item else "Story 2" for one in ITEMS}
        page = reader.post("/page/pair", data=hidden(page) | answers | {"go": "finish"})
        assert "Sorry" not in page.text


def test_people_answer_which_of_two_and_the_order_is_balanced(pairs: Running):
    first = pairs.reader()
    page = first.get("/page/pair")
    assert page.text.count('<article class="story') == 2
    assert "Which of the two stories answers this better: Is this a good story" in page.text
    assert page.text.count('value="Story 1"') == page.text.count('value="Story 2"') == 3
    assert TIE not in page.text
    assert "Hand in" in page.text
    for reader in (first, *(pairs.reader() for _ in range(9))):
        preferring(reader, better="1")
    with pairs.store.reading() as connection:
        units = {unit.key: unit for unit in pairs.units}
        found = list(export(connection, pairs.design, units))
        people = standings(connection, pairs.design, found)
    assert {one.document_id for one in found} == set(units)
    by_pair: dict[str, Counter[int]] = {}
    for one in found:
        a, b = one.document_id.split(" : ")
        straight, turned = one.details["orders"]
        assert (straight is None) != (turned is None)
        # The answer says the same story, whichever was shown first.
        assert one.value == {"A": a, "B": b}[straight or {"A": "B", "B": "A"}[turned]]
        by_pair.setdefault(one.document_id, Counter())[straight is None] += 1
    assert all(abs(n[0] - n[1]) <= 3 for n in by_pair.values()), "an answer to each of three items"
    agreed = agreement_by_item(found, pairs.design)["overall"]
    assert agreed.n == len(units)
    assert agreed.alpha.value is None
    assert people[1].n_compared > 0
    assert 0 <= (people[1].agreement or 0) <= 1
    ranked = analyse_pairs(pairs.design, pairs.units, found, seed=0).to_json()
    stories = next(
        r for r in ranked["rankings"] if (r["ranking"], r["item"]) == ("story", "overall")
    )
    best = [one["name"] for one in stories["strengths"] if one["name"].endswith("GPT4")]
    assert len(best) == 2
    assert {"author", "story"} == {r["ranking"] for r in ranked["rankings"]}
    with_author = next(
        r for r in ranked["rankings"] if (r["ranking"], r["item"]) == ("author", "overall")
    )
    assert with_author["strengths"][0]["name"] == "GPT4"
    assert with_author["strengths"][0]["share"] == 1.0


def test_instructions_come_once_and_each_pair_follows_the_one_before(pairs: Running):
    reader = pairs.reader()
    assert "Before you begin" in reader.get("/").text
    page = reader.get("/page/pair")
    answers = {f"unit:{item}": "Story 1" for item in ITEMS}
    page = reader.post("/page/pair", data=hidden(page) | answers | {"go": "finish"})
    assert "Before you begin" not in page.text
    assert "Handed in. This is the next one." in page.text
    assert page.text.count('<article class="story') == 2


def test_a_study_of_pairs_is_made_analysed_and_exported_by_commands(tmp_path: Path):
    documents = write_rows(tmp_path / "s.jsonl", story_rows(2, 3))

    file = tmp_path / "p.toml"
    words = ["study", "new", file, "--design", "pairs", "--documents", documents, "--json"]
    made = json.loads(invoke(*words).stdout)
    # Three pairs in each of two groups; a person who reads a story once reads one of each.
    assert (made["n_units"], made["n_texts"], made["n_for_one_person"]) == (6, 6, 2)
    assert "nobody reads a story more than once" in made["notes"][0]
    invoke("study", "invite", file, 1)
    assert "nobody has handed in" in refused("study", "analyse", file)


def test_what_cannot_be_compared_is_refused(tmp_path: Path):
    documents = tmp_path / "s.jsonl"

    def made(rows: list[dict[str, Any]], changes: str = "") -> Any:
        write_rows(documents, rows)
        file = tmp_path / "p.toml"
        file.unlink(missing_ok=True)
        new_study(file, "pairs", documents)
        head, line, rest = file.read_text().partition("ties = false")
        file.write_text(head + (changes or line) + rest)
        return read_units(load_study(file))

    with pytest.raises(InputError, match="contains only one story"):
        made([*story_rows(1, 2), *story_rows(2, 1)[1:]])
    with pytest.raises(InputError, match="at least 6 pairs are needed"):
        made(story_rows(2, 4), "max_pairs = 5")
    units = made(story_rows(2, 4), "max_pairs = 9")
    assert len(units) == len({unit.key for unit in units}) == 9
    read = Counter(one.id for unit in units for one in unit.documents)
    assert len(read) == 8
    rubric = (tmp_path / "p.toml").read_text().replace('"comparison"', '"feedback_category"')
    (tmp_path / "q.toml").write_text(rubric)
    with pytest.raises(InputError, match="it cannot be asked about pairs"):
        load_study(tmp_path / "q.toml")


def test_neither_counts_as_half_for_each(tmp_path: Path):
    running = make(tmp_path, "pairs", story_rows(1, 2))
    text = running.design.path.read_text().replace("ties = false", "ties = true")
    running.store.close()
    running.design.path.write_text(text)
    (tmp_path / "study.db").unlink()
    design = load_study(running.design.path)
    running = Running(design, running.units, open_store(design, running.units), None)
    running.app = create_app(design, running.units, running.store, password="secret")
    for said in ("Story 1", "Story 1", TIE):
        reader = running.reader()
        page = reader.get("/page/pair")
        answers = {f"unit:{one}": said for one in ITEMS}
        assert (
            "You have finished"
            in reader.post("/page/pair", data=hidden(page) | answers | {"go": "finish"}).text
        )
    with running.store.reading() as connection:
        found = list(export(connection, design, {u.key: u for u in running.units}))
    running.store.close()
    assert [one.missing_reason for one in found].count("no_preference") == 3
    content = analyse_pairs(design, running.units, found, seed=0).to_json()
    assert [one["n_neither"] for one in content["items"]] == [1, 1, 1]
    shares = {one["name"]: one["share"] for one in content["rankings"][0]["strengths"]}
    # The first shown twice, in the two orders, and half a win each.
    assert shares == {"0_NewYorker": pytest.approx(0.5), "0_GPT4": pytest.approx(0.5)}
    assert np.isclose(content["items"][0]["first_share"] or 0, 1.0)

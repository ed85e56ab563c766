"""Two stories side by side, or four: who is shown which, what is asked, and what comes of it."""

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import combinations, pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.commands import invoke, write_rows
from tests.studies.running import Make, Running, send, tales

from fabula.core.errors import InputError
from fabula.core.types import Document, Measurement
from fabula.judging.pairs import rank_stories
from fabula.raters.labels import pair_key
from fabula.studies.assigning import balanced_order, williams_square
from fabula.studies.exporting import preferences, said_of
from fabula.studies.forms import TIE
from fabula.studies.job import analyse_pairs
from fabula.studies.quality import agreement_by_item, standings
from fabula.studies.units import chosen_sets, pairs_within

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


def test_a_reader_of_groups_by_the_same_authors_meets_each_in_each_place():
    authors = ("GPT4", "Claude", "Marta", "Oskar")
    own: list[list[str]] = []
    for unit in range(4):
        order = balanced_order(authors, [], own, unit=f"{unit}", reader="r")
        own.append([authors[place] for place in order])
    assert max(Counter((a, k) for names in own for k, a in enumerate(names)).values()) <= 2
    assert balanced_order(("x",), [], [], unit="u", reader="r") == (0,)


@pytest.fixture
def pairs(opened: Make) -> Running:
    return opened("pairs", tales(2, 3))


def answer(reader: TestClient, page: Any, answers: dict[str, str]) -> Any:
    return send(reader, "/page/pair", page, go="finish", **answers)


def reading_all(reader: TestClient, answers: Callable[[str], dict[str, str]]) -> None:
    """Somebody answers all that they are given."""
    while True:
        page = reader.get("/")
        if "Begin</a>" in page.text:
            page = reader.get("/page/pair")
        if 'name="unit"' not in page.text:
            return
        assert "Sorry" not in answer(reader, page, answers(page.text)).text


def preferring(page: str) -> dict[str, str]:
    """The stories of the second author are good; of the rest the second story is better."""
    # A tale's last digit is the place of its author in the rows.
    tales = re.findall(r"Tale \d(\d):", page)
    overall = {"unit:overall": "Story 2" if tales[1] == "1" else "Story 1"}
    return {f"unit:{one}": "Story 2" for one in ITEMS} | overall


def ranked_by(content: Any, what: str) -> list[dict[str, Any]]:
    """The strengths by what people find good."""
    return next(one["strengths"] for one in content["rankings"]
                if (one["ranking"], one["item"]) == (what, "overall"))  # fmt: skip


def test_people_answer_which_of_two_and_the_order_is_balanced(pairs: Running):
    first = pairs.reader()
    assert "Before you begin" in first.get("/").text
    page = first.get("/page/pair")
    assert page.text.count('<article class="story') == 2
    assert "Which of the two stories answers this better: Is this a good story" in page.text
    assert page.text.count('value="Story 1"') == page.text.count('value="Story 2"') == 3
    assert TIE not in page.text
    assert "Hand in" in page.text
    page = answer(first, page, preferring(page.text))
    assert "Before you begin" not in page.text
    assert "Handed in. This is the next one." in page.text
    assert page.text.count('<article class="story') == 2
    for reader in (first, *(pairs.reader() for _ in range(9))):
        reading_all(reader, preferring)
    found = pairs.measured()
    with pairs.store.reading() as connection:
        people = standings(connection, pairs.design, found)
    units = {unit.key for unit in pairs.units}
    assert {one.document_id for one in found} == units
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
    assert sum(one["name"].endswith("GPT4") for one in ranked_by(ranked, "story")) == 2
    assert {"author", "story"} == {r["ranking"] for r in ranked["rankings"]}
    (first, *_) = ranked_by(ranked, "author")
    assert (first["name"], first["share"]) == ("GPT4", 1.0)


def test_a_study_of_pairs_or_fours_is_made_by_command(tmp_path: Path):
    documents = write_rows(tmp_path / "s.jsonl", tales(2, 3))

    def new(kind: str, *more: str) -> str:
        words = "--design", kind, "--documents", documents, *more
        return invoke("study", "new", tmp_path / f"{kind}.toml", *words).stdout

    made = json.loads(new("pairs", "--json"))
    # Three pairs in each of two groups; a person who reads a story once reads one of each.
    assert (made["n_units"], made["n_texts"], made["n_for_one_person"]) == (6, 6, 2)
    assert "nobody reads a story more than once" in made["notes"][0]
    write_rows(documents, rows(1, 20))
    assert "(40 sets of four, 20 texts)" in new("best-worst")


def test_of_many_pairs_some_are_chosen_that_hold_every_story(opened: Make):
    units = opened("pairs", tales(2, 4), max_pairs=9).units
    assert len(units) == len({unit.key for unit in units}) == 9
    assert len({one.id for unit in units for one in unit.documents}) == 8


def test_neither_counts_as_half_for_each(opened: Make):
    running = opened("pairs", ties=True)
    for said in ("Story 1", "Story 1", TIE):
        reader = running.reader()
        done = answer(reader, reader.get("/page/pair"), {f"unit:{item}": said for item in ITEMS})
        assert "You have finished" in done.text
    found = running.measured()
    assert [one.missing_reason for one in found].count("no_preference") == 3
    content = analyse_pairs(running.design, running.units, found, seed=0).to_json()
    assert [one["n_neither"] for one in content["items"]] == [1, 1, 1]
    shares = {one["name"]: one["share"] for one in content["rankings"][0]["strengths"]}
    # The first shown twice, in the two orders, and half a win each.
    assert shares == {"0_NewYorker": pytest.approx(0.5), "0_GPT4": pytest.approx(0.5)}
    assert np.isclose(content["items"][0]["first_share"] or 0, 1.0)


def stories(n: int, group: str = "g") -> list[Document]:
    return [Document(f"{group}{k:02}", f"Tale {k:02}.", author="ab"[k % 2]) for k in range(n)]


def rows(n_groups: int, n: int) -> list[dict[str, Any]]:
    return [
        {"id": one.id, "text": one.text, "author": one.author, "group": f"g{g}"}
        for g in range(n_groups)
        for one in stories(n, f"g{g}-")
    ]


@given(n=st.integers(4, 24), more=st.integers(0, 30), seed=st.integers(0, 99))
def test_sets_connect_all_stories_and_each_is_in_about_as_many(n: int, more: int, seed: int):
    group = stories(n)
    least = -(-(n - 1) // 3)
    sets = chosen_sets([group], 4, least + more, seed)
    every = len(list(combinations(range(n), 4)))
    assert len(sets) == len({pair_key(*one) for one in sets}) == min(least + more, every)
    assert all(len({one.id for one in together}) == 4 for together in sets)
    reached = {sets[0][0].id}
    for _ in sets:
        for together in sets:
            ids = {one.id for one in together}
            reached |= ids if ids & reached else set()
    assert len(reached) == n
    used = Counter(one.id for together in sets for one in together)
    # The chain that connects them has a story twice for each of its links, and the last is filled;
    # of few stories nearly all sets are taken.
    assert max(used.values()) - min(used[one.id] for one in group) <= (4 if n < 10 else 3)
    assert sets == chosen_sets([group], 4, least + more, seed)


def test_without_a_number_there_are_twice_as_many_sets_as_stories_and_pairs_are_balanced():
    sets = chosen_sets([stories(20, "a"), stories(4, "b")], 4, None, 0)
    assert Counter(one[0].id[0] for one in sets) == {"a": 40, "b": 1}
    together = Counter(key for one in sets for key in pairs_within([one]) if key[0] == "a")
    # 40 sets have 240 pairs; of 190 that there are hardly one is left out.
    assert len(together) >= 180
    assert max(together.values()) <= 3
    with pytest.raises(InputError, match="at least 8 sets are needed"):
        chosen_sets([stories(20, "a"), stories(4, "b")], 4, 7, 0)


def test_what_is_drawn_of_a_group_stays_when_others_are_added():
    groups = [stories(7, g) for g in "abc"]
    alone = chosen_sets(groups[1:2], 4, None, seed=3)
    assert len(alone) == 14
    together = {pair_key(*one) for one in chosen_sets(groups, 4, None, seed=3)}
    assert {pair_key(*one) for one in alone} <= together


@given(order=st.permutations(range(4)), ends=st.permutations(range(4)))
def test_an_answer_says_what_a_ranking_with_these_ends_says(order: list[int], ends: list[int]):
    """The oracle: of all 24 rankings those that begin and end so, and what they have in common."""
    best, worst, *_ = ends
    fitting = [r for r in permutations(range(4)) if r[0] == best and r[-1] == worst]
    pairs = permutations(range(4), 2)
    common = {(a, b) for a, b in pairs if all(r.index(a) < r.index(b) for r in fitting)}
    assert set(preferences(best, worst, 4)) == common
    assert len(common) == 5
    assert set(preferences(best, None, 4)) == {(best, k) for k in range(4) if k != best}
    assert list(preferences(None, None, 4)) == []
    for winner, loser in common:
        pair = (min(winner, loser), max(winner, loser))
        straight, turned = said_of(pair, winner, order)
        shown = sorted(pair, key=order.index)
        assert (straight is None) == (shown != list(pair))
        assert shown["AB".index(straight or turned or "")] == winner


@pytest.fixture
def fours(opened: Make) -> Running:
    return opened("best-worst", rows(2, 5), raters=2)


def answering(page: str) -> dict[str, str]:
    """The later of two stories is always the better one."""
    tales = [int(found) for found in re.findall(r"Tale (\d\d)\.", page)]
    said = {"best": max(tales), "worst": min(tales)}
    return {f"{which}:{item}": f"Story {tales.index(tale) + 1}"
            for which, tale in said.items() for item in ITEMS}  # fmt: skip


def test_people_name_the_best_and_the_worst_and_the_ranking_follows(fours: Running):
    first = fours.reader()
    page = first.get("/page/pair")
    assert page.text.count('<article class="story') == 4
    assert "Which of the four stories answers this best: Is this a good story" in page.text
    assert "And which of them answers it worst?" in page.text
    for reader in (first, *(fours.reader() for _ in range(24))):
        reading_all(reader, answering)
    found = fours.measured()
    by_answer = Counter((one.rater, one.item, str(one.details["unit"])) for one in found)
    assert set(by_answer.values()) == {5}
    assert all(one.value == max(one.document_id.split(" : ")) for one in found)
    known = pairs_within([unit.documents for unit in fours.units])
    assert {one.document_id for one in found} <= set(known)
    analysed = analyse_pairs(fours.design, fours.units, found, seed=0)
    content = analysed.to_json()
    assert content["at_once"] == 4
    assert [one["n"] for one in content["items"]] == [len(by_answer) // 3] * 3
    assert "cluster" in json.dumps(content["rankings"])
    names = [one["name"] for one in ranked_by(content, "story")]
    for group in ("g0", "g1"):
        mine = [name for name in names if name.startswith(group)]
        assert mine == sorted(mine, reverse=True)
    assert agreement_by_item(found, fours.design)["overall"].similarity == 1.0
    with fours.store.reading() as connection:
        people = standings(connection, fours.design, found)
    assert any(one.agreement == 1.0 for one in people)


def test_the_same_story_cannot_be_both_and_a_half_answer_says_half(fours: Running):
    reader = fours.reader()
    page = reader.get("/page/pair")
    answers = answering(page.text)
    answers["worst:overall"] = answers["best:overall"]
    sent = answer(reader, page, answers)
    assert "cannot be both the best and the worst" in sent.text
    of_item = [one for one in fours.measured(unfinished=True) if one.item == "overall"]
    assert [one.missing_reason for one in of_item] == [None, None, None, "no_answer"]
    assert of_item[-1].document_id == of_item[-1].details["unit"]
    assert fours.measured() == []


def test_without_a_difference_5_percent_are_told_from_chance(monkeypatch: pytest.MonkeyPatch):
    """Answers at random by people who agree more than chance would have it (a set's own noise)."""
    monkeypatch.setattr("fabula.stats.ranking._N_RESAMPLES", 200)
    n_told, n_trials = 0, 100
    group = stories(8)
    sets = chosen_sets([group], 4, None, 0)
    pairs = list(pairs_within(sets).values())
    rng = np.random.default_rng(7)
    for _ in range(n_trials):
        found = []
        for together in sets:
            shared = rng.normal(size=4)
            for rater in range(3):
                liked = shared + rng.normal(size=4)
                order = rng.permutation(4).tolist()
                for winner, loser in preferences(int(liked.argmax()), int(liked.argmin()), 4):
                    pair = (min(winner, loser), max(winner, loser))
                    two = [together[place] for place in pair]
                    details = {"unit": pair_key(*together), "orders": said_of(pair, winner, order)}
                    found.append(Measurement(
                        pair_key(*two), "r", "overall", f"p{rater}", together[winner].id, None, (),
                        None, "s", details,
                    ))  # fmt: skip
        (ranking,) = rank_stories(found, pairs, None, seed=0, cluster="unit")
        n_told += ranking.ranking.is_told_from_chance
    # 5 expected of 100; a binomial at 5 % has more than 13 with a probability of 0.0005.
    assert 1 <= n_told <= 13

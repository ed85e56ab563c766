"""Four stories at a time: which are shown together, what is asked, and what an answer says."""

import json
import re
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.commands import invoke, write_rows
from tests.studies.test_app import Running, hidden

from fabula.core.errors import InputError
from fabula.core.types import Document, Measurement
from fabula.judging.pairs import rank_stories
from fabula.studies.design import load_study, new_study
from fabula.studies.exporting import export, preferences, said_of
from fabula.studies.job import analyse_pairs
from fabula.studies.quality import agreement_by_item, standings
from fabula.studies.units import chosen_sets, pair_key, pairs_within, read_units

ITEMS = ("overall", "creativity", "prose")


def stories(n: int, group: str = "g") -> list[Document]:
    return [Document(f"{group}{k:02}", f"Tale {k:02}.", author="ab"[k % 2]) for k in range(n)]


def rows(n_groups: int, n: int) -> list[dict[str, Any]]:
    return [
        {"id": one.id, "text": one.text, "author": one.author, "group": f"g{g}"}
        for g in range(n_groups)
        for one in stories(n, f"g{g}-")
    ]


@given(n=st.integers(4, 24), more=st.integers(0, 30), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
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
    # The chain that connects them has a story twice for each of its links, and the last is filled.
    assert max(used.values()) - min(used[one.id] for one in group) <= 3
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
    assert {pair_key(*one) for one in alone} <= {
        pair_key(*one) for one in chosen_sets(groups, 4, None, seed=3)
    }


@given(order=st.permutations(range(4)), best=st.integers(0, 3), worst=st.integers(0, 3))
def test_an_answer_says_what_a_ranking_with_this_best_and_worst_must_say(
    order: list[int], best: int, worst: int
):
    """The oracle: of all 24 rankings those that begin and end so, and what they have in common."""
    if best == worst:
        return
    from itertools import permutations

    fitting = [r for r in permutations(range(4)) if r[0] == best and r[-1] == worst]
    common = {
        (a, b)
        for a, b in permutations(range(4), 2)
        if all(r.index(a) < r.index(b) for r in fitting)
    }
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
def fours(opened: Any) -> Any:
    return opened("best-worst", rows(2, 6))


def answering(page: Any, item: str = "overall") -> dict[str, str]:
    """The later of two stories is always the better one."""
    tales = [int(found) for found in re.findall(r"Tale (\d\d)\.", page.text)]
    best = f"Story {tales.index(max(tales)) + 1}"
    worst = f"Story {tales.index(min(tales)) + 1}"
    return {f"best:{one}": best for one in ITEMS} | {f"worst:{one}": worst for one in ITEMS}


def reading_all(reader: TestClient) -> int:
    n = 0
    while True:
        page = reader.get("/")
        if "Begin</a>" in page.text:
            page = reader.get("/page/pair")
        if 'name="unit"' not in page.text:
            return n
        sent = reader.post("/page/pair", data=hidden(page) | answering(page) | {"go": "finish"})
        assert "Sorry" not in sent.text
        n += 1


def measured(running: Running, *, unfinished: bool = False) -> list[Measurement]:
    with running.store.reading() as connection:
        units = {unit.key: unit for unit in running.units}
        return list(export(connection, running.design, units, unfinished=unfinished))


def test_people_name_the_best_and_the_worst_and_the_ranking_follows(fours: Running):
    first = fours.reader()
    page = first.get("/page/pair")
    assert page.text.count('<article class="story') == 4
    assert "Which of the four stories answers this best: Is this a good story" in page.text
    assert "And which of them answers it worst?" in page.text
    for reader in (first, *(fours.reader() for _ in range(40))):
        reading_all(reader)
    found = measured(fours)
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
    ranked = next(r for r in content["rankings"] if r["ranking"] == "story")
    names = [one["name"] for one in ranked["strengths"]]
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
    answers = answering(page) | {"worst:overall": answering(page)["best:overall"]}
    sent = reader.post("/page/pair", data=hidden(page) | answers | {"go": "finish"})
    assert "cannot be both the best and the worst" in sent.text
    of_item = [one for one in measured(fours, unfinished=True) if one.item == "overall"]
    assert [one.missing_reason for one in of_item] == [None, None, None, "no_answer"]
    assert of_item[-1].document_id == of_item[-1].details["unit"]
    assert measured(fours) == []


def test_a_set_is_as_large_as_its_group_allows(tmp_path: Path):
    documents = write_rows(tmp_path / "s.jsonl", rows(1, 3))
    new_study(tmp_path / "s.toml", "best-worst", documents)
    with pytest.raises(InputError, match="contains only 3 stories, and 4 are shown"):
        read_units(load_study(tmp_path / "s.toml"))
    text = (tmp_path / "s.toml").read_text()
    (tmp_path / "t.toml").write_text(text.replace("at_once = 4", "at_once = 4\nties = true"))
    with pytest.raises(InputError, match="the best and the worst are always named"):
        load_study(tmp_path / "t.toml")


def test_the_command_makes_a_study_of_fours(tmp_path: Path):
    documents = write_rows(tmp_path / "s.jsonl", rows(1, 20))
    made = invoke(
        "study", "new", tmp_path / "s.toml", "--design", "best-worst", "--documents", documents
    )
    assert "(40 sets of four, 20 texts)" in made.output


def test_without_a_difference_five_rankings_in_a_hundred_are_told_from_chance(
    monkeypatch: pytest.MonkeyPatch,
):
    """Answers that are best and worst at random, three people to a set, who agree more than chance
    would have it (a set's own noise): a test by set holds its level.
    """
    monkeypatch.setattr("fabula.stats.ranking._N_RESAMPLES", 200)
    n_told, n_trials = 0, 200
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
                    found.append(
                        Measurement(
                            pair_key(*two), "r", "overall", f"p{rater}", together[winner].id, None,
                            (), None, "s", details,
                        )
                    )  # fmt: skip
        (ranking,) = rank_stories(found, pairs, None, seed=0, cluster="unit")
        n_told += ranking.ranking.is_told_from_chance
    # 10 expected of 200; the 99.9 % interval of a binomial at 5 % is 2 to 21.
    assert 2 <= n_told <= 21

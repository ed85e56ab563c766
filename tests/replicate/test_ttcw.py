import json
from pathlib import Path

import numpy as np
import pytest

from fabula.core.errors import InputError
from fabula.raters.agreement import read_experts
from fabula.replicate.tables import load_printed, printed_table
from fabula.replicate.ttcw import AUTHORS, FLEISS, Replica, replica_tables, replicate_ttcw
from fabula.rubrics.load import load_rubric
from fabula.rubrics.released import split_story_id
from fabula.show.sheet import render
from fabula.stats.agreement import fleiss_parts, fleiss_sums, ratios

TABLE = printed_table("ttcw", "Table 5").items()
PRINTED = {int(index): row for index, row in TABLE if index.isdigit()}


@pytest.fixture(scope="module")
def replica(shared_data: Path) -> Replica:
    return replicate_ttcw(shared_data / "ttcw")


def test_all_56_pass_rates_are_as_printed(replica: Replica):
    # Table 5 of the paper, to 0.1.
    printed = {(author, index): row[author] for index, row in PRINTED.items() for author in AUTHORS}
    assert len(printed) == 56
    assert printed == {(a, k): round(replica.pass_rate[a][k], 1) for a, k in printed}


def test_all_14_kappas_and_their_correlation_are_as_printed_without_one_group(replica: Replica):
    # Table 5: Fleiss kappa to two decimals.
    assert {k: round(v or 0, 2) for k, v in replica.fleiss.items()} == {
        index: row[FLEISS] for index, row in PRINTED.items()
    }
    same = [k for k, v in replica.fleiss_all.items() if round(v or 0, 2) == PRINTED[k][FLEISS]]
    assert same == [5, 10, 14]
    # Section 5.4.2: 0.69.
    assert round(replica.pearson or 0, 2) == round(replica.pearson_all or 0, 2) == 0.69


def test_no_other_choice_of_groups_gives_the_printed_kappas(shared_data: Path):
    rubric = load_rubric("ttcw")
    panel = read_experts(shared_data / "ttcw" / "ttcw_annotations.json", rubric)
    groups = [split_story_id(story)[0] for story, _ in panel.subjects]
    names = sorted(set(groups), key=int)
    # All 4,095 choices at once: which groups are in, as rows of 0 and 1.
    choices = (np.arange(1, 1 << len(names))[:, None] >> np.arange(len(names))) & 1
    good = np.ones(len(choices), bool)
    for item in rubric.items:
        places = [k for k, (_, of_item) in enumerate(panel.subjects) if of_item == item.id]
        sums = fleiss_sums(panel.ratings[places])
        member = np.array([[groups[place] == name for place in places] for name in names])
        with np.errstate(all="ignore"):
            kappas = ratios(*fleiss_parts(choices @ (member.astype(float) @ sums)))
        good &= np.abs(kappas - PRINTED[item.index][FLEISS]) < 0.00501
    (choice,) = choices[good]
    assert [name for name, chosen in zip(names, choice, strict=True) if not chosen] == ["2"]


def test_released_judges_are_counted_with_what_they_owe(replica: Replica):
    # README of the data: gemini-pro has 658 rows, 50 of them blocked; claudev2 has one refusal.
    judges = {judge.name: judge for judge in replica.judges}
    assert len(judges) == 7
    assert judges["gemini-pro"].missing == {"blocked": 50, "not_in_file": 14}
    assert judges["gemini-pro"].n_answers == 608
    assert judges["claudev2"].missing == {"refusal": 1}
    # Figures named in the research notes: balanced accuracy of Claude 3 Opus 0.58.
    assert judges["claude3-opus"].balanced_accuracy == pytest.approx(0.58, abs=5e-3)


def test_the_distribution_counts_every_assessment(replica: Replica):
    for author, counts in replica.passed.items():
        assert sum(counts.values()) == 36, author
        mean = sum(passed * n for passed, n in counts.items()) / 36 / 14
        rates = replica.pass_rate[author].values()
        assert 100 * mean == pytest.approx(sum(rates) / 14)


def test_the_tables_mark_what_differs(replica: Replica, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    experts, _, judges = render(*replica_tables(replica)).partition("Table 6: judges")
    (marked,) = [line for line in experts.splitlines() if ") !" in line]
    assert "27.8 (27.9) !" in marked
    assert "59 of 60 agree" in experts
    assert "15 of 15 agree" in experts
    assert "7 of 45 agree" in judges
    assert "-0.046 (0.016) !" in judges


def test_every_printed_number_is_a_claim(replica: Replica):
    claims = {(one.table, one.row, one.column): one for one in replica.claims}
    assert {place: one.printed for place, one in claims.items()} == load_printed("ttcw")
    assert len(claims) == 121
    differing = {place for place, one in claims.items() if one.differs}
    average = "Table 5", "average", "GPT4"
    assert [place for place in differing if place[0] != "Table 6"] == [average]
    assert "not the mean of its own printed column" in claims[average].why
    assert all(claims[place].why for place in differing)
    data = json.loads(json.dumps(replica.to_json()))
    assert data["claims"] == [one.to_json() for one in replica.claims]
    assert list(data["pass_rate"]) == list(AUTHORS)
    assert list(data["judges"]["gpt4"]) == [str(k) for k in range(1, 15)]


def test_judges_that_are_not_there_are_missing(shared_data: Path, tmp_path: Path):
    (tmp_path / "llm_judges").mkdir()
    for name in ("ttcw_annotations.json", "llm_judges/annotations_gpt4.jsonl"):
        (tmp_path / name).symlink_to(shared_data / "ttcw" / name)
    found = replicate_ttcw(tmp_path)
    missing = [one for one in found.claims if one.computed is None]
    assert {one.column for one in missing} == {"cgpt", "claudev13"}
    assert all(one.differs is None and "no answers" in one.why for one in missing)
    shown = " ".join(render(*replica_tables(found)).split())
    assert "missing: 30 of 45, no answers" in shown
    assert "Figure 4 (ranking and supposed origin): the release has no such data" in shown


def test_another_folder_says_what_it_lacks(tmp_path: Path):
    with pytest.raises(InputError, match=r"ttcw_annotations\.json"):
        replicate_ttcw(tmp_path)

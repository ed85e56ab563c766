"""Which answers find a planted fault: by what they point at, by a judge, and against people."""

import json
import random
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import invoke, rows_of, write_rows
from tests.serving import prompt_of, serving

import fabula as fb
from fabula.core.errors import InputError
from fabula.feedback import fault_matches
from fabula.feedback.eliciting import PERFECT
from fabula.feedback.fault_matches import fault_places, read_findings, score_findings
from fabula.feedback.written_faults import Edit, apply_edits

ORIGINAL = (
    "The lamp went out at nine. Nobody in the house spoke of it. Then the rain began. "
    "Marta counted the cups on the shelf. At last somebody knocked."
)
REFUSAL = "I’m sorry, but I can’t help with that request."


def sentences_of(text: str) -> list[tuple[int, int]]:
    """By full stops: these stories have no others."""
    return [match.span() for match in re.finditer(r"[^ .][^.]*\.", text)]


S = sentences_of(ORIGINAL)


def row(
    number: int, method: str, feedback: str | None, *, model: str = "m", **more: Any
) -> dict[str, Any]:
    edits = {
        "original": [],
        # The second and the third sentence change places; the fourth goes; a name changes.
        "swap": [Edit(*S[1], ORIGINAL[slice(*S[2])]), Edit(*S[2], ORIGINAL[slice(*S[1])])],
        "delete": [Edit(S[3][0], S[4][0], "")],
        "name": [Edit(S[3][0], S[3][0] + 5, "Clara")],
    }[method]
    story, record = apply_edits(ORIGINAL, edits)
    change: dict[str, Any] = {"edits": record, "what": "It was changed."}
    if method == "name":
        change |= {"old": "Marta", "new": "Clara"}
    return {
        "id": f"s{number}_{method}_spot_0", "story_id": f"s{number}", "method": method,
        "prompt": "spot", "shots": 0, "model": model, "feedback": feedback,
        "missing_reason": None if feedback else "blocked", "story": story, "original": ORIGINAL,
        "change": change, "signature": "feedback|by:hand",
    } | more  # fmt: skip


@pytest.mark.parametrize(
    ("method", "feedback", "rule"),
    [
        ("swap", "“Nobody in the house” has nothing to refer to here.", "exact"),
        ("swap", '- **the rain began**: it comes too early', "exact"),
        ("swap", "It is odd that nobody in the house spoke of it so late.", "near"),
        ("swap", "The second and third sentences should change places.", "near"),
        ("swap", "Sentences 1 to 3 do not follow.", "near"),
        ("swap", "The first sentence is dull.", None),
        ("swap", "“The lamp went out” is a cliché.", None),
        ("swap", "The order of events is confusing.", None),
        ("delete", "“At last somebody knocked” comes out of nowhere.", "exact"),
        ("delete", "Something is missing after “Nobody in the house spoke of it”.", None),
        ("delete", "Something is missing after “Then the rain began”.", "exact"),
        ("delete", "The last sentence comes too soon.", "near"),
        ("name", "Who is Clara? She was called Marta before.", "near"),
        ("name", "Clara needs a reason to count.", None),
        ("name", "“Clara counted the cups”: a new name?", "exact"),
    ],
)  # fmt: skip
def test_an_answer_finds_the_place_it_points_at(method: str, feedback: str, rule: str | None):
    (found,) = read_findings([row(1, method, feedback)], sentences_of).answers
    assert (found.found, found.rule) == (rule is not None, rule)
    assert found.names_fault


@pytest.mark.parametrize(
    ("feedback", "reason", "names_fault"),
    [
        (None, "blocked", None), (REFUSAL, "refused", None), ("Hm.", "no_point", None),
        (ORIGINAL, "no_point", None), (PERFECT, None, False), (f"- {PERFECT}", None, False),
        (f"{PERFECT}\n- But the first sentence is dull.", None, True),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_missing_and_never_a_miss(
    feedback: str | None, reason: str | None, names_fault: bool | None
):
    """A story repeated word for word points at every place, and says nothing of any."""
    found = read_findings([row(1, "swap", feedback)], sentences_of)
    assert [why for _, why in found.missing] == ([] if reason is None else [reason])
    assert [one.names_fault for one in found.answers] == ([] if reason else [names_fault])


def test_a_gap_is_at_the_sentences_beside_it_and_a_record_is_of_its_text():
    changed = row(1, "delete", "x")
    spans = sentences_of(changed["story"])
    places = fault_places(changed["story"], ORIGINAL, changed["change"], spans)
    beside = ["Then the rain began.", "At last somebody knocked."]
    assert [changed["story"][a:b] for a, b in places] == beside
    # Without a record, the texts are compared.
    assert fault_places(changed["story"], ORIGINAL, {}, spans) == places
    with pytest.raises(InputError, match="belongs to another text"):
        fault_places(ORIGINAL.upper(), None, row(1, "swap", "x")["change"], spans)
    with pytest.raises(InputError, match="no recorded change"):
        fault_places(ORIGINAL, None, {}, spans)


@pytest.mark.parametrize("seed", range(20))
def test_chance_is_the_share_of_all_ways_to_place_the_stretches(seed: int):
    """Against a count of every way to put every stretch somewhere."""
    rng = random.Random(seed)
    n = 14

    def drawn(k: int) -> list[tuple[int, int]]:
        edges = sorted(rng.sample(range(n + 1), 2 * k))
        return list(zip(edges[::2], edges[1::2], strict=True))

    spans, places = drawn(rng.randint(1, 3)), drawn(rng.randint(1, 2))
    ways = list(product(*(range(n - (b - a) + 1) for a, b in spans)))
    hit = [
        any(
            s < d and c < s + b - a for s, (a, b) in zip(one, spans, strict=True) for c, d in places
        )
        for one in ways
    ]
    assert fault_matches._chance(spans, places, n) == pytest.approx(np.mean(hit))


HIT = "“Then the rain began” comes too early."
MISS = "The first sentence is dull."


def answers_of(seed: int = 0, n: int = 12) -> list[dict[str, Any]]:
    """Answers whose truth is known: each finds, misses, praises, refuses, or is not there."""
    rng = random.Random(seed)
    said = {"swap": [HIT, MISS, PERFECT, REFUSAL, "Hm."], "original": [MISS, PERFECT, None]}
    return [
        row(k, method, rng.choice(said[method]), model=model)
        for k, method, model in product(range(n), said, ("a", "b"))
    ]


def test_every_measure_is_that_of_a_plain_count():
    rows = answers_of(n=24)
    findings = read_findings(rows, sentences_of)
    scores = list(score_findings(findings, [(), ("model",), ("model", "method")]))
    for score in scores:
        mine = [one for one in rows if all(one[k] == v for k, v in score.where.items())]
        there = [one for one in mine if one["feedback"] in (HIT, MISS, PERFECT)]
        changed = [one for one in there if one["method"] == "swap"]
        whole = [one for one in there if one["method"] == "original"]
        hits = sum(one["feedback"] == HIT for one in changed)
        named = sum(one["feedback"] != PERFECT for one in there)
        values = {name: one.value for name, one in score.values.items()}
        assert (score.n_changed, score.n_original) == (len(changed), len(whole))
        assert sum(score.missing.values()) == len(mine) - len(there)
        expected: dict[str, Any] = dict.fromkeys(("recall", "recall_at_least", "false_alarms"))
        if changed:
            asked = sum(one["method"] == "swap" for one in mine)
            recall, precision = hits / len(changed), hits / named
            expected |= {"recall": recall, "recall_at_least": hits / asked, "precision": precision}
            if hits and whole:
                expected["f1"] = 2 * recall * precision / (recall + precision)
        if whole:
            expected["false_alarms"] = sum(one["feedback"] == MISS for one in whole) / len(whole)
        assert {name: values[name] for name in expected} == pytest.approx(expected)
    overall = scores[0].values["recall"]
    assert overall.n_units == len({one.story for one in findings.answers if one.found is not None})
    assert overall.low is not None


def test_models_are_compared_on_what_both_answered():
    rows = answers_of(n=30)
    (recall, alarms) = fault_matches.compare_models(read_findings(rows, sentences_of))
    by = [[r["feedback"] for r in rows if r["model"] == m and r["method"] == "swap"] for m in "ab"]
    both = [two for two in zip(*by, strict=True) if {*two} <= {HIT, MISS, PERFECT}]
    assert recall.details["n_answers"] == len(both)
    expected = sum((x == HIT) - (y == HIT) for x, y in both) / len(both)
    assert recall.difference.value == pytest.approx(expected)
    assert (recall.a, recall.b, alarms.number) == ("a", "b", "false_alarms")
    # A model against itself under another name differs in nothing.
    twins = [one for one in rows if one["model"] == "a"]
    twins += [one | {"model": "c"} for one in twins]
    same = fault_matches.compare_models(read_findings(twins, sentences_of))
    assert [pair.difference.value for pair in same] == [0, 0]
    assert [pair.p for pair in same] == [1, 1]


def judge(body: dict[str, Any], _: int) -> str:
    """A judge that is wrong of story 1: it takes the miss for a hit."""
    prompt = prompt_of(body)
    assert PERFECT not in prompt, "what names no fault is not put to the judge"
    if "point at the damage" in prompt:
        is_hit = HIT in prompt or "STORY 1 " in prompt
        return f"It is so.\nVerdict: {'Yes' if is_hit else 'No'}"
    return "It does.\nVerdict: Yes"


@pytest.mark.usefixtures("nlp")
def test_a_judge_is_measured_by_peoples_labels(tmp_path: Path):
    said = [HIT, MISS, HIT, PERFECT, MISS, REFUSAL]
    rows = [row(k, "swap", one) for k, one in enumerate(said)]
    rows[1]["story"] = rows[1]["story"] + " STORY 1 ends."
    rows += [row(k, "original", one) for k, one in enumerate([MISS, PERFECT])]
    answers = write_rows(tmp_path / "feedback.jsonl", rows)
    labels = tmp_path / "labels.csv"
    labels.write_text("document,item,rater,value\n" + "".join(
        f"s{k}_swap_spot_0_m,found,ann,{verdict}\n"
        for k, verdict in enumerate(("Yes", "No", "No", "No", "No"))
    ))  # fmt: skip
    with serving(judge) as served:
        done = invoke("feedback", "find", answers, "--labels", labels, "--model", f"{served.url}#j",
                      "--out", tmp_path / "found", "--details", tmp_path / "details.jsonl", "--csv",
                      tmp_path / "t.csv", "--json")  # fmt: skip
        # Five answers name a fault, four of them of a changed story.
        assert len(served.requests) == 5 + 4
    quoted, judged = json.loads(done.stdout)["readers"]
    # By hand: quotations say Yes to 0 and 2, the judge to 0, 1 and 2; people to 0 alone.
    figures = (quoted, [4 / 5, 1, 3 / 4], 2 / 5), (judged, [3 / 5, 1, 2 / 4], 3 / 5)
    for reader, accuracy, recall in figures:
        assert reader["missing"] == {"refused": 1}
        (one,) = reader["accuracy"]
        assert (one["n"], one["n_yes"]) == (5, 1)
        found = [one["accuracy"]["value"], one["sensitivity"], one["specificity"]]
        assert found == pytest.approx(accuracy)
        assert reader["subsets"][0]["values"]["recall"]["value"] == pytest.approx(recall)
    details = rows_of(tmp_path / "details.jsonl")
    assert len(details) == 7
    assert [one["found"] for one in details[:5]] == [True, False, True, False, False]
    assert "match:near" in quoted["signature"]
    assert "judge" in judged["signature"]
    kinds = (tmp_path / "t.kinds.csv").read_text().splitlines()
    assert kinds[0].startswith("found_by,model,method,n_changed,n_missing")
    bare = invoke("feedback", "find", answers).output
    for expected in (
        "how often quotations are right is unknown", "missing: 1 answers, the model refused",
        "no interval from fewer than 10 stories",
    ):  # fmt: skip
        assert expected in bare


@pytest.mark.usefixtures("nlp")
def test_from_python_a_function_may_be_the_judge():
    rows = [row(k, "swap", one) for k, one in enumerate([HIT, MISS, PERFECT])]
    yes = "Yes. So it is."
    found = fb.feedback_find(rows, model=lambda _: yes, style="verdict-first", out=None)
    assert found.frame()["found"].tolist() == [True, False, False]
    assert found.frame()["found_by_function/lambda"].tolist() == [True, True, False]
    assert "found by the judge function/lambda" in str(found)
    with pytest.raises(fb.InputError, match="nothing to measure"):
        fb.feedback_find([row(1, "original", MISS)])

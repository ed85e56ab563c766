"""Judges beside each other: figures, pairs and panels, and `fabula judge agreement`."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from tests.commands import invoke, refused, write_rows
from tests.essay import ESSAY
from tests.judging.judged_stories import TTCW, measured

from fabula.core.scales import Scale
from fabula.core.store import dump_json, measurement_row
from fabula.core.types import Measurement, Rubric
from fabula.judging.agreement import CorrectSettings, correct_measurements
from fabula.judging.judges import Yardstick, judge_answers, judge_figures, judge_panels, pair_of
from fabula.judging.run import RETEST, own_story
from fabula.judging.session import read_run
from fabula.models.base import Answer
from fabula.models.verdicts import read_verdict
from fabula.raters.agreement import Panel, judge_agreement, panel_of, people_agreement, read_experts
from fabula.raters.labels import read_labels
from fabula.rubrics.load import rubric_toml
from fabula.rubrics.released import read_judge_answers, split_story_id
from fabula.stats.agreement import cohen

ITEMS = [item.id for item in TTCW.items]
Says = Callable[[int, int], bool | None]
"""Yes, No or nothing, by the numbers of document and item."""


def verdicts(rater: str, says: Says, n: int = 20, end: str = "") -> list[Measurement]:
    return [
        measured(f"d{d}{end}", item, None if (said := says(d, k)) is None else float(said), rater,
                 missing="refusal", signature=f"judge|model:{rater}")
        for d in range(n) for k, item in enumerate(ITEMS)
    ]  # fmt: skip


def noise(seed: int, share: float = 0.5) -> Says:
    table = np.random.default_rng(seed).random((400, len(ITEMS))) < share
    return lambda d, k: bool(table[d, k])


def mostly(says: Says, seed: int, share: float) -> Says:
    slips = noise(seed, share)
    return lambda d, k: bool(says(d, k)) != bool(slips(d, k))


def experts(says: Says, n: int = 20) -> Panel:
    rows = [(f"d{d}", item, who, float(bool(says(d, k)))) for d in range(n)
            for k, item in enumerate(ITEMS) for who in ("a", "b", "c")]  # fmt: skip
    return panel_of(rows, "labels.csv")


TRUTH = noise(0, 0.4)


def answers(rater: str, says: Says, n: int = 20) -> Any:
    return judge_answers(rater, verdicts(rater, says, n), TTCW)


def test_kappa_and_its_interval_are_those_of_agreement():
    panel = experts(TRUTH)
    rows = verdicts("m", mostly(TRUTH, 1, 0.3))
    figures = judge_figures(judge_answers("m", rows, TTCW), Yardstick(panel))
    same = judge_agreement(rows, panel, TTCW, "item").overall
    assert (figures.kappa.value, figures.kappa.low, figures.kappa.high) == pytest.approx(
        (same.kappa.value, same.kappa.low, same.kappa.high)
    )
    assert figures.confusion == same.confusion
    assert figures.baseline == 1


def test_missing_answers_are_counted_by_reason_and_are_no_no():
    judge = answers("m", lambda d, k: None if d < 2 else bool(TRUTH(d, k)))
    kappa = judge_figures(judge, Yardstick(experts(TRUTH))).kappa
    assert judge.missing == {"refusal": 28}
    assert (kappa.value, kappa.n) == (1, 18 * 14)


def test_a_difference_is_of_what_both_answered_and_paired():
    good, bad = mostly(TRUTH, 1, 0.1), mostly(TRUTH, 2, 0.4)
    a = answers("a", lambda d, k: None if d < 3 else good(d, k))
    b = answers("b", lambda d, k: None if d > 15 else bad(d, k))
    yardstick = Yardstick(experts(TRUTH))
    pair, turned = pair_of(a, b, yardstick), pair_of(b, a, yardstick)
    both = [(d, k) for d in range(3, 16) for k in range(14)]
    one, other, truth = np.array([[f(d, k) for d, k in both] for f in (good, bad, TRUTH)], float)
    items = [k for _, k in both]
    kappas = [cohen(said, truth, items).value or 0 for said in (one, other)]
    assert pair.difference.value == pytest.approx(kappas[0] - kappas[1])
    assert pair.details["agreement"].value == pytest.approx(cohen(one, other, items).value)
    assert (pair.difference.n, pair.difference.n_units) == (13 * 14, 13)
    low, high = pair.difference.low, pair.difference.high
    assert low > 0
    assert (turned.difference.low, turned.difference.high) == pytest.approx((-high, -low))
    same = pair_of(a, a, yardstick)
    assert (same.difference.value, same.difference.low, same.difference.high) == (0, None, None)
    assert same.details["agreement"].value == 1


def test_length_counts_against_a_judge_only_where_experts_said_the_same():
    n_words = {f"d{d}": 100 + 10 * d for d in range(40)}
    # Longer texts are better, so that whoever follows the experts says Yes to long ones.
    good: Says = lambda d, _: d > 19  # noqa: E731
    fair = answers("fair", mostly(good, 5, 0.2), 40)
    longs = answers("longs", mostly(lambda d, k: d % 20 > 9, 6, 0.1), 40)
    yardstick = Yardstick(experts(good, 40), n_words)
    assert abs(judge_figures(fair, yardstick).length.value or 0) < 0.1
    assert (judge_figures(fair, Yardstick(None, n_words)).length.value or 0) > 0.5
    by_length = judge_figures(longs, yardstick).length
    assert (by_length.low or 0) > 0.4
    assert judge_figures(fair, Yardstick(experts(good, 40))).why_missing["length"] == (
        "the texts were not given"
    )


def test_a_judge_that_favours_its_family_is_caught_beside_the_experts():
    said = verdicts("m", lambda d, k: bool(TRUTH(d, k)) or (d % 2 == 0 and k < 7), 40)
    of_author = {"author": "X"}, {"author": "X", "own_story": "same family"}
    rows = [replace(one, details=of_author[int(one.document_id[1:]) % 2 == 0]) for one in said]
    figures = judge_figures(judge_answers("m", rows, TTCW), Yardstick(experts(TRUTH, 40)))
    own = figures.own_family
    # It adds half of the items' No of its own stories: 7 of 14 items, all of them where No.
    assert own.n_units == 20
    assert (own.low or 0) > 0.2
    nobody = judge_figures(answers("m", TRUTH), Yardstick())
    assert nobody.why_missing["own_family"] == "the authors of the documents are unknown"


def test_retest_is_the_agreement_with_oneself():
    first, second = verdicts("m", TRUTH), verdicts("m", mostly(TRUTH, 3, 0.2), 12, end=RETEST)
    figures = judge_figures(judge_answers("m", [*first, *second], TTCW), Yardstick())
    said = np.array([[TRUTH(d, k), mostly(TRUTH, 3, 0.2)(d, k)] for d in range(12)
                     for k in range(14)], np.float64)  # fmt: skip
    items = list(range(14)) * 12
    assert figures.retest.value == pytest.approx(cohen(said[:, 0], said[:, 1], items).value)
    assert (figures.retest.n, figures.retest.n_units) == (12 * 14, 12)


def test_the_panel_takes_three_judges_and_says_what_most_of_them_say():
    able = [answers(f"m{k}", mostly(TRUTH, 10 + k, share), 40) for k, share in
            enumerate((0.08, 0.3, 0.3))]  # fmt: skip
    guesser = answers("g", noise(99), 40)
    assert judge_panels(able[:2]) == []
    (panel,) = judge_panels([*able, guesser])
    said = {s: sum(j.answers[s] for j in (*able, guesser)) for s in able[0].answers}
    # Two against two is no majority.
    assert panel.answers == {s: float(n > 2) for s, n in said.items() if n != 2}
    assert panel.missing == {"the judges are split": sum(n == 2 for n in said.values())}


def write_run(folder: Path, rows: list[Measurement], rubric: Rubric = TTCW) -> Path:
    folder.mkdir(parents=True)
    (folder / "rubric.toml").write_text(rubric_toml(rubric))
    lines = (dump_json(measurement_row(one)) + "\n" for one in rows)
    (folder / "measurements.jsonl").write_text("".join(lines))
    return folder


def compare(*words: object) -> str:
    return invoke("judge", "agreement", *words).stdout


def test_what_experts_would_have_said_stands_beside_each_judge(tmp_path: Path):
    """The figures are those of `judge correct` on the same run and labels."""
    runs = [write_run(tmp_path / f"run{k}", verdicts(f"m{k}", mostly(TRUTH, k + 1, 0.1)))
            for k in range(3)]  # fmt: skip
    labels = write_rows(tmp_path / "labels.jsonl", [
        {"document": f"d{d}", "item": item, "rater": who, "value": "Yes" if TRUTH(d, k) else "No"}
        for d in range(12) for k, item in enumerate(ITEMS) for who in "abc"
    ])  # fmt: skip
    entries = json.loads(compare(*runs, "--labels", labels, "--json"))["judges"]
    assert [one["rater"] for one in entries[:3]] == ["m0", "m1", "m2"]
    assert [one["kind"] for one in entries] == ["judge"] * 3 + ["panel"]
    for one in entries:
        assert set(one["against"]) == {other["rater"] for other in entries} - {one["rater"]}
    for run, entry in zip(runs, entries, strict=False):
        rubric, measurements = read_run(run)
        people = read_labels(labels, rubric)
        alone = correct_measurements(measurements, people, rubric, CorrectSettings())
        overall = alone.to_json()["overall"]
        assert entry["corrected"] == pytest.approx(overall)
        assert (overall["n_labelled"], overall["n"]) == (12, 20)
        assert overall["low"] < overall["corrected"] < overall["high"]
    assert "experts would say" in compare(*runs, "--labels", labels)
    assert "experts would say" not in compare(*runs)


def test_the_tables_say_what_is_missing(tmp_path: Path):
    run = write_run(tmp_path / "run", verdicts("m", lambda d, k: None if k == 0 else True))
    answer = {"id": "d0", "model": "m", "text": "Yes", "usage": {"n_input": 100, "n_output": 7}}
    write_rows(run / "answers.jsonl", [answer | {"item": item} for item in ITEMS])
    shown = compare(run)
    missing = "no kappa, sensitivity, specificity, baseline (all): no labels were given"
    assert missing in " ".join(shown.split())
    assert "no retest (all): no document was judged twice" in shown
    assert "no pairs: fewer than two judges" in shown
    assert "20 the model refused" in shown
    (entry,) = json.loads(compare(run, "--json"))["judges"]
    assert (entry["kappa"], entry["why_missing"]["kappa"]) == (None, "no labels were given")
    assert (entry["n_calls"], entry["n_input"], entry["n_output"]) == (14, 1400, 98)
    assert "nan" not in shown.lower().replace("finance", "")
    assert json.loads(compare(run, "--jsonl")) == entry


def style_marks(seed: int, spread: int, n: int = 24) -> dict[str, float]:
    """Marks from 1 to 5 near a quality that all raters see, further off the larger `spread` is."""
    quality = np.random.default_rng(0).integers(1, 6, n)
    noise = np.random.default_rng(seed).integers(-spread, spread + 1, n)
    return {f"d{k}": float(v) for k, v in enumerate(np.clip(quality + noise, 1, 5))}


def essay_run(folder: Path, rater: str, marks: dict[str, float]) -> Path:
    rows = [measured(d, "style", v, rater, rubric=ESSAY) for d, v in marks.items()]
    rows += [replace(rows[0], document_id=f"{rows[0].document_id}{RETEST}", value=1.0),
             replace(rows[0], document_id="d99", value=None, missing_reason="refusal")]  # fmt: skip
    return write_run(folder, rows, ESSAY)


def test_judges_are_compared_on_numbers_by_weighted_kappa_beside_people(tmp_path: Path):
    said = {"near": style_marks(5, 1), "far": style_marks(6, 4)}
    people = {"Ann": style_marks(1, 1), "Ben": style_marks(2, 1)}
    runs = [essay_run(tmp_path / name, name, marks) for name, marks in said.items()]
    labels = tmp_path / "labels.csv"
    rows = [f"{d},style,{who},{v:g}" for who, marks in people.items() for d, v in marks.items()]
    labels.write_text("\n".join(["document,item,rater,value", *rows]))

    def weighted(*pairs: tuple[dict[str, float], dict[str, float]]) -> float:
        a, b = zip(*((one[d], other[d]) for one, other in pairs for d in one), strict=True)
        return float(cohen_kappa_score(a, b, weights="quadratic", labels=[1, 2, 3, 4, 5]))

    ann, ben = people.values()
    kappas = {name: weighted((marks, ann), (marks, ben)) for name, marks in said.items()}
    among = weighted((ann, ben), (ben, ann))
    entries = json.loads(compare(*runs, "--labels", labels, "--json"))["judges"]
    assert [one["rater"] for one in entries] == ["near", "far"], "no panel has numbers"
    for one in entries:
        style = one["graded"]["style"]
        assert style["kappa"] == pytest.approx(kappas[one["rater"]])
        assert style["low"] < style["kappa"] < style["high"]
        assert style["people"]["kappa"] == pytest.approx(among)
        assert style["difference"]["difference"] == pytest.approx(style["kappa"] - among)
        assert (one["n_answers"], one["missing"]) == (24, {"refusal": 1})
        for lacking in ("kappa", "sensitivity", "specificity"):
            assert one[lacking] is None
            assert one["why_missing"][lacking] == "there are no answers on yes-no items"
    near, far = (one["graded"]["style"]["against"] for one in entries)
    assert near["far"]["difference"] == pytest.approx(kappas["near"] - kappas["far"])
    assert near["far"]["low"] > 0, "the better judge is told from the worse"
    assert far["near"]["high"] == -near["far"]["low"]
    assert near["far"]["agreement"] == pytest.approx(weighted((said["near"], said["far"])))
    shown = " ".join(compare(*runs, "--labels", labels).split())
    assert "there are no answers on yes-no items" in shown
    (alone,) = json.loads(compare(runs[0], "--json"))["judges"]
    assert alone["graded"] == {}, "without labels or another judge there is nothing to compare"


def test_a_pairwise_run_shows_its_place_bias(tmp_path: Path):
    one = measured("a : b", ITEMS[0], "a")
    turned = replace(one, value=None, missing_reason="order", details={"orders": ["A", "A"]})
    rows = [turned, *[replace(one, details={"orders": ["A", "B"]})] * 3]
    (entry,) = json.loads(compare(write_run(tmp_path / "pairs", rows), "--json"))["judges"]
    # Of eight answers five were for the story that came first.
    assert (entry["first_place"], entry["turned"]) == (5 / 8, 1 / 4)
    assert "pairwise" in entry["why_missing"]["kappa"]


def test_what_cannot_be_compared_is_refused_in_a_sentence(tmp_path: Path):
    run = write_run(tmp_path / "run", verdicts("m", TRUTH))
    assert "is named twice" in refused("judge", "agreement", run, run)
    assert "is not a run" in refused("judge", "agreement", tmp_path)
    (run / "measurements.jsonl").unlink()
    assert "is not finished" in refused("judge", "agreement", run)


def test_two_runs_of_one_model_are_two_judges_and_of_other_documents_is_no_kappa(tmp_path: Path):
    runs = [write_run(tmp_path / name, verdicts("m", noise(k))) for k, name in enumerate("ab")]
    other = tmp_path / "labels.csv"
    other.write_text(f"document,item,rater,value\nelsewhere,{ITEMS[0]},a,Yes\n")
    entries = json.loads(compare(*runs, "--labels", other, "--json"))["judges"]
    assert [one["rater"] for one in entries] == [f"m ({run})" for run in runs]
    assert entries[0]["kappa"] is None
    assert entries[0]["why_missing"]["kappa"].startswith("no document has both")


def released_run(file: Path, folder: Path) -> Path:
    """The answers of a released judge, as a run of `fabula judge` would hold them."""
    name = file.stem.removeprefix("annotations_")
    rows = []
    for (story, index), text in read_judge_answers(file).items():
        found = read_verdict(Answer(text), Scale("yes-no"), "verdict-first")
        author = split_story_id(story)[1]
        own = own_story(name, author)
        details = {"author": author} | ({"own_story": own} if own else {})
        missing = found.missing_reason or ""
        rows.append(measured(story, ITEMS[index - 1], found.value, name, missing=missing,
                             signature=f"judge|model:{name}", **details))  # fmt: skip
    return write_run(folder / name, rows)


def test_the_released_judges_of_ttcw_beside_the_experts(shared_data: Path, tmp_path: Path):
    data = shared_data / "ttcw"
    if not (data / "llm_judges").exists():
        pytest.skip("the released judges are not here")
    names = ("gpt4", "claude3-opus", "claudev2", "gemini-pro")
    runs = [released_run(data / "llm_judges" / f"annotations_{name}.jsonl", tmp_path)
            for name in names]  # fmt: skip
    labels = data / "ttcw_annotations.json"
    entries = json.loads(
        compare(*runs, "--labels", labels, "--stories", data / "ttcw_short_stories.json", "--json")
    )["judges"]
    by_rater = {one["rater"]: one for one in entries}
    panel = read_experts(labels, TTCW)
    people = people_agreement(panel, {story for story, _ in panel.subjects})["all"].one_with_rest
    # Three experts on 48 stories; GPT-4 wrote 12 of the 36 by models.
    assert by_rater["gpt4"]["baseline"] == pytest.approx(people)
    assert by_rater["gpt4"]["kappa"] == pytest.approx(0.022, abs=5e-4)
    assert by_rater["gpt4"]["n"] == 672
    assert by_rater["claude3-opus"]["kappa"] == pytest.approx(0.117, abs=5e-4)
    assert by_rater["gemini-pro"]["missing"] == {"blocked": 50}
    for one in entries:
        assert one["kappa"] < one["baseline"]
        assert one["length"]["correlation"] is not None
    assert by_rater["gpt4"]["own_family"]["difference"] is not None
    best = by_rater["claude3-opus"]["against"]["gemini-pro"]
    assert best["low"] > 0

import itertools
import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest
from tests.commands import invoke, refused, write_rows

from fabula.core.errors import InputError
from fabula.core.store import dump_json
from fabula.feedback.released import METHODS, MODELS, PROMPTS, SHOTS, known_model
from fabula.feedback.scores import VALIDATED
from fabula.replicate import story_feedback as paper
from fabula.replicate.story_feedback import PAPER
from fabula.replicate.tables import load_printed, printed_table
from fabula.rubrics.load import load_rubric, rubric_toml
from fabula.show.sheet import render

PERFECT = "The text is perfect as-is."
SAID = [
    "the ending comes too soon", "the ending comes too late for the dog", PERFECT,
    "say why she left the harbour", "say why", "the boat is red and then the boat is blue", "No.",
    "the dog sails a boat over the sea",
]  # fmt: skip
NOISES = {
    "original": "original", "backtranslate": "backtranslate", "random_sentence_swap": "swap",
    "delete_one_sentence": "delete",
}  # fmt: skip
PROMPT_NAMES = {"one_sentence": "one sentence", "bulleted_list": "bulleted list", "verse": "verse"}
MODEL_NAMES = {"gemma9b": "Gemma 9B", "gpt4": "GPT 4", "parrot": "parrot"}
QUESTIONS = {
    "is-perfect-as-is" if name == "feedback-type" else name: name
    for name in ("sanity", "feedback-type", "perfect-agree", "correctness", "error-detection",
                 "specificity", "relevance")
}  # fmt: skip
SHOT_NAMES = "zeroshot", "twoshot"
GRID = [*itertools.product(range(12), NOISES, PROMPT_NAMES, SHOT_NAMES, MODEL_NAMES)]


def test_the_names_of_released_files_are_those_of_the_printed_tables():
    assert tuple(printed_table(PAPER, "Table 3")) == MODELS
    assert tuple(printed_table(PAPER, "Table 4")) == METHODS
    assert tuple(printed_table(PAPER, "Table 5")) == PROMPTS + SHOTS
    asked = [name for name in printed_table(PAPER, "Table 3")["GPT 4"] if paper.ERROR not in name]
    assert tuple(asked) == paper.QUESTIONS
    assert printed_table(PAPER, "Appendix E") == {
        item.replace("_", "-"): {metric: printed} for item, (metric, printed) in VALIDATED.items()
    }


def released_row(k: int) -> dict[str, Any]:
    """A row as released; its own measures are made up, so that they cannot be taken for ours."""
    story_id, noise, prompt, shots, model = GRID[k]
    feedback = SAID[(k * k + story_id) % len(SAID)]
    is_perfect = feedback == PERFECT
    return {
        "story_id": story_id, "noise": noise, "prompt": prompt, "nshot": shots, "model": model,
        "story": "A dog sails a boat over the sea.", "gold_story": "A dog sails a boat.",
        "feedback": feedback,
        "story_length_num_characters_all": len(feedback) + k % 3,
        "nonunique_trigram_ratio": math.nan if feedback == "No." else (k % 11) / 11,
        "nonunique_trigram_ratio_no_pai": math.nan if is_perfect else (k % 7) / 7,
        "nonunique_trigram_ratio_vs_story": (k % 5) / 5,
        "contains_perfect_as_is": is_perfect,
        "is_one_sentence": k % 4 != 0,
    }  # fmt: skip


def rated_row(k: int) -> dict[str, Any]:
    scores: dict[str, float] = {q: (k * (n + 2)) % 4 / 3 for n, q in enumerate(QUESTIONS)}
    scores["is-perfect-as-is"] = float(SAID[(k * k + GRID[k][0]) % len(SAID)] == PERFECT)
    if GRID[k][1] == "original":
        scores["relevance"] = math.nan
    if k % 3 == 0:
        scores["specificity"] = math.nan
    return released_row(k) | scores


FEEDBACK = [released_row(k) for k in range(len(GRID))]
RATED = [rated_row(k) for k in range(0, len(GRID), 5)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("igen")
    write_rows(path / "generated_feedback.jsonl", FEEDBACK)
    write_rows(path / "human_ratings.jsonl", RATED)
    return path


@pytest.fixture(scope="module")
def replica(folder: Path) -> paper.Replica:
    return paper.replicate_released(folder, means=paper.Means(lambda texts: [1] * len(texts)))


def labels(row: dict[str, Any]) -> dict[str, str]:
    return {
        "model": MODEL_NAMES[row["model"]], "prompt": PROMPT_NAMES[row["prompt"]],
        "shots": row["nshot"], "method": NOISES[row["noise"]],
    }  # fmt: skip


def chosen(rows: list[dict[str, Any]], where: Any) -> list[dict[str, Any]]:
    return [row for row in rows if all(labels(row)[k] == v for k, v in where.items())]


def mean(rows: list[dict[str, Any]], column: str) -> Any:
    known = [row[column] for row in rows if not math.isnan(row[column])]
    return pytest.approx(statistics.fmean(known)) if known else None


def test_the_released_columns_are_averaged_as_the_paper_says(replica: paper.Replica):
    # All, three models, three prompts, two shots, four corruptions, and their 18 cells.
    assert len(replica.automatic.rows) == 1 + 3 + 3 + 2 + 4 + 18
    for row in replica.automatic.rows:
        own = chosen(FEEDBACK, row.where)
        says = [one for one in own if one["contains_perfect_as_is"]]
        right = [one for one in says if one["noise"] == "original"]
        asked = [one for one in own if one["prompt"] == "one_sentence"]
        expected = {
            "length": mean(own, "story_length_num_characters_all"),
            "perfect": pytest.approx(len(says) / len(own)),
            "perfect_precision": pytest.approx(len(right) / len(says)) if says else None,
            "repetition": mean(own, "nonunique_trigram_ratio"),
            "repetition_imperfect": mean(own, "nonunique_trigram_ratio_no_pai"),
            "overlap": mean(own, "nonunique_trigram_ratio_vs_story"),
            "one_sentence": mean(asked, "is_one_sentence"),
        }
        assert {name: row.released.get(name) for name in expected} == expected, row.where


def test_how_far_our_measures_are_theirs_is_told_answer_by_answer(replica: paper.Replica):
    length = replica.automatic.matches["length"]
    added = [k % 3 for k in range(len(FEEDBACK))]
    assert (length.n, length.n_equal) == (len(FEEDBACK), added.count(0))
    assert length.mean_difference == pytest.approx(sum(added) / len(added))
    assert replica.automatic.matches["perfect"].n_equal == len(FEEDBACK)


def test_ratings_are_means_with_standard_errors_and_nan_has_no_part(replica: paper.Replica):
    (rated,) = replica.rated
    assert (rated.rater, rated.n, rated.n_unknown) == ("people", len(RATED), 0)
    assert len(rated.rows) == 3 + 3 + 2 + 4
    for row in rated.rows:
        own = chosen(RATED, row.where)
        for field, question in QUESTIONS.items():
            known = [one[field] for one in own if not math.isnan(one[field])]
            given = row.ours[question]
            assert (given.n, given.mean) == (len(known), mean(own, field))
            error = statistics.stdev(known) / math.sqrt(len(known)) if known else None
            assert given.error == (error and pytest.approx(error))
    original = next(row for row in rated.rows if row.where == {"method": "original"})
    assert original.ours["relevance"].mean is None
    assert "relevance" not in original.printed


def test_measures_are_held_against_people(replica: paper.Replica):
    found = {(one.metric, one.by): one for one in replica.validations}
    assert found["perfect", "ours"].correlation.value == pytest.approx(1.0)
    assert found["perfect", "released"].printed == 0.9
    pairs = [
        (row["nonunique_trigram_ratio"], row["specificity"])
        for row in RATED
        if not math.isnan(row["nonunique_trigram_ratio"] + row["specificity"])
    ]
    one = found["repetition", "released"].correlation
    assert one.n == len(pairs)
    assert one.value == pytest.approx(statistics.correlation(*zip(*pairs, strict=True)))
    assert one.low < one.value < one.high


def test_tables_are_those_of_the_files_that_are_there(tmp_path: Path):
    write_rows(tmp_path / "generated_feedback.jsonl", FEEDBACK[:60])
    found = paper.replicate_released(tmp_path)
    assert (found.rated, found.validations) == ((), ())
    shown = " ".join(render(*paper.replica_tables(found)).split())
    for table in "No human_ratings.jsonl there: without it Tables 3 to 5 are missing", "Table 1":
        assert table in shown
    # Nobody counted sentences, but the release has them.
    assert "Table 8" in shown
    rated = [one for one in found.claims if one.by == "people"]
    assert rated
    assert all(one.why.startswith("no human_ratings.jsonl") for one in rated)
    (tmp_path / "generated_feedback.jsonl").unlink()
    write_rows(tmp_path / "human_ratings.jsonl", RATED)
    found = paper.replicate_released(tmp_path)
    assert found.automatic is None
    assert found.lacking == ("generated_feedback.jsonl",)
    assert {one.by for one in found.validations} == {"released"}


def test_missing_figures_are_not_zero(tmp_path: Path):
    rows = [
        {**FEEDBACK[0], "nonunique_trigram_ratio": value, "feedback": "say why she left it"}
        for value in (math.nan, None, 0.5)
    ]
    lacking = {k: v for k, v in rows[0].items() if k != "nonunique_trigram_ratio"}
    write_rows(tmp_path / "generated_feedback.jsonl", [*rows, lacking])
    row = paper.replicate_released(tmp_path).automatic.rows[0]
    assert row.n == 4
    assert row.released["repetition"] == 0.5
    assert row.released["perfect_precision"] is None


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (json.dumps(FEEDBACK[1])[:80], ["not JSON", "github.com/google-deepmind/igen"]),
        ("not JSON\n", ["not JSON", "github.com/google-deepmind/igen"]),
        ("[1]\n", ["not a JSON object"]),
        (json.dumps({k: v for k, v in FEEDBACK[1].items() if k not in ("noise", "model")}),
         ["no field noise, model"]),
        (json.dumps(FEEDBACK[1] | {"feedback": 3}), ["feedback is not a text"]),
        (json.dumps(FEEDBACK[1] | {"noise": "shouted"}),
         ["unknown noise 'shouted'", "original", "swap", "delet", "backtransl"]),
    ],
    ids=range(6),
)  # fmt: skip
def test_a_damaged_line_is_named_with_what_to_do(tmp_path: Path, line: str, parts: list[str]):
    path = write_rows(tmp_path / "generated_feedback.jsonl", FEEDBACK[:1])
    path.write_text(path.read_text(encoding="utf-8") + line, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        paper.read_released(tmp_path)
    assert f"generated_feedback.jsonl, line 2: {parts[0]}" in str(caught.value)
    assert all(part in str(caught.value) for part in parts)


def test_ratings_that_are_none_and_files_that_are_not_there_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"download them from github\.com/google-deepmind/igen"):
        paper.read_released(tmp_path)
    path = tmp_path / "human_ratings.jsonl"
    path.touch()
    with pytest.raises(InputError, match="is empty"):
        paper.read_released(tmp_path)
    for value in (1.5, -1, "high", math.inf):
        write_rows(path, [RATED[0] | {"sanity": value}])
        with pytest.raises(InputError, match="line 1: sanity must be a number from 0 to 1 or NaN"):
            paper.read_released(tmp_path)


def test_models_are_known_by_letters_and_digits_and_two_names_of_one_are_kept_apart(tmp_path: Path):
    for model in MODELS:
        assert known_model(model) == known_model(model.lower().replace(" ", "")) == model
    assert known_model("hf/google/gemma-2-27b-it") == "Gemma 27B"
    assert known_model("openai/gpt-4o") is None
    rows = [FEEDBACK[0] | {"model": name} for name in ("gpt4", "GPT-4", "gemini-1.5-flash")]
    write_rows(tmp_path / "generated_feedback.jsonl", rows)
    found = paper.read_released(tmp_path)[0]["generated_feedback.jsonl"]
    assert [row["model"] for row in found] == ["gpt4", "GPT-4", "Gemini 1.5 Flash"]


def own_rows() -> list[dict[str, Any]]:
    """As `feedback elicit` writes them, by one model that the paper had and one that it had not."""
    models = "openai/gpt-4", "tiny"
    grid = itertools.product(range(4), ("original", "swap"), ("full", "spot"), (0, 2), models)
    return [
        {
            "id": f"{s}-{method}_{prompt}_{shots}", "story_id": str(s), "method": method,
            "prompt": prompt, "shots": shots, "model": model,
            "feedback": None if s == 3 else SAID[(s + shots + len(prompt)) % len(SAID)],
            "missing_reason": "refusal" if s == 3 else None, "story": "A dog sails a boat.",
            "original": "A dog.", "signature": "feedback|v:0.1.0",
        }
        for s, method, prompt, shots, model in grid
    ]  # fmt: skip


def rating_run(path: Path, rubric: str = "feedback") -> Path:
    path.mkdir()
    (path / "rubric.toml").write_text(rubric_toml(load_rubric(rubric)), encoding="utf-8")
    rows = [
        {
            "id": f"{row['id']}_{row['model']}", "rubric": rubric, "item": item, "rater": "judge-x",
            "value": value, "missing_reason": None if value else "unparsable", "rationale": None,
            "evidence": [], "details": {}, "signature": "judge|v:0.1.0",
        }
        for k, row in enumerate(own_rows())
        for item, value in (
            ("sanity", "Only feedback" if k % 3 else None),
            ("correctness", ("All of it", "Some of it", "None of it")[k % 3]),
        )
    ]  # fmt: skip
    write_rows(path / "measurements.jsonl", rows)
    return path


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "feedback.jsonl", own_rows())


def test_our_own_run_has_the_papers_figures_for_its_models_only(own: Path):
    found = paper.replicate_run([own])
    assert found.automatic.n_missing == {"refusal": 16}
    printed = {tuple(row.where.values()): row.printed for row in found.automatic.rows}
    assert printed["openai/gpt-4",]["length"] == 349.08
    assert printed["bulleted list", "twoshot", "openai/gpt-4"]["length"] == 412.38
    assert all("openai/gpt-4" in where for where, known in printed.items() if known)
    assert ("spot the problem", "zeroshot", "tiny") in printed
    assert "released" not in render(*paper.replica_tables(found))


def test_a_rater_of_our_run_is_named_and_not_called_people(own: Path, tmp_path: Path):
    found = paper.replicate_run([own], [rating_run(tmp_path / "judged")])
    (rated,) = found.rated
    assert (rated.rater, rated.is_people) == ("judge-x", False)
    row = next(row for row in rated.rows if row.where == {"model": "tiny"})
    places = [k for k, one in enumerate(own_rows()) if one["model"] == "tiny"]
    given = [(1.0, 0.5, 0.0)[k % 3] for k in places]
    # Feedback that was withheld was rated in this file: a rating is counted where there is one.
    assert row.ours["correctness"].mean == pytest.approx(statistics.fmean(given))
    assert row.ours["sanity"].n == sum(k % 3 > 0 for k in places)
    assert row.ours["specificity"].mean is None
    shown = render(*paper.replica_tables(found))
    assert "judge-x, a model and not people" in shown
    # A dash for what is missing must not look like the sign of the next number.
    assert not any(part in shown for part in ("Table 2", "-0.", "-."))
    # Claims are of the paper's models only.
    assert {one.by for one in found.claims} == {"ours, openai/gpt-4", "judge-x, openai/gpt-4"}
    assert all("GPT 4" in one.row for one in found.claims)
    missing = {one.column for one in found.claims if one.computed is None}
    assert {"bertscore", "specificity"} <= missing
    assert "length" not in missing


def test_a_run_of_another_rubric_or_on_other_feedback_is_refused(own: Path, tmp_path: Path):
    strange = write_rows(tmp_path / "strange.jsonl", [one | {"id": "x"} for one in own_rows()[:1]])
    for files, rubric, said in (
        ([own], "ttcw", "judged with the rubric 'ttcw'"),
        ([strange], "feedback", "rated none of this feedback"),
        ([own, own], None, "occurs twice"),
    ):
        runs = [] if rubric is None else [rating_run(tmp_path / rubric, rubric)]
        with pytest.raises(InputError, match=said):
            paper.replicate_run(files, runs)


def test_63_of_64_cells_are_known_and_within_their_bounds():
    cells = printed_table(PAPER, "Table 9")
    every = {", ".join(cell) for cell in itertools.product(PROMPTS, SHOTS, MODELS)}
    assert len(every) == 64
    assert every - set(cells) == {"spot the problem, twoshot, GPT 4"}
    assert set(cells) < every
    for row in cells.values():
        # A cell in which nothing was said to be perfect has no precision.
        assert set(paper.COLUMNS) - set(row) <= {"perfect_precision"}
        assert all(row[column] <= 1 for column in set(row) - {"length"})
    rated = [printed_table(PAPER, f"Table {number}") for number in (3, 4, 5)]
    assert [len(table) for table in rated] == [len(MODELS), len(METHODS), len(PROMPTS + SHOTS)]
    for row in (row for table in rated for row in table.values()):
        questions = [column for column in row if not column.endswith(paper.ERROR)]
        assert set(row) == {*questions, *(question + paper.ERROR for question in questions)}
        assert set(QUESTIONS.values()) - set(questions) <= {"relevance"}


def test_the_command_without_data_says_where_they_are(tmp_path: Path):
    assert "github.com/google-deepmind/igen" in refused("replicate", "story-feedback")
    assert "--run" in refused("replicate", "story-feedback", "--ratings", tmp_path)


def test_the_command_writes_all(folder: Path, replica: paper.Replica, tmp_path: Path):
    csv, latex = tmp_path / "t.csv", tmp_path / "t.tex"
    words = ("replicate", "story-feedback", folder, "--csv", csv, "--latex", latex, "--json")
    given = json.loads(invoke(*words).stdout)
    assert given["run"] is None
    assert len(given["released"]["automatic"]["rows"]) == 31
    assert json.loads(dump_json(paper.replica_json(replica)))["rated"] == given["released"]["rated"]
    assert all(one["why"] for one in given["claims"] if one["computed"] is None)
    assert "343.62" in csv.read_text()
    assert r"(343.62) !" in latex.read_text()


def test_every_printed_number_is_a_claim_of_each_that_computes_it(replica: paper.Replica):
    places = {(one.by, one.table, one.row, one.column) for one in replica.claims}
    by_table = {
        table: ("people",) if table in ("Table 3", "Table 4", "Table 5") else ("released", "ours")
        for table, _, _ in load_printed(PAPER)
    }
    assert places == {(by, *place) for place in load_printed(PAPER) for by in by_table[place[0]]}
    assert len(replica.claims) == len(places)
    claims = {(one.by, one.table, one.row, one.column): one for one in replica.claims}
    rows = {tuple(row.where.values()): row for row in replica.automatic.rows}
    one = claims["released", "Table 9", "one sentence, zeroshot, GPT 4", "length"]
    assert one.computed == rows["one sentence", "zeroshot", "GPT 4"].released["length"]
    assert (str(one.printed), one.differs) == ("150.59", True)
    people = claims["people", "Table 4", "delete", f"correctness{paper.ERROR}"]
    (row,) = (row for row in replica.rated[0].rows if row.where == {"method": "delete"})
    assert people.computed == row.ours["correctness"].error
    assert claims["ours", "Appendix E", "feedback-type", "perfect"].computed == pytest.approx(1)
    for one in replica.claims:
        if one.column == "bertscore" or "Bloomz 7B" in one.row:
            assert (one.computed, one.why) == (None, "no such feedback, or not measured")

"""Judging, rubrics and plans of studies, as a user types the commands."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import invoke, refused, write_rows
from tests.essay import ESSAY_TOML
from tests.serving import Reply, serving

from fabula.core.errors import FabulaError
from fabula.rubrics.load import load_rubric


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("The lamp went out.\n")


def test_a_rubric_of_ones_own_is_written_and_checked():
    own = Path("own.toml")
    own.write_text(invoke("rubric", "show", "ttcw", "--toml").stdout)
    assert load_rubric("ttcw").key in invoke("rubric", "show", "--check", own).stdout
    own.write_text(own.read_text().replace("question =", "qestion =", 1))
    said = refused("rubric", "show", "--check", own)
    assert "item narrative_ending, qestion: unknown field; did you mean question?" in said
    assert "item narrative_ending, question: is missing" in said


def test_published_wording_is_imported_and_never_overwrites(shared_data: Path):
    words = ("rubric", "make", shared_data / "ttcw" / "ttcw_all_tests.json", "--out", "own.toml")
    invoke(*words)
    assert "valid" in invoke("rubric", "show", "--check", "own.toml").stdout
    invoke(*words)
    Path("own.toml").write_text("mine")
    assert "--out" in refused(*words)


@pytest.mark.parametrize(
    ("by", "row"),
    [("item", "48 0.47 0.25 to 0.65"), ("dimension", "Flexibility 144 0.36"),
     ("author", "NewYorker 168 0.19")],
)  # fmt: skip
def test_agreement_is_shown_by_what_is_asked_for(by: str, row: str, shared_data: Path):
    experts = shared_data / "ttcw" / "ttcw_annotations.json"
    shown = invoke("judge", "agreement", "--labels", experts, "--by", by).stdout
    assert row in " ".join(shown.split())


def test_failures_end_a_run_with_a_code_and_a_line_and_are_asked_again_alone():
    def answer(_: dict[str, Any], number: int) -> Reply:
        if number == 3:
            return 500, {"error": {"message": "melted"}}
        return "" if number == 5 else "No. Bad."

    with serving(answer) as server:
        words = ["judge", "a.txt", "--model", f"{server.url}/v1#m", "--style", "verdict-first",
                 "--set", "models.max-retries=0", "--set", "models.parallel=1"]  # fmt: skip
        said = invoke(*words, code=1).stderr
        assert "1 of 14 answers are missing, since calls failed" in said
        assert "melted" in said
        invoke(*words)
        assert len(server.requests) == 15
        invoke(*words, "--again", "no_answer")
        assert len(server.requests) == 16
    for again in (["boredom"], ["no_answer", "--set=running.restart=true"]):
        assert "--again" in refused(*words, "--again", *again)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("judge", "none.txt"), "none.txt"),
        (("judge", "a.txt", "--rubric", "tctw"), "ttcw"),
        (("judge", "a.txt", "--items", "endings"), "narrative_ending"),
        (("judge", "a.txt", "--rubric", "preference"), "--pairwise"),
        (("judge", "a.txt", "--model", "gpt4"), "provider/model"),
        (("judge", "a.txt", "--set", "models.price=cheap"), "models.price"),
        (("judge", "a.txt", "--pairwise"), "at least two stories"),
        (("judge", "calibrate", "."), "creativity_eval"),
        (("judge", "themes", "a.txt"), "a.txt"),
        (("replicate", "ttcw", "."), "creativity_eval"),
        (("rubric", "show", "--check", "a.txt"), "not TOML"),
        (("stories", "write", "a.txt", "--out", "o.jsonl"), "line 1"),
        (("continuation", "generate", "--contexts", "x", "--out", "y"), "name at least one writer"),
        (("continuation", "train", "--out", "nowhere"), "contains no training corpus"),
        (("continuation", "score", "none.jsonl", "--contexts", "none.jsonl"), "none.jsonl"),
        (("replicate", "linguistic-metrics", "--out", "z"), "'--books'"),
        (("replicate", "creativity-index", ".", "--out", "z"), "has no book/Human_book.json"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_sentence(arguments: tuple[str, ...], said: str):
    error = refused(*arguments, error=FabulaError)
    assert said in error
    assert len(error.strip().splitlines()) <= 4
    assert [path.name for path in Path().iterdir()] == ["a.txt"], "nothing is written"


ITEMS = [item.id for item in load_rubric("ttcw").items][:4]


def pilot(path: Path, n_stories: int = 30, n_raters: int = 3, authors: str = "") -> Path:
    rng = np.random.default_rng(7)
    chance = rng.beta(1, 1, (n_stories, 1, 1))
    if authors:
        chance[::2] = chance[::2] * 0.6
    said = rng.random((n_stories, len(ITEMS), n_raters)) < chance
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["document", "item", "rater", "value", *(["author"] if authors else [])])
        out.writerows(
            [f"s{d}", ITEMS[k], f"r{r}", int(yes), *authors[d % 2 : d % 2 + 1]]
            for (d, k, r), yes in np.ndenumerate(said)
        )
    return path


def run(*words: object) -> str:
    done = invoke("plan", *words, code=None)
    return done.output if done.exit_code in (0, 2) else str(done.exception)


def found(*words: object) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(run(*words, "--json"))
    return content


def test_two_groups_have_power(tmp_path: Path):
    labels = pilot(tmp_path / "pilot.csv", 60, 2, authors="AB")
    given = [labels, "--stories", "10,40,160", "--raters", 2, "--per-person", 5]
    content = found(*given)
    assert content["sizes"][1]["n_people"] == 32
    assert "share of Yes within 0.01: by none of these sizes" in run(*given, "--mean-width", 0.01)
    powers = [one["power"] for one in content["sizes"]]
    assert powers == sorted(powers)
    assert powers[0] < 0.5 < powers[2]
    assert content["sizes"][1]["n_readings"] == 160
    assert content["pilots"][0]["groups"] == ["A", "B"]
    assert "60 stories" not in run(labels)
    # Too few of each, but enough together.
    few = pilot(tmp_path / "few.csv", 14, 2, authors="AB")
    assert "the pilot has 14 stories" in run(few)
    assert "fewer than 10 stories of each group" in run(few, "--authors", "A,B")
    assert "30 stories by A and 30 stories by B" in run(labels)
    assert "must be two of the pilot's authors: A, B" in run(labels, "--authors", "A,C")
    # Authors may also be those of the stories.
    alone = pilot(tmp_path / "alone.csv", 60, 2)
    assert "the labels have no `author`" in run(alone, "--authors", "A,B")
    rows = [{"id": f"s{d}", "text": "x", "author": "AB"[d % 2]} for d in range(60)]
    stories = write_rows(tmp_path / "stories.jsonl", rows)
    assert "30 stories by A" in run(alone, "--documents", stories)


def test_what_cannot_be_planned_is_refused_with_its_name(tmp_path: Path):
    few, labels = pilot(tmp_path / "few.csv", n_stories=9), pilot(tmp_path / "pilot.csv")
    assert "few.csv: the pilot has fewer than 10 stories" in run(few)
    assert "--stories must be whole numbers" in run(labels, "--stories", "10,x")
    assert "--raters must be whole numbers" in run(labels, "--raters", "0")


def test_widths_are_those_of_the_bootstrap_of_the_released_verdicts(shared_data: Path):
    labels = shared_data / "ttcw" / "ttcw_annotations.json"
    (size,) = found(labels, "--stories", 48, "--raters", 3)["sizes"]
    done = invoke("judge", "agreement", "--labels", labels, "--json")
    overall = json.loads(done.stdout)["agreement"]["experts"][-1]["kappa"]
    assert size["kappa_width"] == pytest.approx(overall["high"] - overall["low"], rel=0.1)


def test_numbers_are_planned_item_by_item_and_what_has_no_order_says_why(tmp_path: Path):
    (tmp_path / "essay.toml").write_text(ESSAY_TOML)
    rng = np.random.default_rng(3)
    lines = ["document,item,rater,value"]
    for d, quality in enumerate(rng.integers(1, 6, 40)):
        for rater in ("r1", "r2", "r3"):
            mark = int(np.clip(quality + rng.integers(-1, 2), 1, 5))
            lines += [f"s{d},style,{rater},{mark}", f"s{d},grade,{rater},{'CBA'[mark // 2]}",
                      f"s{d},voice,{rater},{'Own' if mark > 3 else 'None'}"]  # fmt: skip
    labels = tmp_path / "pilot.csv"
    labels.write_text("\n".join(lines))
    given = [labels, "--rubric", tmp_path / "essay.toml", "--stories", "20,80"]
    content = found(*given)
    assert [one["item"] for one in content["pilots"]] == ["style", "grade"]
    assert content["why_missing"] == {"voice": "only yes-no items and numbers are planned"}
    # A tenth of the way from 1 to 5.
    assert content["pilots"][0]["mean_width"] == pytest.approx(0.4)
    style = [one for one in content["sizes"] if one["item"] == "style"]
    assert [one["kappa_width"] is None for one in style] == [True] * 2 + [False] * 4
    shown = " ".join(run(*given).split())
    assert "style: the pilot has 40 stories" in shown
    assert "mean within 0.4" in shown
    assert "not planned: voice" in shown

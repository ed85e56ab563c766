"""A kind of scale that is written in one place is read, judged, asked, shown and compared."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabula.core.errors import InputError
from fabula.core.scales import KINDS, NumberScale, Scale, register
from fabula.rubrics.load import parse_rubric, rubric_faults, rubric_toml
from tests.commands import invoke, rows_of, write_rows
from tests.serving import Reply, prompt_of, serving
from tests.studies.running import make, send


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    """Two kinds that Fabula does not have: all that is written of them is here."""
    known = dict(KINDS)

    @register
    @dataclass(frozen=True, slots=True)
    class Slider(NumberScale):
        """A number in steps of its own."""

        kind: str = "slider"
        step: float = 0.1

        widget = "range"

        def fault(self) -> str | None:
            return NumberScale.fault(self) or (None if self.step > 0 else "step is above 0")

        def contains(self, number: float) -> bool:
            steps = (number - self._lowest) / self.step
            return NumberScale.contains(self, number) and math.isclose(steps, round(steps))

        @property
        def allowed(self) -> str:
            return f"{NumberScale.allowed.fget(self)} in steps of {self.step:g}"

        @property
        def limits(self) -> dict[str, str]:
            return {**NumberScale.limits.fget(self), "step": f"{self.step:g}"}

    @register
    @dataclass(frozen=True, slots=True)
    class Letter(Scale):
        """A grade from A, which counts 4, to F, which counts 0."""

        kind: str = "letter"

        has_worth = is_grade = True
        span = 4.0
        answers = ("A", "B", "C", "D", "F")

        def read(self, answer: str) -> float | None:
            return 4.0 - self.answers.index(answer) if answer in self.answers else None

        def word(self, value: float | str) -> str:
            return self.answers[4 - round(float(value))]

        def short(self, value: float | str) -> str:
            return self.word(value)

        def worth(self, value: float | str) -> float:
            return float(value)

    yield
    KINDS.clear()
    KINDS.update(known)


SLIDER = """
id = "paced"
version = "1"
title = "Pace"
unit = "feedback"
[aggregate]
rule = "mean"
title = "Mean pace"
[[items]]
id = "pace"
index = 1
title = "Pace"
question = "How fast is it?"
scale = { kind = "slider", low = 0, high = 1 }
[[items]]
id = "why"
index = 2
title = "Why"
question = "What hurries it?"
scale = { kind = "text" }
show_if = "pace >= 0.5"
"""
LETTER = SLIDER.replace('"slider", low = 0, high = 1', '"letter"').replace(">= 0.5", "== 'A'")


ENDS = "The end comes at once."


def parsed(text: str) -> Scale:
    return parse_rubric(text.encode(), "paced.toml").items[0].scale


def test_a_file_has_the_fields_of_the_kind_and_its_checks():
    quarters = SLIDER.replace("high = 1", "high = 1, step = 0.25")
    assert (parsed(SLIDER).step, parsed(quarters).step) == (0.1, 0.25)
    rubric = parse_rubric(quarters.encode(), "x")
    assert parse_rubric(rubric_toml(rubric).encode(), "x") == rubric
    assert rubric.digest != parse_rubric(SLIDER.encode(), "x").digest

    def faults(old: str, new: str) -> str:
        return "; ".join(rubric_faults(SLIDER.replace(old, new).encode(), "paced.toml"))

    assert "item pace, scale.stpe: unknown field; did you mean step?" in faults("low", "stpe")
    assert "item pace: step is above 0" in faults("low = 0", "low = 0, step = 0")
    assert "item pace: a number needs low and high" in faults("low = 0, ", "")
    assert "item pace, scale.step: must be a number" in faults("low = 0", 'low = 0, step = "x"')
    assert "unknown kind 'slidr'; the kinds are yes-no, choice" in faults('"slider"', '"slidr"')
    assert "pace goes from 0 to 1 and cannot be 0.55" in faults(">= 0.5", "== 0.55")
    # Both faults at once, though one is of a scale's own field and one of the rubric's.
    both = SLIDER.replace("low", "stpe").replace("version", "versoin")
    assert len(rubric_faults(both.encode(), "paced.toml")) == 3
    with pytest.raises(ValueError, match="unknown scale 'stars'; the scales are yes-no"):
        Scale("stars")


def test_answers_are_the_conditions_of_later_items():
    with pytest.raises(InputError, match="pace cannot be 'E'; it must be 'A' or 'B'"):
        parsed(LETTER.replace("'A'", "'E'"))
    with pytest.raises(InputError, match="pace has no order"):
        parsed(LETTER.replace("== 'A'", "> 'B'"))
    assert (parsed(LETTER).named(4.0), parsed(SLIDER).named(0.3)) == ("A", 0.3)


def judged(tmp_path: Path, rubric: str, said: dict[str, str], *more: object, ask: str = "") -> str:
    """What `judge` prints of three stories, to which a model says these, asked again the next."""
    (tmp_path / "paced.toml").write_text(rubric)
    rows = [{"id": name, "text": f"This is story {name}."} for name in ("one", "two", "three")]
    stories = write_rows(tmp_path / "stories.jsonl", rows)
    asked: Counter[str] = Counter()

    def reply(body: dict[str, Any], _: int) -> Reply:
        prompt = prompt_of(body)
        if "hurries" in prompt:
            return ENDS
        if "Does it end?" in prompt:
            return "Yes. So."
        assert f"Begin your answer with {ask}" in prompt
        (story,) = re.findall(r"story (\w+)\.", prompt)
        asked[story] += 1
        answer = said[story].split()
        return f"{answer[(asked[story] - 1) % len(answer)]}. So."

    with serving(reply) as server:
        done = invoke("judge", stories, "--rubric", tmp_path / "paced.toml", "--model",
                      f"{server.url}/v1#m", "--style", "verdict-first", "--yes", "--set",
                      "models.parallel=1", "--out", tmp_path / "run", *more)  # fmt: skip
    return done.output


def values(tmp_path: Path, item: str = "pace") -> dict[str, Any]:
    rows = rows_of(tmp_path / "run" / "measurements.jsonl")
    return {one["id"]: one["missing_reason"] or one["value"] for one in rows if one["item"] == item}


def test_a_model_is_asked_in_its_words_and_its_answers_are_read_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "120")
    page, said = tmp_path / "page.html", {"one": "0.3", "two": "0.8", "three": "0.35"}
    asked = "a number from 0 to 1 in steps of 0.1, and"
    shown = " ".join(judged(tmp_path, SLIDER, said, "--html", page, ask=asked).split())
    assert values(tmp_path) == {"one": 0.3, "two": 0.8, "three": "out_of_scale"}
    why = values(tmp_path, "why")
    assert (why["one"], why["two"], why["three"]) == ("not_asked", ENDS, "gate_missing")
    assert "Pace mean 0.55, median 0.55 (0 to 1) 2 1" in shown
    # The rubric's mean is of this kind as of any number.
    assert "Mean pace, 0 to 1 one 0.3 two 0.8" in shown
    assert "0.3 (0 to 1)" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("has_test", [False, True])
def test_judges_agree_with_experts_on_it_beside_the_kappa_of_tests(
    tmp_path: Path, *, has_test: bool
):
    test = '[[items]]\nid = "ends"\nindex = 3\ntitle = "Ends"\nquestion = "Does it end?"\n'
    judged(tmp_path, SLIDER + test * has_test, {"one": "0.2", "two": "0.4", "three": "0.9"})
    people = {"one": (0.1, 0.2), "two": (0.5, 0.5), "three": (0.7, 1.0)}
    rows = [
        {"id": story, "rubric": "paced", "item": item, "rater": f"p{k}", "value": value,
         "missing_reason": None}
        for story, both in people.items()
        for k, pace in enumerate(both)
        for item, value in [("pace", pace), *[("ends", 1.0)] * has_test]
    ]  # fmt: skip
    experts = write_rows(tmp_path / "experts.jsonl", rows)
    command = ["judge", "agreement", str(tmp_path / "run"), "--labels", str(experts)]
    done = invoke(*command, "--json")
    found = json.loads(done.stdout)["agreement"]
    assert ("judges" in found) == has_test
    among = found["graded"]["people"]["pace"]
    assert among["similarity"] == pytest.approx(np.mean([0.9, 1, 0.7]))
    (judge,) = found["graded"]["judges"].values()
    theirs = [np.mean(both) for both in people.values()]
    assert judge["pace"]["n"] == 3
    expected = np.corrcoef([0.2, 0.4, 0.9], theirs)[0, 1]
    assert judge["pace"]["correlation"]["value"] == pytest.approx(expected)
    shown = invoke(*command).output
    row = f"pace 3 {among['kappa']['value']:.2f} - (n 3) {among['alpha']['value']:.2f}"
    assert row in " ".join(shown.split())
    assert ("with the experts' majority" in shown) == has_test


def test_repeated_answers_of_a_kind_are_counted_as_it_says(tmp_path: Path):
    page, said = tmp_path / "page.html", {"one": "A A B", "two": "C", "three": "E"}
    asked = "A, B, C, D or F, and nothing before it."
    shown = judged(tmp_path, LETTER, said, "--samples", 3, "--html", page, ask=asked)
    assert values(tmp_path) == {"one": 4.0, "two": 2.0, "three": "no_verdict"}
    assert "A 1, C 1" in shown
    assert values(tmp_path, "why")["one"] == ENDS
    html = page.read_text(encoding="utf-8")
    assert "A (2 of 3)" in html
    assert '<span class="cell other" title="Pace: A (2 of 3)">A</span>' in html


def test_people_are_asked_by_its_widget_and_their_agreement_is_of_its_worth(tmp_path: Path):
    (tmp_path / "paced.toml").write_text(SLIDER)
    study = make(tmp_path, "feedback", rubric="paced.toml")
    for answer in ("0.3", "0.5"):
        reader = study.reader()
        own = {"unit:own_feedback": "n/a", "go": "next"}
        page = send(reader, "/page/story", reader.get("/page/story"), **own)
        asked = re.search(r'<input type="range"[^>]*name="unit:pace"[^>]*>', page.text)
        assert asked, page.text
        assert 'min="0" max="1" step="0.1"' in asked[0]
        assert "unit:why" not in page.text
        wrong = send(reader, "/save", page, **{"unit:pace": "0.35"}).json()["problems"]
        assert wrong == {"unit:pace": "Please write a number from 0 to 1 in steps of 0.1."}
        told = send(reader, "/save", page, **{"unit:pace": answer}).json()
        assert told["problems"] == {}
        # 0.5 opens the next question, 0.3 does not.
        assert ("unit:why" in told.get("html", "")) == (answer == "0.5")
        last = {"unit:why": "The end."} if answer == "0.5" else {}
        last |= {"unit:pace": answer, "go": "finish"}
        send(reader, page.url.path, page, **last)
    study.store.close()
    file = study.design.path
    found = json.loads(invoke("study", "analyse", file, "--json").stdout)
    means = found["means"]["model"]["writer-model"]["pace"]
    assert means["mean"] == pytest.approx(np.mean([0.3, 0.5]))
    # Relative to the span of the scale, which is 1: 1 - |0.3 - 0.5|.
    assert found["agreement"]["pace"]["similarity"] == pytest.approx(0.8)
    assert "pace" in invoke("study", "analyse", file).output


def test_inspect_reports_its_figures(tmp_path: Path):
    from inspect_ai.scorer import SampleScore, Score

    from fabula.evals.rubrics import by_item, rubric

    (tmp_path / "paced.toml").write_text(LETTER.partition('[[items]]\nid = "why"')[0])
    rows = ({"id": k, "text": f"Tale {k}."} for k in "ab")
    stories = write_rows(tmp_path / "stories.jsonl", rows)
    task = rubric(str(stories), str(tmp_path / "paced.toml"), "verdict-first")
    # Of the log's metadata alone, as when a log is scored again.
    logged = [json.loads(json.dumps(sample.metadata)) for sample in task.dataset]
    given = zip([Score(value=3.0), Score(value=2.0)], logged, strict=True)
    figures = by_item()([SampleScore(score=one, sample_metadata=about) for one, about in given])
    assert [figures[f"pace: {letter}"] for letter in "ABC"] == [0.0, 0.5, 0.5]

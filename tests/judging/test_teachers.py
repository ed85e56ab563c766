"""A teacher's own rubric, two teachers' labels and a judge: every figure on the way is right."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa
from tests.commands import invoke, refused, write_rows
from tests.essay import ESSAY_TOML
from tests.serving import Reply, prompt_of, serving

N = 24
VOICES = ("Own", "Borrowed", "None")


class Marks:
    """What two teachers and the judge say of each essay."""

    def __init__(self) -> None:
        rng = np.random.default_rng(4)
        self.truth = rng.integers(1, 6, N)
        self.thesis = {who: (self.truth + rng.integers(-1, 2, N) > 2).astype(int) for who in "ABJ"}
        self.thesis["J"] |= rng.random(N) < 0.5
        self.style = {who: np.clip(self.truth + rng.integers(-1, 2, N), 1, 5) for who in "ABJ"}
        self.voice = {
            who: np.where(rng.random(N) < 0.6, self.truth % 3, rng.integers(0, 3, N))
            for who in "ABJ"
        }

    def said(self, who: str, k: int) -> dict[str, object]:
        return {"thesis": "Yes" if self.thesis[who][k] else "No", "style": self.style[who][k],
                "voice": VOICES[self.voice[who][k]]}  # fmt: skip

    def csv(self, n: int) -> str:
        lines = [
            f"e{k},{item},{who},{str(value).lower() if item == 'voice' else value}\n"
            for k in range(n) for who in "AB" for item, value in self.said(who, k).items()
        ]  # fmt: skip
        return "document,item,rater,value\n" + "".join(lines)

    def reply(self, body: dict[str, Any], _: int) -> Reply:
        prompt = prompt_of(body)
        found = re.search(r"Essay number (\d+)\.", prompt)
        assert found
        said = self.said("J", int(found[1])) | {"grade": "B"}
        questions = {"Is there a thesis?": "thesis", "How good": "style", "Whose voice": "voice",
                     "Which grade": "grade"}  # fmt: skip
        item = next((item for begun, item in questions.items() if begun in prompt), None)
        if item is None:
            return "Say in the first line what you want to show."
        return f"The text bears it out.\nVerdict: {said[item]}"


def run(*arguments: str) -> str:
    return invoke(*arguments).stdout


@pytest.fixture
def essays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FABULA_HOME", str(tmp_path / "home"))
    (tmp_path / "essay.toml").write_text(ESSAY_TOML)
    rows = [{"id": f"e{k}", "text": f"Essay number {k}. It rains.", "class": "ab"[k % 2]}
            for k in range(N)]  # fmt: skip
    write_rows(tmp_path / "essays.jsonl", rows)
    return tmp_path


def test_from_the_rubric_to_what_teachers_would_have_said(essays: Path):
    marks = Marks()
    (essays / "marks.csv").write_text(marks.csv(N))
    (essays / "some.csv").write_text(marks.csv(12))
    assert "valid" in run("rubric", "show", "--check", "essay.toml")
    with serving(marks.reply) as server:
        asked = ("--rubric", "essay.toml", "--model", f"{server.url}/v1#m", "--yes")
        page = "--json", "--html", "calibrated.html"
        trusts = json.loads(
            run("judge", "calibrate", "essays.jsonl", "--labels", "marks.csv", *asked, *page)
        )
        # The page is of the judge that was just checked.
        of_calibration = (essays / "calibrated.html").read_text(encoding="utf-8")
        assert "agreement with experts" in of_calibration
        n_calls = len(server.requests)
        shown = run("judge", "essays.jsonl", *asked, "--out", "run", "--labels", "some.csv",
                    "--html", "page.html")  # fmt: skip
        assert len(server.requests) == 2 * n_calls
    # Of each judge's figures in calibrate and agreement the same.
    compared = "judge", "agreement", "run", "--labels", "marks.csv"
    found = json.loads(run(*compared, "--json", "--csv", "t.csv"))
    # A rubric of both kinds has both tables.
    (entry,) = found["judges"]
    assert None not in (entry["kappa"], entry["graded"]["style"]["kappa"])
    assert {"t.graded.csv", "t.csv"} <= {path.name for path in essays.iterdir()}
    agreed = found["agreement"]
    known = {one["item"]: one for one in trusts}
    assert set(known) == {"thesis", "style", "voice", "all"}
    _check_thesis(marks, known["thesis"], agreed)
    _check_graded(marks, known, agreed["graded"])
    assert f"{known['style']['kappa']:.2f} [" in shown, "trust stands beside the verdicts"
    corrected = json.loads(run("judge", "correct", "run", "--labels", "some.csv", "--json"))
    # The judge's rate and the teachers' on the first twelve, from the marks themselves.
    mine, theirs = marks.thesis["J"], (marks.thesis["A"] + marks.thesis["B"]) / 2
    overall = corrected["overall"]
    page = (essays / "page.html").read_text(encoding="utf-8")
    assert "Corrected by experts" in page
    for text in (page, shown):
        assert f"{overall['corrected']:.1%}" in text
        assert f"{overall['low']:.1%} to {overall['high']:.1%}" in text
    assert overall["raw"] == pytest.approx(mine.mean())
    weight = overall["weight"]
    expected = weight * mine[12:].mean() + (theirs[:12] - weight * mine[:12]).mean()
    assert overall["corrected"] == pytest.approx(expected)
    assert overall["low"] < theirs.mean() < overall["high"]
    by_class = run("judge", "correct", "run", "--labels", "some.csv", "--by", "class",
                   "--texts", "essays.jsonl")  # fmt: skip
    assert "group" in by_class


def _check_thesis(marks: Marks, trust: dict[str, Any], agreed: dict[str, Any]) -> None:
    both = marks.thesis["A"] == marks.thesis["B"]
    mine, truth = marks.thesis["J"][both], marks.thesis["A"][both]
    table = [[int(((mine == i) & (truth == j)).sum()) for j in (0, 1)] for i in (0, 1)]
    # statsmodels 0.14
    expected = cohens_kappa(np.array(table), return_results=False)
    assert trust["kappa"] == pytest.approx(expected, abs=1e-4)
    rows = {row["name"]: row for row in agreed["judges"][0]["rows"]}
    assert rows["thesis"]["kappa"]["value"] == pytest.approx(expected)
    assert rows["thesis"]["kappa"]["n"] == both.sum()


def _check_graded(marks: Marks, known: dict[str, dict[str, Any]], graded: dict[str, Any]) -> None:
    (judge,) = graded["judges"].values()
    for item, given, weights in (("style", marks.style, "quadratic"), ("voice", marks.voice, None)):
        mine, people, swapped = (
            np.concatenate([given[one], given[other]]) for one, other in ("JJ", "AB", "BA")
        )
        # scikit-learn
        kappa = cohen_kappa_score(mine, people, weights=weights)
        among = cohen_kappa_score(people, swapped, weights=weights)
        for of, expected in (
            (judge[item]["kappa"], kappa), (judge[item]["people"], among),
            (graded["people"][item]["kappa"], among),
        ):  # fmt: skip
            assert of["value"] == pytest.approx(expected)
        trust = [known[item][name] for name in ("kappa", "people", "less")]
        assert trust == pytest.approx([kappa, among, kappa - among], abs=1e-4)


def test_labels_of_other_texts_are_refused_before_anything_is_asked(essays: Path):
    (essays / "others.csv").write_text("document,item,rater,value\nx1,thesis,A,Yes\n")
    with serving(lambda _body, _n: "Yes.") as server:
        given = ("essays.jsonl", "--labels", "others.csv", "--rubric", "essay.toml", "--model",
                 f"{server.url}/v1#m", "--yes")  # fmt: skip
        for command in (["judge", "calibrate"], ["judge"]):
            assert "labels none of the stories" in refused(*command, *given)
        assert server.requests == []
    done = invoke("judge", "calibrate", "a.txt", "b.txt", code=None)
    assert "--labels" in done.output

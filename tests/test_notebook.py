"""What a notebook shows of results: everything escaped, missing as missing, the signature below."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fabula.core.errors import NEVER_CHECKED
from fabula.core.types import Document
from fabula.feedback.advising import Advice
from fabula.feedback.points import Point, Remark
from fabula.judging.summary import ItemSummary, JudgeSummary
from fabula.linguistic.profile import PROFILE_METRICS, Profile
from fabula.novelty.measure import OriginalityMeasure
from fabula.reference.search import Reference
from fabula.rubrics.load import load_rubric
from fabula.text import read_documents
from fabula.web import notebook_table

HOSTILE = "<script>alert('x')</script>&\"\x00<img src=x onerror=y>"


class Shown(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def shown(result: Any) -> Shown:
    page = Shown(result._repr_html_())
    assert set(page.tags) <= {"div", "b", "table", "tr", "th", "td", "span"}
    assert page.attributes <= {"style"}
    return page


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, examples: Path) -> Reference:
    path = tmp_path_factory.mktemp("notebook") / "library.ref"
    return Reference.build(read_documents(sorted((examples / "library").iterdir())), path)


def test_everything_is_escaped_and_stands_there():
    page = Shown(notebook_table(HOSTILE, [(HOSTILE, HOSTILE, None), ("a", None, HOSTILE)], HOSTILE))
    assert set(page.tags) == {"div", "b", "table", "tr", "th", "td", "span"}
    assert page.text.count("<script>alert('x')</script>&\"\ufffd<img src=x onerror=y>") == 5


def test_numbers_and_what_is_missing():
    lines = [("n", 12345, None), ("x", 0.12345, None), ("zero", 0.0, None),
             ("none", None, "too_short"), ("unsaid", None, None)]  # fmt: skip
    html = notebook_table("t", lines)
    text = Shown(html).text
    assert [*re.findall(r">([^<>]+)</t[dh]>", html)] == ["n", "12,345", "x", "0.123", "zero",
                                                         "0.000", "none", "unsaid"]  # fmt: skip
    assert "missing: too_short" in text
    assert "missing: no reason given" in text
    assert "color:#" not in html, "what surrounds it may be light or dark"


def test_originality_of_a_hostile_and_of_a_short_text(reference: Reference):
    long = Document(HOSTILE, "A ferry came over the water in the morning and nobody was aboard it.")
    whole, short = OriginalityMeasure(reference).measure([long, Document("s", "Too short.")])
    page = shown(whole)
    assert str(whole.signature) in page.text
    assert f"{whole.creativity_index:.3f}" in page.text
    assert shown(short).text.count("missing: too_short") == 9


def test_reference(reference: Reference):
    page = shown(reference)
    assert reference.fingerprint in page.text
    assert reference.size in page.text


def test_profile():
    values: dict[str, float | None] = {metric.item: 0.25 for metric in PROFILE_METRICS}
    values["mtld"] = None
    profile = Profile(
        Document(HOSTILE, "x"), values, {"mtld": "too_short"}, (), (), (), (), "p|v:1"
    )
    page = shown(profile)
    assert page.text.count("0.250") == len(PROFILE_METRICS) - 1
    assert "missing: too_short" in page.text
    assert "p|v:1" in page.text


def test_a_verdict_is_never_shown_without_its_trust():
    first, second, third = load_rubric("ttcw").items[:3]
    items = (
        ItemSummary(first, (1.0, 1.0, 0.0, 1.0), 0.7, {}, None),
        ItemSummary(second, (0.0, 1.0, 0.0), None, {"refused": 1}, None),
        ItemSummary(third, (), None, {"cut": 4}, None),
    )
    summary = JudgeSummary(HOSTILE, "judge|v:1", items, {}, 0, 0, None, {}, None)
    text = shown(summary).text
    assert f"3 of 4 Yes ({NEVER_CHECKED})" in text
    assert f"1 of 3 Yes; missing: refused 1 ({NEVER_CHECKED})" in text
    assert "missing: cut 4" in text
    assert "0 of 0" not in text


def test_advice():
    text = "Anna put the letter on the table."
    point = Point((Remark(0, 0, HOSTILE, 9, 19), Remark(1, 0, "Mend it.", 9, 19)))
    advice = Advice(Document(HOSTILE, text), "m", (point,), 4, 1, 0, {"blocked": 1}, {}, "advice|v")
    page = shown(advice)
    assert "in 2 of 4" in page.text
    assert "alert('x')" in page.text
    assert "missing: withheld by the provider" in page.text


def test_it_is_small_enough_to_stay_in_a_notebook(reference: Reference):
    (result,) = OriginalityMeasure(reference).measure([Document("d", "word " * 20_000)])
    assert len(json.dumps(result._repr_html_())) < 10_000

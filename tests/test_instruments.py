"""An instrument is one class: what it measures is wherever texts are measured."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import fabula as fb
from fabula.core import instruments
from fabula.core import packages as plugins
from fabula.core.errors import ModelError
from fabula.core.instruments import Figure, register
from fabula.core.types import Document, Measurement, Signature, Span
from tests.commands import invoke, rows_of, write_rows

WITHOUT = ["--without", "profile", "--without", "verdicts",
           "--without", "feedback"]  # fmt: skip


@dataclass
class Adverbs:
    """The share of words that end in -ly."""

    id: str = "adverbs"
    title: str = "Adverbs <i>"
    figures: Sequence[Figure] = (Figure("share", "Words in -ly", ".1%", "words such as slowly"),)
    citation: str = "@book{king2000writing, title = {On Writing}}"
    methods: str = "Adverbs are words that end in -ly."
    is_installed: bool = True

    @property
    def signature(self) -> Signature:
        return Signature.of("adverbs", ending="ly")

    def measure(self, documents: Sequence[Document]) -> Iterator[Sequence[Measurement]]:
        if not self.is_installed:
            raise ModelError("the list of adverbs is not installed")
        for document in documents:
            words = re.findall(r"\w+", document.text)
            places = [m.span() for m in re.finditer(r"\w+ly\b", document.text)]
            yield [
                Measurement(
                    document.id, "adverbs", "share", "fabula",
                    len(places) / len(words) if words else None, None if words else "no_words",
                    tuple(Span(document.id, *place) for place in places), None,
                    str(self.signature),
                )
            ]  # fmt: skip


@pytest.fixture
def adverbs(monkeypatch: pytest.MonkeyPatch) -> Adverbs:
    monkeypatch.setattr(instruments, "_OWN", {})
    return register(Adverbs())


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": "calm", "text": "She went out. Nobody came.", "author": "Ann"},
        {"id": "eager", "text": "She went out slowly, and gladly came home.", "author": "Ann"},
        {"id": "empty", "text": "...", "author": "Ann"},
    ]
    write_rows(Path("t.jsonl"), rows)
    return ["t.jsonl"]


def test_it_is_on_the_page_in_json_latex_csv_and_the_methods(adverbs: Adverbs, texts: list[str]):
    shown = invoke("report", *texts, *WITHOUT, "--latex", "t.tex", "--csv", "t.csv").stdout
    page = Path("report.html").read_text(encoding="utf-8")
    assert "Adverbs &lt;i&gt;" in page
    assert "words such as slowly" in page
    assert "<q>gladly</q>" in page
    assert "missing: no words in the text" in page
    assert "Adverbs are words that end in -ly." in page
    assert "king2000writing" in page
    assert "adverbs|ending:ly" in page
    assert "25.0%" in shown
    assert r"eager & 25.0\%" in Path("t.tex").read_text()
    assert "eager,0.25" in Path("t.csv").read_text()
    found = json.loads(invoke("report", *texts, *WITHOUT, "--json").stdout)
    values = [text["instruments"]["adverbs"][0]["value"] for text in found["texts"]]
    assert values == [0, 0.25, None]
    assert found["signatures"]["adverbs"] == "adverbs|ending:ly"


def test_texts_are_placed_among_groups_that_were_measured_by_it(adverbs: Adverbs, texts: list[str]):
    invoke("reference", "group", *texts, "--name", "mine", "--kind", "people", "--out", "g.jsonl",
        "--without", "profile")  # fmt: skip
    group = json.loads(Path("g.jsonl").read_text())
    assert group["signature"] == "adverbs|ending:ly"
    assert (group["items"]["share"]["n"], group["items"]["share"]["n_missing"]) == (2, 1)
    found = json.loads(invoke("report", *texts, *WITHOUT, "--groups", "g.jsonl", "--json").stdout)
    below = [text["share_of_group_below"] for text in found["texts"]]
    assert below[0]["adverbs.share"]["mine"] < below[1]["adverbs.share"]["mine"]
    assert "adverbs.share" not in below[2]


def test_groups_of_texts_are_compared_by_it(adverbs: Adverbs, texts: list[str]):
    rows = rows_of(Path(texts[0]))
    rows.append({"id": "other", "text": "Sadly he went slowly.", "author": "Bob"})
    report = fb.report(rows, without=("profile", "verdicts", "feedback"), jobs=1)
    compared = fb.compare(report, by="author").to_json()
    ann, bob = [one for one in compared["groups"] if one["number"] == "share"]
    assert (ann["mean"]["value"], ann["n_missing"], bob["mean"]["value"]) == (0.125, 1, 0.5)


def test_the_desk_shows_it(adverbs: Adverbs, tmp_path: Path):
    from fabula.review.page import page_of
    from fabula.review.reviewer import Reviewer
    from fabula.writer.work import Asked

    settings = Asked(verdicts=False, feedback=False).settings(n_jobs=1)
    with Reviewer(settings) as reviewer:
        review = reviewer.run([Document("d", "He slowly left.")])
    (text,) = page_of(review)["texts"]
    assert "Adverbs <i>" in [part["view"].get("title") for part in text["parts"]]


def test_it_can_be_left_out_and_says_when_it_cannot_run(adverbs: Adverbs, texts: list[str]):
    shown = invoke("report", *texts, *WITHOUT, "--without", "adverbs").stdout
    assert "not included: adverbs, it was left out on request" in shown
    adverbs.is_installed = False
    assert "the list of adverbs is not installed" in invoke("report", *texts, *WITHOUT).stdout
    assert "adverbs" in invoke("report", *texts, "--without", "adjectives", code=2).output


def test_an_id_belongs_to_one_instrument(adverbs: Adverbs):
    for taken in ("adverbs", "profile"):
        with pytest.raises(ValueError, match="already"):
            register(Adverbs(id=taken))


def test_a_package_that_is_installed_adds_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A package is a module and what its installation says of it."""
    (tmp_path / "pages.py").write_text(
        "from tests.test_instruments import Adverbs\n"
        "def make():\n    return Adverbs(id='pages', title='Pages')\n"
    )
    facts = tmp_path / "pages-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: pages\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[fabula.instruments]\npages = pages:make\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    instruments._installed.cache_clear()
    plugins.installed.cache_clear()
    try:
        assert [one.id for one in instruments.instruments()] == ["book", "pages"]
        assert "pages" in instruments.names_of_parts()
    finally:
        instruments._installed.cache_clear()
        plugins.installed.cache_clear()

from pathlib import Path

import pytest

from fabula.core.types import Document, Measurement
from fabula.judging.part import write_judging_page
from fabula.judging.summary import summarise
from fabula.judging.tables import judge_tables
from fabula.judging.trust import Trust, TrustBook
from fabula.rubrics.load import load_rubric
from fabula.show.sheet import render

TTCW = load_rubric("ttcw")
SIGNATURE = f"judge|rubric:{TTCW.key}|model:m|style:verdict-first|prompt:own@1"
HOSTILE = "<script>alert(1)</script> & \x00 \u202e &lt;b&gt;"


def measured(story: str, k: int, value: float | None) -> Measurement:
    return Measurement(
        story, TTCW.key, TTCW.items[k].id, "m", value, None if value is not None else "refusal",
        (), HOSTILE, SIGNATURE, {"p_yes": 0.25},
    )  # fmt: skip


@pytest.fixture
def book(tmp_path: Path) -> TrustBook:
    return TrustBook(tmp_path / "trust.jsonl")


def page_of(folder: Path, book: TrustBook, found: list[Measurement], texts: list[Document]) -> str:
    summaries = summarise(found, texts, TTCW, book)
    write_judging_page(folder / "page.html", summaries, found, texts, TTCW)
    return (folder / "page.html").read_text(encoding="utf-8")


def test_a_verdict_stands_beside_its_trust_or_says_that_it_has_none(
    tmp_path: Path, book: TrustBook
):
    texts = [Document("s", "A text.", meta={"title": HOSTILE})]
    found = [measured("s", k, None if k == 3 else float(k % 2)) for k in range(14)]
    # 14 items, the head and the notice.
    assert page_of(tmp_path, book, found, texts).count("never checked against experts") == 16
    book.add(
        Trust("m", TTCW.key, "verdict-first", "own@1", item, 0.45, 0.3, 0.6, 36, 0, 0.7, "x")
        for item in (*(item.id for item in TTCW.items), "all")
    )
    page = page_of(tmp_path, book, found, texts)
    assert "never checked" not in page
    assert page.count("κ 0.45 [0.30, 0.60], n 36") == 15
    table = render(*judge_tables(summarise(found, texts, TTCW, book), found, TTCW))
    assert " ".join(table.split()).count("0.45 [0.30, 0.60]") == 15
    assert "none of them counts as No" in table


def test_hostile_rationales_are_text(tmp_path: Path, book: TrustBook):
    texts = [Document(f"s{n}<b>", "A text.", author="<i>x</i>") for n in range(3)]
    found = [measured(text.id, k, 1.0) for text in texts for k in range(14)]
    page = page_of(tmp_path, book, found, texts)
    for mark in ("<script", "<i>x", "\x00"):
        assert mark not in page
    assert page.count("&lt;script&gt;") == 42

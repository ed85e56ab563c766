from pathlib import Path

import pytest

from fabula.core.types import Document, Measurement
from fabula.judging.page import write_judging_page
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


def test_a_verdict_stands_beside_its_trust_or_says_that_it_has_none(
    tmp_path: Path, book: TrustBook
):
    documents = [Document("s", "A text.", meta={"title": HOSTILE})]
    found = [measured("s", k, None if k == 3 else float(k % 2)) for k in range(14)]
    path = tmp_path / "page.html"
    write_judging_page(path, summarise(found, documents, TTCW, book), found, documents, TTCW)
    page = path.read_text(encoding="utf-8")
    # 14 items, the head and the notice.
    assert page.count("never checked against experts") == 16
    items = [*(item.id for item in TTCW.items), "all"]
    book.add(
        [
            Trust("m", TTCW.key, "verdict-first", "own@1", item, 0.45, 0.3, 0.6, 36, 0, 0.7, "x")
            for item in items
        ]
    )
    summaries = summarise(found, documents, TTCW, book)
    write_judging_page(path, summaries, found, documents, TTCW)
    page = path.read_text(encoding="utf-8")
    assert "never checked" not in page
    assert page.count("κ 0.45 [0.30, 0.60], n 36") == 15
    table = render(*judge_tables(summaries, found, TTCW))
    assert " ".join(table.split()).count("0.45 [0.30, 0.60]") == 15
    assert "none of them counts as No" in table


def test_hostile_rationales_are_text(tmp_path: Path, book: TrustBook):
    documents = [Document(f"s{n}<b>", "A text.", author="<i>x</i>") for n in range(3)]
    found = [measured(document.id, k, 1.0) for document in documents for k in range(14)]
    path = tmp_path / "page.html"
    write_judging_page(path, summarise(found, documents, TTCW, book), found, documents, TTCW)
    page = path.read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<i>x" not in page
    assert "\x00" not in page
    assert page.count("&lt;script&gt;") == 42

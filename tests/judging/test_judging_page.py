from pathlib import Path

from tests.judging.judged_stories import TTCW, measured

from fabula.core.types import Document, Measurement
from fabula.judging.part import write_judging_page
from fabula.judging.summary import summarise
from fabula.judging.tables import judge_tables
from fabula.judging.trust import Trust, TrustBook
from fabula.show.sheet import render

SIGNATURE = f"judge|rubric:{TTCW.key}|model:m|style:verdict-first|prompt:own@1"
HOSTILE = "<script>alert(1)</script> & \x00 \u202e &lt;b&gt;"


def verdict(story: str, k: int, value: float | None) -> Measurement:
    return measured(story, TTCW.items[k].id, value, signature=SIGNATURE, why=HOSTILE, p_yes=0.25)


def page_of(book: TrustBook, found: list[Measurement], texts: list[Document]) -> str:
    page = book.path.with_name("page.html")
    write_judging_page(page, summarise(found, texts, TTCW, book), found, texts, TTCW)
    return page.read_text(encoding="utf-8")


def test_a_verdict_stands_beside_its_trust_or_says_that_it_has_none(tmp_path: Path):
    book = TrustBook(tmp_path / "trust.jsonl")
    texts = [Document("s", "A text.", author="<i>x</i>", meta={"title": HOSTILE})]
    found = [verdict("s", k, None if k == 3 else float(k % 2)) for k in range(14)]
    # 14 items, the head and the notice.
    page = page_of(book, found, texts)
    assert page.count("never checked against experts") == 16
    # A reason for each verdict, and the title: text that does nothing.
    assert not any(mark in page for mark in ("<script", "<i>x", "\x00"))
    assert page.count("&lt;script&gt;") >= 14
    book.add(
        Trust("m", TTCW.key, "verdict-first", "own@1", item, 0.45, 0.3, 0.6, 36, 0, 0.7, "x")
        for item in (*(item.id for item in TTCW.items), "all")
    )
    page = page_of(book, found, texts)
    assert "never checked" not in page
    assert page.count("κ 0.45 [0.30, 0.60], n 36") == 15
    table = render(*judge_tables(summarise(found, texts, TTCW, book), found, TTCW))
    table = " ".join(table.split())
    assert table.count("0.45 [0.30, 0.60]") == 15
    assert "none of them counts as No" in table

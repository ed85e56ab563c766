"""Faults that a model writes: only what can be planted is, at recorded places, and is undone."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.commands import invoke, rows_of, write_rows
from tests.serving import prompt_of, serving

from fabula.feedback.written_faults import Fault, FaultWriter, apply_edits, estimate_faults, undo
from fabula.models.model_spec import ModelOptions, open_model
from fabula.text.reading import Reading

pytest.importorskip("inspect_ai", reason="Inspect AI is not installed")

STORY = (
    "Anna lived by the sea. Her house was small and old. Anna walked to the harbour. The wind blew "
    "hard that day.\n\nAnna bought bread and paid for it. The boats came home. Then the rain "
    "began. Anna slept at once."
)
THREAD = "AFTER: 4\nSENTENCE: Anna had sewn a pearl into the hem of her coat.\nTHING: pearl"
PAIR = (
    "**AFTER:** 4\nSENTENCE: “Anna had no wish but to own a mule.”\n"
    "SECOND AFTER: sentence 7\nSECOND SENTENCE: Anna had always wanted to be rid of every mule.\n"
    "THING: mule\nPERSON: Anna\nI hope that this is what you meant."
)


@pytest.fixture(scope="module")
def told(nlp: Any) -> Reading:
    return Reading(STORY, nlp)


def written(url: str, method: str, told: Reading) -> Fault | str:
    with FaultWriter(open_model(f"{url}#m", ModelOptions(max_retries=0))) as writer:
        (found,) = writer.write([(method, told)])
    return found


def said(sentence: str) -> str:
    return re.sub("SENTENCE: .*", f"SENTENCE: {sentence}", THREAD)


@pytest.mark.parametrize(("method", "answer"), [("thread", THREAD), ("motive", PAIR)])
def test_only_the_sentences_of_the_model_are_put_in_at_their_places(
    told: Reading, method: str, answer: str
):
    with serving(lambda *_: answer) as server:
        found = written(server.url, method, told)
    assert isinstance(found, Fault), found
    text, record = apply_edits(STORY, found.edits)
    assert undo(text, record) == STORY
    planted = [edit.text.strip() for edit in found.edits]
    assert planted == re.findall(r"^(?:SECOND )?SENTENCE: “?(.*?)”?$", answer, re.MULTILINE)
    for sentence in planted:
        assert text.count(sentence) == 1
        text = text.replace(f" {sentence}", "")
    assert text == STORY
    assert found.details["written_by"].endswith("#m")
    assert found.details["thing"] in found.what


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("Once upon a time there was a pearl.", "does not name the thing"),
        (THREAD.replace("4", "40"), "does not name a sentence"),
        (THREAD.replace("4", "7"), "does not name a sentence"),
        (THREAD.replace("pearl", "house"), "already mentions the thing"),
        (THREAD.replace("THING: pearl", "THING: ruby"), "does not name the thing"),
        (said("A pearl."), "has 2 words"),
        (said("A pearl lay there. It shone."), "more than one"),
        (said("Anna bought bread and paid for it with a pearl."), "repeats the story"),
        (said("<pearl> lay in {hem} of it."), "not a sentence"),
        ("I’m sorry, but I can’t help with that request.", "the model refused"),
        ("", "the answer is empty"),
    ],
)
def test_what_is_no_fault_is_left_out_after_three_answers(told: Reading, answer: str, why: str):
    with serving(lambda *_: answer) as server:
        found = written(server.url, "thread", told)
    assert isinstance(found, str)
    assert why in found
    assert len(server.requests) == 3
    assert len({body["seed"] for body in server.requests}) == 3


def test_a_model_that_gets_it_right_at_last_is_taken(told: Reading):
    with serving(lambda _, n: THREAD if n == 2 else "What?") as server:
        assert isinstance(written(server.url, "thread", told), Fault)
    assert "1 Anna lived by the sea." in server.prompts()[0]
    assert estimate_faults([STORY, STORY], None).n_calls == 6


def test_the_command_tells_the_cost_and_asks_nothing_twice(nlp: Any, tmp_path: Path):
    stories = write_rows(tmp_path / "s.jsonl", [{"id": "a", "text": STORY}])
    out = tmp_path / "o.jsonl"

    def answer(body: dict[str, Any], _: int) -> str:
        return THREAD if "nothing ever comes of it" in prompt_of(body) else PAIR

    with serving(answer) as server:
        command = ["feedback", "corrupt", stories, "--out", out, "--methods",
                   "original,fact,thread,motive", "--writer", f"{server.url}#m"]  # fmt: skip
        assert "9 calls" in invoke(*command).output
        before = out.read_bytes()
        invoke(*command)
        assert out.read_bytes() == before
    assert len(server.requests) == 3
    rows = {row["method"]: row for row in rows_of(out)}
    assert list(rows) == ["original", "fact", "thread", "motive"]
    for row in list(rows.values())[1:]:
        assert undo(row["text"], row["change"]["edits"]) == STORY
        assert re.search(r"\|written:model\([^|]*#m\)@", row["signature"])

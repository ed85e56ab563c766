"""Answers in JSON: every entry is a point at a place of the draft, or is counted."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands import invoke
from tests.serving import prompt_of, serving

from fabula.feedback.answer_lines import QuotableText, answer_records, point_form
from fabula.feedback.points import read_answer
from fabula.models.base import Prompt, RecordField, Records, Sampling
from fabula.models.model_spec import open_model
from fabula.models.verdicts import in_words

DRAFT = """Anna put the letter on the table and went out, very slowly, quite silently, sadly.

"Where is she?" asked Tom. Nobody answered. The clock struck eleven.
"""
QUOTED = QuotableText.of(DRAFT)
LETTER = {"quotation": "put the letter", "severity": 3, "remark": "what became of it?"}
SPEECH = {"quotation": '"Where is she?" asked Tom', "severity": 1, "remark": "He would shout it."}
GHOST = {"quotation": "a raven on the sill", "severity": 2, "remark": "it comes from nowhere."}


def points(*entries: Any) -> str:
    return json.dumps({"points": entries}, ensure_ascii=False)


@pytest.mark.parametrize(
    ("answer", "expected", "dropped", "others"),
    [
        (points(LETTER, SPEECH), [("put the letter", 3), ('Where is she?" asked Tom', 1)], {}, {}),
        (points(GHOST, LETTER), [("put the letter", 3)], {"not_in_text": 1}, {}),
        # Of a model that is not held to a form: between fences, with words around it.
        (f"Here you are:\n```json\n{points(LETTER)}\n```\nGood luck!", [("put the letter", 3)],
         {}, {"preamble": 1, "closing": 1}),
        # It breaks off at the limit of tokens.
        (points(LETTER, SPEECH)[:-30], [("put the letter", 3)], {"broken": 1}, {}),
        (points(LETTER, "the ending", {"quotation": 7, "remark": "no"}), [("put the letter", 3)],
         {"broken": 2}, {}),
        (points(LETTER | {"severity": "2"}), [("put the letter", 2)], {}, {}),
        (points(LETTER | {"severity": 9}), [("put the letter", None)], {}, {}),
        (points(LETTER | {"quotation": " "}), [], {"no_quotation": 1}, {}),
        (points(LETTER | {"quotation": "eleven times"}), [], {"not_in_text": 1}, {}),
        (points(LETTER | {"remark": "no"}), [], {"no_point": 1}, {}),
        (points(LETTER, SPEECH, LETTER | {"remark": "say what is in it"}),
         [("put the letter", 3), ('Where is she?" asked Tom', 1)], {"beyond": 1}, {}),
    ],
)  # fmt: skip
def test_every_entry_is_a_point_or_is_counted(
    answer: str, expected: list[tuple[str, int | None]], dropped: dict[str, int],
    others: dict[str, int],
):  # fmt: skip
    found = read_answer(answer, 0, QUOTED, n_most=2)
    assert [(DRAFT[r.start : r.end], r.severity) for r in found.remarks] == expected
    assert (dict(found.dropped), dict(found.other_lines)) == (dropped, others)
    assert not found.is_empty


def test_an_empty_list_says_that_nothing_should_change_and_lines_are_no_list():
    assert read_answer('{"points": []}', 0, QUOTED).is_empty
    assert answer_records('- "put the letter": what became of it?') is None
    assert answer_records('{"verdict": "No"}') is None


def test_a_model_held_to_a_form_is_asked_for_json_and_what_it_says_is_used(tmp_path: Path):
    draft, out = tmp_path / "d.txt", tmp_path / "one.jsonl"
    draft.write_text(DRAFT)
    answers = [points(LETTER, GHOST), points(LETTER), points(), points(SPEECH)[:-40]]

    def editor(body: dict[str, Any], n: int) -> str:
        if "points" in json.dumps(body.get("response_format", {})):
            return answers[int(body.get("seed") or 0)]
        return '{"verdict": "Yes", "reason": "so"}'

    command = ["report", draft, "--only", "feedback", "--samples", 4, "--json"]
    command += ["--set", "models.parallel=1"]
    with serving(editor) as served:
        model = ["--model", f"{served.url}#m"]
        held = invoke(*command, *model, "--set", "models.structured=true", "--out", out)
        asked = [body for body in served.requests if "response_format" in body]
        free = invoke(*command, *model)
    schema = asked[0]["response_format"]["json_schema"]["schema"]
    entry = schema["properties"]["points"]["items"]
    assert list(entry["properties"]) == ["quotation", "severity", "remark"]
    assert entry["properties"]["severity"]["enum"] == [3, 2, 1]
    for one in (schema, entry):
        assert (one["additionalProperties"], one["required"]) == (False, list(one["properties"]))
    assert prompt_of(asked[0]).endswith(f"{in_words(point_form(7))}\n")
    content = json.loads(held.stdout)
    (row,) = content["points"]
    assert (row["value"], row["details"]["severities"]) == (0.5, {"3": 2})
    assert (content["n_answers"], content["n_perfect"], content["n_pointless"]) == (4, 1, 1)
    assert content["dropped"] == {"not_in_text": 1, "broken": 1}
    assert "|form:json|" in content["signature"]
    assert "form:" not in json.loads(free.stdout)["signature"]


def test_a_local_model_s_answer_is_held_to_its_grammar(small_model: Path):
    """A model that says noise: whatever it says, llama.cpp makes it a list of records."""
    pytest.importorskip("xllamacpp", reason="local models need what 'fabula[local]' installs")
    fields = (
        RecordField("quotation", "words", n_chars=6),
        RecordField("severity", "weight", numbers=(3, 2, 1)),
        RecordField("remark", "what is wrong", n_chars=6),
    )

    async def said(n_most: int, seed: int) -> str:
        async with open_model(str(small_model)) as model:
            form = Records("points", fields, n_most)
            prompt = Prompt("A draft.", "What is wrong?")
            answer = await model.ask(prompt, Sampling(temperature=1.0, seed=seed), form)
        assert answer.stop == "end"
        return answer.text

    for n_most in (1, 3):
        entries = json.loads(asyncio.run(said(n_most, seed=n_most)), strict=False)["points"]
        assert len(entries) <= n_most
        for one in entries:
            assert list(one) == ["quotation", "severity", "remark"]
            assert one["severity"] in (1, 2, 3)

"""Editors' answers in the styles of many models, and where their quoted words stand in a draft."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands import invoke
from tests.serving import prompt_of, serving

from fabula.feedback.answer_lines import QuotableText, answer_records, point_form, quoted_parts
from fabula.feedback.points import read_answer
from fabula.feedback.written_faults import moved_places
from fabula.models.base import Prompt, RecordField, Records, Sampling
from fabula.models.model_spec import open_model
from fabula.models.verdicts import in_words

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "advice.json").read_text(encoding="utf-8")
)
DRAFT = GOLDEN["draft"]
QUOTED = QuotableText.of(DRAFT)


@pytest.mark.parametrize("row", GOLDEN["answers"], ids=lambda row: row["answer"][:40])
def test_every_line_is_of_a_point_or_counted(row: dict[str, Any]):
    reading = read_answer(row["answer"], 0, QUOTED)
    found = [(DRAFT[r.start : r.end], len(r.places)) for r in reading.remarks]
    assert found == [(words, n) for words, n, _ in row["points"]]
    for remark, (_, _, said) in zip(reading.remarks, row["points"], strict=True):
        assert remark.text.startswith(said)
        assert not set("*`#|") & set(remark.text), "what is shown holds no Markdown"
    assert dict(reading.dropped) == row["dropped"]
    assert dict(reading.other_lines) == row["other"]


@given(st.lists(st.sampled_from([
    "- ", "1. ", "**2.** ", "  - ", "> ", "### ", "", "\n", '"The rain began": ', "too slow by far",
    "'sits on the wall' ", "`by chance` ", "**Pacing**", "Overall, good.", "|", "---",
]), max_size=14))  # fmt: skip
def test_any_answer_is_read_and_places_lie_in_the_draft(parts: list[str]):
    reading = read_answer("\n".join("".join(parts).split("\n")), 0, QUOTED)
    for remark in reading.remarks:
        for start, end in remark.places:
            assert 0 <= start < end <= len(DRAFT)


def test_no_more_points_are_taken_than_were_asked_for():
    answer = '- "sits on the wall": wrong tense here.\n- "by chance": much too easy for her.'
    reading = read_answer(answer, 0, QUOTED, n_most=1)
    assert (len(reading.remarks), dict(reading.dropped)) == (1, {"beyond": 1})


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (DRAFT, "sits on the wall"),
        (DRAFT.replace("The rain began at noon. ", ""), "sits on the wall"),
        (DRAFT.replace("sits on the wall", "sat on the wall"), "sat on the wall"),
        (DRAFT.replace("sits on the wall", "leaned over the rail"), "leaned over the rail"),
        (DRAFT.replace(" and sits on the wall", ""), None),
        ("sits on the wall. " + DRAFT.replace("sits", "sat"), "sat on the wall"),
    ],
)
def test_a_place_is_followed_into_the_next_draft(after: str, expected: str | None):
    start = DRAFT.index("sits on the wall")
    (found,) = moved_places([(start, start + len("sits on the wall"))], DRAFT, after)
    assert (found and after[slice(*found)]) == expected


CAT = "“Run!” cried the Cat.\nThe cat — an old one — ran.  It ran, and didn’t stop... not once."


@pytest.mark.parametrize(
    ("quotation", "expected"),
    [
        ("cried the cat", "cried the Cat"), ('"Run!" cried the Cat.', "Run!” cried the Cat"),
        ("run, cried the cat", "Run!” cried the Cat"),
        ("the cat an old one ran", "The cat — an old one — ran"),
        ("The cat - an old one - ran", "The cat — an old one — ran"),
        ("didn't stop", "didn’t stop"), ("Cat. The cat", "Cat.\nThe cat"),
        ("The cat ... It ran", "The cat — an old one — ran.  It ran"),
        ("an old […] not once.", "an old one — ran.  It ran, and didn’t stop... not once"),
        ("stop... not once", "stop... not once"), ("once", "once"),
        # A single word that stands there twice says not which one is meant.
        *((missing, None) for missing in (
            "the dog", "he cat", "cried the Ca", "ran", "", "...", "“”", "It ran ... The cat",
            "stop stop")),
    ],
)  # fmt: skip
def test_what_was_quoted_is_found_as_it_stands_or_not_at_all(quotation: str, expected: str | None):
    found = QuotableText.of(CAT).find(quotation)
    assert [CAT[slice(*place)] for place in found[:1]] == ([] if expected is None else [expected])


def plain_places(text: str, words: list[str]) -> list[tuple[int, int]]:
    """Every place of these words in a row, by comparing the words of the text one by one."""
    found = [(m.group().lower(), m.start(), m.end()) for m in re.finditer(r"\w+", text)]
    n = len(words)
    return [
        (found[k][1], found[k + n - 1][2])
        for k in range(len(found) - n + 1)
        if [word for word, _, _ in found[k : k + n]] == words
    ]


WORDS = st.lists(st.sampled_from(["a", "ab", "b", "ba"]), min_size=2, max_size=3)


@given(
    st.lists(st.sampled_from(["a", "AB", "b", "ba"]), max_size=14),
    st.lists(st.sampled_from([" ", ", ", "\n", " “", ".” "]), min_size=14, max_size=14), WORDS,
)  # fmt: skip
def test_places_are_those_of_a_comparison_word_by_word(
    parts: list[str], gaps: list[str], words: list[str]
):
    text = "".join(word + gap for word, gap in zip(parts, gaps, strict=False))
    assert QuotableText.of(text).find(" ".join(words)) == plain_places(text, words)


@given(st.text(max_size=60), st.text(max_size=12))
def test_any_text_and_quotation_gives_places_within_the_text(text: str, quotation: str):
    for start, end in QuotableText.of(text).find(quotation):
        assert 0 <= start < end <= len(text)


def test_quotations_hold_quotations():
    line = '"“Run!” cried the cat": too loud'
    found = [line[a:b] for a, b in quoted_parts(line)]
    assert found[0] == "“Run!” cried the cat"
    assert "Run!" in found
    assert len(quoted_parts('"' * 5000)) < 100, "hostile lines cost no more"


def test_what_stands_between_two_quotations_is_none():
    line, curly = '"purple elephant" in the "green dragon": not explained', "“one” and “two”"
    found = [line[a:b] for a, b in quoted_parts(line)]
    assert " in the " not in found
    assert {"purple elephant", "green dragon"} <= {*found}
    assert [curly[a:b] for a, b in quoted_parts(curly)] == ["one” and “two", "one", "two"]


LETTER_DRAFT = """Anna put the letter on the table and went out, very slowly, quite silently, sadly.

"Where is she?" asked Tom. Nobody answered. The clock struck eleven.
"""
LETTER_QUOTED = QuotableText.of(LETTER_DRAFT)
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
    found = read_answer(answer, 0, LETTER_QUOTED, n_most=2)
    assert [(LETTER_DRAFT[r.start : r.end], r.severity) for r in found.remarks] == expected
    assert (dict(found.dropped), dict(found.other_lines)) == (dropped, others)
    assert not found.is_empty


def test_an_empty_list_says_that_nothing_should_change_and_lines_are_no_list():
    assert read_answer('{"points": []}', 0, LETTER_QUOTED).is_empty
    assert answer_records('- "put the letter": what became of it?') is None
    assert answer_records('{"verdict": "No"}') is None


def test_a_model_held_to_a_form_is_asked_for_json_and_what_it_says_is_used(tmp_path: Path):
    draft, out = tmp_path / "d.txt", tmp_path / "one.jsonl"
    draft.write_text(LETTER_DRAFT)
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

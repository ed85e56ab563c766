"""What is asked after what, what is still open, and what an answer that was taken back retires."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.studies.running import Make, Running, tales
from tests.studies.test_screening import ABOUT, ATTENTION

from fabula.core.errors import InputError
from fabula.core.scales import Scale
from fabula.core.types import Item
from fabula.rubrics.conditions import Condition
from fabula.studies.design import StudyDesign, load_study, new_study
from fabula.studies.forms import Answers, FormError, Key, pages_of, retired, with_answer


@pytest.fixture(scope="module")
def designs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, StudyDesign]:
    folder = tmp_path_factory.mktemp("designs")
    (folder / "d.jsonl").write_text("{}\n")
    kinds: Any = ("ttcw", "feedback")
    for kind in kinds:
        new_study(folder / f"{kind}.toml", kind, folder / "d.jsonl")
    return {kind: load_study(folder / f"{kind}.toml") for kind in kinds}


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


def asking(design: StudyDesign, *items: Item) -> StudyDesign:
    return replace(design, rubric=replace(design.rubric, items=items))


@given(answers=st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["Yes", "No"]), max_size=4))
def test_what_no_longer_applies_is_retired_to_the_last(designs: Any, answers: dict[str, str]):
    items = (
        Item("a", 1, "A", "A?"),
        Item("b", 2, "B", "B?", show_if="a == 'Yes'"),
        Item("c", 3, "C", "C?", show_if="b == 'Yes' or a == 'No'"),
        Item("d", 4, "D", "D?", show_if="not c == 'No' and b == 'No'"),
    )
    given: Answers = {("unit", item): value for item, value in answers.items()}
    kept, gone = retired(pages_of(asking(designs["feedback"], *items), 1), given, {})
    # By hand: strike out what does not apply, one at a time, until all that is left does.
    expected = dict(answers)
    conditions = {item.id: Condition.parse(item.show_if) for item in items if item.show_if}
    while over := [one for one in expected
                   if one in conditions and not conditions[one].holds(expected)]:  # fmt: skip
        for item in over:
            del expected[item]
    assert {item: value for (_, item), value in kept.items()} == expected
    assert {item for _, item in gone} == set(answers) - set(expected)


def test_a_condition_on_a_number_holds_of_what_was_typed(designs: dict[str, StudyDesign]):
    grade = Item("grade", 1, "A", "A?", scale=Scale("number", low=1, high=5))
    why = Item("why", 2, "B", "B?", show_if="grade >= 3")
    page = pages_of(asking(designs["feedback"], grade, why), 1)[1]
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


QUIZ = '[[quiz]]\ntext="T"\nquestion="Q"\noptions=["a", "b"]\nanswer="c"'
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("ttcw", {"raters": "many"}, "raters"), ("ttcw", {"rater": 3}, "rater"),
    ("ttcw", {"raters": 0}, "raters"), ("ttcw", {"id": "Not an id"}, "id"),
    ("ttcw", {"rubric": "nothing"}, "no such rubric"), ("ttcw", {"more": QUIZ}, "not one of its"),
    ("ttcw", {"quiz_pass": 1}, "only 0 questions"),
    # What is asked about people, and what they are told.
    ("ttcw", {"more": "[codes]\ndone = 'http://platform.example'\n"},
     "codes: done: .* begins with https://"),
    ("ttcw", {"more": "[codes]\nfinished = 'X'\n"}, "codes.finished"),
    ("ttcw", {"more": ABOUT.replace('"age"', '"expertise"')}, "two questions have this id"),
    ("ttcw", {"more": ABOUT.replace(', "No"]', "]")}, "about: expertise: a choice needs"),
    ("ttcw", {"more": ABOUT.replace("high = 99", "")}, "about: age: a number needs low and high"),
    # What is asked to see whether they pay attention.
    ("ttcw", {"more": ATTENTION.replace('"No"', '"Perhaps"')}, "attention 1: the answer 'Perhaps'"),
    ("ttcw", {"repeat": ["ending"]}, "repeat: ttcw has no item ending; it has"),
    ("feedback", {"repeat": ["relevance"]}, "repeat: relevance is not always asked"),
    ("pairs", {"more": ATTENTION.replace("at = 2", "at = 99")}, "attention 1: at: nobody is given"),
    ("pairs", {"repeat": ["overall"], "repeat_at": 11}, "repeat_at: nobody is given"),
    ("pairs", {"repeat": ["overall"]}, r"repeat_at: these documents .* \(1 at most\)"),
    ("pairs", {"more": ATTENTION}, r"attention 1: at: these documents .* \(1 at most\)"),
    # What is compared.
    ("pairs", {"rows": tales(2, 4), "max_pairs": 5}, "at least 6 pairs are needed"),
    ("pairs", {"rows": tales(2, 1)}, "contains only one story"),
    ("pairs", {"rubric": "feedback_category"}, "be asked about pairs"),
    ("best-worst", {"rows": tales(1, 3)}, "contains only 3 stories, and 4 are shown"),
    ("best-worst", {"rows": tales(1, 4), "ties": True},
     "the best and the worst are always named"),
    # Whom a platform sends.
    ("ttcw", {"more": "[entry]\nallow = 'nobody.txt'\n"}, "allow: nobody.txt does not exist"),
    ("ttcw", {"more": "[entry]\nsigned = true\n"}, "name it as `address`"),
    *(("ttcw", {"more": f"[entry]\napi = '{api}'\n"}, "api: must be https://api.prolific.com")
      for api in ("http://elsewhere.example", "https://api.prolific.com.elsewhere.example")),
    ("ttcw", {"more": "[entry]\nstudies = ['../x']\n"}, "entry.studies"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "about", "said"), REFUSED, ids=[one[-1] for one in REFUSED])
def test_a_study_that_cannot_be_run_names_the_field(opened: Make, kind: str, about: Any, said: str):
    with pytest.raises(InputError, match=said):
        opened(kind, **about)


def test_a_new_study_takes_no_other_s_place(study: Running):
    with pytest.raises(InputError, match="already exists"):
        new_study(study.design.path, "ttcw", study.design.documents)

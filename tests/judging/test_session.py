"""What a judge is asked, and what its answers are worth."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.judging.judged_stories import ALONE, PLAN, STORIES, TTCW, asked, judged, rubric_text
from tests.judging.judged_stories import session as session
from tests.judging.judged_stories import steady as steady
from tests.serving import Reply, asks_what_was_meant, prompt_of, serving

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.judging.prompts import Template, read_template
from fabula.judging.run import RETEST
from fabula.judging.session import read_run, run_session
from fabula.judging.summary import summarise
from fabula.judging.trust import TrustBook
from fabula.models.model_spec import ModelOptions
from fabula.rubrics.load import parse_rubric
from fabula.rubrics.released import published_ttcw


def test_every_item_of_every_story_is_measured_in_order(tmp_path: Path):
    with serving(steady) as server:
        found, spent = run_session(session(server.url, tmp_path / "run"))
    assert [(one.document_id, one.item) for one in found] == [
        (story.id, item.id) for story in STORIES for item in TTCW.items
    ]
    assert {one.value for one in found} == {0.0, 1.0}
    assert all(one.rationale and one.rationale.startswith("Reason") for one in found)
    assert spent[0].n_calls == len(server.requests) == 42
    rubric, kept = read_run(tmp_path / "run")
    assert rubric == TTCW
    assert kept == found
    # The story comes first and the item last.
    prompts = [prompt for prompt in server.prompts() if STORIES[0].text in prompt]
    (shared,) = {"".join(prompt.partition(STORIES[0].text)[:2]) for prompt in prompts}
    for item in TTCW.items:
        assert sum(item.question in prompt for prompt in prompts) == 1
        assert item.question not in shared


def test_the_same_answers_give_the_same_bytes_however_many_at_a_time(tmp_path: Path):
    with serving(steady) as server:
        for n in (1, 7):
            options = ModelOptions(n_parallel=n, max_retries=0)
            judged(server.url, tmp_path / f"{n}", options=options)
    for n in (1, 7):
        recorded = f"replay:{tmp_path / f'{n}' / 'answers.jsonl'}"
        run_session(replace(session(server.url, tmp_path / f"replay{n}"), models=[recorded]))
    folders = ("1", "7", "replay1", "replay7")
    assert len({(tmp_path / name / "measurements.jsonl").read_bytes() for name in folders}) == 1


def in_turn(*replies: str) -> Callable[[dict[str, Any], int], Reply]:
    """A judge that answers each prompt with these in turn, and then with the last of them."""
    times: Counter[str] = Counter()

    def answer(body: dict[str, Any], _: int) -> Reply:
        if asks_what_was_meant(body):
            return "None."
        times[prompt_of(body)] += 1
        return replies[min(times[prompt_of(body)], len(replies)) - 1]

    return answer


def test_repeated_answers_give_the_share_of_yes_and_its_spread():
    of_four = {"plan": replace(PLAN, n_samples=4), "documents": STORIES[:1], "options": ALONE}
    (one, *_), _ = asked(in_turn("Yes.", "Yes.", "No.", "Hm."), **of_four)
    assert one.value == pytest.approx(2 / 3, abs=1e-6)
    # The standard deviation of 1, 1, 0.
    assert one.details["sd"] == pytest.approx(0.5774, abs=1e-4)
    assert (one.details["n_samples"], one.details["n_answered"]) == (4, 3)
    assert one.details["missing"] == {"no_verdict": 1}


def test_what_an_unclear_answer_meant_is_asked_once(tmp_path: Path):
    said = "It is hard to say. The ending is abrupt."

    def unsure(body: dict[str, Any], _: int) -> Reply:
        return "No." if asks_what_was_meant(body) else said

    with serving(unsure) as server:
        run = session(server.url, tmp_path / "run", documents=STORIES[:1])
        found, _ = run_session(run)
        n_requests = len(server.requests)
        again, _ = run_session(run)
        assert len(server.requests) == n_requests == 2 * len(TTCW.items)
    assert {(v.value, v.rationale, v.details["n_clarified"]) for v in found} == {(0.0, said, 1)}
    assert again == found


def test_one_answer_of_five_speaks_for_no_story():
    says = in_turn("Yes.", "I'm sorry, but I can't do that.")
    found, _ = asked(says, plan=replace(PLAN, n_samples=5), documents=STORIES[:1])
    assert {(one.value, one.missing_reason) for one in found} == {(None, "refusal")}


def test_retest_counts_flips_and_own_stories_are_noted(tmp_path: Path):
    turned = in_turn("Yes.", "No.", "Yes.")

    def fickle(body: dict[str, Any], number: int) -> Reply:
        first = next(k for k, item in enumerate(TTCW.items) if item.question in prompt_of(body))
        return turned(body, number) if first < 4 else "Yes."

    with serving(fickle) as server:
        run = session(server.url, None, n_retest=1, options=ALONE)
        found, _ = run_session(replace(run, models=[f"{server.url}/v1#gpt-4"]))
    assert sum(one.document_id.endswith(RETEST) for one in found) == 14
    (summary,) = summarise(found, STORIES, TTCW, TrustBook(tmp_path / "none"))
    assert (summary.n_flips, summary.n_retested) == (4, 14)
    assert list(summary.scores.values()) == [14, 14, 14]
    assert summary.own_stories == {"same model": 1}
    assert summary.length_rho is None


def test_a_score_with_a_missing_answer_is_missing(tmp_path: Path):
    found, _ = asked(lambda _, n: "Hm." if n in (5, 6) else "Yes.", options=ALONE)
    (summary,) = summarise(found, STORIES, TTCW, TrustBook(tmp_path / "none"))
    assert list(summary.scores.values()) == [None, 14, 14]
    assert summary.missing == {"no_verdict": 1}


CONDITIONAL = parse_rubric(
    rubric_text(
        "form",
        {"positive": "Is there praise?",
         "perfect": {"question": "Is it perfect?", "show_if": "positive == 'Yes'"},
         "worst": {"question": "What is worst?", "show_if": "positive == 'No' or perfect == 'No'",
                   "scale": {"kind": "choice", "options": ["plot", "style"]}}},
    ).encode(),
    "form",
)  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"praise": "Yes.", "perfect?": "Yes."}, [1.0, 1.0, "not_asked"]),
        ({"praise": "Yes.", "perfect?": "No.", "worst": "style"}, [1.0, 0.0, "style"]),
        ({"praise": "No.", "worst": "plot"}, [0.0, "not_asked", "plot"]),
        ({"praise": "Hm."}, ["no_verdict", "gate_missing", "gate_missing"]),
    ],
)
def test_an_item_is_asked_only_where_its_condition_holds(answers: dict[str, str], expected: Any):
    def by_item(body: dict[str, Any], _: int) -> Reply:
        return next(reply for key, reply in answers.items() if key in prompt_of(body))

    plan = replace(PLAN, rubric=CONDITIONAL)
    found, server = asked(by_item, documents=STORIES[:1], plan=plan)
    assert [one.missing_reason if one.value is None else one.value for one in found] == expected
    skipped = ("not_asked", "gate_missing")
    n_unclear = expected.count("no_verdict")
    assert len(server.requests) == n_unclear + sum(value not in skipped for value in expected)


def test_an_empty_story_is_not_asked_about():
    found, server = asked(steady, documents=[Document("e", " \n… —")])
    assert {one.missing_reason for one in found} == {"no_words"}
    assert not server.requests


def test_a_preference_counts_only_if_it_stays_when_the_order_turns():
    def likes_the_lamp(body: dict[str, Any], _: int) -> Reply:
        prompt = prompt_of(body)
        return "A." if prompt.index("The lamp") < prompt.index("She counted") else "B."

    for answer, expected in (
        (likes_the_lamp, ("a", None)), (lambda *_: "A. The first.", (None, "order")),
    ):  # fmt: skip
        found, server = asked(answer, pairs=[(STORIES[0], STORIES[1])])
        assert len(server.requests) == 28
        assert {(one.value, one.missing_reason) for one in found} == {expected}


def test_some_items_are_a_part_of_the_same_rubric(tmp_path: Path):
    some = replace(PLAN, only=("narrative_ending", "literary_devices"))
    found, server = asked(steady, tmp_path / "run", plan=some)
    assert len(server.requests) == len(found) == 6
    rubric, _ = read_run(tmp_path / "run")
    assert rubric == TTCW
    (summary,) = summarise(found, STORIES, TTCW, TrustBook(tmp_path / "none"))
    assert [row.item.id for row in summary.items] == ["narrative_ending", "literary_devices"]


def test_a_tie_of_repeated_answers_is_no_no(tmp_path: Path):
    found, _ = asked(in_turn("Yes.", "No."), plan=replace(PLAN, n_samples=2))
    assert {one.value for one in found} == {0.5}
    (summary,) = summarise(found, STORIES, TTCW, TrustBook(tmp_path / "none"))
    assert set(summary.scores.values()) == {None}
    assert summary.missing == {"tie": 42}
    assert all(row.pass_rate is None for row in summary.items)


def test_conditions_go_by_all_samples():
    turned = in_turn("Yes.", "Yes.", "No.")

    def mostly(body: dict[str, Any], number: int) -> Reply:
        return turned(body, number) if "praise" in prompt_of(body) else "Yes."

    plan = replace(PLAN, rubric=CONDITIONAL, n_samples=3)
    found, _ = asked(mostly, documents=STORIES[:1], plan=plan, options=ALONE)
    assert [one.value for one in found] == [pytest.approx(2 / 3, abs=1e-6), 1.0, None]


@pytest.mark.parametrize(
    ("ids", "said"), [(["a#retest"], "#retest"), (["a", "a"], "two texts have the id 'a'")]
)
def test_ids_that_would_be_mistaken_are_refused(ids: list[str], said: str):
    with pytest.raises(InputError, match=said):
        judged("http://127.0.0.1:9", documents=[Document(one, "x") for one in ids])


def test_numbers_are_not_counted_as_yes(tmp_path: Path):
    scale = {"kind": "number", "low": 1, "high": 10}
    items = {name: {"question": f"How good is the {name}?", "scale": scale}
             for name in ("plot", "style")}  # fmt: skip
    text = rubric_text("grades", items, aggregate={"rule": "mean"})
    rubric = parse_rubric(text.encode(), "grades")
    plan = replace(PLAN, rubric=rubric)
    found, _ = asked(lambda body, _: "7." if "plot" in prompt_of(body) else "4.", plan=plan)
    (summary,) = summarise(found, STORIES, rubric, TrustBook(tmp_path / "none"))
    assert set(summary.scores.values()) == {5.5}


def test_a_template_has_its_marks_in_any_order_and_what_it_holds_stays_as_it_is(tmp_path: Path):
    file = tmp_path / "t.txt"
    story = Document("s", "A [QUESTION] in the story, and [STORY].")
    item = replace(TTCW.items[0], background="Of [STORY].")

    def read(text: str) -> Template:
        file.write_text(text)
        return read_template(file, "reason-first")

    template = read("[BACKGROUND]\n[INSTRUCTION]\nQ) [QUESTION]\n\n[STORY]\nSo Yes. or So No.")
    prompt = template.prompt(story, item)
    assert prompt.text == (
        f"Of [STORY].\n{item.list_first}\nQ) {item.question}\n\n{story.text}\nSo Yes. or So No."
    )
    # No two items share a prefix here, and a story that comes first is shared by all.
    assert (prompt.prefix, template.has_story_first) == ("", False)
    template = read("[STORY]\n[QUESTION] [BACKGROUND]\n")
    assert (template.prompt(story, item).prefix, template.has_story_first) == (story.text, True)
    for wrong, said in (
        ("[STORY] [INSTRUCTION] [INSTRUCTION] [QUESTION] [BACKGROUND]",
         r"\[INSTRUCTION\] only once"),
        ("[QUESTION] [STORY]", r"\[BACKGROUND\]"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            read(wrong)


def test_the_published_prompts_are_sent_word_for_word(shared_data: Path, tmp_path: Path):
    path, file = shared_data / "ttcw" / "ttcw_all_tests.json", tmp_path / "t.txt"
    file.write_text("[STORY]\n\n[BACKGROUND]\n\n[INSTRUCTION]\n\nQ) [QUESTION]")
    template = read_template(file, "reason-first")
    plan = replace(PLAN, rubric=published_ttcw(path), template=template)
    story = Document("s", "THE STORY")
    _, server = asked(lambda *_: "So.\nVerdict: Yes", documents=[story], plan=plan)
    # One of them has an n before its Q, left over from a line break.
    published = [
        f"THE STORY {row['full_prompt'].replace('nQ)', 'Q)')}".split()
        for row in json.loads(path.read_text(encoding="utf-8"))
    ]
    assert sorted(prompt.split() for prompt in server.prompts()) == sorted(published)

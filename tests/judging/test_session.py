"""What a judge is asked, and what its answers are worth."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.judging.judged_stories import PLAN, STORIES, TTCW, session, steady
from tests.serving import Reply, asks_what_was_meant, completion, prompt_of, serving

from fabula.core.errors import InputError
from fabula.core.types import Document, Measurement
from fabula.judging.prompts import read_template
from fabula.judging.run import RETEST
from fabula.judging.session import read_run, run_session
from fabula.judging.summary import summarise
from fabula.judging.trust import TrustBook
from fabula.models.model_spec import ModelOptions
from fabula.rubrics.load import parse_rubric
from fabula.rubrics.released import released_rubric


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


def test_the_story_comes_first_and_the_item_last(tmp_path: Path):
    with serving(steady) as server:
        run_session(session(server.url, None, documents=STORIES[:1]))
    prompts = server.prompts()
    shared = _common_prefix(prompts)
    assert STORIES[0].text in shared
    for item in TTCW.items:
        assert sum(item.question in prompt for prompt in prompts) == 1
        assert item.question not in shared


def _common_prefix(texts: list[str]) -> str:
    low, high = min(texts), max(texts)
    n = next((k for k, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return low[:n]


def test_the_same_answers_give_the_same_bytes_however_many_at_a_time(tmp_path: Path):
    files = []
    with serving(steady) as server:
        for n in (1, 7):
            options = ModelOptions(n_parallel=n, max_retries=0)
            run_session(session(server.url, tmp_path / str(n), options=options))
            files.append((tmp_path / str(n) / "measurements.jsonl").read_bytes())
    for k in range(2):
        out = tmp_path / f"replay{k}"
        replayed = session(server.url, out)
        recorded = tmp_path / ("1" if k else "7") / "answers.jsonl"
        run_session(replace(replayed, models=[f"replay:{recorded}"]))
        files.append((out / "measurements.jsonl").read_bytes())
    assert len(set(files)) == 1


def test_repeated_answers_give_the_share_of_yes_and_its_spread():
    seen: Counter[str] = Counter()

    def mixed(body: dict[str, Any], _: int) -> Reply:
        if asks_what_was_meant(body):
            return "None."
        seen[prompt_of(body)] += 1
        return ("Yes.", "Yes.", "No.", "Hm.")[seen[prompt_of(body)] - 1]

    options = ModelOptions(n_parallel=1, max_retries=0)
    with serving(mixed) as server:
        found, _ = run_session(
            session(server.url, None, plan=replace(PLAN, n_samples=4), documents=STORIES[:1],
                    options=options)
        )  # fmt: skip
    one = found[0]
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
    assert {(one.value, one.rationale, one.details["n_clarified"]) for one in found} == {
        (0.0, said, 1)
    }
    assert again == found


def test_one_answer_of_five_speaks_for_no_story():
    asked: Counter[str] = Counter()

    def refusing(body: dict[str, Any], _: int) -> Reply:
        asked[prompt_of(body)] += 1
        return "Yes." if asked[prompt_of(body)] == 1 else "I'm sorry, but I can't do that."

    plan = replace(PLAN, n_samples=5)
    with serving(refusing) as server:
        found, _ = run_session(session(server.url, None, plan=plan, documents=STORIES[:1]))
    assert {(one.value, one.missing_reason) for one in found} == {(None, "refusal")}


def test_retest_counts_flips_and_own_stories_are_noted(tmp_path: Path):
    asked: Counter[str] = Counter()

    def fickle(body: dict[str, Any], number: int) -> Reply:
        asked[prompt_of(body)] += 1
        first = next(k for k, item in enumerate(TTCW.items) if item.question in prompt_of(body))
        return "No." if asked[prompt_of(body)] == 2 and first < 4 else "Yes."

    with serving(fickle) as server:
        one_at_a_time = ModelOptions(n_parallel=1, max_retries=0)
        run = session(server.url, None, n_retest=1, options=one_at_a_time)
        run = replace(run, models=[f"{server.url}/v1#gpt-4"])
        found, _ = run_session(run)
    assert sum(one.document_id.endswith(RETEST) for one in found) == 14
    (summary,) = summarise(found, STORIES, TTCW, TrustBook(tmp_path / "none"))
    assert (summary.n_flips, summary.n_retested) == (4, 14)
    assert list(summary.scores.values()) == [14, 14, 14]
    assert summary.own_stories == {"same model": 1}
    assert summary.length_rho is None


def test_a_score_with_a_missing_answer_is_missing(tmp_path: Path):
    with serving(lambda _, n: "Hm." if n in (5, 6) else "Yes.") as server:
        one_at_a_time = ModelOptions(n_parallel=1, max_retries=0)
        found, _ = run_session(session(server.url, None, options=one_at_a_time))
    (summary,) = summarise(found, STORIES, TTCW, TrustBook(tmp_path / "none"))
    assert list(summary.scores.values()) == [None, 14, 14]
    assert summary.missing == {"no_verdict": 1}


CONDITIONAL = parse_rubric(
    b"""
id = "form"
version = "1"
title = "Form"
citation = ""
[[items]]
id = "positive"
index = 1
title = "Positive"
question = "Is there praise?"
[[items]]
id = "perfect"
index = 2
title = "Perfect"
question = "Is it perfect?"
show_if = "positive == 'Yes'"
[[items]]
id = "worst"
index = 3
title = "Worst"
question = "What is worst?"
scale = { kind = "choice", options = ["plot", "style"] }
show_if = "positive == 'No' or perfect == 'No'"
""",
    "form",
)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"praise": "Yes.", "perfect?": "Yes."}, [1.0, 1.0, "not_asked"]),
        ({"praise": "Yes.", "perfect?": "No.", "worst": "style"}, [1.0, 0.0, "style"]),
        ({"praise": "No.", "worst": "plot"}, [0.0, "not_asked", "plot"]),
        ({"praise": "Hm."}, ["no_verdict", "gate_missing", "gate_missing"]),
    ],
)
def test_an_item_is_asked_only_where_its_condition_holds(
    answers: dict[str, str], expected: list[Any]
):
    def by_item(body: dict[str, Any], _: int) -> Reply:
        return next(reply for key, reply in answers.items() if key in prompt_of(body))

    plan = replace(PLAN, rubric=CONDITIONAL)
    with serving(by_item) as server:
        found, _ = run_session(session(server.url, None, documents=STORIES[:1], plan=plan))
    assert [one.missing_reason if one.value is None else one.value for one in found] == expected
    skipped = ("not_asked", "gate_missing")
    n_unclear = expected.count("no_verdict")
    assert len(server.requests) == n_unclear + sum(value not in skipped for value in expected)


def test_an_empty_story_is_not_asked_about():
    with serving(steady) as server:
        found, _ = run_session(session(server.url, None, documents=[Document("e", " \n… —")]))
    assert {one.missing_reason for one in found} == {"no_words"}
    assert not server.requests


def pairs_with(answer: Any, tmp_path: Path) -> list[Measurement]:
    with serving(answer) as server:
        found, _ = run_session(
            session(server.url, tmp_path / "run", pairs=[(STORIES[0], STORIES[1])])
        )
    assert len(server.requests) == 28
    return found


def test_a_preference_counts_only_if_it_stays_when_the_order_turns(tmp_path: Path):
    def likes_the_lamp(body: dict[str, Any], _: int) -> Reply:
        prompt = prompt_of(body)
        return "A." if prompt.index("The lamp") < prompt.index("She counted") else "B."

    assert {one.value for one in pairs_with(likes_the_lamp, tmp_path / "1")} == {"a"}
    first = pairs_with(lambda *_: "A. The first.", tmp_path / "2")
    assert {(one.value, one.missing_reason) for one in first} == {(None, "order")}


def test_some_items_are_a_part_of_the_same_rubric(tmp_path: Path):
    some = replace(PLAN, only=("narrative_ending", "literary_devices"))
    with serving(steady) as server:
        found, _ = run_session(session(server.url, tmp_path / "run", plan=some))
        assert len(server.requests) == len(found) == 6
        with pytest.raises(InputError, match="items"):
            run_session(session(server.url, tmp_path / "run"))
    rubric, _ = read_run(tmp_path / "run")
    assert rubric == TTCW
    (summary,) = summarise(found, STORIES, TTCW, TrustBook(tmp_path / "none"))
    assert [row.item.id for row in summary.items] == ["narrative_ending", "literary_devices"]


def test_a_tie_of_repeated_answers_is_no_no(tmp_path: Path):
    asked: Counter[str] = Counter()

    def half(body: dict[str, Any], _: int) -> Reply:
        asked[prompt_of(body)] += 1
        return "Yes." if asked[prompt_of(body)] == 1 else "No."

    with serving(half) as server:
        two = replace(PLAN, n_samples=2)
        found, _ = run_session(session(server.url, None, plan=two))
    assert {one.value for one in found} == {0.5}
    (summary,) = summarise(found, STORIES, TTCW, TrustBook(tmp_path / "none"))
    assert set(summary.scores.values()) == {None}
    assert summary.missing == {"tie": 42}
    assert all(row.pass_rate is None for row in summary.items)


def test_conditions_go_by_all_samples():
    asked: Counter[str] = Counter()

    def mostly(body: dict[str, Any], _: int) -> Reply:
        asked[prompt_of(body)] += 1
        return "No." if "praise" in prompt_of(body) and asked[prompt_of(body)] == 3 else "Yes."

    plan = replace(PLAN, rubric=CONDITIONAL, n_samples=3)
    one_at_a_time = ModelOptions(n_parallel=1, max_retries=0)
    with serving(mostly) as server:
        found, _ = run_session(
            session(server.url, None, documents=STORIES[:1], plan=plan, options=one_at_a_time)
        )
    assert [one.value for one in found] == [pytest.approx(2 / 3, abs=1e-6), 1.0, None]


def test_an_id_that_looks_like_a_retest_is_refused():
    with pytest.raises(InputError, match="#retest"):
        run_session(session("http://127.0.0.1:9", None, documents=[Document("a#retest", "x")]))


def test_numbers_are_not_counted_as_yes(tmp_path: Path):
    rubric = parse_rubric(
        b"""
id = "grades"
version = "1"
title = "Grades"
[aggregate]
rule = "mean"
[[items]]
id = "plot"
index = 1
title = "Plot"
question = "How good is the plot?"
scale = { kind = "number", low = 1, high = 10 }
[[items]]
id = "style"
index = 2
title = "Style"
question = "How good is the style?"
scale = { kind = "number", low = 1, high = 10 }
""",
        "grades",
    )
    with serving(lambda body, _: "7." if "plot" in prompt_of(body) else "4.") as server:
        found, _ = run_session(session(server.url, None, plan=replace(PLAN, rubric=rubric)))
    (summary,) = summarise(found, STORIES, rubric, TrustBook(tmp_path / "none"))
    assert set(summary.scores.values()) == {5.5}


def test_two_stories_of_one_id_are_refused():
    with pytest.raises(InputError, match="two texts have the id 'a'"):
        run_session(session("http://127.0.0.1:9", None, documents=[STORIES[0], STORIES[0]]))


def test_a_template_of_the_users_is_used_word_for_word(tmp_path: Path):
    file = tmp_path / "t.txt"
    file.write_text("Read.\n[STORY]\nNow: [BACKGROUND]\nQ: [QUESTION]\nYes or No first.")
    plan = replace(PLAN, template=read_template(file, "verdict-first"))
    with serving(steady) as server:
        run_session(session(server.url, None, documents=STORIES[:1], plan=plan))
    item = TTCW.items[0]
    story, asked = STORIES[0].text, f"Now: {item.background}\nQ: {item.question}"
    wanted = f"Read.\n{story}\n{asked}\nYes or No first."
    assert wanted in server.prompts()
    file.write_text("[QUESTION] [STORY]")
    with pytest.raises(InputError, match=r"\[BACKGROUND\]"):
        read_template(file, "verdict-first")


def test_a_template_has_its_marks_in_any_order_and_what_it_holds_stays_as_it_is(tmp_path: Path):
    file = tmp_path / "t.txt"
    file.write_text("[BACKGROUND]\n[INSTRUCTION]\nQ) [QUESTION]\n\n[STORY]\nSo Yes. or So No.")
    template = read_template(file, "reason-first")
    story = Document("s", "A [QUESTION] in the story, and [STORY].")
    item = replace(TTCW.items[0], background="Of [STORY].")
    prompt = template.prompt(story, item)
    assert prompt.text == (
        f"Of [STORY].\n{item.list_first}\nQ) {item.question}\n\n{story.text}\nSo Yes. or So No."
    )
    # No two items share a prefix here, and a story that comes first is shared by all.
    assert (prompt.prefix, template.has_story_first) == ("", False)
    file.write_text("[STORY]\n[QUESTION] [BACKGROUND]\n")
    template = read_template(file, "reason-first")
    assert (template.prompt(story, item).prefix, template.has_story_first) == (story.text, True)
    file.write_text("[STORY] [INSTRUCTION] [INSTRUCTION] [QUESTION] [BACKGROUND]")
    with pytest.raises(InputError, match=r"\[INSTRUCTION\] only once"):
        read_template(file, "reason-first")


def test_the_published_prompts_are_sent_word_for_word(shared_data: Path, tmp_path: Path):
    path = shared_data / "ttcw" / "ttcw_all_tests.json"
    rubric = released_rubric("ttcw", path)
    file = tmp_path / "t.txt"
    file.write_text("[STORY]\n\n[BACKGROUND]\n\n[INSTRUCTION]\n\nQ) [QUESTION]")
    template = read_template(file, "reason-first")
    for row in json.loads(path.read_text(encoding="utf-8")):
        (item,) = [one for one in rubric.items if one.index == row["ttcw_idx"]]
        sent = template.prompt(Document("s", "THE STORY"), item).text
        # One of them has an n before its Q, left over from a line break.
        published = row["full_prompt"].replace("nQ)", "Q)")
        assert sent.split() == ["THE", "STORY", *published.split()]


def test_a_content_in_parts_is_read():
    reply = completion("")
    reply["choices"][0]["message"]["content"] = [
        {"type": "text", "text": "Yes. "}, {"type": "text", "text": "It holds."}
    ]  # fmt: skip
    with serving(lambda *_: (200, reply)) as server:
        found, _ = run_session(session(server.url, None, documents=STORIES[:1]))
    assert {(one.value, one.rationale) for one in found} == {(1.0, "It holds.")}


def test_a_finished_completion_says_why_it_stopped():
    with serving(lambda *_: (200, completion("Yes. Because", "length"))) as server:
        found, _ = run_session(session(server.url, None, documents=STORIES[:1]))
    assert {one.value for one in found} == {1.0}
    assert all(one.details["rationale_is_cut"] for one in found)
    with serving(lambda *_: (200, completion("No", "content_filter"))) as server:
        found, _ = run_session(session(server.url, None, documents=STORIES[:1]))
    assert {one.missing_reason for one in found} == {"blocked"}

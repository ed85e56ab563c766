from __future__ import annotations

import hashlib
import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.serving import Reply, completion, prompt_of, serving

from fabula.errors import BusyError, InputError, ModelError
from fabula.judging import JudgePlan, Template, read_template
from fabula.judging.folder import RunFolder, read_run
from fabula.judging.run import RETEST
from fabula.judging.session import Session, run_session
from fabula.judging.summary import summarise
from fabula.judging.trust import TrustBook
from fabula.models import ModelOptions
from fabula.models.cost import Price, parse_price, parse_prices
from fabula.rubrics import load_rubric, parse_rubric
from fabula.rubrics.released import released_rubric
from fabula.types import Document, Measurement, Rubric

TTCW = load_rubric("ttcw")
STORIES = [
    Document("a", "The lamp went out. Nobody rowed over to see why.", author="GPT4"),
    Document("b", "She counted the turns of the light. " * 3, author="Ann"),
    Document("c", "A door stood open. The cup on the table was warm.", author="Ben"),
]  # fmt: skip
PLAN = JudgePlan(TTCW, Template("verdict-first"), max_tokens=200)
PAID = ModelOptions(n_parallel=4, max_retries=0, prices=parse_prices("1/10"))


def steady(body: dict[str, Any], _: int) -> Reply:
    """Yes or No, always the same for the same prompt."""
    digest = hashlib.sha256(prompt_of(body).encode()).digest()
    return f"{'Yes' if digest[0] % 2 else 'No'}. Reason {digest[1]}."


def session(url: str, out: Path | None, **more: Any) -> Session:
    options = ModelOptions(n_parallel=4, max_retries=0)
    given: dict[str, Any] = {"documents": STORIES, "plan": PLAN, "options": options} | more
    return Session(models=[f"{url}/v1#m"], out=out, **given)


def test_every_item_of_every_story_is_measured_in_order(tmp_path: Path) -> None:
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


def test_the_story_comes_first_and_the_item_last(tmp_path: Path) -> None:
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


def test_the_same_answers_give_the_same_bytes_however_many_at_a_time(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("style", ["verdict-first", "reason-first"])
def test_a_hostile_judge_costs_no_finished_verdict(tmp_path: Path, style: Any) -> None:
    # Seven answers and every third call an error: each answer comes, at another place.
    said = [
        "Yes. Good.\nVerdict: Yes", "", "quux " * 3, '{"verdict": "Ye', "I'm sorry, I can't.",
        "No. " + "word " * 100_000 + "\nVerdict: No", "Yes/no",
    ]  # fmt: skip
    served = Counter[str]()

    def hostile(_: dict[str, Any], number: int) -> Reply:
        if number % 3 == 2:
            return 500, {"error": {"message": "out of order", "type": "server_error"}}
        served[said[number % len(said)]] += 1
        return said[number % len(said)]

    plan = replace(PLAN, template=Template(style))
    with serving(hostile) as server:
        found, _ = run_session(
            session(server.url, tmp_path / "run", plan=plan,
                    options=ModelOptions(n_parallel=1, max_retries=0))
        )  # fmt: skip
        reasons = Counter(one.missing_reason for one in found if one.value is None)
        assert len(found) == 42
        assert reasons["failed"] == 14
        assert set(reasons) == {"failed", "no_answer", "no_verdict", "refusal"}
        values = Counter(one.value for one in found if one.value is not None)
        assert (values[1.0], values[0.0]) == (served[said[0]], served[said[5]])
        assert set(served) == set(said)
        n_before = len(server.requests)
        again, _ = run_session(
            session(server.url, tmp_path / "run", plan=plan,
                    options=ModelOptions(n_parallel=1, max_retries=0))
        )  # fmt: skip
    # The second run asks again what failed, and nothing else.
    assert len(server.requests) - n_before == 14
    old = {(one.document_id, one.item): one for one in found if one.missing_reason != "failed"}
    new = {(one.document_id, one.item): one for one in again}
    assert all(new[key] == one for key, one in old.items())


def test_a_server_that_only_fails_is_given_up_with_its_reason(tmp_path: Path) -> None:
    broken = (503, {"error": {"message": "down for repair"}})
    with serving(lambda *_: broken) as server, pytest.raises(ModelError, match="in a row failed"):
        run_session(session(server.url, tmp_path / "run"))
    assert len(server.requests) < 20
    assert not (tmp_path / "run" / "measurements.jsonl").exists()


def test_a_refused_key_stops_at_once(tmp_path: Path) -> None:
    refused = (401, {"error": {"message": "bad key"}})
    with serving(lambda *_: refused) as server, pytest.raises(ModelError, match="key was refused"):
        run_session(session(server.url, tmp_path / "run", documents=STORIES[:1]))
    assert len(server.requests) == 1


def test_a_killed_run_goes_on_and_asks_nothing_finished_twice(tmp_path: Path) -> None:
    stories = tmp_path / "stories.jsonl"
    rows = [json.dumps({"id": story.id, "text": story.text}) + "\n" for story in STORIES]
    stories.write_text("".join(rows))

    def slow(body: dict[str, Any], number: int) -> Reply:
        time.sleep(0.06)
        return steady(body, number)

    with serving(slow) as server:
        command = [
            sys.executable, "-m", "fabula.cli.main", "judge", str(stories), "--model",
            f"{server.url}/v1#m", "--style", "verdict-first", "--parallel", "2", "--out",
        ]  # fmt: skip
        code = "import sys; from fabula.cli.main import main; sys.argv = sys.argv[1:]; main()"
        command[1:3] = ["-c", code, "fabula"]
        out = tmp_path / "killed"
        n_kills, n_in_flight = 0, 2
        while True:
            process = subprocess.Popen(
                [*command, str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            n_rows = _n_lines(out / "answers.jsonl")
            while process.poll() is None and _n_lines(out / "answers.jsonl") < n_rows + 16:
                time.sleep(0.02)
            if process.poll() is not None:
                assert process.returncode == 0, process.communicate()[1].decode()
                break
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.communicate()
            n_kills += 1
        process.communicate()
        n_asked = len(server.requests)
        subprocess.run([*command, str(tmp_path / "whole")], check=True, capture_output=True)
    assert n_kills >= 2
    assert n_asked <= 42 + n_kills * n_in_flight
    whole = tmp_path / "whole" / "measurements.jsonl"
    assert (out / "measurements.jsonl").read_bytes() == whole.read_bytes()


def _n_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_run_of_a_newer_version_is_not_added_to(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serving(steady) as server:
        run_session(session(server.url, out))
        n = len(server.requests)
        whole = (out / "run.json").read_text()
        (out / "run.json").write_text(re.sub(r"v:[\d.]+", "v:99.1", whole))
        answers = (out / "answers.jsonl").read_bytes()
        with pytest.raises(InputError, match=r"run\.json: written by version 99\.1 of Fabula"):
            run_session(session(server.url, out, documents=STORIES[:1]))
        assert len(server.requests) == n
    assert (out / "answers.jsonl").read_bytes() == answers


def test_another_way_to_ask_is_not_mixed_into_a_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serving(steady) as server:
        run_session(session(server.url, out))
        n = len(server.requests)
        for plan, said in (
            (replace(PLAN, template=Template("reason-first")), "style"),
            (replace(PLAN, temperature=0.7), "temperature"),
            (replace(PLAN, rubric=replace(TTCW, items=TTCW.items[:3], digest="x")), "rubric"),
        ):
            with pytest.raises(InputError, match=said):
                run_session(session(server.url, out, plan=plan))
        changed = [replace(STORIES[0], text="Another story."), *STORIES[1:]]
        with pytest.raises(InputError, match="another prompt"):
            run_session(session(server.url, out, documents=changed))
        assert len(server.requests) == n
        run_session(session(server.url, out, documents=changed, restart=True))
        with RunFolder(out, PLAN).open(), pytest.raises(BusyError):
            run_session(session(server.url, out, documents=changed))


def test_more_samples_go_on_from_the_first(tmp_path: Path) -> None:
    with serving(steady) as server:
        run_session(session(server.url, tmp_path / "run"))
        three = replace(PLAN, n_samples=3)
        found, spent = run_session(session(server.url, tmp_path / "run", plan=three))
    assert spent[0].n_calls == 84
    assert all(one.details["n_answered"] == 3 for one in found)
    seeds = Counter(body["seed"] for body in server.requests)
    assert len(seeds) == 42


def test_repeated_answers_give_the_share_of_yes_and_its_spread() -> None:
    seen: Counter[str] = Counter()

    def mixed(body: dict[str, Any], _: int) -> Reply:
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


def test_retest_counts_flips_and_own_stories_are_noted(tmp_path: Path) -> None:
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


def test_a_score_with_a_missing_answer_is_missing(tmp_path: Path) -> None:
    with serving(lambda _, n: "Hm." if n == 5 else "Yes.") as server:
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
) -> None:
    def by_item(body: dict[str, Any], _: int) -> Reply:
        return next(reply for key, reply in answers.items() if key in prompt_of(body))

    plan = replace(PLAN, rubric=CONDITIONAL)
    with serving(by_item) as server:
        found, _ = run_session(session(server.url, None, documents=STORIES[:1], plan=plan))
    assert [one.missing_reason if one.value is None else one.value for one in found] == expected
    skipped = ("not_asked", "gate_missing")
    assert len(server.requests) == sum(value not in skipped for value in expected)


def test_an_empty_story_is_not_asked_about() -> None:
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


def test_a_preference_counts_only_if_it_stays_when_the_order_turns(tmp_path: Path) -> None:
    def likes_the_lamp(body: dict[str, Any], _: int) -> Reply:
        prompt = prompt_of(body)
        return "A." if prompt.index("The lamp") < prompt.index("She counted") else "B."

    assert {one.value for one in pairs_with(likes_the_lamp, tmp_path / "1")} == {"a"}
    first = pairs_with(lambda *_: "A. The first.", tmp_path / "2")
    assert {(one.value, one.missing_reason) for one in first} == {(None, "order")}


def test_max_cost_is_never_passed_and_keeps_what_was_paid(tmp_path: Path) -> None:
    # A call takes 100 tokens in and 5 out as served: 0.0001 + 0.00005 dollars at 1/10.
    with serving(steady) as server:
        run = session(server.url, tmp_path / "run", options=PAID, max_cost=0.008)
        with pytest.raises(ModelError, match="`max_cost`"):
            run_session(run)
        n = len(server.requests)
        assert 0 < n < 42
        assert n * 0.00015 <= 0.008
        assert _n_lines(tmp_path / "run" / "answers.jsonl") == n
        _, spent = run_session(replace(run, max_cost=1.0))
    assert len(server.requests) == 42
    assert spent[0].cost == pytest.approx((42 - n) * 0.00015)


def test_a_restart_sets_old_answers_aside_and_only_once_it_can_begin(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serving(steady) as server:
        run_session(session(server.url, out))
        answers = (out / "answers.jsonl").read_bytes()
        kept = sorted(path.name for path in out.iterdir())
        for broken in ("replay:none.jsonl", "none.gguf"):
            with pytest.raises(ModelError):
                run_session(replace(session(server.url, out, restart=True), models=[broken]))
        assert sorted(path.name for path in out.iterdir()) == kept
        replayed = replace(
            session(server.url, out, restart=True), models=[f"replay:{out / 'answers.jsonl'}"]
        )
        found, _ = run_session(replayed)
    assert all(one.value is not None for one in found)
    assert (out / "answers.before-restart-1.jsonl").read_bytes() == answers
    fresh = tmp_path / "fresh"
    with pytest.raises(ModelError):
        run_session(replace(session("", fresh), models=["none.gguf"]))
    assert not fresh.exists()


def test_calls_on_their_way_are_kept_when_another_ends_the_run(tmp_path: Path) -> None:
    def answer(body: dict[str, Any], number: int) -> Reply:
        if number == 3:
            return 401, {"error": {"message": "bad key"}}
        time.sleep(0.3)
        return "Yes."

    with serving(answer) as server, pytest.raises(ModelError, match="key was refused"):
        run_session(session(server.url, tmp_path / "run"))
    assert _n_lines(tmp_path / "run" / "answers.jsonl") == len(server.requests) - 1


def test_some_items_are_a_part_of_the_same_rubric(tmp_path: Path) -> None:
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


def test_a_tie_of_repeated_answers_is_no_no(tmp_path: Path) -> None:
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


def test_conditions_go_by_all_samples() -> None:
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


def test_all_models_of_a_run_share_the_limit(tmp_path: Path) -> None:
    with serving(steady) as server:
        run = session(server.url, tmp_path / "run", options=PAID, max_cost=0.0099)
        two = replace(run, models=[f"{server.url}/v1#a", f"{server.url}/v1#b"])
        with pytest.raises(ModelError, match="`max_cost`"):
            run_session(two)
    assert len(server.requests) * 0.00015 <= 0.0099


@pytest.mark.parametrize("text", ["nan/1", "1", "-1/2", "inf/1", "a/b", "1/2/3/4"])
def test_a_price_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a price"):
        parse_price(text)
    with pytest.raises(InputError, match="is not a price"):
        parse_prices(f"openai/a=1/2;openai/b={text}")


def test_each_model_has_its_own_price_and_what_is_not_named_its_known_one(tmp_path: Path) -> None:
    prices = parse_prices("http://h/v1?a=b#m=1/2; openai/x=3/4/0.5")
    assert prices.of("http://h/v1?a=b#m") == Price(1, 2)
    assert prices.of("openai/x") == Price(3, 4, 0.5)
    assert prices.of("local") == Price(0, 0)
    assert prices.of("http://h/v1#other") is None
    assert parse_prices("1/2").of("http://h/v1#other") == Price(1, 2)
    with pytest.raises(InputError, match="two prices without a model"):
        parse_prices("1/2;3/4")
    with serving(steady) as server:
        a, b = f"{server.url}/v1#a", f"{server.url}/v1#b"
        options = replace(PAID, prices=parse_prices(f"{a}=1/10;{b}=2/20"))
        run = session(server.url, tmp_path / "run", documents=STORIES[:1], options=options)
        _, spent = run_session(replace(run, models=[a, b], max_cost=1.0))
    # 14 calls of 100 tokens in and 5 out.
    assert [one.cost for one in spent] == pytest.approx([14 * 0.00015, 14 * 0.0003])


def test_a_replay_of_two_models_is_told_which(tmp_path: Path) -> None:
    with serving(steady) as server:
        run = session(server.url, tmp_path / "run", documents=STORIES[:1])
        a, b = f"{server.url}/v1#a", f"{server.url}/v1#b"
        run_session(replace(run, models=[a, b, a]))
    assert len(server.requests) == 28
    path = tmp_path / "run" / "answers.jsonl"
    with pytest.raises(ModelError, match="say which"):
        run_session(replace(run, out=None, models=[f"replay:{path}"]))
    found, _ = run_session(replace(run, out=None, models=[f"replay:{path}#{b}"]))
    assert {one.rater for one in found} == {b}


@pytest.mark.parametrize(
    "line",
    ['{"id":1}', '{"id":"a","item":"x","model":"m","prompt_digest":"p","seed":1,"sample":null}',
     '{"id":"a","item":"x","model":"m","prompt_digest":"p","seed":1,"sample":0,"usage":[1]}',
     '{"id":"a","item":"x","model":"m","prompt_digest":"p","seed":1,"sample":0,"masses":"x"}',
     '{"id":' + "[" * 100_000],
)  # fmt: skip
def test_a_damaged_answer_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "answers.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match="line 1"):
        run_session(session("http://127.0.0.1:9", tmp_path))


def test_max_cost_without_a_price_says_so() -> None:
    with serving(steady) as server, pytest.raises(InputError, match="add `price`"):
        run_session(session(server.url, None, max_cost=1.0))


def test_an_id_that_looks_like_a_retest_is_refused() -> None:
    with pytest.raises(InputError, match="#retest"):
        run_session(session("http://127.0.0.1:9", None, documents=[Document("a#retest", "x")]))


def test_numbers_are_not_counted_as_yes(tmp_path: Path) -> None:
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


def test_two_stories_of_one_id_are_refused() -> None:
    with pytest.raises(InputError, match="two texts have the id 'a'"):
        run_session(session("http://127.0.0.1:9", None, documents=[STORIES[0], STORIES[0]]))


def test_a_template_of_the_users_is_used_word_for_word(tmp_path: Path) -> None:
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


def test_a_template_has_its_marks_in_any_order_and_what_it_holds_stays_as_it_is(
    tmp_path: Path,
) -> None:
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
    with pytest.raises(InputError, match=r"\[INSTRUCTION\] once"):
        read_template(file, "reason-first")


def test_the_published_prompts_are_sent_word_for_word(shared_data: Path, tmp_path: Path) -> None:
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


def test_the_released_template_is_taken(shared_data: Path) -> None:
    template = read_template(
        shared_data / "ttcw" / "llm_judges" / "with_background.txt", "verdict-first"
    )
    prompt = template.prompt(Document("s", "THE STORY"), TTCW.items[0])
    assert prompt.prefix.endswith("THE STORY")
    assert "Start your answer with Yes or No" in prompt.text


@pytest.mark.parametrize(
    ("instruction", "style", "other"),
    [
        ("Start your answer with Yes or No. Then give a reason.", "reason-first", "verdict-first"),
        ("Begin with the verdict.", "reason-first", "verdict-first"),
        ("The first word of your reply must be Yes or No.", "reason-first", "verdict-first"),
        ("Answer Yes or No, then explain.", "reason-first", "verdict-first"),
        ("Think step by step and end your answer with Yes or No.", "verdict-first", "reason-first"),
        ("Give your reasons. The last line holds Yes or No.", "verdict-first", "reason-first"),
        ("Explain first. Finally, give your verdict.", "verdict-first", "reason-first"),
    ],
)
def test_a_template_that_does_not_fit_its_style_is_refused(
    tmp_path: Path, instruction: str, style: Any, other: Any
) -> None:
    file = tmp_path / "t.txt"
    file.write_text(f"Read.\n[STORY]\n[BACKGROUND]\n[QUESTION]\n{instruction}")
    with pytest.raises(InputError, match=f"use the style {other}"):
        read_template(file, style)
    assert read_template(file, other).style == other


def test_the_released_template_is_refused_in_the_other_style(shared_data: Path) -> None:
    path = shared_data / "ttcw" / "llm_judges" / "with_background.txt"
    with pytest.raises(InputError, match=r"with_background\.txt: asks for the verdict first"):
        read_template(path, "reason-first")


def test_a_run_stops_after_ten_unreadable_answers_and_keeps_them(tmp_path: Path) -> None:
    one_at_a_time = ModelOptions(n_parallel=1, max_retries=0)
    with serving(lambda *_: "A fine story about a lamp.") as server:
        run = session(server.url, tmp_path / "run", options=one_at_a_time)
        with pytest.raises(
            ModelError, match=r"10 answers in a row .* 'A fine story .* other style"
        ):
            run_session(run)
        assert len(server.requests) == 10
        assert _n_lines(tmp_path / "run" / "answers.jsonl") == 10
        with pytest.raises(ModelError, match="3 answers in a row"):
            run_session(replace(run, out=tmp_path / "three", max_unreadable=3))
        found, _ = run_session(replace(run, max_unreadable=0))
    assert Counter(one.missing_reason for one in found) == {"no_verdict": 42}


def test_nine_unreadable_answers_and_a_verdict_do_not_stop_a_run(tmp_path: Path) -> None:
    one_at_a_time = ModelOptions(n_parallel=1, max_retries=0)
    with serving(lambda _, n: "No. It is flat." if n % 10 == 9 else "Flat.") as server:
        found, _ = run_session(session(server.url, None, options=one_at_a_time))
    assert Counter(one.value for one in found) == {None: 38, 0.0: 4}
    # A refusal is an answer that says what it is; a model that refuses all is not stopped for it.
    with serving(lambda *_: "I'm sorry, but I can't do that.") as server:
        found, _ = run_session(session(server.url, None, options=one_at_a_time))
    assert {one.missing_reason for one in found} == {"refusal"}


def test_answers_that_are_all_cut_say_so(tmp_path: Path) -> None:
    cut = (200, completion("First I list the", "length"))
    with serving(lambda *_: cut) as server, pytest.raises(ModelError, match="than 200 tokens"):
        run_session(session(server.url, tmp_path / "run"))


def test_what_was_cut_is_asked_again_alone_and_may_be_longer(tmp_path: Path) -> None:
    def cut_or_not(body: dict[str, Any], number: int) -> Reply:
        is_short = (body.get("max_tokens") or body["max_completion_tokens"]) <= 200
        if is_short and number % 3 == 0:
            return 200, completion("Let me think about", "length")
        return "" if is_short and number % 3 == 1 else "No. It is flat."

    one_at_a_time = ModelOptions(n_parallel=1, max_retries=0)
    with serving(cut_or_not) as server:
        run = session(server.url, tmp_path / "run", options=one_at_a_time)
        found, _ = run_session(run)
        reasons = Counter(one.missing_reason for one in found)
        assert reasons == {"truncated": 14, "no_answer": 14, None: 14}
        # Nothing is asked again of itself, and only what is named.
        run_session(run)
        assert len(server.requests) == 42
        longer = replace(run, plan=replace(PLAN, max_tokens=900))
        with pytest.raises(InputError, match="tokens"):
            run_session(longer)
        with pytest.raises(InputError, match="tokens"):
            run_session(replace(longer, again=["no_answer"]))
        asked: list[int] = []
        found, spent = run_session(
            replace(longer, again=["truncated"]), agree=lambda _, e: asked.append(e.n_calls)
        )
        assert (asked, spent[0].n_calls, len(server.requests)) == ([14], 14, 56)
        reasons = Counter(one.missing_reason for one in found)
        assert reasons == {"no_answer": 14, None: 28}
        found, _ = run_session(replace(longer, again=["no_answer", "truncated"]))
        assert len(server.requests) == 70
        assert {one.value for one in found} == {0.0}
        # What came of it is there for the next run, and never becomes shorter.
        run_session(longer)
        assert len(server.requests) == 70
        with pytest.raises(InputError, match="tokens"):
            run_session(replace(run, again=["truncated"]))


def test_a_run_that_stops_says_how_to_ask_again(tmp_path: Path) -> None:
    cut = (200, completion("First I list the", "length"))
    with (
        serving(lambda *_: cut) as server,
        pytest.raises(ModelError, match=r"`again` truncated asks these alone once more"),
    ):
        run_session(session(server.url, tmp_path / "run"))


def test_a_failed_call_says_why_in_its_measurement(tmp_path: Path) -> None:
    def sometimes(_: dict[str, Any], number: int) -> Reply:
        return (500, {"error": {"message": "melted"}}) if number == 5 else "No. Flat."

    one_at_a_time = ModelOptions(n_parallel=1, max_retries=0)
    with serving(sometimes) as server:
        found, _ = run_session(session(server.url, tmp_path / "run", options=one_at_a_time))
    (failed,) = (one for one in found if one.missing_reason == "failed")
    assert "melted" in failed.details["note"]


def test_a_content_in_parts_is_read() -> None:
    reply = completion("")
    reply["choices"][0]["message"]["content"] = [
        {"type": "text", "text": "Yes. "}, {"type": "text", "text": "It holds."}
    ]  # fmt: skip
    with serving(lambda *_: (200, reply)) as server:
        found, _ = run_session(session(server.url, None, documents=STORIES[:1]))
    assert {(one.value, one.rationale) for one in found} == {(1.0, "It holds.")}


def test_a_finished_completion_says_why_it_stopped() -> None:
    with serving(lambda *_: (200, completion("Yes. Because", "length"))) as server:
        found, _ = run_session(session(server.url, None, documents=STORIES[:1]))
    assert {one.value for one in found} == {1.0}
    assert all(one.details["rationale_is_cut"] for one in found)
    with serving(lambda *_: (200, completion("No", "content_filter"))) as server:
        found, _ = run_session(session(server.url, None, documents=STORIES[:1]))
    assert {one.missing_reason for one in found} == {"blocked"}


def test_a_rubric_of_another_run_is_not_read_as_finished(tmp_path: Path) -> None:
    rubric: Rubric = replace(TTCW, items=TTCW.items[:1])
    folder = RunFolder(tmp_path / "run", replace(PLAN, rubric=rubric))
    with folder.open():
        folder.begin()
    with pytest.raises(InputError, match="not finished"):
        read_run(tmp_path / "run")
    with pytest.raises(InputError, match="no run"):
        read_run(tmp_path)

"""What a run that ends early keeps and has paid for, and what may be added to it."""

import itertools
import re
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.judging.judged_stories import ALONE, PLAN, STORIES, asked, judged, session, steady
from tests.serving import Reply, asks_what_was_meant, completion, serving

from fabula.core.errors import BusyError, InputError, ModelError
from fabula.judging.prompts import Template
from fabula.judging.session import RunFolder, run_session
from fabula.models.cost import Price, parse_price, parse_prices

PAID = replace(ALONE, n_parallel=4, prices=parse_prices("1/10"))


def test_a_hostile_judge_costs_no_finished_verdict(tmp_path: Path):
    # Seven answers and every third call an error: each answer comes, at another place.
    said = [
        "Yes. Good.\nVerdict: Yes", "", "quux " * 3, '{"verdict": "Ye', "I'm sorry, I can't.",
        "No. " + "word " * 10_000 + "\nVerdict: No", "Yes/no",
    ]  # fmt: skip
    served = Counter[str]()
    numbers = itertools.count()

    def hostile(body: dict[str, Any], _: int) -> Reply:
        if asks_what_was_meant(body):
            return "None."
        number = next(numbers)
        if number % 3 == 2:
            return 500, {"error": {"message": "out of order", "type": "server_error"}}
        served[said[number % len(said)]] += 1
        return said[number % len(said)]

    plan = replace(PLAN, template=Template("reason-first"))
    with serving(hostile) as server:
        found = judged(server.url, tmp_path / "run", plan=plan, options=ALONE)
        reasons = Counter(one.missing_reason for one in found if one.value is None)
        assert len(found) == 42
        assert reasons["failed"] == 14
        assert set(reasons) == {"failed", "no_answer", "no_verdict", "refusal"}
        values = Counter(one.value for one in found if one.value is not None)
        assert (values[1.0], values[0.0]) == (served[said[0]], served[said[5]])
        assert set(served) == set(said)
        n_before = len(server.requests)
        again = judged(server.url, tmp_path / "run", plan=plan, options=ALONE)
    # The second run asks again what failed, and nothing else but what unclear answers meant.
    assert sum(not asks_what_was_meant(body) for body in server.requests[n_before:]) == 14
    old = {(one.document_id, one.item): one for one in found if one.missing_reason != "failed"}
    new = {(one.document_id, one.item): one for one in again}
    assert all(new[key] == one for key, one in old.items())


@pytest.mark.parametrize(
    ("status", "said", "n_most"), [(503, "failed in a row", 19), (401, "key was refused", 1)]
)
def test_a_server_that_only_fails_is_given_up(tmp_path: Path, status: int, said: str, n_most: int):
    broken = (status, {"error": {"message": "down for repair"}})
    with serving(lambda *_: broken) as server, pytest.raises(ModelError, match=said):
        judged(server.url, tmp_path / "run", documents=STORIES[:1])
    assert len(server.requests) <= n_most
    assert not (tmp_path / "run" / "measurements.jsonl").exists()


def _n_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def test_another_way_to_ask_is_not_mixed_into_a_run_nor_into_one_of_a_newer_version(tmp_path: Path):
    out = tmp_path / "run"
    changed = [replace(STORIES[0], text="Another story."), *STORIES[1:]]
    fewer = replace(PLAN.rubric, items=PLAN.rubric.items[:3], digest="x")
    with serving(steady) as server:
        judged(server.url, out)
        n, answers = len(server.requests), (out / "answers.jsonl").read_bytes()
        whole = (out / "run.json").read_text()
        for more, said in (
            ({"plan": replace(PLAN, template=Template("reason-first"))}, "style"),
            ({"plan": replace(PLAN, temperature=0.7)}, "temperature"),
            ({"plan": replace(PLAN, structured=True)}, "structured"),
            ({"plan": replace(PLAN, only=("narrative_ending",))}, "items"),
            ({"plan": replace(PLAN, rubric=fewer)}, "rubric"),
            ({"documents": changed}, "another prompt"),
            ({}, r"run\.json: written by version 99\.1 of Fabula"),
        ):
            if not more:
                (out / "run.json").write_text(re.sub(r"v:[\d.]+", "v:99.1", whole))
            with pytest.raises(InputError, match=said):
                judged(server.url, out, **more)
        assert len(server.requests) == n
        assert (out / "answers.jsonl").read_bytes() == answers
        judged(server.url, out, documents=changed, restart=True)
        with RunFolder(out, PLAN).open(), pytest.raises(BusyError):
            judged(server.url, out, documents=changed)


def test_more_samples_go_on_from_the_first(tmp_path: Path):
    with serving(steady) as server:
        run_session(session(server.url, tmp_path / "run"))
        three = replace(PLAN, n_samples=3)
        found, spent = run_session(session(server.url, tmp_path / "run", plan=three))
    assert spent[0].n_calls == 84
    assert all(one.details["n_answered"] == 3 for one in found)
    seeds = Counter(body["seed"] for body in server.requests)
    assert len(seeds) == 42


def test_max_cost_is_never_passed_and_keeps_what_was_paid(tmp_path: Path):
    # A call takes 100 tokens in and 5 out as served: 0.0001 + 0.00005 dollars at 1/10.
    with serving(steady) as server:
        run = session(server.url, tmp_path / "run", options=PAID, max_cost=0.008)
        with pytest.raises(ModelError, match="`max_cost`"):
            run_session(run)
        n = len(server.requests)
        assert 0 < n < 42
        assert n * 0.00015 <= 0.008
        assert _n_lines(tmp_path / "run" / "answers.jsonl") == n
        # What is paid is paid: run again, it makes no further call.
        for _ in range(2):
            with pytest.raises(ModelError, match="`max_cost`"):
                run_session(run)
        assert len(server.requests) == n
        _, spent = run_session(replace(run, max_cost=1.0))
        assert len(server.requests) == 42
        assert spent[0].cost == pytest.approx((42 - n) * 0.00015)
        # All models of a run share the limit.
        models = [f"{server.url}/v1#a", f"{server.url}/v1#b"]
        with pytest.raises(ModelError, match="`max_cost`"):
            run_session(replace(run, out=tmp_path / "two", models=models, max_cost=0.0099))
        assert (len(server.requests) - 42) * 0.00015 <= 0.0099


def test_a_restart_sets_old_answers_aside_and_only_once_it_can_begin(tmp_path: Path):
    out, fresh = tmp_path / "run", tmp_path / "fresh"
    with serving(steady) as server:
        judged(server.url, out)
        answers = (out / "answers.jsonl").read_bytes()
        kept = sorted(path.name for path in out.iterdir())
        again = session(server.url, out, restart=True)
        for broken in ("replay:none.jsonl", "none.gguf"):
            with pytest.raises(ModelError):
                run_session(replace(again, models=[broken]))
        assert sorted(path.name for path in out.iterdir()) == kept
        found, _ = run_session(replace(again, models=[f"replay:{out / 'answers.jsonl'}"]))
    assert all(one.value is not None for one in found)
    assert (out / "answers.before-restart-1.jsonl").read_bytes() == answers
    with pytest.raises(ModelError):
        run_session(replace(session("", fresh), models=["none.gguf"]))
    assert not fresh.exists()


def test_calls_on_their_way_are_kept_when_another_ends_the_run(tmp_path: Path):
    def answer(body: dict[str, Any], number: int) -> Reply:
        if number == 3:
            return 401, {"error": {"message": "bad key"}}
        time.sleep(0.3)
        return "Yes."

    with serving(answer) as server, pytest.raises(ModelError, match="key was refused"):
        run_session(session(server.url, tmp_path / "run"))
    assert _n_lines(tmp_path / "run" / "answers.jsonl") == len(server.requests) - 1


@pytest.mark.parametrize("text", ["nan/1", "1", "-1/2", "inf/1", "a/b", "1/2/3/4"])
def test_a_price_that_is_none_is_refused(text: str):
    with pytest.raises(InputError, match="is not a price"):
        parse_price(text)
    with pytest.raises(InputError, match="is not a price"):
        parse_prices(f"openai/a=1/2;openai/b={text}")


def test_each_model_has_its_own_price_and_what_is_not_named_its_known_one(tmp_path: Path):
    prices = parse_prices("http://h/v1?a=b#m=1/2; openai/x=3/4/0.5")
    expected = {"http://h/v1?a=b#m": Price(1, 2), "openai/x": Price(3, 4, 0.5),
                "local": Price(0, 0), "ollama/m": Price(0, 0),
                "http://h/v1#other": None}  # fmt: skip
    assert {name: prices.of(name) for name in expected} == expected
    assert parse_prices("1/2").of("http://h/v1#other") == Price(1, 2)
    with pytest.raises(InputError, match="two prices without a model"):
        parse_prices("1/2;3/4")
    with pytest.raises(InputError, match="set `price`"):
        judged("http://127.0.0.1:9", max_cost=1.0)
    with serving(steady) as server:
        a, b = f"{server.url}/v1#a", f"{server.url}/v1#b"
        options = replace(PAID, prices=parse_prices(f"{a}=1/10;{b}=2/20"))
        run = session(server.url, tmp_path / "run", documents=STORIES[:1], options=options)
        _, spent = run_session(replace(run, models=[a, b], max_cost=1.0))
    # 14 calls of 100 tokens in and 5 out.
    assert [one.cost for one in spent] == pytest.approx([14 * 0.00015, 14 * 0.0003])


def test_a_replay_of_two_models_is_told_which(tmp_path: Path):
    with serving(steady) as server:
        run = session(server.url, tmp_path / "run", documents=STORIES[:1])
        a, b = f"{server.url}/v1#a", f"{server.url}/v1#b"
        run_session(replace(run, models=[a, b, a]))
    assert len(server.requests) == 28
    path = tmp_path / "run" / "answers.jsonl"
    with pytest.raises(ModelError, match="name one, as in"):
        run_session(replace(run, out=None, models=[f"replay:{path}"]))
    found, _ = run_session(replace(run, out=None, models=[f"replay:{path}#{b}"]))
    assert {one.rater for one in found} == {b}


ANSWER = '{"id":"a","item":"x","model":"m","prompt_digest":"p","seed":1,"sample":'


@pytest.mark.parametrize(
    "line",
    ['{"id":1}', f"{ANSWER}null}}", f'{ANSWER}0,"usage":[1]}}', f'{ANSWER}0,"masses":"x"}}',
     '{"id":' + "[" * 100_000],
    ids=["no item", "no sample", "usage", "masses", "deep"],
)  # fmt: skip
def test_a_damaged_answer_is_named(tmp_path: Path, line: str):
    (tmp_path / "answers.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match="line 1"):
        judged("http://127.0.0.1:9", tmp_path)


def test_a_run_stops_after_ten_unreadable_answers_and_keeps_them(tmp_path: Path):
    with serving(lambda *_: "A fine story about a lamp.") as server:
        run = session(server.url, tmp_path / "run", options=ALONE)
        with pytest.raises(ModelError, match=r"10 answers in a row .* 'A fine .* other style"):
            run_session(run)
        # Of each it is asked what it meant.
        assert len(server.requests) == 20
        assert _n_lines(tmp_path / "run" / "answers.jsonl") == 20
        with pytest.raises(ModelError, match="3 answers in a row"):
            run_session(replace(run, out=tmp_path / "three", max_unreadable=3))
        found, _ = run_session(replace(run, max_unreadable=0))
    assert Counter(one.missing_reason for one in found) == {"no_verdict": 42}


def test_nine_unreadable_answers_and_a_verdict_do_not_stop_a_run():
    numbers = itertools.count()

    def nine(body: dict[str, Any], _: int) -> Reply:
        return "Flat." if asks_what_was_meant(body) or next(numbers) % 10 < 9 else "No. It is flat."

    found, _ = asked(nine, options=ALONE)
    assert Counter(one.value for one in found) == {None: 38, 0.0: 4}
    # A refusal is an answer that says what it is; a model that refuses all is not stopped for it.
    found, _ = asked(lambda *_: "I'm sorry, but I can't do that.", options=ALONE)
    assert {one.missing_reason for one in found} == {"refusal"}


def test_answers_that_are_all_cut_say_so_and_how_to_ask_again(tmp_path: Path):
    cut = (200, completion("First I list the", "length"))
    with pytest.raises(ModelError) as caught:
        asked(lambda *_: cut, tmp_path / "run")
    for said in ("than 200 tokens", "`again` truncated asks only for these once more"):
        assert said in str(caught.value)


def test_what_was_cut_is_asked_again_alone_and_may_be_longer(tmp_path: Path):
    def cut_or_not(body: dict[str, Any], number: int) -> Reply:
        is_short = (body.get("max_tokens") or body["max_completion_tokens"]) <= 200
        if is_short and number % 3 == 0:
            return 200, completion("Let me think about", "length")
        return "" if is_short and number % 3 == 1 else "No. It is flat."

    with serving(cut_or_not) as server:
        run = session(server.url, tmp_path / "run", options=ALONE)
        longer = replace(run, plan=replace(PLAN, max_tokens=900))
        found, _ = run_session(run)
        reasons = Counter(one.missing_reason for one in found)
        assert reasons == {"truncated": 14, "no_answer": 14, None: 14}
        # Nothing is asked again of itself, and only what is named.
        run_session(run)
        assert len(server.requests) == 42
        for refused in (longer, replace(longer, again=["no_answer"])):
            with pytest.raises(InputError, match="tokens"):
                run_session(refused)
        planned: list[int] = []
        found, spent = run_session(
            replace(longer, again=["truncated"]), agree=lambda _, e: planned.append(e.n_calls)
        )
        assert (planned, spent[0].n_calls, len(server.requests)) == ([14], 14, 56)
        reasons = Counter(one.missing_reason for one in found)
        assert reasons == {"no_answer": 14, None: 28}
        found, _ = run_session(replace(longer, again=["no_answer", "truncated"]))
        assert {one.value for one in found} == {0.0}
        # What came of it is there for the next run, and never becomes shorter.
        run_session(longer)
        assert len(server.requests) == 70
        with pytest.raises(InputError, match="tokens"):
            run_session(replace(run, again=["truncated"]))

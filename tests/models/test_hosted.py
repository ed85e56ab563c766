import asyncio
import sys
import threading
from typing import Any

import pytest
from tests.serving import Reply, completion, serving

from fabula.core.errors import CallFailed, InputError, ModelError
from fabula.models.base import Answer, ChargedCallFailed, Choice, Prompt, Sampling
from fabula.models.cost import Price, Prices
from fabula.models.hosted import _key_for
from fabula.models.model_spec import ModelOptions, open_model

YES_NO = Choice(("Yes", "No"), is_first=True)
NO_RETRIES = ModelOptions(max_retries=0)


def ask(spec: str, options: ModelOptions = NO_RETRIES, choice: Choice | None = YES_NO) -> Answer:
    async def once() -> Answer:
        async with open_model(spec, options) as model:
            return await model.ask(Prompt("The story. ", "Is it good?"), Sampling(seed=3), choice)

    return asyncio.run(once())


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("openai/gpt-4o-mini", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("google/gemini-2.5-flash", "GOOGLE_API_KEY"),
        ("nonsense/model", "no such provider"),
        ("gpt-4o", "no such model"),
        ("http://127.0.0.1:9/v1#m", "no connection"),
        ("http://127.0.0.1:port/v1#m", "not a server address"),
    ],
)
def test_a_model_that_cannot_be_had_is_one_sentence(
    spec: str, said: str, monkeypatch: pytest.MonkeyPatch
):
    for name in ("OPENAI", "ANTHROPIC", "GOOGLE", "GEMINI"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    with pytest.raises(ModelError, match=said) as error:
        ask(spec)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(spec.partition("#")[0])


def test_without_its_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "inspect_ai.model", None)
    with pytest.raises(ModelError, match=r"pip install 'fabula\[hosted\]'"):
        ask("openai/gpt-4o-mini")


def test_the_key_of_openai_goes_to_openai_only(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "openai")
    addresses = "https://api.openai.com/v1", "http://api.openai.com/v1", "http://10.0.0.5:8000/v1"
    assert [_key_for(url) for url in addresses] == ["openai", "none", "none"]
    monkeypatch.setenv("FABULA_API_KEY", "own")
    assert [_key_for(url) for url in addresses] == ["openai", "own", "own"]


def test_a_failed_call_is_made_again_as_often_as_asked():
    def once_out_of_order(_: dict[str, Any], number: int) -> Reply:
        return (503, {"error": {"message": "busy"}}) if number == 0 else "Yes."

    with serving(once_out_of_order) as server:
        answer = ask(f"{server.url}/v1#m", ModelOptions(max_retries=1))
    assert (answer.text, len(server.requests)) == ("Yes.", 2)


def test_no_prompt_is_sent_where_a_server_redirects_to():
    with serving(lambda _, __: "Yes.") as elsewhere:
        location = f"{elsewhere.url.replace('127.0.0.1', 'localhost')}/v1/chat/completions"
        with (
            serving(lambda _, __: (307, {"location": location})) as server,
            pytest.raises(ModelError, match="redirects to another address, which is not followed"),
        ):
            ask(f"{server.url}/v1#m")
    assert len(server.requests) == 1
    assert elsewhere.requests == []


def test_log_probabilities_become_masses():
    body = completion("Yes. So.")
    top = [{"token": "Yes", "logprob": -0.5, "bytes": None},
           {"token": "No", "logprob": -1.0, "bytes": None}]  # fmt: skip
    body["choices"][0]["logprobs"] = {"content": [top[0] | {"top_logprobs": top}]}
    with serving(lambda *_: (200, body)) as server:
        answer = ask(f"{server.url}/v1#m")
    # e^-0.5 and e^-1.
    assert answer.masses == pytest.approx({"Yes": 0.606531, "No": 0.367879}, abs=1e-6)
    assert (server.requests[0]["seed"], server.requests[0]["top_logprobs"]) == (3, 20)


def test_a_schema_and_an_effort_reach_the_server_and_are_left_out_where_none_is_asked():
    last = Choice(("Yes", "No"), is_first=False)
    with serving(lambda *_: '{"reason": "so", "verdict": "No"}') as server:
        for options in (ModelOptions(max_retries=0, structured=True, effort="high"), NO_RETRIES):
            ask(f"{server.url}/v1#m", options, last)
    told, free = server.requests
    schema = told["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["reason", "verdict"]
    assert schema["properties"]["verdict"]["enum"] == ["Yes", "No"]
    assert told["reasoning_effort"] == "high"
    assert not {"response_format", "reasoning_effort"} & free.keys()


def test_anthropic_is_told_where_the_shared_prefix_ends(monkeypatch: pytest.MonkeyPatch):
    reply = {
        "id": "m", "type": "message", "role": "assistant", "model": "claude-served",
        "content": [{"type": "text", "text": "Yes. Good."}], "stop_reason": "end_turn",
        "stop_sequence": None, "usage": {
            "input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 90,
            "cache_creation_input_tokens": 0,
        },
    }  # fmt: skip
    with serving(lambda *_: (200, reply)) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
        answer = ask("anthropic/claude-served")
    story, question = server.requests[0]["messages"][0]["content"]
    assert story["text"] == "The story. "
    assert story["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in question
    assert (answer.usage.n_input, answer.usage.n_cached, answer.usage.n_output) == (100, 90, 3)


def test_reasoning_effort_is_refused_of_a_model_that_runs_here():
    with pytest.raises(InputError, match=r"local: `reasoning_effort` is only for hosted models"):
        open_model("local", ModelOptions(effort="low"))


@pytest.mark.parametrize("n_retries", [1, 0])
def test_a_call_that_takes_too_long_is_tried_again_or_has_failed_and_may_be_charged(n_retries: int):
    ended = threading.Event()

    def slow_at_first(_: dict[str, Any], number: int) -> Reply:
        if number == 0:
            ended.wait(30)
        return "Yes."

    options = ModelOptions(max_retries=n_retries, timeout_s=1)
    with serving(slow_at_first) as server:
        try:
            if n_retries:
                assert ask(f"{server.url}/v1#m", options).text == "Yes."
            else:
                with pytest.raises(ChargedCallFailed, match="no answer within 1 s"):
                    ask(f"{server.url}/v1#m", options)
        finally:
            ended.set()
    assert len(server.requests) == 1 + n_retries


THOUGHT = "Let me weigh this again, word by word. " * 100


@pytest.mark.parametrize(
    ("usage", "thought", "least"),
    [
        # What a server cannot mean is no report: counted here, at one token in six letters or more.
        ({"prompt_tokens": -900, "completion_tokens": -50, "total_tokens": -950}, "", 9),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
          "prompt_tokens_details": {"cached_tokens": 90_000}}, "", 9),
        # Thinking is paid for where nobody counts it.
        (None, THOUGHT, len(THOUGHT) / 6),
    ],
)  # fmt: skip
def test_what_a_server_reports_wrongly_or_not_at_all_is_never_spent_for_less(
    usage: dict[str, Any] | None, thought: str, least: float
):
    body = completion("Yes. So.") | {"usage": usage}
    if thought:
        body["choices"][0]["message"]["reasoning_content"] = thought

    async def once() -> float:
        options = ModelOptions(max_retries=0, prices=Prices(Price(1e6, 1e6, 1e6)))
        async with open_model(f"{server.url}/v1#m", options) as model:
            await model.ask(Prompt("The story. " * 5, "Is it good?"), Sampling(max_tokens=2000))
            return model.budget.spent

    with serving(lambda *_: (200, body)) as server:
        assert asyncio.run(once()) >= least


def test_what_a_server_says_beside_an_answer_loses_none():
    body = completion("Yes. So.") | {
        "model": None,
        "usage": {"prompt_tokens": "100", "completion_tokens": 4.6, "total_tokens": None},
    }
    top = [{"token": "Yes", "logprob": 800.0, "bytes": None}]
    tokens = [{"token": "Yes", "logprob": 800.0, "bytes": None, "top_logprobs": top}]
    body["choices"][0]["logprobs"] = {"content": tokens, "refusal": None}
    with serving(lambda *_: (200, body)) as server:
        answer = ask(f"{server.url}/v1#m")
    assert answer.text == "Yes. So."
    assert (answer.usage.n_input, answer.usage.n_output) == (100, 5)


def test_an_account_without_credit_ends_the_run_at_once():
    with serving(lambda *_: (402, {"error": {"message": "no credit"}})) as server:
        with pytest.raises(ModelError, match="no credit left") as caught:
            ask(f"{server.url}/v1#m", ModelOptions(max_retries=3))
        assert not isinstance(caught.value, CallFailed), "no further call is tried"
        assert len(server.requests) == 1


def test_a_server_is_asked_again_when_it_says(monkeypatch: pytest.MonkeyPatch):
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("inspect_ai.model._retry._sleep", sleep)
    replies = [(429, {"error": {"message": "slow down"}}), (200, completion("Yes."))]
    with serving(lambda _, n: replies[min(n, 1)], headers={"Retry-After": "77"}) as server:
        assert ask(f"{server.url}/v1#m", ModelOptions(max_retries=3)).text == "Yes."
    assert waited == [77.0]

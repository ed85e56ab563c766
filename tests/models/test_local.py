"""The embedded model, for real: llama.cpp and SmolLM2 in this process."""

import asyncio
import importlib.metadata
import json
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import if_installed

from fabula.core.errors import ModelError
from fabula.core.store import read_rows, write_rows
from fabula.core.types import Document, Signature
from fabula.judging.plan import JudgePlan
from fabula.judging.prompts import Template
from fabula.judging.session import Session, run_session
from fabula.judging.trust import TrustBook
from fabula.models.base import Choice, Prompt, Sampling
from fabula.models.local import LocalModel, embedded_model
from fabula.models.model_spec import open_model
from fabula.models.verdicts import option_masses
from fabula.rubrics.load import load_rubric

YES_NO = Choice(("Yes", "No"), is_first=True, reason_chars=40)


STORY = Document("s", "The lamp went out. Nobody rowed over to see why. The sea kept it.")


def plan_of(n_items: int, style: Any = "verdict-first", **more: Any) -> JudgePlan:
    rubric = load_rubric("ttcw")
    return JudgePlan(replace(rubric, items=rubric.items[:n_items]), Template(style), **more)


@pytest.fixture(scope="module", autouse=True)
def gguf() -> Path:
    return if_installed(embedded_model)


@pytest.mark.long
def test_a_story_is_judged_whole_by_the_embedded_model(examples: Path, tmp_path: Path):
    story = Document("count", (examples / "the-count.txt").read_text(encoding="utf-8"))
    plan = plan_of(3, max_tokens=8)
    found, spent = run_session(Session([story], ["local"], plan, tmp_path / "run"))
    assert len(found) == 3
    for one in found:
        # A verdict, or the reason for none; with its probability and its rationale.
        assert one.value in (0.0, 1.0), one.missing_reason
        assert 0 < one.details["p_yes"] < 1
        assert (one.value == 1) == (one.details["p_yes"] > 0.5)
        assert one.rationale
        parts = dict(Signature.parse(one.signature).parts)
        assert parts["run"] == f"xllamacpp-{importlib.metadata.version('xllamacpp')}"
    # The runtime decides a verdict, and is no part of whose trust it is.
    trust = TrustBook(tmp_path / "none").find(
        found[0].rater, plan.rubric.key, parts["style"], parts["prompt"]
    )
    assert trust["all"].n == 504
    # The story is read once: most of what three prompts hold comes from the cache.
    assert spent[0].usage.n_cached > 0.5 * spent[0].usage.n_input


def test_a_model_in_this_process_says_the_same_again(small_model: Path, tmp_path: Path):
    for name in ("once", "again"):
        plan, model = plan_of(1, max_tokens=20), str(small_model)
        run_session(Session([STORY], [model], plan, tmp_path / name))
    files = [tmp_path / name / "measurements.jsonl" for name in ("once", "again")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_answers_of_another_runtime_are_told_in_the_signature(small_model: Path, tmp_path: Path):
    session = Session([STORY], [str(small_model)], plan_of(2, max_tokens=20), tmp_path / "run")
    run_session(session)
    answers = tmp_path / "run" / "answers.jsonl"
    first, second = read_rows(answers)
    write_rows(answers, [first | {"runtime": "xllamacpp-2020.1"}, second])
    found, _ = run_session(session)
    both = f"|run:xllamacpp-2020.1+{second['runtime']}|"
    assert all(both in one.signature for one in found)


def test_reasons_come_before_the_verdict_in_the_other_style(small_model: Path):
    plan = plan_of(1, "reason-first")
    (one,), _ = run_session(Session([STORY], [str(small_model)], plan))
    assert one.value in (0.0, 1.0)
    assert one.rationale
    assert "Verdict" not in one.rationale


@pytest.mark.long
def test_an_answer_does_not_depend_on_what_was_asked_before(examples: Path, gguf: Path):
    """A prompt of one token more than llama.cpp takes at a time, which then go by other sums."""
    words = (examples / "the-count.txt").read_text(encoding="utf-8").split()
    story, good, sad = " ".join(words[:406]), "\nIs the story good?", "\nIs it sad?"

    async def ask(*prompts: Prompt) -> tuple[dict[str, float], int]:
        async with LocalModel(gguf) as model:
            for prompt in prompts:
                answer = await model.ask(prompt, Sampling(max_tokens=2), YES_NO)
        assert answer.usage.n_input == 513
        return dict(answer.masses), answer.usage.n_cached

    alone, n_cached = asyncio.run(ask(Prompt(story, good)))
    assert n_cached == 0
    after_another = asyncio.run(ask(Prompt("It rained all day.", good), Prompt(story, good)))
    assert after_another == (alone, 0)
    after_its_own, n_cached = asyncio.run(ask(Prompt(story, sad), Prompt(story, good)))
    assert after_its_own == alone
    assert n_cached > 490


def test_parallel_prompts_have_the_whole_context_each_and_longer_ones_are_refused(
    small_model: Path,
):
    async def ask() -> None:
        async with LocalModel(small_model, n_parallel=2) as model:
            with urllib.request.urlopen(f"{model.address}/props") as reply:
                properties = json.load(reply)
            answers = await asyncio.gather(
                *(model.ask(Prompt("", f"Is {k} good?"), Sampling(max_tokens=4), YES_NO)
                  for k in range(3))
            )  # fmt: skip
            long = await model.ask(Prompt("word " * 9000, "Is it good?"), Sampling(), YES_NO)
        assert properties["total_slots"] == 2
        assert model.context_tokens == properties["default_generation_settings"]["n_ctx"] == 8192
        assert all(answer.text.startswith(("Yes", "No")) for answer in answers)
        assert (long.text, long.stop) == ("", "too_long"), "it is not cut"
        assert "8192" in long.note

    asyncio.run(ask())


def test_what_is_no_model_is_said_in_a_sentence(tmp_path: Path):
    false, cut = tmp_path / "false.gguf", tmp_path / "cut.gguf"
    false.write_bytes(b"PK\x03\x04")
    cut.write_bytes(embedded_model().read_bytes()[:100_000])

    async def start(path: Path) -> None:
        async with open_model(str(path)):
            pass

    for path, said in (
        (tmp_path / "none.gguf", "no such model file"), (false, "not a GGUF"), (cut, "cannot load"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=said):
            asyncio.run(start(path))


def test_masses_add_up_spellings_where_the_verdict_stands():
    # By hand: e^-1 + e^-2 for Yes and " yes", e^-1.5 for No, at the first option token.
    tokens = [
        ('"', [('"', 0.0)]),
        ("Yes", [("Yes", -1.0), (" yes", -2.0), ("No", -1.5), ("The", -3.0)]),
        ("No", [("No", -0.1)]),
    ]
    masses = option_masses(tokens, YES_NO)
    assert masses["Yes"] == pytest.approx(0.367879 + 0.135335, abs=1e-6)
    assert masses["No"] == pytest.approx(0.223130, abs=1e-6)
    last = option_masses(tokens, Choice(("Yes", "No"), is_first=False))
    assert last == {"Yes": 0.0, "No": pytest.approx(0.904837, abs=1e-6)}
    assert option_masses([("The", [("The", 0.0)])], YES_NO) == {}


def test_a_proxy_of_the_environment_does_not_come_between(
    small_model: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (answer,), _ = run_session(Session([STORY], [str(small_model)], plan_of(1, max_tokens=4)))
    assert answer.missing_reason != "call_failed"


def test_the_environment_names_another_file_for_local(
    small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FABULA_LOCAL_MODEL", str(small_model))
    assert LocalModel(embedded_model()).name.startswith("local/small@")
    monkeypatch.setenv("FABULA_LOCAL_MODEL", str(tmp_path / "gone.gguf"))
    with pytest.raises(ModelError, match=r"gone\.gguf: no such model file"):
        LocalModel(embedded_model())

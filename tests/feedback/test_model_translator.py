"""A language model as translator: only whole answers count, and an interrupted run goes on."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.commands import invoke, rows_of, write_rows
from tests.serving import Reply, completion, prompt_of, serving

from fabula.core.errors import InputError, ModelError
from fabula.core.types import Signature
from fabula.feedback import translating
from fabula.feedback.translating import ModelTranslator, back_translate
from fabula.feedback.written_faults import undo
from fabula.models.model_spec import ModelOptions, open_model

pytest.importorskip("inspect_ai", reason="Inspect AI is not installed")

STORY = "Anna found a coin. She gave it to the boy.\n\nHe ran home at once, and told his mother."


def translated(body: dict[str, Any], _: int = 0) -> Reply:
    """As a translator would: German to the letter, and back with another word each time."""
    prompt = prompt_of(body)
    text = prompt.split("The story:\n\n")[1].rsplit("\n\nIts translation into ", 1)[0]
    return text.replace("home", "house") if prompt.endswith("into English:") else text


TERMS = ModelOptions(max_retries=0)


def translator(url: str, terms: ModelOptions = TERMS) -> ModelTranslator:
    return ModelTranslator(open_model(f"{url}#served", terms))


def test_every_round_is_asked_for_in_both_directions_at_temperature_zero():
    with serving(translated) as server, translator(server.url) as model:
        (rounds,) = back_translate([f"\n{STORY} \n"], model, 2)
    assert rounds.texts == (f"\n{STORY.replace('home', 'house')} \n",) * 2
    assert rounds.stable_round == 1
    both = ["from English into German", "from German into English"]
    assert all(one in asked for one, asked in zip(both * 2, server.prompts(), strict=True))
    assert {body["temperature"] for body in server.requests} == {0}
    assert all(body["max_tokens"] < 1000 for body in server.requests)


def withheld(text: str, finish: str) -> Reply:
    return 200, completion(text, finish)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (withheld("Anna fand", "length"), "cut off at"),
        (withheld("", "content_filter"), "withheld by the provider"),
        ("", "the answer is empty"),
        ("I’m sorry, but I can’t help with that request.", "the model refused"),
        ("Es tut mir leid, aber ich kann diesen Text nicht übersetzen.", "the model refused"),
    ],
)
def test_what_is_no_whole_translation_ends_the_rounds_before_it(reply: Reply, reason: str):
    with (
        serving(lambda body, n: reply if n >= 3 else translated(body)) as server,
        translator(server.url, ModelOptions(max_retries=0, n_parallel=1)) as model,
    ):
        (kept,) = back_translate([STORY], model, 3)
        (none,) = back_translate([STORY], model, 3)
    assert len(kept.texts) == 1
    assert (kept.refused_round, kept.degenerate_round) == (2, None)
    assert re.match(f"into English: .*{reason}", kept.reason)
    assert (none.texts, none.refused_round) == ((), 1)


def test_the_name_tells_models_apart():
    specs = ("http://127.0.0.1:9#a|b", "http://127.0.0.1:9#c", "mockllm/model@1")
    names = [ModelTranslator(open_model(spec)).name for spec in specs]
    assert len({name.rpartition("@")[2] for name in names}) == 3
    assert not any("|" in name or ":" in name for name in names)
    texts = [str(Signature.of("corrupt", by=name, v="1")) for name in names]
    assert Signature.parse(texts[0]).differences(Signature.parse(texts[2]))
    assert str(Signature.parse(texts[0])) == texts[0]


def test_a_translator_is_opened_by_the_name_of_its_model(tmp_path: Path):
    recorded = write_rows(tmp_path / "answers.jsonl", [{"prompt": "x", "text": "y"}])
    with translating.open_translator(f"replay:{recorded}") as model:
        assert model.name.startswith("model(replay/answers,German)@")
    for spec in ("babel", "marian:one"):
        with pytest.raises(InputError, match="or a model"):
            translating.open_translator(spec)
    assert translating.estimate_round_trips([STORY, STORY], 10, None).n_calls == 40


@pytest.fixture
def stories(nlp: object, tmp_path: Path) -> Path:
    rows = [{"id": f"s{k}", "text": f"{STORY} It was coin {k}."} for k in range(6)]
    return write_rows(tmp_path / "stories.jsonl", rows)


def corrupt(stories: Path, out: Path, url: str, code: int = 0) -> Any:
    return invoke("feedback", "corrupt", stories, "--out", out, "--rounds", 2, "--methods",
                  "original,backtranslate", "--translator", f"{url}#served", code=code)  # fmt: skip


def test_an_interrupted_run_goes_on_to_the_same_bytes(stories: Path, tmp_path: Path):
    whole, halves = tmp_path / "whole.jsonl", tmp_path / "halves.jsonl"

    def refusing(body: dict[str, Any], _: int) -> Reply:
        return withheld("", "content_filter") if "coin 1." in prompt_of(body) else translated(body)

    with serving(refusing) as server:
        done = corrupt(stories, whole, server.url)
        assert "24 calls" in done.output
        left_out = "left out of backtranslate: 1, since the first round produced no translation"
        assert left_out in done.output
        lines = whole.read_bytes().splitlines(keepends=True)
        halves.write_bytes(b"".join(lines[:5]) + lines[5][:40])
        n_before = len(server.requests)
        corrupt(stories, halves, server.url)
        assert 0 < len(server.requests) - n_before < n_before
    assert halves.read_bytes() == whole.read_bytes()
    rows = rows_of(whole)
    translated_ones = [row["story_id"] for row in rows if row["method"] == "backtranslate"]
    assert translated_ones == ["s0", "s2", "s3", "s4", "s5"]
    for row in rows[:2]:
        assert undo(row["text"], row["change"]["edits"]) == row["original"]
    said = "The story was translated to another language and back two times."
    assert rows[1]["change"]["what"] == said
    assert rows[1]["text"] == rows[1]["change"]["rounds"][-1]
    assert "|rounds:2|by:model(" in rows[1]["signature"]


def test_after_a_failed_call_the_same_command_goes_on(stories: Path, tmp_path: Path):
    out, is_down = tmp_path / "out.jsonl", True

    def answer(body: dict[str, Any], _: int) -> Reply:
        error = (400, {"error": {"message": "out of order"}})
        return error if is_down else translated(body)

    with serving(answer) as server:
        done = corrupt(stories, out, server.url, code=1)
        assert isinstance(done.exception, ModelError)
        assert "run the same command again" in str(done.exception)
        is_down = False
        corrupt(stories, out, server.url)
    assert len(out.read_text().splitlines()) == 12

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.commands import invoke, rows_of, write_rows
from tests.serving import Reply, completion, prompt_of, serving

from fabula.core.errors import FabulaError, InputError
from fabula.core.types import Document
from fabula.jobs.models import ModelSettings, Spending
from fabula.reference.openings import (
    FORMATS,
    KINDS,
    OpeningSettings,
    draw_sentences,
    opening_prompt,
    openings,
    read_formats,
    without_prompt,
)
from fabula.stories.story_writing import read_plots


def run(*arguments: str) -> Result:
    result = invoke(*arguments, code=None)
    if isinstance(result.exception, FabulaError):
        raise result.exception
    return result


@pytest.fixture
def plots(tmp_path: Path) -> Path:
    path = tmp_path / "plots.jsonl"
    path.write_text(
        '{"id": "p1", "plot": "A lamp turns on its own.", "n_words": 1000, "verified": true}\n'
        '{"id": "p2", "plot": "Somebody counts.", "n_words": 600}\n'
    )
    return path


def grows_by(step: int) -> Any:
    """A writer whose story has `step` more words each time it is sent back."""

    def answer(body: dict[str, Any], _: int) -> Reply:
        had = re.search(r"and has (\d+)\.", prompt_of(body))
        return " ".join(["word"] * ((int(had[1]) if had else 0) + step))

    return answer


def test_a_story_is_rewritten_until_it_is_near_its_length(plots: Path, tmp_path: Path):
    out = tmp_path / "stories.jsonl"
    with serving(grows_by(300)) as server:
        run("stories", "write", str(plots), "--out", str(out), "--model", f"{server.url}/v1#m")
    # 300, 600, 900 words: 900 is within 200 of 1,000; of 600 it is 600 (the second round).
    stories = rows_of(out)
    assert [(s["prompt_id"], s["n_words"], s["n_rounds"]) for s in stories] == [
        ("p1", 900, 2), ("p2", 600, 1),
    ]  # fmt: skip
    rounds = rows_of(tmp_path / "stories.rounds.jsonl")
    assert sorted((r["id"], r["round"], r["n_words"]) for r in rounds) == [
        ("p1", 0, 300), ("p1", 1, 600), ("p1", 2, 900), ("p2", 0, 300), ("p2", 1, 600),
    ]  # fmt: skip
    first = next(p for p in server.prompts() if "A lamp turns" in p)
    assert "about 1000 words" in first


def test_a_model_that_never_converges_is_reported_and_left_out(plots: Path, tmp_path: Path):
    out = tmp_path / "stories.jsonl"
    with serving(grows_by(10)) as server:
        result = run(
            "stories", "write", str(plots), "--out", str(out), "--model", f"{server.url}/v1#m",
            "--attempts", "4",
        )  # fmt: skip
    assert rows_of(out) == []
    assert "2 stories: not close to the target length" in result.output
    assert "p1" in result.output
    assert len(rows_of(tmp_path / "stories.rounds.jsonl")) == 10


def test_an_overlong_story_is_sent_back_to_be_shortened(plots: Path, tmp_path: Path):
    def answer(body: dict[str, Any], _: int) -> Reply:
        return " ".join(["word"] * (950 if "shorter" in prompt_of(body) else 3000))

    out = tmp_path / "stories.jsonl"
    with serving(answer) as server:
        run("stories", "write", str(plots), "--out", str(out), "--model", f"{server.url}/v1#m",
            "--verified-only")  # fmt: skip
    assert [(s["prompt_id"], s["n_words"]) for s in rows_of(out)] == [("p1", 950)]


def test_a_cut_story_is_not_finished_whatever_its_length(plots: Path, tmp_path: Path):
    def answer(body: dict[str, Any], number: int) -> Reply:
        text = " ".join(["word"] * 1000)
        return (200, completion(text, "length")) if number == 0 else text

    out = tmp_path / "stories.jsonl"
    with serving(answer) as server:
        run("stories", "write", str(plots), "--out", str(out), "--model", f"{server.url}/v1#m",
            "--verified-only")  # fmt: skip
    assert rows_of(out)[0]["n_rounds"] == 1


def test_a_run_goes_on_and_refuses_another_plot(plots: Path, tmp_path: Path):
    out = tmp_path / "stories.jsonl"
    with serving(grows_by(300)) as server:
        command = ("stories", "write", str(plots), "--out", str(out), "--model")
        run(*command, f"{server.url}/v1#m")
        bytes_ = out.read_bytes()
        log = tmp_path / "stories.rounds.jsonl"
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(lines[:3]) + lines[3][:20])
        n = len(server.requests)
        run(*command, f"{server.url}/v1#m")
        assert len(server.requests) - n == 2
        assert out.read_bytes() == bytes_
        plots.write_text(plots.read_text().replace("A lamp", "No lamp"))
        with pytest.raises(InputError, match="another plot"):
            run(*command, f"{server.url}/v1#m")


def test_groups_hold_the_human_story_too(plots: Path, tmp_path: Path):
    human = tmp_path / "human.jsonl"
    human.write_text('{"id": "p1", "text": "It was so.", "author": "Ann"}\n')
    out = tmp_path / "stories.jsonl"
    with serving(grows_by(900)) as server:
        run("stories", "write", str(plots), "--out", str(out), "--model", f"{server.url}/v1#m",
            "--human", str(human), "--verified-only")  # fmt: skip
    assert [(s["prompt_id"], s["author"]) for s in rows_of(out)] == [
        ("p1", "Ann"), ("p1", f"{server.url}/v1#m"),
    ]  # fmt: skip


def test_plots_are_a_sentence_for_a_person_to_verify(tmp_path: Path):
    stories = tmp_path / "s.jsonl"
    stories.write_text('{"id": "a", "text": "One two three."}\n{"id": "b", "text": "Four five."}\n')
    out = tmp_path / "plots.jsonl"

    def answer(body: dict[str, Any], _: int) -> Reply:
        if "Four" in prompt_of(body):
            return 200, completion("", "content_filter")
        return "Somebody\ncounts."

    with serving(answer) as server:
        result = run("stories", "plot", str(stories), "--out", str(out), "--model",
                     f"{server.url}/v1#m")  # fmt: skip
    first, second = sorted(rows_of(out), key=lambda row: str(row["id"]))
    assert (first["plot"], first["n_words"], first["verified"]) == ("Somebody counts.", 3, False)
    assert (second["plot"], second["missing_reason"]) == (None, "blocked")
    assert "1 plots: withheld by the provider" in result.output
    assert read_plots(out)[1] == 1
    # As a person who has verified it changes the file.
    out.write_text(out.read_text().replace('"verified":false', '"verified":true'))
    plots, n_unverified = read_plots(out, verified_only=True)
    assert ([plot.id for plot in plots], n_unverified) == (["a"], 0)


def test_openings_are_asked_in_each_format(tmp_path: Path):
    lines = tmp_path / "first.txt"
    lines.write_text("The lamp went out.\nShe counted.\n")
    out = tmp_path / "openings.jsonl"
    with serving(lambda *_: "And then.") as server:
        run("stories", "openings", str(lines), "--kind", "poem", "--prompt", "plain", "--prompt",
            "bold", "--out", str(out), "--model", f"{server.url}/v1#m")  # fmt: skip
    found = rows_of(out)
    assert len(found) == 4
    assert {row["format"] for row in found} == {"plain", "bold"}
    assert {row["prompt"] for row in found} == {"The lamp went out.", "She counted."}
    # Appendix B.1 of the Creativity Index: nucleus sampling with 0.9, at most 288 tokens.
    assert {(body["top_p"], body["max_tokens"]) for body in server.requests} == {(0.9, 288)}


def test_openings_are_cut_from_peoples_texts_which_stand_beside_them(tmp_path: Path):
    whole = "  Rain fell. She went out. " + "Nobody saw where she was going that night. " * 40
    texts = [Document("h", whole, author="Ann")]

    def goes_on(body: dict[str, Any], _: int) -> str:
        return prompt_of(body).rpartition("Sentence: ")[2] + "Then it stopped."

    with serving(goes_on) as s:
        models = ModelSettings(models=(f"{s.url}/v1#m",), spending=Spending(price="0/0"))
        settings = OpeningSettings(tmp_path / "o.jsonl", n_sentences=2, models=models)
        openings(texts, settings)
        openings(texts, settings)
        assert len(s.requests) == 1
    human, machine = map(json.loads, (tmp_path / "o.jsonl").read_text().splitlines())
    assert machine["prompt"] == human["prompt"] == "Rain fell. She went out."
    assert (machine["label"], human["label"], human["author"]) == ("machine", "human", "Ann")
    # 5 words, then sentences of 8: the 32nd passes word 256.
    assert len(human["text"].split()) == 5 + 32 * 8
    for row in (machine, human):
        start = row["shared_prefix_chars"]
        assert row["text"][:start].strip() == row["prompt"]


def test_the_published_prompts_are_those_of_the_paper(shared_data: Path, tmp_path: Path):
    paper = next((shared_data.parent / "papers").glob("003*"))
    found = read_formats(paper, "novel")
    assert list(found) == list(FORMATS)
    for name, prompt in found.items():
        assert prompt.count("{prompt}") == 1, name
        assert "PROMPT" not in prompt.replace("{prompt}", "")
        assert len(prompt) < 400
    assert found["writer"].startswith("You are a creative writer, ")
    for kind in KINDS:
        assert next(iter(read_formats(paper, kind))) == "plain"
    assert "poem" in read_formats(paper, "poem")["plain"]
    own = tmp_path / "own.toml"
    own.write_text('[prompts]\nmine = "Go on: {prompt}"\n')
    assert read_formats(own, "poem") == {"mine": "Go on: {prompt}"}
    own.write_text('[prompts]\nmine = "Go on."\n')
    with pytest.raises(InputError, match="must be a text that contains"):
        read_formats(own, "poem")
    (tmp_path / "other.txt").write_text("Nothing of the kind.")
    with pytest.raises(InputError, match="does not contain the prompts"):
        read_formats(tmp_path / "other.txt", "novel")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_and_format_makes_its_own_prompt(kind: str):
    prompts = {opening_prompt("The start.", kind, name).text for name in FORMATS}
    assert len(prompts) == len(FORMATS)
    assert all("The start." in prompt for prompt in prompts)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no plots"), ("[]\n", "line 1"), ('{"id": 1}\n', "line 1"),
        ('{"id": 1, "plot": "x"}\n', "`words`"),
        ('{"id": 1, "plot": "x", "n_words": "9"}\n', "`words`"),
        ('{"id": 1, "plot": "x", "n_words": 9}\n' * 2, "same id"),
    ],
)  # fmt: skip
def test_plots_that_cannot_be_used_say_why(tmp_path: Path, text: str, said: str):
    path = tmp_path / "plots.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_plots(path)


def test_inputs_and_foreign_files_are_not_replaced(plots: Path, tmp_path: Path):
    before = plots.read_bytes()
    human = tmp_path / "human.jsonl"
    human.write_text('{"id": "a", "text": "She counted."}\n')
    with pytest.raises(InputError, match="input of this command"):
        run("stories", "write", str(plots), "--human", str(human), "--out", str(human))
    foreign = tmp_path / "notes.jsonl"
    foreign.write_text('{"note": 1}\n')
    with pytest.raises(InputError, match="no stories"):
        run("stories", "write", str(plots), "--out", str(foreign))
    assert (plots.read_bytes(), foreign.read_text()) == (before, '{"note": 1}\n')


def test_openings_of_another_sampling_are_not_mixed(tmp_path: Path):
    lines = tmp_path / "first.txt"
    lines.write_text("The lamp went out.\n")
    out = tmp_path / "openings.jsonl"
    with serving(lambda *_: "And then.") as server:
        command = ("stories", "openings", str(lines), "--out", str(out), "--model")
        run(*command, f"{server.url}/v1#m")
        with pytest.raises(InputError, match="another sampling"):
            run(*command, f"{server.url}/v1#m", "--set", "models.temperature=0.2")
        run(*command, f"{server.url}/v1#m", "--model", f"{server.url}/v1#m")
    assert len(server.requests) == 1


def test_an_answer_that_repeats_its_sentence_is_kept_without_it():
    prompt = "The old lighthouse had been dark for a year."
    for begun in (prompt, f"“{prompt}”\n\n", f"{prompt.upper()} "):
        assert without_prompt(f"{begun} Nobody came.", prompt) == "Nobody came."
    assert without_prompt("Nobody came.", prompt) == "Nobody came."
    assert without_prompt("The old lighthouse fell.", prompt) == "The old lighthouse fell."
    sentences = [Document(str(k), text) for k, text in enumerate(["a", "b", "a", "c", "b", "d"])]
    assert [s.id for s in draw_sentences(sentences, None, 0)] == ["0", "1", "3", "5"]
    drawn = draw_sentences(sentences, 2, 1)
    assert len({s.text for s in drawn}) == 2
    assert drawn == draw_sentences(sentences, 2, 1)


def test_rows_stand_in_the_order_of_the_texts_whichever_answer_came_first(tmp_path: Path):
    source, out = tmp_path / "in.jsonl", tmp_path / "plots.jsonl"
    texts = [{"id": f"s{k}", "text": f"Tale {k}. She went to sea."} for k in range(4)]
    write_rows(source, texts)
    out.write_text(
        '{"id": "old", "model": "m", "plot": "Hm.", "missing_reason": null, "text_digest": "0"}\n'
    )
    others = threading.Semaphore(0)

    def answer(body: dict[str, Any], _: int) -> Reply:
        if "Tale 0" not in prompt_of(body):
            others.release()
            return "She goes to sea."
        assert all(others.acquire(timeout=20) for _ in range(3))
        return "She goes first, and is told of last."

    with serving(answer) as server:
        # A name of its own: Inspect counts calls by it, over all that a process has asked.
        run("stories", "plot", str(source), "--out", str(out), "--model",
            f"{server.url}/v1#in-order", "--yes")  # fmt: skip
    assert [row["id"] for row in rows_of(out)] == ["old", "s0", "s1", "s2", "s3"]
    assert rows_of(out)[1]["plot"] == "She goes first, and is told of last."

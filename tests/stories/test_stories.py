import json
import random
import re
import threading
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from scipy.stats import chisquare
from tests.commands import invoke, refused, rows_of, write_rows
from tests.serving import Reply, completion, prompt_of, serving

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.jobs.models import ModelSettings, Spending
from fabula.reference.job import OpeningSettings, openings
from fabula.reference.openings import (
    FORMATS,
    KINDS,
    draw_sentences,
    opening_prompt,
    read_formats,
    without_prompt,
)
from fabula.stories.random_draw import draw_texts, sample_evenly
from fabula.stories.story_writing import read_plots


def written(plots: Path, answer: Any, *more: object) -> tuple[list[dict[str, Any]], Result, Any]:
    """The stories that a model wrote, what the command said, and the server that it asked."""
    out = plots.with_name("stories.jsonl")
    with serving(answer) as server:
        given = ("stories", "write", plots, "--out", out, "--model", f"{server.url}/v1#m")
        done = invoke(*given, *more)
    return rows_of(out), done, server


@pytest.fixture
def plots(tmp_path: Path) -> Path:
    first = {"id": "p1", "plot": "A lamp turns on its own.", "n_words": 1000, "verified": True}
    rows = [first, {"id": "p2", "plot": "Somebody counts.", "n_words": 600}]
    return write_rows(tmp_path / "plots.jsonl", rows)


def grows_by(step: int) -> Any:
    """A writer whose story has `step` more words each time it is sent back."""

    def answer(body: dict[str, Any], _: int) -> Reply:
        had = re.search(r"and has (\d+)\.", prompt_of(body))
        return " ".join(["word"] * ((int(had[1]) if had else 0) + step))

    return answer


def test_a_story_is_rewritten_until_it_is_near_its_length(plots: Path, tmp_path: Path):
    stories, _, server = written(plots, grows_by(300))
    # 300, 600, 900 words: 900 is within 200 of 1,000; of 600 it is 600 (the second round).
    found = [(s["prompt_id"], s["n_words"], s["n_rounds"]) for s in stories]
    assert found == [("p1", 900, 2), ("p2", 600, 1)]
    rounds = {
        (r["id"], r["round"]): r["n_words"] for r in rows_of(tmp_path / "stories.rounds.jsonl")
    }
    assert [rounds.pop(("p1", k)) for k in range(3)] == [300, 600, 900]
    assert rounds == {("p2", 0): 300, ("p2", 1): 600}
    first = next(p for p in server.prompts() if "A lamp turns" in p)
    assert "about 1000 words" in first


def test_a_model_that_never_converges_is_reported_and_left_out(plots: Path, tmp_path: Path):
    stories, done, _ = written(plots, grows_by(10), "--attempts", 4)
    assert stories == []
    assert "2 stories: not close to the target length" in done.output
    assert "p1" in done.output
    assert len(rows_of(tmp_path / "stories.rounds.jsonl")) == 10


def shorter_if_told(body: dict[str, Any], _: int) -> Reply:
    return " ".join(["word"] * (950 if "shorter" in prompt_of(body) else 3000))


def cut_at_first(_: dict[str, Any], number: int) -> Reply:
    text = " ".join(["word"] * 1000)
    return (200, completion(text, "length")) if number == 0 else text


@pytest.mark.parametrize(("answer", "n_words"), [(shorter_if_told, 950), (cut_at_first, 1000)])
def test_a_story_that_is_too_long_or_cut_is_not_finished(plots: Path, answer: Any, n_words: int):
    (story,), _, _ = written(plots, answer, "--verified-only")
    assert (story["prompt_id"], story["n_words"], story["n_rounds"]) == ("p1", n_words, 1)


def test_a_run_goes_on_and_refuses_another_plot(plots: Path, tmp_path: Path):
    out, log = tmp_path / "stories.jsonl", tmp_path / "stories.rounds.jsonl"
    with serving(grows_by(300)) as server:
        command = ("stories", "write", plots, "--out", out, "--model", f"{server.url}/v1#m")
        invoke(*command)
        bytes_ = out.read_bytes()
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(lines[:3]) + lines[3][:20])
        n = len(server.requests)
        invoke(*command)
        assert len(server.requests) - n == 2
        assert out.read_bytes() == bytes_
        plots.write_text(plots.read_text().replace("A lamp", "No lamp"))
        assert "another plot" in refused(*command)


def test_plots_are_a_sentence_for_a_person_to_verify(tmp_path: Path):
    said = {"a": "One two three.", "b": "Four five."}
    stories = write_rows(tmp_path / "s.jsonl", ({"id": k, "text": t} for k, t in said.items()))
    out = tmp_path / "plots.jsonl"

    def answer(body: dict[str, Any], _: int) -> Reply:
        withheld = (200, completion("", "content_filter"))
        return withheld if "Four" in prompt_of(body) else "Somebody\ncounts."

    with serving(answer) as server:
        done = invoke("stories", "plot", stories, "--out", out, "--model", f"{server.url}/v1#m")
    first, second = sorted(rows_of(out), key=lambda row: str(row["id"]))
    assert (first["plot"], first["n_words"], first["verified"]) == ("Somebody counts.", 3, False)
    assert (second["plot"], second["missing_reason"]) == (None, "blocked")
    assert "1 plots: withheld by the provider" in done.output
    assert read_plots(out)[1] == 1
    # As a person who has verified it changes the file.
    out.write_text(out.read_text().replace('"verified":false', '"verified":true'))
    plots, n_unverified = read_plots(out, verified_only=True)
    assert ([plot.id for plot in plots], n_unverified) == (["a"], 0)


def test_openings_are_asked_in_each_format(tmp_path: Path):
    lines, out = tmp_path / "first.txt", tmp_path / "openings.jsonl"
    lines.write_text("The lamp went out.\nShe counted.\n")
    with serving(lambda *_: "And then.") as server:
        asked = ("stories", "openings", lines, "--kind", "poem", "--prompt", "plain")
        invoke(*asked, "--prompt", "bold", "--out", out, "--model", f"{server.url}/v1#m")
    found = sorted((row["format"], row["prompt"]) for row in rows_of(out))
    assert found == [*product(("bold", "plain"), ("She counted.", "The lamp went out."))]
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
    assert all(next(iter(read_formats(paper, kind))) == "plain" for kind in KINDS)
    assert "poem" in read_formats(paper, "poem")["plain"]
    own, other = tmp_path / "own.toml", tmp_path / "other.txt"
    own.write_text('[prompts]\nmine = "Go on: {prompt}"\n')
    assert read_formats(own, "poem") == {"mine": "Go on: {prompt}"}
    own.write_text('[prompts]\nmine = "Go on."\n')
    other.write_text("Nothing of the kind.")
    refusals = (own, "must be a text that contains"), (other, "does not contain the prompts")
    for file, said in refusals:
        with pytest.raises(InputError, match=said):
            read_formats(file, "novel")


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
    before, human, foreign = plots.read_bytes(), tmp_path / "human.jsonl", tmp_path / "notes.jsonl"
    human.write_text('{"id": "a", "text": "She counted."}\n')
    foreign.write_text('{"note": 1}\n')
    write = ("stories", "write", plots, "--out")
    assert "input of this command" in refused(*write, human, "--human", human)
    assert "no stories" in refused(*write, foreign)
    assert (plots.read_bytes(), foreign.read_text()) == (before, '{"note": 1}\n')


def test_openings_of_another_sampling_are_not_mixed(tmp_path: Path):
    lines = tmp_path / "first.txt"
    lines.write_text("The lamp went out.\n")
    with serving(lambda *_: "And then.") as server:
        model = "--model", f"{server.url}/v1#m"
        command = ("stories", "openings", lines, "--out", tmp_path / "openings.jsonl", *model)
        invoke(*command)
        assert "another sampling" in refused(*command, "--set", "models.temperature=0.2")
        invoke(*command, *model)
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
    texts = [{"id": f"s{k}", "text": f"Tale {k}. She went to sea."} for k in range(4)]
    source = write_rows(tmp_path / "in.jsonl", texts)
    old = {"id": "old", "model": "m", "plot": "Hm.", "missing_reason": None, "text_digest": "0"}
    out = write_rows(tmp_path / "plots.jsonl", [old])
    others = threading.Semaphore(0)

    def answer(body: dict[str, Any], _: int) -> Reply:
        if "Tale 0" not in prompt_of(body):
            others.release()
            return "She goes to sea."
        assert all(others.acquire(timeout=20) for _ in range(3))
        return "She goes first, and is told of last."

    with serving(answer) as server:
        # A name of its own: Inspect counts calls by it, over all that a process has asked.
        model = f"{server.url}/v1#in-order"
        invoke("stories", "plot", source, "--out", out, "--model", model, "--yes")
    assert [row["id"] for row in rows_of(out)] == ["old", "s0", "s1", "s2", "s3"]
    assert rows_of(out)[1]["plot"] == "She goes first, and is told of last."


SIZES = {"a": 40, "b": 7, "c": 3}
TEXTS = [
    Document(f"{author}{k}", f"Text {k} of {author}.", author=author, meta={"year": 1900 + k})
    for author, n in SIZES.items() for k in range(n)
]  # fmt: skip


def test_each_group_gives_as_many_or_all_it_has_in_the_order_read():
    drawn = draw_texts(iter(TEXTS), 5, by="author")
    assert drawn.n_there == SIZES
    assert drawn.n_drawn == {"a": 5, "b": 5, "c": 3}
    assert Counter(one.author for one in drawn.documents) == drawn.n_drawn
    assert [one for one in TEXTS if one in drawn.documents] == list(drawn.documents)
    assert len(draw_texts(TEXTS, 20).documents) == 20
    with pytest.raises(InputError, match=r"a0: no field 'genre' to group by; .* author, year"):
        draw_texts(TEXTS, 5, by="genre")


def test_the_seed_decides_and_not_the_order_and_more_include_fewer():
    few = {one.id for one in draw_texts(TEXTS, 4, by="author", seed=3).documents}
    mixed = random.Random(0).sample(TEXTS, len(TEXTS))
    assert {one.id for one in draw_texts(mixed, 4, by="author", seed=3).documents} == few
    assert few < {one.id for one in draw_texts(TEXTS, 6, by="author", seed=3).documents}
    assert {one.id for one in draw_texts(TEXTS, 4, by="author", seed=4).documents} != few


def test_every_text_is_drawn_as_often():
    draws = (draw_texts(TEXTS[:40], 10, seed=seed).documents for seed in range(400))
    n_times = Counter(one.id for drawn in draws for one in drawn)
    # 100 times each if all are equal. Their sum is fixed, so the test errs on the safe side.
    assert chisquare([n_times[one.id] for one in TEXTS[:40]]).pvalue > 0.001


BY = ("model", "method")


def pieces(n_stories: int, models: str = "ab", methods: str = "xyz") -> list[dict[str, Any]]:
    return [
        {"id": f"s{k}_{method}_spot_0", "story_id": f"s{k}", "method": method, "prompt": "spot",
         "shots": 0, "model": model, "feedback": "Say more.", "story": "She left."}
        for k in range(n_stories) for method in methods for model in models
    ]  # fmt: skip


def test_every_cell_gives_as_many_and_every_story_is_used_as_often():
    rows = pieces(12)
    drawn = sample_evenly(rows, 24, BY, 3)
    assert [cell.n_drawn for cell in drawn.cells] == [4] * 6
    # Two of each would be even; drawn one by one, none has fewer than one or more than three.
    assert set(Counter(row["story_id"] for row in drawn.rows).values()) <= {1, 2, 3}
    assert drawn.n_stories == 12
    assert sample_evenly(rows[::-1], 24, BY, 3).rows == drawn.rows[::-1]
    assert sample_evenly(rows, 24, BY, 4).rows != drawn.rows


@pytest.mark.parametrize("n", [24, 25, 60, 101, 120, 331])
def test_every_model_prompt_and_corruption_is_drawn_as_often_at_every_size(n: int):
    """1,920 pieces are 240 a model in the paper, and 7.5 of each of 256 cells."""
    rows = [
        {**row, "prompt": prompt, "shots": shots, "id": f"{row['id']}_{prompt}_{shots}"}
        for row in pieces(9, "abcde", "wxyz") for prompt in ("full", "list", "spot")
        for shots in (0, 2)
    ]  # fmt: skip
    drawn = sample_evenly(rows, n, (*BY, "prompt", "shots"), 1)
    for name, n_values in (("model", 5), ("method", 4), ("prompt", 3), ("shots", 2)):
        counts = Counter(row[name] for row in drawn.rows)
        assert sorted(counts.values())[0] == n // n_values
        assert sorted(counts.values())[-1] == -(-n // n_values)


def test_a_small_cell_gives_all_it_has_and_what_was_withheld_has_no_part():
    rows = pieces(6)
    for row in rows:
        if row["model"] == "a" and row["method"] == "x" and row["story_id"] != "s3":
            row["feedback"] = "I'm sorry, but I can't help with that."
    drawn = sample_evenly(rows, 16, BY, 0)
    assert [cell.n_drawn for cell in drawn.cells] == [1, 3, 3, 3, 3, 3]
    assert drawn.n_there == 31
    assert drawn.left_out == {"refused": 5}
    assert not any("sorry" in row["feedback"] for row in drawn.rows)
    with pytest.raises(InputError, match="there are only 31 pieces"):
        sample_evenly(rows, 32, BY, 0)
    with pytest.raises(InputError, match="has no 'source'"):
        sample_evenly(rows, 3, ("source",), 0)

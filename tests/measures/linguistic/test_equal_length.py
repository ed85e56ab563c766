"""Continuations beside random sentences as long."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.errors import InputError, ModelError
from fabula.measures.linguistic.equal_length import (
    Pool,
    compare_at_equal_length,
    control_rows,
)
from fabula.measures.linguistic.metrics import METRICS, ToolChoice, open_tools
from fabula.measures.linguistic.system_scores import Story, gold_continuations, score_rows
from fabula.measures.linguistic.table import SystemTable, compare_systems
from fabula.presentation.continuation_tables import system_tables
from fabula.presentation.sheet import render

CHOICE = ToolChoice(grammar="none")
EACH = [metric.id for metric in METRICS if not metric.is_of_all]
SENTENCE = "the king saw a ring in his old garden and lost it there near the wall"


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=30),
    st.integers(1, 12),
    st.integers(1, 8),
    st.integers(0, 5),
)
def test_those_drawn_are_the_nearest_in_length_and_none_is_the_passages_own(
    lengths: Sequence[int], wanted: int, n: int, n_own: int
) -> None:
    sentences = [f"{k} " + "x " * length for k, length in enumerate(lengths)]
    n_words = dict(zip(sentences, lengths, strict=True))
    own = frozenset(sentences[:n_own])
    pool = Pool.of(sentences, n_words, 0)
    drawn = [pool.sentences[k] for k in pool.draw(n, wanted, random.Random(1), own).places]
    # the oracle: all distances in order
    distances = sorted(abs(n_words[text] - wanted) for text in sentences if text not in own)
    assert sorted(abs(n_words[text] - wanted) for text in drawn) == distances[:n]
    assert len(set(drawn)) == len(drawn)
    assert not own & set(drawn)


def test_sentences_that_are_equally_near_are_drawn_alike() -> None:
    sentences = [f"{k}" for k in range(10)]
    pool = Pool.of(sentences, dict.fromkeys(sentences, 5), 0)
    counts = np.zeros(10)
    for seed in range(2000):
        counts[list(pool.draw(2, 5, random.Random(seed), frozenset()).places)] += 1
    # a share of 0.2 each, within five standard errors
    assert np.abs(counts / 2000 - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / 2000)


def made_up(n_chapters: int, effect: float, n_draws: int = 4) -> tuple[SystemTable, list[Any]]:
    """Systems of which one writes long sentences, with a metric that is length and an effect."""
    rng = np.random.default_rng(3)
    scored, controls = [], []
    for k in range(4 * n_chapters):
        chapter, found = f"c{k % n_chapters}", {}
        for system, mean in (("short", 5), ("long", 25)):
            n_words = int(mean + rng.integers(4))
            value = n_words + effect + rng.normal()
            scored.append(
                {"id": f"p{k}", "system": system, "chapter": chapter, "missing": {},
                 "values": {**dict.fromkeys(EACH, value), "sentence_length": float(n_words)},
                 "words": "a b", "sentence_ends": [2], "signature": "linguistic|v:1"}
            )  # fmt: skip
            noise = rng.normal(size=n_draws).mean()
            found[n_words] = {
                "n_words": n_words, "n": n_draws,
                "values": {**dict.fromkeys(EACH, n_words + noise), "sentence_length": n_words},
            }  # fmt: skip
        anything = float(rng.integers(3, 30))
        controls.append(
            {"id": f"p{k}", "chapter": chapter, "controls": list(found.values()),
             "any": {"n_words": None, "values": dict.fromkeys(EACH, anything)},
             "signature": "linguistic|v:1|control:4|pool:p|drawn:0"}
        )  # fmt: skip
    table = compare_systems(scored, ["short", "long"], n_permutations=999)
    return compare_at_equal_length(table, scored, controls, n_draws=n_draws), scored + controls


def test_what_is_length_alone_is_gone_at_equal_length() -> None:
    table, _ = made_up(20, effect=0.0)
    length = table.at_equal_length
    assert length is not None
    assert table.beats("pos_similarity", "long", "short")
    for system in table.systems:
        assert length.differs("pos_similarity", system, 0.05, "bonferroni") == 0
    assert length.with_length["pos_similarity"].value == pytest.approx(1)
    assert length.n_short == 0
    assert length.words_apart == 0


def test_what_is_not_length_stays_and_has_its_direction() -> None:
    for effect, direction in ((1.5, 1), (-1.5, -1)):
        length = made_up(20, effect)[0].at_equal_length
        assert length is not None
        assert length.differs("pos_similarity", "long", 0.05, "bonferroni") == direction


def test_the_test_flips_whole_chapters_and_is_corrected_over_the_systems() -> None:
    """By an oracle that tries every way in which six chapters can change places."""
    table, rows = made_up(6, effect=0.3)
    assert table.at_equal_length is not None
    control = {row["id"]: row for row in rows if "any" in row}
    apart: dict[str, list[float]] = {}
    for row in rows:
        if row.get("system") == "long":
            (same,) = [
                one["values"]["noun_phrases"]
                for one in control[row["id"]]["controls"]
                if one["n_words"] == row["values"]["sentence_length"]
            ]
            apart.setdefault(row["chapter"], []).append(row["values"]["noun_phrases"] - same)
    sums = [sum(values) for values in apart.values()]
    every = [
        abs(sum(s * sign for s, sign in zip(sums, signs, strict=True)))
        for signs in itertools.product((1, -1), repeat=6)
    ]
    test = table.at_equal_length.cells["noun_phrases", "long"].test
    p = sum(one >= abs(sum(sums)) - 1e-9 for one in every) / len(every)
    assert test.difference.value == pytest.approx(sum(sums) / 24)
    assert test.p == pytest.approx(p)
    assert test.p_bonferroni == pytest.approx(min(1, 2 * p))
    # fewer than ten chapters have no interval
    assert test.difference.low is None


def test_the_papers_way_keeps_its_numbers() -> None:
    table, rows = made_up(20, effect=0.3)
    plain = compare_systems(
        [row for row in rows if "any" not in row], ["short", "long"], n_permutations=999
    )
    assert table.signature == plain.signature
    own = table.to_json()
    for metric in own["metrics"]:
        for name in ("any_length", "with_length"):
            metric.pop(name, None)
        for value in metric["values"].values():
            value.pop("as_long", None)
    del own["equal_length"]
    assert json.dumps(own) == json.dumps(plain.to_json())
    with_, without = (
        [line.split()[:5] for line in render(*system_tables(one)).splitlines() if ". " in line[:4]]
        for one in (table, plain)
    )
    assert [line[:4] for line in with_] == [line[:4] for line in without]


@pytest.fixture(scope="module")
def stories() -> list[Story]:
    try:
        open_tools(CHOICE)
    except ModelError as error:
        pytest.skip(str(error))
    rng = random.Random(0)

    def sentence() -> str:
        return " ".join(rng.choices(SENTENCE.split(), k=rng.randint(3, 9))).capitalize() + "."

    return [
        Story(f"p{k}", tuple(sentence() for _ in range(3)), sentence(), f"b/{k // 4}", "b")
        for k in range(70)
    ]


@pytest.fixture(scope="module")
def whole(stories: list[Story], tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], Path]:
    rows = score_rows(stories, gold_continuations(stories), CHOICE)
    out = tmp_path_factory.mktemp("controls") / "controls.jsonl"
    control_rows(stories, rows, CHOICE, out, n_draws=3)
    return rows, out


def test_two_processes_or_an_interruption_give_the_same_bytes(
    stories: list[Story], whole: tuple[list[Any], Path], tmp_path: Path
) -> None:
    rows, out = whole
    control_rows(stories, rows, CHOICE, tmp_path / "two.jsonl", n_draws=3, n_jobs=2)
    data = out.read_bytes()
    assert (tmp_path / "two.jsonl").read_bytes() == data
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(data[: len(data) // 3])
    control_rows(stories, rows, CHOICE, cut, n_draws=3)
    assert cut.read_bytes() == data
    with pytest.raises(InputError, match="`restart`"):
        control_rows(stories, rows, CHOICE, cut, n_draws=3, seed=1)


def test_a_control_is_the_mean_of_sentences_as_long_in_the_same_place(
    stories: list[Story], whole: tuple[list[Any], Path]
) -> None:
    """By scoring every sentence of the book that could have been drawn, as a continuation."""
    rows, out = whole
    row = json.loads(out.read_text().splitlines()[0])
    story, (control,) = stories[0], row["controls"]
    own = {*story.context, story.gold}
    others = [t for s in stories for t in (*s.context, s.gold) if t not in own]
    place = [Story(f"{k}", story.context, text) for k, text in enumerate(dict.fromkeys(others))]
    every = score_rows(place, gold_continuations(place), CHOICE)
    n_words = rows[0]["values"]["sentence_length"]
    same = [one["values"] for one in every if one["values"]["sentence_length"] == n_words]
    assert control["n_words"] == n_words == control["values"]["sentence_length"]
    assert control["n"] == 3
    for metric in ("pos_similarity", "jaccard_similarity", "sentence_similarity"):
        means = [sum(one[metric] for one in three) / 3 for three in itertools.combinations(same, 3)]
        assert min(abs(mean - control["values"][metric]) for mean in means) < 2e-6
    assert row["any"]["n_words"] is None

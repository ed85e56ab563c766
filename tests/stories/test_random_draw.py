"""Some texts of many, drawn in one pass, and which pieces of feedback people are given."""

import random
from collections import Counter
from typing import Any

import pytest
from scipy.stats import chisquare

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.stories.random_draw import draw_texts, sample_evenly

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
    n_times = Counter(
        one.id for seed in range(400) for one in draw_texts(TEXTS[:40], 10, seed=seed).documents
    )
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

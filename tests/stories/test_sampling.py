"""Which pieces of feedback people are given: as many of each kind, and no story too often."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.commands import invoke, rows_of, write_rows

from fabula.core.errors import InputError
from fabula.stories.random_draw import sample_evenly

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


def test_what_is_drawn_is_written_as_it_was(tmp_path: Path):
    file, out = tmp_path / "f.jsonl", tmp_path / "s.jsonl"
    rows = pieces(4)
    write_rows(file, rows)
    command = ["stories", "draw", str(file), "--pieces", "12", "--out", str(out)]
    done = invoke(*command)
    assert "12 of 24 pieces, from 6 cells (model, method, prompt, shots): 2 each" in done.output
    written = rows_of(out)
    assert all(row in rows for row in written)
    again = json.loads(invoke(*command, "--json").stdout)
    assert (again["n"], again["n_of_story"], len(again["cells"])) == (12, 3, 6)

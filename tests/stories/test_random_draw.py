"""Some texts of many, drawn in one pass."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from scipy.stats import chisquare
from tests.commands import invoke, write_rows

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.stories.random_draw import draw_texts
from fabula.text import read_documents

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


def test_what_is_drawn_is_read_again_as_it_was(tmp_path: Path):
    file, out = tmp_path / "t.jsonl", tmp_path / "d.jsonl"
    rows = ({"id": t.id, "text": t.text, "author": t.author, **t.meta} for t in TEXTS)
    write_rows(file, rows)
    command = ["stories", "draw", str(file), "--each", "2", "--by", "author", "--out", str(out)]
    done = invoke(*command)
    assert done.output.splitlines() == [
        "6 of 50 texts, from 3 groups (author)", "  a: 2 of 40", "  b: 2 of 7", "  c: 2 of 3",
        f"written: {out}",
    ]  # fmt: skip
    expected = draw_texts(TEXTS, 2, by="author").documents
    assert list(read_documents([str(out)])) == list(expected)
    told = json.loads(invoke(*command, "--json").output)
    assert (told["n"], told["n_there"]) == (6, 50)
    assert told["groups"][1] == {"group": "b", "n_there": 7, "n_drawn": 2}

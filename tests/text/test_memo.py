"""Results of pieces of text that are remembered, against making each again."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabula.cached_results import CachedResults
from fabula.text.memo import Kept, Memo


def test_results_are_those_of_making_each_piece_and_none_is_made_twice_while_it_is_known():
    rng = random.Random(2)
    made: list[str] = []

    def make(pieces: list[str]) -> Iterator[str]:
        made.extend(pieces)
        return map(str.upper, pieces)

    memo: Memo[str] = Memo(1000)
    drafts = [[rng.choice("abcdefgh") * rng.randint(0, 9) for _ in range(50)] for _ in range(8)]
    for n_batch, draft in enumerate(drafts, 1):
        assert list(memo.each(iter(draft), make, n_batch)) == [piece.upper() for piece in draft]
    assert sorted(made) == sorted({piece for draft in drafts for piece in draft})


def test_what_was_asked_for_longest_ago_is_forgotten():
    made: list[str] = []

    def make(pieces: list[str]) -> list[int]:
        made.extend(pieces)
        return [len(piece) for piece in pieces]

    memo: Memo[int] = Memo(10)
    for piece in ("aaaa", "bbbb", "aaaa", "cccc"):
        assert list(memo.each([piece], make, 1)) == [4]
    # Asked for again, the first outlived the second.
    assert list(memo.each(["aaaa", "cccc", "bbbb"], make, 1)) == [4, 4, 4]
    assert made == ["aaaa", "bbbb", "cccc", "bbbb"]
    # A piece that is longer than all that may be remembered is made each time.
    assert [*memo.each(["d" * 11], make, 1), *memo.each(["d" * 11], make, 1)] == [11, 11]
    assert made[4:] == ["d" * 11, "d" * 11]


def test_results_are_kept_for_other_processes_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FABULA_CACHE", str(tmp_path))
    made: list[str] = []

    def make(pieces: list[str]) -> list[tuple[str, int]]:
        made.extend(pieces)
        return [(piece[:1], len(piece)) for piece in pieces]

    def opened(name: str = "first 1") -> Memo[tuple[str, int]]:
        return Memo(1000, Kept(name, list, lambda piece, row: (piece[:1], int(row[1]))))

    pieces = ["a", "bb", "\ud800", "bb", ""]
    expected = [("a", 1), ("b", 2), ("\ud800", 1), ("b", 2), ("", 0)]
    assert list(opened().each(pieces, make, 2)) == expected
    assert len(made) == 4
    assert list(opened().each(["new", *pieces], make, 2)) == [("n", 3), *expected]
    assert made[4:] == ["new"]
    # What another tool made is not taken for its own, and what cannot be read is made again.
    assert list(opened("second 1").each(["a"], make, 1)) == [("a", 1)]
    assert made[5:] == ["a"]
    kept: Kept[int] = Kept("first 1", lambda n: n, lambda _, n: n)
    kept.keep({"bb": 0})
    assert list(opened().each(["bb"], make, 1)) == [("b", 2)]
    assert list(opened().each(["bb"], make, 1)) == [("b", 2)]
    assert made[6:] == ["bb"]
    assert CachedResults().path.parent == tmp_path

"""Results of pieces of text that are remembered, against making each again."""

from __future__ import annotations

import random
from collections.abc import Iterator

from fabula.text.memo import Memo


def test_results_are_those_of_making_each_piece_and_none_is_made_twice_while_it_is_known() -> None:
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


def test_what_was_asked_for_longest_ago_is_forgotten() -> None:
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

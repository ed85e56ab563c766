"""Results are found by other processes, say nothing without their keys, and cause no error."""

import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from fabula.core import cached_results
from fabula.core.cached_results import CachedResults, Kept, Memo, Recent

N_WRITERS, N_RESULTS = 4, 300


def key_of(k: int) -> bytes:
    return b"echo 1\nThe lamp went out for the %dth time." % k


def result_of(k: int) -> bytes:
    return random.Random(k).randbytes(k % 700)


def keep_and_find(path: Path, writer: int) -> int:
    """Keep results, in an order of one's own, and look for those of all; how many were wrong."""
    cache = CachedResults(path)
    order = random.Random(writer).sample(range(N_RESULTS), N_RESULTS)
    for at in range(0, N_RESULTS, 20):
        cache.keep({key_of(k): result_of(k) for k in order[at : at + 20]})
    found = cache.find([key_of(k) for k in range(N_RESULTS)])
    return sum(one is not None and one != result_of(k) for k, one in enumerate(found))


def test_processes_share_results_and_find_only_those_of_a_key(tmp_path: Path):
    path = tmp_path / "new" / "results"
    with ProcessPoolExecutor(N_WRITERS) as pool:
        assert list(pool.map(keep_and_find, [path] * N_WRITERS, range(N_WRITERS))) == [0] * 4
    keys = [key_of(k) for k in range(N_RESULTS)]
    found = CachedResults(path).find([*keys, b"another", key_of(7)])
    assert found == [*map(result_of, range(N_RESULTS)), None, result_of(7)]


def test_only_its_owner_can_read_the_file(tmp_path: Path):
    cache = CachedResults(tmp_path / "results")
    key, result = b"errors 1\nThe lampp went out.", b"Did you mean `lamp`? " * 40
    cache.keep({key: result})
    assert cache.path.stat().st_mode & 0o077 == 0
    # Keys, which hold the text, are not in it.
    assert b"errors 1" not in cache.path.read_bytes()
    assert cache.find([key]) == [result]


@pytest.mark.parametrize("place", ["data", "digest", "id"])
def test_a_damaged_result_is_not_found(tmp_path: Path, place: str):
    cache = CachedResults(tmp_path / "results")
    cache.keep({b"a": b"x" * 100, b"b": b"y" * 100})
    with sqlite3.connect(cache.path) as rows:
        ((damaged, id_),) = rows.execute(f"SELECT {place}, id FROM results LIMIT 1")
        changed = damaged[:-1] + bytes([damaged[-1] ^ 1])
        rows.execute(f"UPDATE results SET {place} = ? WHERE id = ?", (changed, id_))
    assert sorted(cache.find([b"a", b"b"]), key=str) in ([None, b"x" * 100], [None, b"y" * 100])


@pytest.mark.parametrize("stays_open", [False, True])
def test_a_damaged_file_never_gives_a_wrong_result(tmp_path: Path, stays_open: bool):
    whole = CachedResults(tmp_path / "results")
    wanted = {key_of(k): b"%d" % (1_000_000 + k) for k in range(400)}
    whole.keep(wanted)
    data, rng, n_kept = whole.path.read_bytes(), random.Random(7), 0
    for trial in range(40):
        damaged = bytearray(data)
        if trial % 2:
            del damaged[rng.randrange(len(damaged)) :]
        else:
            for place in (rng.randrange(100, len(damaged)) for _ in range(20)):
                damaged[place] ^= rng.randrange(1, 256)
        cache = CachedResults(tmp_path / str(trial), stays_open=stays_open)
        cache.path.write_bytes(damaged)
        for key, result in wanted.items():
            (found,) = cache.find([key])
            assert found in (None, result)
            n_kept += found is not None
        cache.close()
    assert n_kept > 1000


@pytest.mark.parametrize("options", ["", "stays_open=True"])
def test_killed_processes_leave_a_good_file(tmp_path: Path, options: str):
    program = (
        "import sys, itertools, runpy\n"
        "from pathlib import Path\n"
        "CachedResults = runpy.run_path(sys.argv[2])['CachedResults']\n"
        f"cache = CachedResults(Path(sys.argv[1]), {options})\n"
        "for k in itertools.count():\n"
        "    cache.keep({b'%d' % k: b'%d' % k})\n"
        "    print(k, flush=True)\n"
    )
    path = tmp_path / "results"
    # By its file, for what else is in the package takes long to import.
    command = [sys.executable, "-c", program, str(path), str(cached_results.__file__)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        last = min(max(int(writer.stdout.readline()) for _ in range(100)) for writer in writers)
    finally:
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
    keys = [b"%d" % k for k in range(last)]
    assert CachedResults(path).find(keys) == keys


def test_what_cannot_be_written_or_read_costs_time_only(tmp_path: Path):
    (tmp_path / "file").write_text("no folder")
    cache = CachedResults(tmp_path / "file" / "results")
    cache.keep({b"a": b"1"})
    assert cache.find([b"a"]) == [None]
    # Something else under this name is removed, since it holds nothing that was found.
    cache = CachedResults(tmp_path / "results")
    cache.path.write_bytes(b"not a database, but long enough to be looked at" * 100)
    assert cache.find([b"a"]) == [None]
    cache.keep({b"a": b"1"})
    assert cache.find([b"a"]) == [b"1"]
    # While another process writes, results are neither kept nor waited for without end.
    with sqlite3.connect(cache.path, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cached_results, "_BUSY_S", 0.01)
            cache.keep({b"b": b"2"})
            assert cache.find([b"a"]) == [None]
        other.execute("ROLLBACK")
    assert cache.find([b"a", b"b"]) == [b"1", None]


def test_of_too_much_what_was_not_used_for_longest_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    cache = CachedResults(tmp_path / "results")
    keys = [b"%d" % k for k in range(40)]
    days = iter(range(100, 200))
    monkeypatch.setattr(cached_results, "_today", lambda: day)
    for k, key in enumerate(keys):
        day = next(days)
        cache.keep({key: bytes([k]) * 4000})
    day = next(days)
    assert cache.find(keys[:2]) == [bytes([k]) * 4000 for k in (0, 1)]
    monkeypatch.setattr(cached_results, "_MAX_BYTES", 160_000)
    cache.keep({b"new": b"new"})
    found = cache.find([*keys, b"new"])
    # A quarter of 41, and what was used again is not among it.
    assert [k for k, one in enumerate(found) if one is None] == list(range(2, 12))
    # Below the limit, nothing is removed.
    cache.keep({b"newer": b"newer"})
    assert sum(one is None for one in cache.find(keys)) == 10


class Maker:
    """Makes results of pieces, and knows of which."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def __call__(self, pieces: list[str]) -> Iterator[str]:
        self.made.extend(pieces)
        return map(str.upper, pieces)


@pytest.fixture
def maker() -> Maker:
    return Maker()


def test_each_piece_is_made_once_while_it_is_known(maker: Maker):
    rng, memo = random.Random(2), Memo[str](1000)
    drafts = [[rng.choice("abcdefgh") * rng.randint(0, 9) for _ in range(50)] for _ in range(8)]
    for n_batch, draft in enumerate(drafts, 1):
        assert list(memo.each(iter(draft), maker, n_batch)) == [piece.upper() for piece in draft]
    assert sorted(maker.made) == sorted({piece for draft in drafts for piece in draft})


def test_what_was_asked_for_longest_ago_is_forgotten(maker: Maker):
    memo: Memo[str] = Memo(10)
    for piece in ("aaaa", "bbbb", "aaaa", "cccc"):
        assert list(memo.each([piece], maker, 1)) == [piece.upper()]
    # Asked for again, the first outlived the second.
    assert list(memo.each(["aaaa", "cccc", "bbbb"], maker, 1)) == ["AAAA", "CCCC", "BBBB"]
    assert maker.made == ["aaaa", "bbbb", "cccc", "bbbb"]
    # A piece that is longer than all that may be remembered is made each time.
    assert [*memo.each(["d" * 11], maker, 1), *memo.each(["d" * 11], maker, 1)] == ["D" * 11] * 2
    assert maker.made[4:] == ["d" * 11, "d" * 11]


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


def test_recent_values_are_cached_up_to_a_total_size_and_a_few_whatever_their_size():
    recent: Recent[int, str] = Recent(10, lambda _, text: len(text), at_least=2)
    for key, text in enumerate(("aaaa", "bbbb", "cc")):
        recent.remember(key, text)
    recent.remember(0, "aaaa")
    recent.remember(3, "d")
    assert list(recent) == [2, 0, 3], "the least recently used goes first"
    recent.remember(4, "e" * 50)
    assert list(recent) == [3, 4], "the last two are kept, however long"
    recent.remember(5, "f")
    assert list(recent) == [4, 5]
    recent.remember(6, "g")
    recent.remember(7, "h" * 8)
    assert list(recent) == [5, 6, 7], "what is gone no longer counts"

"""Damaged and hostile input for every parser: each must end in a sentence, or in a result.

    python bench/fuzz.py [--seconds 60] [--only NAME] [--seed 0] [--keep FOLDER] [--atheris]

Every target takes bytes, as they come from outside. What it may raise is a `FabulaError`; anything
else, more than ten seconds, or a process that ends, is a defect. Inputs are the golden files of all
formats and small documents of every kind, changed at random: bytes, values within JSON, and members
within archives, which are packed again so that the change gets past the checksum. With --atheris,
and that package installed, coverage of Fabula's code decides which changes are kept; each target
then has a process of its own, and its time is the clock's. Defects are written to FOLDER; when
fixed they go to tests/golden/fuzz, where a test reads them.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from fuzz_targets import Target, targets

SLOW_S = 10
_N_SMOKE = 3
"""Inputs of each target where `seconds` is 0: the same ones each time."""


class Slow(BaseException):
    """A target took too long; no `except Exception` of a parser stops it."""


ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1e308, 2**70, "", "\x00", "\ud800", "=1+1", [], {}, [[]], {"a": {}},
    math.inf, "../../etc/passwd", "9" * 400, [None], -0.5, "NaN",
)  # fmt: skip


def changed(data: bytes, rng: random.Random) -> bytes:
    """An input with one to three changes of the kinds that fit it."""
    for _ in range(rng.randint(1, 3)):
        kinds: list[Callable[[bytes, random.Random], bytes]] = [_bytes_changed]
        if data[:2] == b"PK":
            kinds = [_member_changed] * 9 + [_bytes_changed]
        elif data[:1] in (b"{", b"["):
            kinds = [_json_changed] * 3 + [_bytes_changed]
        data = rng.choice(kinds)(data, rng)
    return data


def _bytes_changed(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return rng.randbytes(rng.randint(1, 20))
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    b = min(b, a + rng.choice((1, 4, 40, 4000)))
    piece = rng.choice(
        (b"", rng.randbytes(rng.randint(1, 8)), data[a:b] * rng.randint(2, 30), b"\xff" * 4,
         b"(" * 300, b"[" * 3000, b"-1", b"99999999999999999999", b"\x00", b"\n\n", b"'\"",
         "\u2028\u202e".encode(), b"&#x0;", b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/x'>]>")
    )  # fmt: skip
    return (data[:a] + piece + data[b:])[: 1 << 20]


def _member_changed(data: bytes, rng: random.Random) -> bytes:
    """A file within an archive, which is packed again."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # noqa: BLE001 (an earlier change may have left no archive)
        return _bytes_changed(data, rng)
    if not members:
        return data
    name = rng.choice(list(members))
    members[name] = _bytes_changed(members[name], rng)
    if rng.random() < 0.1:
        del members[rng.choice(list(members))]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, content in members.items():
            archive.writestr(one, content)
    return made.getvalue()


def _json_changed(data: bytes, rng: random.Random) -> bytes:
    """A value within one JSON document, or within a line of several."""
    try:
        return json.dumps(_odd_within(json.loads(data), rng)).encode(errors="surrogatepass")
    except (ValueError, RecursionError):
        lines = data.split(b"\n")
    k = rng.randrange(len(lines))
    try:
        new = json.dumps(_odd_within(json.loads(lines[k]), rng)).encode(errors="surrogatepass")
    except (ValueError, RecursionError):
        return _bytes_changed(data, rng)
    return b"\n".join([*lines[:k], new, *lines[k + 1 :]])


def _odd_within(value: Any, rng: random.Random) -> Any:
    within = (
        list(value)
        if isinstance(value, dict)
        else range(len(value) if isinstance(value, list) else 0)
    )
    if not within or rng.random() < 0.15:
        return rng.choice(ODD)
    key = rng.choice(list(within))
    new = dict(value) if isinstance(value, dict) else list(value)
    if isinstance(new, dict) and rng.random() < 0.15:
        del new[key]
    else:
        new[key] = _odd_within(value[key], rng)
    return new


def defect(target: Target, data: bytes) -> str | None:
    """What a target did that it must not, as one line and a traceback; None where all is well."""

    def too_slow(*_: object) -> None:
        raise Slow

    # Of a processor: by the clock a loaded machine would be the defect.
    before = signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, SLOW_S)
    try:
        target.run(data)
    except Slow:
        return f"over {SLOW_S} s\n{traceback.format_exc()}"
    except MemoryError:
        return f"memory\n{traceback.format_exc()}"
    except target.may_raise as error:
        return None if str(error) else f"no sentence\n{traceback.format_exc()}"
    except Exception as error:  # noqa: BLE001 (this is what is looked for)
        return f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return None


def fuzz(
    name: str, target: Target, seconds: float, seed: int, keep: Path | None
) -> tuple[int, int]:
    """How many inputs were tried, and how many different defects they showed."""
    rng = random.Random(f"{name} {seed}")
    seen: set[str] = set()
    pool = list(target.seeds)
    n = 0
    end = time.process_time() + seconds
    while (n < _N_SMOKE) if seconds == 0 else (time.process_time() < end):
        data = changed(rng.choice(pool), rng)
        found = defect(target, data)
        n += 1
        if found is None:
            continue
        lines = [line for line in found.splitlines() if "/src/fabula/" in line]
        place = lines[-1] if lines else found.splitlines()[0]
        if place in seen:
            continue
        seen.add(place)
        print(f"{name}: {found}", flush=True)
        if keep is not None:
            (keep / name).mkdir(parents=True, exist_ok=True)
            (keep / name / f"{len(seen)}").write_bytes(data)
    return n, len(seen)


def with_atheris(name: str, seconds: float, seed: int) -> None:
    """Led by coverage of Fabula's own code; ends at the first defect, which it writes here."""
    import atheris

    with atheris.instrument_imports(include=["fabula"]):
        target = targets()[name]

    def test_one(data: bytes) -> None:
        if (found := defect(target, data)) is not None:
            raise RuntimeError(found)

    def mutate(data: bytes, max_size: int, number: int) -> bytes:
        rng = random.Random(number)
        chosen = data or target.seeds[0]
        return (changed(chosen, rng) if rng.random() < 0.5 else atheris.Mutate(chosen, max_size))[
            :max_size
        ]

    with tempfile.TemporaryDirectory(prefix="fabula-fuzz-") as corpus:
        for k, data in enumerate(target.seeds):
            Path(corpus, str(k)).write_bytes(data)
        words = [f"-max_total_time={seconds:.0f}", f"-seed={seed + 1}", "-max_len=65536",
                 "-rss_limit_mb=4096", corpus]  # fmt: skip
        atheris.Setup([sys.argv[0], *words], test_one, custom_mutator=mutate)
        atheris.Fuzz()


def each_with_atheris(names: Collection[str], seconds: float, seed: int, keep: Path | None) -> int:
    """Every target in a process of its own, which its end ends; how many showed a defect."""
    n_defects = 0
    for name in names:
        words = ["--atheris", "--only", name, "--seconds", str(seconds), "--seed", str(seed)]
        with tempfile.TemporaryDirectory(prefix="fabula-fuzz-") as folder:
            done = subprocess.run(
                [sys.executable, __file__, *words], cwd=folder, capture_output=True, check=False
            )
            said = done.stderr.decode(errors="replace")
            runs = re.findall(r"^#(\d+).*?cov: (\d+)", said, re.MULTILINE)
            n_runs, coverage = map(int, runs[-1]) if runs else (0, 0)
            found = [file for file in Path(folder).iterdir() if file.is_file()]
            if done.returncode != 0:
                n_defects += 1
                print(f"{name}: {(done.stdout.decode(errors='replace') + said)[-3000:]}")
                if keep is not None:
                    (keep / name).mkdir(parents=True, exist_ok=True)
                    for file in found:
                        shutil.copy(file, keep / name / file.name[:40])
        print(f"{name}: {n_runs:,} inputs, {coverage:,} branches reached, "
              f"{int(done.returncode != 0)} defects", flush=True)  # fmt: skip
    return n_defects


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20, help="of a processor, per target")
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--atheris", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    if options.atheris and options.only:
        with_atheris(options.only, options.seconds, options.seed)
        return
    chosen = {n: one for n, one in targets().items() if options.only in ("", n)}
    if options.atheris:
        keep = None if options.keep is None else options.keep.resolve()
        sys.exit(bool(each_with_atheris(chosen, options.seconds, options.seed, keep)))
    n_defects = 0
    for name, target in chosen.items():
        n, found = fuzz(
            name, target, 0 if options.smoke else options.seconds, options.seed, options.keep
        )
        n_defects += found
        print(f"{name}: {n:,} inputs, {found} defects", flush=True)
    sys.exit(1 if n_defects else 0)


if __name__ == "__main__":
    main()

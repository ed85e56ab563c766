"""What commands write, as digests, to be compared between Pythons, machines or processors.

    python bench/same_bytes.py DIGESTS.json [--threads 1] [--without-avx512]

Runs commands over the texts of examples/ and over stories drawn from them. Where DIGESTS.json is
missing it is written; where it is there, each file is compared with it, and those that differ are
named, with exit code 1. Records of results (*.provenance.json) name versions and times, and are
left out. Signatures of diversity name zlib's version, so they differ where that does.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path

import corpora

EXAMPLES = Path(__file__).parents[1] / "examples"
WITHOUT_AVX512 = {
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL",
    "OPENBLAS_CORETYPE": "Haswell",
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "",
}
"""What NumPy, OpenBLAS and Numba are told. ONNX Runtime and llama.cpp ask the processor itself."""
COMMANDS = """\
reference build library --out books.ref
originality stories.jsonl --reference books.ref --out verbatim.jsonl
originality stories.jsonl --reference books.ref --match near --out near.jsonl
originality the-count.txt --reference books.ref --json
compare verbatim.jsonl --by author --json
compare verbatim.jsonl --by author --cluster prompt --json
detect calibrate verbatim.jsonl --label author=ann --out detector.json
profile stories.jsonl --json
diversity stories.jsonl --by author --prompt prompt --pairs 5 --json
diversity stories.jsonl --by author --with templates --with embeddings --json
phrases ann.jsonl ben.jsonl --out phrases.jsonl
lines the-count.txt --json
book the-count.txt --json
continuation passages library --out passages.jsonl
continuation train library --out generators --min-count 2
continuation generate --from generators --contexts passages.jsonl --out systems.jsonl
continuation score systems.jsonl --contexts passages.jsonl --out scores.jsonl --csv scores.csv
feedback corrupt stories.jsonl --methods original,swap,delete,name --out corrupted.jsonl
report the-count.txt --reference books.ref --out report.html
report stories.jsonl --reference books.ref --json
report the-count.txt --reference books.ref --json
"""


def main() -> None:
    given = corpora.options(
        __doc__, {"digests": {"nargs": "?", "type": Path, "help": "written, or compared with"}},
        threads=1, without_avx512=False,
    )  # fmt: skip
    threads = str(given.threads)
    os.environ |= {"FABULA_THREADS": threads, "OMP_NUM_THREADS": threads}
    if given.without_avx512:
        os.environ |= WITHOUT_AVX512
    with corpora.scratch() as folder:
        _write_texts(folder)
        found = _digests(folder)
    here = f"Python {platform.python_version()}, {platform.machine()}, threads: {threads}"
    print(f"{here}: {len(found)} files")
    if given.digests is None:
        return
    if not given.digests.exists():
        given.digests.write_text(json.dumps({"where": here, "files": found}, indent=1))
        return
    kept = json.loads(given.digests.read_text())
    differ = sorted(k for k in found | kept["files"] if found.get(k) != kept["files"].get(k))
    print(f"compared with {kept['where']}: {len(differ)} of {len(found)} differ")
    print(*differ, sep="\n")
    sys.exit(bool(differ))


def _write_texts(folder: Path) -> None:
    (folder / "library").symlink_to(EXAMPLES / "library")
    (folder / "the-count.txt").symlink_to(EXAMPLES / "the-count.txt")
    files = [*sorted((EXAMPLES / "library").iterdir()), EXAMPLES / "the-count.txt"]
    words = " ".join(" ".join(f.read_text(encoding="utf-8").split()) for f in files)
    sentences = re.findall(r"[A-Z][^.!?#]{20,200}[.!?]", words)
    rng = random.Random(0)
    rows = [
        {
            "id": f"{author}{k}",
            "author": author,
            "prompt": f"p{k % 4}",
            "text": " ".join(rng.choices(sentences, k=20)),
        }
        for author in ("ann", "ben")
        for k in range(12)
    ]
    for name in ("stories", "ann", "ben"):
        kept = [row for row in rows if name in ("stories", row["author"])]
        lines = "".join(json.dumps(row) + "\n" for row in kept)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")


def _digests(folder: Path) -> dict[str, str]:
    """Of every file that a command wrote, and of what it printed."""
    found = {}
    for command in COMMANDS.splitlines()[: corpora.sized(99, 2)]:
        words = [corpora.FABULA, *shlex.split(command)]
        done = subprocess.run(words, cwd=folder, capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"{command}: {done.stderr.decode()}")
        found[f"printed by {command}"] = hashlib.sha256(done.stdout).hexdigest()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and not path.name.endswith(".provenance.json"):
            name = path.relative_to(folder).as_posix()
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


if __name__ == "__main__":
    main()

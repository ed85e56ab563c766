"""Millions of rows of scores through `compare`, many texts through `diversity` and `report --by`.

    python bench/rows.py [--rows 10000000] [--texts 100000] [--pages 2000] [--words 60]
                         [--folder DIR] [--only compare|draw|diversity|report] [--smoke]

Writes the files (0.4 GB for a million rows), runs the commands, and prints the most memory that
each took and the processor time. `compare` keeps the numbers of a row and no text. `diversity`
compares texts with each other, so it keeps their words. `report` shows every text on its page.
Of more texts than those two can hold, `stories draw` draws some, and keeps no others.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import corpora

_MEASURED = """
import resource, sys
from fabula.__main__ import main
sys.argv = ["fabula", *sys.argv[1:]]
try:
    main()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"MB {used.ru_maxrss / 1024:.0f} s {used.ru_utime + used.ru_stime:.0f}", file=sys.stderr)
"""


def write_scores(path: Path, n: int) -> None:
    """Rows like those of `fabula originality` at its default levels, with random numbers.

    Fields that `compare` reads and drops, such as what was borrowed, would only make the file
    larger.
    """
    levels = [str(level) for level in range(5, 13)]
    signature = "originality|match:verbatim|L:5-12|tok:word1|ref:books@b413888b837c|v:0.1.0"
    curve = ",".join(f'"{level}":%.4f' for level in levels)
    form = (
        f'{{"id":"t%d","author":"%s","creativity_index":%.4f,"uniqueness":{{{curve}}},"signature":'
    )
    end = f'"{signature}","missing_reason":null}}\n'
    steps = [0.01 * j for j in range(len(levels))]
    rng = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for k in range(n):
            base = rng.random()
            numbers = [min(1.0, base + step) for step in steps]
            file.write((form + end) % (k, "ab"[k % 2], sum(numbers), *numbers))


def write_texts(path: Path, n: int, n_words: int) -> None:
    words = [f"w{k}" for k in range(5000)]
    rng = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for k in range(n):
            text = " ".join(rng.choices(words, k=n_words))
            file.write(json.dumps({"id": f"t{k}", "text": text, "author": "ab"[k % 2]}) + "\n")


def measured(*words: str) -> tuple[int, int]:
    """MB at most, and seconds of a processor, of a command."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(_MEASURED)
        script.flush()
        done = subprocess.run(
            [corpora.PYTHON, script.name, *words], capture_output=True, text=True, check=False
        )
    found = re.search(r"MB (\d+) s (\d+)", done.stderr)
    if done.returncode or found is None:
        sys.exit(done.stderr[-2000:])
    return int(found[1]), int(found[2])


def compare(folder: Path, n: int, _: int) -> None:
    few, scores = folder / "few.jsonl", folder / "scores.jsonl"
    write_scores(few, 100)
    write_scores(scores, n)
    base, _ = measured("compare", str(few), "--by", "author", "--json")
    most, seconds = measured("compare", str(scores), "--by", "author", "--json")
    said(f"compare, {n:,} rows ({scores.stat().st_size / 1e9:.2f} GB)", base, most, n, seconds)
    scores.unlink()


def draw(folder: Path, n: int, n_words: int) -> None:
    how = ("--by", "author", "--each", "1000", "--out", f"{folder}/drawn.jsonl", "--json")
    base, most, seconds = of_texts(folder, n, n_words, "stories", "draw", *how)
    said(f"stories draw, {n:,} texts of {n_words} words", base, most, n, seconds)


def diversity(folder: Path, n: int, n_words: int) -> None:
    how = ("--by", "author", "--set", "tests.permutations=99", "--json", "-j", "1")
    base, most, seconds = of_texts(folder, n, n_words, "diversity", *how)
    said(f"diversity, {n:,} texts of {n_words} words", base, most, n, seconds)


def report(folder: Path, n: int, n_words: int) -> None:
    """Every instrument but surprisal, which takes a second a text."""
    how = ("--by", "author", "--out", f"{folder}/r.html", "-j", "1")
    base, most, seconds = of_texts(folder, n, n_words, "report", *how)
    said(f"report --by, {n:,} texts of {n_words} words", base, most, n, seconds)


def of_texts(folder: Path, n: int, n_words: int, *words: str) -> tuple[int, int, int]:
    few, texts = folder / "few-texts.jsonl", folder / "texts.jsonl"
    write_texts(few, 40, n_words)
    write_texts(texts, n, n_words)
    base, _ = measured(*words, str(few))
    return base, *measured(*words, str(texts))


def said(what: str, base: int, most: int, n: int, seconds: int) -> None:
    each = (most - base) * (1 << 20) / n
    print(f"{what}: {most} MB at most ({base} MB with few, so {each:,.0f} bytes each), "
          f"{seconds} s of a processor", flush=True)  # fmt: skip


def main() -> None:
    options = corpora.options(
        __doc__, rows=10_000_000, texts=100_000, pages=2000, words=(60, "of each text"),
        only={"choices": ["compare", "draw", "diversity", "report"]}, folder=Path,
    )  # fmt: skip
    sizes = {
        compare: options.rows,
        draw: options.rows,
        diversity: options.texts,
        report: options.pages,
    }
    if corpora.SMOKE:
        sizes = {compare: 2000, draw: 3000, diversity: 40}
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="fabula-rows-") as folder:
        for what, n in sizes.items():
            if options.only in (None, what.__name__):
                what(Path(folder), n, options.words)


if __name__ == "__main__":
    main()

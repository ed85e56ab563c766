"""What a Ray cluster costs and gives: one worker against none, two against one.

    python bench/cluster.py [--texts N] [--smoke]

Building the books of ../shared/data several times over, in shards, and scoring stories against
them: as `fabula` does it here with one process, and on a cluster of this machine with one and with
two processors. Whole processes, so the cluster's start is counted; the files are compared.
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import corpora
from fabula.text import read_documents

DATA = corpora.SHARED
WAYS = {
    "one process": ["--jobs", "1"],
    "ray, one worker": ["--engine", "ray", "--jobs", "1"],
    "ray, two workers": ["--engine", "ray", "--jobs", "2"],
}
if corpora.SMOKE:
    del WAYS["ray, two workers"]


def main() -> None:
    given = corpora.options(
        __doc__, times=(corpora.sized(12, 1), "how often the books are built"),
        texts=corpora.sized(1500, 4),
    )  # fmt: skip
    with corpora.scratch() as folder:
        books = write_books(folder / "books.jsonl", given.times)
        stories = write_stories(folder / "stories.jsonl", given.texts)
        report("building", lambda how, out: [
            "reference", "build", books, "--out", out, "--set", "running.shard-tokens=2500000",
            *how,
        ], folder, "ref")  # fmt: skip
        reference = str(folder / "ref-0")
        report("scoring", lambda how, out: [
            "originality", stories, "--reference", reference, "--out", out, *how,
        ], folder, "scores")  # fmt: skip


def report(what: str, command, folder: Path, name: str) -> None:  # type: ignore[no-untyped-def]
    seconds, results = [], []
    for k, how in enumerate(WAYS.values()):
        out = folder / f"{name}-{k}"
        begin = time.perf_counter()
        subprocess.run([corpora.FABULA, *command(how, str(out))], check=True, capture_output=True)
        seconds.append(time.perf_counter() - begin)
        results.append(content(out))
    assert all(result == results[0] for result in results), "the results differ"
    for way, took in zip(WAYS, seconds, strict=True):
        print(f"{what}, {way}: {took:.1f} s", flush=True)
    if corpora.SMOKE:
        return
    print(f"  one worker takes {seconds[1] / seconds[0] - 1:+.0%} over one process; two are "
          f"{seconds[1] / seconds[2]:.2f} times one; equal bytes", flush=True)  # fmt: skip


def content(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(f for f in path.rglob("*") if f.name != ".lock")
    return {str(f.relative_to(path)): f.read_bytes() for f in files if f.is_file()}


def write_books(path: Path, n_times: int) -> str:
    """The books, each time with other ends of words, so that no text stands there twice."""
    with path.open("w") as file:
        for k in range(n_times):
            for document in read_documents([str(DATA / "reference")]):
                text = (
                    document.text if k == 0 else document.text.replace("e ", f"e{'xyzuvw'[k % 6]} ")
                )
                file.write(json.dumps({"id": f"{k}:{document.id}", "text": text}) + "\n")
    return str(path)


def write_stories(path: Path, n_texts: int) -> str:
    rows = json.loads((DATA / "ttcw" / "ttcw_short_stories.json").read_text())
    texts = [row["content"] for row in rows if len(row["content"].split()) > 100]
    with path.open("w") as file:
        for k in range(n_texts):
            file.write(json.dumps({"id": str(k), "text": f"{texts[k % len(texts)]} {k}"}) + "\n")
    return str(path)


if __name__ == "__main__":
    main()

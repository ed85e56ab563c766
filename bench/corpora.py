"""What the scripts of this folder measure with: texts, and token ids of real and resampled text.

With `--smoke` a script runs once at its smallest size, in seconds and without the shared data: it
says that it runs and that results agree, and nothing about speed. The texts are then made of the
sentences of examples/, in the layout of the shared data.
"""

from __future__ import annotations

import argparse
import atexit
import collections
import contextlib
import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

V = TypeVar("V")
_FOLDER = "FABULA_BENCH_SMOKE"
FABULA = os.environ.get("BENCH_FABULA", str(Path(sys.executable).with_name("fabula")))
PYTHON = os.environ.get("BENCH_PYTHON", sys.executable)
"""What starts processes. Tests name programs that import nothing, for commands and for scripts."""


def _begin_smoke() -> None:
    """Take `--smoke` off the command line; processes that the script starts are told too."""
    sys.argv.remove("--smoke")
    folder = tempfile.mkdtemp(prefix="fabula-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _write_texts(Path(folder))
    os.environ[_FOLDER] = folder


def _write_texts(folder: Path) -> None:
    """Small files of the names and fields that scripts read."""
    rng = random.Random(0)
    examples = Path(__file__).parents[1] / "examples"
    files = sorted([*(examples / "library").iterdir(), examples / "the-count.txt"])
    told = " ".join(file.read_text(encoding="utf-8") for file in files)
    sentences = re.findall(r"[A-Z][^.!?#]{20,200}[.!?]", " ".join(told.split()))

    def text(n_sentences: int) -> str:
        drawn = rng.choices(sentences, k=n_sentences)
        return "\n\n".join(" ".join(drawn[k : k + 5]) for k in range(0, n_sentences, 5))

    def write(name: str, rows: list[dict[str, Any]]) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
        (folder / name).write_bytes(gzip.compress(lines) if name.endswith(".gz") else lines)

    def books(name: str, n: int) -> list[dict[str, Any]]:
        return [{"id": f"{name}{k}", "author": f"a{k % 4}", "text": text(30)} for k in range(n)]

    for name in ("reference/gutenberg_novels.jsonl.gz", "cbt/children_books.jsonl.gz"):
        write(name, books(name[:3], 12))
    write("cbt/cbt_test_3books.jsonl.gz", [
        {"id": f"book{k}", "sentences": rng.choices(sentences, k=60)} for k in range(3)
    ])  # fmt: skip
    for name in ("hanna_writingprompts", "fastdetect_writing"):
        write(f"human_vs_machine/{name}.jsonl", [
            {"id": f"{k}{label}", "pair_id": k, "label": label, "text": text(15)}
            for k in range(10)
            for label in ("human", "machine")
        ])  # fmt: skip
    write("readers/hanna_rated.jsonl", [
        {"id": f"r{k}", "label": "machine", "text": text(15)} for k in range(4)
    ])  # fmt: skip
    (folder / "ttcw").mkdir()
    stories = [
        {"story_id": f"{k}_GPT4", "story_name": f"Story {k}", "plot": "A plot.", "content": text(9)}
        for k in range(6)
    ]
    (folder / "ttcw" / "ttcw_short_stories.json").write_text(json.dumps(stories))
    verdicts = [
        {"story_id": story["story_id"], "expert_idx": expert, "ttcw_idx": test,
         "binary_verdict": rng.choice(["Yes", "No"]), "explanation": "It says why."}
        for story in stories
        for expert in range(3)
        for test in range(1, 15)
    ]  # fmt: skip
    (folder / "ttcw" / "ttcw_annotations.json").write_text(json.dumps(verdicts))


if "--smoke" in sys.argv:
    _begin_smoke()
SMOKE = _FOLDER in os.environ
SHARED = Path(os.environ[_FOLDER]) if SMOKE else Path(__file__).parents[2] / "shared" / "data"
HANNA, FAST_DETECT = (
    SHARED / "human_vs_machine" / f"{name}.jsonl"
    for name in ("hanna_writingprompts", "fastdetect_writing")
)
CHILDREN = SHARED / "cbt" / "children_books.jsonl.gz"
N_IDS = 65_000
"""Ids fit into 16 bits, for the peer: words are ranked by frequency, the rarest share one id."""


def options(
    doc: str | None, places: Mapping[str, Mapping[str, Any]] | None = None, **named: Any
) -> argparse.Namespace:
    """What the command line of a script says; `places` are arguments without a name.

    An option is its default, a switch if that is False; or a type, if it has no default; either
    with its help; or what argparse takes.
    """
    parser = argparse.ArgumentParser(description=doc)
    for name, kind in (places or {}).items():
        parser.add_argument(name, **kind)
    for name, said in named.items():
        default, words = said if isinstance(said, tuple) else (said, None)
        kind = {"type": type(default), "default": default, "help": words}
        if isinstance(default, dict):
            kind = default
        elif default is False:
            kind = {"action": "store_true", "help": words}
        elif isinstance(default, type):
            kind = {"type": default, "help": words}
        parser.add_argument(f"--{name.replace('_', '-')}", **kind)
    return parser.parse_args()


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is there for a while; BENCH_DIR names the disk that it is on."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        yield Path(name)


def timed(call: Callable[[], V]) -> tuple[V, float]:
    """What a call gives, and its seconds by the clock."""
    begin = time.perf_counter()
    value = call()
    return value, time.perf_counter() - begin


def step(script: str, *words: object, preexec_fn: Any = None) -> dict[str, float]:
    """What a step of a script prints as JSON, in a process of its own."""
    command = [PYTHON, script, *map(str, words)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, preexec_fn=preexec_fn)
    row: dict[str, float] = json.loads(done.stdout)
    return row


def words_of(*sources: Path) -> Iterator[tuple[str, list[str]]]:
    """The id and the words of each text."""
    # Not before it is needed: `fuzz.py` has to see Fabula's modules as they are imported.
    from fabula.text import TextSettings, read_documents

    settings = TextSettings()
    for document in read_documents(list(sources)):
        yield document.id, settings.words(document.text)


def real_corpus(n_ids: int = N_IDS) -> tuple[NDArray[np.uint32], dict[str, int]]:
    """All books and speeches at hand, about 6.6M words. 0 ends a document."""
    texts = [words for _, words in words_of(SHARED / "reference", CHILDREN)]
    counts = collections.Counter(word for words in texts for word in words)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    ids = {word: min(rank, n_ids - 1) for rank, word in enumerate(ranked, 1)}
    tokens = [t for words in texts for t in (*(ids[word] for word in words), 0)]
    return np.array(tokens, np.uint32), ids


def corpus_of(real: NDArray[np.uint32], n_tokens: int) -> NDArray[np.uint32]:
    """`n_tokens` of real text; past its end, runs of 4 to 20 words drawn from it at random."""
    if n_tokens <= len(real):
        cut = real[:n_tokens].copy()
        cut[-1] = 0
        return cut
    rng = np.random.default_rng(0)
    n_more = n_tokens - len(real)
    places = runs(rng, len(real), n_more, (4, 20), n_more // 12 + 100)
    tokens = np.concatenate([real, real[places]])
    tokens[-1] = 0
    return tokens


def runs(
    rng: np.random.Generator, n_real: int, n: int, words: tuple[int, int], n_drawn: int
) -> NDArray[np.int64]:
    """`n` places of a text of `n_real`, in runs of so many words; `n_drawn` runs are enough."""
    least, most = words
    lengths = rng.integers(least, most + 1, size=n_drawn)
    lengths = lengths[: np.searchsorted(np.cumsum(lengths), n) + 1]
    starts = rng.integers(n_real - most, size=len(lengths))
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return (np.repeat(starts, lengths) + within)[:n]


def queries(ids: dict[str, int], n_words: int) -> list[NDArray[np.uint32]]:
    """Texts of people and models that are in no corpus here, cut to `n_words`; 0 is unknown."""
    words = [word for _, words in words_of(HANNA) for word in words]
    query = np.array([ids.get(word, 0) for word in words[:150_000]], np.uint32)
    return [query[i : i + n_words] for i in range(0, len(query) - n_words + 1, n_words)]


def beside(value: float, target: float, *, at_least: bool = False) -> str:
    """What is wanted of a figure, and whether it holds."""
    holds = value >= target if at_least else value <= target
    said = f"{'at least' if at_least else 'at most'} {target:g}"
    return f"(target: {said}, {'held' if holds else 'NOT HELD'})"


def sized(full: int, smoke: int) -> int:
    """How much of something a script takes: `full`, or `smoke` with `--smoke`."""
    return smoke if SMOKE else full

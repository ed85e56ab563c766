"""What copies of a local model on a Ray cluster give: two against one, and against none.

    python bench/cluster_models.py [--stories N] [--smoke]

The embedded model judges stories by the 14 tests, with one thread a copy: in one process, and on
clusters of one and of two nodes that are processes of this machine. Whole processes, so that
loading the model is counted; the verdicts are compared. The tokens that had to be read anew say
how much work there was, whatever else the machine was doing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

from ray.cluster_utils import Cluster

import corpora
from fabula.text import read_documents

DATA = corpora.SHARED
STORY_WORDS = corpora.sized(600, 40)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", type=int, default=corpora.sized(8, 1))
    given = parser.parse_args()
    # Before the nodes begin, which pass it on to the copies.
    os.environ["FABULA_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stories = write_stories(folder / "stories.jsonl", given.stories)
        seconds, found = {}, []
        for n_nodes in (0, 1) if corpora.SMOKE else (0, 1, 2):
            way = f"{n_nodes} copies on a cluster" if n_nodes else "one process"
            seconds[n_nodes], verdicts = judged(stories, folder / f"run-{n_nodes}", n_nodes)
            found.append(verdicts)
            print(f"{way}: {seconds[n_nodes]:.1f} s, {tokens_read(folder / f'run-{n_nodes}'):,} "
                  f"tokens read", flush=True)  # fmt: skip
        assert all(verdicts == found[0] for verdicts in found), "the verdicts differ"
        if corpora.SMOKE:
            return
        print(f"one copy takes {seconds[1] / seconds[0] - 1:+.0%} over one process; two are "
              f"{seconds[1] / seconds[2]:.2f} times one; equal bytes")  # fmt: skip


def judged(stories: str, out: Path, n_nodes: int) -> tuple[float, bytes]:
    command = [corpora.FABULA, "judge", stories, "--style", "verdict-first", "--out", str(out)]
    cluster = None
    if n_nodes:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cluster = Cluster(
                initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
            )
            for _ in range(n_nodes):
                cluster.add_node(num_cpus=1)
        command += ["--engine", "ray", "--address", cluster.address]
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    took = time.perf_counter() - begin
    if cluster is not None:
        cluster.shutdown()
    return took, (out / "measurements.jsonl").read_bytes()


def tokens_read(out: Path) -> int:
    """Tokens of all prompts that were not in a copy's memory already."""
    used = [json.loads(line)["usage"] for line in (out / "answers.jsonl").read_text().splitlines()]
    return sum(one["n_input"] - one["n_cached"] for one in used)


def write_stories(path: Path, n_stories: int) -> str:
    """Stretches of the books, as long as a short story each."""
    words = " ".join(
        document.text for document in read_documents([str(DATA / "reference")])
    ).split()
    step = len(words) // n_stories
    with path.open("w") as file:
        for k in range(n_stories):
            text = " ".join(words[k * step : k * step + STORY_WORDS])
            file.write(json.dumps({"id": f"s{k}", "text": text}) + "\n")
    return str(path)


if __name__ == "__main__":
    main()

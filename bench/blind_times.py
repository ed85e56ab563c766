"""Does the time that a study's server takes tell what was done to a story?

    python bench/blind_times.py [--rounds 100] [--smoke]

Participants of three studies do the same, request by request: two studies of a story as it was,
one of a story that was changed. In each round the three take turns in an order that is drawn.
Prints the processor time of each kind of request, the difference between changed and unchanged with
a 95 % interval over rounds, and the same between the two unchanged ones, which is noise.
"""

from __future__ import annotations

import json
import random
import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
from starlette.testclient import TestClient

import corpora
from fabula.studies.app import create_app
from fabula.studies.database import Store
from fabula.studies.design import load_study, new_study
from fabula.studies.participants import invite
from fabula.studies.study_engine import open_store
from fabula.studies.units import read_units

STORY = "The old man swept the steps. He sat down and waited. Then he swept them again. " * 20
ANSWERS = {
    "sanity": "Only feedback", "feedback_type": "Suggestions", "correctness": "Some of it",
    "error_detection": "Yes", "specificity": "No",
}  # fmt: skip
CONDITIONS = {"unchanged": "original", "unchanged again": "original", "changed": "swap"}


class Condition:
    """A study of one piece of feedback, for as many people as come."""

    def __init__(self, folder: Path, method: str) -> None:
        folder.mkdir()
        row = {
            "id": "1", "story_id": "1", "method": method, "prompt": "p", "shots": 0, "model": "m",
            "feedback": "Say who he is.", "missing_reason": None, "story": STORY, "signature": "s",
            "original": f"{STORY} It was so.", "change": {"edits": [], "note": ""},
        }  # fmt: skip
        (folder / "feedback.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
        new_study(folder / "study.toml", "feedback", folder / "feedback.jsonl")
        design = replace(load_study(folder / "study.toml"), raters=1_000_000)
        units = read_units(design)
        self.store: Store = open_store(design, units)
        self.app = create_app(design, units, self.store)
        self.quiz = {f"quiz-{k}": one.answer for k, one in enumerate(design.quiz, 1)}

    def person(self) -> dict[str, float]:
        """What the requests of one participant took, in milliseconds of processor time."""
        with self.store.writing() as connection:
            (invitation,) = invite(connection, [""], "bench")
        client = TestClient(self.app, client=("127.0.0.1", random.randrange(1 << 30)))
        page = client.get(f"/i/{invitation.token}")
        page = client.post("/consent", data=hidden(page))
        client.post("/quiz", data=hidden(page) | self.quiz)
        spent: dict[str, float] = {}

        def timed(name: str, ask: Callable[[], httpx.Response]) -> httpx.Response:
            begun = time.process_time()
            reply = ask()
            spent[name] = spent.get(name, 0.0) + 1000 * (time.process_time() - begun)
            return reply

        page = timed("first page", lambda: client.get("/"))
        own = hidden(page) | {"go": "next", "unit:own_feedback": "Say who."}
        timed("own feedback", lambda: client.post("/page/story", data=own))
        for item, answer in ANSWERS.items():
            page = timed("page", lambda: client.get("/page/feedback"))
            form = hidden(page) | {f"unit:{item}": answer, "page": "feedback"}
            reply = timed("save", lambda: client.post("/save", data=form))  # noqa: B023
            assert reply.status_code == 200, reply.text
        return spent


def hidden(page: httpx.Response) -> dict[str, str]:
    """The fields of a page's form that nobody fills in."""
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.text))


def interval(values: list[float]) -> tuple[float, float, float]:
    """The mean, and the ends of its 95 % interval."""
    mean, error = statistics.fmean(values), statistics.stdev(values) / len(values) ** 0.5
    return mean, mean - 1.96 * error, mean + 1.96 * error


def main() -> None:
    given = corpora.options(__doc__, rounds=corpora.sized(100, 3), seed=0)
    rng = random.Random(given.seed)
    spent: dict[str, list[dict[str, float]]] = {name: [] for name in CONDITIONS}
    with corpora.scratch() as folder:
        studies = {
            name: Condition(folder / str(k), method)
            for k, (name, method) in enumerate(CONDITIONS.items())
        }
        for one in studies.values():
            one.person()
        for _ in range(given.rounds):
            for name in rng.sample(list(CONDITIONS), len(CONDITIONS)):
                spent[name].append(studies[name].person())
        for one in studies.values():
            one.store.close()
    print(f"{given.rounds} people in each condition; milliseconds of processor time a person")
    print("| request | unchanged | changed less unchanged (95 %) | noise (95 %) |")
    print("| --- | --: | --: | --: |")
    for request in spent["unchanged"][0]:
        first, second, changed = ([one[request] for one in spent[name]] for name in CONDITIONS)
        both = [(a + b) / 2 for a, b in zip(first, second, strict=True)]
        told = interval([c - u for c, u in zip(changed, both, strict=True)])
        noise = interval([b - a for a, b in zip(first, second, strict=True)])
        shown = ["{:+.3f} ({:+.3f} to {:+.3f})".format(*one) for one in (told, noise)]
        print(f"| {request} | {statistics.fmean(both):.2f} | {shown[0]} | {shown[1]} |")


if __name__ == "__main__":
    sys.exit(main())

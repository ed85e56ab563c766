"""A package that is installed adds things of each kind, and the command line has them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import fabula
from tests.forking import INSTALLED

_PACKAGE = '''
import hashlib
from dataclasses import dataclass

from fabula.jobs.job import Texts
from fabula.jobs.result import Result
from fabula.reference.backend import Attribution
from fabula.reference.backend import Age
from fabula.reference.backend import dj_search
from fabula.core.scales import NumberScale
from fabula.text import TextSettings
from fabula.core.types import Document


def read_script(stream, name, fields):
    lines = stream.read().decode().splitlines()
    yield Document(name, "\\n".join(line.partition(":")[2].strip() for line in lines))


@dataclass(frozen=True, slots=True)
class Slider(NumberScale):
    kind: str = "slider"
    step: float = 1


class Proverbs:
    name = "proverbs"
    settings = TextSettings()
    age = Age()

    def __init__(self, path):
        self.sayings = open(path).read().lower().splitlines()
        self.fingerprint = hashlib.sha256(repr(self.sayings).encode()).hexdigest()[:12]
        self.size = f"{len(self.sayings)} proverbs"

    def locate(self, text):
        return self.settings.locate(text)

    def close(self):
        pass

    def _holders(self, words):
        return [saying for saying in self.sayings if " ".join(words) in saying]

    def match_texts(self, texts, *, exclude=(), n_threads=1):
        return [
            dj_search(len(text), 1, lambda i, j, text=text: self._holders(
                text.words.words[i:j])) for text in texts
        ]

    def cite(self, text, spans, n_sources, *, exclude=()):
        counts = [len(self._holders(text.words.words[k : k + n])) for k, n in spans]
        return [Attribution(n, n, is_bounded=False, sources=()) for n in counts]


class Echo:
    name, signature = "echo", "echo|v:1"

    def __init__(self, choice):
        pass

    def continue_(self, passage, rng):
        return passage.context[int(rng.integers(len(passage.context)))]


@dataclass(frozen=True)
class Marks(Result):
    counted: list

    def rows(self):
        return self.counted


def count_marks(texts: Texts) -> Marks:
    """Count question marks."""
    return Marks([{"id": text.id, "n": text.text.count("?")} for text in texts])
'''
_POINTS = """
[fabula.readers]
script = quay:read_script
[fabula.scales]
slider = quay:Slider
[fabula.references]
proverbs = quay:Proverbs
[fabula.generators]
echo = quay:Echo
[fabula.jobs]
count marks = quay:count_marks
"""
_RUBRIC = """
id = "pace"
version = "1"
title = "Pace"
[[items]]
id = "pace"
index = 1
title = "Pace"
question = "How fast is it?"
scale = { kind = "slider", low = 0, high = 10, step = 2.5 }
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    facts = tmp_path / "site" / "quay-2.1.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: quay\nVersion: 2.1\n")
    (facts / "entry_points.txt").write_text(_POINTS)
    (tmp_path / "site" / "quay.py").write_text(_PACKAGE)
    (tmp_path / "pace.toml").write_text(_RUBRIC)
    (tmp_path / "play.script").write_text("ANSEL: Who minds the lamp?\nSISTER: Nobody.\n")
    (tmp_path / "sayings.txt").write_text("A stitch in time saves nine\n")
    (tmp_path / "story.txt").write_text(
        "In time, a stitch in time saves nine; in time a stitch saves time."
    )
    row = {"id": "b/1", "context": ["The lamp was lit.", "Nobody rowed over."], "gold": "He came."}
    (tmp_path / "passages.jsonl").write_text(json.dumps(row) + "\n")
    return tmp_path


def run(folder: Path, *arguments: str) -> str:
    sources = Path(fabula.__file__).parents[1].resolve()
    path = os.pathsep.join([str(folder / "site"), str(sources)])
    done = subprocess.run(
        [INSTALLED, *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_job_reads_a_format_of_its_own(installed: Path):
    assert json.loads(run(installed, "count", "marks", "play.script", "--json")) == [
        {"id": "play.script", "n": 1}
    ]


def test_a_rubric_has_its_kind_of_question(installed: Path):
    [item] = json.loads(run(installed, "rubric", "show", "pace.toml", "--json"))["items"]
    assert item["scale"]["step"] == 2.5


def test_its_reference_is_searched_and_the_record_names_the_package(installed: Path):
    command = [
        "originality",
        "story.txt",
        "--reference",
        "proverbs:sayings.txt",
        "--out",
        "o.jsonl",
    ]
    run(installed, *command)
    row = json.loads((installed / "o.jsonl").read_text())
    assert row["covered"][0]["n_words"] == 6
    assert "ref:proverbs" in row["signature"]
    record = json.loads((installed / "o.jsonl.provenance.json").read_text())
    assert record["versions"]["quay"] == "2.1"


def test_its_generator_continues_stories(installed: Path):
    command = ["continuation", "generate", "--kind", "echo", "--contexts", "passages.jsonl"]
    run(installed, *command, "--out", "c.jsonl")
    row = json.loads((installed / "c.jsonl").read_text())
    assert (row["system"], row["text"]) in {
        ("echo", "The lamp was lit."), ("echo", "Nobody rowed over."),
    }  # fmt: skip

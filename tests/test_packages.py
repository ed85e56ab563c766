"""What the core does without the packages that extras bring, and what other packages add to it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fabula
from fabula.core.errors import InputError
from fabula.core.packages import pyarrow, scipy
from fabula.core.provenance import read_record
from tests.commands import rows_of, write_rows
from tests.docs.test_python_pages import ROOT, doctest_of

ABSENT = """
import sys

# To Python, a package that is None in here is not installed.
sys.modules.update(dict.fromkeys(("scipy", "pyarrow", "spacy", "onnxruntime", "xllamacpp")))
"""
"""Run by every interpreter at its start, also by those that files are read in."""

SCRIPT = """
import json, sys

from click.testing import CliRunner
import fabula as fb
from fabula.cli.main import cli

said = {}


def attempt(name, do):
    try:
        said[name] = do()
    except fb.FabulaError as error:
        said[name] = f"{type(error).__name__}: {error}"


def command(*words):
    ran = CliRunner().invoke(cli, words)
    if ran.exit_code and ran.exception is not None:
        raise ran.exception
    return ran.stdout


examples, folder = sys.argv[1:]
draft, books, reference = f"{examples}/the-count.txt", f"{examples}/library", f"{folder}/books.ref"
rows, scores = f"{folder}/rows.jsonl", f"{folder}/scores.jsonl"
attempt("build", lambda: command("reference", "build", books, "--out", reference))
attempt("originality", lambda: command("originality", draft, "-r", reference))
attempt("report", lambda: command("report", draft, "-r", reference, "-o", f"{folder}/r.html"))
attempt("scores", lambda: command("originality", rows, "-r", reference, "--out", scores))
attempt("parquet", lambda: command("originality", f"{folder}/rows.parquet", "-r", reference))
attempt("compare", lambda: command("compare", scores, "--by", "label"))
attempt("diversity", lambda: command("diversity", rows, "--by", "label"))
attempt("phrases", lambda: command("phrases", rows, "--by", "label"))

import pandas, polars

texts = [{"id": "a", "text": "A clock is a promise made by a spring, to nobody."}]
opened = fb.Reference.open(reference)
frames = {"list": texts, "pandas": pandas.DataFrame(texts), "polars": polars.DataFrame(texts)}
for name, given in frames.items():
    found = fb.originality(given, opened)
    wide = found.frame()
    library = type(wide).__module__.partition(".")[0]
    said[name] = [library, len(wide), float(wide["uniqueness_5"][0])]
measured = [
    fb.Measurement("a", "r", "i", "m", 0.5, None, (fb.Span("a", 3, 9),), None, "s"),
    fb.Measurement("b", "r", "i", "m", None, "refused", (), None, "s"),
]
said["to_pandas"] = fb.to_pandas(measured)["value"].isna().tolist()
said["to_polars"] = fb.to_polars(measured)["value"].is_null().to_list()
attempt("to_arrow", lambda: fb.to_arrow(measured))
sys.modules.update(dict.fromkeys(("pandas", "polars")))
said["rows"] = fb.originality(texts, opened).frame()
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each attempt said in a process without the packages that extras bring."""
    folder = tmp_path_factory.mktemp("core")
    rows = [
        {"id": path.stem, "text": path.read_text(), "label": f"l{number % 2}"}
        for number, path in enumerate(sorted((examples / "library").glob("*.md")))
    ]
    write_rows(folder / "rows.jsonl", rows)
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(ABSENT)
    path = os.pathsep.join(filter(None, (str(folder / "site"), os.environ.get("PYTHONPATH"))))
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(examples), str(folder)],
        capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def test_a_text_is_measured_without_them(said: dict[str, Any]):
    assert "6 documents, 1,685 words" in said["build"]
    # The number that the README shows.
    assert "7.316" in said["originality"]
    assert "7.316" in said["report"]
    assert "l0" not in said["scores"].splitlines()[0]


@pytest.mark.parametrize(
    ("names", "lacks"),
    [
        ("compare diversity phrases", " need SciPy; run: pip install 'fabula[stats]'"),
        ("parquet to_arrow", " needs PyArrow; run: pip install 'fabula[tables]'"),
    ],
)
def test_what_needs_a_package_names_the_extra(said: dict[str, Any], names: str, lacks: str):
    for name in names.split():
        assert said[name].startswith("InputError: ")
        assert said[name].endswith(lacks)
    assert "rows.parquet: reading .parquet" in said["parquet"]


def test_frames_go_in_and_come_out_without_pyarrow(said: dict[str, Any]):
    for name, library in ("list", "pandas"), ("pandas", "pandas"), ("polars", "polars"):
        kind, n_rows, uniqueness = said[name]
        assert (kind, n_rows) == (library, 1)
        assert 0 < uniqueness < 1
    assert said["to_pandas"] == said["to_polars"] == [False, True]


def test_rows_come_out_where_no_library_for_frames_is_installed(said: dict[str, Any]):
    (row,) = said["rows"]
    assert row["id"] == "a"
    assert row["uniqueness_5"] == said["list"][2]


def test_a_package_that_is_broken_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "scipy").mkdir()
    (tmp_path / "scipy" / "__init__.py").write_text("import a_library_that_is_gone")
    monkeypatch.delitem(sys.modules, "scipy", raising=False)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    for name in [name for name in sys.modules if name.startswith("scipy.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match="a_library_that_is_gone"):
        scipy("stats")


def test_what_is_installed_is_given(monkeypatch: pytest.MonkeyPatch):
    assert scipy("special").expit(0.0) == 0.5
    assert pyarrow("parquet", what="this").read_table is pq.read_table
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(InputError, match="intervals need SciPy"):
        scipy("special", "intervals")


_MANUAL = doctest_of(ROOT / "docs" / "extend.md").examples
_PACKAGE = (
    "".join(
        one.source.removeprefix("@register\n")
        for one in _MANUAL
        if re.match("import |from |class |def |@", one.source)
    )
    + '''
from fabula.jobs.job import Texts
from fabula.jobs.result import Result


class Sayings(Proverbs):
    def __init__(self, path):
        super().__init__(open(path).read().splitlines())


class Chosen(Echo):
    def __init__(self, choice):
        pass


@dataclass(frozen=True)
class Marks(Result):
    counted: list

    def rows(self):
        return self.counted


def count_marks(texts: Texts) -> Marks:
    """Count question marks."""
    return Marks([{"id": text.id, "n": text.text.count("?")} for text in texts])
'''
)
"""What the manual shows, as an installed package."""
_POINTS = """
[fabula.readers]
script = quay:read_script
[fabula.scales]
slider = quay:Slider
[fabula.references]
proverbs = quay:Sayings
[fabula.generators]
echo = quay:Chosen
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


PASSAGE = {"id": "b/1", "context": ["The lamp was lit.", "Nobody rowed over."], "gold": "He came."}


COMMANDS = (
    "count marks play.script --json",
    "rubric show pace.toml --json",
    "originality story.txt --reference proverbs:sayings.txt --out o.jsonl",
    "continuation generate --kind echo --contexts passages.jsonl --out c.jsonl",
)
_RUN = """
import json, sys
from tests.commands import invoke
print(json.dumps([invoke(*command.split()).stdout for command in sys.argv[1:]]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The folder in which one process ran `COMMANDS` beside the package, and what each printed."""
    folder = tmp_path_factory.mktemp("installed")
    facts = folder / "site" / "quay-2.1.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: quay\nVersion: 2.1\n")
    (facts / "entry_points.txt").write_text(_POINTS)
    (folder / "site" / "quay.py").write_text(_PACKAGE)
    (folder / "pace.toml").write_text(_RUBRIC)
    (folder / "play.script").write_text("ANSEL: Who minds the lamp?\nSISTER: Nobody.\n")
    (folder / "sayings.txt").write_text("A stitch in time saves nine\n")
    story = "In time, a stitch in time saves nine; in time a stitch saves time."
    (folder / "story.txt").write_text(story)
    write_rows(folder / "passages.jsonl", [PASSAGE])
    places = [folder / "site", Path(fabula.__file__).parents[1].resolve(), ROOT]
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *COMMANDS], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_its_job_reads_its_format_and_its_rubric_has_its_scale(installed: tuple[Path, list[str]]):
    _, (counted, shown, *_) = installed
    assert json.loads(counted) == [{"id": "play.script", "n": 1}]
    (item,) = json.loads(shown)["items"]
    assert item["scale"]["step"] == 2.5


def test_its_reference_is_searched_and_the_record_names_it(installed: tuple[Path, list[str]]):
    folder, _ = installed
    (row,) = rows_of(folder / "o.jsonl")
    assert row["covered"][0]["n_words"] == 6
    assert "ref:proverbs" in row["signature"]
    assert read_record(folder / "o.jsonl")["versions"]["quay"] == "2.1"


def test_its_generator_continues_stories(installed: tuple[Path, list[str]]):
    folder, _ = installed
    (row,) = rows_of(folder / "c.jsonl")
    assert row["system"] == "echo"
    assert row["text"] in PASSAGE["context"]

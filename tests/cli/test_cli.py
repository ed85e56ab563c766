"""The commands as a user runs them: what they print, where they stop, with which exit code."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.commands import invoke, refused, write_rows
from tests.running_commands import REFUSED, run

from fabula.core.errors import CorpusError
from fabula.core.store import read_rows
from fabula.jobs.registry import jobs

HEAVY = {
    "numba", "scipy", "matplotlib", "pyarrow", "docx", "lxml", "fsspec", "joblib", "rich", "jinja2",
    "numpy", "regex",
}  # fmt: skip
COMMAND = [sys.executable, "-c", "from fabula.cli.main import main; main()"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, examples: Path) -> Path:
    path = tmp_path_factory.mktemp("cli") / "library.ref"
    invoke("reference", "build", examples / "library", "--out", path)
    return path


@pytest.fixture
def story(examples: Path) -> Path:
    return examples / "the-count.txt"


def imported(forbidden: set[str], *words: str, **environment: str) -> str:
    """What the command says, which ends well and imports nothing of what is forbidden."""
    code = (
        f"import sys\nsys.argv = ['fabula', *{words!r}]\nfrom fabula.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as e:\n    assert not e.code\n"
        f"assert not {forbidden!r} & set(sys.modules), {forbidden!r} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("words", ["", "originality", "reference build"])
def test_help_needs_no_heavy_import(words: str):
    assert "Usage: " in imported(HEAVY, *words.split(), "--help")


def test_help_and_completion_import_no_command():
    slow = {"fabula.review.job", "asyncio", "importlib.metadata", "sqlite3", "ssl"}
    assert jobs()["report"].short in imported(slow, "--help")
    completing = {"_FABULA_COMPLETE": "bash_complete", "COMP_WORDS": "fabula re", "COMP_CWORD": "1"}
    assert "plain,report" in imported(slow, **completing)


def test_json_is_whole_and_jsonl_by_rows(corpus: Path, examples: Path, story: Path, tmp_path: Path):
    out = tmp_path / "s.jsonl"
    score = ["originality", story, examples / "library", "--reference", corpus, "--out", out]
    printed = invoke(*score, "--jsonl").stdout
    assert list(map(json.loads, printed.splitlines())) == list(read_rows(out))
    first = out.read_bytes()
    for n in ("1", "3"):
        out.unlink()
        document = json.loads(invoke(*score, "--json", "--jobs", n).stdout)
        assert document == [json.loads(line) for line in printed.splitlines()]
        assert out.read_bytes() == first
    assert len(document) == 7


def test_info_add_remove_and_verify(examples: Path, tmp_path: Path):
    corpus, library = tmp_path / "r", sorted((examples / "library").iterdir())

    def info(*more: object) -> str:
        return invoke("reference", "info", corpus, *more).stdout

    invoke("reference", "build", library[0], "--out", corpus)
    before = json.loads(info("--json"))
    invoke("reference", "build", "--add", "--out", corpus, *library[1:])
    assert "2 shards intact" in info("--check")
    ids = info("--ids").splitlines()
    assert ids == [str(file) for file in library]
    (tmp_path / "ids.txt").write_text("\n".join(ids[1:]))
    invoke("reference", "remove", corpus, "--ids-file", tmp_path / "ids.txt")
    after = json.loads(info("--json"))
    assert (after["n_documents"], after["n_words"]) == (1, before["n_words"])
    assert after["fingerprint"] == before["fingerprint"]
    assert "no such id" in refused("reference", "remove", corpus, "no such id")


def test_the_papers_setting_is_told_apart(examples: Path, story: Path, tmp_path: Path):
    path = tmp_path / "r"
    invoke("reference", "build", examples / "library", "--out", path, "--preset", "paper")
    (row,) = json.loads(invoke("originality", story, "--reference", path, "--json").stdout)
    assert "|case:keep|punct:keep|" in row["signature"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("empty.txt", b"", "is empty"), ("binary.txt", bytes(100), "NUL bytes"),
        ("field.jsonl", b'{"body": "a"}\n', "--text"), ("nothing.txt", None, "no such file"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_sentence(
    name: str, content: bytes | None, sentence: str, corpus: Path, tmp_path: Path
):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    said = run("originality", tmp_path / name, "--reference", corpus, code=REFUSED).stderr
    assert name in said
    assert sentence in said
    assert len(said.strip().splitlines()) == 1


def test_bad_options_are_refused(corpus: Path, story: Path, tmp_path: Path):
    score, build = ("originality", story, "--reference"), ("reference", "build", story, "--out")
    assert "no manifest" in refused(*score, tmp_path, error=CorpusError)
    for words in (
        (*score, corpus, "--levels", "9-5"), (*score, corpus, "--exclude", "no.txt"), score[:2],
        (*build, tmp_path / "r", "--set", "running.memory=lots"), (*build, story),
    ):  # fmt: skip
        refused(*words)


def test_files_that_are_something_else_are_never_replaced(corpus: Path, tmp_path: Path):
    draft = tmp_path / "draft.txt"
    draft.write_text("Check the doors and then check them again.")
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"id": "a", "text": "Check the doors."}\n')
    score = ["originality", texts, "--reference", corpus]
    for options in (
        ["--html", draft], ["--html", tmp_path], ["--out", draft], ["--out", texts],
        ["--out", texts, "--set=running.restart=true"],
        ["--out", tmp_path / "x", "--html", tmp_path / "x"],
    ):  # fmt: skip
        refused(*score, *options)
    scores = tmp_path / "s.jsonl"
    for _ in range(2):  # The text is too short for a score, which is the documented code.
        invoke(*score, "--out", scores, "--html", tmp_path / "p.html", code=1)
    refused("compare", scores, "--by", "file", "--plot", scores)
    refused("compare", scores, scores, "--by", "id")
    assert draft.read_text() == "Check the doors and then check them again."
    assert texts.read_text() == '{"id": "a", "text": "Check the doors."}\n'
    assert json.loads(scores.read_text())["id"] == "a"


def test_the_reader_of_a_table_is_told_what_the_numbers_hide(corpus: Path, tmp_path: Path):
    (tmp_path / "de.txt").write_text("Die Stille war so tief, dass in der Nacht niemand schlief.")
    done = invoke("originality", tmp_path / "de.txt", "--reference", corpus, "--levels", "3-4")
    assert "reference at all, and count as new" in done.stdout


def test_a_broken_line_in_a_gzip_keeps_what_was_scored(corpus: Path, tmp_path: Path):
    good = [json.dumps({"id": str(k), "text": "Check the doors and " * 5}) for k in range(4)]
    texts, out = tmp_path / "t.jsonl.gz", tmp_path / "s.jsonl"
    texts.write_bytes(gzip.compress("\n".join([*good[:2], "{broken", *good[2:]]).encode()))
    command = ["originality", texts, "--reference", corpus, "--out", out]
    assert "line 3" in refused(*command)
    kept = out.read_bytes()
    assert len(kept.splitlines()) == 2
    texts.write_bytes(gzip.compress("\n".join(good).encode()))
    invoke(*command)
    assert out.read_bytes().startswith(kept)
    assert len(out.read_bytes().splitlines()) == 4


def test_a_full_disk_is_said_and_the_build_goes_on_when_there_is_room(tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs the right to")
    try:
        rows = ({"text": " ".join(f"w{k * n % 997}" for n in range(300))} for k in range(150))
        texts = write_rows(tmp_path / "t.jsonl", rows)
        build = ["reference", "build", texts, "--out", disk / "r", "--jobs", "1"]
        build += ["--set", "running.shard-tokens=4000"]
        assert "disk is full" in run(*build, code=REFUSED).stderr
        n_kept = len([d for d in (disk / "r" / "shards").iterdir() if d.name.isdecimal()])
        assert n_kept > 0
        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        assert "150 documents" in run(*build).stdout
        run("reference", "info", "--check", disk / "r")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_ctrl_c_is_exit_code_130_and_keeps_what_was_finished(tmp_path: Path):
    build = ["reference", "build", "-", "--set", "reading.format=jsonl", "--out", tmp_path / "r"]
    build += ["--set", "running.shard-tokens=50", "--jobs", "1"]
    pipe = subprocess.PIPE
    command = [*COMMAND, *map(str, build)]
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdin is not None
    while not (tmp_path / "r" / "shards" / "00001").exists():
        # A pipe that stays open: the build waits for more when it is interrupted.
        process.stdin.write(json.dumps({"text": "one two three " * 40}) + "\n")
        process.stdin.flush()
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "finished work is kept" in errors
    assert "Traceback" not in errors
    assert (tmp_path / "r" / "shards" / "00000" / "shard.json").exists()


def test_a_reader_that_goes_away_is_no_error_worth_a_traceback(corpus: Path, story: Path):
    command = " ".join([*(f"'{c}'" for c in COMMAND), "originality", str(story), "--json",
                        "--reference", str(corpus), "--cite", "100"])  # fmt: skip
    piped = ["bash", "-c", f"{command} | true"]
    done = subprocess.run(piped, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


TEXT = "The count came back at dusk. Nobody had lit the lamps, and the dog did not bark.\n"


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    """Three that can be read, and between them two that cannot."""
    whole = gzip.compress((json.dumps({"id": "row", "text": TEXT}) + "\n").encode())
    files = {
        "a.txt": TEXT.encode(), "b.docx": b"PK not a document", "c.txt": TEXT.encode(),
        "d.jsonl.gz": whole[: len(whole) // 2], "e.txt": TEXT.encode(),
    }  # fmt: skip
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    return [tmp_path / name for name in files]


def test_the_texts_after_one_that_cannot_be_read_are_profiled(texts: list[Path]):
    result = run("profile", "--json", "--set", "tools.grammar=none", *texts, code=1)
    told = [line for line in result.stderr.splitlines() if line.startswith("left out: ")]
    assert [Path(line.split(": ")[1]).name for line in told] == ["b.docx", "d.jsonl.gz"]
    assert "2 of 5 files could not be read and were left out" in result.stderr
    names = [Path(row["id"]).name for row in json.loads(result.stdout)]
    assert names == ["a.txt", "c.txt", "e.txt"]


def test_a_corpus_is_never_built_of_some_of_its_texts(texts: list[Path], tmp_path: Path):
    result = run("reference", "build", *texts, "--out", tmp_path / "corpus.ref", code=3)
    assert "b.docx" in result.stderr
    assert not (tmp_path / "corpus.ref" / "manifest.json").exists()


def test_where_nothing_can_be_partial_it_is_an_error(texts: list[Path]):
    alone = run("profile", texts[1], code=3).stderr
    assert alone.startswith("error: ")
    assert "error: " in run("profile", texts[1], texts[3], code=3).stderr
    unknown = run("profile", "--set", "reading.format=xls", *texts, code=3).stderr
    assert "format xls: unknown" in unknown
    assert "left out" not in alone + unknown

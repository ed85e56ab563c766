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
from tests.exit_codes import REFUSED, check_exit
from tests.forking import fabula_command

from fabula.core.store import read_rows
from fabula.jobs.registry import jobs

HEAVY = {
    "numba", "scipy", "matplotlib", "pyarrow", "docx", "lxml", "fsspec", "joblib", "rich", "jinja2",
    "numpy", "regex",
}  # fmt: skip
COMMAND = [sys.executable, "-c", "from fabula.cli.main import main; main()"]


def fabula(
    *arguments: str | Path, code: int = 0, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [fabula_command(), *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd, check=False,
    )  # fmt: skip
    check_exit(done, code)
    assert "Traceback" not in done.stderr
    if code == REFUSED:
        assert done.stderr.strip(), "an error says what is wrong"
        assert done.stdout == ""
    return done


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, examples: Path) -> Path:
    path = tmp_path_factory.mktemp("cli") / "library.ref"
    fabula("reference", "build", examples / "library", "--out", path)
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


@pytest.mark.parametrize("words", ["", "reference", "originality", "compare", "reference build"])
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
    printed = fabula(*score, "--jsonl").stdout
    assert list(map(json.loads, printed.splitlines())) == list(read_rows(out))
    first = out.read_bytes()
    for n in ("1", "3"):
        out.unlink()
        document = fabula(*score, "--json", "--jobs", n).stdout
        assert json.loads(document) == [json.loads(line) for line in printed.splitlines()]
        assert out.read_bytes() == first
    assert len(json.loads(document)) == 7


def test_info_add_remove_and_verify(examples: Path, tmp_path: Path):
    corpus = tmp_path / "r"
    library = sorted((examples / "library").iterdir())
    fabula("reference", "build", library[0], "--out", corpus)
    before = json.loads(fabula("reference", "info", corpus, "--json").stdout)
    fabula("reference", "build", "--add", "--out", corpus, *library[1:])
    assert "2 shards intact" in fabula("reference", "info", "--check", corpus).stdout
    ids = fabula("reference", "info", corpus, "--ids").stdout.splitlines()
    assert ids == [str(file) for file in library]
    (tmp_path / "ids.txt").write_text("\n".join(ids[1:]))
    fabula("reference", "remove", corpus, "--ids-file", tmp_path / "ids.txt")
    after = json.loads(fabula("reference", "info", corpus, "--json").stdout)
    assert (after["n_documents"], after["n_words"]) == (1, before["n_words"])
    assert after["fingerprint"] == before["fingerprint"]
    fabula("reference", "remove", corpus, "no such id", code=REFUSED)


def test_the_papers_setting_is_told_apart(examples: Path, story: Path, tmp_path: Path):
    fabula("reference", "build", examples / "library", "--out", tmp_path / "r", "--preset", "paper")
    (row,) = json.loads(
        fabula("originality", story, "--reference", tmp_path / "r", "--json").stdout
    )
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
    said = fabula("originality", tmp_path / name, "--reference", corpus, code=REFUSED).stderr
    assert name in said
    assert sentence in said
    assert len(said.strip().splitlines()) == 1


def test_bad_options_are_refused(corpus: Path, story: Path, tmp_path: Path):
    score, build = ("originality", story, "--reference"), ("reference", "build", story, "--out")
    assert "no manifest" in fabula(*score, tmp_path, code=REFUSED).stderr
    for words in (
        (*score, corpus, "--levels", "9-5"), (*score, corpus, "--exclude", "no.txt"), score[:2],
        (*build, tmp_path / "r", "--set", "running.memory=lots"), (*build, story),
    ):  # fmt: skip
        fabula(*words, code=REFUSED)


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
        fabula(*score, *options, code=REFUSED)
    scores = tmp_path / "s.jsonl"
    for _ in range(2):  # The text is too short for a score, which is the documented code.
        fabula(*score, "--out", scores, "--html", tmp_path / "p.html", code=1)
    fabula("compare", scores, "--by", "file", "--plot", scores, code=REFUSED)
    fabula("compare", scores, scores, "--by", "id", code=REFUSED)
    assert draft.read_text() == "Check the doors and then check them again."
    assert texts.read_text() == '{"id": "a", "text": "Check the doors."}\n'
    assert json.loads(scores.read_text())["id"] == "a"


def test_the_reader_of_a_table_is_told_what_the_numbers_hide(corpus: Path, tmp_path: Path):
    (tmp_path / "de.txt").write_text("Die Stille war so tief, dass in der Nacht niemand schlief.")
    done = fabula("originality", tmp_path / "de.txt", "--reference", corpus, "--levels", "3-4")
    assert "reference at all, and count as new" in done.stdout


def test_a_broken_line_in_a_gzip_keeps_what_was_scored(corpus: Path, tmp_path: Path):
    good = [json.dumps({"id": str(k), "text": "Check the doors and " * 5}) for k in range(4)]
    texts, out = tmp_path / "t.jsonl.gz", tmp_path / "s.jsonl"
    texts.write_bytes(gzip.compress("\n".join([*good[:2], "{broken", *good[2:]]).encode()))
    command = ["originality", texts, "--reference", corpus, "--out", out]
    assert "line 3" in fabula(*command, code=REFUSED).stderr
    kept = out.read_bytes()
    assert len(kept.splitlines()) == 2
    texts.write_bytes(gzip.compress("\n".join(good).encode()))
    fabula(*command)
    assert out.read_bytes().startswith(kept)
    assert len(out.read_bytes().splitlines()) == 4


def test_a_full_disk_is_said_and_the_build_goes_on_when_there_is_room(tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs the right to")
    try:
        texts = tmp_path / "t.jsonl"
        rows = [json.dumps({"text": " ".join(f"w{k * n % 997}" for n in range(300))}) + "\n"
                for k in range(150)]  # fmt: skip
        texts.write_text("".join(rows))
        build = ["reference", "build", texts, "--out", disk / "r", "--jobs", "1"]
        build += ["--set", "running.shard-tokens=4000"]
        done = fabula(*build, code=REFUSED)
        assert "disk is full" in done.stderr
        n_kept = len([d for d in (disk / "r" / "shards").iterdir() if d.name.isdecimal()])
        assert n_kept > 0
        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        assert "150 documents" in fabula(*build).stdout
        fabula("reference", "info", "--check", disk / "r")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("is_forked", [False, True])
def test_ctrl_c_is_exit_code_130_and_keeps_what_was_finished(tmp_path: Path, is_forked: bool):
    build = ["reference", "build", "-", "--set", "reading.format=jsonl", "--out", tmp_path / "r"]
    build += ["--set", "running.shard-tokens=50", "--jobs", "1"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [*([fabula_command()] if is_forked else COMMAND), *map(str, build)],
        stdin=pipe, stdout=pipe, stderr=pipe, text=True,
    )  # fmt: skip
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
    done = subprocess.run(
        ["bash", "-c", f"{command} | true"], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr

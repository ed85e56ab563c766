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
from tests.commands import write_rows
from tests.exit_codes import REFUSED, check_exit
from tests.forking import fabula_command

from fabula.core.store import read_rows
from fabula.jobs.registry import jobs

HEAVY = [
    "numba", "scipy", "matplotlib", "pyarrow", "docx", "lxml", "fsspec", "joblib", "rich", "jinja2",
    "numpy", "regex",
]  # fmt: skip
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


@pytest.mark.parametrize("arguments", [[], ["reference"], ["originality"], ["compare"],
                                       ["reference", "build"]])  # fmt: skip
def test_help_needs_no_heavy_import(arguments: list[str]):
    code = (
        "import sys\nfrom fabula.cli.main import main\n"
        f"sys.argv = ['fabula', *{arguments!r}, '--help']\n"
        "try:\n    main()\nexcept SystemExit as e:\n    assert not e.code\n"
        f"assert not set({HEAVY!r}) & set(sys.modules), set({HEAVY!r}) & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: " in done.stdout


def test_help_and_completion_import_no_command():
    code = (
        "import sys\nfrom fabula.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as e:\n    assert not e.code\n"
        "assert 'fabula.review.job' not in sys.modules\n"
        "assert not {'asyncio', 'importlib.metadata', 'sqlite3', 'ssl'} & set(sys.modules)\n"
    )
    completing = {"_FABULA_COMPLETE": "bash_complete", "COMP_WORDS": "fabula re", "COMP_CWORD": "1"}
    for more, shown in ((["--help"], jobs()["report"].short), ([], "plain,report")):
        done = subprocess.run(
            [sys.executable, "-c", f"import sys\nsys.argv = {['fabula', *more]!r}\n{code}"],
            env=os.environ | (completing if not more else {}),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert shown in done.stdout


def test_the_sample_story_is_scored(corpus: Path, story: Path, tmp_path: Path):
    out, page = tmp_path / "s.jsonl", tmp_path / "p.html"
    done = fabula(
        "originality",
        story,
        "--reference",
        corpus,
        "--out",
        out,
        "--html",
        page,
        "--exclude",
        "none",
    )
    assert "7.316" in done.stdout
    row = json.loads(out.read_text())
    # 19 words: "He used to say that the beam was not there to be seen. It was there so that the"
    assert max(span["n_words"] for span in row["covered"]) == 19
    assert "A Short History of Fog" in page.read_text()


def test_json_is_one_document_and_jsonl_a_row_a_line(
    corpus: Path, examples: Path, story: Path, tmp_path: Path
):
    out, texts = tmp_path / "s.jsonl", [story, examples / "library" / "market-day.md"]
    printed = fabula("originality", *texts, "--reference", corpus, "--jsonl", "--out", out).stdout
    assert list(map(json.loads, printed.splitlines())) == list(read_rows(out))
    document = fabula("originality", *texts, "--reference", corpus, "--json", "--out", out).stdout
    assert json.loads(document) == [json.loads(line) for line in printed.splitlines()]
    assert len(json.loads(document)) == 2


def test_results_do_not_depend_on_the_number_of_threads(corpus: Path, examples: Path):
    texts = [examples / "the-count.txt", examples / "library"]
    rows = {fabula("originality", *texts, "--reference", corpus, "--json", "--jobs", n).stdout
            for n in ("1", "3")}  # fmt: skip
    assert len(rows) == 1


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


def test_compare_prints_tables_json_and_a_plot(corpus: Path, examples: Path, tmp_path: Path):
    scores, plot = tmp_path / "s.jsonl", tmp_path / "c.svg"
    rows = [{"text": f.read_text(), "kind": f.name[0]} for f in (examples / "library").iterdir()]
    texts = write_rows(tmp_path / "t.jsonl", rows)
    fabula("originality", texts, "--reference", corpus, "--out", scores)
    assert "Holm" in fabula("compare", scores, "--by", "kind", "--plot", plot).stdout
    found = json.loads(fabula("compare", scores, "--by", "kind", "--json").stdout)
    mine = [one for one in found["groups"] if one["number"] == "creativity_index"]
    assert sum(group["n"] for group in mine) == 6
    assert plot.read_text().lstrip().startswith("<?xml")


def test_bad_input_is_one_sentence_and_exit_code_2(corpus: Path, story: Path, tmp_path: Path):
    (tmp_path / "empty.txt").touch()
    (tmp_path / "binary.txt").write_bytes(bytes(100))
    (tmp_path / "field.jsonl").write_text('{"body": "a"}\n')
    for name, sentence in [
        ("empty.txt", "is empty"),
        ("binary.txt", "NUL bytes"),
        ("field.jsonl", "--text"),
        ("nothing.txt", "no such file"),
    ]:
        done = fabula("originality", tmp_path / name, "--reference", corpus, code=REFUSED)
        assert name in done.stderr
        assert sentence in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert (
        "no manifest" in fabula("originality", story, "--reference", tmp_path, code=REFUSED).stderr
    )
    fabula("originality", story, "--reference", corpus, "--levels", "9-5", code=REFUSED)
    fabula("originality", story, "--reference", corpus, "--exclude", "no.txt", code=REFUSED)
    fabula("originality", story, code=REFUSED)
    fabula(
        "reference",
        "build",
        story,
        "--out",
        tmp_path / "r",
        "--set",
        "running.memory=lots",
        code=REFUSED,
    )
    fabula("reference", "build", story, "--out", story, code=REFUSED)


def test_files_that_are_something_else_are_never_replaced(corpus: Path, tmp_path: Path):
    draft = tmp_path / "draft.txt"
    draft.write_text("Check the doors and then check them again.")
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"id": "a", "text": "Check the doors."}\n')
    score = ["originality", texts, "--reference", corpus]
    for options in (
        ["--html", draft],
        ["--html", tmp_path],
        ["--out", draft],
        ["--out", texts],
        ["--out", texts, "--set=running.restart=true"],
        ["--out", tmp_path / "x", "--html", tmp_path / "x"],
    ):
        fabula(*score, *options, code=REFUSED)
    # The text is too short for a score, which is the documented code.
    fabula(*score, "--out", tmp_path / "s.jsonl", "--html", tmp_path / "p.html", code=1)
    # The text is too short for a score, which is the documented code.
    fabula(*score, "--out", tmp_path / "s.jsonl", "--html", tmp_path / "p.html", code=1)
    scores = tmp_path / "s.jsonl"
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
        build = ["reference", "build", texts, "--out", disk / "r",
            "--set", "running.shard-tokens=4000",
                 "--jobs", "1"]  # fmt: skip
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

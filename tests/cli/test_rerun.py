"""The record beside a result, and the result made again from it."""

import json
import re
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from tests.commands import invoke, refused
from tests.commands import write_rows as write_plain
from tests.serving import completion, serving

from fabula.cli.rerun import compare_results
from fabula.core.errors import InputError
from fabula.core.instruments import own_parts
from fabula.core.provenance import read_record, record_path, recording
from fabula.core.store import CHECKSUM, read_rows, write_rows, write_whole

TEXT = "the lamp on the pier was lit and the ferry came in late with the post and a letter"
WORDS = TEXT.split()


SCORE = "originality texts.jsonl --reference books.ref --out out/s.jsonl -j 1"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with scores of two texts against a small reference, made by names within it."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "books").mkdir()
    (folder / "books" / "a.txt").write_text(" ".join(WORDS * 3), encoding="utf-8")
    rows = ({"id": str(k), "text": " ".join(WORDS[k : k + 12])} for k in range(2))
    write_plain(folder / "texts.jsonl", rows)
    with chdir(folder):
        invoke("reference", "build", "books", "--out", "books.ref")
        invoke(*SCORE.split())
    return folder


@pytest.fixture
def scored(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The scores in a copy of the folder, which is the current one."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "out" / "s.jsonl"


def rerun(path: Path, *more: str) -> tuple[int, dict[str, Any]]:
    done = invoke("rerun", path, "--json", *more, code=None)
    assert done.exit_code in (0, 1), done.output
    assert done.stdout, repr(done.exception)
    return done.exit_code, json.loads(done.stdout)


def test_a_record_says_how_its_result_was_made_and_the_result_is_as_it_was(scored: Path):
    record = read_record(scored)
    assert record["command"] == "originality"
    assert record["settings"]["texts"] == ["texts.jsonl"]
    assert record["settings"]["measure.references"] == ["books.ref"]
    assert record["settings"]["measure.match"] == "verbatim"
    assert set(record["inputs"]) == {"texts.jsonl", "books.ref"}
    assert all(len(digest) == 64 for digest in record["inputs"].values())
    assert {"fabula", "python", "numpy", "numba"} <= record["versions"].keys()
    assert record["machine"].keys() == {"system", "processor"}
    assert (scored.parent / record["folder"]).resolve() == scored.parents[1]
    assert "provenance" not in scored.read_text(encoding="utf-8")
    assert record_path(scored.parents[1] / "books.ref").exists()


def test_a_result_made_again_is_equal_wherever_the_folder_is_moved(scored: Path):
    before = scored.read_bytes()
    root = scored.parents[1]
    moved = root.with_name("moved")
    shutil.move(root, moved)
    root.mkdir()
    code, said = rerun(moved / "out" / "s.jsonl")
    assert (code, said["is_equal"], said["numbers"], said["causes"]) == (0, True, [], [])
    assert (moved / "out" / "s.jsonl").read_bytes() == before
    names = sorted(path.name for path in (moved / "out").iterdir())
    assert names == ["s.jsonl", "s.jsonl.provenance.json"]


def test_a_changed_input_is_named_beside_the_numbers_that_changed(scored: Path):
    texts = scored.parents[1] / "texts.jsonl"
    first, second = read_rows(texts)
    new = {"text": "quite other words than any of these were, or will be"}
    write_plain(texts, [first, second | new])
    code, said = rerun(scored)
    assert (code, said["causes"]) == (1, ["the input texts.jsonl has changed"])
    (number,) = said["numbers"]
    assert re.match("s.jsonl, row 2: .* then, ", number)


def test_a_result_that_was_changed_by_hand_is_told_from_one_made_otherwise(scored: Path):
    first, *rest = map(json.loads, scored.read_text(encoding="utf-8").splitlines())
    write_plain(scored, [first | {"creativity_index": 99.0}, *rest])
    code, said = rerun(scored)
    assert (code, said["causes"]) == (1, [f"{scored} has changed since the record was written"])
    assert said["numbers"][0].startswith("s.jsonl, row 1: creativity_index 99.0 then, ")


def test_a_run_that_changes_nothing_leaves_the_record_and_another_version_is_named(scored: Path):
    before = record_path(scored).read_bytes()
    invoke(*SCORE.split())
    assert record_path(scored).read_bytes() == before
    forged(scored, versions={"numpy": "1.0"})
    code, said = rerun(scored)
    (cause,) = said["causes"]
    assert code == 0
    assert cause.startswith("the version of numpy: 1.0 then, ")


def test_what_cannot_be_made_again_is_refused_in_a_sentence(scored: Path):
    other = write_plain(scored.parent / "other.jsonl", [{}])
    assert "nothing says how" in refused("rerun", other)
    (scored.parents[1] / "texts.jsonl").unlink()
    assert re.search(r"cannot run again.*texts\.jsonl", refused("rerun", scored))
    record_path(scored).write_text('{"format": 1}', encoding="utf-8")
    with pytest.raises(InputError, match="not a record"):
        read_record(scored)


def test_a_record_is_private_and_holds_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "people.csv"
    with recording() as noted:
        write_whole(out, b"a\n", is_private=True)
        noted.keep("study export", {"database": "postgresql://ann:s3cret@db/x"}, {"out": out}, [])
    assert record_path(out).stat().st_mode & 0o077 == 0
    assert "s3cret" not in record_path(out).read_text(encoding="utf-8")
    assert read_record(out)["settings"]["database"] == "postgresql://ann:...@db/x"


def test_an_empty_option_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    rows = ({"id": id_, "text": TEXT, "group": "g"} for id_ in "ab")
    write_plain(Path("stories.jsonl"), rows)
    invoke("study", "new", "s.toml", "--design", "ttcw", "--documents", "stories.jsonl")
    invoke("study", "invite", "s.toml", "1", "--csv", "links.csv")
    assert set(read_record(Path("links.csv"))["inputs"]) == {"s.toml"}


def test_rows_that_differ_are_named_and_then_counted(tmp_path: Path):
    for name, add in ("a", 0), ("b", 1):
        (tmp_path / name).mkdir()
        rows = ({"id": k, "values": {"x": k + add}} for k in range(8))
        write_plain(tmp_path / name / "r.jsonl", rows)
    found = compare_results(tmp_path / "a", tmp_path / "b")
    assert found[0] == "r.jsonl, row 1: values.x 0 then, 1 now"
    assert found[-1] == "r.jsonl: 3 more rows differ"
    assert len(found) == 6


def test_a_corpus_changed_in_place_is_made_again_from_its_beginning(scored: Path):
    root = scored.parents[1]
    (root / "more.txt").write_text(" ".join(WORDS[::-1]), encoding="utf-8")
    add = ("reference", "build", "--add", "--out", "books.ref", "more.txt", "-j", "1")
    invoke(*add)
    invoke("reference", "remove", "books.ref", "books/a.txt")
    corpus = root / "books.ref"
    record = read_record(corpus)
    before = [one["command"] for one in record["before"]["records"]]
    assert (record["command"], before) == ("reference remove", ["reference build"] * 2)
    added = record["before"]["records"][1]
    assert set(added["inputs"]) == {"more.txt"}
    assert record["before"]["sha256"] == added["outputs"]["out"]["sha256"]
    code, said = rerun(corpus)
    assert (code, said["numbers"], said["causes"]) == (0, [], [])
    # What was added is looked at too, though the last command did not read it.
    (root / "more.txt").write_text(" ".join(WORDS[::-1][:9]), encoding="utf-8")
    code, said = rerun(corpus)
    assert (code, said["causes"]) == (1, ["the input more.txt has changed"])
    record_path(corpus).unlink()
    invoke(*add)
    assert "no record says how it was made before" in refused("rerun", corpus)


def test_the_page_of_a_report_without_a_name_has_a_record_too(scored: Path):
    others = [
        word for part in own_parts() if part.id != "originality" for word in ("--without", part.id)
    ]
    invoke("report", "texts.jsonl", "--reference", "books.ref", "-j", "1", *others)
    page = scored.parents[1] / "report.html"
    assert read_record(page)["outputs"]["out"]["path"] == "report.html"
    code, said = rerun(page)
    assert (code, said["numbers"], said["causes"]) == (0, [], [])


def forged(path: Path, **changes: Any) -> None:
    """Change the record of a result as a stranger might."""
    record = read_record(path)
    for name, change in changes.items():
        record[name] = {**record[name], **change} if isinstance(change, dict) else change
    record_path(path).write_text(json.dumps(record))


def test_a_strangers_record_writes_nothing_outside_of_its_own_folder(scored: Path):
    planted = scored.parents[1] / "thesis.csv"
    planted.write_text("mine")
    forged(scored, settings={"csv": str(planted), "log": str(scored.parents[1] / "new.log")})
    assert rerun(scored)[0] in (0, 1)
    assert planted.read_text() == "mine"
    assert not (scored.parents[1] / "new.log").exists()


def test_a_strangers_record_removes_no_document(scored: Path):
    corpus = scored.parents[1] / "books.ref"
    before = {path: path.read_bytes() for path in corpus.rglob("*.json")}
    settings = {"directory": str(corpus), "ids": ["a"]}
    forged(scored, command="reference remove", settings=settings)
    invoke("rerun", scored, "--yes", code=None)
    assert {path: path.read_bytes() for path in corpus.rglob("*.json")} == before


@pytest.mark.parametrize("command", ["study people", "setup", "judge calibrate", "rerun", "desk"])
def test_a_strangers_record_starts_only_what_makes_a_result(scored: Path, command: str):
    forged(scored, command=command)
    assert "does more than make a result" in refused("rerun", scored, "--yes")


def test_a_strangers_record_names_the_files_and_servers_it_would_use(
    scored: Path, tmp_path_factory: pytest.TempPathFactory
):
    private = tmp_path_factory.mktemp("private") / "diary.txt"
    private.write_text(TEXT)
    texts, server = [str(private)], ["http://192.0.2.1/ref"]
    # A folder further up, too, does not make a diary the record's own.
    forged(scored, folder="../../../..", settings={"texts": texts, "measure.references": server})
    said = refused("rerun", scored)
    assert all(one in said for one in (str(private), server[0], "--yes"))


def test_what_a_paid_model_said_is_asked_again_only_with_consent(scored: Path):
    """And a model that says something else, under another name, is named."""
    names = ["writer-1"]

    def steady(body: dict[str, Any], _: int) -> tuple[int, dict[str, Any]]:
        words = "She went to sea." if names[-1] == "writer-1" else "She stayed."
        return 200, completion(words) | {"model": names[-1]}

    with serving(steady) as server:
        paid = "--set models.price=1/10 --max-cost 1 --yes --out plots.jsonl --model"
        invoke("stories", "plot", "texts.jsonl", *paid.split(), f"{server.url}/v1#m")
        n_asked = len(server.requests)
        plots = scored.parents[1] / "plots.jsonl"
        (model,) = read_record(plots)["models"]
        assert model["served"] == "writer-1"
        assert "/v1#m; add --yes if you trust the record" in refused("rerun", plots)
        assert len(server.requests) == n_asked, "nothing was asked before consent"
        code, said = rerun(plots, "--yes")
        assert (code, said["numbers"], said["causes"]) == (0, [], [])
        assert len(server.requests) == 2 * n_asked
        names.append("writer-2")
        code, said = rerun(plots, "--yes")
    assert code == 1
    assert said["numbers"][0].startswith("plots.jsonl, row 1: ")
    assert all(name in said["causes"][0] for name in names)


def test_rows_that_were_changed_after_they_were_made_are_not_used_again(scored: Path):
    """Changing every index from 8 to 3 went unnoticed before: the run was resumed and recorded."""
    lines = scored.read_text(encoding="utf-8").splitlines(keepends=True)
    changed = [json.dumps(json.loads(line) | {"creativity_index": 3.0}) + "\n" for line in lines]
    record = record_path(scored).read_bytes()
    for kept, is_recorded in ((changed, True), (changed[:1], True), (changed, False)):
        # Whole, shorter than its record, and as a run leaves it that was killed before its record.
        scored.write_text("".join(kept), encoding="utf-8")
        record_path(scored).write_bytes(record)
        if not is_recorded:
            record_path(scored).unlink()
        for words in (SCORE, "compare out/s.jsonl --by id"):
            assert "line 1: was changed after Fabula wrote it" in refused(*words.split())
    invoke(*SCORE.split(), "--set=running.restart=true")
    assert scored.read_text(encoding="utf-8") == "".join(lines)
    # The last rows are made again if they are removed.
    scored.write_text(lines[0], encoding="utf-8")
    invoke(*SCORE.split())
    assert scored.read_text(encoding="utf-8") == "".join(lines)
    # A result of before there were checksums holds the same rows.
    bare = scored.with_name("bare.jsonl")
    write_rows(bare, read_rows(scored))
    assert compare_results(bare, scored) == ["s.jsonl: the same rows, in different bytes"]
    scored.write_text("".join(changed).replace(CHECKSUM, "as_it_is"), encoding="utf-8")
    invoke("compare", "out/s.jsonl", "--by", "id")


def test_no_output_goes_where_rows_or_a_log_cannot_be(scored: Path):
    novel = scored.parent / "novel.txt"
    novel.write_text("It was a dark and stormy night.", encoding="utf-8")
    again = "originality", "texts.jsonl", "--reference", "books.ref"
    for more, said in (
        (("--out", "/dev/full"), "is not a file that rows could be kept in"),
        (("--log", str(novel)), "is not a log of Fabula"),
        (("jupyter://x/y.txt",), "jupyter:// is not read"),
        (("hdfs://x/y.txt",), "hdfs:// is not read"),
    ):
        assert said in refused(*again, *more)
    assert novel.read_text(encoding="utf-8") == "It was a dark and stormy night."
    for _ in range(2):
        invoke(*again, "--log", "out/run.log")

"""Shares of a job, made anywhere and in any order, join to the bytes of one run."""

import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.core.errors import InputError
from fabula.core.resume import RowKind, Share, kept_rows
from fabula.core.types import Document
from tests.commands import invoke, write_rows
from tests.serving import prompt_of, serving

WORDS = ("lamp", "sea", "harbour", "keeper", "night", "boat", "letter", "gull", "stone", "rope")


def library(n_documents: int) -> Iterator[Document]:
    """Texts that share stretches of many lengths, and words of their own."""
    for k in range(n_documents):
        words = [f"{WORDS[(k * i + i // 7) % 10]}{(k % 5) * (i % 3)}" for i in range(100 + k % 50)]
        yield Document(f"d{k}", " ".join(words), author=f"a{k % 9}", meta={"title": f"T{k}"})


def drafts() -> list[Document]:
    """Every third copies a document, the others take short stretches from many."""
    kept = [document.text.split() for document in library(300)]
    found = []
    for k in range(60):
        words = list(kept[k]) if k % 3 == 0 else []
        for j in range(8):
            words += [f"own{k}n{n}" for n in range(30)] + kept[(k + 31 * j) % 300][j : j + 9]
        found.append(Document(f"t{k}", " ".join(words), author=f"a{k % 9}"))
    return found


def write_documents(path: Path, documents: Iterable[Document]) -> Path:
    rows = ({"id": d.id, "text": d.text, "author": d.author} for d in documents)
    return write_rows(path, rows)


def tree(path: Path) -> dict[str, bytes]:
    files = (file for file in path.rglob("*") if file.is_file() and file.name != ".lock")
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


BUILD = "reference", "build"


def run(*arguments: object, code: int = 0) -> str:
    result = invoke(*arguments, "--jobs", "1", code=None)
    assert result.exit_code == code, result.output
    return f"{result.output}{result.exception or ''}"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_documents(tmp_path_factory.mktemp("texts") / "library.jsonl", library(300))


@pytest.fixture(scope="module")
def built(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("built") / "r"
    run(*BUILD, texts, "--set=running.shard-tokens=4000", "--out", path)
    return path


@pytest.mark.parametrize("order", [(2, 1, 3), (3, 2)], ids=["all", "not all"])
def test_a_corpus_built_in_shares_has_the_bytes_of_one_build(
    texts: Path, built: Path, tmp_path: Path, order: tuple[int, ...]
):
    plan = [*BUILD, texts, "--set=running.shard-tokens=4000", "--out", tmp_path / "r"]
    for number in order:
        assert f"share {number}/3 is written" in run(*plan, "--share", f"{number}/3")
    shards = sorted(file for file in (tmp_path / "r" / "shards").glob("*/tokens.npy"))
    kept = {file: file.stat().st_mtime_ns for file in shards}
    assert len(kept) >= 5
    run(*plan)
    assert tree(tmp_path / "r") == tree(built)
    assert {file: file.stat().st_mtime_ns for file in kept} == kept, "shards were written again"
    plan[2:4] = ["--add", texts, "--set=running.restart=true"]
    assert "cannot be used with --share" in run(*plan, "--share", "1/2", code=2)


def test_scores_of_shares_join_to_the_rows_of_one_run(built: Path, tmp_path: Path):
    mine = write_documents(tmp_path / "t.jsonl", drafts()[:24])
    asked = ["originality", mine, "--reference", built, "--exclude", "auto", "--out"]
    run(*asked, tmp_path / "whole.jsonl")
    out = tmp_path / "scores.jsonl"
    for number in (4, 1, 3):
        printed = run(*asked, out, "--share", f"{number}/4")
        assert f"scores.jsonl.{number}-of-4" in printed
    assert not out.exists()
    rows = (tmp_path / "scores.jsonl.1-of-4").read_text().splitlines()
    assert [json.loads(row)["id"] for row in rows] == [f"t{k}" for k in range(0, 24, 4)]
    # The second is missing: its texts are measured now, and the rest is as it was.
    run(*asked, out)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    run(*asked, out)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    # Rows made in another way are refused, whoever made them.
    out.unlink()
    other = [*asked[:-1], "--levels", "3-4", "--out", out]
    assert "measured or made with other settings" in run(*other, code=1)
    assert "needs --out" in run(*asked[:-1], "--share", "1/2", code=2)
    shutil.copy(mine, tmp_path / "scores.jsonl.1-of-4")
    assert "scores.jsonl.1-of-4, line 1: not a row of this command" in run(*asked, out, code=1)


def test_texts_of_models_are_asked_for_once_and_join(tmp_path: Path):
    mine = write_documents(tmp_path / "t.jsonl", drafts()[:7])

    def answer(body: dict[str, Any], _: int) -> str:
        return f"A keeper of {len(prompt_of(body))} lamps."

    with serving(answer) as served:
        asked = ["stories", "plot", mine, "--model", f"{served.url}#writer", "--yes", "--out"]
        invoke(*asked, tmp_path / "whole.jsonl")
        n_asked = len(served.requests)
        for number in (2, 1):
            invoke(*asked, tmp_path / "p.jsonl", "--share", f"{number}/2")
        invoke(*asked, tmp_path / "p.jsonl")
        assert len(served.requests) == 2 * n_asked == 14
    assert (tmp_path / "p.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


KIND = RowKind("the row", ("id",), ())


def made(path: Path, ids: Iterable[str], share: Share | None = None) -> list[str]:
    """Make a row of each thing that has none; returns what was made."""
    new = []
    with kept_rows(path, KIND, share=share) as rows:
        rows.begin()
        everything: list[dict[str, Any]] = []
        for id_ in ids if share is None else share.of(ids):
            row = rows.find({"id": id_})
            if row is None:
                row = {"id": id_, "of": id_ * 2}
                rows.add(row)
                new.append(id_)
            everything.append(row)
        rows.settle(everything)
    return new


def test_rows_of_shares_are_made_once_and_stand_in_order(tmp_path: Path):
    made(tmp_path / "whole", "abcdefg")
    path = tmp_path / "rows"
    assert made(path, "abcdefg", Share(2, 2)) == ["b", "d", "f"]
    assert made(path, "abcdefg", Share(1, 3)) == ["a", "d", "g"]
    assert made(path, "abcdefg") == ["c", "e"]
    assert path.read_bytes() == (tmp_path / "whole").read_bytes()
    assert made(path, "abcdefg") == []


@pytest.mark.parametrize("text", ["", "3", "0/3", "4/3", "1/0", "-1/3", "1/2/3", "a/b"])
def test_what_is_not_a_share_is_refused(text: str):
    with pytest.raises(InputError, match=r"must be I/N"):
        Share.parse(text)
    assert Share.parse("3/8") == Share(3, 8)

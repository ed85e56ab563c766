"""`fabula report` as a user types it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import click
import pytest
from tests.commands import invoke
from tests.running_commands import run

from fabula.cli.derived import command_of
from fabula.core.cached_results import CachedResults
from fabula.core.instruments import own_parts
from fabula.jobs.registry import jobs

STORY = (
    "The lamp went round. She counted nine, and one, and then she put out her hand and held it "
    "still.\n\nNobody in the harbour woke. It was the best of times in that house, and the worst."
)


def test_the_command_knows_every_part_that_a_review_has():
    """It names them itself, so that its help needs none of the instruments."""
    parts = [one for one in command_of(jobs()["report"]).params if one.name in ("without", "with_")]
    said = " ".join(one.help or "" for one in parts if isinstance(one, click.Option))
    assert all(part.id in said for part in own_parts())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "books").mkdir()
    (folder / "books" / "a.txt").write_text("It was the best of times, it was the worst of times.")
    (folder / "draft.txt").write_text(STORY)
    invoke("reference", "build", folder / "books", "--out", folder / "books.ref")
    return folder


def test_a_broken_model_costs_nothing_but_its_own_part_and_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(folder)
    given = "report draft.txt --reference books.ref --model http://127.0.0.1:9/v1#m --yes"
    plain = "--set models.max-retries=0 --set models.structured=false --out page.html"
    said = invoke(*given.split(), *plain.split(), code=1).stderr
    assert "written" not in said, "what is written is told on standard output"
    page = Path("page.html").read_text(encoding="utf-8")
    assert "How it reads" in page
    assert "Tests of creative writing</b> broke off" in page


def test_the_next_draft_of_a_book_has_the_bytes_of_a_first_report(
    folder: Path, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Only what changed is measured; what is kept from the first draft changes no number."""
    chapters = [
        f"Chapter {k}\n\n{path.read_text(encoding='utf-8').partition(chr(10))[2].strip()}"
        for k, path in enumerate(sorted((examples / "library").iterdir()), 1)
    ]
    paragraphs = "\n\n".join(chapters).split("\n\n")
    n = len(paragraphs) // 2
    paragraphs[n - 1] += " Then Mr. Arkwright said nothing, said Mr. Arkwright, and recieved it."
    new = "It was the best of times. “Mr. Arkwrigth recieved me.”"
    changed = [*paragraphs[:n], new, *paragraphs[n:]]

    def reported(draft: list[str], cache: str) -> tuple[str, int]:
        """What is printed, and how many results are kept afterwards."""
        monkeypatch.setenv("FABULA_CACHE", str(tmp_path / cache))
        (tmp_path / "draft.txt").write_text("\n\n".join(draft), encoding="utf-8")
        given = ("report", "draft.txt", "--reference", folder / "books.ref", "--json")
        said = run(*given, cwd=tmp_path).stdout
        with closing(sqlite3.connect(CachedResults().path)) as rows:
            ((n_kept,),) = rows.execute("SELECT COUNT(*) FROM results")
        return said, n_kept

    first, n_first = reported(paragraphs, "warm")
    again, n_again = reported(paragraphs, "warm")
    assert (again, n_again) == (first, n_first)
    warm, n_warm = reported(changed, "warm")
    cold, n_cold = reported(changed, "cold")
    assert warm == cold != first
    assert 0 < n_warm - n_first < n_cold / 10

"""How old a reference is, and which texts it cannot hold."""

from pathlib import Path
from typing import Any

import pytest
from tests.commands import invoke, write_rows

from fabula.core.types import Document
from fabula.reference.backend import Age, year_of
from fabula.reference.build import add_documents, build_reference
from fabula.reference.files import Manifest
from fabula.reference.search import Reference, open_backend
from fabula.text import TextSettings


def dated(id_: str, year: object) -> Document:
    return Document(id_, f"words of {id_} that nobody else wrote", meta={"year": year})


def build(folder: Path, *documents: Document, source: dict[str, Any] | None = None) -> Reference:
    build_reference(documents, folder, settings=TextSettings(), n_jobs=1, source=source)
    return Reference.open(folder)


def info(folder: Path) -> str:
    return invoke("reference", "info", folder).output


@pytest.mark.parametrize(
    ("year", "read"),
    [
        (1850, 1850), ("1850", 1850), ("1850-03-01", 1850), ("2019-04-25T12:57:54Z", 2019),
        (None, None), ("", None), ("c. 1850", None), ("18501", None), (12, None),
    ],
)  # fmt: skip
def test_a_year_is_read_from_numbers_and_dates(year: object, read: int | None):
    assert year_of(dated("a", year)) == read


def test_the_years_of_all_documents_are_the_age(tmp_path: Path):
    reference = build(tmp_path / "r", dated("a", 1850), dated("b", "1899-01-01"), dated("c", 1700))
    assert reference.age == Age(1700, 1899)
    add_documents([dated("d", 1920)], tmp_path / "r", n_jobs=1)
    assert Reference.open(tmp_path / "r").age == Age(1700, 1920)


def test_one_document_without_a_year_leaves_open_how_young_it_is(tmp_path: Path):
    reference = build(tmp_path / "r", dated("a", 1850), Document("b", "undated words"))
    assert reference.age == Age(1850)
    assert str(reference.age) == "from 1850, to when is unknown"
    assert build(tmp_path / "s", Document("b", "undated words")).age == Age()
    assert "years of its documents: unknown" in info(tmp_path / "s")


def test_several_references_are_as_young_as_the_youngest(tmp_path: Path):
    build(tmp_path / "old", dated("a", 1850))
    build(tmp_path / "new", dated("b", 1990))
    build(tmp_path / "none", Document("c", "undated words"))
    old, new, none = (str(tmp_path / name) for name in ("old", "new", "none"))
    assert Reference.open(old, new).age == Age(1850, 1990)
    # What is undated may be younger than everything else.
    assert Reference.open(old, none).age == Age(1850, None)


def test_what_was_added_to_a_sample_need_not_be_as_old(tmp_path: Path):
    source = {
        "name": "pg19", "title": "PG-19", "youngest": 1918, "n_words": 1000, "seed": 3,
        "author": None, "licence": "Apache 2.0",
    }  # fmt: skip
    assert build(tmp_path / "r", Document("a", "old words"), source=source).age == Age(None, 1918)
    said = info(tmp_path / "r")
    assert "years of its documents: up to 1918" in said
    assert "from pg19 (PG-19): about 1,000 words, seed 3" in said
    assert Manifest.read(tmp_path / "r").source == source
    add_documents([Document("b", "new words")], tmp_path / "r", n_jobs=1)
    assert Reference.open(tmp_path / "r").age == Age()


def test_an_index_of_the_catalogue_is_as_old_as_it_says():
    backend = open_backend(["infinigram:v4_c4train_llama"])
    assert backend.age == Age(None, 2019)
    backend.close()


def test_texts_that_a_reference_is_too_old_for_are_named(tmp_path: Path):
    build(tmp_path / "r", dated("a", 1850), dated("b", 1899))
    text = "some words of mine that are new here"
    years = {"old": 1880, "new": 2024, "undated": None}
    rows = ({"id": name, "text": text, "year": year} for name, year in years.items())
    texts, page = write_rows(tmp_path / "t.jsonl", rows), tmp_path / "p.html"
    score = ("originality", texts, "--reference", tmp_path / "r", "--html", page)
    said = " ".join(invoke(*score, code=1).output.split())
    assert "1 of 3 texts were written after 1899" in said
    assert "the first: new" in said
    assert "1850 to 1899" in page.read_text()
    told = "years of its documents: 1850 to 1899; a text written after 1899 cannot be in it"
    assert told in info(tmp_path / "r")

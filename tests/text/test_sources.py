"""Every kind of source gives its documents; what cannot be read is named with a remedy."""

import gzip
import io
import json
import zipfile
from pathlib import Path

import docx
import fsspec
import pandas as pd
import pytest
import xlsxwriter
import zstandard
from tests.http_serving import serving_files
from tests.text.epubs import write_epub

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.text import find_files, read_documents, read_table

ROWS = [
    {"id": "a", "text": "The first text — “quoted”.", "author": "Ann", "year": 1900},
    {"id": "b", "text": "Der zweite,\nmit Zeile.", "author": None, "year": 1901},
]
LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)


def read(*sources: Path | str, **options: str) -> list[Document]:
    return list(read_documents([str(source) for source in sources], **options))  # type: ignore[arg-type]


def write_table(path: Path) -> Path:
    """The rows in the format that the name says."""
    kind = path.name.partition(".")[2]
    packers = {"jsonl": bytes, "jsonl.gz": gzip.compress, "jsonl.zst": zstandard.compress}
    if kind in packers:
        path.write_bytes(packers[kind](LINES.encode()))
    elif kind == "csv":
        pd.DataFrame(ROWS).to_csv(path, index=False)
    else:
        pd.DataFrame(ROWS).to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "jsonl.zst", "csv", "parquet"])
def test_a_row_of_a_table_is_a_document(tmp_path: Path, kind: str):
    documents = read(write_table(tmp_path / f"table.{kind}"))
    assert [d.id for d in documents] == ["a", "b"]
    assert [d.text for d in documents] == [row["text"] for row in ROWS]
    assert documents[0].author == "Ann"
    assert str(documents[1].meta["year"]) == "1901"


def test_fields_can_be_named_and_a_row_without_an_id_is_named_after_its_line(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "One."}\n\n{"text": "Two."}\n')
    assert [d.id for d in read(path)] == ["t:1", "t:3"]
    path.write_text('{"story": "Once.", "key": 7, "text": "no"}\n')
    (document,) = read(path, text_field="story", id_field="key")
    assert (document.id, document.text, dict(document.meta)) == ("7", "Once.", {"text": "no"})


def test_plain_text_is_kept_as_it_stands(tmp_path: Path):
    path = tmp_path / "poem.txt"
    path.write_bytes("\ufeffEine Zeile\r\nund noch éine\n".encode())
    (document,) = read(path)
    assert document.text == "Eine Zeile\r\nund noch éine\n"
    path.write_bytes("Zeile é".encode("utf-16"))
    assert read(path)[0].text == "Zeile é"
    path = tmp_path / "a.md"
    path.write_text("# The Title\n\nText.\n")
    assert read(path)[0].meta["title"] == "The Title"


def test_word_documents_give_their_paragraphs(tmp_path: Path):
    word = docx.Document()
    word.core_properties.title, word.core_properties.author = "A Draft", "Ann"
    word.add_paragraph("First paragraph.")
    word.add_table(1, 1).cell(0, 0).text = "In a cell."
    word.save(str(tmp_path / "draft.docx"))
    (document,) = read(tmp_path / "draft.docx")
    assert document.text.split("\n\n") == ["First paragraph.", "In a cell."]
    assert (document.author, document.meta["title"]) == ("Ann", "A Draft")


def test_italics_of_word_documents_are_known_by_their_places(tmp_path: Path):
    word = docx.Document()
    word.add_paragraph("Before.")
    paragraph = word.add_paragraph("She ")
    paragraph.add_run("really").italic = True
    paragraph.add_run(" went, ")
    paragraph.add_run("alone", style="Emphasis")
    word.save(str(tmp_path / "draft.docx"))
    (document,) = read(tmp_path / "draft.docx")
    places = document.meta["italic_places"]
    assert [document.text[a:b] for a, b in places] == ["really", "alone"]
    assert "italic_places" not in document.fields


def test_a_book_is_read_in_the_order_of_its_spine(tmp_path: Path):
    page = "<h1>{}</h1><p>A <b>bold</b>\n word é.</p><script>no()</script><p>Next.</p>"
    write_epub(tmp_path / "b.epub", [page.format("Two"), page.format("One")], [1, 0])
    (document,) = read(tmp_path / "b.epub")
    assert document.text.split("\n\n") == ["One", "A bold word é.", "Next.",
                                           "Two", "A bold word é.", "Next."]  # fmt: skip
    assert (document.author, document.meta["title"]) == ("Ann", "The Book")


def test_folders_and_patterns_give_known_files_in_order(tmp_path: Path):
    for name in ["b.txt", "a.txt", "sub/c.md", "image.png", ".hidden.txt", ".git/x.txt"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    names = [Path(f.name).name for f in find_files([str(tmp_path)])]
    assert names == ["a.txt", "b.txt", "c.md"]
    assert [Path(f.name).name for f in find_files([str(tmp_path / "*.txt")])] == ["a.txt", "b.txt"]
    # A source is a name or a path.
    both = read_documents([tmp_path / "a.txt", str(tmp_path / "b.txt")])
    assert [d.text for d in both] == ["x", "x"]
    assert [d.text for d in read_documents([tmp_path / "sub"])] == ["x"]


def test_urls_are_read_through_their_file_system(tmp_path: Path):
    memory = fsspec.filesystem("memory")
    with memory.open("/shelf/t.jsonl", "w") as file:
        file.write(LINES)
    assert [d.id for d in read("memory://shelf/t.jsonl")] == ["a", "b"]
    assert [d.id for d in read("memory://shelf/*.jsonl")] == ["a", "b"]
    write_table(tmp_path / "t.jsonl.gz")
    with serving_files(tmp_path) as url:
        assert [d.id for d in read(f"{url}/t.jsonl.gz")] == ["a", "b"]


def test_standard_input_is_a_source(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Some text.")))
    assert read("-")[0].text == "Some text."
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LINES.encode())))
    assert len(read("-", format_="jsonl")) == 2


def test_reading_is_a_stream(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "One."}\n{"text": "a\\ud83d b"}\nbroken\n')
    documents = read_documents([str(path)])
    # Half a character becomes a replacement of the same length.
    assert [next(documents).text, next(documents).text] == ["One.", "a\ufffd b"]
    with pytest.raises(InputError, match="line 3"):
        next(documents)


BAD = {
    "empty.txt": (b"", "is empty"),
    "empty.jsonl": (b"", "is empty"),
    "binary.txt": (b"MZ\x00\x01\x02", "NUL bytes"),
    "wide.txt": ("The lamp was lit.".encode("utf-32"), "UTF-32"),
    "latin.txt": ("Zeile eins\ncafé".encode("latin-1"), "line 2: not UTF-8"),
    "broken.jsonl": (b'{"text": "a"}\n{"text": \n', "line 2: not a JSON object"),
    "list.jsonl": (b"[1, 2]\n", "line 1: a list"),
    "deep.jsonl": (b"[" * 100_000 + b"\n", "line 1: not a JSON object"),
    "latin.jsonl": ('{"text": "café"}\n'.encode("latin-1"), "line 1: not UTF-8"),
    "field.jsonl": (b'{"body": "a"}\n', "no field 'text'; the fields are 'body'"),
    "number.jsonl": (b'{"text": 5}\n', "contains a number, not text"),
    "wide.csv": (b"id,text\n1,a,b\n", "line 2: more fields"),
    "field.csv": (b"id,body\n1,a\n", "no field 'text'"),
    "latin.csv": ("id,text\n1,café\n".encode("latin-1"), "not UTF-8"),
    "no.parquet": (b"PAR1 not really", "not a readable Parquet"),
    "no.docx": (b"PK not really", "damaged"),
    "no.epub": (b"PK not really", "damaged"),
    "no.jsonl.gz": (b"not gzip", "compressed data is damaged"),
    "cut.jsonl.gz": (gzip.compress(LINES.encode() * 200)[:90], "truncated"),
    "no.jsonl.zst": (b"not zstd", "compressed data is damaged"),
    "image.png": (b"x", "unknown extension"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_with_a_remedy(tmp_path: Path, name: str):
    data, sentence = BAD[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=sentence) as caught:
        read(tmp_path / name)
    assert name in str(caught.value)


def test_missing_files_and_missing_packages_are_said(tmp_path: Path):
    for source, said in ((tmp_path / "no.txt", "no such file"), (tmp_path, "no readable texts"),
                         ("nothing://x/y.txt", "nothing://")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            find_files([str(source)])


@pytest.mark.parametrize(("file", "is_locked"), [("font.otf", False), ("c0.xhtml", True)])
def test_an_encrypted_book_is_no_text_of_new_words(tmp_path: Path, file: str, is_locked: bool):
    """It was read as words that no book has, and scored 8.0. Fonts may be encrypted."""
    book = write_epub(tmp_path / "b.epub", ["<p>One.</p>"])
    locked = (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" '
        'xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptedData><e:CipherData>'
        f'<e:CipherReference URI="OEBPS/{file}"/></e:CipherData></e:EncryptedData></encryption>'
    )
    with zipfile.ZipFile(book, "a") as archive:
        archive.writestr("META-INF/encryption.xml", locked)
    if is_locked:
        with pytest.raises(InputError, match="encrypted"):
            read(book)
    else:
        assert read(book)[0].text == "One."


def test_words_numbers_truths_and_gaps_are_read(tmp_path: Path):
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["id", "value", "is so", "note"])
        sheet.write_row(1, 0, ["a & <b>", 1.5, True, "x\n_x0041_"])
        sheet.write_string(3, 0, "=1+1")
        sheet.write_string(3, 3, "ü")
        book.add_worksheet().write(0, 0, "another sheet")
    assert [(dict(row), where.rpartition(",")[2]) for row, where in read_table(path)] == [
        ({"id": "a & <b>", "value": 1.5, "is so": True, "note": "x\n_x0041_"}, " row 2"),
        ({"id": "=1+1", "value": None, "is so": None, "note": "ü"}, " row 4"),
    ]
    path.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(InputError, match=r"t\.xlsx"):
        list(read_table(path))

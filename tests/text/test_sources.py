"""Every kind of source gives its documents; what cannot be read is named with a remedy."""

import csv
import gzip
import io
import json
import zipfile
from pathlib import Path

import docx
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from tests.http_serving import serving_files

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.text import find_files, read_documents

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
    if kind == "jsonl":
        path.write_text(LINES, encoding="utf-8")
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress(LINES.encode()))
    elif kind == "jsonl.zst":
        path.write_bytes(zstandard.compress(LINES.encode()))
    elif kind == "csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, ROWS[0])
            table.writeheader()
            table.writerows(ROWS)
    else:
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    return path


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "jsonl.zst", "csv", "parquet"])
def test_a_row_of_a_table_is_a_document(tmp_path: Path, kind: str):
    documents = read(write_table(tmp_path / f"table.{kind}"))
    assert [d.id for d in documents] == ["a", "b"]
    assert [d.text for d in documents] == [row["text"] for row in ROWS]
    assert documents[0].author == "Ann"
    assert str(documents[1].meta["year"]) == "1901"


def test_fields_can_be_named(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"story": "Once.", "key": 7, "text": "no"}\n')
    (document,) = read(path, text_field="story", id_field="key")
    assert (document.id, document.text, dict(document.meta)) == ("7", "Once.", {"text": "no"})


def test_a_row_without_an_id_is_named_after_its_line(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "One."}\n\n{"text": "Two."}\n')
    assert [d.id for d in read(path)] == ["t:1", "t:3"]


def test_plain_text_is_kept_as_it_stands(tmp_path: Path):
    path = tmp_path / "poem.txt"
    path.write_bytes("\ufeffEine Zeile\r\nund noch éine\n".encode())
    (document,) = read(path)
    assert document.text == "Eine Zeile\r\nund noch éine\n"
    path.write_bytes("Zeile é".encode("utf-16"))
    assert read(path)[0].text == "Zeile é"


def test_a_markdown_heading_is_the_title(tmp_path: Path):
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


def write_epub(path: Path, chapters: list[str]) -> None:
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        )
        items = "".join(f'<item id="c{k}" href="c{k}.xhtml"/>' for k in range(len(chapters)))
        spine = "".join(f'<itemref idref="c{k}"/>' for k in reversed(range(len(chapters))))
        book.writestr(
            "OEBPS/book.opf",
            '<package xmlns="http://www.idpf.org/2007/opf"><metadata '
            'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Book</dc:title>'
            f"<dc:creator>Ann</dc:creator></metadata><manifest>{items}</manifest>"
            f"<spine>{spine}</spine></package>",
        )
        for k, chapter in enumerate(chapters):
            book.writestr(f"OEBPS/c{k}.xhtml", chapter)


def test_a_book_is_read_in_the_order_of_its_spine(tmp_path: Path):
    page = (
        "<html xmlns='http://www.w3.org/1999/xhtml'><head><title>no</title></head><body>"
        "<h1>{}</h1><p>A <b>bold</b>\n word é.</p><script>no()</script><p>Next.</p></body></html>"
    )
    write_epub(tmp_path / "b.epub", [page.format("Two"), page.format("One")])
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


def test_urls_are_read_through_their_file_system(tmp_path: Path):
    memory = fsspec.filesystem("memory")
    with memory.open("/shelf/t.jsonl", "w") as file:
        file.write(LINES)
    assert [d.id for d in read("memory://shelf/t.jsonl")] == ["a", "b"]
    assert [d.id for d in read("memory://shelf/*.jsonl")] == ["a", "b"]


def test_a_web_server_is_read_over_http(tmp_path: Path):
    write_table(tmp_path / "t.jsonl.gz")
    with serving_files(tmp_path) as url:
        documents = read(f"{url}/t.jsonl.gz")
    assert [d.id for d in documents] == ["a", "b"]


def test_standard_input_is_a_source(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Some text.")))
    assert read("-")[0].text == "Some text."
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LINES.encode())))
    assert len(read("-", format_="jsonl")) == 2


def test_a_source_is_a_name_or_a_path(tmp_path: Path):
    one, two = tmp_path / "1.txt", tmp_path / "2.txt"
    one.write_text("One.")
    two.write_text("Two.")
    assert [d.text for d in read_documents([one, str(two)])] == ["One.", "Two."]
    assert [d.text for d in read_documents([tmp_path])] == ["One.", "Two."]


def test_reading_is_a_stream(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "One."}\n{"text": "Two."}\nbroken\n')
    documents = read_documents([str(path)])
    assert [next(documents).text, next(documents).text] == ["One.", "Two."]
    with pytest.raises(InputError, match="line 3"):
        next(documents)


def test_half_a_character_becomes_a_replacement_of_the_same_length(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "a\\ud83d b"}\n')
    assert read(path)[0].text == "a\ufffd b"


def damaged_gzip(path: Path) -> None:
    data = gzip.compress(LINES.encode() * 200)
    path.write_bytes(data[: len(data) // 2])


BAD = {
    "empty.txt": (b"", "is empty"),
    "empty.jsonl": (b"", "is empty"),
    "binary.txt": (b"MZ\x00\x01\x02", "NUL bytes"),
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


def test_a_gzip_cut_in_the_middle_says_how_much_was_whole(tmp_path: Path):
    damaged_gzip(tmp_path / "t.jsonl.gz")
    with pytest.raises(InputError, match=r"t.jsonl.gz.*truncated"):
        read(tmp_path / "t.jsonl.gz")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path):
    path = tmp_path / "bomb.epub"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x", "w", force_zip64=True) as entry,
    ):
        for _ in range(1100):
            entry.write(bytes(1 << 20))
    with pytest.raises(InputError, match="unpack to"):
        read(path)


def test_missing_files_and_missing_packages_are_said(tmp_path: Path):
    with pytest.raises(InputError, match="no such file"):
        find_files([str(tmp_path / "no.txt")])
    with pytest.raises(InputError, match="no readable texts"):
        find_files([str(tmp_path)])
    with pytest.raises(InputError, match="nothing://"):
        find_files(["nothing://x/y.txt"])


def test_what_cannot_be_read_is_no_text_of_new_words(tmp_path: Path):
    """An encrypted book and UTF-32 were read as words that no book has, and scored 8.0."""
    book = tmp_path / "b.epub"
    write_epub(book, ["<html><body><p>One.</p></body></html>"])
    locked = (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" '
        'xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptedData><e:CipherData>'
        '<e:CipherReference URI="{}"/></e:CipherData></e:EncryptedData></encryption>'
    )
    with zipfile.ZipFile(book, "a") as file:
        file.writestr("META-INF/encryption.xml", locked.format("OEBPS/font.otf"))
    (document,) = read(book)
    assert document.text == "One.", "fonts may be encrypted"
    write_epub(book, ["<html><body><p>One.</p></body></html>"])
    with zipfile.ZipFile(book, "a") as file:
        file.writestr("META-INF/encryption.xml", locked.format("OEBPS/c0.xhtml"))
    with pytest.raises(InputError, match="encrypted"):
        list(read(book))
    text = tmp_path / "t.txt"
    text.write_bytes("The lamp was lit.".encode("utf-32"))
    with pytest.raises(InputError, match="UTF-32"):
        list(read(text))

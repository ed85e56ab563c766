"""One reader per format: from a stream of bytes to documents."""

from __future__ import annotations

import csv
import io
import json
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple
from urllib.parse import unquote

from fabula.control_characters import without_controls
from fabula.errors import InputError
from fabula.formats import CHANGED, was_changed
from fabula.packages import pyarrow
from fabula.plugins import Registry
from fabula.text.cbt import cbt_documents
from fabula.text.documents import ParsedText, check_memory
from fabula.text.odt import parse_odt
from fabula.text.pdf import parse_pdf
from fabula.text.rtf import parse_rtf
from fabula.text.scrivener import parse_scriv
from fabula.types import Document

_MAX_LINE_BYTES = 1 << 30
_MAX_UNPACKED_BYTES = 1 << 30
_MAX_HEADER_BYTES = 1 << 16
_KINDS = {int: "a number", float: "a number", bool: "a boolean", list: "a list"}
_BLOCKS = (
    *("p", "div", "li", "blockquote", "br", "tr", "section", "td", "th", "dt", "dd", "hr"),
    *("pre", "figure", "figcaption", "h1", "h2", "h3", "h4", "h5", "h6"),
)
_FAULTS = (KeyError, TypeError, AttributeError, RuntimeError, zipfile.BadZipFile)
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_MARK = "\ufdd0"
"""Precedes the level of a heading while a page is parsed; a code point without a character."""
_heading = re.compile(r"\s*#\s+(\S.*)")
_lone_surrogates = re.compile("[\ud800-\udfff]")


class Fields(NamedTuple):
    """The fields of a row with the text and the id of a document."""

    text: str = "text"
    id: str = "id"


def read_text(stream: IO[bytes], name: str, fields: Fields) -> Iterator[Document]:
    """Read the whole stream as one document: UTF-8, or UTF-16 with a byte order mark.

    A published file of the Children's Book Test gives one document per item or book.
    """
    data = _whole(stream, name)
    if data:
        text = _decode(data, name)
        documents = cbt_documents(text, name, _stem(name))
        if documents is not None:
            yield from documents
            return
        heading = _heading.match(text) if ".md" in name.lower() else None
        title = heading[1] if heading else _stem(name)
        yield Document(id=without_controls(name), text=text, meta={"title": title})


class Row(NamedTuple):
    """A row of a table with its place."""

    number: int
    where: str
    values: dict[str, Any]
    is_changed: bool = False
    """Whether it was changed since Fabula wrote it."""


def _jsonl_rows(stream: IO[bytes], name: str) -> Iterator[Row]:
    """One JSON object per line; blank lines are skipped."""
    for number, line in _lines(stream, name):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        try:
            row = json.loads(line)
        except UnicodeDecodeError as error:
            raise InputError(f"{where}: not UTF-8 ({error.reason}); convert it to UTF-8") from error
        except (ValueError, RecursionError) as error:
            detail = getattr(error, "msg", "nested too deeply, or a number with too many digits")
            raise InputError(
                f"{where}: not a JSON object ({detail}); fix or remove the line"
            ) from error
        if not isinstance(row, dict):
            kind = _KINDS.get(type(row), "a string")
            raise InputError(f"{where}: {kind}, not a JSON object; fix the line")
        yield Row(number, where, row, was_changed(row, line))


def _csv_rows(stream: IO[bytes], name: str) -> Iterator[Row]:
    """A table with a header line; tabs if the name ends in `.tsv`, else commas or semicolons."""
    csv.field_size_limit(_MAX_LINE_BYTES)
    lines = io.TextIOWrapper(stream, "utf-8-sig", newline="")
    number = 0
    try:
        header = lines.readline(_MAX_LINE_BYTES)
        # Spreadsheets write semicolons if the comma is the decimal separator.
        is_semicolon = ";" in header and "," not in header
        delimiter = "\t" if ".tsv" in name.lower() else ";" if is_semicolon else ","
        rows = csv.DictReader(chain([header], lines), delimiter=delimiter, strict=True)
        for row in rows:
            number = rows.line_num
            where = f"{name}, line {number}"
            if None in row:
                raise InputError(f"{where}: more fields than the header; quote the text")
            yield Row(number, where, dict(row))
    except UnicodeDecodeError as error:
        where = f"{name}, after line {number}"
        raise InputError(f"{where}: not UTF-8 ({error.reason}); convert it to UTF-8") from error
    except csv.Error as error:
        raise InputError(f"{name}, line {rows.line_num}: {error}; fix the line") from error
    finally:
        lines.detach()


def _parquet_rows(stream: IO[bytes], name: str) -> Iterator[Row]:
    pa = pyarrow(what=f"{name}: reading .parquet")
    pq = pyarrow("parquet", what=f"{name}: reading .parquet")
    if not stream.seekable():
        stream = io.BytesIO(_whole(stream, name))
    number = 0
    try:
        for batch in pq.ParquetFile(stream).iter_batches(batch_size=512):
            for row in batch.to_pylist():
                number += 1
                yield Row(number, f"{name}, row {number}", row)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"{name}: not a readable Parquet file ({error})") from error


def _xlsx_rows(stream: IO[bytes], name: str) -> Iterator[Row]:
    """The rows of a workbook's first sheet, below its header."""
    from fabula.text.workbooks import first_sheet

    data = io.BytesIO(_whole(stream, name))
    _check_archive(data, name)
    try:
        sheet = first_sheet(data)
        header = [str(cell or "") for cell in next(sheet, (0, []))[1]]
        for number, cells in sheet:
            if any(cell is not None for cell in cells):
                values = dict(zip(header, [*cells, *[None] * len(header)], strict=False))
                yield Row(number, f"{name}, row {number}", values)
    except ValueError as error:
        raise InputError(f"{name}: not a readable workbook ({error})") from error


_ROWS = {
    "jsonl": _jsonl_rows,
    "csv": _csv_rows,
    "tsv": _csv_rows,
    "parquet": _parquet_rows,
    "xlsx": _xlsx_rows,
}
TABLES = tuple(_ROWS)
"""The suffixes of files whose rows are read one by one."""


def _read_texts(kind: str, stream: IO[bytes], name: str, fields: Fields) -> Iterator[Document]:
    """One document per row of a table."""
    # What is read as a text, people may have edited.
    for number, where, row, _ in _ROWS[kind](stream, name):
        yield document_of_row(row, where, f"{_stem(name)}:{number}", fields)


def read_rows(kind: str, stream: IO[bytes], name: str) -> Iterator[Document]:
    """The rows of a table unchanged: each as the `meta` of a document without text.

    Its id gives the place of the row.
    """
    for _, where, row, is_changed in _ROWS[kind](stream, name):
        if is_changed:
            raise InputError(CHANGED.format(where=where))
        yield Document(where, "", meta=row)


def _parse_docx(data: bytes, name: str) -> ParsedText:
    """A Word document's paragraphs, tables included, each on a line of its own."""
    import docx
    from docx.opc.exceptions import PackageNotFoundError
    from docx.oxml.ns import qn
    from docx.text.paragraph import Paragraph

    try:
        word = docx.Document(io.BytesIO(data))
    except (PackageNotFoundError, KeyError, ValueError, SyntaxError, zipfile.BadZipFile) as error:
        check_memory(getattr(error, "error_log", ()))
        raise InputError(f"{name}: not a Word document; save it again as .docx or .txt") from error
    paragraphs = [Paragraph(p, word) for p in word.element.body.iter(qn("w:p"))]
    properties = word.core_properties
    return ParsedText(
        [(_word_level(paragraph), paragraph.text) for paragraph in paragraphs],
        properties.title,
        properties.author,
    )


def _word_level(paragraph: Any) -> int:
    """The level of a Word heading, by its style or that style's base styles; 0 for text."""
    style = paragraph.style
    while style is not None:
        if match := re.fullmatch(r"heading (\d)", (style.name or "").casefold()):
            return int(match[1])
        style = style.base_style
    return 0


def _parse_epub(data: bytes, name: str) -> ParsedText:
    """A book's chapters in reading order."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            container = etree.fromstring(book.read("META-INF/container.xml"), parser)
            package_path = container.xpath("string(//*[local-name()='rootfile']/@full-path)")
            package = etree.fromstring(book.read(package_path), parser)
            folder = PurePosixPath(package_path).parent
            hrefs = {
                item.get("id"): item.get("href")
                for item in package.xpath("//*[local-name()='manifest']/*[local-name()='item']")
            }
            spine = package.xpath("//*[local-name()='spine']/*[local-name()='itemref']")
            paths = (unquote(hrefs[reference.get("idref")]) for reference in spine)
            # A chapter occurs in a book once, however often it is listed (EPUB 3.3, 5.7.3.1).
            whole = dict.fromkeys(posixpath.normpath(str(folder / path)) for path in paths)
            if not whole.keys().isdisjoint(_encrypted(book, parser)):
                raise InputError(f"{name}: its text is encrypted (DRM); use a copy without")
            parts = [part for path in whole for part in _html_paragraphs(book.read(path))]
            title = package.xpath("string(//*[local-name()='title'])").strip()
            author = package.xpath("string(//*[local-name()='creator'])").strip()
    except (*_FAULTS, etree.LxmlError) as error:
        raise InputError(f"{name}: not a readable EPUB ({error}); export it again") from error
    return ParsedText(parts, title, author)


def _encrypted(book: zipfile.ZipFile, parser: Any) -> set[str]:
    """The files of an EPUB that cannot be read without a key; often only its fonts."""
    from lxml import etree

    path = "META-INF/encryption.xml"
    if path not in book.namelist():
        return set()
    found = etree.fromstring(book.read(path), parser)
    uris = found.xpath("//*[local-name()='CipherReference']/@URI")
    return {posixpath.normpath(unquote(uri)) for uri in uris}


def _read_parsed(
    parse: Callable[[bytes, str], ParsedText], stream: IO[bytes], name: str, fields: Fields
) -> Iterator[Document]:
    """A file as one document, with blank lines between paragraphs.

    `meta["headings"]` has the start, level and words of each heading, if there are any.
    """
    data = _whole(stream, name)
    if data.startswith(b"PK") or parse in (_parse_docx, _parse_epub):
        _check_archive(io.BytesIO(data), name)
    parsed = parse(data, name)
    texts = [_clean(text) for _, text in parsed.paragraphs]
    meta: dict[str, Any] = {"title": parsed.title or _stem(name)}
    headings = []
    place = 0
    for (level, _), text in zip(parsed.paragraphs, texts, strict=True):
        title = text.strip()
        if level and title:
            headings.append([place + text.index(title), level, title])
        place += len(text) + len("\n\n")
    yield Document(
        id=without_controls(name),
        text="\n\n".join(texts),
        author=parsed.author or None,
        meta=meta | ({"headings": headings} if headings else {}),
    )


def _read_wet(stream: IO[bytes], name: str, fields: Fields) -> Iterator[Document]:
    """The web pages of a Common Crawl WET file: address, text, and the year of the crawl.

    A record is a line `WARC/1.0`, headers, an empty line, and the number of bytes stated in its
    header (ISO 28500:2017, 4 and 5); those of type `conversion` contain a page's text.
    """
    number = 0
    while line := stream.readline(_MAX_HEADER_BYTES):
        if not line.strip():
            continue
        number += 1
        where = f"{name}, record {number}"
        headers = dict(_headers(stream))
        length = headers.get("content-length", "")
        if not line.startswith(b"WARC/") or not length.isdecimal():
            raise InputError(f"{where}: not a WARC record; fetch the file again")
        if int(length) > _MAX_UNPACKED_BYTES:
            raise InputError(f"{where}: larger than 1 GiB; leave the file out")
        body = stream.read(int(length))
        if len(body) < int(length):
            raise InputError(f"{where}: truncated; fetch the file again")
        if headers.get("warc-type") == "conversion":
            address = headers.get("warc-target-uri") or f"{_stem(name)}:{number}"
            year = headers.get("warc-date", "")[:4]
            meta = {"year": int(year)} if year.isdecimal() else {}
            text = _clean(body.decode("utf-8", "replace"))
            yield Document(id=without_controls(address), text=text, meta=meta)


def _headers(stream: IO[bytes]) -> Iterator[tuple[str, str]]:
    """Lower-case names and values, up to the next empty line."""
    while (line := stream.readline(_MAX_HEADER_BYTES)).strip():
        name, _, value = line.decode("utf-8", "replace").partition(":")
        yield name.strip().lower(), value.strip()


Reader = Callable[[IO[bytes], str, Fields], Iterator[Document]]

READERS: Registry[Reader] = Registry(
    "readers",
    {
        "txt": read_text,
        "md": read_text,
        "docx": partial(_read_parsed, _parse_docx),
        "epub": partial(_read_parsed, _parse_epub),
        "odt": partial(_read_parsed, parse_odt),
        "rtf": partial(_read_parsed, parse_rtf),
        "pdf": partial(_read_parsed, parse_pdf),
        "scriv": partial(_read_parsed, parse_scriv),
        **{kind: partial(_read_texts, kind) for kind in TABLES},
        "wet": _read_wet,
    },
)
"""Readers by file suffix."""


def document_of_row(row: dict[str, Any], where: str, fallback_id: str, fields: Fields) -> Document:
    if fields.text not in row:
        raise InputError(_no_field(where, fields.text, list(row), "`text`"))
    text = row[fields.text]
    is_list = isinstance(text, list) and all(isinstance(entry, str) for entry in text)
    lines = text if is_list else None
    if lines is not None:
        text = "\n".join(lines)
    if text is not None and not isinstance(text, str):
        raise InputError(
            f"{where}: field {fields.text!r} contains {_KINDS.get(type(text), 'no text')}, not "
            "text; set the field that contains the text with `text_field`"
        )
    given = row.get(fields.id)
    if given is None and fields.id != "id":
        raise InputError(_no_field(where, fields.id, list(row), "`id_field`"))
    meta = {key: row[key] for key in row if key not in (fields.text, fields.id)}
    if lines is not None:
        # Text as a list is joined from its lines, and the list is kept for those who need it.
        meta[fields.text] = lines
    author, prompt = meta.pop("author", None), meta.pop("prompt_id", None)
    return Document(
        id=without_controls(_clean(fallback_id if given is None else str(given))),
        text=_clean(text or ""),
        author=None if author is None else str(author),
        prompt_id=None if prompt is None else str(prompt),
        meta=meta,
    )


def _no_field(where: str, field: str, present: list[str], option: str) -> str:
    shown = ", ".join(map(repr, present[:12])) or "none"
    return f"{where}: no field {field!r}; the fields are {shown}; set one with {option}"


def _whole(stream: IO[bytes], name: str) -> bytes:
    """The whole stream, which must not exceed the memory limit."""
    whole = io.BytesIO()
    while chunk := stream.read(1 << 20):
        if whole.tell() + len(chunk) > _MAX_UNPACKED_BYTES:
            raise InputError(f"{name}: larger than 1 GiB; split it")
        whole.write(chunk)
    return whole.getvalue()


def _decode(data: bytes, name: str) -> str:
    if data.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        raise InputError(f"{name}: is UTF-32; save the text as UTF-8")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif b"\x00" in data:
        raise InputError(
            f"{name}: contains NUL bytes, so it is not plain text; save it as UTF-8 text"
        )
    else:
        encoding = "utf-8-sig"
    try:
        return _clean(data.decode(encoding))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(
            f"{name}, line {line}: not {encoding.removesuffix('-sig').upper()} "
            f"(byte {error.start:,}); save the text as UTF-8"
        ) from error


def _lines(stream: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(_MAX_LINE_BYTES):
        number += 1
        if len(line) == _MAX_LINE_BYTES and not line.endswith(b"\n"):
            raise InputError(f"{name}, line {number}: longer than 1 GiB; split the document")
        yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


def _html_paragraphs(page: bytes) -> list[tuple[int, str]]:
    """The blocks of an (X)HTML page, each with its level if it is a heading, else 0.

    Markup, scripts and styles are left out.
    """
    from lxml import html

    if not page.strip():
        return []
    parser = html.HTMLParser(encoding="utf-8", no_network=True)
    tree = html.document_fromstring(page, parser=parser)
    check_memory(parser.error_log)
    for element in tree.xpath("//script | //style | //head"):
        element.drop_tree()
    for element in tree.iter(*_HEADINGS):
        if any(text.strip() for text in element.itertext()):
            # A line break within a heading does not end it.
            words = " ".join(" ".join(element.itertext()).split())
            for inner in list(element):
                element.remove(inner)
            element.text = f"{_MARK}{element.tag[1]}{words.replace(_MARK, ' ')}"
    for element in tree.iter(*_BLOCKS):
        element.tail = "\n\n" + (element.tail or "")
        before = "" if element.tag == "br" else "\n\n"
        element.text = before + (element.text or "")
    paragraphs = re.split(r"\n\s*\n", tree.text_content())
    texts = filter(None, (" ".join(paragraph.split()) for paragraph in paragraphs))
    return [
        (int(text[1]), text[2:]) if text.startswith(_MARK) else (0, text.replace(_MARK, " "))
        for text in texts
    ]


def _check_archive(data: io.BytesIO, name: str) -> None:
    """Reject what is not an archive, or would unpack to more than the memory limit."""
    try:
        with zipfile.ZipFile(data) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile as error:
        raise InputError(
            f"{name}: damaged, or its contents do not match its extension; save it again"
        ) from error
    if unpacked > _MAX_UNPACKED_BYTES:
        raise InputError(f"{name}: would unpack to {unpacked / 1e9:.1f} GB; split it")
    data.seek(0)


def _clean(text: str) -> str:
    """Replace lone surrogates, which no file can contain, by U+FFFD; the length stays the same."""
    return text if text.isascii() else _lone_surrogates.sub("\ufffd", text)


def _stem(name: str) -> str:
    path = PurePosixPath(name)
    return path.name.split(".")[0] or path.name

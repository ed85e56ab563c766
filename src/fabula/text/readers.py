"""One reader per format: from a stream of bytes to documents.

The published files of the Children's Book Test (Hill et al. 2016, arXiv 1511.02301), recognised by
their content, hold Penn Treebank tokens. An item file (`cbtest_CN_test_2500ex.txt`) has 21 numbered
lines per item, the last with XXXXX for a word, a tab, the word, and candidates separated by bars. A
book file (`cbt_test.txt`) has a line `_BOOK_TITLE_ : NAME` and one sentence per line.
"""

from __future__ import annotations

import csv
import io
import json
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple

from fabula.core.errors import InputError, without_controls
from fabula.core.packages import Registry, pyarrow
from fabula.core.store import CHANGED, was_changed
from fabula.core.types import Document
from fabula.text.emphasis import unmarked
from fabula.text.isolation import Limits
from fabula.text.manuscripts import (
    ParsedText,
    opened_archive,
    parse_docx,
    parse_epub,
    parse_odt,
    parse_rtf,
    parse_scriv,
)
from fabula.text.pdf import parse_pdf

_N_LINES = 21
_ITEM = re.compile(r"\s*1 [^\n]*\n\s*(?:\d+ [^\n]*\n\s*){19}21 [^\n]*XXXXX[^\n]*\t[^\n]*\|")
_BOOK = re.compile(r"\s*_BOOK_TITLE_ :")
_LINE = re.compile(r"(\d+) (.*\S)\s*")
_SHOWN = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "``": '"', "`": "'", "''": '"',
}  # fmt: skip
# Tokens that the next one follows without a space, and those that follow the one before so.
_OPENS = frozenset("([{$£#") | {"-LRB-", "-LSB-", "-LCB-", "``", "`", "--"}
_CLOSES = frozenset(")]},.;:!?%") | {"-RRB-", "-RSB-", "-RCB-", "...", "''", "'", "--"}
_CLITIC = re.compile(r"(?:n't|'(?:s|m|d|re|ve|ll))$", re.IGNORECASE)
# Words that the tokeniser splits, by their halves.
_HALVES = {
    ("can", "not"): "cannot", ("gon", "na"): "gonna", ("got", "ta"): "gotta",
    ("lem", "me"): "lemme", ("gim", "me"): "gimme", ("wan", "na"): "wanna", ("'t", "is"): "'tis",
    ("'t", "was"): "'twas", ("d'", "ye"): "d'ye", ("more", "'n"): "more'n",
}  # fmt: skip


def detokenise(tokens: Sequence[str]) -> str:
    """The sentence with these tokens: quotes attached to their words, contractions joined.

    A grave accent opens a single quotation; a lone `'` closes one or marks a possessive, and
    follows its word either way. Double quotes become straight ones; `--` joins its words.
    """
    parts: list[str] = []
    glue = True
    is_open = False
    whole: list[str] = []
    for token in tokens:
        # Split words are rejoined, and capitals kept.
        last = whole[-1] if whole else ""
        if (word := _HALVES.get((last.lower(), token.lower()))) is None:
            whole.append(token)
            continue
        first = int(word.startswith("'"))
        is_capital = (last + token).lstrip("'")[:1].isupper()
        begin = word[first : first + 1].upper() if is_capital else word[first : first + 1]
        whole[-1] = word[:first] + begin + word[first + 1 :]
    for k, token in enumerate(whole):
        if token == "'":
            # It opens a quotation after all if none is open, it follows a comma, a colon or
            # nothing, and a capital follows: `said he , ' I know`.
            before = [token for token in whole[:k] if token in ("`", "'")]
            is_closed = not before or before[-1] == "'"
            is_capital = "".join(whole[k + 1 : k + 2])[:1].isupper()
            if is_closed and is_capital and (k == 0 or whole[k - 1] in (",", ":", ";", "--")):
                token = "`"
        if token == '"':
            token = "''" if is_open else "``"
            is_open = not is_open
        sticks = token in _CLOSES or _CLITIC.fullmatch(token)
        parts.append(("" if glue or sticks else " ") + _SHOWN.get(token, token))
        glue = token in _OPENS
    return "".join(parts)


def cbt_documents(text: str, name: str, stem: str) -> Iterator[Document] | None:
    """A document for each item or book of such a file; None if the text is something else.

    `meta["sentences"]` are the tokens; for an item (`meta["cbt_item"]`, counted from 1) they are
    its context and the last sentence with the answer filled in, without numbers and candidates.
    Raises `InputError` at an item that is damaged.
    """
    if _ITEM.match(text):
        return _items(text, name, stem)
    if _BOOK.match(text):
        books = cbt_books(text)
        return (_document(title, sentences, {"title": title}) for title, sentences in books)
    return None


def cbt_books(text: str) -> Iterator[tuple[str, list[str]]]:
    """The title and sentences of each book in a book file."""
    for part in re.split(r"^_BOOK_TITLE_ :", text, flags=re.MULTILINE)[1:]:
        title, _, rest = part.partition("\n")
        yield title.strip().removesuffix(".txt.out"), [line for line in rest.splitlines() if line]


def _items(text: str, name: str, stem: str) -> Iterator[Document]:
    sentences: list[str] = []
    n_items = line_number = 0
    for line_number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where, expected = f"{name}, line {line_number}", len(sentences) + 1
        match = _LINE.fullmatch(line)
        if match is None or int(match[1]) != expected:
            raise InputError(
                f"{where}: does not begin with {expected}, as the next line of a Children's Book "
                "Test item should; restore the item, or remove it"
            )
        sentence = match[2]
        if expected == _N_LINES:
            sentence, *rest = sentence.split("\t")
            answer = rest[0].strip() if rest else ""
            if "XXXXX" not in sentence or not answer:
                raise InputError(
                    f"{where}: the question of a Children's Book Test item needs XXXXX, a tab and "
                    "the answer; restore the item, or remove it"
                )
            sentence = sentence.replace("XXXXX", answer)
        sentences.append(sentence)
        if expected == _N_LINES:
            n_items += 1
            meta = {"title": f"Children's Book Test, item {n_items}", "cbt_item": n_items}
            yield _document(f"{stem}:item-{n_items}", sentences, meta)
            sentences = []
    if sentences:
        raise InputError(
            f"{name}, line {line_number}: the last item of the Children's Book Test has "
            f"{len(sentences)} of {_N_LINES} lines; add the others, or remove it"
        )


def _document(name: str, sentences: Sequence[str], meta: dict[str, object]) -> Document:
    text = " ".join(detokenise(sentence.split()) for sentence in sentences)
    return Document(id=name, text=text, meta={**meta, "sentences": list(sentences)})


_MAX_LINE_BYTES = 1 << 30
_MAX_UNPACKED_BYTES = 1 << 30
_MAX_HEADER_BYTES = 1 << 16
_KINDS = {int: "a number", float: "a number", bool: "a boolean", list: "a list"}
# A novel of 300,000 words takes 0.2 s as a .docx of 0.7 MB; tables unpack over 20 MB a second.
_FILE_LIMITS, TABLE_LIMITS = Limits(2 << 30, 10.0), Limits(8 << 30, 10.0)
_LETTERS = re.compile(r"[A-Z]{1,3}")
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
    if not data:
        return
    if data.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        raise InputError(f"{name}: is UTF-32; save the text as UTF-8")
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    if encoding != "utf-16" and b"\x00" in data:
        raise InputError(
            f"{name}: contains NUL bytes, so it is not plain text; save it as UTF-8 text"
        )
    try:
        text = _clean(data.decode(encoding))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(
            f"{name}, line {line}: not {encoding.removesuffix('-sig').upper()} "
            f"(byte {error.start:,}); save the text as UTF-8"
        ) from error
    documents = cbt_documents(text, name, _stem(name))
    if documents is not None:
        yield from documents
        return
    heading = _heading.match(text) if ".md" in name.lower() else None
    title = unmarked(text, *heading.span(1)) if heading else _stem(name)
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
    for number, line in enumerate(iter(partial(stream.readline, _MAX_LINE_BYTES), b""), 1):
        where = f"{name}, line {number}"
        if len(line) == _MAX_LINE_BYTES and not line.endswith(b"\n"):
            raise InputError(f"{where}: longer than 1 GiB; split the document")
        line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if not line.strip():
            continue
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
    """The rows of a workbook's first sheet, below its header (ECMA-376, parts 1 and 2).

    Text, numbers and booleans; formulas count by their last result, as saved in the file.
    """
    data = _whole(stream, name)
    _check_archive(data, name)
    header: list[str] | None = None
    with opened_archive(data, name, "workbook") as (book, part):
        links = part("xl/_rels/workbook.xml.rels")
        targets = {link.get("Id"): link.get("Target") for link in links}
        sheet = _all(part("xl/workbook.xml"), "sheet")[0]
        sheet_id = next((value for name, value in sheet.items() if name.endswith("}id")), "")
        path = posixpath.normpath(posixpath.join("/xl", targets[sheet_id])).lstrip("/")
        shared: list[str] = []
        if "xl/sharedStrings.xml" in book.namelist():
            shared = [_cell_text(item) for item in _all(part("xl/sharedStrings.xml"), "si")]
        number = 0
        for row in _all(part(path), "row"):
            number = int(row.get("r") or number + 1)
            by_column: dict[int, Any] = {}
            for cell in _all(row, "c"):
                place = len(by_column)
                if reference := cell.get("r"):
                    # `B7` is in the second column.
                    letters = _LETTERS.match(reference)
                    if letters is None:
                        raise ValueError(f"{reference!r} is not a cell")
                    place = reduce(lambda n, letter: 26 * n + ord(letter) - 64, letters[0], 0) - 1
                kind = cell.get("t", "n")
                value = "".join(cell.xpath("./*[local-name()='v']/text()"))
                if kind == "inlineStr":
                    by_column[place] = _cell_text(cell)
                elif kind == "s" and value:
                    by_column[place] = shared[int(value)]
                elif kind == "b" and value:
                    by_column[place] = value == "1"
                else:
                    by_column[place] = float(value) if kind == "n" and value else value or None
            cells = [by_column.get(k) for k in range(max(by_column, default=-1) + 1)]
            if header is None:
                header = [str(cell or "") for cell in cells]
            elif any(cell is not None for cell in cells):
                values = dict(zip(header, [*cells, *[None] * len(header)], strict=False))
                yield Row(number, f"{name}, row {number}", values)


def _all(element: Any, name: str) -> Any:
    return element.xpath(f".//*[local-name()='{name}']")


def _cell_text(element: Any) -> str:
    # Phonetic guides, which Japanese tables store beside a word, are not part of it.
    pieces = element.xpath(".//*[local-name()='t'][not(ancestor::*[local-name()='rPh'])]/text()")
    return re.sub(r"_x([0-9A-F]{4})_", lambda match: chr(int(match[1], 16)), "".join(pieces))


@dataclass(frozen=True, slots=True)
class Table:
    """A format whose rows are read one by one."""

    rows: Callable[[IO[bytes], str], Iterator[Row]]
    limits: Limits | None = None
    """Those of the process that reads it; None where a small file cannot expand to a large one."""

    def __call__(self, stream: IO[bytes], name: str, fields: Fields) -> Iterator[Document]:
        """One document per row."""
        # What is read as a text, people may have edited.
        for number, where, row, _ in self.rows(stream, name):
            yield document_of_row(row, where, f"{_stem(name)}:{number}", fields)

    def unchanged(self, stream: IO[bytes], name: str) -> Iterator[Document]:
        """Each row as the `meta` of a document without text, whose id is the place of the row."""
        for _, where, row, is_changed in self.rows(stream, name):
            if is_changed:
                raise InputError(CHANGED.format(where=where))
            yield Document(where, "", meta=row)


@dataclass(frozen=True, slots=True)
class Manuscript:
    """A format whose files are one document each, with blank lines between paragraphs.

    `meta["headings"]` has the start, level and words of each heading: without it a text has lines.
    `meta["italic_places"]` has what is in italics, where that is read (in Word files).
    """

    parse: Callable[[bytes, str], ParsedText]
    is_archive: bool = False
    """Others are checked as archives where they begin as one."""
    limits: Limits = _FILE_LIMITS

    def __call__(self, stream: IO[bytes], name: str, fields: Fields) -> Iterator[Document]:
        data = _whole(stream, name)
        if self.is_archive or data.startswith(b"PK"):
            _check_archive(data, name)
        parsed = self.parse(data, name)
        texts = [_clean(text) for _, text in parsed.paragraphs]
        meta: dict[str, Any] = {"title": parsed.title or _stem(name)}
        headings, starts = [], []
        place = 0
        for (level, _), text in zip(parsed.paragraphs, texts, strict=True):
            title = text.strip()
            starts.append(place)
            if level and title:
                headings.append([place + text.index(title), level, title])
            place += len(text) + len("\n\n")
        meta["headings"] = headings
        if parsed.italics:
            meta["italic_places"] = [[starts[k] + a, starts[k] + b] for k, a, b in parsed.italics]
        yield Document(without_controls(name), "\n\n".join(texts), parsed.author or None, meta=meta)


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
        # Lower-case names and values, up to the next empty line.
        headers = {}
        while (header := stream.readline(_MAX_HEADER_BYTES)).strip():
            key, _, value = header.decode("utf-8", "replace").partition(":")
            headers[key.strip().lower()] = value.strip()
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


Reader = Callable[[IO[bytes], str, Fields], Iterator[Document]]

_TABLES = {
    "jsonl": Table(_jsonl_rows),
    "csv": Table(_csv_rows),
    "tsv": Table(_csv_rows),
    "parquet": Table(_parquet_rows, TABLE_LIMITS),
    "xlsx": Table(_xlsx_rows, TABLE_LIMITS),
}
TABLES = tuple(_TABLES)
"""The suffixes of files whose rows are read one by one."""
READERS: Registry[Reader] = Registry(
    "readers",
    {
        "txt": read_text,
        "md": read_text,
        "docx": Manuscript(parse_docx, is_archive=True),
        "epub": Manuscript(parse_epub, is_archive=True),
        "odt": Manuscript(parse_odt),
        "rtf": Manuscript(parse_rtf),
        # A page of a PDF takes about 0.04 s, whatever its size.
        "pdf": Manuscript(parse_pdf, limits=Limits(2 << 30, 120.0)),
        "scriv": Manuscript(parse_scriv),
        **_TABLES,
        "wet": _read_wet,
    },
)


def document_of_row(row: dict[str, Any], where: str, fallback_id: str, fields: Fields) -> Document:
    if fields.text not in row:
        raise InputError(_no_field(where, fields.text, list(row), "`text`"))
    text = row[fields.text]
    if is_list := isinstance(text, list) and all(isinstance(entry, str) for entry in text):
        text = "\n".join(text)
    if text is not None and not isinstance(text, str):
        raise InputError(
            f"{where}: field {fields.text!r} contains {_KINDS.get(type(text), 'no text')}, not "
            "text; set the field that contains the text with `text_field`"
        )
    id_ = row.get(fields.id)
    if id_ is None and fields.id != "id":
        raise InputError(_no_field(where, fields.id, list(row), "`id_field`"))
    meta = {key: row[key] for key in row if key not in (fields.text, fields.id)}
    if is_list:
        # Text as a list is joined from its lines, and the list is kept for those who need it.
        meta[fields.text] = row[fields.text]
    author, prompt = meta.pop("author", None), meta.pop("prompt_id", None)
    return Document(
        id=without_controls(_clean(fallback_id if id_ is None else str(id_))),
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


def _check_archive(data: bytes, name: str) -> None:
    """Reject what is not an archive, or would unpack to more than the memory limit."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile as error:
        raise InputError(
            f"{name}: damaged, or its contents do not match its extension; save it again"
        ) from error
    if unpacked > _MAX_UNPACKED_BYTES:
        raise InputError(f"{name}: would unpack to {unpacked / 1e9:.1f} GB; split it")


def _clean(text: str) -> str:
    """Replace lone surrogates, which no file can contain, by U+FFFD; the length stays the same."""
    return text if text.isascii() else _lone_surrogates.sub("\ufffd", text)


def _stem(name: str) -> str:
    path = PurePosixPath(name)
    return path.name.split(".")[0] or path.name

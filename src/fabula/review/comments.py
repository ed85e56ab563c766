"""Export findings for writers as Word comments."""

from __future__ import annotations

import copy
import io
import re
import zipfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from fabula.core.errors import InputError
from fabula.core.store import write_whole
from fabula.core.types import Document
from fabula.review.findings import marked_findings
from fabula.show.parts import Finding, Review
from fabula.style.part import right_of
from fabula.text.chapters import chapters_of

_AUTHOR, _INITIALS = "Fabula", "Fa"
_IN_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SHOWN = ("t", "tab", "br", "cr", "noBreakHyphen", "ptab")
"""The text elements of a run, as read by python-docx."""
# The earliest date in a zip archive: the same comments give the same bytes.
_DAY = (1980, 1, 1, 0, 0, 0)
_DAMAGE = KeyError, ValueError, SyntaxError, zipfile.BadZipFile
"""Errors of reading what is not a Word document."""
_MARKDOWN = re.compile(r"(#{1,6}) +(?=[^\n]+\Z)")
_Placed = tuple[int, int, Any]
"""A run, half-open in characters of the text, and its element."""


def check_comments_path(path: Path, n_texts: int) -> None:
    """Raise `InputError` if no comments can be written to `path`."""
    if path.suffix.lower() != ".docx":
        raise InputError(f"{path}: comments are written to .docx; use this ending")
    if path.is_file():
        core = b""
        with suppress(zipfile.BadZipFile, KeyError), zipfile.ZipFile(path) as archive:
            core = archive.read("docProps/core.xml")
        if f"{_AUTHOR}</cp:lastModifiedBy>".encode() not in core:
            raise InputError(f"{path}: was not written by Fabula; choose another name")
    if n_texts != 1:
        raise InputError(f"{path}: comments need a single text; name one, not {n_texts:,}")


def write_comments(path: Path, review: Review, source: Path | None = None) -> int:
    """Write the findings of a review of one text as comments; return how many had no place.

    source: the .docx that the text was read from, whose formatting is kept; without it, or for
    another kind of file, a plain document is created. Raises `InputError`.
    """
    check_comments_path(path, len(review.texts))
    (text,) = review.texts
    is_word = source is not None and source.suffix.lower() == ".docx"
    data = source.read_bytes() if source is not None and is_word else None
    commented, n_lost = with_comments(text.document, marked_findings(text), data, name=str(source))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, commented)
    return n_lost


def with_comments(
    document: Document,
    findings: Sequence[Finding],
    source: bytes | None = None,
    *,
    italics: Sequence[tuple[int, int]] = (),
    name: str = "draft",
) -> tuple[bytes, int]:
    """A Word document of a text with comments at these findings, and how many had no place.

    source: the .docx that the text was read from, called `name` in errors; None for a new document
    with its paragraphs and headings, and `italics` at these places, half-open in characters. The
    same text and findings give the same bytes. Raises `InputError`.
    """
    import docx
    from docx.oxml.ns import qn
    from docx.text.run import Run

    if source is None:
        word = docx.Document()
        runs = _write_text(word, document, italics)
    else:
        word = _opened(source, name)
        n_chars = sum(len(paragraph.text) + 2 for paragraph in _paragraphs(word)) - 2
        if n_chars != len(document.text):
            raise InputError(f"{name}: has changed since it was read; run the same command again")
        runs = _runs(word)
    pieces = _pieces(runs, {edge for finding in findings for edge in (finding.start, finding.end)})
    n_lost = 0
    for finding in findings:
        inside = [run for a, b, run in pieces if a >= finding.start and b <= finding.end]
        if not inside:
            n_lost += 1
            continue
        ends = [Run(run, word) for run in (inside[0], inside[-1])]
        right = right_of(finding.kind)
        words = f"{finding.title}{f' ({right})' if right else ''}. {finding.why}"
        comment = word.add_comment(ends, _IN_NO_XML.sub("\ufffd", words), _AUTHOR, _INITIALS)
        # A timestamp would make every file different.
        del comment._comment_elm.attrib[qn("w:date")]
    word.core_properties.last_modified_by = _AUTHOR
    plain = io.BytesIO()
    word.save(plain)
    out = io.BytesIO()
    with zipfile.ZipFile(plain) as archive, zipfile.ZipFile(out, "w") as again:
        for member in archive.namelist():
            entry = zipfile.ZipInfo(member, _DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            again.writestr(entry, archive.read(member))
    return out.getvalue(), n_lost


def _opened(source: bytes, name: str) -> Any:
    import docx
    from docx.opc.exceptions import PackageNotFoundError

    try:
        return docx.Document(io.BytesIO(source))
    except (*_DAMAGE, PackageNotFoundError) as error:
        raise InputError(f"{name}: not a Word document; save it again as .docx") from error


def _write_text(word: Any, document: Document, italics: Sequence[tuple[int, int]]) -> list[_Placed]:
    """Write a text into an empty document: its runs with their places in the text.

    Headings are those that are marked in the file or in Markdown, and those of chapters.
    """
    text, chapters = document.text, chapters_of(document)
    levels = {start: level for start, level, _ in document.meta.get("headings") or ()}
    edges = sorted({edge for place in italics for edge in place})
    runs: list[_Placed] = []
    begin = 0
    for written in text.split("\n\n"):
        end, first = begin + len(written), begin + len(written) - len(written.lstrip())
        mark = _MARKDOWN.match(text, first, end)
        is_chapter = any(chapter.start <= first < chapter.body for chapter in chapters)
        level = len(mark[1]) if mark else levels.get(first, 1 if is_chapter and written else 0)
        paragraph = word.add_heading("", min(level, 9)) if level else word.add_paragraph()
        start = mark.end() if mark else begin
        inner = edges[bisect_right(edges, start) : bisect_left(edges, end)]
        for a, b in pairwise([start, *inner, end]):
            run = paragraph.add_run(_IN_NO_XML.sub("\ufffd", text[a:b]))
            if any(low <= a and b <= high for low, high in italics):
                run.italic = True
            runs.append((a, b, run._r))
        begin = end + len("\n\n")
    return runs


def _paragraphs(word: Any) -> Iterator[Any]:
    """As joined by `fabula.text.readers`: including those of tables, in order."""
    from docx.oxml.ns import qn
    from docx.text.paragraph import Paragraph

    for element in word.element.body.iter(qn("w:p")):
        yield Paragraph(element, word)


def _runs(word: Any) -> list[_Placed]:
    """The runs of a document with their places in its text."""
    runs = []
    begin = 0
    for paragraph in _paragraphs(word):
        end = begin
        for content in paragraph.iter_inner_content():
            for run in getattr(content, "runs", [content]):
                runs.append((end, end + len(run.text), run._r))
                end += len(run.text)
        begin += len(paragraph.text) + 2
    return runs


def _pieces(runs: Sequence[_Placed], edges: set[int]) -> list[_Placed]:
    """The runs that contain text, split so that none crosses a boundary."""
    from docx.oxml.ns import qn

    pieces = []
    for start, end, run in runs:
        piece = run
        for edge in sorted(edge for edge in edges if start < edge < end):
            # Keep a run's first characters, and move the rest into a new one after it.
            rest = copy.deepcopy(piece)
            piece.addnext(rest)
            n_seen = 0
            for ours, theirs in zip(list(piece), list(rest), strict=True):
                if ours.tag == qn("w:rPr"):
                    continue
                shown = str(ours) if ours.tag in {qn(f"w:{name}") for name in _SHOWN} else ""
                before = edge - start - n_seen
                n_seen += len(shown)
                if before >= len(shown):
                    rest.remove(theirs)
                elif before <= 0:
                    piece.remove(ours)
                else:
                    # Only text elements have more than one character.
                    ours.text, theirs.text = shown[:before], shown[before:]
                    for part in (ours, theirs):
                        part.set(qn("xml:space"), "preserve")
            pieces.append((start, edge, piece))
            start, piece = edge, rest
        if end > start:
            pieces.append((start, end, piece))
    return pieces

"""Export findings for writers as Word comments."""

from __future__ import annotations

import copy
import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from fabula.core.errors import InputError
from fabula.core.store import write_whole
from fabula.review.findings import marked_findings
from fabula.show.parts import Review
from fabula.style.part import right_of

_AUTHOR, _INITIALS = "Fabula", "Fa"
_IN_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SHOWN = ("t", "tab", "br", "cr", "noBreakHyphen", "ptab")
"""The text elements of a run, as read by python-docx."""
# The earliest date in a zip archive: the same comments give the same bytes.
_DAY = (1980, 1, 1, 0, 0, 0)
_DAMAGE = KeyError, ValueError, SyntaxError, zipfile.BadZipFile
"""Errors of reading what is not a Word document."""


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
    import docx
    from docx.opc.exceptions import PackageNotFoundError
    from docx.oxml.ns import qn
    from docx.text.run import Run

    (text,) = review.texts
    findings, whole = marked_findings(text), text.document.text
    if source is None or source.suffix.lower() != ".docx":
        word = docx.Document()
        for paragraph in whole.split("\n\n"):
            word.add_paragraph(_IN_NO_XML.sub("\ufffd", paragraph))
    else:
        try:
            word = docx.Document(str(source))
        except (*_DAMAGE, PackageNotFoundError) as error:
            raise InputError(f"{source}: not a Word document; save it again as .docx") from error
        if sum(len(paragraph.text) + 2 for paragraph in _paragraphs(word)) - 2 != len(whole):
            raise InputError(f"{source}: has changed since it was read; run the same command again")
    pieces = _pieces(word, {edge for finding in findings for edge in (finding.start, finding.end)})
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
    path.parent.mkdir(parents=True, exist_ok=True)
    word.core_properties.last_modified_by = _AUTHOR
    plain = io.BytesIO()
    word.save(plain)
    out = io.BytesIO()
    with zipfile.ZipFile(plain) as archive, zipfile.ZipFile(out, "w") as again:
        for name in archive.namelist():
            entry = zipfile.ZipInfo(name, _DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            again.writestr(entry, archive.read(name))
    write_whole(path, out.getvalue())
    return n_lost


def _paragraphs(word: Any) -> Iterator[Any]:
    """As joined by `fabula.text.readers`: including those of tables, in order."""
    from docx.oxml.ns import qn
    from docx.text.paragraph import Paragraph

    for element in word.element.body.iter(qn("w:p")):
        yield Paragraph(element, word)


def _pieces(word: Any, edges: set[int]) -> list[tuple[int, int, Any]]:
    """The runs that contain text with their places, split so that none crosses a boundary."""
    from docx.oxml.ns import qn

    runs = []
    begin = 0
    for paragraph in _paragraphs(word):
        end = begin
        for content in paragraph.iter_inner_content():
            for run in getattr(content, "runs", [content]):
                runs.append((end, end + len(run.text), run._r))
                end += len(run.text)
        begin += len(paragraph.text) + 2
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

"""OpenDocument texts (.odt), as LibreOffice writes them."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from fabula.errors import InputError
from fabula.text.documents import ParsedText, check_memory

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_UNREAD = {f"{_OFFICE}annotation", f"{_OFFICE}forms"} | {
    f"{_TEXT}{name}"
    for name in ("tracked-changes", "note", "sequence-decls", "table-of-content", "ruby-text")
}
"""Elements that are not part of the running text."""
_BLOCKS = (f"{_TEXT}p", f"{_TEXT}h")
_MAX_SPACES = 1_000
_MANIFEST = "META-INF/manifest.xml"


def parse_odt(data: bytes, name: str) -> ParsedText:
    """Paragraphs and headings in reading order, tables included (OpenDocument 1.3, part 3).

    Notes, comments and text deleted under recorded changes are left out. Raises `InputError`.
    """
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            manifest = archive.read(_MANIFEST) if _MANIFEST in names else b""
            if b"encryption-data" in manifest:
                raise InputError(f"{name}: is password-protected; save it again without a password")
            tree = etree.fromstring(archive.read("content.xml"), parser)
            meta = archive.read("meta.xml") if "meta.xml" in names else b"<meta/>"
            about = etree.fromstring(meta, parser)
    except (KeyError, RuntimeError, zipfile.BadZipFile, etree.XMLSyntaxError) as error:
        check_memory(getattr(error, "error_log", ()))
        raise InputError(f"{name}: not a readable ODT text ({error}); save it again") from error
    body = tree.find(f"{_OFFICE}body/{_OFFICE}text")
    if body is None:
        raise InputError(f"{name}: not a text document; save the text as .odt")
    paragraphs: list[tuple[int, str]] = []
    # Paragraphs within a paragraph, as in a frame, come before the one that contains them.
    for element in body.iter(*_BLOCKS):
        if any(above.tag in _UNREAD for above in element.iterancestors()):
            continue
        words = "".join(_words(element)).strip()
        level = 0
        if element.tag == f"{_TEXT}h":
            given = element.get(f"{_TEXT}outline-level", "1")
            level = int(given) if given.isdecimal() and len(given) < 3 else 1
        if words:
            paragraphs.append((level, words))
    return ParsedText(
        paragraphs,
        about.xpath("string(//*[local-name()='title'])").strip(),
        about.xpath(
            "string(//*[local-name()='initial-creator'] | //*[local-name()='creator'])"
        ).strip(),
    )


def _words(element: Any) -> list[str]:
    """The words of a paragraph itself, without those of paragraphs inside it."""
    found = [element.text or ""]
    for child in element:
        if child.tag == f"{_TEXT}s":
            given = child.get(f"{_TEXT}c", "1")
            is_number = given.isdecimal() and len(given) < 5
            found.append(" " * min(int(given) if is_number else 1, _MAX_SPACES))
        elif child.tag == f"{_TEXT}tab":
            found.append("\t")
        elif child.tag == f"{_TEXT}line-break":
            found.append("\n")
        elif isinstance(child.tag, str) and child.tag not in {*_UNREAD, *_BLOCKS}:
            found += _words(child)
        found.append(child.tail or "")
    return found

"""The formats of word processors and e-books: the paragraphs of a file, and its headings.

A Scrivener project is a folder that ends in .scriv: an XML file with its binder (.scrivx), and the
text of each of its items as RTF, in `Files/Data/UUID/content.rtf` (Scrivener 3) or
`Files/Docs/ID.rtf` (1 and 2). Here it is an archive of these files.
"""

from __future__ import annotations

import codecs
import io
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

from fabula.core.errors import DAMAGE, InputError

_MARK = "\ufdd0"
"""Precedes the level of a heading during parsing; a code point without a character."""
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_HTML_BLOCKS = (
    *("p", "div", "li", "blockquote", "br", "tr", "section", "td", "th", "dt", "dd", "hr"),
    *("pre", "figure", "figcaption", *_HEADINGS),
)
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_UNREAD = {f"{_OFFICE}annotation", f"{_OFFICE}forms"} | {
    f"{_TEXT}{name}"
    for name in ("tracked-changes", "note", "sequence-decls", "table-of-content", "ruby-text")
}
"""Elements that are not part of the running text."""
_ODT_BLOCKS = (f"{_TEXT}p", f"{_TEXT}h")
_MAX_SPACES = 1_000
_MANIFEST = "META-INF/manifest.xml"
_outline = re.compile(r"\\outlinelevel([0-8])(?!\d) ?")
_level = re.compile(f"{_MARK}([0-8])")
_code_page = re.compile(rb"\\ansicpg(\d{1,5})")
SCENE_BREAK = "* * *"
"""Separates the texts of one folder: each is a scene."""


class ParsedText(NamedTuple):
    """The paragraphs of a file, and its metadata."""

    paragraphs: list[tuple[int, str]]
    """Each with its level if it is a heading, else 0."""
    title: str = ""
    author: str = ""
    italics: Sequence[tuple[int, int, int]] = ()
    """The number of a paragraph, and what is in italics there: half-open in characters."""


def check_memory(error_log: Iterable[Any]) -> None:
    """Raise `MemoryError` if libxml2 ran out of memory, which it reports as a syntax error."""
    from lxml import etree

    if any(entry.type == etree.ErrorTypes.ERR_NO_MEMORY for entry in error_log):
        raise MemoryError


@contextmanager
def opened_archive(
    data: bytes, name: str, kind: str, *, recover: bool = False
) -> Iterator[tuple[zipfile.ZipFile, Callable[[str], Any]]]:
    """The archive that a file is, and a parser of the XML of its members by their paths.

    `recover` parses what is not well-formed too. Raises `InputError` for what is damaged.
    """
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=recover)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield archive, lambda path: etree.fromstring(archive.read(path), parser)
    except (*DAMAGE, SyntaxError, RuntimeError, zipfile.BadZipFile, etree.LxmlError) as error:
        check_memory(getattr(error, "error_log", ()))
        raise InputError(f"{name}: not a readable {kind} ({error}); save it again") from error


def parse_docx(data: bytes, name: str) -> ParsedText:
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
    paragraphs: list[tuple[int, str]] = []
    italics: list[tuple[int, int, int]] = []
    for paragraph in (Paragraph(p, word) for p in word.element.body.iter(qn("w:p"))):
        start = 0
        for content in paragraph.iter_inner_content():
            for run in getattr(content, "runs", [content]):
                end = start + len(run.text)
                # In italics itself, or by a style of its own (Emphasis).
                styled = run.style.font.italic if run.italic is None and run._r.style else None
                if run.italic or styled:
                    italics.append((len(paragraphs), start, end))
                start = end
        # A heading by its style, or by one that this is based on.
        level, style = 0, paragraph.style
        while style is not None:
            if match := re.fullmatch(r"heading (\d)", (style.name or "").casefold()):
                level = int(match[1])
                break
            style = style.base_style
        paragraphs.append((level, paragraph.text))
    about = word.core_properties
    return ParsedText(paragraphs, about.title, about.author, italics)


def parse_epub(data: bytes, name: str) -> ParsedText:
    """A book's chapters in reading order."""
    with opened_archive(data, name, "EPUB", recover=True) as (book, part):
        container = part("META-INF/container.xml")
        package_path = container.xpath("string(//*[local-name()='rootfile']/@full-path)")
        package = part(package_path)
        folder = PurePosixPath(package_path).parent
        items = package.xpath("//*[local-name()='manifest']/*[local-name()='item']")
        hrefs = {item.get("id"): item.get("href") for item in items}
        spine = package.xpath("//*[local-name()='spine']/*[local-name()='itemref']")
        paths = (unquote(hrefs[reference.get("idref")]) for reference in spine)
        # A chapter occurs in a book once, however often it is listed (EPUB 3.3, 5.7.3.1).
        whole = dict.fromkeys(posixpath.normpath(str(folder / path)) for path in paths)
        # What cannot be read without a key is often only fonts.
        file, uris = "META-INF/encryption.xml", "//*[local-name()='CipherReference']/@URI"
        encrypted = part(file).xpath(uris) if file in book.namelist() else []
        if any(posixpath.normpath(unquote(uri)) in whole for uri in encrypted):
            raise InputError(f"{name}: its text is encrypted (DRM); use a copy without")
        return ParsedText(
            [paragraph for path in whole for paragraph in _html_paragraphs(book.read(path))],
            package.xpath("string(//*[local-name()='title'])").strip(),
            package.xpath("string(//*[local-name()='creator'])").strip(),
        )


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
    for element in tree.iter(*_HTML_BLOCKS):
        element.tail = "\n\n" + (element.tail or "")
        before = "" if element.tag == "br" else "\n\n"
        element.text = before + (element.text or "")
    paragraphs = re.split(r"\n\s*\n", tree.text_content())
    texts = filter(None, (" ".join(paragraph.split()) for paragraph in paragraphs))
    return [
        (int(text[1]), text[2:]) if text.startswith(_MARK) else (0, text.replace(_MARK, " "))
        for text in texts
    ]


def parse_odt(data: bytes, name: str) -> ParsedText:
    """Paragraphs and headings in reading order, tables included (OpenDocument 1.3, part 3).

    Notes, comments and text deleted under recorded changes are left out. Raises `InputError`.
    """
    title = author = ""
    with opened_archive(data, name, "ODT text") as (archive, part):
        names = archive.namelist()
        if _MANIFEST in names and b"encryption-data" in archive.read(_MANIFEST):
            raise InputError(f"{name}: is password-protected; save it again without a password")
        body = part("content.xml").find(f"{_OFFICE}body/{_OFFICE}text")
        if "meta.xml" in names:
            about = part("meta.xml")
            title = about.xpath("string(//*[local-name()='title'])").strip()
            author = about.xpath(
                "string(//*[local-name()='initial-creator'] | //*[local-name()='creator'])"
            ).strip()
    if body is None:
        raise InputError(f"{name}: not a text document; save the text as .odt")
    paragraphs: list[tuple[int, str]] = []
    # Paragraphs within a paragraph, as in a frame, come before the one that contains them.
    for element in body.iter(*_ODT_BLOCKS):
        if any(above.tag in _UNREAD for above in element.iterancestors()):
            continue
        words = "".join(_odt_words(element)).strip()
        level = 0
        if element.tag == f"{_TEXT}h":
            outline = element.get(f"{_TEXT}outline-level", "1")
            level = int(outline) if outline.isdecimal() and len(outline) < 3 else 1
        if words:
            paragraphs.append((level, words))
    return ParsedText(paragraphs, title, author)


def _odt_words(element: Any) -> list[str]:
    """The words of a paragraph itself, without those of paragraphs inside it."""
    pieces = [element.text or ""]
    for child in element:
        if child.tag == f"{_TEXT}s":
            count = child.get(f"{_TEXT}c", "1")
            is_number = count.isdecimal() and len(count) < 5
            pieces.append(" " * min(int(count) if is_number else 1, _MAX_SPACES))
        elif child.tag == f"{_TEXT}tab":
            pieces.append("\t")
        elif child.tag == f"{_TEXT}line-break":
            pieces.append("\n")
        elif isinstance(child.tag, str) and child.tag not in {*_UNREAD, *_ODT_BLOCKS}:
            pieces += _odt_words(child)
        pieces.append(child.tail or "")
    return pieces


def parse_rtf(data: bytes, name: str) -> ParsedText:
    """Parse the paragraphs of a rich text; notes, headers and footers are left out.

    A heading has an outline level (RTF 1.9.1, paragraph formatting). Raises `InputError`.
    """
    from striprtf.striprtf import rtf_to_text

    if not data.lstrip().startswith(b"{\\rtf"):
        raise InputError(f"{name}: not rich text despite its extension; save it again as .rtf")
    page = _code_page.search(data)
    encoding = f"cp{page[1].decode()}" if page else "cp1252"
    try:
        codecs.lookup(encoding)
    except LookupError:
        encoding = "cp1252"
    text = data.decode(encoding, "replace").replace(_MARK, " ")
    text = _outline.sub(rf"{_MARK}\g<1>", text)
    try:
        plain: str = rtf_to_text(text, encoding=encoding, errors="replace")  # type: ignore[no-untyped-call]
    except (ValueError, IndexError, KeyError, TypeError, LookupError, OverflowError) as error:
        raise InputError(f"{name}: damaged rich text ({error}); save it again as .rtf") from error
    # Characters beyond the first 65,536 are written as surrogate pairs.
    plain = plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    paragraphs = []
    for line in plain.split("\n"):
        level = _level.search(line)
        if words := _level.sub("", line).strip():
            paragraphs.append((int(level[1]) + 1 if level else 0, words))
    return ParsedText(paragraphs)


def parse_scriv(data: bytes, name: str) -> ParsedText:
    """Parse the texts of the draft folder that are to be compiled, in the binder's order.

    The titles of folders, and of texts beside folders, are headings. Research, notes and the trash
    are left out. Raises `InputError`.
    """
    with opened_archive(data, name, "Scrivener project") as (archive, part):
        # By their paths within the project; a packed project may be in a folder of its own.
        parts = [(path, *path.rpartition(".scriv/")) for path in archive.namelist()]
        paths = {rest if head else path: path for path, head, _, rest in parts}
        binder = next((path for path in sorted(paths) if path.endswith(".scrivx")), None)
        if binder is None:
            raise InputError(f"{name}: contains no .scrivx file, so it is not a Scrivener project")
        project = part(paths[binder])
        draft = project.find("Binder/BinderItem[@Type='DraftFolder']")
        if draft is None:
            raise InputError(f"{name}: has no draft folder; open it in Scrivener and save it")
        paragraphs = list(_binder_parts(draft, archive, paths, name, 1))
    if not any(level == 0 for level, _ in paragraphs):
        raise InputError(f"{name}: its draft folder contains no text marked for compiling")
    return ParsedText(paragraphs, project.findtext("ProjectSettings/ProjectTitle") or "")


def _binder_parts(
    item: Any, archive: zipfile.ZipFile, paths: dict[str, str], name: str, level: int
) -> Iterator[tuple[int, str]]:
    """The headings and paragraphs below an item of the binder."""
    has_text = False
    for child in item.findall("Children/BinderItem"):
        included = child.findtext("MetaData/IncludeInCompile")
        # Items without this mark are included by versions that lack the option.
        words = []
        texts = f"Files/Data/{child.get('UUID')}/content.rtf", f"Files/Docs/{child.get('ID')}.rtf"
        path = next((path for path in texts if path in paths), None)
        if included != "No" and path is not None:
            words = parse_rtf(archive.read(paths[path]), f"{name}, {path}").paragraphs
        inner = list(_binder_parts(child, archive, paths, name, level + 1))
        if not words and not inner:
            continue
        title = (child.findtext("Title") or "").strip()
        is_heading = child.get("Type") == "Folder" or bool(inner) or level == 1
        if is_heading and title and not (words and words[0][1].casefold() == title.casefold()):
            yield level, title
        elif is_heading and words:
            words[0] = (level, words[0][1])
        elif has_text and not is_heading:
            yield 0, SCENE_BREAK
        has_text = not inner
        yield from words
        yield from inner

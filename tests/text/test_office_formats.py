"""PDF, RTF, ODT and Scrivener projects, made here, are read as their writers meant them."""

import io
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.text import find_files, read_documents
from fabula.text.isolation import Limits
from fabula.text.readers import READERS

Place = tuple[float, float, str]


def named(**values: Any) -> DictionaryObject:
    return DictionaryObject({NameObject(f"/{name}"): value for name, value in values.items()})


def write_pdf(
    path: Path, pages: Sequence[Sequence[Place]], outline: Sequence[tuple[str, int]] = (),
    password: str | None = None,
) -> Path:  # fmt: skip
    """Pages of 12-point Helvetica, each line at its place in points."""
    writer = PdfWriter()
    names = {"Type": "Font", "Subtype": "Type1", "BaseFont": "Helvetica",
             "Encoding": "WinAnsiEncoding"}  # fmt: skip
    font = named(**{name: NameObject(f"/{value}") for name, value in names.items()})
    for lines in pages:
        page = writer.add_blank_page(612, 792)
        page[NameObject("/Resources")] = named(Font=named(F1=font))
        stream = DecodedStreamObject()
        shown = "".join(f"BT /F1 12 Tf {x} {y} Td ({text}) Tj ET\n" for x, y, text in lines)
        stream.set_data(shown.encode("cp1252"))
        page[NameObject("/Contents")] = writer._add_object(stream)
    for title, number in outline:
        writer.add_outline_item(title=title, page_number=number)
    writer.add_metadata({"/Title": "The Lamp", "/Author": "A. Writer"})
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(path)
    return path


def read(path: Path | str) -> Document:
    (document,) = read_documents([str(path)])
    return document


def test_a_pdf_s_lines_are_joined_without_what_pages_repeat(tmp_path: Path):
    full = "She counted nine lamps along the wall and one more by the"
    said = "“Stay with me until the lamps go round again,” he said to her."

    def page(number: int, *lines: Place) -> list[Place]:
        return [(72, 760, f"A. WRITER / THE LAMP / {number}"), *lines, (300, 30, str(number))]

    pages = [
        page(1, (72, 700, "Chapter One"), (72, 670, full), (72, 656, "har-"),
             (72, 642, "bour, where the well-"), (72, 628, "known boats lay."),
             (90, 614, full + " “sea.” She went"), (72, 600, "on until the light had gone and"
             " nothing was to be")),
        page(2, (72, 700, "seen, and then she turned."), (90, 686, said),
             (90, 672, full), (72, 658, "harbour, as well-known people do.")),
        page(3, (72, 700, "II"), (72, 670, full), (72, 656, "door.")),
    ]  # fmt: skip
    document = read(write_pdf(tmp_path / "lamp.pdf", pages, [("Chapter One", 0)]))
    assert document.text.split("\n\n") == [
        "Chapter One", f"{full} harbour, where the well-known boats lay.",
        f"{full} “sea.” She went on until the light had gone and nothing was to be seen, and then "
        "she turned.",
        said, f"{full} harbour, as well-known people do.", "II", f"{full} door.",
    ]  # fmt: skip
    assert document.meta == {"title": "The Lamp", "headings": [[0, 1, "Chapter One"]]}
    assert document.author == "A. Writer"


@pytest.mark.parametrize(
    ("pages", "password", "said"),
    [
        ([[]], None, "images of pages and no text"),
        ([[(72, 700, "Secret.")]], "key", "password-protected"),
    ],
)
def test_a_pdf_that_cannot_be_read_says_so(tmp_path: Path, pages: Any, password: Any, said: str):
    with pytest.raises(InputError, match=said):
        read(write_pdf(tmp_path / "a.pdf", pages, password=password))
    # One that asks for none to be read is read.
    assert read(write_pdf(tmp_path / "b.pdf", [[(72, 700, "Open.")]], password="")).text == "Open."


RTF = (
    r"{\rtf1\ansi\ansicpg1252{\fonttbl\f0\fswiss Helvetica;}{\stylesheet{\s1\outlinelevel0 "
    r"heading 1;}}{\info{\title Not this}}{\header Not this either\par}"
    r"\pard\s1\outlinelevel0 Chapter \u8220?One\u8221?\par\pard She felt caf\'e9 cold \emdash "
    r"and \i went\i0  on.{\footnote Nor this.}\par \u-10179?\u-8466?\par "
    r"A line\line below.\par}"
)


def test_rich_text_keeps_paragraphs_and_headings(tmp_path: Path):
    path = tmp_path / "a.rtf"
    path.write_bytes(RTF.encode())
    document = read(path)
    assert document.text.split("\n\n")[:3] == [
        "Chapter “One”", "She felt café cold —and went on.", "\U0001f6ee",
    ]  # fmt: skip
    assert "this" not in document.text.casefold()
    assert document.meta["headings"] == [[0, 1, "Chapter “One”"]]


ODT = """<office:document-content
 xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text>
<text:tracked-changes><text:p>Deleted.</text:p></text:tracked-changes>
<text:h text:outline-level="2">The <text:span>Lamp</text:span></text:h>
<text:p>It went<text:s text:c="2"/>round.<text:note><text:note-citation>1</text:note-citation>
<text:note-body><text:p>A note.</text:p></text:note-body></text:note><office:annotation
 xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:creator>B</dc:creator><text:p>Hm.</text:p>
</office:annotation> She<text:line-break/>counted.</text:p>
<text:list><text:list-item><text:p>One.</text:p></text:list-item></text:list><text:p/>
</office:text></office:body></office:document-content>"""
META = (
    '<m xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Lamps</dc:title>'
    "<dc:creator>A. Writer</dc:creator></m>"
)


def write_odt(path: Any, content: str, **more: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {"content.xml": content, "meta.xml": META, **more}.items():
            archive.writestr(name, data)
    return path


def test_an_open_document_keeps_paragraphs_and_headings(tmp_path: Path):
    document = read(write_odt(tmp_path / "a.odt", ODT))
    assert document.text.split("\n\n") == ["The Lamp", "It went  round. She\ncounted.", "One."]
    assert document.meta == {"title": "Lamps", "headings": [[0, 2, "The Lamp"]]}
    assert document.author == "A. Writer"
    manifest = {"META-INF/manifest.xml": "<m:manifest><m:encryption-data/></m:manifest>"}
    with pytest.raises(InputError, match="password-protected"):
        read(write_odt(tmp_path / "b.odt", "garbled", **manifest))


def item(kind: str, key: str, title: str, inner: str = "", included: str = "Yes") -> str:
    return (
        f'<BinderItem Type="{kind}" UUID="{key}" ID="{key}"><Title>{title}</Title><MetaData>'
        f"<IncludeInCompile>{included}</IncludeInCompile></MetaData>"
        f"<Children>{inner}</Children></BinderItem>"
    )


def write_scriv(folder: Path, pattern: str) -> Path:
    scenes = item("Text", "S2", "scene b") + item("Text", "S1", "scene a")
    scenes += item("Text", "S3", "left out", included="No")
    binder = item("DraftFolder", "D", "Draft", item("Folder", "C1", "The Lamp", scenes)
                  + item("Text", "S4", "Epilogue"))  # fmt: skip
    binder += item("ResearchFolder", "R", "Research", item("Text", "S5", "notes"))
    folder.mkdir(parents=True)
    project = f"<ScrivenerProject><Binder>{binder}</Binder></ScrivenerProject>"
    (folder / "book.scrivx").write_text(project)
    for number in range(1, 6):
        path = folder / pattern.format(f"S{number}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rf"{{\rtf1\ansi Words of scene {number}.\par}}")
    return folder


@pytest.mark.parametrize("pattern", ["Files/Data/{}/content.rtf", "Files/Docs/{}.rtf"])
def test_a_scrivener_project_is_one_text_in_the_binder_s_order(tmp_path: Path, pattern: str):
    """Both layouts: that of Scrivener 3, and that of 1 and 2."""
    project = write_scriv(tmp_path / "works" / "Book.scriv", pattern)
    document = read(project)
    assert document.text.split("\n\n") == [
        "The Lamp", "Words of scene 2.", "* * *", "Words of scene 1.", "Epilogue",
        "Words of scene 4.",
    ]  # fmt: skip
    assert [one[1:] for one in document.meta["headings"]] == [[1, "The Lamp"], [1, "Epilogue"]]
    # In a folder of texts it is one text among them.
    (tmp_path / "works" / "a.txt").write_text("Another.")
    found = find_files([str(tmp_path / "works")])
    assert [Path(file.name).name for file in found] == ["Book.scriv", "a.txt"]


def deep_rtf() -> bytes:
    return b"{\\rtf1 " + b"{" * 2_000_000 + b"deep" + b"}" * 2_000_000 + b"}"


def nested_odt() -> bytes:
    packed = io.BytesIO()
    spans = "<text:span>" * 5000 + "deep" + "</text:span>" * 5000
    write_odt(packed, ODT.replace("<text:p/>", f"<text:p>{spans}</text:p>"))
    return packed.getvalue()


def looping_pdf() -> bytes:
    """A tree of pages that is its own child."""
    body = b"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[2 0 R]/Count 9"
    return b"%PDF-1.4 " + body + b">>endobj trailer<</Root 1 0 R>>"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("deep.rtf", deep_rtf()), ("a.rtf", b"MZ"), ("a.odt", b"PK\3\4"),
        ("nested.odt", nested_odt()), ("loop.pdf", looping_pdf()), ("a.pdf", b"%PDF-1.7\n"),
        ("a.pdf", b"x" * 1000), ("a.scriv", b"<binder/>"),
    ],
)  # fmt: skip
def test_hostile_and_broken_files_end_in_a_sentence_or_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, data: bytes
):
    """They are read by the helper process, within its limits; the next file is read after them."""
    for kind in ("rtf", "odt", "scriv"):
        monkeypatch.setitem(READERS, kind, replace(READERS[kind], limits=Limits(2 << 30, 5.0)))
    (tmp_path / name).write_bytes(data)
    try:
        outcome = read(tmp_path / name).text
    except InputError as error:
        outcome = str(error)
    assert outcome == "deep" or (str(tmp_path / name) in outcome and "\n" not in outcome)
    (tmp_path / "next.rtf").write_bytes(RTF.encode())
    assert "café" in read(tmp_path / "next.rtf").text


def test_an_archive_that_would_unpack_to_more_than_memory_is_refused(tmp_path: Path):
    """Its directory says how large it would be; nothing is unpacked for it."""
    path = write_odt(tmp_path / "a.odt", ODT)
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\1\2")
    data[entry + 24 : entry + 28] = (1_300_000_000).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"would unpack to 1\.3 GB"):
        read(path)

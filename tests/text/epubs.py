"""Books of the EPUB format, as small as they can be."""

import zipfile
from collections.abc import Sequence
from pathlib import Path


def write_epub(path: Path, bodies: Sequence[str], spine: Sequence[int] | None = None) -> Path:
    """A chapter of each body, in the order of the spine."""
    numbers = range(len(bodies))
    items = "".join(f'<item id="c{k}" href="c{k}.xhtml"/>' for k in numbers)
    order = "".join(f'<itemref idref="c{k}"/>' for k in (numbers if spine is None else spine))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        )
        book.writestr(
            "OEBPS/book.opf",
            '<package xmlns="http://www.idpf.org/2007/opf"><metadata '
            'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Book</dc:title>'
            f"<dc:creator>Ann</dc:creator></metadata><manifest>{items}</manifest>"
            f"<spine>{order}</spine></package>",
        )
        for k, body in enumerate(bodies):
            page = f"<head><title>no</title></head><body>{body}</body>"
            page = f'<html xmlns="http://www.w3.org/1999/xhtml">{page}</html>'
            book.writestr(f"OEBPS/c{k}.xhtml", page)
    return path

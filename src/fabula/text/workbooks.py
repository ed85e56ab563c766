"""The rows of an Excel workbook's first sheet (ECMA-376, parts 1 and 2): text, numbers, booleans.

Formulas count by their last result, as saved in the file.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from typing import Any

_COLUMN = re.compile(r"[A-Z]{1,3}")
_ERRORS = (KeyError, ValueError, IndexError, SyntaxError, zipfile.BadZipFile)


def first_sheet(data: io.BytesIO) -> Iterator[tuple[int, list[Any]]]:
    """The number and the cells of each row, None if a cell is empty. Raises `ValueError`."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        with zipfile.ZipFile(data) as book:

            def part(name: str) -> Any:
                return etree.fromstring(book.read(name), parser)

            links = part("xl/_rels/workbook.xml.rels")
            targets = {link.get("Id"): link.get("Target") for link in links}
            sheet = _all(part("xl/workbook.xml"), "sheet")[0]
            own = next(value for name, value in sheet.items() if name.endswith("}id"))
            path = posixpath.normpath(posixpath.join("/xl", targets[own])).lstrip("/")
            shared: list[str] = []
            if "xl/sharedStrings.xml" in book.namelist():
                shared = [_text(one) for one in _all(part("xl/sharedStrings.xml"), "si")]
            number = 0
            for row in _all(part(path), "row"):
                number = int(row.get("r") or number + 1)
                cells: dict[int, Any] = {}
                for cell in _all(row, "c"):
                    place = _place(cell.get("r")) if cell.get("r") else len(cells)
                    cells[place] = _value(cell, shared)
                yield number, [cells.get(k) for k in range(max(cells, default=-1) + 1)]
    except (*_ERRORS, StopIteration, etree.XMLSyntaxError) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def _all(element: Any, name: str) -> list[Any]:
    found: list[Any] = element.xpath(f".//*[local-name()='{name}']")
    return found


def _text(element: Any) -> str:
    # Phonetic guides, which Japanese tables store beside a word, are not part of it.
    said = element.xpath(".//*[local-name()='t'][not(ancestor::*[local-name()='rPh'])]/text()")
    return re.sub(r"_x([0-9A-F]{4})_", lambda found: chr(int(found[1], 16)), "".join(said))


def _place(reference: str) -> int:
    """The column index of a cell reference: 1 for `B7`, in the second column."""
    found = _COLUMN.match(reference)
    if found is None:
        raise ValueError(f"{reference!r} is not a cell")
    place = 0
    for letter in found[0]:
        place = 26 * place + ord(letter) - ord("A") + 1
    return place - 1


def _value(cell: Any, shared: list[str]) -> Any:
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return _text(cell)
    said = "".join(cell.xpath("./*[local-name()='v']/text()"))
    if not said:
        return None
    if kind == "s":
        return shared[int(said)]
    if kind == "b":
        return said == "1"
    return float(said) if kind == "n" else said

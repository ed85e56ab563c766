"""Scrivener projects: folders that end in .scriv, read in the order of their binder.

A project contains an XML file with the binder (.scrivx), and the text of each of its items as RTF:
in `Files/Data/UUID/content.rtf` (Scrivener 3) or `Files/Docs/ID.rtf` (1 and 2). Here it is an
archive of these files.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from typing import IO, Any

from fabula.errors import InputError
from fabula.text.documents import ParsedText
from fabula.text.rtf import parse_rtf

SCENE_BREAK = "* * *"
"""Separates the texts of one folder: each is a scene."""
_DAY = (1980, 1, 1, 0, 0, 0)


def pack_scriv(files: Iterable[tuple[str, IO[bytes]]]) -> IO[bytes]:
    """Archive the required files of a project under their paths inside it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, file in files:
            archive.writestr(zipfile.ZipInfo(path, _DAY), file.read())
    packed.seek(0)
    return packed


def parse_scriv(data: bytes, name: str) -> ParsedText:
    """Parse the texts of the draft folder that are to be compiled, in the binder's order.

    The titles of folders, and of texts beside folders, are headings. Research, notes and the trash
    are left out. Raises `InputError`.
    """
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            paths = {_inside(path): path for path in archive.namelist()}
            binder = next(path for path in sorted(paths) if path.endswith(".scrivx"))
            project = etree.fromstring(archive.read(paths[binder]), parser)
            draft = project.find("Binder/BinderItem[@Type='DraftFolder']")
            if draft is None:
                raise InputError(f"{name}: has no draft folder; open it in Scrivener and save it")
            found = list(_parts(draft, archive, paths, name, 1))
    except StopIteration:
        raise InputError(
            f"{name}: contains no .scrivx file, so it is not a Scrivener project"
        ) from None
    except (KeyError, RuntimeError, zipfile.BadZipFile, etree.XMLSyntaxError) as error:
        raise InputError(
            f"{name}: not a readable Scrivener project ({error}); save it again"
        ) from error
    if not any(level == 0 for level, _ in found):
        raise InputError(f"{name}: its draft folder contains no text marked for compiling")
    return ParsedText(found, project.findtext("ProjectSettings/ProjectTitle") or "")


def _inside(path: str) -> str:
    """A path within the project; a packed project may be in a folder of its own."""
    head, mark, rest = path.rpartition(".scriv/")
    return rest if mark and head else path


def _parts(
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
        inner = list(_parts(child, archive, paths, name, level + 1))
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

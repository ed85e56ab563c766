"""The pages for writing a draft: the editor, and the saved states."""

from __future__ import annotations

import io
import zipfile
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Depends, HTTPException
from fastapi.responses import JSONResponse, RedirectResponse, Response
from markupsafe import escape

from fabula.core import __version__
from fabula.core.errors import InputError
from fabula.core.store import dump_json
from fabula.core.types import Document
from fabula.review.comments import with_comments
from fabula.review.findings import BY_WORDS
from fabula.text import count_words
from fabula.text.chapters import parts_of
from fabula.web import visible
from fabula.writer.desk_pages import MAX_TEXT_CHARS, Named, Owner, Posted, changed_words, text_in
from fabula.writer.drafts import Journal, KeptState, Piece, Version, chained, shown_time
from fabula.writer.work import Asked, render

NOT_PROVEN = (
    "It does not prove who wrote the text. Anyone who sat at this computer, or copied words from "
    "elsewhere by hand, leaves the same record.",
    "It does not prove that no language model was used. A text can be typed from another screen.",
    "It does not prove when the text was written. The times are those of this computer's clock, "
    "which can be set, and a whole chain can be made at once. A hash proves a time only if "
    "somebody else received it then: send the last one to yourself or to a friend when it "
    "matters.",
    "It does not prove that nothing is missing before its first state, or between two states.",
    "Its absence proves nothing. Most people write where nothing is recorded.",
)
"""What a reader of the record must know."""
_HOLDS = (
    "Each row of record.json is a state of the text: the time in UTC, the SHA-256 of the text as "
    "UTF-8, the number of words that the desk showed, and the version number if it was "
    "measured. `chain` is the SHA-256 of the previous chain, the time, the hash, the words and "
    "the version, one per line; a missing value is an empty line. If a row is altered, removed or "
    "inserted later, every chain after it changes."
)
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_One = TypeVar("_One")
_DAY = (1980, 1, 1, 0, 0, 0)
_PART_CHARS = 30_000
"""A text is edited by chapter, or in parts of about this length: it is slow to type in more."""


router = APIRouter()


@router.post("/writing")
def save_new(owner: Owner, form: Posted) -> Response:
    """Save text being written before it becomes a piece."""
    return _saved(owner.desk.drafts.new, form, 0)


@router.post("/piece/{id_}/{number}/writing")
def save(owner: Owner, form: Posted, named: Named) -> Response:
    piece, version = named
    return _saved(owner.desk.drafts.journal(piece.id), form, version.number)


def _saved(journal: Journal, form: Any, base: int) -> Response:
    text = text_in(form)
    if len(text) > MAX_TEXT_CHARS:
        raise HTTPException(413)
    saved = journal.save(text, base, _number(form, "typed")).saved
    return JSONResponse({"saved": shown_time(saved)})


def _number(form: Any, name: str) -> int:
    """What a script sent under this name; 0 if that is not a number."""
    given = str(form.get(name, ""))
    return int(given) if given.isdecimal() and len(given) < 16 else 0


@router.get("/piece/{id_}/{number}/edit")
def edit(owner: Owner, named: Named) -> Response:
    """The draft to edit: the text as last typed, if it was not measured yet."""
    piece, version = named
    writing = owner.desk.drafts.unmeasured(version)
    text = version.text if writing is None else writing.text
    text = text.encode(errors="replace").decode().replace("\r\n", "\n")
    return owner.page(
        "edit.html.j2",
        piece=piece,
        version=version,
        title=piece.title,
        text=text,
        parts=dump_json(_in_units(text, _parts(version, text))),
        writing=writing,
        saved="" if writing is None else shown_time(writing.saved),
        **owner.how(Asked.read(version.asked)),
    )


@router.post("/piece/{id_}/{number}/check")
def check(owner: Owner, form: Posted, named: Named) -> Response:
    """The findings in the text on the screen, and what changed there since the version.

    The places of all findings and parts are returned in UTF-16 code units, as browsers count them.
    """
    _, version = named
    text = text_in(form)
    parts = _in_units(text, _parts(version, text))
    try:
        changes = owner.desk.check(version, text)
    except InputError as error:
        page = f"<p>{escape(str(error))}</p>"
        return JSONResponse({"html": page, "marks": [], "parts": parts})
    first, last = _number(form, "first"), _number(form, "last")
    here = {label for label, start, end in parts if start < last and end > first}
    is_part = len(parts) > max(1, len(here))
    before = _parts(version, version.text)
    gone = [
        finding
        for finding in changes.gone
        if not is_part or next(label for label, _, end in before if finding.start < end) in here
    ]
    new, still = (
        _in_units(text, [(finding, finding.start, finding.end) for finding in found])
        for found in (changes.new, changes.still)
    )
    marks = sorted([start, end] for _, start, end in (*new, *still))
    if is_part:
        new, still = ([row for row in rows if first <= row[1] < last] for rows in (new, still))
    shown = {"gone": gone, "new": new, "still": still, "is_part": is_part, "by_words": BY_WORDS}
    page = render("check.html.j2", version=version, **shown)
    return JSONResponse({"html": page, "marks": marks, "parts": parts})


def _in_units(text: str, rows: Sequence[tuple[_One, int, int]]) -> list[tuple[_One, int, int]]:
    """Places in UTF-16 code units instead of characters."""
    wide = [k for k, character in enumerate(text) if character > "\uffff"]
    return [(one, a + bisect_left(wide, a), b + bisect_left(wide, b)) for one, a, b in rows]


def _parts(version: Version, text: str) -> list[tuple[str, int, int]]:
    """The parts of a text that is edited, after a version."""
    form = version.form
    headings = form.of_next(version.text, text).headings if form.headings else ()
    return parts_of(Document("", text, meta={"headings": headings}), _PART_CHARS)


@router.get("/piece/{id_}/versions")
def versions(owner: Owner, id_: str) -> Response:
    """All saved states of a piece, the newest first."""
    piece = owner.piece(id_)
    writing = owner.desk.drafts.unmeasured(piece.last)
    now = writing and {"at": shown_time(writing.saved), "n_words": count_words(writing.text)}
    states = owner.desk.drafts.journal(id_).states()
    known = {state.version for state in states}
    # Versions from desks that did not save states come before the states.
    kept: list[tuple[int, int | None, str, int]] = [
        (0, earlier.number, str(earlier.asked.get("made", "")), count_words(earlier.text))
        for earlier in piece.versions
        if earlier.number not in known
    ]
    kept += [(k, state.version, state.at, state.n_words) for k, state in enumerate(states, 1)]
    rows: list[dict[str, Any]] = []
    for number, version, at, n_words in kept:
        change = n_words - (rows[-1]["n_words"] if rows else n_words)
        row = {"number": number, "version": version, "at": shown_time(at), "n_words": n_words}
        rows.append(row | {"change": change})
    return owner.page(
        "versions.html.j2", piece=piece, title=piece.title, rows=rows[::-1], writing=now
    )


def state_named(owner: Owner, id_: str, number: int) -> tuple[Piece, KeptState, str]:
    """A piece, its state that an address names, and the text of that. Raises 404."""
    piece = owner.piece(id_)
    journal = owner.desk.drafts.journal(id_)
    states = journal.states()
    text = journal.text(states[number - 1]) if 0 < number <= len(states) else None
    if text is None:
        raise HTTPException(404)
    return piece, states[number - 1], text


State = Annotated[tuple[Piece, KeptState, str], Depends(state_named)]


@router.get("/piece/{id_}/states/{number}")
def show_state(owner: Owner, named: State, number: int) -> Response:
    """A state, and how it differs from the current text."""
    piece, state, text = named
    writing = owner.desk.drafts.journal(piece.id).writing()
    old, new = changed_words(text, piece.last.text if writing is None else writing.text)
    shown = {"number": number, "old": old, "new": new, "at": shown_time(state.at)}
    return owner.page("state.html.j2", piece=piece, title=piece.title, **shown)


@router.post("/piece/{id_}/states/{number}/restore")
def restore(owner: Owner, form: Posted, named: State) -> Response:
    """Continue from a state; the current text is saved as another."""
    piece, _, text = named
    journal = owner.desk.drafts.journal(piece.id)
    journal.put_aside()
    journal.save(text, piece.last.number)
    return RedirectResponse(f"/piece/{piece.id}/{piece.last.number}/edit", 303)


@router.post("/piece/{id_}/{number}/start")
def start_from(owner: Owner, form: Posted, named: Named) -> Response:
    """Set the unsaved text aside, and continue from a version."""
    piece, version = named
    owner.desk.drafts.journal(piece.id).put_aside()
    return RedirectResponse(f"/piece/{piece.id}/{version.number}/edit", 303)


@router.get("/piece/{id_}/{number}/draft.txt")
def download_draft(named: Named) -> Response:
    piece, version = named
    which = f"version {version.number}.txt"
    return _as_file(version.text.encode(errors="replace"), piece.title, which)


@router.get("/piece/{id_}/{number}/comments.docx")
def download_comments(owner: Owner, named: Named) -> Response:
    """The draft as a Word document, a copy of its own if it was one, with the findings."""
    piece, version = named
    owner.desk.renew(version)
    form = version.form
    document = Document(piece.title, version.text, meta={"headings": form.headings})
    data, _ = with_comments(document, version.findings, form.word, italics=form.italics)
    return _as_file(data, piece.title, f"version {version.number}.docx", _WORD)


@router.get("/piece/{id_}/states/{number}/draft.txt")
def download_state(named: State, number: int) -> Response:
    piece, _, text = named
    return _as_file(text.encode(errors="replace"), piece.title, f"state {number}.txt")


@router.get("/piece/{id_}/record")
def record(owner: Owner, id_: str) -> Response:
    """How a piece was written, what that shows, and what it does not prove."""
    piece = owner.piece(id_)
    states = owner.desk.drafts.journal(id_).states()
    rows = enumerate(zip(["", *(state.chain for state in states)], states, strict=False), 1)
    broken = next((k for k, (chain, state) in rows if chained(chain, state) != state.chain), None)
    ends = [shown_time(states[k].at) for k in (0, -1)] if states else ["", ""]
    shown = {"n_states": len(states), "first": ends[0], "last": ends[1], "broken": broken}
    shown |= {"not_proven": NOT_PROVEN, "chain": states[-1].chain if states else ""}
    return owner.page("record.html.j2", piece=piece, title=piece.title, **shown)


@router.post("/piece/{id_}/record")
def export_record(owner: Owner, form: Posted, id_: str) -> Response:
    """The record, and what it does not prove, as a zip archive, optionally with the texts.

    For its writer alone: requested through a form of the desk.
    """
    piece = owner.piece(id_)
    journal = owner.desk.drafts.journal(id_)
    states = journal.states()
    record = {"fabula": __version__, "title": piece.title, "states": list(map(asdict, states))}
    files = {
        "record.json": dump_json(record) + "\n",
        "about.txt": "\n\n".join((_HOLDS, "What it does not prove", *NOT_PROVEN)) + "\n",
    }
    for state in states if form.get("texts") == "on" else ():
        if (text := journal.text(state)) is not None:
            files[f"texts/{state.text}.txt"] = text
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            # The same record gives the same bytes.
            info = zipfile.ZipInfo(name, _DAY)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, text.encode(errors="replace"))
    return _as_file(data.getvalue(), piece.title, "process record.zip", "application/zip")


def _as_file(data: bytes, title: str, which: str, media_type: str = "text/plain") -> Response:
    """A file named after the title and `which`."""
    name = f"{' '.join(visible(title).split())[:60].replace('/', '-')}, {which}"
    plain = quote(name.encode(errors="replace").decode(), safe="")
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{plain}"}
    return Response(data, media_type=media_type, headers=headers)

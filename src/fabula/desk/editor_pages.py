"""The pages for writing a draft: the editor, and the saved states."""

from __future__ import annotations

import io
import zipfile
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse, RedirectResponse, Response
from markupsafe import escape

from fabula import __version__
from fabula.desk.desk_pages import (
    ENDINGS,
    MAX_TEXT_CHARS,
    Owner,
    Posted,
    Visit,
    changed_words,
    model_list,
    references_of,
    text_in,
)
from fabula.desk.drafts import Journal, KeptState, Piece, chained, shown_time
from fabula.desk.work import Asked, render, utf16_places
from fabula.errors import InputError
from fabula.store import dump_json
from fabula.text import count_words
from fabula.web import visible

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
_DAY = (1980, 1, 1, 0, 0, 0)


def broken_at(states: list[KeptState]) -> int | None:
    """The first row, from 1, whose chain is broken; None if all are intact."""
    before = ""
    for number, state in enumerate(states, 1):
        if chained(before, state) != state.chain:
            return number
        before = state.chain
    return None


def record_archive(title: str, journal: Journal, *, with_texts: bool) -> bytes:
    """A zip archive of the record, what it does and does not prove, and optionally the texts.

    The same record gives the same bytes.
    """
    states = journal.states()
    rows = [asdict(state) for state in states]
    files = {
        "record.json": dump_json({"fabula": __version__, "title": title, "states": rows}) + "\n",
        "about.txt": "\n\n".join((_HOLDS, "What it does not prove", *NOT_PROVEN)) + "\n",
    }
    for state in states if with_texts else ():
        text = journal.text(state)
        if text is not None:
            files[f"texts/{state.text}.txt"] = text
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            info = zipfile.ZipInfo(name, _DAY)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, text.encode(errors="replace"))
    return data.getvalue()


router = APIRouter()


@router.post("/writing")
def save_new(owner: Owner, form: Posted) -> Response:
    """Save text being written before it becomes a piece."""
    return _saved(owner.desk.drafts.new, form, 0)


@router.post("/piece/{id_}/{number}/writing")
def save(owner: Owner, form: Posted, id_: str, number: int) -> Response:
    """Save text being written for a piece."""
    owner.found(id_, number)
    return _saved(owner.desk.drafts.journal(id_), form, number)


def _saved(journal: Journal, form: Any, base: int) -> Response:
    text = text_in(form)
    if len(text) > MAX_TEXT_CHARS:
        raise HTTPException(413)
    typed = str(form.get("typed", ""))
    at = int(typed) if typed.isdecimal() and len(typed) < 16 else 0
    return JSONResponse({"saved": shown_time(journal.save(text, base, at).saved)})


@router.get("/piece/{id_}/{number}/edit")
def edit(owner: Owner, id_: str, number: int) -> Response:
    """The draft to edit: the text as last typed, if it was not measured yet."""
    piece, version = owner.found(id_, number)
    asked = Asked.read(version.asked)
    writing = owner.desk.drafts.unmeasured(version)
    text = version.text if writing is None else writing.text
    return owner.page(
        "edit.html.j2",
        piece=piece,
        version=version,
        title=visible(piece.title),
        asked=asked,
        text=text.encode(errors="replace").decode(),
        writing=writing,
        saved="" if writing is None else shown_time(writing.saved),
        references=references_of(owner, asked),
        models=model_list(asked.model),
        endings=ENDINGS,
    )


@router.post("/piece/{id_}/{number}/check")
def check(owner: Owner, form: Posted, id_: str, number: int) -> Response:
    """The findings in the current text, and what changed since the version."""
    _, version = owner.found(id_, number)
    text = text_in(form)
    try:
        found = owner.desk.check(version, text)
    except InputError as error:
        return JSONResponse({"html": f"<p>{escape(str(error))}</p>", "marks": []})
    if found is None:
        return JSONResponse({"html": "", "marks": []}, 202)
    _, changes = found
    place = utf16_places(text)

    new, still = (
        [replace(one, start=place(one.start), end=place(one.end)) for one in noted]
        for noted in (changes.new, changes.still)
    )
    page = render("check.html.j2", version=version, gone=changes.gone, new=new, still=still)
    marks = sorted([one.start, one.end] for one in (*new, *still))
    return JSONResponse({"html": page, "marks": marks})


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
        (0, one.number, str(one.asked.get("made", "")), count_words(one.text))
        for one in piece.versions
        if one.number not in known
    ]
    kept += [(k, one.version, one.at, one.n_words) for k, one in enumerate(states, 1)]
    rows = []
    n_before = kept[0][-1]
    for number, version, at, n_words in kept:
        rows.append(
            {
                "number": number,
                "version": version,
                "at": shown_time(at),
                "n_words": n_words,
                "change": n_words - n_before,
            }
        )
        n_before = n_words
    return owner.page(
        "versions.html.j2", piece=piece, title=visible(piece.title), rows=rows[::-1], writing=now
    )


@router.get("/piece/{id_}/states/{number}")
def show_state(owner: Owner, id_: str, number: int) -> Response:
    """A state, and how it differs from the current text."""
    piece, state, text = _state(owner, id_, number)
    writing = owner.desk.drafts.journal(id_).writing()
    now = piece.last.text if writing is None else writing.text
    old, new = changed_words(text, now)
    return owner.page(
        "state.html.j2",
        piece=piece,
        title=visible(piece.title),
        number=number,
        old=old,
        new=new,
        at=shown_time(state.at),
    )


@router.post("/piece/{id_}/states/{number}/restore")
def restore(owner: Owner, form: Posted, id_: str, number: int) -> Response:
    """Continue from a state; the current text is saved as another."""
    piece, _, text = _state(owner, id_, number)
    journal = owner.desk.drafts.journal(id_)
    journal.put_aside()
    journal.save(text, piece.last.number)
    return RedirectResponse(f"/piece/{id_}/{piece.last.number}/edit", 303)


@router.post("/piece/{id_}/{number}/start")
def start_from(owner: Owner, form: Posted, id_: str, number: int) -> Response:
    """Set the unsaved text aside, and continue from a version."""
    owner.found(id_, number)
    owner.desk.drafts.journal(id_).put_aside()
    return RedirectResponse(f"/piece/{id_}/{number}/edit", 303)


@router.get("/piece/{id_}/{number}/draft.txt")
def download_draft(owner: Owner, id_: str, number: int) -> Response:
    """The text of a version as a file."""
    piece, version = owner.found(id_, number)
    return _as_file(version.text.encode(errors="replace"), piece.title, f"version {number}.txt")


@router.get("/piece/{id_}/states/{number}/draft.txt")
def download_state(owner: Owner, id_: str, number: int) -> Response:
    """The text of a state as a file."""
    piece, _, text = _state(owner, id_, number)
    return _as_file(text.encode(errors="replace"), piece.title, f"state {number}.txt")


@router.get("/piece/{id_}/record")
def record(owner: Owner, id_: str) -> Response:
    """How a piece was written, what that shows, and what it does not prove."""
    piece = owner.piece(id_)
    states = owner.desk.drafts.journal(id_).states()
    ends = [shown_time(states[k].at) for k in (0, -1)] if states else ["", ""]
    return owner.page(
        "record.html.j2",
        piece=piece,
        title=visible(piece.title),
        n_states=len(states),
        first=ends[0],
        last=ends[1],
        broken=broken_at(states),
        not_proven=NOT_PROVEN,
        chain=states[-1].chain if states else "",
    )


@router.post("/piece/{id_}/record")
def export_record(owner: Owner, form: Posted, id_: str) -> Response:
    """The record as a file, for its writer alone: requested through a form of the desk."""
    piece = owner.piece(id_)
    journal = owner.desk.drafts.journal(id_)
    data = record_archive(piece.title, journal, with_texts=form.get("texts") == "on")
    return _as_file(data, piece.title, "process record.zip", "application/zip")


def _as_file(data: bytes, title: str, which: str, media_type: str = "text/plain") -> Response:
    """A file named after the title and `which`."""
    name = f"{' '.join(visible(title).split())[:60].replace('/', '-')}, {which}"
    plain = quote(name.encode(errors="replace").decode(), safe="")
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{plain}"}
    return Response(data, media_type=media_type, headers=headers)


def _state(owner: Visit, id_: str, number: int) -> tuple[Piece, KeptState, str]:
    piece = owner.piece(id_)
    journal = owner.desk.drafts.journal(id_)
    states = journal.states()
    text = journal.text(states[number - 1]) if 0 < number <= len(states) else None
    if text is None:
        raise HTTPException(404)
    return piece, states[number - 1], text

"""The desk's pages: all drafts, one draft with its report, its next version, two side by side."""

from __future__ import annotations

import re
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from fabula.desk.differences import changed_words, number_pairs
from fabula.desk.draft_settings import Asked, where_to
from fabula.desk.drafts import Piece, place_in
from fabula.desk.editor_pages import ENDINGS, model_list, references_of
from fabula.desk.journal import shown_time
from fabula.desk.model_pages import missing_models
from fabula.desk.rendering import render, render_waiting, with_bar
from fabula.desk.visits import Owner, Posted, Visit, files_in, report_file, text_in
from fabula.desk.work import asked_for
from fabula.errors import InputError, ModelError
from fabula.jobs.review_models import estimate_review
from fabula.models.keys import check_key
from fabula.review.report_parts import OWN_PARTS
from fabula.text import read_documents
from fabula.types import Document
from fabula.web import visible

router = APIRouter()
_MAX_TEXT_CHARS = 5_000_000
_MAX_OPENING_CHARS = 60


@router.get("/")
def home(owner: Owner) -> Response:
    """All drafts, and a form for another."""
    desk = owner.desk
    writing = desk.drafts.new.writing()
    pieces = [_piece_view(owner, piece) for piece in desk.drafts.pieces()]
    last = desk.drafts.pieces()[0].last.asked if pieces else {}
    asked = Asked.read(last) if last else Asked(reference=next(iter(desk.references), ""))
    return owner.page(
        "home.html.j2",
        pieces=pieces,
        asked=asked,
        references=references_of(owner, asked),
        models=model_list(asked.model),
        needs=missing_models(desk),
        writing=writing,
        endings=ENDINGS,
        saved="" if writing is None else shown_time(writing.saved),
    )


@router.post("/drafts")
async def add(owner: Owner, form: Posted) -> Response:
    """Create a piece from pasted or uploaded text."""
    asked = _asked(form)
    text, name = await _text_of(form)
    title = str(form.get("title") or name or _opening(text))
    return await _measure(owner, form, asked, text, title, None)


@router.post("/piece/{id_}/versions")
async def add_version(owner: Owner, form: Posted, id_: str) -> Response:
    """Add the next version of a piece."""
    piece, asked = owner.piece(id_), _asked(form)
    text, _ = await _text_of(form)
    return await _measure(owner, form, asked, text, piece.title, piece)


def _asked(form: FormData) -> Asked:
    return Asked.read({key: value for key, value in form.items() if isinstance(value, str)})


async def _measure(
    owner: Visit, form: FormData, asked: Asked, text: str, title: str, piece: Piece | None
) -> Response:
    told = where_to(asked)
    if told and form.get("agreed") != "yes":
        action = "/drafts" if piece is None else f"/piece/{piece.id}/versions"
        known, can_send = await run_in_threadpool(_known_before, asked, text)
        return owner.page(
            "sending.html.j2",
            told=told,
            asked=asked,
            text=text,
            title=title,
            action=action,
            known=known,
            can_send=can_send,
        )
    drafts = owner.desk.drafts
    if piece is None:
        # Whether it was typed on the desk, not uploaded as a file.
        writing = drafts.new.writing()
        is_written = writing is not None and writing.text.strip() == text.strip()
        version = drafts.add(title, text, asdict(asked), is_written=is_written)
    else:
        version = drafts.add_version(piece, text, asdict(asked))
    owner.desk.begin(version)
    return RedirectResponse(f"/piece/{version.piece}/{version.number}", 303)


def _known_before(asked: Asked, text: str) -> tuple[list[str], bool]:
    """What a writer should know before a model is called, and whether it is likely to work.

    Checks whether the provider accepts the key, and estimates the cost.
    """
    if not asked.model or not (asked.verdicts or asked.feedback):
        return [], True
    check = check_key(asked.model)
    known = [] if check is None else [check.said]
    try:
        plan = asked.settings(1)
        estimate = estimate_review(asked.model, [Document("draft", text)], plan)
        known.append(asked_for(asked.model, estimate).rstrip("."))
    except (InputError, ModelError) as error:
        return [*known, str(error)], False
    return known, check is None or check.is_good is not False


@router.get("/piece/{id_}/{number}")
def show(owner: Owner, id_: str, number: int) -> Response:
    """A version with its report so far."""
    piece, version = owner.found(id_, number)
    state = owner.desk.state(version)
    earlier = (one for one in reversed(piece.versions) if one.number < version.number)
    bar = render(
        "bar.html.j2",
        piece=piece,
        version=version,
        state=state,
        csrf=owner.csrf,
        told=where_to(Asked.read(version.asked)),
        title=visible(piece.title),
        before=next(earlier, None),
        writing=_unmeasured(owner, piece),
    )
    place = place_in(version.folder) or render_waiting(visible(piece.title))
    return HTMLResponse(with_bar(place, bar, is_over=state.is_over))


@router.get("/piece/{id_}/{number}/state")
def state(owner: Owner, id_: str, number: int) -> Response:
    """The progress of the report."""
    _, version = owner.found(id_, number)
    return JSONResponse(owner.desk.state(version).to_json())


@router.get("/piece/{id_}/{number}/report.html")
def download(owner: Owner, id_: str, number: int) -> Response:
    """The report as a file to download or send."""
    _, version = owner.found(id_, number)
    return report_file(version.folder, f"report-{id_}-{number}")


@router.post("/piece/{id_}/{number}/answer")
def answer(owner: Owner, form: Posted, id_: str, number: int) -> Response:
    """The answer, yes or no, to a model's cost."""
    _, version = owner.found(id_, number)
    owner.desk.answer(version, agreed=form.get("agreed") == "yes")
    return RedirectResponse(f"/piece/{id_}/{number}", 303)


@router.post("/piece/{id_}/{number}/again")
def again(owner: Owner, form: Posted, id_: str, number: int) -> Response:
    """Measure a version again; a model's cached answers are reused."""
    _, version = owner.found(id_, number)
    if owner.desk.state(version).is_over:
        owner.desk.begin(version)
    return RedirectResponse(f"/piece/{id_}/{number}", 303)


@router.get("/piece/{id_}/{number}/remove")
def ask_to_remove(owner: Owner, id_: str, number: int) -> Response:
    piece, _ = owner.found(id_, number)
    return owner.page("remove.html.j2", piece=piece, title=visible(piece.title))


@router.post("/piece/{id_}/remove")
def remove(owner: Owner, form: Posted, id_: str) -> Response:
    piece = owner.desk.drafts.piece(id_)
    if piece is not None:
        owner.desk.remove(piece)
    return RedirectResponse("/", 303)


@router.get("/beside")
def beside(owner: Owner, left: str = "", right: str = "") -> Response:
    """Two drafts, or two versions of one, side by side: `0001-2` is piece 0001, version 2."""
    pairs = [one.partition("-") for one in (left, right)]
    if not all(number.isdecimal() and len(number) < 9 for _, _, number in pairs):
        raise HTTPException(404)
    (a, before), (b, after) = (owner.found(id_, int(number)) for id_, _, number in pairs)
    old, new = changed_words(before.text, after.text)
    if a.id != b.id:
        # Between two pieces every word differs; marking them all would be useless.
        old, new = ([type(one)("same", one.text) for one in side] for side in (old, new))
    is_one = a.id == b.id
    numbers = list(number_pairs(before.found.get("numbers", ()), after.found.get("numbers", ())))
    return owner.page(
        "beside.html.j2",
        old=old,
        new=new,
        a=a,
        b=b,
        before=before,
        after=after,
        numbers=[one for one in numbers if one.has_moved or not is_one],
        n_same=sum(not one.has_moved for one in numbers) if is_one else 0,
        changes=owner.desk.changes(before, after) if is_one else None,
        parts={one.id: one.title for one in OWN_PARTS},
        titles=(visible(a.title), visible(b.title)),
        is_one=is_one,
    )


@router.post("/references")
async def add_reference(owner: Owner, form: Posted) -> Response:
    """A reference to compare with: an existing corpus, or texts to build one from."""
    path = str(form.get("path", "")).strip()
    if files := files_in(form):
        with tempfile.TemporaryDirectory() as folder:
            names = [await _stored(file, Path(folder), k) for k, file in enumerate(files)]
            await run_in_threadpool(owner.desk.build_reference, str(form.get("name", "")), names)
    elif path:
        owner.desk.add_reference(path)
    else:
        raise InputError("enter a corpus or choose files to compare with")
    return RedirectResponse("/", 303)


@router.get("/references/remove")
def ask_to_remove_reference(owner: Owner, path: str = "") -> Response:
    if path not in owner.desk.references:
        raise HTTPException(404)
    return owner.page(
        "remove_reference.html.j2", path=path, is_made_here=owner.desk.is_made_here(path)
    )


@router.post("/references/remove")
def remove_reference(owner: Owner, form: Posted) -> Response:
    owner.desk.remove_reference(str(form.get("path", "")))
    return RedirectResponse("/", 303)


async def _text_of(form: FormData) -> tuple[str, str]:
    """The text that was uploaded or pasted, and its file's name. Raises `InputError`."""
    file = form.get("file")
    if isinstance(file, UploadFile) and file.filename:
        with tempfile.TemporaryDirectory() as folder:
            path = await _stored(file, Path(folder), 0)
            documents = await run_in_threadpool(lambda: list(read_documents([str(path)])))
        text, name = "\n\n".join(one.text for one in documents), Path(file.filename).stem
    else:
        text, name = text_in(form), ""
    if not text.strip():
        raise InputError("No text: paste a draft, or choose a file that contains one.")
    if len(text) > _MAX_TEXT_CHARS:
        raise InputError("This is longer than any novel; submit the draft in parts.")
    return text, name


async def _stored(file: UploadFile, folder: Path, number: int) -> Path:
    """An uploaded file under a name of our own, with its extension."""
    given = Path(str(file.filename).replace("\\", "/")).name.lstrip(".") or "draft.txt"
    stem, dot, ending = given.rpartition(".")
    path = folder / f"{number:04d}" / f"{stem[:60]}{dot}{ending[:20]}"
    path.parent.mkdir()
    path.write_bytes(await file.read())
    return path


def _opening(text: str) -> str:
    """A title for a draft without one: its first line or sentence, or whole phrases of it."""
    line = next(filter(None, (line.strip(" \t#*_") for line in text.splitlines())), "")
    ended = re.match(r".*?[.!?…][\"'”’»)]*(?=\s|$)", line)
    sentence = ended[0] if ended else line
    for whole in (line, sentence):
        if len(whole) <= _MAX_OPENING_CHARS:
            return whole.rstrip(" .,;:")
    start = sentence[: _MAX_OPENING_CHARS + 1]
    phrases = [mark.start() for mark in re.finditer(r"[,;:—–](?=\s)|\s[—–]", start)]
    ends = [end for end in phrases if end >= _MAX_OPENING_CHARS // 3] or [start.rfind(" ")]
    return (start[: ends[-1]] if ends[-1] > 0 else start[:-1]).rstrip(" .,;:—–") + "…"


def _unmeasured(owner: Visit, piece: Piece) -> str:
    """When the unmeasured text was last edited; empty if there is none."""
    writing = owner.desk.drafts.unmeasured(piece.last)
    return "" if writing is None else shown_time(writing.saved)


def _piece_view(owner: Visit, piece: Piece) -> dict[str, Any]:
    numbers = {one["key"]: one for one in piece.last.found.get("numbers", ())}
    shown = [
        (one["title"], "missing" if one["value"] is None else format(one["value"], one["form"]))
        for key in ("n_words", "creativity_index", "bits_per_word")
        if (one := numbers.get(key))
    ]
    return {
        "id": piece.id,
        "title": visible(piece.title),
        "n_versions": len(piece.versions),
        "last": piece.last.number,
        "numbers": shown,
        "is_over": owner.desk.state(piece.last).is_over,
        "made": shown_time(str(piece.last.asked.get("made", ""))),
        "writing": _unmeasured(owner, piece),
    }

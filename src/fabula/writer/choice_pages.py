"""What a writer decides about findings: dismissed ones, kinds, the dictionary, and usefulness."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, HTTPException
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData

from fabula.show.parts import Finding
from fabula.writer.choices import Choices, Told
from fabula.writer.desk_pages import Named, Owner, Posted, text_in
from fabula.writer.work import words_of

router = APIRouter()
_ACTS = ("useful", "useless", "here", "everywhere")
_LISTS = ("findings", "all-places")


@router.post("/piece/{id_}/{number}/finding")
def decide(owner: Owner, form: Posted, named: Named) -> Response:
    """Mark a finding of a version as useful or not, or dismiss it."""
    piece, version = named
    act, finding, where = _chosen(form, version.findings)
    told, choices = Told(owner.desk.folder), Choices(version.folder.parent)
    if finding is not None:
        is_first = where == _LISTS[0]
        if act in ("here", "everywhere"):
            everywhere = act == "everywhere"
            choices.dismiss(finding, version.number, version.text, everywhere=everywhere)
        if is_first:
            told.mark(piece.id, finding.kind, finding.words, is_useful=act == "useful")
    return RedirectResponse(f"/piece/{piece.id}/{version.number}#{where}", 303)


@router.post("/piece/{id_}/{number}/dismiss")
def dismiss(owner: Owner, form: Posted, named: Named) -> Response:
    """Dismiss a finding in a text being written."""
    _, version = named
    text = text_in(form)
    act, finding, _ = _chosen(form, owner.desk.looked_at(version, text))
    if finding is not None and act in ("here", "everywhere"):
        choices, everywhere = Choices(version.folder.parent), act == "everywhere"
        choices.dismiss(finding, version.number, text, everywhere=everywhere)
    return Response(status_code=204)


def _chosen(form: FormData, findings: Sequence[Finding]) -> tuple[str, Finding | None, str]:
    """What a button says: the act, the finding if it is still there, and the list it stood in."""
    act = next((name for name in _ACTS if name in form), None)
    words = str(form.get(act or "", "")).split()
    if act is None or len(words) != 4 or words[3] not in _LISTS:
        raise HTTPException(422)
    key = tuple(words[:3])
    same = (f for f in findings if (f.kind, str(f.start), str(f.end)) == key)
    return act, next(same, None), words[3]


@router.post("/piece/{id_}/{number}/kinds")
def switch_kinds(owner: Owner, form: Posted, named: Named) -> Response:
    """Show these kinds of findings, and no others."""
    piece, version = named
    Choices(version.folder.parent).switch(map(str, form.getlist("kind")))
    return RedirectResponse(f"/piece/{piece.id}/{version.number}#findings", 303)


@router.post("/piece/{id_}/{number}/words")
def add_words(owner: Owner, form: Posted, named: Named) -> Response:
    """Add the ticked words to the dictionary; none of those offered is offered again."""
    piece, version = named
    choices = Choices(version.folder.parent)
    own = choices.offered(words_of(version))
    ticked = set() if "none" in form else set(map(str, form.getlist("word")))
    offered = (*own.names, *own.words)
    choices.note_offered(offered, [word for word in offered if word in ticked])
    return RedirectResponse(f"/piece/{piece.id}/{version.number}", 303)


@router.get("/piece/{id_}/dismissed")
def show_dismissed(owner: Owner, id_: str) -> Response:
    """The dismissed findings, the dictionary, and how many first findings were useful."""
    piece = owner.piece(id_)
    choices = Choices(piece.last.folder.parent)
    return owner.page(
        "dismissed.html.j2",
        piece=piece,
        title=piece.title,
        rows=choices.dismissed()[::-1],
        dictionary="\n".join(choices.dictionary()),
        counts=Told(owner.desk.folder).counts(),
    )


@router.post("/piece/{id_}/dismissed")
def take_back(owner: Owner, form: Posted, id_: str) -> Response:
    """Show a dismissed finding again; it no longer counts as not useful."""
    piece, number = owner.piece(id_), str(form.get("number", ""))
    choices = Choices(piece.last.folder.parent)
    row = choices.take_back(int(number)) if number.isdecimal() and len(number) < 9 else None
    if row is not None:
        Told(owner.desk.folder).mark(piece.id, row.kind, row.words, is_useful=None)
    return RedirectResponse(f"/piece/{id_}/dismissed", 303)


@router.post("/piece/{id_}/dictionary")
def write_dictionary(owner: Owner, form: Posted, id_: str) -> Response:
    """Replace the dictionary of a piece."""
    choices = Choices(owner.piece(id_).last.folder.parent)
    choices.write_dictionary(str(form.get("words", "")).splitlines())
    return RedirectResponse(f"/piece/{id_}/dismissed#dictionary", 303)

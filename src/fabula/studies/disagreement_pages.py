"""The organiser's pages about differing answers: the answers, the text, and the decision."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from fabula.studies.adjudicating import Disagreement, disagreements, read_resolutions, resolve
from fabula.studies.design import StudyDesign
from fabula.studies.exporting import export
from fabula.studies.forms import FormError
from fabula.studies.organiser import Asked, Organiser
from fabula.studies.pairs import pairs_within
from fabula.studies.units import Unit
from fabula.studies.views import render, told
from fabula.web.guard import csrf_of

router = APIRouter(prefix="/organise")
_N_AT_ONCE = 10
_PAGE = re.compile(r"[0-9]{1,6}")


@router.get("/disagreements")
def listed(request: Request, token: Organiser) -> HTMLResponse:
    """List disagreements: the open ones, or all."""
    return _listed(request, token, request.query_params)


@router.post("/resolve")
def decide(request: Request, token: Organiser, form: Asked) -> Response:
    """Store a decision and show the next disagreement."""
    study = request.app.state.study
    with study.store.writing() as connection:
        found = list(export(connection, study.design, study.units))
        asked = next(
            (one for one in disagreements(found, study.design) if one.key == form.get("key")), None
        )
        if asked is None:
            raise HTTPException(404)
        try:
            resolve(connection, asked, form.get("answer", ""), form.get("note", ""), "organiser")
        except FormError as error:
            problem = str(error)
        else:
            base = str(request.scope.get("root_path", ""))
            where = "?show=all" if form.get("show") == "all" else ""
            return RedirectResponse(f"{base}/organise/disagreements{where}", 303)
    return _listed(request, token, form, {asked.key: (problem, form)})


def _listed(
    request: Request,
    token: str,
    where: Mapping[str, str],
    wrong: Mapping[str, tuple[str, Mapping[str, str]]] | None = None,
) -> HTMLResponse:
    """wrong: by question, the error and the rejected input."""
    study = request.app.state.study
    with study.store.reading() as connection:
        found = list(export(connection, study.design, study.units))
        decided = read_resolutions(connection)
    every = disagreements(found, study.design)
    is_all = where.get("show") == "all"
    shown = [one for one in every if is_all or (one.document_id, one.item.id) not in decided]
    number = int(where["page"]) if _PAGE.fullmatch(where.get("page", "")) else 1
    n_pages = max(1, -(-len(shown) // _N_AT_ONCE))
    number = min(max(1, number), n_pages)
    first = (number - 1) * _N_AT_ONCE
    rows = [
        {
            "asked": one,
            "texts": _texts(one, study.design, study.units),
            "decided": decided.get((one.document_id, one.item.id)),
            "problem": (wrong or {}).get(one.key, ("", {}))[0],
            "sent": (wrong or {}).get(one.key, ("", {}))[1],
        }
        for one in shown[first : first + _N_AT_ONCE]
    ]
    html = render(
        "disagreements.html.j2",
        title="Disagreements",
        base=request.scope.get("root_path", ""),
        csrf=csrf_of(token),
        rows=rows,
        number=number,
        n_pages=n_pages,
        is_all=is_all,
        n_all=len(every),
        n_open=sum((one.document_id, one.item.id) not in decided for one in every),
    )
    return HTMLResponse(html)


def _texts(
    asked: Disagreement, design: StudyDesign, units: Mapping[str, Unit]
) -> Sequence[tuple[str, list[str]]]:
    """Return what the readers saw, in titled parts, without any hint of where it comes from."""
    if design.kind == "pairs":
        pairs = pairs_within([unit.documents for unit in units.values()])
        both = enumerate(pairs[asked.document_id], 1)
        return [(f"Story {number}", told(one.text)) for number, one in both]
    document = next(
        one for unit in units.values() for one in unit.documents if one.id == asked.document_id
    )
    if design.kind != "feedback":
        return [("Story", told(document.text))]
    parts = [("Story", told(str(document.meta["story"]))), ("Feedback", told(document.text))]
    if asked.item.reveals and document.meta.get("original"):
        parts.append(("The story before it was changed", told(str(document.meta["original"]))))
    return parts

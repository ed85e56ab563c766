"""Requests from the desk's owner: the page context, and the submitted form."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import FormData, UploadFile

from fabula.desk.drafts import Piece, Version
from fabula.desk.rendering import render
from fabula.desk.work import Desk
from fabula.web.guard import is_secret

_MAX_FIELDS, _MAX_FILES, _MAX_PART_BYTES = 40, 400, 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Visit:
    """A request from the desk's owner."""

    desk: Desk
    csrf: str

    def page(self, template: str, **values: Any) -> HTMLResponse:
        return HTMLResponse(render(template, csrf=self.csrf, **values))

    def piece(self, id_: str) -> Piece:
        """Raises 404."""
        piece = self.desk.drafts.piece(id_)
        if piece is None:
            raise HTTPException(404)
        return piece

    def found(self, id_: str, number: int) -> tuple[Piece, Version]:
        """A piece and a version of it. Raises 404."""
        piece = self.piece(id_)
        version = next((one for one in piece.versions if one.number == number), None)
        if version is None:
            raise HTTPException(404)
        return piece, version


def text_in(form: FormData) -> str:
    """The text that was typed into a form."""
    return str(form.get("text", "")).replace("\r\n", "\n")


def files_in(form: FormData) -> list[UploadFile]:
    """The files that were chosen in a form."""
    return [one for one in form.getlist("files") if isinstance(one, UploadFile) and one.filename]


def report_file(folder: Path, name: str) -> Response:
    """The report in this folder, to download under this name. Raises 404."""
    path = folder / "report.html"
    if not path.exists():
        raise HTTPException(404)
    headers = {"content-disposition": f'attachment; filename="{name}.html"'}
    return Response(path.read_bytes(), media_type="text/html", headers=headers)


def visit(request: Request) -> Visit:
    return Visit(request.app.state.desk, request.app.state.csrf)


async def posted(request: Request) -> AsyncIterator[FormData]:
    """The form submitted from a page of the desk."""
    async with request.form(
        max_fields=_MAX_FIELDS, max_files=_MAX_FILES, max_part_size=_MAX_PART_BYTES
    ) as form:
        if not is_secret(form.get("csrf"), request.app.state.csrf):
            raise HTTPException(403)
        yield form


Owner = Annotated[Visit, Depends(visit)]
Posted = Annotated[FormData, Depends(posted)]

"""Requests from the desk's owner: the page context, and the submitted form."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request
from fastapi.responses import HTMLResponse
from starlette.datastructures import FormData

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

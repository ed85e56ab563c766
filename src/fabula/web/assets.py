"""Files that a page needs, served as they lie; nothing else of the disk can be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fastapi import FastAPI, HTTPException
from fastapi.responses import Response

__all__ = ["serve_assets"]


def serve_assets(app: FastAPI, assets: Mapping[str, tuple[Path, str]]) -> None:
    """Serve these at `/static/NAME`: each with its file and media type, read once."""
    files = {name: (path.read_bytes(), kind) for name, (path, kind) in assets.items()}

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in files:
            raise HTTPException(404)
        data, kind = files[name]
        return Response(data, media_type=kind, headers={"cache-control": "max-age=3600"})

    @app.get("/favicon.ico")
    def icon() -> Response:
        return Response(status_code=204, headers={"cache-control": "max-age=86400"})

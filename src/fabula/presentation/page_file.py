"""Write a page: one self-contained file that never overwrites files of other origin."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment

from fabula.errors import InputError
from fabula.store import write_whole
from fabula.web import page_environment

TEMPLATES = Path(__file__).parent / "templates"

_GENERATOR = b'<meta name="generator" content="Fabula">'


def write_page_file(path: Path, template: str, page: Mapping[str, Any]) -> None:
    """Write `page` using one of the templates next to this module."""
    check_page_path(path)
    text = page_templates().get_template(template).render(page=page)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode(errors="replace"))


@functools.cache
def page_templates() -> Environment:
    """The templates, which take longer to compile than a page takes to fill: opened once."""
    return page_environment(TEMPLATES)


def check_page_path(path: Path) -> None:
    """Raise `InputError` if `path` is something other than a page written by Fabula."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file for the page")
    if path.exists() and _GENERATOR not in path.read_bytes()[:2048]:
        raise InputError(f"{path}: was not written by Fabula; choose another name")

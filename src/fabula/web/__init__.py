"""What all pages share: the base template, the style, the version of their files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

__all__ = ["StaticFiles", "page_environment", "visible"]

StaticFiles = Mapping[str, tuple[Path, str]]
"""Files that an application serves, by name: each with its media type."""

_HERE = Path(__file__).parent
_CONTROLS = {code: "\ufffd" for code in range(32) if chr(code) not in "\t\n\r"}


def page_environment(*templates: Path, static: StaticFiles | None = None) -> Environment:
    """Templates of one or more rooms, on top of the shared ones. All output is escaped.

    `edition` is a version of the files in `static`. It belongs in their URLs, so that no browser
    caches a script that does not fit the page.
    """
    environment = Environment(
        loader=FileSystemLoader([*templates, _HERE / "templates"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The style is trusted and inserted unescaped, so that the page is one file.
    style = (_HERE / "static" / "fabula.css").read_text(encoding="utf-8")
    environment.globals["style"] = Markup(style)
    held = b"".join(path.read_bytes() for path, _ in (static or {}).values())
    environment.globals["edition"] = hashlib.sha256(held).hexdigest()[:8]
    return environment


def visible(text: str) -> str:
    """Control characters, which are not allowed in HTML, as replacement characters."""
    return text.translate(_CONTROLS).replace("\r", "")

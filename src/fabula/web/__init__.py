"""What every page shares: the base template, the style, the edition of its files."""

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
    """Templates of a room or more, over the shared ones. Everything that they show is escaped.

    `edition` tells the files in `static` from those of other versions. It belongs into their
    addresses, so that no browser keeps a script that does not fit the page.
    """
    environment = Environment(
        loader=FileSystemLoader([*templates, _HERE / "templates"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The style is ours and goes into the page as it is, so that the page is one file.
    style = (_HERE / "static" / "fabula.css").read_text(encoding="utf-8")
    environment.globals["style"] = Markup(style)
    held = b"".join(path.read_bytes() for path, _ in (static or {}).values())
    environment.globals["edition"] = hashlib.sha256(held).hexdigest()[:8]
    return environment


def visible(text: str) -> str:
    """Control characters, which HTML cannot hold, shown as replacement characters."""
    return text.translate(_CONTROLS).replace("\r", "")

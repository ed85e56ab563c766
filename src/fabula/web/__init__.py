"""What every page shares: the base template and the style."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

__all__ = ["page_environment", "visible"]

_HERE = Path(__file__).parent
_CONTROLS = {code: "\ufffd" for code in range(32) if chr(code) not in "\t\n\r"}


def page_environment(*templates: Path) -> Environment:
    """Templates of a room or more, over the shared ones. Everything that they show is escaped."""
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
    return environment


def visible(text: str) -> str:
    """Control characters, which HTML cannot hold, shown as replacement characters."""
    return text.translate(_CONTROLS).replace("\r", "")

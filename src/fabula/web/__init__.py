"""What all pages share: the base template, the style, the version of their files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from fabula.core.cached_results import cache_folder
from fabula.core.errors import DAMAGE
from fabula.core.types import Measurement

StaticFiles = Mapping[str, tuple[Path, str]]
"""Files that an application serves, by name: each with its media type."""

_HERE = Path(__file__).parent
_CONTROLS = {code: "\ufffd" for code in range(32) if chr(code) not in "\t\n\r"}


def page_environment(*templates: Path, static: StaticFiles | None = None) -> Environment:
    """Templates of one or more rooms, on top of the shared ones; `ROOM/NAME` names any room's.

    All output is escaped, and control characters, which HTML forbids, are replaced.

    `edition` is a version of the files in `static`. It belongs in their URLs, so that no browser
    caches a script that does not fit the page.
    """
    # What lies there is run, so the folder must be the user's, and closed to others.
    folder, is_safe = cache_folder() / "templates", False
    with contextlib.suppress(OSError):
        folder.mkdir(0o700, parents=True, exist_ok=True)
        seen = folder.lstat()
        is_safe = seen.st_uid == os.getuid() and seen.st_mode == 0o040700
    environment = Environment(
        loader=FileSystemLoader([*templates, _HERE / "templates", _HERE.parent]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        bytecode_cache=_Compiled(str(folder)) if is_safe else None,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The style is trusted and inserted unescaped, so that the page is one file.
    style = (_HERE / "static" / "fabula.css").read_text(encoding="utf-8")
    environment.globals["style"] = Markup(style)
    held = b"".join(path.read_bytes() for path, _ in (static or {}).values())
    environment.globals["edition"] = hashlib.sha256(held).hexdigest()[:8]
    return environment


class _Compiled(FileSystemBytecodeCache):
    """Compiled templates, which take a quarter of a second to make. Damage, or a full disk, costs
    that time only."""

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except (*DAMAGE, EOFError, pickle.UnpicklingError):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


def _shown(value: object) -> object:
    """What an expression of a template writes; the output of a macro has been here before."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def visible(text: str) -> str:
    """Control characters, which are not allowed in HTML, as replacement characters."""
    return text.translate(_CONTROLS).replace("\r", "")


Line = tuple[str, float | str | None, str | None]
"""A name, its value, and if that is None the reason."""

# No colours, since the surroundings may be light or dark.
_CELL = "text-align:left;vertical-align:top;padding:2px 14px 2px 0;border:0;background:none"
_TABLE = "border-collapse:collapse;color:inherit;background:none"
_SOFT = "opacity:.7;font-size:90%;overflow-wrap:anywhere"


def notebook_table(title: str, lines: Iterable[Line], signature: str = "") -> str:
    """HTML without scripts and style sheets, with everything escaped.

    A missing value is shown as `missing: reason`, never as a number or left blank.
    """
    rows = ""
    for name, value, reason in lines:
        if value is None:
            missing = _text(f"missing: {reason or 'no reason given'}")
            shown = f'<span style="{_SOFT}">{missing}</span>'
        elif isinstance(value, str):
            shown = _text(value)
        else:
            shown = f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
        rows += f'<tr><th style="{_CELL};font-weight:normal">{_text(name)}</th>'
        rows += f'<td style="{_CELL}">{shown}</td></tr>'
    foot = f'<div style="{_SOFT}">{_text(signature)}</div>' if signature else ""
    return f'<div><b>{_text(title)}</b><table style="{_TABLE}">{rows}</table>{foot}</div>'


def measured_lines(measurements: Iterable[Measurement]) -> list[Line]:
    """One line per measurement, by the item that it answers."""
    return [(mark.item, mark.value, mark.missing_reason) for mark in measurements]


def _text(text: str) -> str:
    return escape(visible(text))

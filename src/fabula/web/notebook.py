"""Results in a notebook: a plain table, with the signature below."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from fabula.types import Measurement
from fabula.web import visible

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
    return [(one.item, one.value, one.missing_reason) for one in measurements]


def _text(text: str) -> str:
    return escape(visible(text))

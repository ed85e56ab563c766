"""The pages of the desk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from fabula.presentation.page_file import TEMPLATES
from fabula.presentation.review_page import page_of
from fabula.review import LeftOut, Review
from fabula.web import page_environment

_HERE = Path(__file__).parent
_BAR, _HEAD = "<!--bar-->", "<!--head-->"
_RENEW = '<noscript><meta http-equiv="refresh" content="3"></noscript>'
_REMEDIES = {
    "no reference": "add something to compare with, and choose it under “How it is measured”",
    "no language model": "choose a model under “How it is measured”",
    "left out on request": "tick it under “How it is measured”",
    "fabula setup": "fetch the models on the desk's first page, and measure the draft again",
    "cost was not confirmed": "measure the draft again, and confirm the cost",
}
"""Remedies on the desk, by a keyword of the reason, where the report names a command."""
STATIC = {
    "desk.css": (_HERE / "static" / "desk.css", "text/css"),
    "desk.js": (_HERE / "static" / "desk.js", "text/javascript"),
}
"""All static files that are served; no other files are accessible."""

_ENVIRONMENT = page_environment(_HERE / "templates", TEMPLATES, static=STATIC)


def render(template: str, **values: Any) -> str:
    """A page, or a part of one."""
    return _ENVIRONMENT.get_template(template).render(**values)


def render_report(review: Review) -> str:
    """The report as a standalone file."""
    return render("review.html.j2", page=page_of(review))


def render_place(review: Review) -> str:
    """The report for the desk, with room for the bar; remedies refer to the desk."""
    left_out = tuple(replace(one, remedy=_remedy(one)) for one in review.left_out)
    page = page_of(replace(review, left_out=left_out))
    return render("place.html.j2", page=page, bar=_BAR, head=_HEAD, on_desk=True)


def _remedy(one: LeftOut) -> str:
    """How to enable on the desk an instrument that did not run."""
    if one.is_failure:
        return "press “Try again”"
    for reason, remedy in _REMEDIES.items():
        if reason in one.reason:
            return remedy
    return "install the extras of Fabula that it needs; the first page of the manual lists them"


def render_waiting(title: str) -> str:
    """The page shown before the first part of the report is ready."""
    return render("waiting.html.j2", title=title, bar=_BAR, head=_HEAD)


def with_bar(place: str, bar: str, *, is_over: bool) -> str:
    """A report with the desk's bar in place; it reloads itself where scripts do not run.

    No text can contain the markers: `<` is escaped.
    """
    return place.replace(_HEAD, "" if is_over else _RENEW, 1).replace(_BAR, bar, 1)

"""Themes of reasons for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from fabula.presentation.sheet import render
from fabula.tasks.reason_themes import Theme
from fabula.types import Rubric

_N_REASONS = 3
_WIDTH = 92


def theme_lines(themes: Sequence[Theme], rubric: Rubric) -> list[str]:
    """By item, why stories pass it, then why they fail it, with the most typical reasons."""
    lines: list[str] = []
    for item in rubric.items:
        mine = [theme for theme in themes if theme.item == item.id]
        if mine:
            lines += [f"{item.index} {item.title}", ""]
        for theme in mine:
            share = f"{theme.n_rationales} of {theme.n_of}"
            lines.append(f"  {theme.side}: {theme.label} ({share})")
            for reason in theme.reasons[:_N_REASONS]:
                lines += textwrap.wrap(
                    f"“{reason['text']}” ({reason['document']})",
                    _WIDTH,
                    initial_indent="    ",
                    subsequent_indent="    ",
                )
            lines.append("")
    if lines:
        lines.append(
            "A rationale with several sentences can count under several themes; `name_with_model` "
            "has a model name them."
        )
    # Wrapped as the terminal shows them, without its commands.
    return render(*lines).split("\n")[:-1]

"""Escape text for LaTeX."""

from __future__ import annotations

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: "\\" + character for character in "&%$#_{}"},
    # Symbols in our own tables that the fonts of plain LaTeX have only as commands.
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "§": r"\S{}",
    "¶": r"\P{}",
    "‖": r"$\|$",
    "◊": r"$\diamond$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
}


def escape_latex(text: str) -> str:
    """The text as LaTeX shows it, on one line, without control characters."""
    line = "".join(c for c in " ".join(text.split()) if c.isprintable())
    return "".join(_SPECIAL.get(character, character) for character in line)

"""Convert Penn Treebank tokens, as in the Children's Book Test, back to normal text."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_OPENS = frozenset("([{$£#") | {"``", "`"}
_CLOSES = frozenset(")]},.;:!?%") | {"...", "''", "'"}
_CLITIC = re.compile(r"(?:n't|'(?:s|m|d|re|ve|ll))$", re.IGNORECASE)
# Words that the tokeniser splits, by their halves.
_HALVES = {
    ("can", "not"): "cannot",
    ("gon", "na"): "gonna",
    ("got", "ta"): "gotta",
    ("lem", "me"): "lemme",
    ("gim", "me"): "gimme",
    ("wan", "na"): "wanna",
    ("'t", "is"): "'tis",
    ("'t", "was"): "'twas",
    ("d'", "ye"): "d'ye",
    ("more", "'n"): "more'n",
}


def detokenise(tokens: Sequence[str]) -> str:
    """The sentence with these tokens: quotes attached to their words, contractions joined.

    A grave accent opens a single quotation; a lone `'` closes one or marks a possessive, and
    follows its word either way. Double quotes become straight ones; `--` joins its words.
    """
    parts: list[str] = []
    glue = True
    is_open = False
    whole = _joined(tokens)
    for k, token in enumerate(whole):
        if token == "'" and _opens(whole, k):
            token = "`"
        shown = _BRACKETS.get(token, token)
        sticks = False
        if token == '"':
            # A straight quote opens and closes alternately.
            token = "''" if is_open else "``"
            is_open = not is_open
        if token == "``":
            shown, sticks_after = '"', True
        elif token == "`":
            shown, sticks_after = "'", True
        elif token == "''":
            shown, sticks, sticks_after = '"', True, False
        elif token == "--":
            sticks, sticks_after = True, True
        else:
            sticks = shown in _CLOSES or bool(_CLITIC.fullmatch(token))
            sticks_after = shown in _OPENS
        parts.append(shown if glue or sticks else f" {shown}")
        glue = sticks_after
    return "".join(parts)


def _opens(tokens: Sequence[str], k: int) -> bool:
    """Whether a lone `'` opens a quotation after all: `said he , ' I know`.

    It does if none is open, it follows a comma, a colon or nothing, and a capital follows.
    """
    before = [token for token in tokens[:k] if token in ("`", "'")]
    is_closed = not before or before[-1] == "'"
    follows = tokens[k + 1][:1] if k + 1 < len(tokens) else ""
    return is_closed and follows.isupper() and (k == 0 or tokens[k - 1] in (",", ":", ";", "--"))


def _joined(tokens: Sequence[str]) -> list[str]:
    """The tokens, with split words rejoined and capitals kept."""
    found: list[str] = []
    k = 0
    while k < len(tokens):
        pair = tokens[k].lower(), tokens[k + 1].lower() if k + 1 < len(tokens) else ""
        if pair in _HALVES:
            whole = _HALVES[pair]
            is_capital = "".join(tokens[k : k + 2]).lstrip("'")[:1].isupper()
            first = 1 if whole.startswith("'") else 0
            capital = whole[:first] + whole[first : first + 1].upper() + whole[first + 1 :]
            found.append(capital if is_capital else whole)
            k += 2
        else:
            found.append(tokens[k])
            k += 1
    return found

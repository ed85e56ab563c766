"""Which words of a text are errors of grammar or spelling (Roemmele et al. 2017, metric 2)."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from fabula.errors import InputError, ModelError

__all__ = ["Checker", "Harper", "LanguageTool", "open_checker", "share_correct"]

# What harper says of style and typography is no error of grammar.
_MATTERS_OF_TASTE = frozenset(
    ("Capitalization", "Enhancement", "Formatting", "Readability", "Redundancy", "Regionalism",
     "Style", "WordChoice")
)  # fmt: skip
# Its groups of rules that say nothing else; most of its time goes into the first.
_GROUPS_OF_TASTE = frozenset(
    ("Style and Redundancy", "Proper Nouns", "Capitalization and Case", "Regionalisms and Dialect")
)
_OF_SPELLING = frozenset(("Spelling", "Typo"))
# LanguageTool's own categories of the same sort.
_TASTE_CATEGORIES = frozenset(
    ("CASING", "PLAIN_ENGLISH", "REDUNDANCY", "STYLE", "TYPOGRAPHY", "REGIONALISMS", "WIKIPEDIA")
)


class Checker(Protocol):
    """Finds errors."""

    name: str

    def errors(self, text: str, names: Sequence[tuple[int, int]] = ()) -> list[tuple[int, int]]:
        """Pairs of offsets, half-open, in characters. A name is never misspelt."""
        ...


class Harper:
    """Harper, by its package. Raises `ModelError` where it is not installed.

    A word is misspelt where both American and British English say so. Matters of style, typography
    and case do not count.
    """

    def __init__(self) -> None:
        try:
            import harper
        except ImportError as error:
            raise ModelError(
                "grammar needs harper-py; run: pip install 'fabula[nlp]', or choose --grammar none"
            ) from error
        self.name = f"harper-{importlib.metadata.version('harper-py')}"
        self._american = _linter(harper.Dialect.AMERICAN)
        self._british = _linter(harper.Dialect.BRITISH)

    def errors(self, text: str, names: Sequence[tuple[int, int]] = ()) -> list[tuple[int, int]]:
        found = [x for x in self._american.lint(text) if x.lint_kind not in _MATTERS_OF_TASTE]
        british: set[tuple[int, int]] | None = None
        kept = []
        for lint in found:
            place = lint.span.start, lint.span.end
            if lint.lint_kind in _OF_SPELLING:
                if _touches(place, names):
                    continue
                if british is None:
                    british = {(x.span.start, x.span.end) for x in self._british.lint(text)}
                if place not in british:
                    continue
            kept.append(place)
        return kept


def _linter(dialect: Any) -> Any:
    import harper

    linter = harper.Linter(dialect)
    groups = [entry["Group"] for entry in linter.get_structured_lint_config()["settings"]
              if "Group" in entry]  # fmt: skip
    taste = [group for group in groups if group["label"] in _GROUPS_OF_TASTE]
    linter.set_lint_config({**linter.get_lint_config(), **dict.fromkeys(_rules(taste), False)})
    return linter


def _rules(tree: Any) -> Iterator[str]:
    """The names of the rules in a group, which may hold groups."""
    if isinstance(tree, dict):
        if "Bool" in tree:
            yield tree["Bool"]["name"]
        for branch in tree.values():
            yield from _rules(branch)
    elif isinstance(tree, list):
        for branch in tree:
            yield from _rules(branch)


class LanguageTool:
    """The paper's tool, by the package language_tool_python, or a server at `url`.

    Raises `ModelError` where the package is missing or the tool cannot be started.
    """

    def __init__(self, url: str | None = None) -> None:
        try:
            import language_tool_python
        except ImportError as error:
            raise ModelError(
                "LanguageTool needs a package; run: pip install language-tool-python"
            ) from error
        where = {"remote_server": url} if url else {}
        try:
            self._tool: Any = language_tool_python.LanguageTool("en-US", **where)
        except (OSError, RuntimeError, language_tool_python.utils.LanguageToolError) as error:
            raise ModelError(
                f"LanguageTool could not be started ({error}); it needs Java and downloads itself "
                f"on first use; or give a server as --grammar languagetool@URL"
            ) from error
        version = importlib.metadata.version("language-tool-python")
        self.name = f"languagetool-python-{version}" + (f",{url}" if url else "")

    def errors(self, text: str, names: Sequence[tuple[int, int]] = ()) -> list[tuple[int, int]]:
        found = []
        for match in self._tool.check(text):
            place = match.offset, match.offset + match.error_length
            if match.category in _TASTE_CATEGORIES:
                continue
            if match.category != "TYPOS" or not _touches(place, names):
                found.append(place)
        return found


def _touches(place: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    return any(place[0] < end and start < place[1] for start, end in others)


def open_checker(name: str) -> Checker | None:
    """`harper`, `languagetool`, `languagetool@URL`, or `none`. Raises `InputError`."""
    kind, _, url = name.partition("@")
    if kind == "none" and not url:
        return None
    if kind == "harper" and not url:
        return Harper()
    if kind == "languagetool":
        return LanguageTool(url or None)
    raise InputError(
        f"{name}: no such grammar checker; write harper, languagetool, languagetool@URL or none"
    )


def share_correct(words: Sequence[tuple[int, int]], errors: Iterable[tuple[int, int]]) -> float:
    """The share of words that no error touches; both are offsets, and there is a word."""
    marked = list(errors)
    n_wrong = sum(_touches(word, marked) for word in words)
    return 1 - n_wrong / len(words)

"""Find the words of a text with grammar or spelling errors (Roemmele et al. 2017, metric 2)."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import re
import urllib.parse
import urllib.request
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, chain, islice
from typing import Any, NamedTuple

from fabula.core.cached_results import Kept, Memo
from fabula.core.errors import InputError, ModelError
from fabula.text.parsing import Parsed
from fabula.text.pipeline import open_beside
from fabula.text.sentences import overlaps
from fabula.text.words import word_set

# Harper's remarks on style and typography are not grammar errors.
_MATTERS_OF_TASTE = word_set("Capitalization Enhancement Formatting Readability Regionalism Style")
# Harper's rule groups that report nothing else; the first takes most of its time.
_GROUPS_OF_TASTE = (
    "Style and Redundancy", "Proper Nouns", "Capitalization and Case", "Regionalisms and Dialect",
    "Initialisms",
)  # fmt: skip
# Exceptions: rules in these groups that do find errors.
_ERRORS_OF_STYLE = frozenset(("AnAnother", "AnotherAn", "MoreBetter", "RepeatedWords"))
# Rules that fire more than once in 10,000 sentences of edited prose (29,633 of novels, children's
# books and speeches, by `bench/grammar.py`), mostly false positives. A rule that finds textbook
# errors may fire ten times as often; for those that fire more, see `Harper`.
_NOISE = word_set(
    "AWhile AdjectiveOfA Anybody AvoidCurses CommaFixes CompoundNouns Dashes DisjointPrefixes",
    "DoubleModal EllipsisLength Everybody Everyone FindOut ForNoun HadOf InflectedVerbAfterTo",
    "ItsContraction LetsConfusion LitotesDirectPositive MassNouns MergeWords MissingPreposition",
    "MissingTo ModalBeAdjective MultipleSequentialPronouns NoOxfordComma NumericRangeEnDash",
    "OrthographicConsistency Overall OxfordComma PossessiveYour PronounContraction PronounKnew",
    "QuantifierNumeralConflict QuiteQuiet Someone Spaces SplitWords ThatThan ThatWhich",
    "ThereIsAgreement ThereToTheir TheyToThem ToTwoToo UnclosedQuotes UpdatePlaceNames",
    "UseEllipsisCharacter VerbToAdjective WereWhere WhomSubjectOfVerb WillNonLemma Worthwhile",
    "WouldNeverHave WrongNegative YourPredicateAdjective",
)
# Rules that print to the terminal, in the middle of a command's output.
_PRINTS = frozenset(("LookingForwardTo",))
_RULES = "rules3"
"""Version of the rule selection, for signatures: change it with any of the above."""
_STANDARD_REPEATS = frozenset(("had had", "that that"))
_READ_CHARS = 60
_APART = "\n\n"
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+")
_NO_WORD = re.compile(r"\S{200,}")
_OF_SPELLING = frozenset(("Spelling", "Typo"))
_LANGUAGETOOL = "http://localhost:8081"
"""Default address of its server."""
_TIMEOUT_S = 60
_REMEMBERED_CHARS = 2_000_000
"""The sentences of two drafts of a novel, with the places of names and verbs in them."""
_BATCH = 256
_CHECKED_AT_ONCE = 64
"""Sentences, which take a fifth of a second."""
# LanguageTool's own categories of the same kind.
_TASTE_CATEGORIES = word_set(
    "CASING PLAIN_ENGLISH REDUNDANCY STYLE TYPOGRAPHY REGIONALISMS WIKIPEDIA"
)


class Piece(NamedTuple):
    """A sentence to check, with offsets in it: a name is never misspelt, and a verb in the `past`
    never disagrees with its subject."""

    text: str
    names: Sequence[tuple[int, int]] = ()
    past: Sequence[tuple[int, int]] = ()


class Fault(NamedTuple):
    """An error of grammar or spelling: its position, half-open in characters, and its kind."""

    place: tuple[int, int]
    message: str
    is_spelling: bool
    suggestions: tuple[str, ...] = ()


class Harper:
    """Harper, from its Python package. Raises `ModelError` if it is not installed.

    A word is misspelt if both American and British English say so. Style, typography and case do
    not count, nor do rules that fire on edited prose.
    """

    def __init__(self) -> None:
        try:
            import harper
        except ImportError as error:
            raise ModelError(
                "grammar needs harper-py; run: pip install 'fabula[nlp]', or choose `grammar` none"
            ) from error
        self.name = f"harper-{importlib.metadata.version('harper-py')},{_RULES}"
        self._dialects = harper.Dialect
        open_beside(_open_first)

    def faults(self, pieces: Iterable[Piece]) -> list[list[Fault]]:
        """The errors of each piece, by place."""
        return _thread().submit(self._faults, list(pieces)).result()

    def _faults(self, pieces: list[Piece]) -> list[list[Fault]]:
        # It searches for corrections of a word, and aborts the process on a very long one.
        texts = [
            _NO_WORD.sub(lambda m: m[0][:_READ_CHARS].ljust(len(m[0])), piece.text)
            for piece in pieces
        ]
        found = [
            [fault for lint in lints if (fault := _fault(lint, piece)) is not None]
            for piece, lints in zip(pieces, _lints(self._dialects.AMERICAN, texts), strict=True)
        ]
        doubted = [k for k, faults in enumerate(found) if any(one.is_spelling for one in faults)]
        british = _lints(self._dialects.BRITISH, [texts[k] for k in doubted])
        for k, lints in zip(doubted, british, strict=True):
            places = {lint.place for lint in lints}
            found[k] = [one for one in found[k] if not one.is_spelling or one.place in places]
        return [sorted(faults, key=lambda fault: fault.place) for faults in found]


class _Lint(NamedTuple):
    """What a rule of Harper reports about one text."""

    rule: str
    place: tuple[int, int]
    lint: Any


def _lints(dialect: Any, texts: Sequence[str]) -> list[list[_Lint]]:
    """What the rules report about each text. All are read at once, as paragraphs, which takes half
    the time; no rule looks beyond a paragraph."""
    starts = [0, *accumulate(len(text) + len(_APART) for text in texts)]
    joined = "".join(text + _APART for text in texts)
    found: list[list[_Lint]] = [[] for _ in texts]
    for rule, group in _linter(dialect).organized_lints(joined, language="plaintext").items():
        for lint in group:
            k = bisect_right(starts, lint.span.start) - 1
            place = lint.span.start - starts[k], lint.span.end - starts[k]
            found[k].append(_Lint(rule, place, lint))
    return found


def _fault(found: _Lint, piece: Piece) -> Fault | None:
    """What a rule reports, unless it is a matter of taste, a name or a frequent false positive."""
    rule, place, lint = found
    text = piece.text
    is_spelling = lint.lint_kind in _OF_SPELLING
    if rule == "PronounVerbAgreement":
        # "He stuck to her": it knows many verbs in the present tense only.
        is_false = overlaps(place, piece.past)
    elif rule == "AnA":
        # "An' so": and.
        is_false = text[place[1] : place[1] + 1] in ("'", "’", "-")
    elif rule == "RepeatedWords":
        is_false = text[slice(*place)].lower() in _STANDARD_REPEATS
    else:
        initials = _INITIALS.match(text, place[0]) if is_spelling else None
        is_false = initials is not None and initials.end() >= place[1]
    if is_false or lint.lint_kind in _MATTERS_OF_TASTE:
        return None
    if is_spelling and overlaps(place, piece.names):
        return None
    likely = tuple(filter(None, (hint.replacement_text for hint in lint.suggestions)))
    return Fault(place, lint.message, is_spelling, likely)


@functools.cache
def _thread() -> ThreadPoolExecutor:
    """Harper's own: it looks for corrections of a word by tables that a thread makes for its first
    one, in two seconds. It holds Python's lock, so a second thread would not help."""
    return ThreadPoolExecutor(1, thread_name_prefix="harper")


# A forked process has no threads but the one that forked.
os.register_at_fork(after_in_child=_thread.cache_clear)


def _open_first() -> None:
    """Open the first linter, which takes a second."""
    import harper

    _thread().submit(_linter, harper.Dialect.AMERICAN)


def linter_of(dialect: Any) -> Any:
    """Harper's linter with the rules that are used."""
    import harper

    linter = harper.Linter(dialect)
    settings = linter.get_structured_lint_config()["settings"]
    groups = [entry["Group"] for entry in settings if "Group" in entry]
    taste = [group for group in groups if group["label"] in _GROUPS_OF_TASTE]
    off = (_NOISE | _PRINTS | set(_rules(taste))) - _ERRORS_OF_STYLE
    linter.set_lint_config({**linter.get_lint_config(), **dict.fromkeys(off, False)})
    return linter


_linter = functools.cache(linter_of)
"""Those that are open."""


def _rules(tree: Any) -> Iterator[str]:
    """The names of the rules in a group; groups may be nested."""
    if isinstance(tree, dict):
        if "Bool" in tree:
            yield tree["Bool"]["name"]
        for branch in tree.values():
            yield from _rules(branch)
    elif isinstance(tree, list):
        for branch in tree:
            yield from _rules(branch)


class LanguageTool:
    """The paper's tool, via its own server, started with `java -jar languagetool-server.jar`.

    Raises `ModelError` without a proper answer: an unchecked text is not free of errors.
    """

    def __init__(self, url: str = "") -> None:
        self._url = (url or _LANGUAGETOOL).rstrip("/")
        version = self._ask("Hello.").get("software", {}).get("version", "unknown")
        self.name = f"languagetool-{version}"

    def faults(self, pieces: Iterable[Piece]) -> list[list[Fault]]:
        """The errors of each piece, by place."""
        return [self._faults(piece) for piece in pieces]

    def _faults(self, piece: Piece) -> list[Fault]:
        # The offset of each UTF-16 unit, which LanguageTool counts, and of the end.
        text = piece.text
        places = [k for k, char in enumerate(text) for _ in range(2 if ord(char) > 0xFFFF else 1)]
        places.append(len(text))
        faults = []
        for match in self._ask(text)["matches"]:
            category = match["rule"]["category"]["id"]
            start, end = match["offset"], match["offset"] + match["length"]
            place = places[start], places[min(end, len(places) - 1)]
            is_name = category == "TYPOS" and overlaps(place, piece.names)
            if category not in _TASTE_CATEGORIES and not is_name:
                likely = tuple(hint["value"] for hint in match.get("replacements", ()))
                message = str(match.get("message", ""))
                faults.append(Fault(place, message, category == "TYPOS", likely))
        return faults

    def _ask(self, text: str) -> dict[str, Any]:
        """The server's answer over HTTP (`/v2/check`)."""
        form = urllib.parse.urlencode({"language": "en-US", "text": text}).encode()
        try:
            with urllib.request.urlopen(f"{self._url}/v2/check", form, _TIMEOUT_S) as reply:
                answer: dict[str, Any] = json.load(reply)
            list(answer["matches"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(
                f"LanguageTool at {self._url} is not responding ({error}); start its server, or "
                "set its address, `grammar` as languagetool@URL"
            ) from error
        return answer


Checker = Harper | LanguageTool
"""Finds errors; what it found in each sentence is cached."""


def open_checker(name: str) -> Checker | None:
    """`harper`, `languagetool`, `languagetool@URL`, or `none`. Raises `InputError`."""
    kind, _, url = name.partition("@")
    if kind == "none" and not url:
        return None
    if kind == "harper" and not url:
        return Harper()
    if kind == "languagetool":
        return LanguageTool(url)
    raise InputError(
        f"{name}: unknown grammar checker; use harper, languagetool, languagetool@URL or none"
    )


def faults_each(checker: Checker, parsed: Iterable[Parsed]) -> Iterator[tuple[Fault, ...]]:
    """The errors of each parsed text, in order: names are never misspelt, and past tense is known.

    Cached, also on disk: profile, line notes and the next draft check the same sentences.
    """

    return _checked_each(checker, (part.checked for part in parsed))


def is_misspelt_in(checker: Checker, text: str) -> bool:
    """Whether a text without names has a misspelt word; cached, as `faults_each`."""
    (faults,) = _checked_each(checker, [f"[[], []]\n{text}"])
    return any(fault.is_spelling for fault in faults)


def _checked_each(checker: Checker, pieces: Iterable[str]) -> Iterator[tuple[Fault, ...]]:
    """The errors of each piece, which is as `Parsed.checked`."""

    def check(pieces: Iterable[str]) -> Iterable[tuple[Fault, ...]]:
        parts = (piece.partition("\n") for piece in pieces)
        return map(tuple, checker.faults(Piece(text, *json.loads(at)) for at, _, text in parts))

    return _faults_memo(checker).each(pieces, check, _BATCH)


def parsed_and_checked(
    parsed: Iterable[Parsed], checker: Checker | None
) -> tuple[list[Parsed], list[tuple[Fault, ...]]]:
    """All parsed texts, and the errors of each; none without a checker.

    Two threads check while the next are parsed; an interrupt waits for their batches.
    """
    if checker is None:
        parsed = list(parsed)
        return parsed, [()] * len(parsed)
    stream = iter(parsed)
    batches, futures = [], []
    pool = ThreadPoolExecutor(2)
    try:
        while batch := list(islice(stream, _CHECKED_AT_ONCE)):
            batches.append(batch)
            futures.append(pool.submit(lambda texts: list(faults_each(checker, texts)), batch))
        faults = [future.result() for future in futures]
    finally:
        pool.shutdown(cancel_futures=True)
    return list(chain.from_iterable(batches)), list(chain.from_iterable(faults))


@functools.cache
def _faults_memo(checker: Checker) -> Memo[tuple[Fault, ...]]:
    """The errors that a checker found in sentences; those of a server, whose configuration is not
    known, do not outlive the process."""
    if not isinstance(checker, Harper):
        return Memo(_REMEMBERED_CHARS)
    kept = Kept(
        f"faults 1|{checker.name}",
        list,
        lambda _, rows: tuple(
            Fault((start, end), message, bool(is_spelling), tuple(suggestions))
            for (start, end), message, is_spelling, suggestions in rows
        ),
    )
    return Memo(_REMEMBERED_CHARS, kept)


def share_correct(words: Sequence[tuple[int, int]], errors: Iterable[tuple[int, int]]) -> float:
    """The share of words without an error; both are offsets, and `words` is not empty."""
    marked = list(errors)
    if not marked:
        return 1.0
    return 1 - sum(overlaps(word, marked) for word in words) / len(words)

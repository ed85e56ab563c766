"""Fluency and the notes on lines as parts of the report, and the notes as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fabula.core.errors import explain
from fabula.core.types import Document, Measurement
from fabula.show.norms import Dot, bands_of, scatter
from fabula.show.page import Listed
from fabula.show.parts import (
    Finding,
    FindingKey,
    Marks,
    NumbersPart,
    Review,
    Said,
    TextReview,
    around_of,
    counted,
    finding_at,
)
from fabula.show.sheet import Block, Column, Sheet
from fabula.style.book import BookInstrument, shares_within
from fabula.style.lines import CONFUSED, LINE_KINDS, LineNote, LineReview
from fabula.text.chapters import where_of
from fabula.text.emphasis import unmarked
from fabula.web import visible

if TYPE_CHECKING:
    from fabula.style.fluency import Fluency

SENTENCE_ITEM = "sentence_bits_per_word"
"""The surprisal of every sentence of a group; other items have one value per text."""
_MIN_SENTENCE_WORDS = 3
"""Minimum length in words: one or two say little, as a cry surprises more than a strange sentence.
"""
_LABEL_CHARS = 160
_QUOTE_CHARS = 110
_CELL_CHARS = 60
_WHY_MISSING = {
    "no_words": "no words in the text",
    "too_short": "no text before its only word",
    "not_finite": "the model gave no finite number",
}
_WEIGHTS = {kind.id: kind.weight for kind in LINE_KINDS.values()} | {"echo": 0.75}
"""Weights of the first note of each kind."""
_SAID = (
    (("placeholder",), "placeholder", ""),
    (("name",), "name", " in two spellings"),
    (("renamed",), "possible change of name", ""),
    (("paragraph", "sentence", "echo", "doubled"), "repetition", ""),
    (("unclosed",), "quotation mark", " never closed or opened"),
    (("spelling", "grammar"), "possible error of spelling or grammar", ""),
    ((CONFUSED,), "word", " that may be wrong"),
)
"""Kinds that are counted together, and how."""


class FluencyPart(NumbersPart):
    """The surprisal of each text, and of its sentences."""

    id, title, order, page_order = "fluency", "Fluency", 20, 40
    template = "style/fluency.html.j2"
    metrics = (("bits_per_word", "Surprisal, bits a word", ".2f"),)

    def group_measurements(self, text: TextReview) -> Sequence[Measurement]:
        if self.id not in text.results:
            return ()
        fluency, about = text.results[self.id], (text.document.id, self.id, SENTENCE_ITEM, "fabula")
        signature = str(fluency.signature)
        return [
            Measurement(*about, s.bits_per_word, s.missing_reason, (), None, signature)
            for s in fluency.sentences
            if s.n_words >= _MIN_SENTENCE_WORDS
        ]

    def view(self, number: int, text: TextReview, review: Review) -> Any:
        """The sentences of a text that a model has scored, by novelty and surprisal."""
        fluency: Fluency | None = text.results.get(self.id)
        if fluency is None:
            return None
        originality, groups = text.results.get("originality"), review.groups_of(self.id)
        whole, runs = text.document.text, originality.borrowed if originality else ()
        places = [(sentence.start, sentence.end) for sentence in fluency.sentences]
        shares = shares_within(whole, (run.span for run in runs), places)
        dots = [
            Dot(1 - (share or 0.0), s.bits_per_word, quoted(whole, a, b, _LABEL_CHARS))
            for s, (a, b), share in zip(fluency.sentences, places, shares, strict=True)
            if s.bits_per_word is not None
        ]
        # If originality is missing, nothing is known to be new.
        is_known = originality is not None and originality.missing_reason is None
        reason = fluency.missing_reason or ""
        return {
            "bits": fluency.bits_per_word,
            "missing": _WHY_MISSING.get(reason, reason),
            "bands": bands_of(groups, "bits_per_word", fluency.bits_per_word),
            "picture": scatter(dots, groups, SENTENCE_ITEM) if is_known else None,
        }

    def view_of_all(self, review: Review, n_linked: int) -> Any:
        """Each text between novelty and surprisal."""
        dots = []
        for number, text in enumerate(review.texts, 1):
            originality, fluency = text.results.get("originality"), text.results.get(self.id)
            if originality is None or fluency is None:
                continue
            lowest = next(iter(originality.uniqueness.values()))
            if lowest is not None and fluency.bits_per_word is not None:
                target = f"#a{number}" if number <= n_linked else ""
                dots.append(Dot(lowest, fluency.bits_per_word, text.document.title, target=target))
        return scatter(dots, review.groups_of(self.id), "bits_per_word")

    def methods_of(self, review: Review) -> str:
        parts = self.decided(review)
        model = parts.get("model", "a language model").partition("@")[0]
        return (
            f"Fluency is the surprisal of the words under {model}, in bits per word, with each "
            f"sentence read after the preceding text, up to {parts.get('ctx', 'some')} tokens."
        )


class LinesPart(NumbersPart):
    """Places in each text to look at, by rules."""

    id, title, order, page_order = "lines", "Notes on lines", 40, 30
    template = "style/lines.html.j2"
    has_groups = False
    findings = tuple(LINE_KINDS)

    def measurements(self, result: Any, document: Document) -> Sequence[Measurement]:
        return list(result.measurements(document.id))

    def row_of(self, text: TextReview) -> dict[str, Any]:
        row: dict[str, Any] = text.results[self.id].to_row(text.document)
        return row

    def notes_of(self, text: TextReview) -> Sequence[LineNote]:
        lines: LineReview | None = text.results.get(self.id)
        return () if lines is None else lines.notes

    def weighed(self, text: TextReview) -> Iterable[list[tuple[float, Finding]]]:
        notes = list(enumerate(self.notes_of(text), 1))
        for kind in LINE_KINDS:
            pairs = [pair for pair in notes if pair[1].kind == kind]
            pairs.sort(key=lambda pair: (-pair[1].strength, pair[1].start))
            yield [(_WEIGHTS[kind], _noted(text, number, note)) for number, note in pairs]

    def without(self, text: TextReview, hidden: Collection[FindingKey]) -> TextReview:
        lines: LineReview | None = text.results.get(self.id)
        if lines is None:
            return text
        notes = (note for note in lines.notes if (note.kind, note.start, note.end) not in hidden)
        return text.having(self.id, replace(lines, notes=tuple(notes)))

    def said(self, text: TextReview) -> Iterable[Said]:
        notes = [_noted(text, k, note) for k, note in enumerate(self.notes_of(text), 1)]
        for kinds, what, more in _SAID:
            alike = [note for note in notes if note.kind in kinds]
            if alike:
                yield Said(f"{counted(len(alike), what)}{more}.", self.id, alike[0])
        lines: LineReview | None = text.results.get(self.id)
        if lines is not None and lines.missing_reason is None and not notes:
            yield Said("No notes on lines.", self.id)

    def view(self, number: int, text: TextReview, review: Review) -> Any:
        """The notes on the lines of a text, by kind; None if they were not read."""
        lines: LineReview | None = text.results.get(self.id)
        if lines is None:
            return None
        document, notes = text.document, self.notes_of(text)
        rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in LINE_KINDS}
        for k, note in enumerate(notes, 1):
            rows[note.kind].append(
                {
                    "id": f"n{number}-{k}",
                    "href": f"l{number}-{k}",
                    "where": where_of(document, note.start),
                    "quote": quoted(document.text, note.start, note.end),
                    "around": around_of(document, note.start, note.end),
                    "why": note.why,
                }
            )
        missing = lines.missing_reason
        return {
            "kinds": [
                {"title": kind.title, "right": kind.shown, "notes": rows[kind.id]}
                for kind in LINE_KINDS.values()
                if rows[kind.id]
            ],
            # As marks in the text, each linked to its row.
            "listed": [
                Listed(note.start, note.end, 0, note.why, f"n{number}-{k}", f"l{number}-{k}")
                for k, note in enumerate(notes, 1)
            ],
            "missing": "" if missing is None else explain(missing),
            "is_proofread": "|proofreading:" in lines.signature,
        }

    def marks(self, view: Any) -> Marks:
        return Marks(listed=view["listed"])

    def methods_of(self, review: Review) -> str:
        parts = self.decided(review)
        model = parts.get("model", "").partition("@")[0]
        margins = [float(one) for one in parts.get("margins", "0").split("+")]
        proofread = (
            " Words that may be wrong are those that suit their neighbours badly, and in whose "
            f"place {model} finds another one likelier, by at least {margins[-1]:g} nats."
        )
        if parts.get("whole", "0") != "0":
            proofread += (
                f" It reads texts of up to {int(parts['whole']):,} words whole: there it notes all "
                f"words and marks for which another gains {min(margins):g} to {max(margins):g} "
                "nats, or more in a text with few errors."
            )
        return (
            "Notes on lines (repetitions, names in two spellings, errors, matters of style) "
            f"follow Fabula's rules, version {parts.get('rules', '')}; errors of grammar "
            f"and spelling are those found by {parts.get('grammar', 'no checker')}."
            f"{proofread if model else ''}"
        )


def _noted(text: TextReview, number: int, note: LineNote) -> Finding:
    title = LINE_KINDS[note.kind].title
    return finding_at(text, note.kind, title, (note.start, note.end), note.why, number)


def line_tables(documents: Sequence[Document], reviews: Sequence[LineReview]) -> list[Block]:
    """For each draft its notes in text order, and the number of each kind."""
    parts: list[Block] = []
    for document, review in zip(documents, reviews, strict=True):
        title = document.title
        if review.missing_reason is not None:
            parts += [f"{title}: not read, {explain(review.missing_reason)}", ""]
            continue
        counts = Counter(note.kind for note in review.notes)
        kinds = ", ".join(f"{counts[kind]} {kind}" for kind in LINE_KINDS if counts[kind])
        parts += [f"{title}: {review.n_words:,} words; {kinds or 'nothing to note'}", ""]
        if review.notes:
            columns = place_columns(document)
            columns.insert(1, Column("kind", of=lambda note: LINE_KINDS[note.kind].title.lower()))
            parts += [Sheet.of("notes", review.notes, columns, about=("id", document.id)), ""]
    return [*parts, *dict.fromkeys(review.signature for review in reviews)]


def place_columns(document: Document) -> list[Column]:
    """Where it is, how often such a note is right, its words in context, and why it is one."""

    def words(note: Any) -> str:
        quote = quoted(document.text, note.start, note.end, _CELL_CHARS)
        before, after = around_of(document, note.start, note.end)
        return f"{visible(before)}{quote}{visible(after)}"

    return [
        Column("where", of=lambda note: visible(where_of(document, note.start))),
        Column("right", ".0%", of=lambda note: precision_of(note.kind)),
        Column("place", of=words),
        Column("why", of=lambda note: visible(note.why)),
    ]


def precision_of(kind: str) -> float | None:
    """How often a note of this kind is right; None for other findings."""
    return LINE_KINDS[kind].precision if kind in LINE_KINDS else None


def right_of(kind: str) -> str:
    """How often a note of this kind is right; empty if that is not known."""
    return LINE_KINDS[kind].shown if kind in LINE_KINDS else ""


def quoted(text: str, start: int, end: int, n_chars: int = _QUOTE_CHARS) -> str:
    """The words of a place on one line, truncated between words if too long."""
    words = visible(" ".join(unmarked(text, start, end).split()))
    if len(words) <= n_chars:
        return words
    return (words[:n_chars].rpartition(" ")[0] or words[:n_chars]) + " …"


PARTS = (FluencyPart(), LinesPart(), BookInstrument())

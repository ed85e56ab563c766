"""Tables of labelled spans: the labels, the agreement, and the spans of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from fabula.measures.span_sample import KINDS, DrawnSpan, KindShare, SpanReader
from fabula.presentation.sheet import Block, Cell, Column, Sheet, interval_notes
from fabula.web import visible

__all__ = ["span_tables"]

_MAX_CHARS = 60


class _Scored(Protocol):
    """The results of a job."""

    @property
    def spans(self) -> Sequence[DrawnSpan]: ...

    @property
    def kinds(self) -> Mapping[str, str]: ...

    @property
    def shares(self) -> Sequence[KindShare]: ...

    @property
    def readers(self) -> Sequence[SpanReader]: ...

    @property
    def verdicts(self) -> Mapping[str, Mapping[str, bool | None]]: ...


def span_tables(scored: _Scored) -> list[Block]:
    """The kinds, the readers, then the quotations and the idioms, the least probable first."""
    parts: list[Block] = []
    for sheet in (_kinds(scored.shares), _readers(scored.readers)):
        parts += [sheet, *interval_notes(sheet.estimates(), "texts"), ""]
    parts += [
        "Shares, accuracy and recall are those of all borrowed spans of the texts: each labelled "
        "one counts for as many as its kind by the rule has for each label. At best: the accuracy "
        "of calling nothing a quotation, or everything.",
        "",
    ]
    for kind in KINDS[:2]:
        rows = _listed(scored, kind)
        if rows:
            parts += [f"{kind}s", Sheet(f"{kind}s", _columns(scored), rows), ""]
    return [*parts, scored.spans[0].signature]


def _kinds(shares: Sequence[KindShare]) -> Sheet:
    columns = [
        Column("people say", name="kind"),
        Column("passages", ",d", name="n_passages"),
        Column("commonplaces", ",d", name="n_commonplaces"),
        Column("share of all", ".1%", with_interval=True, name="share"),
    ]
    rows: list[list[Cell]] = [
        [one.kind, one.n_passages, one.n_commonplaces, one.share] for one in shares
    ]
    return Sheet("kinds", columns, rows)


def _readers(readers: Sequence[SpanReader]) -> Sheet:
    columns = [
        Column("quotations by", name="by"),
        Column("labelled", ",d", name="n"),
        Column("no answer", ",d", name="n_missing"),
        Column("called so", ",d", name="n_called"),
        Column("are", ",d", name="n_quotations"),
        Column("accuracy", ".1%", with_interval=True),
        Column("at best", ".1%", name="at_best"),
        Column("precision", ".1%", with_interval=True),
        Column("recall", ".1%", with_interval=True),
    ]
    rows: list[list[Cell]] = [
        [
            one.by,
            one.n,
            one.n_missing,
            one.n_called,
            one.n_quotations,
            one.accuracy,
            one.at_best,
            one.precision,
            one.recall,
        ]
        for one in readers
    ]
    return Sheet("readers", columns, rows)


def _columns(scored: _Scored) -> list[Column]:
    return [
        Column("words", cut=True),
        Column("in", name="source"),
        Column("bits over chance", ".0f", name="over_chance"),
        Column("places", ",d", name="count"),
        *(Column(by) for by in scored.verdicts),
    ]


def _listed(scored: _Scored, kind: str) -> list[list[Cell]]:
    """The spans that people give this label, with each reader's verdict."""
    spans = [span for span in scored.spans if scored.kinds.get(span.id) == kind]
    spans.sort(key=lambda span: -(span.over_chance or 0.0))
    return [
        [
            visible(span.words if len(span.words) <= _MAX_CHARS else f"{span.words[:_MAX_CHARS]}…"),
            visible(span.source_title or span.source),
            span.over_chance,
            span.count,
            *(_said(said.get(span.id)) for said in scored.verdicts.values()),
        ]
        for span in spans
    ]


def _said(verdict: bool | None) -> str:
    return {True: "quotation", False: "no", None: ""}[verdict]

"""Borrowed spans for people to label: sampling, and the accuracy of the rule and of models."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.jobs.engine import Processes
from fabula.jobs.models import NoModelSettings
from fabula.jobs.originality import OriginalityOptions
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.settings import Between, Settings, part, seed_setting, setting

if TYPE_CHECKING:
    from fabula.measures.span_sample import DrawnSpan, KindShare, SpanReader
    from fabula.presentation.sheet import Block
    from fabula.types import Document, Measurement

__all__ = [
    "DrawnSpans",
    "ScoredSpans",
    "SpanSampleSettings",
    "SpanScoreSettings",
    "sample_spans",
    "score_spans",
]

RULE = "rule"
"""Name of the rule as a reader: borrowed passages are quotations, commonplaces are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanSampleSettings(Settings):
    """Which borrowed spans are drawn, from which texts and against which reference."""

    references: tuple[str, ...] = setting(
        help="Corpus to compare with: its folder, its address in an object store, or the "
        "http://... address where `fabula reference serve` serves it; repeat it to search "
        "several as one.",
        unit="DIR|URL|INDEX",
        option="reference",
    )
    exclude: str = setting(
        "none",
        help="Documents of the reference to leave out: auto, those that copy or quote the text; "
        "or a file with one id per line.",
        unit="auto|none|FILE",
    )
    exclude_same: str | None = setting(
        None,
        help="Also leave out documents whose FIELD equals the text's, such as author; id, if the "
        "reference contains the texts themselves.",
        unit="FIELD",
    )
    n_spans: int = setting(
        200,
        help="Number of spans to draw: half of them passages, half commonplaces.",
        unit="N",
        check=Between(2),
        option="spans",
    )
    out: Path = setting(
        help="Write the spans here (.jsonl), for `spans score` and `judge`.",
        unit="FILE",
    )
    form: Path | None = setting(
        None,
        help="Also write a table to fill in by hand here (.csv), with an empty column kind.",
        unit="FILE",
    )
    seed: int = seed_setting()
    engine: Processes = part(Processes)

    def options(self) -> OriginalityOptions:
        """The options of the measure whose runs are sampled."""
        return OriginalityOptions(
            references=self.references, exclude=self.exclude, exclude_same=self.exclude_same
        )


@dataclass(frozen=True, slots=True)
class DrawnSpans:
    """The sample, and where it was written."""

    spans: Sequence[DrawnSpan]
    written: Sequence[Path]

    def lines(self) -> list[str]:
        passages = [one for one in self.spans if one.is_passage]
        common = [one for one in self.spans if not one.is_passage]
        return [
            f"{len(some):,} of {some[0].n_stratum:,} {name}"
            for name, some in (("borrowed passages", passages), ("commonplaces", common))
            if some
        ] + [f"written: {path}" for path in self.written]

    def to_json(self) -> dict[str, Any]:
        return {
            "n": len(self.spans),
            "n_passages": sum(one.is_passage for one in self.spans),
            "written": [str(path) for path in self.written],
            "signature": self.spans[0].signature,
        }


def sample_spans(
    documents: Iterable[Document], settings: SpanSampleSettings, *, progress: Progress = SILENT
) -> DrawnSpans:
    """Draw borrowed spans of the texts for people to label, and write them.

    Raises `InputError` if nothing is borrowed, and what `fabula originality` raises.
    """
    from fabula.jobs.originality import open_measure
    from fabula.measures.span_sample import draw_spans
    from fabula.store import write_rows, write_whole

    n_threads = settings.engine.n_processes
    with open_measure(settings.options(), progress, n_threads=n_threads) as measure:
        spans = draw_spans(measure.measure(documents), settings.n_spans, settings.seed)
    write_rows(settings.out, [span.to_row() for span in spans])
    written = [settings.out]
    if settings.form is not None:
        write_whole(settings.form, _form(spans).encode(errors="replace"))
        written.append(settings.form)
    return DrawnSpans(spans, written)


def _form(spans: Sequence[DrawnSpan]) -> str:
    """A row for each span, without the rule's verdict."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(["id", "rater", "kind", "words", "text"])
    writer.writerows([span.id, "", "", span.words, span.text] for span in spans)
    return file.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanScoreSettings(Settings):
    """Whose labels count, and who is compared with them."""

    labels: Path = setting(
        help="People's labels: the table that `form` wrote, filled in, or any file with id, rater "
        "and kind (quotation, idiom or chance).",
        unit="FILE",
    )
    models: NoModelSettings = part(NoModelSettings)
    details: Path | None = setting(
        None,
        help="Write a row for each span here (.jsonl): the label, and what the rule and each "
        "model say.",
        unit="FILE",
    )
    seed: int = seed_setting()


@dataclass(frozen=True, slots=True)
class ScoredSpans:
    """What people call the spans, and how often the rule and each model agree with them."""

    spans: Sequence[DrawnSpan]
    kinds: Mapping[str, str]
    """People's answers, by id."""
    shares: Sequence[KindShare]
    readers: Sequence[SpanReader]
    verdicts: Mapping[str, Mapping[str, bool | None]]
    """By reader and id: whether it is a quotation."""

    def tables(self) -> list[Block]:
        from fabula.presentation.span_tables import span_tables

        return span_tables(self)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each span."""
        return [
            {
                "id": span.id,
                "words": span.words,
                "source": span.source,
                "kind": self.kinds.get(span.id),
                "quotation": {by: said.get(span.id) for by, said in self.verdicts.items()},
                "n_words": span.n_words,
                "over_chance": span.over_chance,
                "count": span.count,
            }
            for span in self.spans
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "n": len(self.spans),
            "n_labelled": len(self.kinds),
            "kinds": [asdict(one) for one in self.shares],
            "readers": [asdict(one) for one in self.readers],
            "spans": self.rows(),
            "signature": self.spans[0].signature,
        }


def score_spans(
    spans: Sequence[DrawnSpan],
    settings: SpanScoreSettings,
    labels: Sequence[Measurement] | None = None,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> ScoredSpans:
    """Compare the rule, and each model that decides about exclusions, with people's labels.

    `labels` replace those in the settings' file. Raises `InputError`, `ModelError`.
    """
    from fabula.errors import InputError
    from fabula.measures.labels import read_labels
    from fabula.measures.span_sample import RUBRIC, kind_shares, spans_reader, voted_kinds
    from fabula.rubrics import load_rubric
    from fabula.store import write_rows

    if labels is None:
        labels = read_labels(settings.labels, load_rubric(RUBRIC))
    kinds = voted_kinds(labels, [span.id for span in spans])
    if not kinds:
        raise InputError(
            f"{settings.labels}: labels none of these spans; its ids must be those of the sample"
        )
    verdicts: dict[str, dict[str, bool | None]] = {
        RULE: {span.id: span.is_passage for span in spans}
    }
    asked = [span for span in spans if span.id in kinds]
    for spec in dict.fromkeys(settings.models.models):
        verdicts[spec] = _asked(spec, asked, settings, progress, confirm)
    scored = ScoredSpans(
        spans,
        kinds,
        kind_shares(spans, kinds, seed=settings.seed),
        [spans_reader(by, spans, said, kinds, seed=settings.seed) for by, said in verdicts.items()],
        verdicts,
    )
    if settings.details is not None:
        write_rows(settings.details, scored.rows())
    return scored


def _asked(
    spec: str,
    spans: Sequence[DrawnSpan],
    settings: SpanScoreSettings,
    progress: Progress,
    confirm: Confirm,
) -> dict[str, bool | None]:
    """Whether each span is a quotation, as `exclude_model` asks it; None without an answer."""
    from fabula.errors import CallFailed
    from fabula.measures.quoting import QuoteJudge, estimate_quotes
    from fabula.models import open_model

    price = settings.models.spending.prices().of(spec)
    confirm(spec, estimate_quotes(price, len(spans)))
    progress.begin(f"asking {spec}", len(spans))
    found: dict[str, bool | None] = {}
    model = open_model(spec, settings.models.options())
    with QuoteJudge(model, seed=settings.seed) as judge:
        for span in spans:
            try:
                said = judge.is_copy(span.there, span.here)
            except CallFailed:
                said = ""
            found[span.id] = said if isinstance(said, bool) else None
            progress.advance(1)
    return found

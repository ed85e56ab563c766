"""Fabula's instruments as Inspect AI scorers: measure a model's output from its log.

    inspect score LOG --scorer fabula/originality -S reference=books.ref

No model is called again. A missing figure is NaN in its score, which says why, and is excluded from
metrics, which count it. How similar texts are is not a property of a single text; use
`fabula diversity` for that.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from threading import Lock
from typing import Any

import anyio.to_thread
import numpy as np
from inspect_ai.scorer import SampleScore, Score, Scorer, Target, Value, scorer
from inspect_ai.solver import TaskState

from fabula.api import settings_from
from fabula.core.errors import CallFailed, InputError, explain
from fabula.core.instruments import instruments
from fabula.core.types import Document, Measurement
from fabula.evals.rubrics import in_a_sentence, over_epochs
from fabula.novelty.job import OriginalityOptions, open_measure
from fabula.stats.contrasts import pooled_estimate
from fabula.text.refusals import is_refusal

Measure = Callable[[Document], Iterable[Measurement]]
"""An instrument's results for a text: one measurement per figure, with a value or a reason."""

_MAX_SHOWN = 10
_MAX_CHARS = 200


@over_epochs
def figures(scores: list[SampleScore]) -> Value:
    """The mean of each figure, its 95 % interval over samples, and how many scores lack it.

    Epochs of one sample are not independent: they are one unit.
    """
    numbers: dict[str, float | int | str | bool | None] = {}
    for name in dict.fromkeys(name for score in scores for name in score.score.as_dict()):
        pairs = [(score.sample_id, score.score.as_dict().get(name)) for score in scores]
        known = [(k, v) for k, v in pairs if isinstance(v, int | float) and not math.isnan(v)]
        if known:
            values, even = np.array([v for _, v in known], np.float64), np.ones(len(known))
            groups = [k for k, _ in known]
            interval = pooled_estimate(values, even, groups, method="mean", signature="")
            numbers[name] = math.fsum(values) / len(values)
            if interval.low is not None and interval.high is not None:
                numbers |= {f"{name} low": interval.low, f"{name} high": interval.high}
        if n_missing := len(pairs) - len(known):
            numbers[f"{name} missing"] = n_missing
    return numbers


@scorer(metrics=[figures()])
def originality(reference: str | list[str], **settings: Any) -> Scorer:
    """The Creativity Index and L-uniqueness of the output, and its borrowed passages.

    Args:
        reference: A reference corpus, or several that are searched as one.
        settings: Those of `fabula originality`: `match`, `levels`, `exclude`, `exclude_same` (a
            field of the samples' metadata) and others.
    """
    stack = ExitStack()
    paths = (reference,) if isinstance(reference, str) else tuple(reference)
    if "levels" in settings:
        # Inspect's command line turns a single level into a number.
        settings["levels"] = str(settings["levels"])
    with in_a_sentence():
        fixed = {"references": paths, "exclude_model": None}
        options = settings_from(OriginalityOptions, settings, fixed)
        measure = stack.enter_context(open_measure(options))
    return _scorer(lambda document: next(measure.measure([document])).measurements(), stack)


@scorer(metrics=[figures()])
def fluency(model: str = "local") -> Scorer:
    """How surprising the output is to a language model, in bits per word.

    Args:
        model: The model that reads: `local` (the embedded one) or a .gguf file.
    """
    from fabula.models.surprisal import SurprisalModel
    from fabula.style.fluency import FluencyMeasure
    from fabula.text.pipeline import SENTENCES, load_pipeline

    stack = ExitStack()
    with in_a_sentence():
        nlp = load_pipeline(SENTENCES)
        measure = FluencyMeasure(stack.enter_context(SurprisalModel(model)), nlp)
    return _scorer(lambda document: next(measure.measure([document])).measurements(), stack)


@scorer(metrics=[figures()])
def profile(grammar: str = "harper") -> Scorer:
    """The linguistic profile of the output.

    Args:
        grammar: `harper`, `languagetool` or `none`.
    """
    from fabula.linguistic.profile import profile_texts

    def measure(document: Document) -> Iterable[Measurement]:
        return next(profile_texts([document], grammar)).measurements()

    with in_a_sentence():
        measure(Document("", ""))
    return _scorer(measure)


@scorer(metrics=[figures()])
def instrument(id: str) -> Scorer:  # noqa: A002 (an instrument's own word)
    """The measurements of the output by a registered instrument.

    Args:
        id: The instrument's id. Installed instruments also have a scorer of their own, `fabula/ID`.
    """
    with in_a_sentence():
        chosen = next((candidate for candidate in instruments() if candidate.id == id), None)
        if chosen is None:
            known = ", ".join(candidate.id for candidate in instruments()) or "none"
            raise InputError(f"{id}: no such instrument; the registered ones are {known}")
    return _scorer(lambda document: next(iter(chosen.measure([document]))))


def _with_its_own_name(id: str) -> None:  # noqa: A002 (as above)
    @scorer(metrics=[figures()], name=id)
    def named() -> Scorer:
        return instrument(id)


for _instrument in instruments():
    _with_its_own_name(_instrument.id)


def _scorer(measure: Measure, stack: ExitStack | None = None) -> Scorer:
    """Scores by a measure, which `stack` keeps open for the lifetime of the scorer."""
    turn = Lock()

    def scored(state: TaskState) -> Score:
        # Its prompt is the sample's, shared by its epochs.
        text, author, prompt = state.output.completion, str(state.model), str(state.sample_id)
        document = Document(f"{prompt}#{state.epoch}", text, author, prompt, state.metadata)
        choices, reason, note = state.output.choices, "", ""
        if not choices:
            reason = "no_text"
        elif choices[0].stop_reason == "content_filter":
            reason = "blocked"
        elif is_refusal(text):
            reason = "refusal"
        marks: list[Measurement] = []
        with turn, in_a_sentence():
            try:
                marks = [] if reason else list(measure(document))
            except CallFailed as error:
                reason, note = "failed", str(error)
            # For a text without words an instrument still has the names of its figures.
            marks = marks or list(measure(replace(document, text="")))
        # Measurements as one score. `reason`: why there is nothing to measure, with details.
        are_missing = [mark for mark in marks if reason or mark.value is None]
        missing = {mark.item: reason or mark.missing_reason for mark in are_missing}
        metadata: dict[str, Any] = {"signature": marks[0].signature} if marks else {}
        metadata |= {"missing": missing} if missing else {}
        reasons = list(dict.fromkeys(missing.values()))
        spans = sorted({(span.start, span.end) for mark in marks for span in mark.evidence})
        shown = [f'"{document.text[start:end][:_MAX_CHARS]}"' for start, end in spans[:_MAX_SHOWN]]
        return Score(
            # NaN, which Inspect ignores; it would treat None as 0.
            value={m.item: math.nan if m.value is None or reason else m.value for m in marks},
            reason=reasons[0] if len(missing) == len(marks) and reasons else None,
            explanation=note or "; ".join([*map(explain, reasons), *shown]) or None,
            metadata=metadata,
        )

    async def score(state: TaskState, target: Target) -> Score:
        # Off the event loop, on which other samples wait for their models.
        return await anyio.to_thread.run_sync(scored, state)

    if stack is not None:
        weakref.finalize(score, stack.close)
    return score

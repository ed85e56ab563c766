"""Run a review: open each instrument once, and apply it to every text."""

from __future__ import annotations

import asyncio
import math
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from fabula.core.cached_results import CachedResults
from fabula.core.errors import CallFailed, InputError, ModelError
from fabula.core.instruments import Instrument, instruments
from fabula.core.resume import kept_rows
from fabula.core.types import Document, Measurement, Rubric
from fabula.feedback.advising import Advice, AdvicePlan, advise, estimate
from fabula.jobs.job import SILENT, Confirm, Declined, Progress, agreed
from fabula.judging.job import Asking, judging_of, labels_of_some, plan_of
from fabula.judging.part import JudgedTexts
from fabula.judging.plan import AnswerBook, JudgePlan
from fabula.models.base import Model, Usage
from fabula.models.cost import Estimate
from fabula.models.model_spec import ModelOptions, open_model
from fabula.models.surprisal import SurprisalModel, TokenSurprisal
from fabula.novelty.job import OriginalityOptions, open_measure, younger_remark
from fabula.novelty.measure import ExcludeSame, OriginalityMeasure
from fabula.reference.backend import described
from fabula.reference.search import Reference
from fabula.review.job import ReportSettings
from fabula.show.parts import LeftOut, Review, TextReview
from fabula.stats.norms import GroupBook
from fabula.style.dictionary import read_dictionary, without_words
from fabula.style.fluency import FluencyMeasure, read_tokens
from fabula.style.lines import CONFUSED, Wanted, read_drafts, read_pieces
from fabula.style.proofreading import proofread_drafts
from fabula.text import check_documents, count_words
from fabula.text.pipeline import SENTENCES, load_pipeline
from fabula.text.wording import MaskedTexts

_ADVANCES_S = 0.5
_NAME = "these-texts"
_NAME_MODEL = "`fabula report --model openai/gpt-4o` or another; `local` is a demonstration"
_AGAIN = "run the same command again"
_OTHER_MODEL = "name another model: `fabula report --set tools.fluency-model`"
_OPENED = (
    "references", "levels", "match", "exclude", "exclude_same", "fluency_model", "groups",
    "phrases",
)  # fmt: skip
OPENING = "|opening"
"""Ends the signature of notes on the first of several pieces of a text."""
_LOCAL_EXTRA = "`pip install 'fabula[local]'` and `fabula setup local`"
_NLP_EXTRA = "`pip install 'fabula[nlp]'` and `fabula setup nlp`"


class ReadingAhead:
    """A language model that reads texts in a separate thread, while other instruments run.

    Reading takes longer than the rest of a report, and mostly without holding Python's GIL. It
    starts at once: `with ReadingAhead(open_model, documents) as reading`, where `open_model` is
    called in the thread. On exit, unread texts are dropped.
    """

    def __init__(
        self, open_model: Callable[[], SurprisalModel], documents: Sequence[Document]
    ) -> None:
        self._open_model, self._documents = open_model, documents
        self._is_over = threading.Event()
        self._shares = [0.0] * len(documents)
        """How much of each document has been read."""

    def __enter__(self) -> Self:
        self._limits = ExitStack()
        # Without it no model is opened either.
        with suppress(ImportError):
            from threadpoolctl import threadpool_limits

            # One thread for matrix products until everything is read: the output layer sets this
            # while it works, for the whole process, and others must not depend on the timing.
            self._limits.enter_context(threadpool_limits(1, "blas"))
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="fluency")
        self._model = self._pool.submit(self._open_model)
        self._read: list[Future[TokenSurprisal | None]] = [
            self._pool.submit(self._read_one, k) for k in range(len(self._documents))
        ]
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._pool.shutdown(cancel_futures=True)
        self._limits.close()

    def model(self) -> SurprisalModel:
        """Wait for the model. Raises what opening it raised."""
        return self._model.result()

    def tokens(self, k: int, advance: Callable[[int], None]) -> TokenSurprisal | None:
        """Wait for the tokens of the `k`-th document. Raises what reading it raised.

        `advance` is called with the number of its words read since the last call.
        """
        n_words, n_read, is_done = count_words(self._documents[k].text), 0, False
        while not is_done:
            is_done = bool(wait([self._read[k]], _ADVANCES_S).done)
            now = n_words if is_done else int(self._shares[k] * n_words)
            advance(now - n_read)
            n_read = now
        return self._read[k].result()

    def _read_one(self, k: int) -> TokenSurprisal | None:
        def check() -> None:
            if self._is_over.is_set():
                raise CallFailed("the text was not read to its end")

        def report(share: float) -> None:
            self._shares[k] = share

        return read_tokens(self._model.result(), self._documents[k], check, report)


class Reviewer:
    """The instruments of a plan, kept open: `with Reviewer(plan) as reviewer`.

    A named reference that cannot be opened is an error; an instrument that is not installed is left
    out, with instructions for installing it.
    """

    def __init__(self, plan: ReportSettings) -> None:
        from fabula.groups.phrase_list import PhraseInstrument, read_phrases
        from fabula.novelty.held_out import groups_of

        self.plan = plan
        self._stack = ExitStack()
        self._measure: OriginalityMeasure | None = None
        self._opened_models: dict[str, SurprisalModel] = {}
        self._own: MaskedTexts | None = None
        self._groups = GroupBook.open(*groups_of(plan.references), *plan.groups)
        self._listed: list[Instrument] = [
            PhraseInstrument(read_phrases(path), number)
            for number, path in enumerate(plan.phrases, 1)
        ]
        self._states = _states_of(plan.references)
        self._options = OriginalityOptions(
            plan.references,
            levels=plan.levels,
            match=plan.match,
            exclude=plan.exclude,
            exclude_same=plan.exclude_same,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def can_do(self, plan: ReportSettings) -> bool:
        """Whether the open instruments serve another plan too."""
        is_alike = all(getattr(self.plan, name) == getattr(plan, name) for name in _OPENED)
        return is_alike and _states_of(plan.references) == self._states

    def run(
        self, documents: Sequence[Document], progress: Progress = SILENT, confirm: Confirm = agreed
    ) -> Review:
        """Run all parts. Raises `InputError`, `CorpusError` for invalid settings."""
        *_, last = self.steps(documents, progress, confirm)
        return last

    def steps(
        self,
        documents: Sequence[Document],
        progress: Progress = SILENT,
        confirm: Confirm = agreed,
        *,
        ahead: bool = True,
    ) -> Iterator[Review]:
        """Yield the growing review after each part; fast parts come first.

        ahead: the language model of fluency reads while other parts run, which makes all of them
        ready earlier, and the first of them later.
        """
        plan = self.plan
        documents = list(check_documents(documents))
        self._own = None
        if plan.assignment is not None:
            self._own = MaskedTexts.of(documents, plan.assignment)
            documents = [text for text in documents if text.id not in self._own.without]
        reviews = tuple(TextReview(document) for document in documents)
        review = Review(reviews, (), self._groups)
        if plan.models.models and plan.asks("verdicts"):
            rubric = _judge_plan(plan).rubric
            people = labels_of_some(documents, plan.labels, rubric)
            review = _of_all(review, "verdicts", JudgedTexts(rubric, people=tuple(people)))
        is_here = not any("://" in name for name in plan.references)
        if plan.asks("originality") and plan.references and is_here and not plan.against_each_other:
            # Invalid settings are rejected before a model starts reading.
            self._opened_measure(progress)
        reader = ReadingAhead(self._opened_model, [text.document for text in reviews])
        first = [self._read, self._others, self._together]
        first.insert(0 if ahead or plan.match == "verbatim" else 2, self._originality)
        with ExitStack() as stack:
            # Surprisals of texts are computed in the background from now on.
            is_read = plan.asks("fluency")
            reading = stack.enter_context(reader) if is_read and ahead else None
            for step in first:
                if step == self._read and not ahead:
                    yield from self._read_pieces(review, progress)
                review = step(review, progress)
                yield review
            if is_read and not ahead:
                reading = stack.enter_context(reader)
            review = self._fluently(reading, review, progress)
            yield review
            review = self._proofread(review, progress)
            yield review
        yield self._models(review, progress, confirm)

    def _originality(self, review: Review, progress: Progress) -> Review:
        if not self.plan.asks("originality"):
            return _without(review, "originality")
        plan, documents = self.plan, self._compared(review)
        if not (plan.references or plan.against_each_other):
            remedy = (
                "build one from texts that you have, `fabula reference build books/ --out "
                "books.ref`, and name it: `fabula report --reference books.ref`"
            )
            return _left_out(review, "originality", "no reference was named", remedy)
        with ExitStack() as stack:
            if plan.against_each_other:
                # The reference of these texts exists only during the run; a text never counts as
                # its own source, nor do those that share `exclude_same` with it.
                if len(documents) < 2:
                    raise InputError(
                        "only one text was given: comparing texts with each other takes at least "
                        "two"
                    )
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fabula-"))
                path = Path(folder) / _NAME
                progress.say("building a reference from the texts")
                Reference.build(documents, path, n_jobs=1).close()
                base = self._options
                options = replace(base, references=(*base.references, str(path)))
                reference = Reference.open(*options.references, report=progress.say)
                same = ExcludeSame.of_texts_themselves(reference, documents, base.exclude_same)
                n_threads = plan.n_processes
                opened = open_measure(options, progress, reference, n_threads=n_threads, same=same)
                measure = stack.enter_context(opened)
            else:
                measure = self._opened_measure(progress)
            progress.begin("originality", len(documents))
            texts, failed = [], []
            for text, result in zip(review.texts, measure.measure(documents), strict=True):
                texts.append(text.having("originality", result))
                failed += [result.detail] if result.detail else []
                progress.advance(1)
            age, size = measure.reference.age, described(measure.reference)
        younger = age.younger(documents)
        remarks = (younger_remark(younger, len(texts), age),) if younger else ()
        review = replace(review, texts=tuple(texts), size=size, remarks=remarks)
        if failed:
            reason = f"{len(failed):,} texts have no score: {failed[0]}"
            review = _left_out(review, "originality", reason, _AGAIN, is_failure=True)
        return _signed(review, "originality", str(measure.signature))

    def _compared(self, review: Review) -> Sequence[Document]:
        """The texts without the wording of their assignment, if it was named."""
        return [text.document for text in review.texts] if self._own is None else self._own.texts

    def _opened_measure(self, progress: Progress) -> OriginalityMeasure:
        if self._measure is not None and any("://" in name for name in self.plan.references):
            # It may have changed since, and is fast to open.
            self._measure.reference.close()
            self._measure = None
        if self._measure is None:
            measure = open_measure(self._options, progress, n_threads=self.plan.n_processes)
            self._measure = self._stack.enter_context(measure)
        return self._measure

    def _read_pieces(self, review: Review, progress: Progress) -> Iterator[Review]:
        """Read long texts by pieces; yields the notes on the first of them meanwhile."""
        wanted: Wanted = "lines"
        plan = self.plan
        if not (plan.asks("lines") or plan.asks("profile")):
            return
        progress.begin("reading line by line", None)
        for text in review.texts:
            document = text.document
            with suppress(ModelError):  # which the whole reading reports
                pieces = read_pieces(document, plan.grammar, n_jobs=plan.n_processes)
                for n_read, (n_pieces, end) in enumerate(pieces, 1):
                    if n_read == 1:
                        progress.begin("reading line by line", n_pieces)
                    progress.advance(1)
                    if n_read > 1 or not plan.asks(wanted):
                        continue
                    opening = replace(document, text=document.text[:end])
                    (read,) = read_drafts([opening], (wanted,), plan.grammar)
                    if (lines := read.lines) is not None:
                        lines = lines.without(plan.without, plan.with_)
                        texts = [t.having(wanted, lines) if t is text else t for t in review.texts]
                        shown = replace(review, texts=tuple(texts))
                        yield _signed(shown, wanted, f"{lines.signature}{OPENING}")

    def _read(self, review: Review, progress: Progress) -> Review:
        """The profile and the notes on lines, from a single reading."""
        names: tuple[Wanted, ...] = ("profile", "lines")
        wanted = [part for part in names if self.plan.asks(part)]
        for part in names:
            if part not in wanted:
                review = _without(review, part)
        if not wanted:
            return review
        words = read_dictionary(self.plan.dictionary)
        progress.begin("reading line by line", len(review.texts))
        texts = []
        try:
            documents = (text.document for text in review.texts)
            plan = self.plan
            drafts = read_drafts(documents, wanted, plan.grammar, n_jobs=plan.n_processes)
            for text, read in zip(review.texts, drafts, strict=True):
                lines = None if read.lines is None else read.lines.without(plan.without, plan.with_)
                lines = lines and without_words(lines, text.document.text, words)
                for part, result in (("profile", read.profile), ("lines", lines)):
                    text = text if result is None else text.having(part, result)
                texts.append(text)
                progress.advance(1)
        except ModelError as error:
            is_own = self.plan.grammar != ReportSettings().grammar
            other = "name another checker: `fabula report --set tools.grammar`"
            for part in wanted:
                remedy = other if is_own else _NLP_EXTRA
                review = _left_out(review, part, str(error), remedy, is_failure=is_own)
            return review
        review = replace(review, texts=tuple(texts))
        for part in wanted:
            review = _signed(review, part, texts[0].results[part].signature)
        return review

    def _fluently(self, reading: ReadingAhead | None, review: Review, progress: Progress) -> Review:
        if reading is None:
            return review
        n_words = [count_words(text.document.text) for text in review.texts]
        progress.begin("fluency", sum(n for n in n_words))
        try:
            measure = FluencyMeasure(reading.model(), load_pipeline(SENTENCES))
        except ModelError as error:
            is_own = self.plan.fluency_model != ReportSettings().fluency_model
            remedy = _OTHER_MODEL if is_own else f"{_LOCAL_EXTRA}; {_NLP_EXTRA}"
            return _left_out(review, "fluency", str(error), remedy, is_failure=is_own)
        texts, lost = list(review.texts), ""
        for k, text in enumerate(texts):
            try:
                tokens = reading.tokens(k, progress.advance)
                texts[k] = text.having("fluency", measure.measured(text.document, tokens))
            except (ModelError, CallFailed) as error:
                lost = str(error)
        review = replace(review, texts=tuple(texts))
        if lost:
            reason = f"not for all texts: {lost}"
            review = _left_out(review, "fluency", reason, _OTHER_MODEL, is_failure=True)
        return _signed(review, "fluency", str(measure.signature))

    def _opened_model(self, name: str | None = None) -> SurprisalModel:
        """A model by its name, by default the one that fluency is measured with."""
        name = name or self.plan.fluency_model
        if name not in self._opened_models:
            model = SurprisalModel(name, store=CachedResults())
            self._opened_models[name] = self._stack.enter_context(model)
        return self._opened_models[name]

    def _proofread(self, review: Review, progress: Progress) -> Review:
        """More notes on lines, by the embedded model: on suspected words by default; on all words
        if asked for, which is the slowest step that needs no other model."""
        is_asked = self.plan.asks("proofreading")
        if CONFUSED in self.plan.without or (not is_asked and "lines" not in review.signatures):
            return review
        if "lines" not in review.signatures:
            reason = "its notes stand among the notes on lines, which are missing"
            return _left_out(review, "proofreading", reason, _NLP_EXTRA)
        drafts = [text.document for text in review.texts]
        notes = [text.results["lines"] for text in review.texts]
        try:
            notes = proofread_drafts(
                lambda: self._opened_model("local"), drafts, notes, progress, is_asked=is_asked
            )
        except ModelError as error:
            return _left_out(review, "proofreading", str(error), _LOCAL_EXTRA)
        texts = [t.having("lines", own) for t, own in zip(review.texts, notes, strict=True)]
        return _signed(replace(review, texts=tuple(texts)), "lines", notes[0].signature)

    def _others(self, review: Review, progress: Progress) -> Review:
        """Results of registered instruments, phrase lists and word ratings."""
        asked_for: list[Instrument] = [*instruments(), *self._listed]
        review = replace(review, instruments=tuple(asked_for))
        for instrument in asked_for:
            if not self.plan.asks(instrument.id):
                review = _without(review, instrument.id)
                continue
            progress.begin(instrument.title, len(review.texts))
            documents = [text.document for text in review.texts]
            texts = []
            try:
                for text, items in zip(review.texts, instrument.measure(documents), strict=True):
                    texts.append(text.having(instrument.id, tuple(items)) if items else text)
                    progress.advance(1)
            except ModelError as error:
                review = _left_out(review, instrument.id, str(error), "install what it needs")
                continue
            review = replace(review, texts=tuple(texts))
            if any(instrument.id in text.results for text in texts):
                review = _signed(review, instrument.id, str(instrument.signature))
        return review

    def _together(self, review: Review, progress: Progress) -> Review:
        if len(review.texts) < 2:
            return review
        if not (self.plan.asks("diversity") or self.plan.against_each_other):
            return _without(review, "diversity")
        from fabula.groups.diversity import measure_together

        progress.begin("comparing texts", None)
        together = measure_together(
            self._compared(review),
            seed=self.plan.seed,
            n_threads=self.plan.n_processes,
            is_class=self.plan.against_each_other,
            apart=self.plan.exclude_same if self.plan.against_each_other else None,
            own=self._own,
        )
        review, diversity = _of_all(review, "diversity", together), together.diversity
        return review if diversity is None else _signed(review, "diversity", diversity.signature)

    def _models(self, review: Review, progress: Progress, confirm: Confirm) -> Review:
        wanted: list[str] = []
        for part in ("verdicts", "feedback"):
            if not self.plan.asks(part):
                review = _without(review, part)
            elif not self.plan.models.models:
                review = _left_out(review, part, "no language model was named", _NAME_MODEL)
            else:
                wanted.append(part)
        if not wanted:
            return review
        options = self.plan.models.options()
        documents = [text.document for text in review.texts]
        for spec in dict.fromkeys(self.plan.models.models):
            coroutine = _ask_model(spec, documents, self.plan, progress, confirm, options)
            try:
                verdicts, advice, failures = asyncio.run(coroutine)
            except Declined:
                reason = f"{spec} was not asked, since its cost was not confirmed"
                remedy = "run again and agree; `fabula report --yes` agrees in advance"
                for part in wanted:
                    review = _left_out(review, part, reason, remedy)
                continue
            except ModelError as error:
                # The results of the other instruments are kept.
                for part in wanted:
                    review = _left_out(review, part, str(error), _AGAIN, is_failure=True)
                continue
            # After what others said.
            advised = {a.document.id: [a] for a in advice}
            review = _also(_also(review, "verdicts", _by_text(verdicts)), "feedback", advised)
            if n_failed := sum(verdict.missing_reason == "failed" for verdict in verdicts):
                reason = f"{n_failed:,} calls failed, so their verdicts are missing"
                review = _left_out(review, "verdicts", reason, _AGAIN, is_failure=True)
            if failures:
                reason = f"{len(failures):,} texts got none: {failures[0]}"
                review = _left_out(review, "feedback", reason, _AGAIN, is_failure=True)
        return _summarised(review)


def with_verdicts(review: Review, verdicts: Sequence[Measurement], rubric: Rubric) -> Review:
    """Add existing verdicts to the review, matched to its texts by id.

    Raises `InputError` if none is about any of the texts.
    """
    of_text = _by_text(verdicts)
    if of_text.keys().isdisjoint(text.document.id for text in review.texts):
        raise InputError("`judge` has no verdict on any of these texts; check that the ids match")
    left_out = tuple(entry for entry in review.left_out if entry.part != "verdicts")
    review = _of_all(replace(review, left_out=left_out), "verdicts", JudgedTexts(rubric))
    return _summarised(_also(review, "verdicts", of_text))


def corrected(review: Review, by: str | None) -> Review:
    """Add what the people who labelled would have said of all texts, and of each group by a field.

    A judge that cannot be corrected is left unchanged, and the reason is reported.
    """
    judged: JudgedTexts = review.of_all.get("verdicts", JudgedTexts())
    if judged.rubric is None or not judged.people:
        return review
    from fabula.judging.agreement import CorrectSettings, correct_measurements

    documents = [text.document for text in review.texts]
    verdicts = _verdicts(review)
    corrections = {}
    for judge in judged.judges:
        settings = CorrectSettings(by=by, judge=judge.rater)
        try:
            run = correct_measurements(verdicts, judged.people, judged.rubric, settings, documents)
        except InputError as error:
            # What was measured, and paid for, is kept.
            reason = f"{judge.rater.partition('@')[0]} is not corrected: {error}"
            review = _left_out(review, "verdicts", reason, "label some of the texts that it judged")
        else:
            corrections[judge.rater] = run.correction
    return _of_all(review, "verdicts", replace(judged, corrected=corrections))


def _summarised(review: Review) -> Review:
    judged: JudgedTexts = review.of_all.get("verdicts", JudgedTexts())
    if judged.rubric is not None and (verdicts := _verdicts(review)):
        from fabula.judging.summary import summarise
        from fabula.judging.trust import TrustBook

        documents = [text.document for text in review.texts]
        judges = summarise(verdicts, documents, judged.rubric, TrustBook())
        review = _of_all(review, "verdicts", replace(judged, judges=tuple(judges)))
        review = _signed(review, "verdicts", "\n".join(j.signature for j in judges))
    advice = dict.fromkeys(
        a.signature for text in review.texts for a in text.results.get("feedback", ())
    )
    return _signed(review, "feedback", "\n".join(advice)) if advice else review


def _states_of(references: Sequence[str]) -> list[int]:
    """When each corpus was last changed: a rebuilt corpus is a different one."""
    folders = filter(Path.is_dir, map(Path, references))
    return [max((file.stat().st_mtime_ns for file in f.iterdir()), default=0) for f in folders]


def _by_text(verdicts: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    by_text: dict[str, list[Measurement]] = {}
    for verdict in verdicts:
        by_text.setdefault(verdict.document_id, []).append(verdict)
    return by_text


def _verdicts(review: Review) -> list[Measurement]:
    return [verdict for text in review.texts for verdict in text.results.get("verdicts", ())]


def _also(review: Review, part: str, results: Mapping[str, Sequence[Any]]) -> Review:
    """More of a part's results, by the ids of their texts, after those that are there."""
    texts = [
        text.having(part, (*text.results.get(part, ()), *results.get(text.document.id, ())))
        for text in review.texts
    ]
    return replace(review, texts=tuple(texts))


def _of_all(review: Review, part: str, result: Any) -> Review:
    return replace(review, of_all={**review.of_all, part: result})


def _signed(review: Review, part: str, signature: str) -> Review:
    return replace(review, signatures={**review.signatures, part: signature})


def _left_out(
    review: Review, part: str, reason: str, remedy: str, *, is_failure: bool = False
) -> Review:
    return replace(review, left_out=(*review.left_out, LeftOut(part, reason, remedy, is_failure)))


def _without(review: Review, part: str) -> Review:
    remedy = f"run again without `--without {part}`"
    return _left_out(review, part, "it was left out on request", remedy)


def _judge_plan(plan: ReportSettings) -> JudgePlan:
    """How the rubric is asked. Raises `InputError`."""
    asking = Asking(style=plan.style, seed=plan.seed)
    return plan_of(judging_of(plan.rubric, asking, plan.models, None, False).judging)


def _advice_plan(plan: ReportSettings) -> AdvicePlan:
    return AdvicePlan(n_times=plan.n_samples, seed=plan.seed, effort=plan.models.reasoning_effort)


async def _ask_model(
    spec: str,
    documents: Sequence[Document],
    plan: ReportSettings,
    progress: Progress,
    confirm: Confirm,
    options: ModelOptions,
) -> tuple[list[Measurement], list[Advice], list[str]]:
    """Verdicts and feedback from one model, and why texts have no feedback.

    Raises `ModelError`, `InputError`.
    """
    from fabula.judging.run import judge_stories, to_measurements
    from fabula.models.encoder import Encoder
    from fabula.models.replay import CALLS, CachedModel

    judging, advising, book = _judge_plan(plan), _advice_plan(plan), AnswerBook()
    # Before anything is paid for.
    encoder = Encoder() if plan.asks("feedback") else None
    # Other settings give another answer.
    suffix = {None: "", True: "-structured", False: "-unstructured"}[plan.models.structured]
    path = None if plan.keep is None else plan.keep / f"answers{suffix}.jsonl"
    verdicts, advice, failures = list[Measurement](), list[Advice](), list[str]()
    with kept_rows(path, CALLS) as rows:
        async with open_model(spec, options) as opened:
            # Cached answers are free, so the cache comes before the budget.
            model = CachedModel(opened, rows, effort=options.effort)
            confirm(spec, _expected(spec, documents, plan, model, book))
            name, meter = model.name.partition("@")[0], progress.advance
            if plan.asks("verdicts"):
                progress.begin(f"verdicts by {name}", len(judging.items) * len(documents))
                judged = await judge_stories(documents, model, judging, book, meter=meter)
                verdicts += to_measurements(judged, documents, model.name, judging)
            if encoder is not None:
                progress.begin(f"feedback by {name}", plan.n_samples * len(documents))
                for document in documents:
                    try:
                        advice.append(await advise(document, model, advising, encoder, meter=meter))
                    except (InputError, ModelError) as error:
                        failures.append(str(error))
    return verdicts, advice, failures


def estimate_review(spec: str, documents: Sequence[Document], plan: ReportSettings) -> Estimate:
    """Estimate the cost of a model before it is opened; cached answers are not considered."""
    return _expected(spec, documents, plan, open_model(spec, plan.models.options()), AnswerBook())


def _expected(
    spec: str, documents: Sequence[Document], plan: ReportSettings, model: Model, book: AnswerBook
) -> Estimate:
    from fabula.judging.session import Session, estimate_calls

    price = plan.models.options().prices.of(spec)
    expected = []
    if plan.asks("verdicts"):
        session = Session(documents, [spec], _judge_plan(plan))
        expected.append(estimate_calls(session, documents, model, book, price))
    if plan.asks("feedback"):
        expected += [estimate(document, _advice_plan(plan), 0, price) for document in documents]
    costs = [e.cost for e in expected if e.cost is not None]
    return Estimate(
        sum(e.n_calls for e in expected),
        sum((e.usage for e in expected), start=Usage()),
        math.fsum(costs) if len(costs) == len(expected) else None,
        any(e.is_most for e in expected),
    )

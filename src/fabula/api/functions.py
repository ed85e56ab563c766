"""The functions of `fabula`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.api.coercion import Texts, documents_of, located, rows_of, settings_from
from fabula.api.made import recorded_call
from fabula.api.results import (
    Agreement,
    Books,
    Comparison,
    Corrected,
    FoundFaults,
    JudgeComparison,
    Plan,
    Profiles,
    Report,
    Scores,
    Verdicts,
)
from fabula.api.sets import Diversity, KeyPhrases
from fabula.errors import InputError
from fabula.types import by_rater

if TYPE_CHECKING:
    from fabula.jobs.judge_comparison import JudgeRun
    from fabula.models.base import AskFunction, FunctionModel
    from fabula.reference import Reference
    from fabula.types import Document, Measurement, Rubric


def read(texts: Texts, *, text: str = "text", id: str = "id") -> list[Document]:
    """Load texts as documents: a frame, list, mapping from id to text, file, folder or pattern.

    Raises `InputError`, naming the row or the file.
    """
    return documents_of(texts, text=text, id=id).documents


@recorded_call
def build(
    texts: Texts, out: str | Path, *, text: str = "text", id: str = "id", **settings: Any
) -> Reference:
    """Build a reference corpus in the folder `out`, and open it.

    settings: those of `fabula reference build`, such as `case` ("fold", "keep"), `punct` ("drop",
    "keep"), `restart`, `n_jobs`. Raises `CorpusError` if `out`
    contains something else, `InputError` for texts that cannot be read.
    """
    from fabula.jobs.references import BuildSettings, build_corpus
    from fabula.reference import Reference

    chosen = settings_from(BuildSettings, settings, {"out": str(out)})
    build_corpus(documents_of(texts, text=text, id=id).documents, chosen)
    return Reference.open(str(out))


def open_reference(*paths: str | Path) -> Reference:
    """Open a reference corpus; several are searched as one. Raises `CorpusError`."""
    from fabula.reference import Reference

    return Reference.open(*map(str, paths))


@recorded_call
def originality(
    texts: Texts,
    reference: str | Path | Reference | Sequence[str | Path],
    *,
    text: str = "text",
    id: str = "id",
    **settings: Any,
) -> Scores:
    """Score texts against a reference: L-uniqueness, the Creativity Index, every borrowed span.

    settings: those of `fabula originality`, such as `match`, `levels`, `exclude`, `exclude_same`,
    `out`, `n_jobs`. Raises `InputError`, `CorpusError`; a text whose lookup failed has no score,
    and its row says why. Source: Lu et al. 2024.
    """
    from fabula.jobs.originality import OriginalitySettings, run

    given = documents_of(texts, text=text, id=id)
    chosen = settings_from(OriginalitySettings, settings, {"references": _paths(reference)})
    rows: list[dict[str, Any]] = []
    result = run(given.documents, chosen, keep_texts=True, each=rows.append)
    return Scores(rows, result, given.kind)


def _paths(reference: Any) -> tuple[str, ...]:
    """The location of a reference, given in any form."""
    if isinstance(reference, str | Path):
        return (str(reference),)
    paths = getattr(reference, "paths", None)
    if paths is not None:
        return tuple(map(str, paths))
    if isinstance(reference, Iterable):
        return tuple(map(str, reference))
    raise InputError(
        "a reference must be a path, several paths, or the result of `fabula.build`, not a value "
        f"of type {type(reference).__name__}"
    )


@recorded_call
def profile(
    texts: Texts,
    *,
    text: str = "text",
    id: str = "id",
    grammar: str = "harper",
    n_jobs: int | None = None,
) -> Profiles:
    """Profile texts: rhythm, dialogue, rarity of words, grammar, repetition. English only.

    Raises `ModelError` if the language pipeline is not installed.
    """
    from fabula.measures.linguistic.profile import profile_texts
    from fabula.workers import default_jobs

    given = documents_of(texts, text=text, id=id)
    found = profile_texts(given.documents, grammar, n_jobs=n_jobs or default_jobs())
    return Profiles(list(found), given.kind)


@recorded_call
def book(texts: Texts, *, text: str = "text", id: str = "id", n_people: int = 12) -> Books:
    """Measure books by chapter: length, pace, speech, repetition, people. English only.

    A text without headings is measured in sections. Raises `ModelError` if the language pipeline
    is not installed.
    """
    from fabula.jobs.books import BookSettings, measure_books

    given = documents_of(texts, text=text, id=id)
    return Books(measure_books(given.documents, BookSettings(n_people=n_people)), given.kind)


@recorded_call
def judge(
    texts: Texts,
    rubric: str | Path = "ttcw",
    *,
    model: str | AskFunction | FunctionModel = "local",
    labels: Any = None,
    out: str | Path | None = None,
    text: str = "text",
    id: str = "id",
    **settings: Any,
) -> Verdicts:
    """Judge texts by a rubric with a language model.

    `model` is a name as on the command line, or a function (plain or async) from the text of a
    prompt to the text of an answer. `labels`, by people for some of the texts (as for `correct`),
    correct it; `n_shots` of these texts precede each as examples. With `out`, a folder, every
    answer is saved there and interrupted runs resume. settings: those of `fabula judge`, such as
    `style`, `n_samples`, `items`, `max_cost` with `price`. There is no confirmation of the cost:
    set `max_cost`. An answer without a verdict is missing with its reason. Raises `InputError`,
    `ModelError`, `BusyError`.
    """
    from fabula.jobs.judging import (
        LabelledSettings,
        ask_judges,
        check_labels,
        plan_of,
        with_examples,
    )

    given = documents_of(texts, text=text, id=id)
    functions = () if isinstance(model, str) else (_function(model),)
    names = (model,) if isinstance(model, str) else ("function",)
    fixed = {
        "rubric": str(rubric),
        "models": names,
        "out": None if out is None else Path(out),
        "labels": None,
    }
    chosen = settings_from(LabelledSettings, settings, fixed)
    plan = plan_of(chosen.judging)
    people: list[Measurement] = []
    if labels is not None:
        found, source = _labels(labels, plan.rubric, "labels")
        people = check_labels(given.documents, found, plan.rubric, source)
    plan, left = with_examples(plan, given.documents, people, chosen.n_shots)
    judged = ask_judges(given.documents, plan, chosen, functions=functions)
    return Verdicts(replace(judged, labels=left, people=people), given.kind)


def _function(model: Any) -> FunctionModel:
    from fabula.models.base import FunctionModel

    if isinstance(model, FunctionModel):
        return model
    if not callable(model):
        raise InputError(
            "a model must be a name or a function from a prompt to an answer, not a value of type "
            f"{type(model).__name__}"
        )
    return FunctionModel(model)


@recorded_call
def agreement(
    verdicts: Verdicts | Sequence[Verdicts],
    experts: Any,
    *,
    by: Literal["item", "dimension", "author"] = "item",
    seed: int = 0,
) -> Agreement:
    """Measure judges' agreement with experts, with 95 % intervals over stories.

    `experts` is a frame or rows with `document`, `item`, `rater`, `value`, or the path of a file
    that `fabula agreement --experts` takes. Raises `InputError`, `MixError`.
    """
    from fabula.jobs.agreement import AgreementSettings, agree

    listed = [verdicts] if isinstance(verdicts, Verdicts) else list(verdicts)
    if not listed:
        raise InputError("no verdicts")
    rubric = listed[0].rubric
    labels, source = _labels(experts, rubric, "experts")
    judges = [mine for run in listed for mine in by_rater(run.measurements()).values()]
    return Agreement(agree(judges, labels, rubric, AgreementSettings(by, seed), source))


@recorded_call
def correct(
    verdicts: Verdicts, labels: Any = None, *, by: str | None = None, **settings: Any
) -> Corrected:
    """Estimate what experts would have said of all texts, from a judge and labels of some.

    `labels` is a frame or rows with `document`, `item`, `rater`, `value`, or the path of a file
    with them; `by` a field of the texts, whose groups are corrected and compared. settings: those
    of `fabula judge correct`. Raises `InputError`, `SettingsError`.
    """
    from fabula.jobs.correction import CorrectSettings, correct_measurements

    rubric = verdicts.rubric
    found = [] if labels is None else _labels(labels, rubric, "labels")[0]
    chosen = settings_from(CorrectSettings, settings, {"by": by, "labels": None})
    run = correct_measurements(
        verdicts.measurements(), found, rubric, chosen, verdicts.judged.documents
    )
    return Corrected(run)


@recorded_call
def compare_judges(
    runs: Verdicts | str | Path | Sequence[Verdicts | str | Path],
    labels: Any = None,
    *,
    texts: Texts = None,
    text: str = "text",
    id: str = "id",
    seed: int = 0,
) -> JudgeComparison:
    """Compare judges with people and with each other; three or more also as panels.

    `runs` are verdicts, or the folders of finished runs (`out`); a judge in several runs counts as
    one judge in each. `labels` is a frame or rows with `document`, `item`, `rater`, `value`, or the
    path of a file with them; without it judges are only compared with each other. With the judged
    `texts`, the length bias is measured. Raises `InputError`, `MixError`.
    """
    from fabula.jobs.judge_comparison import JudgeComparisonSettings, compare_runs

    listed = [runs] if isinstance(runs, Verdicts | str | Path) else list(runs)
    if not listed:
        raise InputError("no verdicts")
    read = [_judge_run(run, f"run {number}") for number, run in enumerate(listed, 1)]
    rubric = read[0].rubric
    stories = [] if texts is None else documents_of(texts, text=text, id=id).documents
    seed = JudgeComparisonSettings(seed=seed).seed
    found, source = ([], "") if labels is None else _labels(labels, rubric, "labels")
    return JudgeComparison(compare_runs(read, found, source, stories, seed=seed))


def _judge_run(run: Verdicts | str | Path, name: str) -> JudgeRun:
    from fabula.jobs.judge_comparison import JudgeRun, read_judge_run
    from fabula.judging.judges import JudgeCost

    if not isinstance(run, Verdicts):
        return read_judge_run(Path(run))
    # Existing answers were not counted.
    costs = {
        one.model: JudgeCost(one.n_calls, one.usage.n_input, one.usage.n_output, one.cost)
        for one in run.judged.spent
        if one.n_calls
    }
    return JudgeRun(name, run.rubric, run.measurements(), costs)


@recorded_call
def find_faults(
    answers: Any,
    labels: Any = None,
    *,
    model: str | AskFunction | FunctionModel | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> FoundFaults:
    """Score which model answers find the faults planted by `fabula feedback corrupt`.

    `answers` are rows of `fabula feedback elicit` or the path of its file; `labels` are people's,
    for some answers: a frame or rows with `document`, `item` ("found", "asks"), `rater`, `value`,
    or the path of a file with them. With `model`, a name or a function, a judge reads the answers
    too, and its output is saved in `out`. settings: those of `fabula feedback find`. Raises
    `InputError`, `ModelError`, `BusyError`.
    """
    from fabula.jobs.planted_faults import FindSettings
    from fabula.jobs.planted_faults import find_faults as find
    from fabula.rubrics.load import load_rubric
    from fabula.store import read_rows
    from fabula.text.feedback_pieces import check_feedback_row

    given = (
        list(read_rows(Path(answers))) if isinstance(answers, str | Path) else rows_of(answers)[0]
    )
    if given is None:
        raise InputError(
            "answers must be rows of `fabula feedback elicit`, or the path of its output"
        )
    rows = [dict(row) for row in given]
    for number, row in enumerate(rows, 1):
        check_feedback_row(row, f"answer {number}")
    named = (model,) if isinstance(model, str) else ()
    functions = () if model is None or named else (_function(model),)
    fixed = {"models": named, "out": None if out is None else Path(out), "labels": None}
    chosen = settings_from(FindSettings, settings, fixed)
    people = [] if labels is None else _labels(labels, load_rubric(chosen.rubric), "labels")[0]
    return FoundFaults(find(rows, chosen, people, functions=functions))


@recorded_call
def plan(labels: Any, rubric: str | Path = "ttcw", **settings: Any) -> Plan:
    """What studies of each size would show, by resampling the labels of a pilot.

    `labels` is a frame or rows with `document`, `item`, `rater`, `value`, and `author` if two
    groups are compared, or the path of a file with them, on yes-no items or numbers. settings:
    those of `fabula plan`, such as `stories` and `raters` ("20,50,100"), `mean_width`,
    `kappa_width`, `power`. Raises `InputError`, also if the pilot is too small or too uniform to
    plan from.
    """
    from fabula.jobs.plan import PlanSettings, plan_from
    from fabula.rubrics.load import load_rubric

    chosen = settings_from(PlanSettings, settings, {"rubric": str(rubric)})
    loaded = load_rubric(chosen.rubric)
    found, source = _labels(labels, loaded, "labels")
    return Plan(plan_from(found, loaded, chosen, source))


def _labels(given: Any, rubric: Rubric, name: str) -> tuple[list[Measurement], str]:
    """People's labels, and their origin."""
    from fabula.measures.labels import labels_of, read_labels

    if isinstance(given, str | Path):
        return read_labels(Path(given), rubric), Path(given).name
    rows, _ = rows_of(given)
    if rows is None:
        raise InputError(f"{name}: expected a table or rows with document, item, rater, value")
    return labels_of(located(rows), rubric, name), name


@recorded_call
def compare(
    *results: Scores | Profiles | Verdicts | Report | Iterable[dict[str, Any]],
    by: str | None = None,
    baseline: str | None = None,
    cluster: str | None = None,
    unnamed: str | None = None,
    texts: Texts | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare groups of texts in one or several results, or the rows of their files.

    Texts are grouped by their field `by`; those without it are the group `unnamed`. `texts` have
    the fields that rows lack, as those of verdicts do. Gives each number's mean by group with a
    95 % interval, and the pairs (or each group and the `baseline`) with Mann-Whitney tests,
    corrected over everything by Holm's method. Texts that share the field `cluster` count as one,
    and tests permute within what groups share. Of scores of originality alone there are curves too,
    and differences are in per cent.

    Raises `InputError`, and `MixError` for numbers that were not measured in the same way.
    """
    from fabula.jobs.comparison import ComparisonSettings
    from fabula.measures.group_comparison import compare_rows
    from fabula.measures.number_comparison import MeasuredTexts, compare_numbers
    from fabula.store import measurement_row

    settings = ComparisonSettings(by=by, baseline=baseline, cluster=cluster, unnamed=unnamed)
    how: dict[str, Any] = {"baseline": baseline, "cluster": cluster, "seed": seed}
    field = settings.grouping_field()
    rows: list[dict[str, Any]] = []
    for one in results:
        if isinstance(one, Profiles):
            rows += [profile.to_row() for profile in one.profiles]
        elif isinstance(one, Verdicts):
            rows += map(measurement_row, one.measurements())
        elif isinstance(one, Report):
            rows += (
                text.document.beside(measurement_row(value))
                for text in one.review.texts
                for value in text.measurements()
            )
        else:
            rows += one.rows if isinstance(one, Scores) else list(one)
    if unnamed is texts is None and all("creativity_index" in row for row in rows):
        return Comparison(compare_rows(located(rows), by=field, **how))
    measured = MeasuredTexts()
    for row, where in located(rows):
        measured.add(row, where)
    documents = [] if texts is None else documents_of(texts).documents
    fields = {document.id: document.fields for document in documents}
    return Comparison(compare_numbers(measured, by=field, unnamed=unnamed, fields=fields, **how))


@recorded_call
def diversity(
    texts: Texts,
    *,
    by: str | None = None,
    prompt: str | None = None,
    text: str = "text",
    id: str = "id",
    **settings: Any,
) -> Diversity:
    """Measure how similar the texts of each group are, at equal length and number of texts.

    `by` is a field of the texts, and so is `prompt`, which has a text's prompt or an id of it.
    settings: those of `fabula diversity`, such as `n_words`, `n_pairs`, `baseline`, `extras`.
    Raises `InputError` if a text lacks a field, or no group has two texts. Sources: Shaib et al.
    2024, Li et al. 2016, Zhu et al. 2018, Salkar et al. 2022.
    """
    from fabula.jobs.diversity import DiversitySettings
    from fabula.jobs.diversity import diversity as measure

    given = documents_of(texts, text=text, id=id)
    chosen = settings_from(DiversitySettings, settings, {"by": by, "prompt": prompt})
    return Diversity(
        measure(given.documents, chosen), {one.id: one.text for one in given.documents}, given.kind
    )


@recorded_call
def key_phrases(
    a: Texts,
    b: Texts = None,
    *,
    by: str | None = None,
    names: tuple[str, str] = ("A", "B"),
    prompt: str | None = None,
    text: str = "text",
    id: str = "id",
    **settings: Any,
) -> KeyPhrases:
    """Find phrases that texts of `a` use more than texts of `b`, and `b` more than `a`.

    Instead of `b` a field of the texts, `by`, can name both groups. settings: those of `fabula
    groups phrases`, such as `of`, `against`, `n_words`, `min_ratio`, `max_p`. Listed phrases pass
    an exact test by text, which does not detect who wrote a text. Raises `InputError`,
    `SettingsError`. Source: Monroe, Colaresi and Quinn 2008.
    """
    from fabula.jobs.phrases import PhraseSettings, split_texts
    from fabula.jobs.phrases import key_phrases as find

    chosen = settings_from(PhraseSettings, settings, {"by": by, "prompt": prompt})
    if (b is None) == (by is None):
        raise InputError("expected two groups of texts, `a` and `b`, or one and a field, `by`")
    given = documents_of(a, text=text, id=id)
    if b is None:
        groups = split_texts(given.documents, chosen)
    elif names[0] == names[1]:
        raise InputError("the `names` of the groups must differ")
    else:
        others = documents_of(b, text=text, id=id).documents
        groups = (names[0], given.documents), (names[1], others)
    return KeyPhrases(find(*groups, chosen), chosen.n_listed, given.kind)


@recorded_call
def report(
    texts: Texts,
    reference: str | Path | Reference | Sequence[str | Path] | None = None,
    *,
    judge: Verdicts | None = None,
    model: str | None = None,
    labels: Any = None,
    by: str | None = None,
    text: str = "text",
    id: str = "id",
    **settings: Any,
) -> Report:
    """Run every available instrument; report which were skipped and how to enable them.

    `judge` takes existing verdicts on these texts, by id; with `model`, a language model judges and
    advises. `labels`, by people for some of the texts (as for `correct`), show what these people
    would have said of all next to the judge's means. settings: those of `fabula report`. Raises
    `InputError`, `CorpusError` for what cannot be opened, and `InputError` if both `judge` and
    `model` are given to judge.
    """
    from fabula.jobs.judging import check_labels
    from fabula.jobs.report import ReportSettings
    from fabula.jobs.reported import report_texts
    from fabula.rubrics.load import load_rubric

    given = documents_of(texts, text=text, id=id)
    fixed = {
        "references": () if reference is None else _paths(reference),
        "models": () if model is None else (model,),
        "labels": None,
        "by": by,
    }
    chosen = settings_from(ReportSettings, settings, fixed)
    if judge is not None and chosen.models.models and chosen.asks("verdicts"):
        raise InputError("`judge` already contains verdicts; leave out `model` or its verdicts")
    people: list[Measurement] = []
    if labels is not None:
        if judge is None and not (chosen.models.models and chosen.asks("verdicts")):
            raise InputError("`labels` are for correcting a judge; add `judge` or `model`")
        rubric = load_rubric(chosen.rubric) if judge is None else judge.rubric
        found, source = _labels(labels, rubric, "labels")
        people = check_labels(given.documents, found, rubric, source)
    verdicts = None if judge is None else (judge.measurements(), judge.rubric)
    return Report(
        report_texts(given.documents, chosen, verdicts=verdicts, people=people), given.kind
    )

"""The functions of `fabula`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.api.given import settings_from
from fabula.api.results import Agreement, Comparison, Profiles, Report, Scores, Verdicts
from fabula.api.texts import Texts, documents_of, located, rows_of
from fabula.errors import InputError
from fabula.settings import SettingsError

if TYPE_CHECKING:
    from fabula.models.function import AskFunction, FunctionModel
    from fabula.reference import Reference
    from fabula.types import Document

__all__ = [
    "agreement",
    "build",
    "compare",
    "judge",
    "open_reference",
    "originality",
    "profile",
    "read",
    "report",
]


def read(texts: Texts, *, text: str = "text", id: str = "id") -> list[Document]:
    """Texts as documents: a frame, a list, a mapping from id to text, a file, a folder, a pattern.

    Raises `InputError` that names the row or the file.
    """
    return documents_of(texts, text=text, id=id).documents


def build(
    texts: Texts,
    out: str | Path,
    *,
    text: str = "text",
    id: str = "id",
    **settings: Any,
) -> Reference:
    """Build a reference corpus in the folder `out`, and open it.

    settings: `case` ("fold", "keep"), `punct` ("drop", "keep"), `restart`, `n_jobs`. Raises
    `CorpusError` where `out` holds something else, `InputError` for texts that cannot be read.
    """
    from fabula.reference import Reference
    from fabula.text import TextSettings
    from fabula.workers import default_jobs

    allowed = {"case", "punct", "restart", "n_jobs"}
    if unknown := settings.keys() - allowed:
        name = min(unknown)
        raise SettingsError(name, f"is not a setting of this; there are {', '.join(allowed)}")
    words = {name: settings.pop(name) for name in ("case", "punct") if name in settings}
    n_jobs = settings.pop("n_jobs", None) or default_jobs()
    documents = documents_of(texts, text=text, id=id).documents
    return Reference.build(
        documents, str(out), settings=TextSettings(**words), n_jobs=n_jobs, **settings
    )


def open_reference(*paths: str | Path) -> Reference:
    """Open a reference corpus; several are searched as one. Raises `CorpusError`."""
    from fabula.reference import Reference

    return Reference.open(*map(str, paths))


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
    `out`, `n_jobs`. Raises `InputError`, `CorpusError`; a text whose look-up failed has no score,
    and its row says why. Source: Lu et al. 2024.
    """
    from fabula.jobs.originality import OriginalitySettings, run

    given = documents_of(texts, text=text, id=id)
    chosen = settings_from(OriginalitySettings, settings, {"references": _paths(reference)})
    rows: list[dict[str, Any]] = []
    result = run(given.documents, chosen, keep_texts=True, each=rows.append)
    return Scores(rows, result, given.kind)


def _paths(reference: Any) -> tuple[str, ...]:
    """Where a reference is, whatever of it a caller has."""
    if isinstance(reference, str | Path):
        return (str(reference),)
    paths = getattr(reference, "paths", None)
    if paths is not None:
        return tuple(map(str, paths))
    if isinstance(reference, Iterable):
        return tuple(map(str, reference))
    raise InputError(
        f"a reference is a path, several of them, or what `fabula.build` gave, not a value of type "
        f"{type(reference).__name__}"
    )


def profile(
    texts: Texts, *, text: str = "text", id: str = "id",
    grammar: str = "harper", n_jobs: int | None = None,
) -> Profiles:  # fmt: skip
    """Profile texts: rhythm, dialogue, rarity of words, grammar, repetition. English only.

    Raises `ModelError` where the language pipeline is not installed.
    """
    from fabula.measures.linguistic.profile import profile_texts
    from fabula.workers import default_jobs

    given = documents_of(texts, text=text, id=id)
    found = profile_texts(given.documents, grammar, n_jobs=n_jobs or default_jobs())
    return Profiles(list(found), given.kind)


def judge(
    texts: Texts,
    rubric: str | Path = "ttcw",
    *,
    model: str | AskFunction | FunctionModel = "local",
    out: str | Path | None = None,
    text: str = "text",
    id: str = "id",
    **settings: Any,
) -> Verdicts:
    """Put a rubric to a language model, text by text.

    `model` is a name as on the command line, or a function (plain or async) from the text of a
    prompt to the text of an answer. With `out`, a folder, every answer is kept there and a run that
    was interrupted resumes. settings: those of `fabula judge`, such as `style`, `n_samples`,
    `items`, `max_cost` with `price`. Nothing is asked about the cost: set `max_cost`. An answer
    without a verdict is missing with its reason. Raises `InputError`, `ModelError`, `BusyError`.
    """
    from fabula.jobs.judging import JudgingSettings, ask_judges, plan_of

    given = documents_of(texts, text=text, id=id)
    functions = () if isinstance(model, str) else (_function(model),)
    names = (model,) if isinstance(model, str) else ("function",)
    fixed = {
        "rubric": str(rubric),
        "models": names,
        "out": None if out is None else Path(out),
    }
    chosen = settings_from(JudgingSettings, settings, fixed)
    plan = plan_of(chosen.judging)
    return Verdicts(ask_judges(given.documents, plan, chosen, functions=functions), given.kind)


def _function(model: Any) -> FunctionModel:
    from fabula.models.function import FunctionModel

    if isinstance(model, FunctionModel):
        return model
    if not callable(model):
        raise InputError(
            f"a model is a name or a function from a prompt to an answer, not a value of type "
            f"{type(model).__name__}"
        )
    return FunctionModel(model)


def agreement(
    verdicts: Verdicts | Sequence[Verdicts],
    experts: Any,
    *,
    by: Literal["item", "dimension", "author"] = "item",
    seed: int = 0,
) -> Agreement:
    """How far judges agree with experts, with 95 % intervals by a bootstrap over stories.

    `experts` is a frame or rows with `document`, `item`, `rater`, `value` (Yes or No, 1 or 0), or
    the path of a file that `fabula agreement --experts` takes. Raises `InputError`, `MixError`.
    """
    from fabula.measures.agreement import (
        expert_correlation,
        judge_agreement,
        panel_agreement,
        panel_of,
        read_experts,
    )

    listed = [verdicts] if isinstance(verdicts, Verdicts) else list(verdicts)
    if not listed:
        raise InputError("there are no verdicts")
    rubric = listed[0].rubric
    if isinstance(experts, str | Path):
        panel = read_experts(Path(experts), rubric)
    else:
        rows, _ = rows_of(experts)
        if rows is None:
            raise InputError("experts: give a frame or rows with document, item, rater, value")
        panel = panel_of(map(_expert, rows), "experts")
    judges = []
    for one in listed:
        for rater in dict.fromkeys(m.rater for m in one.measurements()):
            mine = [m for m in one.measurements() if m.rater == rater]
            judges.append(judge_agreement(mine, panel, rubric, by, seed=seed))
    rows_of_panel = panel_agreement(panel, rubric, by, seed=seed)
    return Agreement(judges, rows_of_panel, expert_correlation(panel, rubric), rubric)


_YES = {"yes": 1.0, "no": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0, "true": 1.0,
        "false": 0.0}  # fmt: skip


def _expert(row: dict[str, Any]) -> tuple[str, str, str, float]:
    names = ("document", "item", "rater", "value")
    lacking = [name for name in names if row.get(name) is None]
    if lacking:
        raise InputError(
            f"experts: a row has no {lacking[0]!r}; its columns are {', '.join(map(repr, row))}"
        )
    value = _YES.get(str(row["value"]).strip().lower())
    if value is None:
        raise InputError(f"experts: {row['value']!r} is neither Yes nor No")
    return str(row["document"]), str(row["item"]), str(row["rater"]), value


def compare(
    scores: Scores | Iterable[dict[str, Any]],
    *,
    by: str,
    baseline: str | None = None,
    cluster: str | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare the originality of groups of texts; `by` is a field of theirs.

    Gives each group's mean Creativity Index with a 95 % interval, and the pairs (or each group and
    the `baseline`) with Mann-Whitney tests corrected after Holm. Texts that share the field
    `cluster` count as one. Raises `InputError`, and `MixError` for scores that were not measured in
    the same way.
    """
    from fabula.measures.comparison import compare_rows

    rows = scores.rows if isinstance(scores, Scores) else list(scores)
    found = compare_rows(located(rows), by=by, baseline=baseline, cluster=cluster, seed=seed)
    return Comparison(found)


def report(
    texts: Texts,
    reference: str | Path | Reference | Sequence[str | Path] | None = None,
    *,
    judge: Verdicts | None = None,
    model: str | None = None,
    by: str | None = None,
    text: str = "text",
    id: str = "id",
    **settings: Any,
) -> Report:
    """Run every instrument that can run, and say what was left out and how to have it.

    `judge` holds verdicts on these texts, by id, that are there already; with `model`, a language
    model judges and advises. settings: those of `fabula report`. Raises `InputError`, `CorpusError`
    for what cannot be opened, and `InputError` where `judge` and `model` are both to judge.
    """
    from fabula.jobs.report import ReportSettings
    from fabula.jobs.reviewer import Reviewer, with_verdicts
    from fabula.review import compare_groups

    given = documents_of(texts, text=text, id=id)
    fixed = {
        "references": () if reference is None else _paths(reference),
        "models": () if model is None else (model,),
    }
    chosen = settings_from(ReportSettings, settings, fixed)
    if judge is not None and chosen.models.models and chosen.asks("verdicts"):
        raise InputError("`judge` holds verdicts already; leave out `model`, or its verdicts")
    with Reviewer(chosen) as reviewer:
        review = reviewer.run(given.documents)
    if judge is not None:
        review = with_verdicts(review, judge.measurements(), judge.rubric)
    tests = () if by is None else tuple(compare_groups(review, by, seed=chosen.seed))
    return Report(review, by, tests, given.kind)

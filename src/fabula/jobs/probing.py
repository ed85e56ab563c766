"""Prompt injection: how far instructions put into stories shift judges' verdicts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.jobs.judging import FOLDER_HELP, Judging, JudgingSettings, ask_judges, plan_of
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.settings import Between, SettingsError, setting
from fabula.types import by_rater

if TYPE_CHECKING:
    from fabula.judging.injections import ProbeRow
    from fabula.judging.session import Spent
    from fabula.presentation.sheet import Block
    from fabula.types import Document, Measurement

__all__ = ["Probe", "ProbeSettings", "probe_judges"]


@dataclass(frozen=True, slots=True)
class ProbeSettings(JudgingSettings):
    """A run on stories with injections."""

    out: Path | None = setting(Path("probed"), help=FOLDER_HELP)
    kinds: str | None = setting(
        None,
        help="Insert only these kinds of injection, separated by commas; the control is always "
        "included.",
        unit="KIND,KIND",
    )
    n_stories: int | None = setting(
        None,
        help="Probe only N of the stories, drawn at random with the seed.",
        unit="N",
        check=Between(1),
    )


@dataclass(frozen=True, slots=True)
class Probe:
    """The effect of injections, judge by judge."""

    rows: list[tuple[str, str, list[ProbeRow]]]
    """For each judge, its name, its signature and a row for each kind."""
    measurements: list[Measurement]
    spent: list[Spent]

    def tables(self) -> list[Block]:
        from fabula.presentation.probe_tables import probe_tables

        return probe_tables(self.rows)

    def records(self) -> list[dict[str, Any]]:
        """One record per judge and kind."""
        return [{"judge": rater, **asdict(row)} for rater, _, rows in self.rows for row in rows]


def probe_judges(
    documents: Sequence[Document],
    settings: ProbeSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> Probe:
    """Judge each story as it is and with each injection, and compare the verdicts.

    Raises `InputError`, `ModelError`, `BusyError`; finished answers are kept in `out`.
    """
    from fabula.errors import InputError
    from fabula.judging.injections import probed_stories, summarise_probe
    from fabula.text import TextSettings, check_documents

    kinds = _kinds(settings.kinds)
    plan = plan_of(_tests_only(settings.judging))
    words = TextSettings()
    chosen = [one for one in check_documents(documents) if words.has_words(one.text)]
    if not chosen:
        raise InputError("no story contains words, so there is nowhere to insert an injection")
    if settings.n_stories is not None and settings.n_stories < len(chosen):
        drawn = random.Random(f"probe {plan.seed}").sample(range(len(chosen)), settings.n_stories)
        chosen = [chosen[k] for k in sorted(drawn)]
    stories = probed_stories(chosen, kinds, plan.seed)
    judged = ask_judges(stories, plan, settings, progress=progress, confirm=confirm)
    rows = []
    for rater, mine in by_rater(judged.measurements).items():
        found = summarise_probe(mine, stories, kinds, plan.rubric, plan.seed)
        rows.append((rater, mine[0].signature, found))
    return Probe(rows, judged.measurements, judged.spent)


def _kinds(text: str | None) -> list[str]:
    from fabula.judging.injections import CONTROL, KINDS

    names = [name.strip() for name in (text or ",".join(KINDS)).split(",") if name.strip()]
    for name in names:
        if name not in KINDS:
            raise SettingsError("kinds", f"has {name}, but the kinds are {', '.join(KINDS)}")
    return list(dict.fromkeys([CONTROL, *names]))


def _tests_only(judging: Judging) -> Judging:
    """Keep only the yes-no items: what an injection asks for must be a possible answer."""
    from fabula.errors import InputError
    from fabula.rubrics import load_rubric

    rubric = load_rubric(judging.questions.rubric)
    named = {name.strip() for name in (judging.questions.items or "").split(",") if name.strip()}
    asked = [item for item in rubric.items if not named or item.id in named]
    tests = [item.id for item in asked if item.scale.is_test]
    if asked and not tests:
        raise InputError(f"{rubric.id}: has no yes-no item to probe a judge with")
    if len(tests) == len(asked):
        return judging
    return replace(judging, questions=replace(judging.questions, items=",".join(tests)))

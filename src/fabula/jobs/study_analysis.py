"""Analyse a study's answers: the tables of the paper whose design it follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError
from fabula.jobs.result import Result
from fabula.jobs.result_files import plot_setting
from fabula.jobs.studies import OpenStudy, StudyFile, StudyPlace, answers_of, open_study
from fabula.settings import Settings, SettingsError, seed_setting

if TYPE_CHECKING:
    from fabula.measures.rater_agreement import Panel, PanelRow
    from fabula.measures.ratings import GroupMean, ItemAgreement
    from fabula.presentation.sheet import Block
    from fabula.studies.design import StudyDesign
    from fabula.types import Estimate, Measurement, Rubric


@dataclass(frozen=True, slots=True)
class AnalysisSettings(Settings):
    """What is drawn of a study, and how intervals are computed."""

    plot: Path | None = plot_setting(
        "Draw tests passed, ranks and supposed origins here (ttcw; .svg, .pdf or .png)."
    )
    seed: int = seed_setting()


class StudyAnalysis(Result, ABC):
    """The tables of a study's answers so far."""

    __slots__ = ()

    @abstractmethod
    def tables(self) -> list[Block]:
        """The tables of the paper that the study follows."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""


@dataclass(frozen=True, slots=True, repr=False)
class StoryAnalysis(StudyAnalysis):
    """Tables 5 and 6 and Figures 3 and 4 of Chakrabarty et al. 2024, from a study's answers."""

    design: StudyDesign
    rubric: Rubric
    """Its yes-no items, which the tables cover."""
    panel: Panel
    preferred: Sequence[Measurement]
    authors: Mapping[str, str]
    n_verdicts: int
    signature: str
    seed: int

    def tables(self) -> list[Block]:
        from fabula.presentation.study_tables import study_tables
        from fabula.replicate.ttcw import panel_replica
        from fabula.replicate.ttcw_tables import NOT_MADE, replica_tables

        if self._is_of_paper():
            replica = panel_replica(self.panel, self.design.rubric, self.preferred)
            parts = replica_tables(replica)
        else:
            rates, agreement, correlation = self._agreement()
            passed, *rest = self._counts()
            parts = study_tables(self.rubric, rates, agreement, passed, correlation, *rest)
            n_stories = len({story for story, _ in self.panel.subjects})
            parts += [
                "",
                f"{n_stories:,} stories, {self.n_verdicts:,} verdicts",
                NOT_MADE,
                self.signature,
            ]
        known = {item.id for item in self.rubric.items}
        left_out = [item.id for item in self.design.rubric.items if item.id not in known]
        if left_out:
            parts.append(f"not in these tables, since they are not yes-no: {', '.join(left_out)}")
        return parts

    def to_json(self) -> dict[str, Any]:
        passed, ranks, origins = self._counts()
        rates, agreement, correlation = self._agreement()
        return {
            "pass_rate": rates,
            "agreement": [asdict(row) for row in agreement],
            "tests_passed": passed,
            "tests_passed_pearson": asdict(correlation),
            "ranks": ranks,
            "origins": origins,
            "n_verdicts": self.n_verdicts,
            "signature": self.signature,
        }

    def _agreement(self) -> tuple[dict[str, dict[str, float]], list[PanelRow], Estimate]:
        """Pass rates, agreement by item and over all, and the correlation of tests passed."""
        from fabula.measures.rater_agreement import expert_correlation, panel_agreement, pass_rates

        panel, rubric = self.panel, self.rubric
        return (
            pass_rates(panel, rubric, self.authors.__getitem__),
            panel_agreement(panel, rubric, "item", seed=self.seed),
            expert_correlation(panel, rubric, seed=self.seed),
        )

    def writers(self) -> dict[str, Any]:
        """Figures 3 and 4."""
        return dict.fromkeys((".svg", ".pdf", ".png"), self.draw)

    def draw(self, path: Path) -> None:
        from fabula.presentation.study_tables import save_study

        save_study(*self._counts(), len(self.rubric.items), path)

    def _counts(self) -> tuple[Any, Any, Any]:
        """Tests passed, ranks and supposed origins, by author."""
        from fabula.measures.rater_agreement import tests_passed
        from fabula.replicate.ttcw import preferences_by_author

        passed = tests_passed(self.panel, self.rubric, self.authors.__getitem__)
        return passed, *preferences_by_author(self.preferred, self.authors)

    def _is_of_paper(self) -> bool:
        """Whether these are the stories of the paper, so that its figures can be shown beside."""
        from fabula.replicate.ttcw import AUTHORS

        expected = {f"{group}_{author}" for group in range(12) for author in AUTHORS}
        return self.design.rubric.id == "ttcw" and set(self.authors) == expected


@dataclass(frozen=True, slots=True, repr=False)
class FeedbackAnalysis(StudyAnalysis):
    """Tables 2 to 5 of Rashkin et al. 2025, from a study's answers."""

    items: Sequence[str]
    agreement: Mapping[str, ItemAgreement]
    means: Mapping[str, Mapping[str, Mapping[str, GroupMean]]]
    """By field of the feedback, group and item."""
    n_people: int
    signature: str

    def tables(self) -> list[Block]:
        from fabula.presentation.rating_tables import agreement_table, means_table

        parts: list[Block] = [
            f"{self.n_people:,} people; mean of 1 - |a - b| over pairs, "
            "Krippendorff's alpha with |a - b| as the distance",
            agreement_table(self.agreement),
            "",
        ]
        for name, groups in self.means.items():
            if len(groups) > 1 or name == "model":
                parts += [means_table(name, groups, self.items), ""]
        return [*parts, self.signature]

    def to_json(self) -> dict[str, Any]:
        return {
            "agreement": {item: asdict(one) for item, one in self.agreement.items()},
            "means": {
                name: {
                    group: {item: asdict(mean) for item, mean in by_item.items()}
                    for group, by_item in groups.items()
                }
                for name, groups in self.means.items()
            },
            "n_people": self.n_people,
        }


def analyse(file: StudyFile, settings: AnalysisSettings, place: StudyPlace) -> StudyAnalysis:
    """Print the paper's tables from the answers: pass rates, agreement, ranks and origins (ttcw);
    means with standard errors, agreement between raters (feedback); rankings by the Bradley-Terry
    model, as in `judge --pairwise` (pairs).

    Raises `InputError`, also if nobody has handed in anything yet.
    """
    with open_study(file, place) as study:
        if study.design.kind == "ttcw":
            found = _of_stories(study, settings.seed)
            if settings.plot is not None:
                found.draw(settings.plot)
            return found
        if settings.plot is not None:
            raise SettingsError("plot", "is only for the design ttcw")
        if study.design.kind == "pairs":
            from fabula.jobs.study_pairs import analyse_pairs

            return analyse_pairs(study.design, study.units, answers_of(study), seed=settings.seed)
        return _of_feedback(study)


def _of_stories(study: OpenStudy, seed: int) -> StoryAnalysis:
    from fabula.measures.rater_agreement import panel_of

    design, found = study.design, answers_of(study)
    rubric = replace(
        design.rubric, items=tuple(item for item in design.rubric.items if item.scale.is_test)
    )
    known = {item.id for item in rubric.items}
    verdicts = [
        (one.document_id, one.item, one.rater, one.value)
        for one in found
        if one.item in known and isinstance(one.value, float)
    ]
    panel = panel_of(verdicts, design.id)
    if not panel.subjects:
        raise _too_early(design)
    return StoryAnalysis(
        design,
        rubric,
        panel,
        [one for one in found if one.item in ("preference", "origin")],
        {one.id: one.author or "unknown" for unit in study.units for one in unit.documents},
        len(verdicts),
        found[0].signature,
        seed,
    )


def _of_feedback(study: OpenStudy) -> FeedbackAnalysis:
    from fabula.measures.ratings import (
        group_means,
        item_agreement,
        mean_scores,
        score_table,
        spans_of,
    )
    from fabula.presentation.rating_tables import FIELDS

    design, found = study.design, answers_of(study)
    scores = score_table(found, design.rubric)
    if not any(scores.values()):
        raise _too_early(design)
    known = {one.id: one.meta for unit in study.units for one in unit.documents}
    means = mean_scores(scores)
    items = [item.id for item in design.rubric.items if item.scale.has_worth]
    by_field = {}
    for name in FIELDS:
        by = {id_: str(meta.get(name, "any")) for id_, meta in known.items()}
        by_field[name] = group_means(means, by.get)
    return FeedbackAnalysis(
        items,
        item_agreement({item: scores[item] for item in items}, spans_of(design.rubric)),
        by_field,
        len({one.rater for one in found}),
        found[0].signature,
    )


def _too_early(design: StudyDesign) -> InputError:
    return InputError(f"{design.path}: nobody has handed in anything yet")

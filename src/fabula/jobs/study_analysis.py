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
    from fabula.judging.pairwise import PairRanking
    from fabula.measures.agreement import AmongPeople, Panel
    from fabula.measures.ratings import GroupMean, ItemAgreement
    from fabula.presentation.sheet import Block
    from fabula.presentation.study_tables import PairItem
    from fabula.studies.design import StudyDesign
    from fabula.studies.units import Unit
    from fabula.types import Estimate, Measurement, Rubric


_PEOPLE = "people"


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
        from fabula.replicate.ttcw import AUTHORS, NOT_MADE, panel_replica, replica_tables

        # The figures of the paper can be shown beside those of its stories.
        stories = {f"{group}_{author}" for group in range(12) for author in AUTHORS}
        if self.design.rubric.id == "ttcw" and set(self.authors) == stories:
            replica = panel_replica(self.panel, self.design.rubric, self.preferred)
            parts = replica_tables(replica)
        else:
            rates, agreement, correlation = self._agreement()
            passed, *rest = self._counts()
            parts = study_tables(self.rubric, rates, agreement, passed, correlation, *rest)
            n_stories = len({story for story, _ in self.panel.subjects})
            counts = f"{n_stories:,} stories, {self.n_verdicts:,} verdicts"
            parts += ["", counts, NOT_MADE, self.signature]
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

    def _agreement(self) -> tuple[dict[str, dict[str, float]], list[AmongPeople], Estimate]:
        """Pass rates, agreement by item and over all, and the correlation of tests passed."""
        from fabula.measures.agreement import expert_correlation, panel_agreement, pass_rates

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
        from fabula.measures.agreement import tests_passed
        from fabula.replicate.ttcw import preferences_by_author

        passed = tests_passed(self.panel, self.rubric, self.authors.__getitem__)
        return passed, *preferences_by_author(self.preferred, self.authors)


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
        found = asdict(self)
        return {name: found[name] for name in ("agreement", "means", "n_people")}


@dataclass(frozen=True, slots=True, repr=False)
class PeoplesPairs(StudyAnalysis):
    """Stories, and authors, ranked by people's preferences; and people's agreement."""

    by: str
    """The field that stories of a pair share."""
    items: Sequence[PairItem]
    rankings: Sequence[PairRanking]
    """Over all items, then by item; of stories, then of authors."""
    n_people: int
    at_once: int
    """How many stories were shown together."""

    def tables(self) -> list[Block]:
        from fabula.presentation.judging_tables import ranking_tables
        from fabula.presentation.study_tables import pair_items

        parts: list[Block] = [*pair_items(self.items, self.n_people, self.at_once)]
        for ranking in self.rankings:
            if ranking.item == "all":
                parts += ["", *ranking_tables(ranking, _PEOPLE, self.by)]
        return parts

    def to_json(self) -> dict[str, Any]:
        from fabula.judging.pairwise import ranking_row

        return {
            "n_people": self.n_people,
            "at_once": self.at_once,
            "items": [asdict(one) for one in self.items],
            "rankings": [ranking_row(one, _PEOPLE) for one in self.rankings],
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
            return analyse_pairs(study.design, study.units, answers_of(study), seed=settings.seed)
        return _of_feedback(study)


def _of_stories(study: OpenStudy, seed: int) -> StoryAnalysis:
    from fabula.measures.agreement import panel_of

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
    from fabula.measures import ratings
    from fabula.presentation.rating_tables import FIELDS

    design, found = study.design, answers_of(study)
    scores = ratings.score_table(found, design.rubric)
    if not any(scores.values()):
        raise _too_early(design)
    known = {one.id: one.meta for unit in study.units for one in unit.documents}
    means, by_field = ratings.mean_scores(scores), {}
    items = [item.id for item in design.rubric.items if item.scale.has_worth]
    for name in FIELDS:
        by = {id_: str(meta.get(name, "any")) for id_, meta in known.items()}
        by_field[name] = ratings.group_means(means, by.get)
    of_items = {item: scores[item] for item in items}
    agreement = ratings.item_agreement(of_items, ratings.spans_of(design.rubric))
    n_people = len({one.rater for one in found})
    return FeedbackAnalysis(items, agreement, by_field, n_people, found[0].signature)


def analyse_pairs(
    design: StudyDesign, units: Sequence[Unit], found: Sequence[Measurement], *, seed: int
) -> PeoplesPairs:
    """Rank stories, and their authors, by Bradley and Terry's model with a place effect.

    Each answer counts in the order in which the stories were shown. For stories, answers about one
    pair, or one set of four, are treated as correlated; for authors, those about one group of
    stories. `found` are a study's measurements. Raises `InputError` without answers.
    """
    from fabula.judging.pairwise import rank_groups, rank_stories
    from fabula.presentation.study_tables import PairItem
    from fabula.studies.quality import compared_answers
    from fabula.studies.units import pairs_within

    given = [one for one in found if "orders" in one.details]
    if not given:
        raise _too_early(design)
    pairs = list(pairs_within([unit.documents for unit in units]).values())
    # An answer about four stories makes five comparisons at once.
    cluster = None if design.at_once == 2 else "unit"
    by = design.group_field
    rankings = rank_stories(given, pairs, by, seed=seed, by_item=True, cluster=cluster)
    rankings += rank_groups(given, pairs, by, "author", seed=seed, by_item=True)
    compared = compared_answers(given)
    items = []
    for item in design.rubric.items:
        mine = [one for one in given if one.item == item.id]
        said = [side for one in mine for side in one.details["orders"] if side]
        alike = [one for one in compared if one.item == item.id]
        n_others = sum(one.n_others for one in alike)
        n_decided = len(said) - said.count("tie")
        items.append(
            PairItem(
                item=item.title,
                n=len({(one.rater, one.details["unit"]) for one in mine}),
                n_neither=said.count("tie"),
                first_share=said.count("A") / n_decided if n_decided else None,
                n_shared=len({one.document_id for one in alike}),
                share_same=sum(one.n_same for one in alike) / n_others if n_others else None,
            )
        )
    n_people = len({one.rater for one in given})
    rankings.sort(key=lambda ranking: ranking.item != "all")
    return PeoplesPairs(by, items, rankings, n_people, design.at_once)


def _too_early(design: StudyDesign) -> InputError:
    return InputError(f"{design.path}: nobody has handed in anything yet")

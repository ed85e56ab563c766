"""People's answers about pairs of stories: a ranking, like that from a judge's answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fabula.jobs.study_analysis import StudyAnalysis

if TYPE_CHECKING:
    from fabula.judging.pairwise import PairRanking
    from fabula.presentation.sheet import Block
    from fabula.presentation.study_tables import PairItem
    from fabula.studies.design import StudyDesign
    from fabula.studies.units import Unit
    from fabula.types import Measurement

_PEOPLE = "people"


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


def analyse_pairs(
    design: StudyDesign, units: Sequence[Unit], found: Sequence[Measurement], *, seed: int
) -> PeoplesPairs:
    """Rank stories, and their authors, by Bradley and Terry's model with a place effect.

    Each answer counts in the order in which the stories were shown. For stories, answers about one
    pair, or one set of four, are treated as correlated; for authors, those about one group of
    stories. `found` are a study's measurements. Raises `InputError` without answers.
    """
    from fabula.errors import InputError
    from fabula.judging.pairwise import rank_groups, rank_stories
    from fabula.presentation.study_tables import PairItem
    from fabula.studies.pairs import compared_answers, pairs_within

    given = [one for one in found if "orders" in one.details]
    if not given:
        raise InputError(f"{design.path}: nobody has handed in anything yet")
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

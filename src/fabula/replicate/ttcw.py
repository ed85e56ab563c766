"""Tables 5 and 6 and Figures 3 and 4 of "Art or Artifice?" (Chakrabarty et al. 2024).

From the authors' release: the experts' 2,016 verdicts and the answers of the judges. Each figure is
shown next to the printed one; if they differ, that is stated with the reason, if known.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fabula.core.errors import InputError
from fabula.core.scales import Scale
from fabula.core.types import Item, Measurement, Rubric
from fabula.models.base import Answer
from fabula.models.verdicts import read_verdict
from fabula.raters.agreement import (
    Panel,
    expert_correlation,
    pass_rates,
    ratings_of,
    read_experts,
    tests_passed,
)
from fabula.replicate.tables import Claim, by_author, claim_sheet, claims_of, section
from fabula.rubrics.load import load_rubric
from fabula.rubrics.released import EXPERTS_FILE, read_judge_answers, split_story_id
from fabula.show.sheet import Block
from fabula.stats.agreement import Confusion, cohen, fleiss

AUTHORS = ("GPT3.5", "GPT4", "Claude", "NewYorker")
OUTLIER_GROUP = "2"
"""The group ("The Facade Renovation That's Going Well") without which all 14 kappas are as printed.

Over all 48 stories three of the 14 agree to two decimals; of the 4,095 choices of groups only this
one gives all 14. The printed pass rates are of all twelve groups.
"""


FLEISS = "Fleiss kappa"
"""The column of Table 5 that is added to those of the authors."""
_ALL = "all stories"
NOT_MADE = (
    "Not made of the paper's figures and tables: Figure 5 (the length of its stories; `fabula "
    "profile` counts words), Tables 1 to 4 and 10 (who took part, the tests, the stories), and "
    "Tables 7 to 9 and 11 to 14 (what people and models wrote, in their words: an export has every "
    "reason and remark, and `fabula judge themes` groups them)"
)
_AVERAGE = "The printed average of GPT4, 27.9, is not the mean of its own printed column, 27.8."
_LATER_RUN = (
    "The released answers are of a later run (March 2024) with a prompt that asks for the verdict "
    "first, not the paper's, which reasons first: they are not expected to agree."
)


@dataclass(frozen=True, slots=True)
class JudgeReplica:
    """A released judge: kappa with the majority by test, over the stories that it answered."""

    name: str
    kappa: Mapping[int, float | None]
    n_answers: int
    missing: Mapping[str, int]
    pass_rate: float | None
    balanced_accuracy: float | None


@dataclass(frozen=True, slots=True)
class Replica:
    """The results from the released files, by test index."""

    rubric: Rubric
    pass_rate: Mapping[str, Mapping[int, float]]
    """Percent of the experts' verdicts that are Yes, by author."""
    fleiss: Mapping[int, float | None]
    """Without `OUTLIER_GROUP`: as in the paper's table."""
    fleiss_all: Mapping[int, float | None]
    """Over all stories of the file."""
    dimension: Mapping[str, Mapping[str, float]]
    """Pass rate by author and dimension."""
    passed: Mapping[str, Mapping[int, int]]
    """Figure 3: how many assessments of an author's stories passed 0, 1, ... 14 tests."""
    pearson: float | None
    """For tests passed, between two experts of a story, without `OUTLIER_GROUP`."""
    pearson_all: float | None
    n_stories: int
    n_verdicts: int
    judges: tuple[JudgeReplica, ...]
    ranks: Mapping[str, Mapping[int, int]]
    """Figure 4a: how often an author's story took each rank; empty without such data."""
    origins: Mapping[str, Mapping[str, int]]
    """Figure 4b: the supposed origin of an author's stories."""

    @property
    def claims(self) -> list[Claim]:
        """Tables 5 and 6, and the correlation of section 5.4.2."""
        undefined = "no verdicts of which it is defined"
        rates = with_average({**self.pass_rate, FLEISS: self.fleiss})
        kappas = with_average({judge.name: judge.kappa for judge in self.judges})
        correlation = {("tests passed", "Pearson"): self.pearson}
        notes = {("average", "GPT4"): _AVERAGE} if "GPT4" in self.pass_rate else {}
        return [
            *claims_of("ttcw", ["Table 5"], rates, missing=undefined, notes=notes),
            *claims_of("ttcw", ["Section 5.4.2"], correlation, missing=undefined),
            *claims_of(
                "ttcw", ["Table 6"], kappas, missing=f"no answers, or {undefined}", why=_LATER_RUN
            ),
        ]

    def to_json(self) -> dict[str, Any]:
        """Plain values. `fleiss_kappa` excludes one group, as printed; `..._all` includes all."""
        return {
            "pass_rate": _keys(self.pass_rate),
            "fleiss_kappa": _keys(self.fleiss),
            "fleiss_kappa_stories": f"all but group {OUTLIER_GROUP}: the paper's choice",
            "fleiss_kappa_all": _keys(self.fleiss_all),
            "aggregate_pearson": self.pearson,
            "aggregate_pearson_all": self.pearson_all,
            "judges": {judge.name: _keys(judge.kappa) for judge in self.judges},
            "judges_missing": {judge.name: judge.missing for judge in self.judges},
            "dimension_pass_rate": self.dimension,
            "tests_passed": _keys(self.passed),
            "ranks": _keys(self.ranks),
            "origins": self.origins,
            "n_stories": self.n_stories,
            "n_verdicts": self.n_verdicts,
            "claims": [claim.to_json() for claim in self.claims],
        }


def with_average(
    columns: Mapping[str, Mapping[int, float | None]],
) -> dict[tuple[str, str], float | None]:
    """Numbers by test and column, and the average of the known ones of a column."""
    numbers: dict[tuple[str, str], float | None] = {}
    for column, values in columns.items():
        numbers |= {(str(index), column): value for index, value in values.items()}
        known = [value for value in values.values() if value is not None]
        numbers["average", column] = math.fsum(known) / len(known) if known else None
    return numbers


def _keys(table: Any) -> Any:
    """A table of tables with texts as keys, as JSON has them."""
    if not isinstance(table, Mapping):
        return table
    return {str(key): _keys(value) for key, value in table.items()}


def replicate_ttcw(folder: Path) -> Replica:
    """All results from the released files of `folder`; judges from its `llm_judges`.

    Raises `InputError`.
    """
    rubric = load_rubric("ttcw")
    if not (folder / EXPERTS_FILE).exists():
        raise InputError(
            f"{folder}: lacks {EXPERTS_FILE}; get the folder Art_or_Artifice of "
            f"github.com/salesforce/creativity_eval"
        )
    panel = read_experts(folder / EXPERTS_FILE, rubric)
    judges = sorted((folder / "llm_judges").glob("annotations_*.jsonl"))
    return panel_replica(panel, rubric, judges=judges)


def panel_replica(
    panel: Panel,
    rubric: Rubric,
    preferred: Sequence[Measurement] = (),
    *,
    judges: Sequence[Path] = (),
) -> Replica:
    """The same for any experts on the paper's stories, which are named as in the release.

    `preferred` may hold measurements of the rubric `preference`.
    """

    def author_of(story: str) -> str:
        return split_story_id(story)[1]

    keep = [split_story_id(story)[0] != OUTLIER_GROUP for story, _ in panel.subjects]
    some = panel.take([place for place, is_kept in enumerate(keep) if is_kept])
    present = {author_of(story) for story, _ in panel.subjects}
    authors = [a for a in AUTHORS if a in present] + sorted(present - set(AUTHORS))
    by_dimension: dict[str, list[Item]] = {}
    for item in rubric.items:
        by_dimension.setdefault(item.dimension, []).append(item)
    rates = pass_rates(panel, rubric, author_of)
    passed = tests_passed(panel, rubric, author_of)
    ranks, origins = preferences_by_author(
        preferred, {mark.document_id: author_of(mark.document_id) for mark in preferred}
    )
    truth, replicas = panel.majority(), []
    places = _places(panel)
    for file in judges:
        marks = released_verdicts(file, rubric)
        verdicts = ratings_of(marks)
        missing = Counter(mark.missing_reason for mark in marks if mark.missing_reason)
        answered = {(mark.document_id, mark.item) for mark in marks}
        if absent := sum(subject not in answered for subject in panel.subjects):
            missing["not_in_file"] = absent
        both, subjects = (verdicts, truth), panel.subjects
        mine, theirs = (np.array([of.get(s, np.nan) for s in subjects], float) for of in both)
        replicas.append(
            JudgeReplica(
                name=file.stem.removeprefix("annotations_"),
                kappa={
                    item.index: cohen(mine[places[item.id]], theirs[places[item.id]]).value
                    for item in rubric.items
                },
                n_answers=len(verdicts),
                missing=dict(sorted(missing.items())),
                pass_rate=100 * float(np.mean(list(verdicts.values()))) if verdicts else None,
                balanced_accuracy=Confusion.of(mine, theirs).balanced_accuracy,
            )
        )
    return Replica(
        rubric=rubric,
        pass_rate={
            author: {rubric.item(item).index: rate for item, rate in rates[author].items()}
            for author in authors
        },
        fleiss=_fleiss(some, rubric),
        fleiss_all=_fleiss(panel, rubric),
        dimension={
            author: {
                dimension: float(np.mean([rates[author][item.id] for item in items]))
                for dimension, items in by_dimension.items()
            }
            for author in authors
        },
        passed={author: passed[author] for author in authors},
        pearson=expert_correlation(some, rubric).value,
        pearson_all=expert_correlation(panel, rubric).value,
        n_stories=len({story for story, _ in panel.subjects}),
        n_verdicts=int((~np.isnan(panel.ratings)).sum()),
        judges=tuple(replicas),
        ranks=ranks,
        origins=origins,
    )


def _fleiss(panel: Panel, rubric: Rubric) -> dict[int, float | None]:
    places = _places(panel)
    return {item.index: fleiss(panel.ratings[places[item.id]]).value for item in rubric.items}


def _places(panel: Panel) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, (_, item) in enumerate(panel.subjects):
        places[item].append(place)
    return places


def released_verdicts(file: Path, rubric: Rubric) -> list[Measurement]:
    """Read a file of recorded answers, as strictly as those of a live judge."""
    items = {item.index: item.id for item in rubric.items}
    name = file.stem.removeprefix("annotations_")
    signature = f"judge|model:{name}|rubric:{rubric.key}|answers:released"
    marks = []
    for (story, index), text in read_judge_answers(file).items():
        verdict = read_verdict(Answer(text), Scale("yes-no"), "verdict-first")
        if index in items:
            about = story, rubric.key, items[index], name, verdict.value, verdict.missing_reason
            marks.append(Measurement(*about, (), verdict.rationale, signature))
    return marks


def preferences_by_author(
    found: Iterable[Measurement], authors: Mapping[str, str]
) -> tuple[dict[str, dict[int, int]], dict[str, dict[str, int]]]:
    """Ranks and supposed origins by author, from measurements of the rubric `preference`."""
    ranks: dict[str, Counter[int]] = defaultdict(Counter)
    origins: dict[str, Counter[str]] = defaultdict(Counter)
    for mark in found:
        author = authors[mark.document_id]
        if mark.item == "preference" and isinstance(mark.value, float):
            ranks[author][int(mark.value)] += 1
        elif mark.item == "origin" and isinstance(mark.value, str):
            origins[author][mark.value] += 1
    return _plain(ranks), _plain(origins)


def _plain(counts: Mapping[str, Counter[Any]]) -> dict[str, dict[Any, int]]:
    return {name: dict(sorted(counter.items())) for name, counter in sorted(counts.items())}


def replica_tables(replica: Replica) -> list[Block]:
    """Table 5, dimensions, Figure 3, aggregate correlation, Table 6, and Figure 4 if available."""
    claims = replica.claims
    rates = [c for c in claims if c.table == "Table 5" and c.column != FLEISS]
    kappas = [c for c in claims if c.column == FLEISS]
    (pearson,) = (claim for claim in claims if claim.column == "Pearson")
    items = replica.rubric.items
    tests = {str(item.index): f"{item.index} {item.title}" for item in items}
    tests["average"] = "average"
    dimensions = list(dict.fromkeys(item.dimension for item in items))
    without, every = f"without group {OUTLIER_GROUP}", "all 48 stories"
    parts = [
        *section(
            f"Table 5: passed by the experts, % (printed), over {replica.n_stories} stories and "
            f"{replica.n_verdicts:,} verdicts",
            # Authors not in the paper come last.
            claim_sheet(
                "pass_rates",
                tests,
                {author: author for author in [*AUTHORS, *replica.pass_rate]},
                rates,
                with_average(replica.pass_rate),
                form=".1f",
            ),
            claims=rates,
        ),
        *section(
            "Table 5: agreement of the experts, Fleiss kappa (printed)",
            claim_sheet(
                "fleiss",
                tests,
                {FLEISS: without, _ALL: every},
                kappas,
                with_average({_ALL: replica.fleiss_all}),
                form=".2f",
            ),
            claims=kappas,
            remarks=[
                f"The printed kappas are of all groups but group {OUTLIER_GROUP}, "
                '"The Facade Renovation That\'s Going Well" (44 stories): so all 14 agree to two '
                "decimals, over all 48 stories only 3 do. The printed pass rates are of all 48."
            ],
        ),
        *section(
            "Passed by dimension, %",
            by_author("dimensions", "", replica.dimension, dimensions, ".1f"),
        ),
        *section(
            "Figure 3: tests passed in an assessment, number of assessments",
            by_author("passed", "", replica.passed, range(len(items) + 1)),
        ),
        *section(
            "Tests passed, Pearson between two experts (printed)",
            claim_sheet(
                "correlation",
                {pearson.row: pearson.row},
                {pearson.column: without, _ALL: every},
                [pearson],
                {(pearson.row, _ALL): replica.pearson_all},
                form=".2f",
            ),
        ),
    ]
    if replica.judges:
        parts += _judge_parts(replica, tests, [c for c in claims if c.table == "Table 6"])
    if replica.ranks:
        parts += section("Figure 4a: places in the group", by_author("ranks", "", replica.ranks))
    if replica.origins:
        parts += section("Figure 4b: taken for", by_author("origins", "", replica.origins))
    if not replica.ranks and not replica.origins:
        parts.append(
            "Figure 4 (ranking and supposed origin): the release has no such data; `fabula study "
            "analyse` shows those of a study"
        )
    return [*parts, NOT_MADE]


def _judge_parts(found: Replica, tests: Mapping[str, str], claims: Sequence[Claim]) -> list[Block]:
    printed = {claim.column for claim in claims}
    more = {"answers": "answers", "says_yes": "says Yes, %", "balanced": "balanced accuracy"}
    sheets = []
    for name, is_printed in (("judges", True), ("other-judges", False)):
        judges = [judge for judge in found.judges if (judge.name in printed) == is_printed]
        cells = with_average({judge.name: judge.kappa for judge in judges})
        for judge in judges:
            cells["answers", judge.name] = judge.n_answers
            cells["says_yes", judge.name] = judge.pass_rate
            cells["balanced", judge.name] = judge.balanced_accuracy
        if judges:
            names, rows = {judge.name: judge.name for judge in judges}, {**tests, **more}
            forms = [*[".2f"] * (len(tests) - 1), ".3f", "d", ".1f", ".2f"]
            sheets.append(claim_sheet(name, rows, names, claims, cells, form=".2f", forms=forms))
    return section(
        "Table 6: judges, Cohen kappa with the majority of three experts (printed)",
        *sheets,
        claims=claims,
        remarks=[
            f"{judge.name}: no verdict in "
            + ", ".join(f"{n} ({reason})" for reason, n in judge.missing.items())
            for judge in found.judges
            if judge.missing
        ],
    )


def save_distribution(replica: Replica, path: Path) -> None:
    """Figure 3: how many tests an assessment passed, by author; .svg, .pdf or .png."""
    from fabula.show.charts import save_distributions

    series: dict[str, Sequence[int]] = {
        author: [counts.get(k, 0) for k in range(len(replica.rubric.items) + 1)]
        for author, counts in replica.passed.items()
    }
    save_distributions(series, path, x_label="tests passed", y_label="assessments")

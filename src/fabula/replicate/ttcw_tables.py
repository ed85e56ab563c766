"""The tables and the figure of "Art or Artifice?", ours next to the printed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fabula.presentation.sheet import Block, Column, Sheet
from fabula.replicate.claims import Claim, agreement_lines, claim_sheet
from fabula.replicate.ttcw import (
    AUTHORS,
    FLEISS,
    OUTLIER_GROUP,
    JudgeReplica,
    Replica,
    with_average,
)

_ALL = "all stories"
NOT_MADE = (
    "Not made of the paper's figures and tables: Figure 5 (the length of its stories; `fabula "
    "profile` counts words), Tables 1 to 4 and 10 (who took part, the tests, the stories), and "
    "Tables 7 to 9 and 11 to 14 (what people and models wrote, in their words: an export has every "
    "reason and remark, and `fabula judge themes` groups them)"
)


def replica_tables(replica: Replica) -> list[Block]:
    """Table 5, dimensions, Figure 3, aggregate correlation, Table 6, and Figure 4 if available."""
    rates = [c for c in replica.claims if c.table == "Table 5" and c.column != FLEISS]
    kappas = [c for c in replica.claims if c.column == FLEISS]
    (pearson,) = (claim for claim in replica.claims if claim.column == "Pearson")
    tests = _tests(replica)
    without, every = f"without group {OUTLIER_GROUP}", "all 48 stories"
    dimensions = list(dict.fromkeys(item.dimension for item in replica.rubric.items))
    parts: list[Block] = [
        f"Table 5: passed by the experts, % (printed), over {replica.n_stories} stories and "
        f"{replica.n_verdicts:,} verdicts",
        "",
        # Authors not in the paper come last.
        claim_sheet(
            "pass_rates",
            tests,
            {author: author for author in [*AUTHORS, *replica.pass_rate]},
            rates,
            with_average(replica.pass_rate),
            form=".1f",
        ),
        "",
        *agreement_lines(rates),
        "",
        "Table 5: agreement of the experts, Fleiss kappa (printed)",
        "",
        claim_sheet(
            "fleiss",
            tests,
            {FLEISS: without, _ALL: every},
            kappas,
            with_average({_ALL: replica.fleiss_all}),
            form=".2f",
        ),
        "",
        *agreement_lines(kappas),
        f'The printed kappas are of all groups but group {OUTLIER_GROUP}, "The Facade Renovation '
        f"That's Going Well\" (44 stories): so all 14 agree to two decimals, over all 48 stories "
        f"only 3 do. The printed pass rates are of all 48.",
        "",
        "Passed by dimension, %",
        "",
        _by_author("dimensions", replica.dimension, ".1f", dimensions),
        "",
        "Figure 3: tests passed in an assessment, number of assessments",
        "",
        _by_author("passed", replica.passed, "d", range(len(replica.rubric.items) + 1)),
        "",
        "Tests passed, Pearson between two experts (printed)",
        "",
        claim_sheet(
            "correlation",
            {pearson.row: pearson.row},
            {pearson.column: without, _ALL: every},
            [pearson],
            {(pearson.row, _ALL): replica.pearson_all},
            form=".2f",
        ),
        "",
    ]
    if replica.judges:
        parts += _judge_parts(replica)
    if replica.ranks:
        parts += ["Figure 4a: places in the group", "", _by_author("ranks", replica.ranks, "d"), ""]
    if replica.origins:
        parts += ["Figure 4b: taken for", "", _by_author("origins", replica.origins, "d"), ""]
    if not replica.ranks and not replica.origins:
        parts.append(
            "Figure 4 (ranking and supposed origin): the release has no such data; give "
            "measurements of the rubric `preference` with `preferences`"
        )
    return [*parts, NOT_MADE]


def _tests(replica: Replica) -> dict[str, str]:
    """The titles of a table's rows."""
    tests = {str(item.index): f"{item.index} {item.title}" for item in replica.rubric.items}
    return tests | {"average": "average"}


def _judge_parts(replica: Replica) -> list[Block]:
    claims = [claim for claim in replica.claims if claim.table == "Table 6"]
    printed = {claim.column for claim in claims}
    in_paper = [judge for judge in replica.judges if judge.name in printed]
    others = [judge for judge in replica.judges if judge.name not in printed]
    by_kind = (("judges", in_paper), ("other-judges", others))
    return [
        "Table 6: judges, Cohen kappa with the majority of three experts (printed)",
        "",
        *(_table6(name, replica, some, claims) for name, some in by_kind if some),
        "",
        *agreement_lines(claims),
        *(
            f"{judge.name}: no verdict in "
            + ", ".join(f"{n} ({reason})" for reason, n in judge.missing.items())
            for judge in replica.judges
            if judge.missing
        ),
        "",
    ]


def _table6(
    name: str, replica: Replica, judges: Sequence[JudgeReplica], claims: Sequence[Claim]
) -> Sheet:
    rows = _tests(replica)
    cells = with_average({judge.name: judge.kappa for judge in judges})
    for judge in judges:
        cells["answers", judge.name] = judge.n_answers
        cells["says_yes", judge.name] = judge.pass_rate
        cells["balanced", judge.name] = judge.balanced_accuracy
    more = {"answers": "answers", "says_yes": "says Yes, %", "balanced": "balanced accuracy"}
    return claim_sheet(
        name,
        rows | more,
        {judge.name: judge.name for judge in judges},
        claims,
        cells,
        form=".2f",
        forms=[*[".2f"] * (len(rows) - 1), ".3f", "d", ".1f", ".2f"],
    )


def _by_author(
    name: str, counts: Mapping[str, Mapping[Any, float]], form: str, names: Sequence[Any] = ()
) -> Sheet:
    """A row per author; the columns are `names`, or those that any author has."""
    known = names or sorted({name for row in counts.values() for name in row}, key=str)
    return Sheet(
        name,
        [Column("", name="author"), *(Column(str(one), form) for one in known)],
        [[author, *(row.get(one, 0) for one in known)] for author, row in counts.items()],
    )


def save_distribution(replica: Replica, path: Path) -> None:
    """Figure 3: how many tests an assessment passed, by author; .svg, .pdf or .png."""
    from fabula.presentation.charts import save_distributions

    n_items = len(replica.rubric.items)
    series: dict[str, Sequence[int]] = {
        author: [counts.get(k, 0) for k in range(n_items + 1)]
        for author, counts in replica.passed.items()
    }
    save_distributions(series, path, x_label="tests passed", y_label="assessments")

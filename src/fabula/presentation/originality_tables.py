"""Originality scores, and comparisons of groups of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabula.measures.groups import Distribution
from fabula.measures.scores import RankedPassage
from fabula.presentation.sheet import Block, Cell, Column, Displayed, Sheet, interval_notes, known
from fabula.reasons import explain

if TYPE_CHECKING:
    from fabula.measures.group_comparison import Comparison
    from fabula.measures.number_comparison import NumberComparison
    from fabula.stats.clustered import Omnibus

_QUOTE_CHARS = 60


def originality_table(
    rows: Sequence[tuple[str, int, float | None, float | None, str | None]],
    levels: Sequence[str],
    signature: str,
    own: Distribution | None = None,
) -> list[Block]:
    """Texts with their scores: (id, words, index, uniqueness at the lowest L, missing reason).

    `own`: the index of the reference's own documents, to which each text is compared.
    """
    columns = [
        Column("text"),
        Column("words", ",", name="n_words"),
        Column(f"Creativity Index, of {len(levels)}", ".3f", name="creativity_index"),
        Column(f"{levels[0]}-uniqueness", ".1%", name=f"uniqueness_{levels[0]}"),
    ]
    cells: list[list[Cell]] = [
        [name, n_words, known(index, explain(reason)), lowest]
        for name, n_words, index, lowest, reason in rows
    ]
    if own is not None:
        columns.append(Column("above", ".0%", name="share_below"))
        for row, (_, _, index, _, _) in zip(cells, rows, strict=True):
            row.append(None if index is None else own.share_below(index))
    footer = []
    values = [index for _, _, index, _, _ in rows if index is not None]
    if len(rows) > 1 and values:
        n_missing = len(rows) - len(values)
        footer.append(
            f"mean Creativity Index {statistics.fmean(values):.3f} over {len(values):,} text"
            + ("" if len(values) == 1 else "s")
            + (f", {n_missing:,} without one" if n_missing else "")
        )
    if own is not None:
        footer.append(
            f"above: the share of {own.n:,} documents of the reference itself that score less"
        )
    return [Sheet("scores", columns, cells, many="texts"), *footer, signature]


def passages_table(
    passages: Sequence[RankedPassage], n_passages: int, n_commonplaces: int
) -> list[Block]:
    """The first of the borrowed passages, the least probable first; empty if there are none."""
    if not n_passages and not n_commonplaces:
        return []
    common = f"{n_commonplaces:,} common phrase" + ("s" if n_commonplaces != 1 else "")
    if not passages:
        return ["", f"no borrowed passage; {common}"]
    columns = [Column("passage", cut=True, of="quote"), _TEXT, *_WORDS, _PLACES, _SOURCE]
    if len({one.id for one in passages}) == 1:
        columns.remove(_TEXT)
    n_more = n_passages - len(passages)
    more = f"and {n_more:,} more borrowed passages; " if n_more else ""
    return ["", Sheet.of("passages", passages, columns), f"{more}{common}"]


def ranked_sheet(passages: Sequence[RankedPassage]) -> list[Block]:
    """All borrowed passages of all texts with their ranks, as files store them."""
    if not passages:
        return []

    def passage(one: RankedPassage) -> Cell:
        """In full in CSV, elsewhere as many words as fit on a line."""
        cut = one.quote[:_QUOTE_CHARS].rpartition(" ")[0] + " ..."
        return Displayed(one.quote, cut) if len(one.quote) > _QUOTE_CHARS else one.quote

    columns = [
        _TEXT,
        Column("rank", "d"),
        Column("passage", of=passage),
        *_WORDS,
        Column(
            "bits over chance", ".0f", name="over_chance", of=lambda one: known(one.over_chance)
        ),
        _PLACES,
        Column("documents", ",", name="n_documents"),
        _SOURCE,
    ]
    return [Sheet.of("passages", passages, columns)]


_TEXT = Column("text", once=True, of="id")
_WORDS = (
    Column("words", "d", name="n_words"),
    Column("word for word", "d", name="n_verbatim"),
    Column("bits", ".0f", of=lambda one: known(one.bits)),
)
_PLACES = Column("places", ",", name="count")
_SOURCE = Column("also found in", name="source")


def _number_tables(found: NumberComparison) -> list[Block]:
    """Each number's mean by group, then pairs with their tests."""
    unit = "texts" if found.cluster is None else "clusters"
    groups = Sheet.of(
        "groups",
        found.groups,
        [
            Column("number", once=True),
            Column(found.field, name="group"),
            Column(unit, ",", name="n", of="mean.n"),
            Column("missing", ",", of="n_missing"),
            Column("mean", ".4g", with_interval=True),
        ],
    )
    pairs = Sheet.of(
        "pairs",
        found.pairs,
        [
            Column("number", once=True),
            Column("A against B", name="pair", of=lambda one: f"{one.a} : {one.b}"),
            Column("A - B", "+.3g", with_interval=True, name="gap", of="difference.gap"),
            *_test_columns(found),
        ],
    )
    n_tests = sum(one.p_holm is not None for one in found.pairs)
    holm = f"p (Holm): corrected over all {n_tests:,} tests above"
    shown: Block = pairs if found.pairs else "no number that two groups have, nothing to compare"
    signatures = dict.fromkeys(found.signatures[one.number] for one in found.groups)
    notes = _comparison_notes(found, groups, pairs)
    return [groups, "", shown, *([holm] if n_tests else []), *notes, "", *signatures]


def _test_columns(comparison: Comparison | NumberComparison) -> list[Column]:
    test = "Mann-Whitney" if comparison.cluster is None else "permutation"
    return [
        Column("P(A > B)", ".3f", name="superiority", of="difference.superiority"),
        Column(f"p ({test})", ".2g", name="p", of="difference.p"),
        Column("p (Holm)", ".2g", name="p_holm"),
    ]


def comparison_tables(comparison: Comparison | NumberComparison) -> list[Block]:
    """Groups with their means, a test of all, then pairs with their tests."""
    from fabula.measures.number_comparison import NumberComparison

    if isinstance(comparison, NumberComparison):
        return _number_tables(comparison)
    unit = "texts" if comparison.cluster is None else "clusters"
    groups = Sheet.of(
        "groups",
        comparison.groups,
        [
            Column(comparison.field, of="name"),
            Column(unit, ",", of="index.n"),
            Column("missing", ",", of=lambda group: sum(group.missing.values())),
            Column(
                "Creativity Index", ".3f", with_interval=True, name="creativity_index", of="index"
            ),
        ],
    )
    pairs = Sheet.of(
        "pairs",
        comparison.pairs,
        [
            Column("A against B", of=lambda pair: f"{pair.a} : {pair.b}"),
            Column(
                "(A - B) / B, %",
                "+.1f",
                with_interval=True,
                name="percent",
                of="difference.percent",
            ),
            *_test_columns(comparison),
        ],
    )
    reasons = [
        f"missing in {group.name}: {n:,} {explain(reason)}"
        for group in comparison.groups
        for reason, n in group.missing.items()
    ]
    tests: Block = pairs if comparison.pairs else "one group, nothing to compare"
    notes = _comparison_notes(comparison, groups, pairs)
    lines = [*reasons, *omnibus_lines(comparison.omnibus), ""]
    return [groups, *lines, tests, *notes, "", comparison.signature]


def omnibus_lines(found: Omnibus | None) -> list[str]:
    """Whether several groups differ at all; for two the test of the pair says so."""
    if found is None or found.n_groups < 3:
        return []
    unit = "clusters" if found.is_clustered else "texts"
    p = f"no p from {found.n_units:,} {unit}" if found.p is None else f"p = {found.p:.2g}"
    statistic = "infinite" if found.statistic is None else f"{found.statistic:.2f}"
    return [
        "",
        f"all {found.n_groups:,} groups alike: {found.test} = {statistic} over "
        f"{found.n_units:,} {unit}, {p}",
    ]


def _comparison_notes(
    comparison: Comparison | NumberComparison, groups: Sheet, pairs: Sheet
) -> list[str]:
    unit = "texts" if comparison.cluster is None else "clusters"
    notes = interval_notes([*groups.estimates(), *pairs.estimates()], unit)
    if comparison.cluster is not None:
        notes.append(
            f"Texts with the same {comparison.cluster} count as one in a group; tests permute "
            f"groups within each {comparison.cluster} that they share, and whole ones otherwise."
        )
    if comparison.n_joined:
        notes.append(f"{comparison.n_joined:,} more before near-duplicates were joined")
    if comparison.shared_field is not None:
        notes.append(
            f"Texts share {comparison.shared_field}, but are counted as independent: cluster by it "
            f"(--cluster {comparison.shared_field})."
        )
    return notes

"""Tables of how similar texts are: measures by group, tests, shared phrases, pairs of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fabula.core.errors import explain
from fabula.core.types import Span
from fabula.groups.comparison import CURVE, INDEX, NOT_SAID, Comparison
from fabula.groups.diversity import RUN_WORDS, Diversity, Together, reason_of
from fabula.groups.key_phrases import KeyPhrases
from fabula.groups.shared_ngrams import SimilarPair
from fabula.show.charts import COLOURS, INK, LINE, MARKERS, SOFT, figure_of
from fabula.show.sheet import (
    NUMBER,
    Block,
    Cell,
    Column,
    Missing,
    Sheet,
    contrast_sheet,
    interval_notes,
    omnibus_lines,
)
from fabula.stats.contrasts import cell_means

_TITLES = {
    "shared_ngrams": ("shared {}-grams", ".2%"),
    "compression": ("compression ratio", ".3f"),
    "self_bleu": ("self-BLEU", ".3f"),
    "self_repetition": ("self-repetition", ".2f"),
    "distinct": ("distinct-{}", ".3f"),
    "templates": ("templates per token", ".3f"),
    "embeddings": ("cosine distance", ".3f"),
}
_N_RUNS = 5
"""Runs of a pair that are shown."""
_UNKNOWN = (
    "direction unknown: one may have copied from the other, or both from a third, and wording of "
    "the assignment and of common quotations is shared as well"
)
_MOST_WORDS = 40
"""Words of a run that are shown on a report of several texts."""


def diversity_tables(diversity: Diversity, texts: Mapping[str, str]) -> list[Block]:
    """texts: by id, for the words of the spans that are shown."""
    parts = _figures(diversity)
    if diversity.tests:
        # The tests, how their p-values are computed, and why some are missing.
        number = Column("measure", once=True, of=lambda test: _title(test.number)[0])
        # Notes below the table explain what has no interval.
        p = Column("p", ".3g", of=lambda t: Missing(explain(t.reason)) if t.reason else t.p)
        by_t = [t for t in diversity.tests if t.test == "jackknife t" and t.p is not None]
        permuted = [test for test in diversity.tests if test.details["n_permutations"]]
        fewest = min((test.details["n_permutations"] for test in permuted), default=0)
        how = f"permutation of the group, {fewest:,} times or more"
        if not permuted:
            how = "t-test by the jackknife" if by_t else "none"
        elif by_t:
            measures = {test.number for test in permuted}
            apart = [test for test in by_t if test.number not in measures]
            alone = dict.fromkeys(_title(test.number)[0] for test in apart)
            pairs = dict.fromkeys(f"{t.a} : {t.b}" for t in by_t if t.number in measures)
            how += f" (of {', '.join([*alone, *pairs])}: t-test by the jackknife)"
        parts += ["", contrast_sheet("tests", diversity.tests, "+.3f", number=number, p=p)]
        parts.append(f"p: {how}; p (Holm): over the pairs of a measure")
        if any(test.reason == "no_spread" for test in diversity.tests):
            parts.append("no p: in one of the groups nothing varies (see above)")
    for group in diversity.groups:
        # What most texts of a group share, and where the first example is.
        for name, phrases in (("phrases", group.phrases), ("templates", group.templates)):
            columns = [
                Column(f"{name} of {group.name}", name="phrase"),
                Column("texts", ",", name="n_texts"),
                Column("times", ",", name="n_times"),
                Column("elsewhere", ",", name="n_texts_elsewhere"),
                Column("such as", name="example", of=lambda row: _words(row.examples[0], texts)),
                Column("in", name="example_id", of=lambda row: row.examples[0].document_id),
            ]
            if name == "phrases":
                # The words are the phrase itself.
                columns.pop(-2)
            if phrases:
                parts += ["", Sheet.of(name, phrases, columns, about=("group", group.name))]
    if diversity.has_pairs:
        parts += _pairs(diversity.pairs, texts)
    return [*parts, "", *diversity.remarks, diversity.signature]


def together_tables(
    result: Together, texts: Mapping[str, str], elsewhere: Mapping[str, float | None] | None = None
) -> list[Block]:
    """Which texts resemble which, then how similar all texts are, or why that is not reported.

    elsewhere: by id, the share of a text's words found as near matches in the other texts, or in a
    reference; texts are then ordered by it.
    """
    near = elsewhere or {}
    listed = [text for text in result.shared if text.share or near.get(text.id)]
    listed.sort(key=lambda text: -(near.get(text.id) or 0.0))
    parts: list[Block] = []
    if listed:
        # The texts that share anything, most shared first.
        columns = [
            Column("text", of="id"),
            Column("words", ",", name="n_words"),
            Column("in others", ".0%", name="share"),
            Column("longest", ",", name="longest_run", of="longest"),
            Column("most with"),
            Column("texts", ",", name="n_others"),
        ]
        if near:
            share = Column("found elsewhere", ".0%", name="elsewhere", of=lambda t: near.get(t.id))
            columns.insert(2, share)
        parts.append(Sheet.of("shared", listed, columns, many="texts"))
        if n_without := len(result.shared) - len(listed):
            subject = "1 text shares" if n_without == 1 else f"{n_without:,} texts share"
            parts.append(f"{subject} no run with another")
        if near:
            parts.append(
                "found elsewhere: in the other texts or in a reference, including matches in other "
                "words if requested"
            )
        if result.apart:
            parts.append(f"texts with the same {result.apart} were not compared with each other")
        parts += [_UNKNOWN, ""]
    parts += _pairs(result.pairs, texts, _MOST_WORDS)
    figures = [result.reason] if result.diversity is None else _figures(result.diversity)
    return [*parts, "", *figures, *result.remarks]


def _pairs(
    pairs: Sequence[SimilarPair], texts: Mapping[str, str], most_words: int | None = None
) -> list[Block]:
    if not pairs:
        return ["", f"no two texts share a run of {RUN_WORDS} words"]
    parts: list[Block] = []
    for pair in pairs:
        columns = [
            Column("words", ",", name="n_words"),
            Column(pair.a, name="in_a", of=lambda run: _words(run.a, texts, most_words)),
            Column(pair.b, name="in_b", of=lambda run: _words(run.b, texts, most_words)),
        ]
        parts += [
            "",
            f"{pair.a} and {pair.b}: {pair.n_words:,} words in common runs "
            f"({pair.share_a:.0%} and {pair.share_b:.0%} of the texts), the longest of "
            f"{pair.longest:,}; direction unknown",
            Sheet.of("pairs", pair.runs[:_N_RUNS], columns, about=("pair", f"{pair.a} | {pair.b}")),
        ]
        if len(pair.runs) > _N_RUNS:
            parts.append(f"and {len(pair.runs) - _N_RUNS:,} more runs")
    return parts


def _figures(diversity: Diversity) -> list[Block]:
    measured = [(m, g, g.estimates[m]) for m in diversity.measures for g in diversity.groups]
    columns = [
        Column("measure", once=True),
        Column("group"),
        Column("value", ".3f", with_interval=True),
        Column("texts", ",", name="n_texts"),
    ]
    few = Missing(explain("few_texts"))
    rows: list[list[Cell]] = [
        [_title(measure)[0], group.name, few if e.value is None else e, f"{group.n:,}"]
        for measure, group, e in measured
    ]
    forms = [_title(measure)[1] for measure, _, _ in measured]
    parts: list[Block] = [Sheet("measures", columns, rows, forms=forms)]
    estimates = [estimate for group in diversity.groups for estimate in group.estimates.values()]
    parts += interval_notes(estimates, "texts" if diversity.design == "texts" else "prompts")
    bare = [e for e in estimates if e.value is not None and e.low is None]
    if any(reason_of(estimate) == "no_spread" for estimate in bare):
        parts.append(f"-: {explain('no_spread')}")
    parts.append("higher means more alike; for distinct n-grams and cosine distance, lower does")
    return parts


def _title(measure: str) -> tuple[str, str]:
    name, _, n = measure.partition(".")
    title, form = _TITLES[name]
    return title.format(n), form


def _words(span: Span, texts: Mapping[str, str], most: int | None = None) -> str:
    """The words of a span on one line, truncated if there are too many."""
    words = texts[span.document_id][span.start : span.end].split()
    return " ".join(words[:most]) + (" …" if most is not None and len(words) > most else "")


def phrase_tables(keys: KeyPhrases, n_listed: int) -> list[Block]:
    """The first phrases of A, then of B, and what they are based on."""
    has_background = any(phrase.background is not None for phrase in keys.phrases)
    parts: list[Block] = []
    for group in (keys.a, keys.b):
        phrases = keys.over(group)
        if not phrases:
            parts += [f"no phrase that {group.name} uses more often passes the test", ""]
            continue
        columns = [
            Column(
                f"phrases of {group.name}",
                name="phrase",
                of=lambda row: f"{row.phrase} ({row.example})" if row.example else row.phrase,
            ),
            Column("A", ".2f", name="rate_a"),
            Column("B", ".2f", name="rate_b"),
            Column("texts A", ",", name="texts_a"),
            Column("texts B", ",", name="texts_b"),
            Column("log-odds", "+.2f"),
            Column("z", "+.1f"),
            Column("p (Holm)", ".2g", name="p_holm"),
        ]
        if any(phrase.background is not None for phrase in phrases):
            columns.append(Column("elsewhere", ".1f", name="background"))
        parts.append(Sheet.of("phrases", phrases[:n_listed], columns, about=("group", group.name)))
        if n_more := max(0, len(phrases) - n_listed):
            parts.append(f"and {n_more:,} more; the file set by `out` has them all")
        parts.append("")
    return [
        *parts,
        f"A is {keys.a.name}, {keys.a.n_compared:,} texts; B is {keys.b.name}, "
        f"{keys.b.n_compared:,} texts; {keys.n_words} words of each; rates are per 1,000 words, "
        "from the same number of texts of each group",
        f"p: exact test of which texts contain it, corrected (Holm) over the {keys.n_tested:,} of "
        f"{keys.n_seen:,} phrases that occur in enough texts to pass",
        *(["elsewhere: per million words of the background"] if has_background else []),
        *keys.remarks,
        keys.signature,
    ]


def save_comparison(comparison: Comparison, path: Path) -> None:
    """Two panels: mean L-uniqueness against L with its interval, and every text's index by group.

    The same comparison gives the same bytes. Raises `InputError` for an unknown extension.
    """
    scores = [group for group in comparison.groups if group.number == INDEX]
    height = max(3.4, 1.6 + 0.38 * len(scores))
    with figure_of(path, 1, 2, figsize=(9.6, height), width_ratios=(1.15, 1)) as (figure, panels):
        from matplotlib.ticker import MaxNLocator

        axes, strips = panels
        curves: dict[str, list[list[float | None]]] = {}
        for group in comparison.groups:
            if group.number.startswith(f"{CURVE}_"):
                level = int(group.number.rpartition("_")[2])
                curves.setdefault(group.group, []).append([level, *group.mean.ends().values()])
        for k, (name, curve) in enumerate(curves.items()):
            # Level, mean and the ends of its interval; None is NaN.
            points = np.array(curve, np.float64) * (1, 100, 100, 100)
            levels, means, low, high = points[~np.isnan(points[:, 1])].T
            if not len(levels):
                continue
            colour = COLOURS[k % len(COLOURS)]
            axes.plot(
                levels,
                means,
                color=colour,
                marker=MARKERS[k % len(MARKERS)],
                markersize=4,
                linewidth=1.6,
                label=name,
            )
            if not np.isnan([low, high]).any():
                axes.fill_between(levels, low, high, color=colour, alpha=0.16, linewidth=0)
        axes.set_xlabel("L, words in a row")
        axes.set_ylabel("L-uniqueness, % of words")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y", color=LINE, linewidth=0.8)
        axes.legend(frameon=False, loc="lower right")
        rng = np.random.default_rng(0)
        for k, group in enumerate(scores):
            colour = COLOURS[k % len(COLOURS)]
            values = list(cell_means(group.values).values())
            jitter = rng.uniform(-0.22, 0.22, len(values))
            strips.scatter(values, k + jitter, s=9, color=colour, alpha=0.4, linewidths=0)
            mean = group.mean
            if mean.value is not None:
                strips.plot([mean.value] * 2, [k - 0.32, k + 0.32], color=INK, linewidth=1.8)
            if mean.low is not None and mean.high is not None:
                strips.plot([mean.low, mean.high], [k, k], color=INK, linewidth=3.2, alpha=0.75)
        names = [f"{group.group}\nn = {group.mean.n}" for group in scores]
        strips.set_yticks(range(len(scores)), names, color=INK)
        strips.set_ylim(len(scores) - 0.5, -0.5)
        strips.set_xlabel("Creativity Index; bar: mean, 95 % interval")
        strips.grid(axis="x", color=LINE, linewidth=0.8)
        figure.supxlabel(comparison.signatures[INDEX], fontsize=6, color=SOFT, x=0.01, ha="left")


_PERCENT = Column(
    "% of B",
    "+.1f",
    with_interval=True,
    name="percent",
    of=lambda pair: pair.details.get("percent", Missing("")),
)


def comparison_tables(comparison: Comparison) -> list[Block]:
    """Each number's mean by group, then pairs with their tests."""
    tested = {g.number for g in comparison.contrasts} or {g.number for g in comparison.groups}
    shown = [group for group in comparison.groups if group.number in tested]
    unit = "texts" if comparison.cluster is None else "clusters"
    groups = Sheet.of(
        "groups",
        shown,
        [
            Column("number", once=True),
            Column(comparison.field, name="group"),
            Column(unit, ",", name="n", of="mean.n"),
            Column("missing", ",", of="n_missing"),
            Column("mean", ".4g", with_interval=True),
        ],
    )
    more = [Column("P(A > B)", ".3f", name="superiority", of="details.superiority")]
    if any("percent" in pair.details for pair in comparison.contrasts):
        more.insert(0, _PERCENT)
    number = NUMBER if len({pair.number for pair in comparison.contrasts}) > 1 else None
    pairs = contrast_sheet("pairs", comparison.contrasts, "+.3g", number=number, more=more)
    n_tests = sum(pair.p_adjusted is not None for pair in comparison.contrasts)
    tests = "; ".join(dict.fromkeys(pair.test for pair in comparison.contrasts))
    over = "" if n_tests == 1 else f"; p (Holm): corrected over all {n_tests:,} tests above"
    shown_pairs: Block = pairs if comparison.contrasts else "no two groups have a number in common"
    reasons = [
        f"missing in {group.group} ({group.number}): {n:,} {explain(reason)}"
        for group in shown
        for reason, n in group.missing.items()
        if reason != NOT_SAID
    ]
    at_once = [line for name, t in comparison.omnibus.items() for line in omnibus_lines(t, name)]
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
    signatures = dict.fromkeys(comparison.signatures[group.number] for group in shown)
    tables: list[Block] = [groups, *reasons, *at_once, "", shown_pairs]
    return [*tables, *([f"p: {tests}{over}"] if n_tests else []), *notes, "", *signatures]

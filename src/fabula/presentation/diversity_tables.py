"""Tables of how similar texts are: measures by group, tests, shared phrases, pairs of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabula.errors import explain
from fabula.measures.diversity.key_phrases import KeyPhrases
from fabula.measures.diversity.measure import Diversity, Together, reason_of
from fabula.measures.diversity.text_pairs import SimilarPair
from fabula.presentation.sheet import (
    Block,
    Cell,
    Column,
    Missing,
    Sheet,
    contrast_sheet,
    interval_notes,
)
from fabula.types import Span

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


def diversity_tables(found: Diversity, texts: Mapping[str, str]) -> list[Block]:
    """texts: by id, for the words of the spans that are shown."""
    parts = _figures(found)
    if found.tests:
        # The tests, how their p-values are computed, and why some are missing.
        number = Column("measure", once=True, of=lambda test: _title(test.number)[0])
        # Notes below the table explain what has no interval.
        p = Column("p", ".3g", of=lambda it: Missing(explain(it.reason)) if it.reason else it.p)
        by_t = [one for one in found.tests if one.test == "jackknife t" and one.p is not None]
        permuted = [one for one in found.tests if one.details["n_permutations"]]
        fewest = min((one.details["n_permutations"] for one in permuted), default=0)
        how = f"permutation of the group, {fewest:,} times or more"
        if not permuted:
            how = "t-test by the jackknife" if by_t else "none"
        elif by_t:
            measures = {one.number for one in permuted}
            apart = [one for one in by_t if one.number not in measures]
            alone = dict.fromkeys(_title(one.number)[0] for one in apart)
            pairs = dict.fromkeys(f"{one.a} : {one.b}" for one in by_t if one.number in measures)
            how += f" (of {', '.join([*alone, *pairs])}: t-test by the jackknife)"
        parts += ["", contrast_sheet("tests", found.tests, "+.3f", number=number, p=p)]
        parts.append(f"p: {how}; p (Holm): over the pairs of a measure")
        if any(one.reason == "no_spread" for one in found.tests):
            parts.append("no p: in one of the groups nothing varies (see above)")
    for group in found.groups:
        # What most texts of a group share, and where the first example is.
        for name, phrases in (("phrases", group.phrases), ("templates", group.templates)):
            columns = [
                Column(f"{name} of {group.name}", name="phrase"),
                Column("texts", ",", name="n_texts"),
                Column("times", ",", name="n_times"),
                Column("elsewhere", ",", name="n_texts_elsewhere"),
                Column("such as", name="example", of=lambda one: _words(one.examples[0], texts)),
                Column("in", name="example_id", of=lambda one: one.examples[0].document_id),
            ]
            if name == "phrases":
                # The words are the phrase itself.
                columns.pop(-2)
            if phrases:
                parts += ["", Sheet.of(name, phrases, columns, about=("group", group.name))]
    parts += _pairs(found.pairs, found.run_words, texts)
    return [*parts, "", *found.remarks, found.signature]


def together_tables(
    found: Together, texts: Mapping[str, str], elsewhere: Mapping[str, float | None] | None = None
) -> list[Block]:
    """Which texts resemble which, then how similar all texts are, or why that is not reported.

    elsewhere: by id, the share of a text's words found as near matches in the other texts, or in a
    reference; texts are then ordered by it.
    """
    there = elsewhere or {}
    listed = [one for one in found.shared if one.share or there.get(one.id)]
    listed.sort(key=lambda one: -(there.get(one.id) or 0.0))
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
        if there:
            share = Column("found elsewhere", ".0%", name="elsewhere", of=lambda t: there.get(t.id))
            columns.insert(2, share)
        parts.append(Sheet.of("shared", listed, columns, many="texts"))
        if n_without := len(found.shared) - len(listed):
            said = "1 text shares" if n_without == 1 else f"{n_without:,} texts share"
            parts.append(f"{said} no run with another")
        if there:
            parts.append(
                "found elsewhere: in the other texts or in a reference, including matches in other "
                "words if requested"
            )
        if found.apart:
            parts.append(f"texts with the same {found.apart} were not compared with each other")
        parts += [_UNKNOWN, ""]
    parts += _pairs(found.pairs, found.run_words, texts, _MOST_WORDS)
    figures = [found.reason] if found.diversity is None else _figures(found.diversity)
    return [*parts, "", *figures, *found.remarks]


def _pairs(
    pairs: Sequence[SimilarPair],
    run_words: int | None,
    texts: Mapping[str, str],
    most_words: int | None = None,
) -> list[Block]:
    if run_words and not pairs:
        return ["", f"no two texts share a run of {run_words} words"]
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


def _figures(found: Diversity) -> list[Block]:
    measured = [(m, group, group.estimates[m]) for m in found.measures for group in found.groups]
    columns = [
        Column("measure", once=True),
        Column("group"),
        Column("value", ".3f", with_interval=True),
        Column("texts", ",", name="n_texts"),
    ]
    few = Missing(explain("few_texts"))
    rows: list[list[Cell]] = [
        [_title(measure)[0], group.name, few if one.value is None else one, f"{group.n:,}"]
        for measure, group, one in measured
    ]
    forms = [_title(measure)[1] for measure, _, _ in measured]
    parts: list[Block] = [Sheet("measures", columns, rows, forms=forms)]
    estimates = [one for group in found.groups for one in group.estimates.values()]
    parts += interval_notes(estimates, "texts" if found.design == "texts" else "prompts")
    bare = [one for one in estimates if one.value is not None and one.low is None]
    if any(reason_of(one) == "no_spread" for one in bare):
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


def phrase_tables(found: KeyPhrases, n_listed: int) -> list[Block]:
    """The first phrases of A, then of B, and what they are based on."""
    has_background = any(one.background is not None for one in found.phrases)
    parts: list[Block] = []
    for group in (found.a, found.b):
        phrases = found.over(group)
        if not phrases:
            parts += [f"no phrase that {group.name} uses more often passes the test", ""]
            continue
        columns = [
            Column(
                f"phrases of {group.name}",
                name="phrase",
                of=lambda one: f"{one.phrase} ({one.example})" if one.example else one.phrase,
            ),
            Column("A", ".2f", name="rate_a"),
            Column("B", ".2f", name="rate_b"),
            Column("texts A", ",", name="texts_a"),
            Column("texts B", ",", name="texts_b"),
            Column("log-odds", "+.2f"),
            Column("z", "+.1f"),
            Column("p (Holm)", ".2g", name="p_holm"),
        ]
        if any(one.background is not None for one in phrases):
            columns.append(Column("elsewhere", ".1f", name="background"))
        parts.append(Sheet.of("phrases", phrases[:n_listed], columns, about=("group", group.name)))
        if n_more := max(0, len(phrases) - n_listed):
            parts.append(f"and {n_more:,} more; the file set by `out` has them all")
        parts.append("")
    return [
        *parts,
        f"A is {found.a.name}, {found.a.n_compared:,} texts; B is {found.b.name}, "
        f"{found.b.n_compared:,} texts; {found.n_words} words of each; rates are per 1,000 words, "
        "from the same number of texts of each group",
        f"p: exact test of which texts contain it, corrected (Holm) over the {found.n_tested:,} of "
        f"{found.n_seen:,} phrases that occur in enough texts to pass",
        *(["elsewhere: per million words of the background"] if has_background else []),
        *found.remarks,
        found.signature,
    ]

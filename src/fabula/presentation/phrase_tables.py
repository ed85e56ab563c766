"""Tables of the phrases that distinguish two groups."""

from __future__ import annotations

from fabula.measures.diversity.key_phrases import GroupSize, KeyPhrases
from fabula.presentation.sheet import Block, Cell, Column, Sheet


def phrase_tables(found: KeyPhrases, n_listed: int) -> list[Block]:
    """The first phrases of A, then of B, and what they are based on."""
    parts: list[Block] = []
    for group in (found.a, found.b):
        parts += [*_of_group(found, group, n_listed), ""]
    return [
        *parts,
        f"A is {found.a.name}, {found.a.n_compared:,} texts; B is {found.b.name}, "
        f"{found.b.n_compared:,} texts; {found.n_words} words of each; rates are per 1,000 words, "
        "from the same number of texts of each group",
        f"p: exact test of which texts contain it, corrected (Holm) over the {found.n_tested:,} of "
        f"{found.n_seen:,} phrases that occur in enough texts to pass",
        *_elsewhere(found),
        *found.remarks,
        found.signature,
    ]


def _elsewhere(found: KeyPhrases) -> list[str]:
    is_there = any(one.background is not None for one in found.phrases)
    return ["elsewhere: per million words of the background"] * is_there


def _of_group(found: KeyPhrases, group: GroupSize, n_listed: int) -> list[Block]:
    phrases = found.over(group)
    if not phrases:
        return [f"no phrase that {group.name} uses more often passes the test"]
    columns = [
        Column(f"phrases of {group.name}", name="phrase"),
        Column("A", ".2f", name="rate_a"),
        Column("B", ".2f", name="rate_b"),
        Column("texts A", ",", name="texts_a"),
        Column("texts B", ",", name="texts_b"),
        Column("log-odds", "+.2f", name="log_odds"),
        Column("z", "+.1f"),
        Column("p (Holm)", ".2g", name="p_holm"),
    ]
    has_background = any(one.background is not None for one in phrases)
    if has_background:
        columns.append(Column("elsewhere", ".1f", name="background"))
    rows: list[list[Cell]] = [
        [
            f"{one.phrase} ({one.example})" if one.example else one.phrase,
            one.rate_a,
            one.rate_b,
            one.texts_a,
            one.texts_b,
            one.log_odds,
            one.z,
            one.p_holm,
            *([one.background] if has_background else []),
        ]
        for one in phrases[:n_listed]
    ]
    parts: list[Block] = [Sheet("phrases", columns, rows, about=("group", group.name))]
    if len(phrases) > n_listed:
        parts.append(f"and {len(phrases) - n_listed:,} more; the file set by `out` has them all")
    return parts

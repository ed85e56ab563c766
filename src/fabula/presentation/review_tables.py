"""A review as tables for the terminal and for LaTeX, and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from fabula.errors import InputError
from fabula.measures.scores import to_row
from fabula.presentation.latex import escape_latex
from fabula.presentation.review_groups import interval_shown, p_shown
from fabula.presentation.tables import interval_notes, render
from fabula.review import GroupTest, Review, TextReview, numbers_of_review
from fabula.review.numbers import Number, share_below
from fabula.store import measurement_row

__all__ = ["check_latex_path", "latex_tables", "review_json", "review_tables"]

_MAX_COLUMNS = 6
_LATEX_BEGIN = "% fabula report"
_SURE = (
    "differences with p < 0.05 (Mann-Whitney; Holm over the pairs of a number, not over numbers):"
)


def review_tables(review: Review, tests: Sequence[GroupTest]) -> str:
    """Numbers down, texts across, at most six; then groups, and what was left out."""
    numbers, rows = numbers_of_review(review)
    shown = rows[:_MAX_COLUMNS]
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for text in review.texts[:_MAX_COLUMNS]:
        table.add_column(Text(text.document.id), justify="right", overflow="fold")
    placed = len(review.texts) == 1
    if placed:
        table.add_column("")
    for number in numbers:
        cells = [Text(_cell(row, number)) for row in shown]
        where = [Text(_place(review, number, rows[0].get(number.key)))] if placed else []
        table.add_row(Text(number.title), *cells, *where)
    remarks = [
        f"and {len(rows) - _MAX_COLUMNS:,} more texts; the page and the JSON output have them all"
    ] * (len(rows) > _MAX_COLUMNS)
    remarks += [
        f"{len(advice.points)} points to mend, by {advice.model.partition('@')[0]}"
        for text in review.texts[:1]
        for advice in text.advice
        if placed
    ]
    out = render(table, "", *remarks) if numbers else ""
    if tests:
        out += "\n" + _group_table(tests)
    for entry in review.left_out:
        out += f"not here: {entry.part}, {entry.reason}; to have it: {entry.remedy}\n"
    return out


def _cell(row: dict[str, float | None], number: Number) -> str:
    if number.key not in row:
        return ""
    value = row[number.key]
    return "missing" if value is None else format(value, number.form)


def _place(review: Review, number: Number, value: float | None) -> str:
    """`above 83 % of people`: of the first group of people and the first of models."""
    signature = review.signatures.get(number.part)
    if signature is None or value is None or number.part == "verdicts":
        return ""
    below = share_below(review, signature, number.item, value)
    kinds = {g.group: g.kind for g in review.groups.find(signature).groups}
    said: dict[str, str] = {}
    for group, share in below.items():
        said.setdefault(kinds[group], f"{_share(share)} of {kinds[group]}")
    return f"above {', '.join(said.values())}" if said else ""


def _share(share: float) -> str:
    """A group is a sample: nobody knows that nobody is beyond it."""
    percent = round(100 * share)
    return "nearly none" if percent == 0 else "nearly all" if percent == 100 else f"{percent}%"


def _group_table(tests: Sequence[GroupTest]) -> str:
    table = Table(box=None, pad_edge=False)
    for title in ("", "group", "mean", "95 % interval", "n"):
        table.add_column(title, justify="left" if title in ("", "group") else "right")
    lines: list[str] = []
    for test in tests:
        for k, (name, mean) in enumerate(test.means.items()):
            value = "missing" if mean.value is None else format(mean.value, test.number.form)
            table.add_row(
                Text("" if k else test.number.title), Text(name), value,
                Text(interval_shown(mean, test.number.form)), str(mean.n),
            )  # fmt: skip
        lines += [
            f"{test.number.title}: {pair.a}, {pair.b}: {p_shown(pair.p_holm)}"
            for pair in test.pairs
            if pair.p_holm is not None and pair.p_holm < 0.05
        ]
    sure = [_SURE, *lines] if lines else []
    notes = interval_notes([mean for test in tests for mean in test.means.values()], "texts")
    return render(table, *notes, "", *sure)


def review_json(review: Review, tests: Sequence[GroupTest]) -> dict[str, Any]:
    """Everything, as plain values."""
    return {
        "texts": [_text_json(text, review) for text in review.texts],
        "groups": [_test_json(test) for test in tests],
        "left_out": [asdict(entry) for entry in review.left_out],
        "signatures": dict(review.signatures),
    }


def _text_json(text: TextReview, review: Review) -> dict[str, Any]:
    content: dict[str, Any] = {"id": text.document.id}
    below: dict[str, Any] = {}
    if text.originality is not None:
        content["originality"] = to_row(text.originality)
        below |= _below(review, "originality", text.originality.creativity_index)
    if text.fluency is not None:
        row = text.fluency.to_row()
        del row["tokens"]
        content["fluency"] = row
        below |= _below(review, "fluency", text.fluency.bits_per_word)
    if text.profile is not None:
        content["profile"] = text.profile.to_row()
    content["verdicts"] = [measurement_row(one) for one in text.verdicts]
    content["points"] = [measurement_row(m) for one in text.advice for m in one.measurements()]
    content["share_of_group_below"] = below
    return content


def _below(review: Review, part: str, value: float | None) -> dict[str, Any]:
    item = {"originality": "creativity_index", "fluency": "bits_per_word"}[part]
    if value is None or part not in review.signatures:
        return {}
    return {item: dict(share_below(review, review.signatures[part], item, value))}


def _test_json(test: GroupTest) -> dict[str, Any]:
    return {
        "number": test.number.key,
        "means": {
            name: {"value": m.value, "low": m.low, "high": m.high, "n": m.n,
                   "n_missing": test.n_missing[name]}
            for name, m in test.means.items()
        },
        "pairs": [
            {"a": p.a, "b": p.b, "difference_percent": p.difference.percent.value,
             "superiority": p.difference.superiority, "p": p.difference.p, "p_holm": p.p_holm}
            for p in test.pairs
        ],
    }  # fmt: skip


def check_latex_path(path: Path) -> None:
    """Raise `InputError` where the file holds something that is no table of ours."""
    if path.exists() and path.stat().st_size:
        with path.open("rb") as file:
            if not file.read(64).startswith(_LATEX_BEGIN.encode()):
                raise InputError(
                    f"{path}: holds something that is no table of Fabula's; choose another name"
                )


def latex_tables(review: Review, tests: Sequence[GroupTest]) -> str:
    """The numbers of all texts, and of groups, as tabulars in the style of booktabs."""
    numbers, rows = numbers_of_review(review)
    lines = [
        _LATEX_BEGIN,
        *(f"% {line}" for s in review.signatures.values() for line in s.split("\n")),
    ]
    lines += [rf"\begin{{tabular}}{{l{'r' * len(numbers)}}}", r"\toprule"]
    lines.append(" & ".join(["Text", *(escape_latex(n.title) for n in numbers)]) + r" \\")
    lines.append(r"\midrule")
    for text, row in zip(review.texts, rows, strict=True):
        cells = [escape_latex(_cell(row, number) or "--") for number in numbers]
        # The braces keep a name in brackets from being read as an option of the line before.
        lines.append(" & ".join([f"{{}}{escape_latex(text.document.id)}", *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", ""]
    if tests:
        lines += _latex_groups(tests)
    return "\n".join(lines)


def _latex_groups(tests: Sequence[GroupTest]) -> list[str]:
    names = list(tests[0].means)
    lines = [rf"\begin{{tabular}}{{l{'r' * len(names)}}}", r"\toprule"]
    lines.append(" & ".join(["", *map(escape_latex, names)]) + r" \\")
    lines.append(r"\midrule")
    for test in tests:
        cells = []
        for mean in test.means.values():
            value = "missing" if mean.value is None else format(mean.value, test.number.form)
            interval = interval_shown(mean, test.number.form)
            cells.append(escape_latex(f"{value} {interval}".strip()))
        lines.append(" & ".join([escape_latex(test.number.title), *cells]) + r" \\")
    return [*lines, r"\bottomrule", r"\end{tabular}", ""]

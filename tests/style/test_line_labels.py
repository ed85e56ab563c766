"""Notes on lines that were labelled in unseen fiction: the record, its figures in the manual."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fabula.core.store import read_rows
from fabula.style.lines import LINE_KINDS
from fabula.text import read_documents

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "line_labels.jsonl"
LABELS = ("right", "taste", "wrong")


@pytest.fixture(scope="module")
def labels() -> list[dict[str, Any]]:
    return [*read_rows(ROOT / "bench" / "line_labels.jsonl"), *read_rows(GOLDEN)]


def test_each_note_is_labelled_once_and_a_hundred_are_of_unseen_fiction(
    labels: list[dict[str, Any]],
):
    places = [(row["digest"], row["kind"], row["start"], row["end"]) for row in labels]
    assert len(set(places)) == len(places)
    assert {row["label"] for row in labels} == set(LABELS)
    assert {row["kind"] for row in labels} <= LINE_KINDS.keys()
    third = [row for row in labels if row["round"] == 3]
    assert len(third) >= 100
    assert not {row["id"] for row in labels if row["round"] == 4} & {row["id"] for row in third}


def test_no_kind_claims_more_right_notes_than_were_labelled(labels: list[dict[str, Any]]):
    counts = Counter((row["kind"], row["label"]) for row in labels)
    for kind in LINE_KINDS.values():
        assert kind.n_right <= counts[kind.id, "right"]
        assert kind.n_labelled <= sum(counts[kind.id, label] for label in LABELS)


def test_words_of_labelled_notes_stand_at_their_places(shared_data: Path):
    files = [
        *sorted((shared_data / "reference").glob("*novels.jsonl.gz")),
        shared_data / "reference" / "moby_dick.jsonl.gz",
        shared_data / "cbt" / "children_books.jsonl.gz",
    ]
    texts = {one.id: one.text for one in read_documents(files)}
    for row in read_rows(GOLDEN):
        there = " ".join(texts[row["id"]][row["start"] : row["end"]].split())
        assert there.startswith(row["words"])


def test_the_manual_has_the_figures_that_the_labels_give(labels: list[dict[str, Any]]):
    """Each kind: what is printed beside its notes; right, taste, wrong of the latest round with it,
    and SciPy's exact interval."""
    from scipy.stats import binomtest

    page = (ROOT / "docs" / "writer.md").read_text(encoding="utf-8")
    titles = {"same beginning": "beginning", "dialogue tag": "tag", "stock phrase": "stock"}
    titles |= {"long sentence": "long", "repeated sentence": "sentence"}
    counts = Counter((row["round"], row["kind"], row["label"]) for row in labels)
    precisions = 0
    for line in page.splitlines():
        row = re.match(r"\| ([a-z ]+?)(?: \(off\))? \|(.*)\|$", line)
        kind = row and titles.get(row[1], row[1])
        if row is None or kind not in LINE_KINDS or row[2].count("|") != 1:
            continue
        now, latest = row[2].split("|")
        known = LINE_KINDS[kind]
        assert ("(off)" in line) == (not known.is_on), line
        assert now.strip() == (
            f"{known.n_right} of {known.n_labelled}, {100 * known.precision:.0f} %"
            if known.precision is not None
            else "not known"
        )
        precisions += 1
        rounds = [number for number, of, _ in counts if of == kind]
        if not rounds:
            assert latest.strip() == "none found", line
            continue
        three = [counts[max(rounds), kind, label] for label in LABELS]
        shown = re.match(r" (\d+), (\d+), (\d+)(?:: (\d+) % \[(\d+), (\d+)\])? $", latest)
        assert shown is not None, latest
        assert [int(one) for one in shown.groups()[:3]] == three, line
        if shown[4] is not None:
            test = binomtest(three[0], sum(three))
            interval = test.proportion_ci(method="exact")
            given = [three[0] / sum(three), interval.low, interval.high]
            assert [int(one) for one in shown.groups()[3:]] == [
                round(100 * one) for one in given
            ], line
    assert precisions == len(LINE_KINDS)

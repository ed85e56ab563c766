"""Borrowed spans that people label: how they are drawn, and who is right about them."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.measures.test_borrowed_passages import COMMON, RARE, reference
from tests.serving import prompt_of, serving

from fabula.cli.main import cli
from fabula.errors import InputError, MixError
from fabula.measures.labels import read_labels
from fabula.measures.originality_measure import OriginalityMeasure
from fabula.measures.span_sample import (
    RUBRIC,
    DrawnSpan,
    draw_spans,
    kind_shares,
    read_spans,
    spans_reader,
    voted_kinds,
)
from fabula.reference import Reference
from fabula.rubrics import load_rubric
from fabula.types import Document, Measurement

__all__ = ["reference"]

HALVES = RARE.split()[:5], RARE.split()[5:]


def texts(n: int) -> list[Document]:
    """Each shares a passage with the reference and, every third, a commonplace too."""
    return [
        Document(f"t{k:02d}", f"Unheard{k} {RARE} unseen{k}. " + (k % 3 == 0) * f"{COMMON}done{k}.")
        for k in range(n)
    ]


def span(id_: str, *, is_passage: bool, n_stratum: int, document: str = "d") -> DrawnSpan:
    return DrawnSpan(
        id=id_, document=document, start=0, end=1, words="w", source="s", source_title=None,
        text="t", here="h", there="th", n_words=5, bits=40.0, over_chance=20.0, count=1,
        n_documents=1, is_passage=is_passage, n_stratum=n_stratum, signature="sig",
    )  # fmt: skip


def said(document: str, value: str | None, rater: str = "one") -> Measurement:
    reason = None if value is not None else "no_answer"
    return Measurement(document, "borrowed", "kind", rater, value, reason, (), None, "people")


def test_half_of_a_sample_are_passages_and_each_says_how_many_it_stands_for(
    reference: Reference,
) -> None:
    documents = texts(12)
    drawn = draw_spans(OriginalityMeasure(reference).measure(documents), 6, seed=1)
    assert [one.is_passage for one in drawn].count(True) == 3
    assert {(one.is_passage, one.n_stratum) for one in drawn} == {(True, 12), (False, 4)}
    by_id = {one.id: one for one in documents}
    for one in drawn:
        assert " ".join(by_id[one.document].text[one.start : one.end].split()) == one.words
        assert f"[[{one.words}]]" in one.text
        assert one.words in one.here
        assert one.words in one.there
    again = draw_spans(OriginalityMeasure(reference).measure(documents), 6, seed=1)
    other = draw_spans(OriginalityMeasure(reference).measure(documents), 6, seed=2)
    assert drawn == again != other


def test_where_one_kind_has_too_few_more_are_drawn_of_the_other(reference: Reference) -> None:
    results = list(OriginalityMeasure(reference).measure(texts(12)))
    assert len(draw_spans(results, 14, 0)) == 14
    every = draw_spans(results, 1000, 0)
    assert [one.is_passage for one in every].count(False) == 4
    assert len({one.id for one in every}) == len(every) == 16
    nothing = OriginalityMeasure(reference).measure([Document("new", "nobody ever said this")])
    with pytest.raises(InputError, match="share no run"):
        draw_spans(nothing, 10, 0)


def test_each_label_counts_for_the_spans_that_it_stands_for() -> None:
    # By hand: 10 passages, of which 2 are labelled (each counts for 5), and 90 commonplaces, of
    # which 3 are (each counts for 30). One passage and one commonplace are quotations.
    spans = [
        span("p1", is_passage=True, n_stratum=10),
        span("p2", is_passage=True, n_stratum=10),
        span("p3", is_passage=True, n_stratum=10),
        span("c1", is_passage=False, n_stratum=90),
        span("c2", is_passage=False, n_stratum=90),
        span("c3", is_passage=False, n_stratum=90),
    ]
    kinds = {"p1": "quotation", "p2": "chance", "c1": "quotation", "c2": "idiom", "c3": "chance"}
    shares = {one.kind: one for one in kind_shares(spans, kinds)}
    assert shares["quotation"].share.value == pytest.approx((5 + 30) / 100)
    assert shares["idiom"].share.value == pytest.approx(0.3)
    assert shares["chance"].share.value == pytest.approx((5 + 30) / 100)
    assert (shares["chance"].n_passages, shares["chance"].n_commonplaces) == (1, 1)
    rule = spans_reader("rule", spans, {one.id: one.is_passage for one in spans}, kinds)
    assert (rule.n, rule.n_missing, rule.n_called, rule.n_quotations) == (5, 0, 2, 2)
    assert rule.accuracy.value == pytest.approx((5 + 60) / 100)
    assert rule.precision.value == pytest.approx(5 / 10)
    assert rule.recall.value == pytest.approx(5 / 35)
    assert rule.at_best == pytest.approx(0.65)
    assert rule.accuracy.low is None, "one text is no interval"
    # Without a verdict on c1 the two other commonplaces stand for all 90.
    verdicts: Mapping[str, bool | None] = {"p1": True, "p2": False, "c1": None, "c2": False,
                                           "c3": True}  # fmt: skip
    model = spans_reader("m", spans, verdicts, kinds)
    assert (model.n, model.n_missing) == (4, 1)
    assert model.accuracy.value == pytest.approx((5 + 5 + 45) / 100)
    assert model.precision.value == pytest.approx(5 / (5 + 45))
    assert model.recall.value == 1.0


def test_one_label_has_a_share_and_the_signature_of_its_span() -> None:
    (share, *_) = kind_shares([span("p", is_passage=True, n_stratum=10)], {"p": "quotation"})
    assert (share.share.value, share.share.low, share.share.signature) == (1.0, None, "sig")


def test_an_interval_is_over_texts() -> None:
    spans = [span(f"s{k}", is_passage=True, n_stratum=40, document=f"d{k // 2}") for k in range(40)]
    kinds = {f"s{k}": "quotation" if k // 2 % 2 else "chance" for k in range(40)}
    (share, *_) = kind_shares(spans, kinds)
    assert share.share.value == 0.5
    assert share.share.low is not None
    assert share.share.low < 0.5 < (share.share.high or 0)
    assert share.share.n_units == 20


def test_most_people_decide_and_a_tie_decides_nothing() -> None:
    labels = [
        said("a", "idiom"), said("a", "idiom", "two"), said("a", "chance", "three"),
        said("b", "idiom"), said("b", "chance", "two"),
        said("c", None), said("elsewhere", "idiom"),
    ]  # fmt: skip
    assert voted_kinds(labels, ["a", "b", "c"]) == {"a": "idiom"}


@pytest.fixture
def drawn(reference: Reference, tmp_path: Path) -> Path:
    """The sample and the form that the command writes, of the same texts."""
    rows = [{"id": one.id, "text": one.text} for one in texts(12)]
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    Reference.build(reference.documents(reference.numbers()), tmp_path / "ref").close()
    run("spans", "sample", file, "--reference", tmp_path / "ref", "--spans", 8,
        "--out", tmp_path / "spans.jsonl", "--form", tmp_path / "form.csv")  # fmt: skip
    return tmp_path


def run(*args: object) -> str:
    done = CliRunner().invoke(cli, [str(one) for one in args])
    assert done.exit_code == 0, f"{done.output} {done.stderr} {done.exception}"
    return done.stdout


def fill(folder: Path) -> Path:
    """As a person does: rare words are quotations, all others idioms."""
    with (folder / "form.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["kind"] == "" for row in rows)
    for row in rows:
        row |= {"rater": "ann", "kind": "quotation" if "whales" in row["words"] else "idiom"}
    filled = folder / "filled.csv"
    with filled.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return filled


def test_a_person_fills_the_form_and_the_rule_is_scored(drawn: Path) -> None:
    labels = fill(drawn)
    found: dict[str, Any] = json.loads(
        run("spans", "score", drawn / "spans.jsonl", "--labels", labels, "--json")
    )
    (rule,) = found["readers"]
    assert (rule["by"], rule["n"], rule["accuracy"]["value"]) == ("rule", 8, 1.0)
    # 12 passages and 4 commonplaces there are.
    shares = {one["kind"]: one["share"]["value"] for one in found["kinds"]}
    assert shares == {"quotation": 0.75, "idiom": 0.25, "chance": 0.0}
    shown = run("spans", "score", drawn / "spans.jsonl", "--labels", labels)
    assert "quotations" in shown
    assert "quivering hoary whales" in shown


def test_a_model_is_asked_what_the_exclusion_asks(drawn: Path) -> None:
    labels = fill(drawn)

    def answer(body: dict[str, Any], _: int) -> str:
        source, _, _ = prompt_of(body).rpartition("Paragraph B:")
        return "Yes" if "whales" in source else "I cannot say."

    with serving(answer) as told:
        found = json.loads(
            run("spans", "score", drawn / "spans.jsonl", "--labels", labels, "--json",
                "--model", f"{told.url}#m", "--details", drawn / "details.jsonl")
        )  # fmt: skip
        prompts = told.prompts()
    _, model = found["readers"]
    assert (model["n"], model["n_missing"]) == (4, 4), "an answer that says nothing is missing"
    assert model["precision"]["value"] == model["recall"]["value"] == 1.0
    assert len(prompts) == 8
    assert all("Paragraph A:" in prompt and "Paragraph B:" in prompt for prompt in prompts)
    rows = [json.loads(line) for line in (drawn / "details.jsonl").read_text().splitlines()]
    assert {row["quotation"][f"{told.url}#m"] for row in rows} == {True, None}


def test_what_is_no_sample_and_labels_of_nothing_are_refused(drawn: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 1: not a span: it lacks"):
        read_spans(drawn / "texts.jsonl")
    other = tmp_path / "other.csv"
    other.write_text("id,rater,kind\nnowhere:1-2,ann,idiom\n", encoding="utf-8")
    done = CliRunner().invoke(
        cli, ["spans", "score", str(drawn / "spans.jsonl"), "--labels", str(other)]
    )
    assert "labels none of these spans" in str(done.exception or done.output)


GOLDEN = Path(__file__).parents[1] / "golden" / "borrowed_spans.jsonl"
"""200 spans of the shared texts, by `bench/spans.py`. A language model labelled them span by span,
from the words, the source and, in doubt, the context; no person has checked the labels."""
MANUAL = Path(__file__).parents[2] / "docs" / "originality.md"


def test_spans_of_two_references_are_not_one_sample(drawn: Path, tmp_path: Path) -> None:
    first, *more = (drawn / "spans.jsonl").read_text("utf-8").splitlines()
    assert "|excl:none|" in first
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text("\n".join([first, *more, first.replace("|excl:none|", "|excl:auto|")]))
    with pytest.raises(MixError, match=rf"line {len(more) + 2} and .*\(excl: none \| auto\)"):
        read_spans(mixed)


def test_the_manual_says_what_the_labels_give() -> None:
    rows = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    spans = [
        replace(
            span(row["id"], is_passage=row["is_passage"], n_stratum=row["n_stratum"]),
            document=row["id"].rpartition(":")[0],
        )
        for row in rows
    ]
    kinds = voted_kinds(read_labels(GOLDEN, load_rubric(RUBRIC)), [one.id for one in spans])
    assert len(spans) == len(kinds) == 200
    assert all(len(row["words"].split()) <= 8 for row in rows), "short, so nobody's text"
    manual = MANUAL.read_text(encoding="utf-8")
    for one in kind_shares(spans, kinds):
        value, low, high = (
            100 * (x or 0) for x in (one.share.value, one.share.low, one.share.high)
        )
        shown = f"{value:.1f} % [{low:.1f}, {high:.1f}]"
        assert f"| {one.kind} | {one.n_passages} | {one.n_commonplaces} | {shown} |" in manual
    rule = spans_reader("rule", spans, {one.id: one.is_passage for one in spans}, kinds)
    value, low, high = (100 * (x or 0) for x in (
        rule.precision.value, rule.precision.low, rule.precision.high))  # fmt: skip
    assert f"{value:.1f} % of passages are [{low:.1f}, {high:.1f}]" in manual
    assert rule.recall.value == 1.0
    assert f"of {100 * (rule.accuracy.value or 0):.1f} % says nothing" in manual
    assert f"has {100 * (rule.at_best or 0):.1f} %" in manual

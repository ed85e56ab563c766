"""Borrowed runs: how improbable they are, which belong together, and where near ones end."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.novelty.test_near_paper import STOP, vectors

from fabula.core.types import Document, Span
from fabula.novelty import passages as borrowed_passages
from fabula.novelty.measure import OriginalityMeasure
from fabula.novelty.near import Counterpart, NearSearch, NearSettings
from fabula.novelty.scores import to_row
from fabula.reference.backend import Attribution, Occurrence
from fabula.reference.chance import ChainRun, _aligned, chain_bits, chain_counts, least_bits
from fabula.reference.search import Reference
from fabula.text import TextSettings

COMMON = "it was the end of the day and the man was at the door of the house "
RARE = "quivering hoary whales besieged crimson lanterns beneath unspeakable marble staircases"


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """Plain words many times, and a sentence of rare words in the midst of other ones."""
    filler = " ".join(f"word{k} filler{k} stone{k}" for k in range(200))
    common = [Document(f"common{k}", COMMON * 10) for k in range(12)]
    rare = Document("rare", f"{filler} {RARE} and nobody answered the door of the house again")
    return Reference.build([*common, rare], tmp_path_factory.mktemp("ref"))


def only(measure: OriginalityMeasure, text: str) -> tuple[borrowed_passages.BorrowedPassage, ...]:
    (result,) = measure.measure([Document("t", text)])
    return result.ranked.passages


def test_a_passage_has_the_bits_of_words_that_are_nowhere_else(reference: Reference):
    (found,) = only(OriginalityMeasure(reference), f"She said that {RARE} were seen by sailors.")
    # Without the place where it is found, each of the ten words was never seen: half a time.
    bits = 10 * math.log2(2 * reference.n_words)
    assert found.bits == pytest.approx(bits)
    assert found.over_chance == pytest.approx(bits - least_bits(reference.n_words))
    assert (found.n_words, found.n_verbatim, found.count) == (10, 10, 1)


def test_a_word_that_follows_from_the_two_before_it_has_few_bits(reference: Reference):
    run = ChainRun(0, COMMON.split()[:6], 1)
    counts = chain_counts(reference, [run])
    told = dict(counts) | {("the", "end"): 400, ("of", "the", "end"): 390}
    bits = [chain_bits(run, known, reference.n_words)[4] for known in (counts, told)]
    assert bits[1] > bits[0] == pytest.approx(chain_bits(run, counts, reference.n_words)[4])
    assert sum(chain_bits(run, counts, reference.n_words)) < 20, "it is there 120 times"


def test_words_near_others_count_in_one_order_and_similar_ones_in_part():
    words, bits = ["turned", "his", "horse", "loose", "ate"], [8.0, 3.0, 12.0, 10.0, 9.0]
    same = ChainRun(0, words, 1, ["turned", "the", "horse", "loose", "dined"], [(4, 4, 0.5)])
    assert _aligned(same, same.source or (), bits) == [8.0, 0.0, 10.0, 10.0, 4.5]
    swapped = ChainRun(0, words, 1, ["ate", "horse", "turned"])
    assert sorted(_aligned(swapped, swapped.source or (), bits)) == [0.0, 0.0, 0.0, 0.0, 12.0]


def test_common_wording_is_a_commonplace_and_improbable_wording_a_passage(reference: Reference):
    text = f"Here {COMMON} nowhere. Nobody knew, {RARE} unheard."
    (result,) = OriginalityMeasure(reference).measure([Document("t", text)])
    ranked = result.ranked
    assert [one.n_words for one in ranked.passages] == [10]
    (common,) = ranked.commonplaces
    assert common.count >= borrowed_passages.MANY_PLACES
    row = to_row(result)
    assert row["word_counts"] == "reference"
    assert [text[one["start"] : one["end"]] for one in row["passages"]] == [RARE]
    assert row["passages"][0]["sources"][0]["id"] == "rare"
    assert {"n_words", "bits", "over_chance", "count"} <= row["commonplaces"][0].keys()
    assert len(row["covered"]) == 2, "what is counted stays as it is"
    # Rows of another rule are not used again.
    asked = OriginalityMeasure(reference).asked(Document("t", ""))
    assert asked["ranked"].startswith("reference,chain1,")


def test_a_quotation_with_a_word_changed_is_one_passage(reference: Reference):
    words = RARE.split()
    changed = " ".join([*words[:5], "purple", *words[6:]])
    measure = OriginalityMeasure(reference)
    measure.levels = replace(measure.levels, low=4)
    (found,) = only(measure, f"Some {changed} unseen.")
    assert [run.n_words for run in found.runs] == [5, 4]
    assert (found.n_words, found.n_verbatim) == (9, 9)
    far = " unseen" * 11
    text = f"Some {' '.join(words[:5])}{far} {' '.join(words[6:])} unseen."
    (result,) = measure.measure([Document("t", text)])
    assert [len(one.runs) for one in result.ranked.commonplaces] == [1, 1]


def test_a_small_reference_tells_no_bits_and_calls_nothing_common(tmp_path: Path):
    small = Reference.build([Document("s", "one two three four five six")], tmp_path)
    (result,) = OriginalityMeasure(small).measure([Document("t", "one two three four five " * 3)])
    row = to_row(result)
    assert (row["word_counts"], row["commonplaces"]) == (None, [])
    assert {one["bits"] for one in row["passages"]} == {None}


def copied_by(folder: Path, held: str) -> OriginalityMeasure:
    reference = Reference.build([Document("s", held), Document("t", "x1 " * 9)], folder)
    # No word of so small a reference tells many bits.
    settings = NearSettings(threshold=0.75, floor=5, bits=2, meaning=0)
    return OriginalityMeasure(reference, near=NearSearch(reference, vectors(), STOP, settings))


def test_a_copy_has_its_own_length_and_is_word_for_word(tmp_path: Path):
    """Of 21 words that are copied, and after them two that have a like."""
    own = " ".join(f"c{k}" for k in range(21))
    text = f"y8 y9 {own} y0 w1 w3 y5"
    measure = copied_by(tmp_path, f"z8 z9 {own} z0 w0 w2")
    (result,) = measure.measure([Document("t", text)])
    row = to_row(result)
    # What counts in the index is the near match as it is defined: the copy pays for its end.
    (counted,) = row["covered"]
    assert (counted["kind"], counted["n_words"]) == ("near", 24)
    (shown,) = row["passages"]
    assert text[shown["start"] : shown["end"]] == own
    assert (shown["n_words"], shown["n_verbatim"], row["longest_run"]) == (21, 21, 21)
    assert "similarity" not in shown["runs"][0]


def test_a_copy_that_is_gone_on_with_in_other_words_keeps_them(tmp_path: Path):
    own = " ".join(f"c{k}" for k in range(12))
    measure = copied_by(tmp_path, f"{own} w0 w2 w4 w6 w8 w10 z1")
    (shown,) = only(measure, f"y1 {own} w1 w3 w5 w7 w9 w11 y2")
    assert (shown.n_words, shown.n_verbatim) == (18, 12)


N_WORDS = 60


@st.composite
def some_runs(draw: st.DrawFn) -> list[borrowed_passages.BorrowedRun]:
    """Maximal verbatim runs, and near ones anywhere, from three documents."""
    starts = sorted(draw(st.sets(st.integers(0, N_WORDS - 12), max_size=8)))
    places, end = [], 0
    for start in starts:
        end = max(end + 1, start + draw(st.integers(5, 9)))
        places.append((start, end - start, None))
    near = st.tuples(st.integers(0, 30), st.integers(5, 25), st.sampled_from([0.75, 0.9]))
    for first, n, similarity in draw(st.lists(near, max_size=4, unique_by=lambda one: one[0])):
        if not any(a <= first and first + n <= a + m for a, m, _ in places):
            places.append((first, n, similarity))
    runs = []
    for first, n, similarity in places:
        number, place = draw(st.integers(0, 2)), draw(st.integers(0, 300))
        name = f"d{number}"
        source = Occurrence(number, Document(name, ""), Span(name, place, place + n))
        count = 1 if similarity else draw(st.sampled_from([1, 2, 50, 1000]))
        verbatim = Attribution(count, 1, is_bounded=False, sources=(source,))
        like = Counterpart(similarity or 0, source, TextSettings().locate(""), ())
        both = (None, like) if similarity else (verbatim, None)
        runs.append(borrowed_passages.BorrowedRun(Span("t", first, first + n), first, n, *both))
    return runs


@given(some_runs(), st.randoms(use_true_random=False), st.booleans())
def test_ranks_depend_on_no_order(runs: list[Any], rng: random.Random, knows_bits: bool):
    def known(passage: Sequence[borrowed_passages.BorrowedRun]) -> float:
        return sum(8.0 + k % 5 for k in borrowed_passages.words_of(passage)) - passage[0].count

    bits = known if knows_bits else None
    ranked = borrowed_passages.rank_runs(runs, bits, 20.0)
    shuffled = rng.sample(runs, len(runs))
    assert borrowed_passages.rank_runs(shuffled, bits, 20.0) == ranked
    listed = [*ranked.passages, *ranked.commonplaces]
    all_runs = [(run.first_word, run.end_word, run.similarity) for p in listed for run in p.runs]
    assert len(set(all_runs)) == len(all_runs)
    for one, other in permutations(listed, 2):
        first, end = one.runs[0].first_word, max(run.end_word for run in one.runs)
        assert not any(c.first_word <= first and end <= c.end_word for c in other.runs)
    scores = [one.over_chance if knows_bits else one.n_words for one in ranked.passages]
    assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]
    assert ranked.longest_run == max((run.n_words for run in runs), default=0)
    for one in listed:
        places = {k for run in one.runs for k in range(run.first_word, run.end_word)}
        assert one.n_words == len(places)
        assert one.n_verbatim <= one.n_words
        assert one.is_commonplace == (one in ranked.commonplaces)

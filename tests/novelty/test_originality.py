"""The Creativity Index by its definition, with its defined answers for the texts that have none."""

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import oracles
from tests.serving import serving

from fabula.core.errors import InputError, LookupFailed
from fabula.core.types import Document
from fabula.models.model_spec import ModelOptions, open_model
from fabula.novelty import measure as module
from fabula.novelty.measure import ExcludeIds, Levels, OriginalityMeasure, find_spread, uniqueness
from fabula.novelty.quoting import QuoteJudge
from fabula.reference.exclude import CopyRule, maximal_spans
from fabula.reference.search import Reference

WORDS = ["the", "sea", "was", "calm"]
texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=15), min_size=1, max_size=5)
queries = st.lists(st.sampled_from([*WORDS, "unseen"]), max_size=30)


def built(folder: Path, held: dict[str, list[str]]) -> Reference:
    return Reference.build([Document(i, " ".join(w)) for i, w in held.items()], folder / "r")


def lengths_of(words: list[str], held: list[list[str]]) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(oracles.longest_matches(words, held), np.int32)


@given(queries, texts, st.integers(1, 6))
def test_uniqueness_follows_its_definition(words: list[str], held: list[list[str]], level: int):
    expected = oracles.uniqueness(words, held, level)
    found = uniqueness(lengths_of(words, held), level)
    assert found == (None if expected is None else pytest.approx(expected))


@given(queries, texts, st.integers(1, 6))
def test_maximal_spans_are_in_no_other(words: list[str], held: list[list[str]], min_words: int):
    lengths = lengths_of(words, held)
    every = [(i, int(n)) for i, n in enumerate(lengths) if n >= min_words]
    maximal = [(i, n) for i, n in every if not any(j < i and i + n <= j + m for j, m in every)]
    assert maximal_spans(lengths, min_words) == maximal


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    rng = np.random.default_rng(0)
    vocabulary = np.array([f"w{k}" for k in range(300)])
    documents = [Document(f"d{k}", " ".join(rng.choice(vocabulary, 300))) for k in range(8)]
    documents.append(Document("phrase", "once upon a time there was a king who ate no cake"))
    return Reference.build(documents, tmp_path_factory.mktemp("ref") / "r")


def one(reference: Reference, text: str, **options: Any) -> Any:
    (result,) = OriginalityMeasure(reference, **options).measure([Document("x", text)])
    return result


@pytest.mark.parametrize(
    ("text", "reason", "by_level"),
    [
        ("", "no_words", {5: None, 6: None}),
        ("… — !", "no_words", {5: None, 6: None}),
        ("once upon a", "too_short", {5: None, 6: None}),
        ("once upon a time there", "too_short", {5: 0.0, 6: None}),
        ("ein Text in anderer Sprache hier", "no_known_words", {5: None, 6: None}),
        # Unknown words among known ones are new.
        ("w1 zebra quagga okapi tapir gnu kudu", None, {5: 1.0, 6: 1.0}),
    ],
)
def test_where_no_number_makes_sense_it_is_missing_with_its_reason(
    reference: Reference, text: str, reason: str | None, by_level: dict[int, float | None]
):
    result = one(reference, text, levels=Levels(5, 6))
    assert result.creativity_index == (2.0 if reason is None else None)
    assert (result.missing_reason, result.uniqueness) == (reason, by_level)
    for measurement in result.measurements():
        assert (measurement.value is None) == (measurement.missing_reason is not None)


def test_a_failed_look_up_raises(reference: Reference, monkeypatch: pytest.MonkeyPatch):
    def fail(*arguments: object, **options: object) -> None:
        raise LookupFailed("the disk went away")

    monkeypatch.setattr(Reference, "longest_matches_many", fail)
    with pytest.raises(LookupFailed):
        one(reference, "once upon a time")


def test_copies_and_quotations_of_a_text_are_left_out(tmp_path: Path):
    text, v, w, x = ([f"{letter}{k}" for k in range(200)] for letter in "uvwx")
    edited = [word for k, word in enumerate(text) if k % 12]  # runs of 11 words, all of it
    held = {
        "itself": text, "copy": [*v[:50], *text, *v[50:]], "edited": edited,
        "quotes 30": [*w[:50], *text[60:90], *w[50:99]], "quotes 12": [*x, *text[20:32], *w[100:]],
        "other": [f"y{k}" for k in range(300)],
    }  # fmt: skip
    reference = built(tmp_path, held)
    result = one(reference, " ".join(text), exclude=CopyRule())
    assert [copy.id for copy in result.excluded] == ["itself", "copy", "edited", "quotes 30"]
    assert result.excluded[0].longest_run == 200
    assert result.excluded[3].longest_run == 30
    # 17 words are gone, and the last run has 7 words, too few to count.
    assert result.excluded[2].coverage == pytest.approx(176 / 200)
    # The short quotation stays: its 12 words are not unique at any level.
    assert result.uniqueness == dict.fromkeys(range(5, 13), pytest.approx(188 / 200))
    assert "excl:auto(run25,cover0.5x8,all)" in str(result.signature)
    assert one(reference, " ".join(text)).creativity_index == 0


def test_an_excluded_documents_ngrams_count_where_they_occur_elsewhere(tmp_path: Path):
    words = [f"w{k}" for k in range(60)]
    reference = built(tmp_path, {"a": words, "b": words[:20]})
    listed = ExcludeIds.of(reference, ["a"])
    result = one(reference, " ".join(words), exclude=listed)
    assert result.uniqueness[5] == pytest.approx(40 / 60)
    assert [b.n_words for b in result.borrowed] == [20]
    with pytest.raises(InputError, match="'zz'"):
        ExcludeIds.of(reference, ["zz"])


def test_every_choice_is_in_the_signature(reference: Reference, tmp_path: Path):
    other = Reference.build([Document("a", "One two")], tmp_path / "r")
    ways: list[dict[str, Any]] = [
        {},
        {"levels": Levels(5, 7)},
        {"exclude": CopyRule()},
        {"exclude": ExcludeIds.of(reference, ["d1"])},
    ]
    measures = [*(OriginalityMeasure(reference, **way) for way in ways), OriginalityMeasure(other)]
    assert len({str(measure.signature) for measure in measures}) == 5


KNOWN = st.sampled_from(["w1", "w2", "once", "upon", "a", "time"])


@settings(max_examples=8)
@given(st.lists(st.lists(KNOWN, max_size=30), max_size=6))
def test_texts_are_measured_alike_alone_and_together(reference: Reference, many: list[list[str]]):
    documents = [Document(str(k), " ".join(words)) for k, words in enumerate(many)]
    together = OriginalityMeasure(reference, n_threads=3).measure(documents)
    alone = [next(OriginalityMeasure(reference).measure([d])) for d in documents]
    told = [(r.uniqueness, r.borrowed) for r in alone]
    assert [(r.uniqueness, r.borrowed) for r in together] == told


@pytest.mark.parametrize("text", ["12-5", "0-4", "five", "5-", "-5", "5-6-7"])
def test_levels_that_are_none_are_refused(text: str):
    with pytest.raises(InputError, match="`levels`"):
        Levels.parse(text)


@pytest.mark.parametrize(("said", "is_left_out"), [("Yes", True), ("No", False), ("Hm.", None)])
def test_a_model_decides_where_the_rule_is_in_doubt(tmp_path: Path, said: str, is_left_out: Any):
    text, v, w, x = ([f"{letter}{k}" for k in range(200)] for letter in "uvwx")
    held = {"itself": text, "quotes 12": [*v, *text[20:32], *w], "other": ["u0", *x]}
    reference = built(tmp_path, held)
    with (
        serving(lambda *_: said) as served,
        QuoteJudge(open_model(f"{served.url}#m", ModelOptions(max_retries=0))) as judge,
    ):
        measure = OriginalityMeasure(reference, exclude=CopyRule(), judge=judge)
        (result,) = measure.measure([Document("t", " ".join(text))])
        (prompt,) = served.prompts()
    if is_left_out is None:  # In doubt it is neither in nor out: nothing can be said of the text.
        assert (result.creativity_index, result.missing_reason) == (None, "lookup_failed")
        return
    assert "u20 u21" in prompt
    assert [copy.id for copy in result.excluded] == ["itself", *["quotes 12"] * is_left_out]
    expected = 1.0 if is_left_out else 188 / 200
    assert result.uniqueness[5] == pytest.approx(expected)
    assert "model(" in str(result.signature)


LEVEL = 2


def covered(words: list[str], other: list[str]) -> set[int]:
    """Words in an n-gram of LEVEL words or more that the other text holds."""
    held = {tuple(other[k : k + LEVEL]) for k in range(len(other) - LEVEL + 1)}
    starts = range(len(words) - LEVEL + 1)
    near = [i for i in starts if tuple(words[i : i + LEVEL]) in held]
    return {w for i in near for w in range(i, i + LEVEL)}


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=9), min_size=1, max_size=7),
    st.lists(st.sampled_from("abcde"), min_size=LEVEL, max_size=16),
    st.integers(0, 6),
    st.dictionaries(st.integers(0, 6), st.lists(st.tuples(st.integers(0, 8), st.integers(9, 16)),
                                                min_size=1, max_size=2), max_size=2),
)  # fmt: skip
def test_the_spread_is_that_of_a_slow_greedy_choice_and_near_the_best(
    tmp_path_factory: pytest.TempPathFactory,
    documents: list[list[str]],
    words: list[str],
    n: int,
    near: dict[int, list[tuple[int, int]]],
):
    texts = [Document(f"d{k}", " ".join(d)) for k, d in enumerate(documents)]
    reference = Reference.build(texts, tmp_path_factory.mktemp("ref"), shard_tokens=12)
    near = {
        k: kept
        for k, spans in near.items()
        if k < len(documents)
        and (kept := [(a, min(b, len(words))) for a, b in spans if a < len(words)])
    }
    exact = reference.longest_matches(words)
    found = find_spread(reference, words, exact, LEVEL, n, near=near)
    sets = [covered(words, d) for d in documents]
    for k, spans in near.items():
        sets[k] |= {w for a, b in spans for w in range(a, b)}
    done: set[int] = set()
    left, chosen = [1.0], []
    while any(s - done for s in sets):
        gain, k = max((len(s - done), -k) for k, s in enumerate(sets))
        done |= sets[-k]
        chosen.append((f"d{-k}", gain))
        left.append(1 - len(done) / len(words))
    assert [(d.id, d.n_new_words) for d in found.documents] == chosen[:n]
    assert found.uniqueness == pytest.approx(left[: n + 1])
    if not near:
        assert left[-1] == pytest.approx(uniqueness(exact, LEVEL))
    assert found.n_to_half == next((k for k, share in enumerate(left) if share < 0.5), None)
    assert (found.n_documents, found.n_bounded) == (sum(map(bool, sets)), 0)
    if found.documents:
        n_chosen = min(len(sets), len(found.documents))
        best = max(len(set().union(*some)) for some in combinations(sets, n_chosen))
        reached = sum(d.n_new_words for d in found.documents)
        assert reached >= (1 - 1 / math.e) * best, "the guarantee of a greedy choice"


def test_a_span_in_too_many_places_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    texts = [Document(f"d{k}", "a b c a b c") for k in range(20)]
    reference = Reference.build(texts, tmp_path)
    monkeypatch.setattr(module, "MAX_PLACES", 6)
    words = ["a", "b", "c", "q"]
    found = find_spread(reference, words, reference.longest_matches(words), 3, 5)
    assert found.n_bounded == 1
    assert 1 <= found.n_documents <= 6
    assert found.uniqueness == (1.0, 0.25)
    assert found.n_to_half == 1

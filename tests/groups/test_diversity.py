"""How alike texts are: numbers of published tools, the rule of equal length and number, tests."""

import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles

from fabula.core.errors import InputError, ModelError
from fabula.core.types import Document
from fabula.groups import diversity, shared_ngrams
from fabula.groups.diversity import Diversity, Plan, measure_diversity
from fabula.groups.grouped_texts import Resampling, measure_groups, plan_pool
from fabula.groups.shared_ngrams import PairTable, SharedText, common_runs
from fabula.kernels.ngram_counts import count_in_subsets
from fabula.text import TextWords

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "diversity.json").read_text("utf-8"))
"""Values of the package `diversity` and of NLTK, whose versions the file names."""


def values_of(texts: Sequence[Sequence[str]], prompts: Any = ()) -> dict[str, float]:
    """The measures that count n-grams, of all texts; each prompt is that of the text beside it."""
    table = shared_ngrams.WordTable(texts, prompts, [*range(len(prompts))])
    measures = shared_ngrams.NgramMeasures.of(table)
    values = measures.values(np.ones((1, len(texts)), np.uint8))[0]
    return dict(zip(measures.names, map(float, values), strict=True))


def test_the_values_are_those_of_the_published_tools():
    texts = GOLDEN["texts"]
    found = values_of([text.split() for text in texts])
    assert found["self_repetition"] == pytest.approx(GOLDEN["self_repetition"]["4"], rel=1e-12)
    assert found["self_bleu"] == pytest.approx(GOLDEN["self_bleu"], rel=1e-12)
    ratio = diversity.compression_ratio([text.encode() for text in texts])
    assert round(ratio, 2) == round(GOLDEN["compression_ratio"], 2), "another zlib may differ a bit"
    # The package joins all texts and counts n-grams across their ends too; so does this, given one.
    scores = [GOLDEN["ngram_diversity_joined"], *GOLDEN["ngram_diversity_of_one_text"]]
    for text, score in zip([" ".join(texts), *texts], scores, strict=True):
        found = values_of([text.split()])
        assert round(math.fsum(found[f"distinct.{n}"] for n in range(1, 5)), 3) == score


WORDS = st.lists(st.lists(st.sampled_from("abc"), max_size=14), min_size=1, max_size=6)


@given(WORDS, st.data())
def test_ngrams_are_counted_as_one_by_one(texts: list[list[str]], data: st.DataObject):
    words = st.lists(st.sampled_from("abc"), max_size=8)
    prompts = data.draw(st.lists(words, min_size=len(texts), max_size=len(texts)))
    found = values_of(texts, prompts)
    for n in range(1, 9):
        grams = oracles.counted_ngrams(texts, prompts, n, echo_from=shared_ngrams.SHARED[0])
        total = sum(one.total() for one in grams)
        shared = sum(
            times
            for k, one in enumerate(grams)
            for gram, times in one.items()
            if any(gram in other for j, other in enumerate(grams) if j != k)
        )
        counts = {f"shared_ngrams.{n}": shared} if n in shared_ngrams.SHARED else {}
        counts |= {f"distinct.{n}": len(set().union(*grams))} if n < 5 else {}
        for name, count in counts.items():
            expected = count / total if total else math.nan
            assert found[name] == pytest.approx(expected, nan_ok=True)


@given(WORDS, st.data())
def test_a_subset_has_the_values_that_it_has_alone(texts: list[list[str]], data: st.DataObject):
    chosen = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    measures = shared_ngrams.NgramMeasures.of(shared_ngrams.WordTable(texts))
    within = measures.values(np.array([chosen], np.uint8))[0]
    kept = np.flatnonzero(chosen)
    narrowed = measures.narrowed(kept).values(np.ones((1, len(kept)), np.uint8))[0]
    np.testing.assert_allclose(within, narrowed)
    if len(kept):
        alone = values_of([texts[k] for k in kept])
        for name, value in zip(measures.names, within, strict=True):
            # BLEU of a text without words is not defined, and such texts are never measured.
            if name != "self_bleu" or all(texts):
                assert value == pytest.approx(alone[name], nan_ok=True), name


@given(st.lists(st.text("ab\u00e9\n\ud800", max_size=3), max_size=40))
def test_words_are_numbered_by_first_appearance(words: list[str]):
    table = shared_ngrams.WordTable([words])
    again = [word for word in words if words.count(word) > 1]
    places = {word: k for k, word in enumerate(dict.fromkeys(again))}
    assert table.words.tolist() == [places.get(word, -1) for word in words]


@given(
    st.lists(st.dictionaries(st.integers(0, 4), st.integers(1, 3), min_size=2), max_size=6),
    st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_the_kernel_counts_as_its_oracle(holders: list[dict[int, int]], chosen: list[bool]):
    ends = np.cumsum([len(one) for one in holders]).astype(np.int64)
    entries = [(text, n) for one in holders for text, n in sorted(one.items())]
    texts, counts = (np.array([e[k] for e in entries], np.int32) for k in (0, 1))
    found = count_in_subsets(ends, texts, counts, np.array([chosen], np.uint8))
    expected = oracles.counts_in_subset(holders, chosen)
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine[0], other)


def test_vectors_are_compared_pair_by_pair():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(7, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    apart = [1 - vectors[i] @ vectors[j] for i in range(7) for j in range(i)]
    value = diversity.Embeddings(vectors).values(np.ones((1, 7), np.uint8))[0, 0]
    assert value == pytest.approx(np.mean(apart))


def test_templates_are_the_commonest_sequences_within_sentences():
    tags = [*map(str.split, ("DT NN VB IN DT NN", "DT NN VB IN DT JJ", "NN NN NN NN NN NN"))]
    texts = [TextWords(one, np.arange(6), np.arange(6)) for one in tags]
    # One sequence of five stands in two texts; what one text repeats is no template.
    for ends, share in (([6], 2 / 18), ([3, 6], 0)):
        ngrams, _ = shared_ngrams.templates_of([shared_ngrams.Tagged(one, ends) for one in texts])
        templates = shared_ngrams.Templates(ngrams, np.array([6, 6, 6]))
        assert templates.values(np.ones((1, 3), np.uint8))[0, 0] == pytest.approx(share)


def shared_of(texts: list[list[str]], owners: Any = None) -> list[SharedText]:
    """Of texts whose ids are their places."""
    places = [TextWords(one, np.arange(len(one)), np.arange(len(one))) for one in texts]
    ids = [*map(str, range(len(texts)))]
    table = PairTable(shared_ngrams.Located(ids, places), shared_ngrams.WordTable(texts), 3, owners)
    found = {one.id: one for one in table.shared_texts()}
    return [found[id_] for id_ in ids]


TEXTS = st.lists(st.lists(st.sampled_from("abc"), max_size=14), min_size=2, max_size=6)


@given(TEXTS)
def test_texts_of_one_owner_are_not_compared(texts: list[list[str]]):
    owners = [k % 2 for k in range(len(texts))]
    for k, one in enumerate(shared_of(texts, owners)):
        # The same as that text alone among those of other owners.
        several = [texts[k], *texts[1 - owners[k] :: 2]]
        alone = shared_of(several, [0] + [1] * (len(several) - 1))[0]
        assert (one.share, one.n_others) == (alone.share, alone.n_others)
        assert one.most_with is None or owners[int(one.most_with)] != owners[k]


@given(TEXTS)
def test_what_a_text_shares_is_what_stands_in_any_other(texts: list[list[str]]):
    n = 3
    found = shared_of(texts)
    grams = [{tuple(text[i : i + n]) for i in range(len(text) - n + 1)} for text in texts]
    for k, text in enumerate(texts):
        others = [grams[j] for j in range(len(texts)) if j != k]
        runs = [range(i, i + n) for i in range(len(text) - n + 1)]
        held = [
            one for one in runs if any(tuple(text[k] for k in one) in other for other in others)
        ]
        covered = set().union(*held)
        one = found[k]
        assert one.share == pytest.approx(len(covered) / len(text) if text else 0)
        in_common = [len(grams[k] & other) for other in others]
        assert one.n_others == sum(map(bool, in_common))
        if one.most_with is not None:
            assert len(grams[k] & grams[int(one.most_with)]) == max(in_common)
            other = texts[int(one.most_with)]
            # Runs are taken from the left, so that one which overlaps another may be cut.
            assert n <= one.longest <= oracles.longest_common_run(text, other)


@given(st.lists(st.integers(-1, 3), max_size=12), st.lists(st.integers(-1, 3), max_size=12))
def test_common_runs_are_in_both_and_the_first_is_the_longest_there(a: list[int], b: list[int]):
    found = common_runs(np.array(a, np.int32), np.array(b, np.int32), 1)
    assert found == oracles.common_runs(a, b)


VOCABULARY = [f"w{k}" for k in range(60)]


def texts_of(
    rng: random.Random, n: int, group: str, *, stock: str = "", n_words: int = 40
) -> list[Document]:
    """Random texts, half of which hold the stock phrase."""
    found = []
    for k in range(n):
        words = rng.choices(VOCABULARY, k=n_words)
        if stock and k % 2:
            words[5 : 5 + len(stock.split())] = stock.split()
        found.append(Document(f"{group}{k}", " ".join(words), meta={"model": group, "prompt": "p"}))
    return found


def ngrams_of(documents: list[Document]) -> shared_ngrams.NgramMeasures:
    table = shared_ngrams.WordTable([one.text.split() for one in documents])
    return shared_ngrams.NgramMeasures.of(table)


def two_groups() -> list[Document]:
    rng = random.Random(10)
    return [*texts_of(rng, 3, "a"), *texts_of(rng, 3, "b")]


def measured(documents: Sequence[Document], **plan: object) -> Diversity:
    given = {"by": "model", "how": Resampling(n_permutations=199), **plan}
    return measure_diversity(documents, Plan(**given))


def test_every_group_is_cut_to_one_length_and_one_number_of_texts():
    rng = random.Random(1)
    documents = [*texts_of(rng, 30, "a", n_words=60), *texts_of(rng, 12, "b", n_words=45)]
    documents += texts_of(rng, 1, "b-short", n_words=20)
    documents.append(Document("short", " ".join(VOCABULARY[:12]), meta={"model": "b"}))
    found = measured(documents, n_words=45)
    _, b, lonely = found.groups
    assert [(one.name, one.n) for one in found.groups] == [("a", 12), ("b", 12), ("b-short", 0)]
    assert b.n_too_short == 1
    assert all(one.value is None for one in lonely.estimates.values())
    shown = lonely.to_json()["compression"]
    assert shown == {**dict.fromkeys(["value", "low", "high"]), "missing_reason": "few_texts"}
    assert "words:45|texts:12|draws:texts,5" in found.signature


def test_a_group_with_a_stock_phrase_is_more_alike_and_the_phrase_is_shown():
    rng = random.Random(3)
    stock = "once upon a time there was"
    documents = [*texts_of(rng, 24, "plain"), *texts_of(rng, 24, "stock", stock=stock)]
    found = measured(documents)
    plain, stocked = (one.estimates["shared_ngrams.5"] for one in found.groups)
    assert stocked.low > 0
    # Nothing is shared by 12 pairs of texts: Clopper and Pearson's upper end for 0 of 12 (R).
    assert plain.ends() == {"value": 0.0, "low": 0.0, "high": pytest.approx(0.2646, abs=0.0001)}
    test = next(one for one in found.tests if one.number == "shared_ngrams.5")
    assert test.p < 0.02
    phrase = found.groups[1].phrases[0]
    assert (phrase.phrase, phrase.n_texts, phrase.n_texts_elsewhere) == (stock, 12, 0)
    texts = {one.id: one.text for one in documents}
    for span in phrase.examples:
        assert texts[span.document_id][span.start : span.end] == stock


def test_two_texts_of_a_group_have_a_value_without_interval_and_one_has_none():
    rng = random.Random(16)
    found = measured([*texts_of(rng, 5, "a"), *texts_of(rng, 2, "b"), *texts_of(rng, 1, "c")])
    a, b, c = (one.estimates["distinct.2"] for one in found.groups)
    assert None not in (a.value, b.value)
    assert (a.low, b.low, c.value) == (None, None, None)
    assert found.groups[0].to_json()["distinct"]["2"]["missing_reason"] == "few_units"


def test_groups_on_the_same_prompts_give_as_many_texts_of_each():
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    pool = plan_pool(labels, ["p", "p", "q", "r", "p", "q", "q", "q", "p"])
    assert pool.design == "prompts"
    # Prompt r is only in the first group: its text takes no part.
    assert pool.labels.tolist() == [0, 0, 0, -1, 1, 1, 1, 1, 1]
    draws = pool.draws(pool.labels, 1, 20, np.random.default_rng(0))
    assert {(int(row[[4, 8]].sum()), int(row[5:8].sum())) for row in draws} == {(2, 1)}
    assert draws[:, :4].sum() == 0
    # Groups change places within prompts only.
    pool = plan_pool(np.array([0, 1] * 3), ["a", "a", "b", "b", "c", "c"])
    rng = np.random.default_rng(0)
    seen = {tuple(pool.permuted(rng).tolist()) for _ in range(200)}
    assert len(seen) == 8
    assert all({row[0], row[1]} == {0, 1} for row in seen)


def test_prompts_of_their_own_give_one_text_each():
    labels = np.array([0, 0, 0, 1, 1, 1])
    pool = plan_pool(labels, ["a", "a", "b", "c", "d", "d"])
    assert (pool.design, pool.n_drawn) == ("own-prompts", 2)
    draws = pool.draws(pool.labels, 0, 30, np.random.default_rng(0))
    assert draws[:, 2].all()
    assert (draws[:, :2].sum(axis=1) == 1).all()
    mixed = pool.permuted(np.random.default_rng(1))
    assert (mixed[0], mixed[4]) == (mixed[1], mixed[5])


def test_halves_of_one_group_rarely_differ():
    """At 5 % no more than 5 % do: in 60 trials 8 would come about once in a hundred such tests."""
    rng = random.Random(5)
    n_below: Counter[str] = Counter()
    for trial in range(60):
        measures = ngrams_of(texts_of(rng, 24, "a", stock="a b c d e"))
        pool = plan_pool(np.array(rng.sample([0, 1] * 12, 24)), None)
        how = Resampling(n_permutations=99, seed=trial)
        _, tests = measure_groups(measures, pool, ["x", "y"], None, how, "")
        n_below.update(one.number for one in tests if (one.p or 1) <= 0.05)
    assert max(n_below.values()) <= 7


def test_intervals_hold_what_more_texts_would_say():
    """95 % intervals by the jackknife hold the mean of many samples in at least 85 % of them."""
    rng = random.Random(6)
    found = []
    for trial in range(60):
        measures = ngrams_of(texts_of(rng, 20, "a", stock="a b c d e", n_words=30))
        pool = plan_pool(np.zeros(20, np.int64), None)
        estimates, _ = measure_groups(measures, pool, ["a"], [], Resampling(seed=trial), "")
        found.append(estimates["a"])
    for measure in ("shared_ngrams.3", "self_bleu", "distinct.2", "self_repetition"):
        values = [one[measure] for one in found]
        truth = np.mean([one.value for one in values])
        held = [one.low <= truth <= one.high for one in values if one.low is not None]
        assert np.mean(held) >= 0.85, measure


def test_many_texts_compress_apart_by_their_jackknife_error():
    rng = random.Random(7)
    documents = [*texts_of(rng, 40, "a"), *texts_of(rng, 40, "b", stock="once upon a time " * 3)]
    texts = tuple(one.text.encode() for one in documents)

    class Slow(diversity.Compression):
        max_permutations = 0

    pool = plan_pool(np.repeat([0, 1], 40), None)
    _, (test,) = measure_groups(Slow(texts), pool, ["a", "b"], None, Resampling(), "")
    assert test.details["n_permutations"] == 0
    assert test.p < 0.05


def test_pairs_stand_side_by_side_with_their_runs():
    rng = random.Random(8)
    documents = texts_of(rng, 12, "a", n_words=80)
    copied = "The lamp, on the far bank of the river, went out at nine."
    documents[3] = replace(documents[3], text=f"{documents[3].text} {copied}")
    documents[7] = replace(documents[7], text=f"{copied.upper()} {documents[7].text}")
    (pair,) = measured(documents, n_pairs=1).pairs
    assert {pair.a, pair.b} == {"a3", "a7"}
    assert pair.longest == pair.n_words == 13
    assert pair.share_a == pytest.approx(13 / 93)
    run = pair.runs[0]
    by_id = {one.id: one.text for one in documents}
    shown = {by_id[span.document_id][span.start : span.end] for span in (run.a, run.b)}
    assert shown == {copied[:-1], copied[:-1].upper()}


def test_threads_and_few_at_a_time_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch):
    """Of very many texts few subsets are measured at a time, so that memory stays bounded."""
    rng = random.Random(9)
    documents = [*texts_of(rng, 14, "a", stock="a b c d"), *texts_of(rng, 11, "b")]
    one, two = (json.dumps(measured(documents, n_threads=n, n_pairs=2).to_json()) for n in (1, 3))
    assert one == two
    monkeypatch.setattr("fabula.groups.grouped_texts._CELLS_AT_ONCE", 100)
    monkeypatch.setattr("fabula.groups.shared_ngrams._CELLS_AT_ONCE", 60)
    assert json.dumps(measured(documents, n_pairs=2).to_json()) == one


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"prompt": "task"}, "no field 'task'"),
        ({"baseline": "c"}, "`baseline` c: no such group; the groups are a, b"),
        ({"n_words": 500}, "no group has two texts of at least 500 words"),
    ],
)
def test_what_cannot_be_compared_is_said(plan: dict[str, object], said: str):
    with pytest.raises(InputError, match=said):
        measured(two_groups(), **plan)


def test_what_is_not_installed_is_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch):
    def absent() -> None:
        raise ModelError("this needs spaCy; run: pip install 'fabula[nlp]'")

    monkeypatch.setattr("fabula.groups.shared_ngrams.Tagger", absent)
    found = measured(two_groups(), extras=("templates",))
    assert "pip install 'fabula[nlp]'" in found.left_out["templates"]
    assert found.left_out["embeddings"].startswith("not asked for")

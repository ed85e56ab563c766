"""Key phrases: counts of an oracle, the level of the test, and what is folded or left out."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.groups import phrase_list
from fabula.groups.grouped_texts import plan_pool
from fabula.groups.key_phrases import KeynessPlan, KeyPhrases, find_key_phrases
from fabula.reference.search import Reference
from fabula.stats.contrasts import log_odds
from fabula.text import TextSettings

WORDS = [f"w{k}" for k in range(40)]


def documents(texts: Sequence[str], prompts: Any = None) -> list[Document]:
    metas = [{"prompt": prompt} for prompt in prompts] if prompts else [{}] * len(texts)
    return [Document(str(k), text, meta=metas[k]) for k, text in enumerate(texts)]


def compared(a: Sequence[str], b: Sequence[str], prompts: Any = None, **plan: Any) -> KeyPhrases:
    own, others = prompts or (None, None)
    groups = ("A", documents(a, own)), ("B", documents(b, others))
    return find_key_phrases(*groups, KeynessPlan(**plan))


def noise(rng: random.Random, n: int) -> str:
    return " ".join(rng.choices(WORDS, k=n))


def planted(phrase: str, n_with: int, n: int, seed: int, *, times: int = 1) -> list[str]:
    """Texts of about 30 words, of which the first hold a phrase, in several places."""
    rng = random.Random(seed)
    texts = []
    for k in range(n):
        words = noise(rng, 30 - times * len(phrase.split())).split()
        for place in range(times if k < n_with else 0):
            words.insert(2 * place + 1, phrase)
        texts.append(" ".join(words) + (f" {noise(rng, 30)}" if k >= n_with else ""))
    return texts


def test_counts_rates_and_texts_are_those_counted_one_by_one():
    a, b = planted("the dark tower", 12, 16, 1), planted("the dark tower", 1, 16, 2)
    (found,) = compared(a, b, n_words=30, min_ratio=1.5).phrases
    assert (found.phrase, found.over) == ("the dark tower", "A")
    cut = [[text.split()[:30] for text in texts] for texts in (a, b)]
    counts = [oracles.counted_ngrams(own, [[]] * len(own), 3, echo_from=3) for own in cut]
    gram = ("the", "dark", "tower")
    rates = [1000 * sum(one[gram] for one in own) / (30 * 16) for own in counts]
    assert [found.rate_a, found.rate_b] == pytest.approx(rates)
    assert [found.texts_a, found.texts_b] == [sum(gram in one for one in own) for own in counts]


def test_what_is_common_elsewhere_is_left_out_and_not_corrected_for(tmp_path: Path):
    """Of 200 words elsewhere two are *gate keeper*, which is 10,000 in a million; tower is none."""
    a = [f"gate keeper {one}" for one in planted("dark tower", 14, 16, 1)]
    b = [f"mild answer {one}" for one in planted("dark tower", 1, 16, 2)]
    elsewhere = [Document(f"e{k}", "x " * 96 + "the gate keeper slept") for k in range(2)]
    with closing(Reference.build(elsewhere, tmp_path / "ref")) as known:
        groups = ("A", documents(a)), ("B", documents(b))
        plan = KeynessPlan(longest=2, min_ratio=1.5)
        alone = find_key_phrases(*groups, plan)
        found = find_key_phrases(*groups, plan, background=known)
        at_most = find_key_phrases(*groups, replace(plan, max_background=10_000), background=known)
    of_a = {one.phrase: one for one in found.over(found.a)}
    assert {"gate keeper", "dark tower"} <= {one.phrase for one in alone.phrases}
    assert set(of_a) == {"dark tower"}
    assert of_a["dark tower"].background == 0
    assert "mild answer" in {one.phrase for one in found.over(found.b)}
    assert next(o for o in at_most.phrases if o.phrase == "gate keeper").background == 10_000
    # Holm's correction is over what is left: gate, keeper and both, less.
    assert found.n_tested == alone.n_tested - 3
    smallest = min(one.p for one in found.phrases)
    assert min(one.p_holm for one in found.phrases) == pytest.approx(smallest * found.n_tested)
    assert found.signature != alone.signature
    assert "ref@" in found.signature
    assert any("3 phrases occur in ref (200 words" in line for line in found.remarks)


@pytest.mark.parametrize("n_texts", [1, 2])
def test_a_phrase_of_one_or_two_texts_is_not_listed_however_often_it_is_there(n_texts: int):
    a = planted("zanzibar", n_texts, 20, 1, times=15)
    found = compared(a, planted("", 0, 20, 2), n_words=30, min_ratio=1.0)
    assert "zanzibar" not in {one.phrase for one in found.phrases}
    # As if words were independent, nobody would doubt it.
    _, z = log_odds(np.array([15.0 * n_texts]), np.array([0.0]), 600, 600, 30)
    assert z[0] > 1.96 * n_texts / 2


def test_shorter_phrases_are_folded_into_the_one_that_explains_them():
    a, b = planted("once upon a time", 18, 20, 1), planted("", 0, 20, 2)
    (found,) = compared(a, b).phrases
    assert found.phrase == "once upon a time"
    assert {"once", "upon", "a time", "once upon a"} <= set(found.folded)
    # So are windows of a longer sentence.
    long = planted("here is a story about the old man by the sea", 18, 20, 1)
    assert len(compared(long, b).phrases) <= 4
    # A word that is elsewhere too stays for itself.
    a = [text.replace("w0", "once").replace("w1", "once") for text in a]
    assert {"once", "once upon a time"} <= {one.phrase for one in compared(a, b).phrases}


def test_words_of_the_prompt_do_not_count():
    prompts = [f"tell of the last lamp and {word}" for word in WORDS[:16]]
    rng = random.Random(3)
    a = [f"the last lamp and {noise(rng, 30)}" for _ in prompts]
    b = [noise(rng, 40) for _ in prompts]
    said = compared(a, b, shortest=3)
    assert [one.phrase for one in said.phrases] == ["the last lamp and"]
    said = compared(a, b, (prompts, prompts), shortest=3, prompt="prompt")
    assert not said.phrases
    assert "draws:prompts" in said.signature


def bursty(rng: random.Random, n_words: int) -> str:
    """A text that has a theme: a third of its words are one word, another in each."""
    theme = rng.choice(WORDS[:12])
    return " ".join(theme if rng.random() < 0.3 else rng.choice(WORDS) for _ in range(n_words))


def test_halves_of_one_group_differ_in_five_of_a_hundred_at_most():
    """In any phrase, after the correction; by z, as if words were independent, in nearly all."""
    rng = random.Random(0)
    n_trials, n_found, n_by_z = 100, 0, 0
    for _ in range(n_trials):
        texts = [bursty(rng, 40) for _ in range(30)]
        found = compared(texts[:15], texts[15:], longest=2, min_ratio=1.0)
        n_found += bool(found.phrases)
        each = compared(texts[:15], texts[15:], longest=1, min_ratio=1.0, max_p=1.0)
        n_by_z += any(abs(one.z) > 3 for one in each.phrases)
    # Of 100 trials at 5 %, 11 or fewer in 99 of 100 runs.
    assert n_found <= 11
    assert n_by_z > 50


def test_a_group_that_is_larger_counts_as_one_of_equal_size_in_any_order():
    a, b = planted("the dark tower", 14, 16, 1), planted("the dark tower", 2, 16, 2)
    once, turned, twice = compared(a, b), compared(a[::-1], b[::-1]), compared([*a, *a], b)
    one, two = once.phrases[0], twice.phrases[0]
    assert (one.phrase, one.rate_a, one.z) == (two.phrase, two.rate_a, pytest.approx(two.z))
    assert "A: 32 of 32 texts have the same words as another" in " ".join(twice.remarks)
    all_phrases = [Counter(map(str, found.to_json()["phrases"])) for found in (once, turned)]
    assert all_phrases[0] == all_phrases[1]


def test_weights_are_how_often_draws_hold_a_text():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 30)
    own = [f"{g}{k % 7}" for k, g in enumerate(labels)]
    for prompts in (None, [f"p{k % 5}" for k in range(30)], own):
        pool = plan_pool(labels, prompts)
        for group in (0, 1):
            drawn = pool.draws(pool.labels, group, 4000, rng).mean(axis=0)
            of_it = pool.labels == group
            np.testing.assert_allclose(pool.weights()[of_it], drawn[of_it], atol=0.04)


def test_groups_with_prompts_of_their_own_are_tested_by_prompt():
    """Twelve texts on two prompts are two, which prove nothing."""
    rng = random.Random(1)
    a = [f"the dark tower {noise(rng, 30)}" for _ in range(12)]
    b = [noise(rng, 33) for _ in range(12)]
    prompts = [f"a{k % 2}" for k in range(12)], [f"b{k % 2}" for k in range(12)]
    assert not compared(a, b, prompts, prompt="prompt").phrases
    assert compared(a, b).phrases


def listed(tmp_path: Path, *phrases: object) -> phrase_list.PhraseList:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(phrases))
    return phrase_list.read_phrases(path)


def test_what_is_written_is_read_back(tmp_path: Path):
    said = ("one more lamp", "the Dark Tower")
    texts = [Document(str(k), f"{said[k % 2]} x{k} y{k} z{k}") for k in range(40)]
    plan = KeynessPlan(n_words=4, settings=TextSettings(case="keep"))
    found = find_key_phrases(("tall", texts[1::2]), ("small", texts[::2]), plan)
    phrase_list.write_key_phrases(tmp_path / "p.jsonl", found, "2026-01-02")
    read = phrase_list.read_phrases(tmp_path / "p.jsonl")
    assert (read.name, read.against, read.n_texts) == ("tall", "small", (20, 20))
    assert (read.date, read.settings) == ("2026-01-02", plan.settings)
    # Phrases of the other group are in the file, and not what the list is of.
    assert [one.phrase for one in read.phrases] == ["the Dark Tower"]
    shown = "tall 250.00, small 0.00 in 1,000 words; in 20 of 20 and 0 of 20 texts"
    assert read.phrases[0].said == shown
    header = json.loads((tmp_path / "p.jsonl").read_text().split("\n")[0])
    assert header["a"]["n_texts"] == 20
    assert header["signature"].startswith("phrases|words:4|texts:20|")


def test_lists_from_elsewhere_are_phrases_or_phrases_with_counts(tmp_path: Path):
    found = listed(tmp_path, "a tapestry of", ["barely a whisper"], ["Shivers, down", 12])
    phrases = [one.phrase for one in found.phrases]
    assert phrases == ["a tapestry of", "barely a whisper", "Shivers, down"]
    document = Document("d", "He felt shivers (down his spine).")
    ((measured,),) = phrase_list.PhraseInstrument(found).measure([document])
    assert measured.value == pytest.approx(1000 / 6)
    (span,) = measured.evidence
    assert document.text[span.start : span.end] == "shivers (down"


@pytest.mark.parametrize(
    "text",
    ["", "[]", '["a", 3]', '[["a", "b"]]', '[["a", 1, 2]]', "[1", '{"a": 1}', "Once upon a time",
     '{"fabula_phrases":1}\n', '{"fabula_phrases":1}\nnothing', '{"fabula_phrases":9}\n'],
)  # fmt: skip
def test_another_file_is_refused_in_a_sentence(tmp_path: Path, text: str):
    path = tmp_path / "list"
    path.write_text(text)
    with pytest.raises(InputError, match="list"):
        phrase_list.read_phrases(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        phrase_list.read_phrases(path)


FEW_WORDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=12)


@given(FEW_WORDS, st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), min_size=1))
def test_all_places_are_found_that_lie_in_no_other(words: list[str], phrases: list[list[str]]):
    ends = itertools.combinations(range(len(words) + 1), 2)
    places = {(a, b) for a, b in ends if words[a:b] in phrases}
    within = {(a, b) for a, b in places for c, d in places - {(a, b)} if c <= a and b <= d}
    rows = [phrase_list.ListedPhrase(" ".join(one)) for one in phrases]
    given_ = phrase_list.PhraseList("mine", "", None, "", TextSettings(), rows, "")
    found = phrase_list.PhraseInstrument(given_).find(words)
    assert {(k, k + n) for k, n, _ in found} == places - within


def test_uses_tell_how_often_and_where(tmp_path: Path):
    found = phrase_list.PhraseInstrument(listed(tmp_path, "once upon", "upon a time", "time"))
    texts = [Document("d", "Once upon a time. Time and time again."), Document("e", "...")]
    (measured,), (nothing,) = found.measure(texts)
    assert (nothing.value, nothing.missing_reason) == (None, "no_words")
    uses = {use.phrase: use.places for use in phrase_list.uses_of(measured)}
    assert uses == {"once upon": ((0, 9),), "upon a time": ((5, 16),), "time": ((18, 22), (27, 31))}
    assert measured.value == pytest.approx(1000 * 4 / 8)

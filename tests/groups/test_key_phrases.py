"""Key phrases: counts of an oracle, the level of the test, and what is folded or left out."""

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import oracles

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.groups.grouped_texts import plan_pool
from fabula.groups.key_phrases import KeynessPlan, KeyPhrases, find_key_phrases
from fabula.reference.search import Reference
from fabula.stats.contrasts import log_odds

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
    with pytest.raises(InputError, match="fewer than two texts of at least 30 words"):
        compared(a, ["too short"] * 5, n_words=30)

"""What authors of a reference share by chance, by which it is calibrated when it is built."""

import random
from pathlib import Path

from fabula.core.types import Document
from fabula.novelty.passages import Chance
from fabula.reference.chance import CHANCE_WORDS, least_bits
from fabula.reference.search import Reference

N_AUTHORS, N_WORDS, N_FORMULAS = 10, 11_000, 40


def written(rng: random.Random, formulas: list[str]) -> list[Document]:
    """Texts by several authors: words drawn at random, a few of them frequent, and formulas."""
    ranks = [f"w{k}" for k in range(5_000)]
    weights = [1 / (k + 3) for k in range(5_000)]
    documents = []
    for k in range(N_AUTHORS):
        words = rng.choices(ranks, weights, k=N_WORDS)
        for formula in formulas:
            words[(at := rng.randrange(N_WORDS)) : at] = formula.split()
        documents.append(Document(f"d{k}", " ".join(words), author=f"a{k}"))
    return documents


def test_authors_who_share_formulas_make_more_bits_needed(tmp_path: Path):
    rng = random.Random(4)
    formulas = [" ".join(f"w{rng.randrange(900)}" for _ in range(7)) for _ in range(N_FORMULAS)]
    plain = Reference.build(written(random.Random(5), []), tmp_path / "plain.ref")
    shared = Reference.build(written(random.Random(5), formulas), tmp_path / "shared.ref")
    assert (plain.about.chance_factor, shared.about.chance_factor) == (1.0, 4.0)
    assert Chance(plain).least == least_bits(plain.n_words)
    assert Chance(shared).least > least_bits(shared.n_words) + 5
    both = Reference.open(tmp_path / "plain.ref", tmp_path / "shared.ref")
    assert both.about.chance_factor == 4.0
    assert Chance(plain).by_chance(CHANCE_WORDS // 2, is_near=False) == 0.5


def test_a_reference_of_one_author_is_calibrated_by_its_documents(tmp_path: Path):
    alone = [Document(d.id, d.text, author="a") for d in written(random.Random(6), [])]
    assert Reference.build(alone, tmp_path / "alone.ref").about.chance_factor == 1.0

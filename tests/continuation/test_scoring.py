"""Scoring many continuations: the same bytes on any number of processes and after a crash."""

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import rows_of, write_rows

from fabula.continuation.passages import book_chapters, passages_of
from fabula.continuation.scores import (
    Continuation,
    Story,
    gold_continuations,
    read_contexts,
    read_continuations,
    score_rows,
)
from fabula.continuation.table import compare_systems
from fabula.continuation.tables import system_tables
from fabula.core.errors import InputError, MixError, ModelError
from fabula.linguistic.lexis import read_vocabulary
from fabula.linguistic.metrics import (
    METRICS,
    ToolChoice,
    category_trigrams,
    jaccard,
    open_tools,
    style_match,
)
from fabula.show.sheet import render
from fabula.stats.paired import compare_pairs
from fabula.text import find_files, read_documents
from fabula.text.pipeline import load_pipeline

CHOICE = ToolChoice()
CONTEXT = ("The old king had a golden ring.", "He lost it in the garden.")


@pytest.fixture(autouse=True, scope="module")
def tools() -> None:
    try:
        open_tools(CHOICE)
    except ModelError as error:
        pytest.skip(str(error))


def stories(n: int) -> list[Story]:
    return [
        Story(f"p{k}", (f"The king had {k} rings.", *CONTEXT), f"The king lost {k}.")
        for k in range(n)
    ]


def continuations(known: list[Story]) -> list[Continuation]:
    texts = ["The king found the ring.", "It rained!", "", None, "A dog."]
    return [
        Continuation(story.id, system, texts[(k + shift) % len(texts)])
        for k, story in enumerate(known)
        for shift, system in enumerate(("one", "two"))
    ] + gold_continuations(known)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Story], Path]:
    known = stories(70)
    out = tmp_path_factory.mktemp("scores") / "scores.jsonl"
    score_rows(known, continuations(known), CHOICE, out)
    return known, out


def test_two_processes_give_the_bytes_of_one(whole: tuple[list[Story], Path], tmp_path: Path):
    known, out = whole
    score_rows(known, continuations(known), CHOICE, tmp_path / "two.jsonl", n_jobs=2)
    assert (tmp_path / "two.jsonl").read_bytes() == out.read_bytes()


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.97])
def test_a_run_that_was_cut_short_goes_on_to_the_same_bytes(
    whole: tuple[list[Story], Path], tmp_path: Path, cut: float
):
    known, out = whole
    data = out.read_bytes()
    path = tmp_path / "scores.jsonl"
    path.write_bytes(data[: int(cut * len(data))])
    advanced: list[int] = []
    rows = score_rows(known, continuations(known), CHOICE, path, advance=advanced.append)
    assert path.read_bytes() == data
    assert sum(advanced) == len(rows) == 210


def test_rows_of_other_texts_are_not_taken_over(whole: tuple[list[Story], Path], tmp_path: Path):
    known, out = whole
    path = tmp_path / "scores.jsonl"
    path.write_bytes(out.read_bytes())
    others = [Continuation(c.story_id, c.system, "Else.") for c in continuations(known)]
    with pytest.raises(InputError, match="`restart`"):
        score_rows(known, others, CHOICE, path)
    assert path.read_bytes() == out.read_bytes()


def test_the_table_counts_what_is_missing_by_reason(whole: tuple[list[Story], Path]):
    rows = rows_of(whole[1])
    table = compare_systems(rows, ["one", "two", "gold"], n_permutations=999)
    cell = table.cells["grammaticality", "one"]
    assert dict(cell.missing) == {"no_words": 14, "no_text": 14}
    assert cell.estimate.n == 42
    # an empty text has 0 words, a text that was not given has no length
    assert table.cells["sentence_length", "one"].estimate.n == 56
    shown = render(*system_tables(table))
    assert "missing, one: the system gave no text" in shown
    assert "nan" not in shown.lower()
    text = json.dumps(table.to_json(), allow_nan=False)
    # texts that were given, the empty ones among them
    assert json.loads(text)["systems"] == {"one": 56, "two": 56, "gold": 70}
    assert dict(table.cells["type_token_ratio", "one"].missing) == {"no_words": 14, "no_text": 14}
    assert table.cells["unique_trigram_ratio", "one"].estimate.n == 42 - 28  # two words have none
    assert "no difference can be marked" not in shown
    few = " ".join(
        render(*system_tables(compare_systems(rows, n_permutations=99, level=0.01))).split()
    )
    assert "take at least 300" in few


def test_the_order_of_systems_changes_no_byte_and_no_p_value(
    whole: tuple[list[Story], Path], tmp_path: Path
):
    known, out = whole
    score_rows(known, continuations(known)[::-1], CHOICE, tmp_path / "scores.jsonl")
    assert (tmp_path / "scores.jsonl").read_bytes() == out.read_bytes()
    rows = rows_of(out)
    first = compare_systems(rows, ["one", "two", "gold"], n_permutations=999)
    other = compare_systems(rows, ["gold", "two", "one"], n_permutations=999)
    turned = {(t.number, t.b, t.a): t for t in other.tests}
    for test in first.tests:
        same = turned.get((test.number, test.a, test.b))
        assert (same.p, same.p_adjusted) == (test.p, test.p_adjusted)
        if test.difference.value is not None:
            assert same.difference.value == pytest.approx(-test.difference.value)


def test_a_restart_clears_only_scores(tmp_path: Path):
    path = tmp_path / "paid.jsonl"
    path.write_text('{"id": "p0", "system": "dear", "text": "It cost a lot."}\n')
    before = path.read_bytes()
    with pytest.raises(InputError, match="not a row of this command"):
        score_rows(stories(1), continuations(stories(1)), CHOICE, path, restart=True)
    assert path.read_bytes() == before


def test_ratios_count_the_words_of_the_whole_output(whole: tuple[list[Story], Path]):
    base = {"missing": {}, "values": {m.id: 1.0 for m in METRICS if not m.is_of_all}}

    def row(name: str, words: str, ends: list[int]) -> dict[str, Any]:
        return {"id": name, "system": "s", "words": words, "sentence_ends": ends, **base,
                "signature": "linguistic|v:1"}  # fmt: skip

    rows = [row("p1", "a b a b c", [5]), row("p2", "a b c d", [2, 4])]
    table = compare_systems(rows, n_permutations=99)
    # a b c d of nine; aba bab abc of three, none across the end of a sentence
    assert table.cells["type_token_ratio", "s"].estimate.value == 4 / 9
    assert table.cells["unique_trigram_ratio", "s"].estimate.value == 3 / 3
    small = compare_systems(rows, vocabulary=frozenset("ab"), n_permutations=99)
    # a b of six; aba bab
    assert small.cells["type_token_ratio", "s"].estimate.value == 2 / 6
    assert small.cells["unique_trigram_ratio", "s"].estimate.value == 2 / 2
    assert "vocab:2@" in small.signature
    other = row("p3", "a", [1]) | {"signature": "linguistic|v:2"}
    with pytest.raises(MixError, match="v: 1"):
        compare_systems([*rows, other])


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("{", "not JSON"), ("[1]", "not a JSON object"),
        ('{"id": 3, "context": []}', "not a passage"),
        ('{"id": "a", "context": "one string"}', "list of sentences"),
        ('{"id": "a", "context": ["x"], "gold": 7}', "gold is not a string"),
    ],
)  # fmt: skip
def test_contexts_that_are_none_say_so(tmp_path: Path, row: str, complaint: str):
    path = tmp_path / "passages.jsonl"
    path.write_text(row + "\n")
    with pytest.raises(InputError, match=complaint) as caught:
        read_contexts(path)
    assert f"{path}, line 1" in str(caught.value)


def test_passages_know_their_chapter_and_scores_carry_it(tmp_path: Path):
    path = tmp_path / "passages.jsonl"
    fields = [{"book": "b", "chapter": 2}, {"book": "b", "chapter": 2}, {"book": "c"}, {}]
    row = {"context": list(CONTEXT), "gold": "It was so."}
    write_rows(path, [row | {"id": f"{k}"} | more for k, more in enumerate(fields)])
    known = read_contexts(path)
    chapters = ["b/2", "b/2", "c", None]
    assert [story.chapter for story in known] == chapters
    rows = score_rows(known, gold_continuations(known), CHOICE, tmp_path / "scores.jsonl")
    assert [row["chapter"] for row in rows] == chapters
    assert compare_systems(rows, n_permutations=99).n_clusters == 3
    others = [replace(story, chapter="other") for story in known]
    with pytest.raises(InputError, match="choose another `out`"):
        score_rows(others, gold_continuations(others), CHOICE, tmp_path / "scores.jsonl")


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (['{"id": "p0", "system": "s"}'], "needs id, system and text"),
        (['{"id": "p9", "system": "s", "text": "x"}'], "no passage 'p9'"),
        (['{"id": "p0", "system": "s", "text": 5}'], "use null"),
        (['{"id": "p0", "system": "s", "text": "x"}'] * 2, "already continued"),
        (['{"id": "p0", "system": "", "text": "x"}'], "name is empty"),
        (['{"id": "p0", "system": "a\\nb", "text": "x"}'], "control characters"),
        ([], "contains no continuations"),
    ],
)
def test_continuations_that_are_none_say_so(tmp_path: Path, rows: list[str], complaint: str):
    path = tmp_path / "systems.jsonl"
    path.write_text("\n".join(rows))
    with pytest.raises(InputError, match=complaint):
        read_continuations([path], stories(2))


def test_a_system_named_gold_and_the_books_own_sentences_do_not_mix():
    with pytest.raises(InputError, match="rename it"):
        gold_continuations(stories(1), [Continuation("p0", "gold", "x")])


def test_a_vocabulary_is_words_by_line_or_a_table(tmp_path: Path):
    path = tmp_path / "v"
    path.write_text("<unknown>\t9\t<unknown>\nThe\t3\tThe\nking\n\n")
    assert read_vocabulary(path) == {"the", "king"}
    path.write_text("\n")
    with pytest.raises(InputError, match="contains no words"):
        read_vocabulary(path)


def real_stories(
    shared_data: Path, stride: int, n_most: int | None = None, run: int = 1, runs_apart: int = 1
) -> tuple[list[Story], list[str | None]]:
    """Passages of real books, and their gold sentences dealt to other passages.

    These are random sentences of the same books and lengths as the gold ones, so that nothing but
    the story tells the two apart. One of `runs_apart` runs of `run` passages is kept: passages that
    follow each other share most of their sentences, which are read once.
    """
    files = find_files([str(shared_data / "cbt" / "cbt_test_3books.jsonl.gz")], format_=None)
    documents = read_documents(
        files, text_field="sentences", id_field="id", format_=None, meter=lambda _: None
    )
    chapters = book_chapters(documents, load_pipeline(("senter",)))
    every = [Story(p.id, p.context, p.gold) for p in passages_of(chapters, 20, stride)][:n_most]
    known = [story for k, story in enumerate(every) if k // run % runs_apart == 0]
    others = [story.gold for story in known]
    random.Random(1).shuffle(others)
    return known, others


TABLE_LEVEL = 0.05 / 10
"""That of Table 2: 0.05 over ten pairs."""
OF_STYLE = ("pos_similarity", "pos_trigram_similarity")
"""They differ by a twentieth of a standard deviation and a tenth: seen on thousands of passages."""


@pytest.mark.slow
def test_gold_beats_random_sentences_on_what_depends_on_the_story(shared_data: Path):
    known, others = real_stories(shared_data, stride=4, run=25, runs_apart=12)
    texts = [
        Continuation(story.id, "random", text) for story, text in zip(known, others, strict=True)
    ]
    choice = ToolChoice(grammar="none")
    rows = score_rows(known, texts + gold_continuations(known), choice)
    table = compare_systems(rows, n_permutations=1999, level=TABLE_LEVEL)
    for metric in METRICS:
        if metric.needs_context and metric.id not in OF_STYLE:
            assert table.beats(metric.id, "gold", "random"), metric.title


@pytest.mark.slow
def test_gold_beats_random_sentences_in_style_too(shared_data: Path):
    known, others = real_stories(shared_data, stride=1, n_most=6000)
    sentences = list(dict.fromkeys(s for story in known for s in (*story.context, story.gold)))
    # Parts of speech are all that is needed of the parser, and take a third of its time.
    tagger = load_pipeline(("tok2vec", "tagger", "attribute_ruler"))
    tags = [[token.pos_ for token in doc] for doc in tagger.pipe(sentences)]
    counts = dict(zip(sentences, map(Counter, tags), strict=True))
    threes = {s: category_trigrams([one]) for s, one in zip(sentences, tags, strict=True)}
    systems = ("gold", "random")
    found: dict[str, list[tuple[float | None, float | None]]] = {name: [] for name in systems}
    for story, other in zip(known, others, strict=True):
        read = Counter[str]()
        for sentence in story.context:
            read.update(counts[sentence])
        seen = set().union(*(threes[s] for s in story.context))
        for system, text in zip(systems, (story.gold, other), strict=True):
            found[system].append((style_match(counts[text], read), jaccard(threes[text], seen)))
    values = {system: np.array(found[system], np.float64) for system in systems}
    tests = compare_pairs(
        {
            one: {system: values[system][:, k] for system in systems}
            for k, one in enumerate(OF_STYLE)
        },
        {},
    )
    for test in tests:
        assert test.difference.value > 0, test.number
        assert test.p <= TABLE_LEVEL, test.number
    assert {test.number for test in tests} == set(OF_STYLE)

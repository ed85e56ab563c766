"""What is no documents is told so in a sentence, wherever documents are taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fabula.errors import InputError
from fabula.text import check_documents, read_documents
from fabula.types import Document

WRONG: dict[str, Any] = {
    "a string": "stories/",
    "bytes": b"text",
    "a path": Path("stories"),
    "strings": ["text"],
    "one that is none": [Document("a", "text"), "text"],
    "a single document": Document("a", "text"),
    "a mapping": {"id": "a", "text": "b"},
    "mappings": [{"id": "a", "text": "b"}],
    "a table": pd.DataFrame({"id": ["a"], "text": ["b"]}),
    "a column": pd.Series(["a"]),
    "nothing": None,
    "a number": 3,
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_documents_is_told_what_is_wanted(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"documents are wanted: a list of Document\(id, text\)"):
        list(check_documents(wrong))


def test_documents_pass_as_they_are() -> None:
    documents = [Document("a", "one"), Document("b", "two")]
    assert list(check_documents(documents)) == documents
    assert list(check_documents(iter(documents))) == documents
    assert list(check_documents(())) == []


@pytest.mark.parametrize(
    "wrong", ["stories", Path("stories"), None, 3, {"a": 1}, [Document("a", "b")], ["a", None]]
)
def test_sources_that_are_no_list_of_names_are_told_what_is_wanted(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"a list of files.*read_documents\(\["):
        read_documents(wrong)

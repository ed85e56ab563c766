"""Which documents copy or quote a text, against a slow look at every document."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabula.core.types import Document
from fabula.novelty.measure import OriginalityMeasure
from fabula.novelty.scores import to_row
from fabula.reference import exclude
from fabula.reference.exclude import CopyRule, find_copies
from fabula.reference.search import Reference


def is_copy(text: list[str], other: list[str], rule: CopyRule) -> bool:
    """The rule by its words: every run of the text beside every run of the document."""
    n = min(rule.run, rule.cover_run)
    longest, covered = 0, set()
    for i in range(len(text)):
        for j in range(len(other)):
            length = 0
            for a, b in zip(text[i:], other[j:]):  # noqa: B905
                if a != b:
                    break
                length += 1
            if length >= n:
                longest = max(longest, length)
                covered.update(range(i, i + length))
    return bool(covered) and (longest >= rule.run or len(covered) >= rule.cover * len(text))


Quoted = tuple[Reference, list[str]]
WORDS = ["rose", "is", "a", "red", "the"]


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(
    text=st.lists(st.sampled_from(WORDS), min_size=1, max_size=30),
    others=st.lists(
        st.lists(st.sampled_from([*WORDS, "blue"]), min_size=1, max_size=25), min_size=1, max_size=9
    ),
    rule=st.builds(CopyRule, st.integers(2, 7), st.integers(2, 5), st.sampled_from([0.3, 0.5, 1])),
    shard_tokens=st.sampled_from([30, 10**6]),
)
def test_all_documents_that_the_rule_names_are_left_out_and_no_other(
    tmp_path_factory: pytest.TempPathFactory,
    text: list[str],
    others: list[list[str]],
    rule: CopyRule,
    shard_tokens: int,
):
    documents = [Document(f"d{k}", " ".join(words)) for k, words in enumerate(others)]
    folder = tmp_path_factory.mktemp("ref")
    reference = Reference.build(documents, folder, shard_tokens=shard_tokens)
    found = [copy.number for copy in find_copies(reference, text, rule)]
    assert found == [k for k, other in enumerate(others) if is_copy(text, other, rule)]


@pytest.fixture(scope="module")
def much_quoted(tmp_path_factory: pytest.TempPathFactory) -> Quoted:
    """40 documents that quote 60 to 645 words of one text, each more than the one before."""
    rng = np.random.default_rng(4)
    fresh = lambda n: [f"u{k}" for k in rng.integers(10**9, size=n)]  # noqa: E731
    text = fresh(700)
    held = [[*fresh(40), *text[: 60 + 15 * k], *fresh(40)] for k in range(40)]
    documents = [Document(f"q{k}", " ".join(words)) for k, words in enumerate(held)]
    folder = tmp_path_factory.mktemp("quoted")
    return Reference.build([*documents, Document("other", " ".join(fresh(300)))], folder), text


def test_all_forty_documents_that_quote_a_text_are_left_out(much_quoted: Quoted):
    reference, text = much_quoted
    measure = OriginalityMeasure(reference, exclude=CopyRule())
    (result,) = measure.measure([Document("mine", " ".join(text))])
    assert [copy.id for copy in result.excluded] == [f"q{k}" for k in range(40)]
    # Nothing of it stands elsewhere; the reference then knows none of its words.
    assert result.missing_reason == "no_known_words"
    (result,) = measure.measure([Document("mine", " ".join([*text, "other", "u"]))])
    assert len(result.excluded) == 40
    assert result.remarks == ()


def test_a_bound_on_places_looked_at_is_said(much_quoted: Quoted, monkeypatch: pytest.MonkeyPatch):
    reference, text = much_quoted
    # As over HTTP, where a server bounds them.
    monkeypatch.setattr(exclude, "_ALL_PLACES", 10)
    monkeypatch.setattr(exclude, "MAX_PLACES", 10)
    measure = OriginalityMeasure(reference, exclude=CopyRule())
    (result,) = measure.measure([Document("mine", " ".join(text))])
    (remark,) = to_row(result)["remarks"]
    assert "more than 10 places" in remark
    assert "may not have been excluded" in remark


def test_a_text_without_words_copies_nothing(tmp_path: Path):
    reference = Reference.build([Document("a", "one two three")], tmp_path)
    assert list(find_copies(reference, [], CopyRule())) == []

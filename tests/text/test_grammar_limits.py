"""What no checker of grammar was made for: words and lines without an end."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from fabula.text.grammar import Harper
from fabula.text.pipeline import load_pipeline
from fabula.text.sentences import sentence_spans, sentences_of


def test_a_word_of_a_hundred_thousand_letters_is_one_error_at_its_place():
    """Harper itself aborts the process over it."""
    pytest.importorskip("harper")
    text = f"He saw {'x' * 100_000} there."
    (fault,) = Harper().faults(text)
    found = fault.place
    assert found[0] == 7
    assert found[1] <= 7 + 100_000


def test_a_line_longer_than_the_pipeline_takes_is_read_in_parts(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("spacy")
    nlp = load_pipeline(("senter",))
    monkeypatch.setattr(nlp._language, "max_length", 60_000)
    text = "The sea was old. " * 8_000
    spans = sentence_spans(text, nlp)
    assert "".join(text[a:b] for a, b in spans).replace(" ", "") == text.replace(" ", "")
    words = [word for part in sentences_of([text], nlp) for one in part for word in one.split()]
    assert words == text.split()


def test_two_threads_find_what_one_finds():
    checker = Harper()
    texts = [f"He go to the {word} and saw teh dog." for word in ("mill", "sea", "fair", "town")]
    alone = [checker.faults(text) for text in texts]
    assert all(alone)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(checker.faults, texts * 8)) == alone * 8

"""Fluency in bits a word: the arithmetic by hand, then the embedded model on prose."""

import importlib.metadata
import math
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fabula.core.errors import ModelError
from fabula.core.types import Document, Signature
from fabula.models.surprisal import SurprisalModel, TokenSurprisal
from fabula.style.fluency import Fluency, FluencyMeasure, SpanSurprisal
from fabula.text.pipeline import load_pipeline

pytest.importorskip("spacy", reason="sentences need what 'fabula[nlp]' installs")
pytest.importorskip("gguf", reason="surprisals need what 'fabula[local]' installs")
pytest.importorskip("xllamacpp", reason="surprisals need what 'fabula[local]' installs")


@pytest.fixture(scope="module")
def measure() -> Iterator[FluencyMeasure]:
    try:
        model, nlp = SurprisalModel("local"), load_pipeline(("senter",))
    except ModelError as error:
        pytest.skip(str(error))
    with model:
        yield FluencyMeasure(model, nlp)


def one(measure: FluencyMeasure, text: str) -> Fluency:
    (found,) = measure.measure([Document("d", text)])
    return found


def by_hand(text: str, pieces: list[tuple[str, float]]) -> Fluency:
    """A text of which each token's surprisal is given, in bits."""
    assert "".join(piece for piece, _ in pieces) == text
    ends = np.cumsum([len(piece) for piece, _ in pieces])
    starts = np.concatenate([[0], ends[:-1]])
    nats = np.array([bits * math.log(2) for _, bits in pieces], np.float32)
    tokens = TokenSurprisal(starts, ends, nats)
    return Fluency(Document("d", text), 0, None, (), None, Signature("fluency"), tokens)


NONE = math.nan


def span(start: int, end: int, n_words: int, bits_per_word: float) -> SpanSurprisal:
    return SpanSurprisal(start, end, n_words, pytest.approx(bits_per_word))


def test_a_span_has_the_bits_of_its_tokens_by_word():
    text = 'Un told tales.\n\n"Go!" he said.'
    found = by_hand(text, [
        ("Un", NONE), (" told", 4), (" ta", 2), ("les", 1), (".", 0.5), ("\n\n", 32),
        ('"', 2), ("Go", 8), ("!\"", 1), (" he", 3), (" said", 2), (".", 0.25),
    ])  # fmt: skip
    first, second, both, blank, go = found.of_spans(
        [(0, 14), (16, 30), (0, 30), (14, 16), (17, 19)]
    )
    # The first word was only read; the space before a word is of the word's sentence.
    assert first == span(0, 14, 2, 7.5 / 2)
    assert second == span(16, 30, 3, 16.25 / 3)
    # What stands between sentences counts in a stretch that holds it.
    assert both == span(0, 30, 5, (7.5 + 32 + 16.25) / 5)
    assert blank == SpanSurprisal(14, 16, 0, None, "no_words")
    assert go == span(17, 19, 1, 8.0)
    assert found.of_spans([]) == ()


def test_a_token_over_a_border_goes_where_its_first_letter_stands():
    found = by_hand("One two.\nThree", [("One", 1), (" two", 2), (".\nTh", 4), ("ree", 8)])
    assert [s.bits_per_word for s in found.of_spans([(0, 8), (9, 14)])] == pytest.approx([3.5, 8.0])


def test_a_first_word_that_is_only_read_takes_its_other_tokens_with_it():
    found = by_hand("Lighthouses stand", [("Light", NONE), ("houses", 3), (" stand", 5)])
    assert found.of_spans([(0, 17), (0, 11), (5, 11)]) == (
        span(0, 17, 1, 5.0),
        SpanSurprisal(0, 11, 0, None, "too_short"),
        SpanSurprisal(5, 11, 0, None, "no_words"),
    )
    # With the mark of a beginning before it, it counts as any other.
    marked = by_hand("Lighthouses stand", [("Light", 2), ("houses", 3), (" stand", 5)])
    assert marked.of_spans([(0, 17)]) == (span(0, 17, 2, 5.0),)
    quoted = by_hand('"Go', [('"', NONE), ("Go", 3)])
    assert quoted.of_spans([(0, 3)]) == (span(0, 3, 1, 3.0),)


def test_the_parts_of_a_split_character_count_together():
    text = "a 🙂 b"
    tokens = TokenSurprisal(
        np.array([0, 1, 2, 3]), np.array([1, 3, 3, 5]),
        np.array([1, 2, 4, 8], np.float32) * np.float32(math.log(2)),
    )  # fmt: skip
    found = Fluency(Document("d", text), 0, None, (), None, Signature("fluency"), tokens)
    assert [s.bits_per_word for s in found.of_spans([(0, 1), (2, 3), (4, 5)])] == pytest.approx(
        [1, 6, 8]
    )


def test_a_figure_that_is_not_finite_is_missing_where_it_stands():
    found = by_hand("One two three", [("One", 1), (" two", math.nan), (" three", 2)])
    assert found.of_spans([(0, 3), (4, 7), (8, 13)]) == (
        span(0, 3, 1, 1.0),
        SpanSurprisal(4, 7, 1, None, "not_finite"),
        span(8, 13, 1, 2.0),
    )


def test_what_has_no_fluency_says_why(measure: FluencyMeasure):
    for text, reason in (
        ("", "no_words"), (" \n", "no_words"), ("… — !", "no_words"), ("Stop!", "too_short"),
    ):  # fmt: skip
        found = one(measure, text)
        assert (found.bits_per_word, found.missing_reason, found.n_words) == (None, reason, 0)
        (said,) = found.measurements()
        assert (said.value, said.missing_reason) == (None, reason)
    assert [s.missing_reason for s in one(measure, "Stop! It was late.").sentences] == [
        "too_short", None,
    ]  # fmt: skip


def test_another_language_is_missing_not_surprising(measure: FluencyMeasure):
    text = "Il était une fois un roi qui aimait les livres. Il lisait toute la nuit."
    found = one(measure, text)
    reason = "not English: looks like French"
    assert (found.bits_per_word, found.missing_reason, found.sentences) == (None, reason, ())
    assert [s.missing_reason for s in found.of_spans([(0, 10)])] == [reason]


def test_sentences_add_up_to_the_text(measure: FluencyMeasure, examples: Path):
    text = (examples / "the-count.txt").read_text(encoding="utf-8")[:1200]
    found = one(measure, text)
    assert found.missing_reason is None
    assert len(found.sentences) > 8
    assert sum(s.n_words for s in found.sentences) == found.n_words
    # What stands between sentences is in the whole only: line breaks.
    inside = math.fsum(s.n_words * s.bits_per_word for s in found.sentences if s.bits_per_word)
    total = found.n_words * found.bits_per_word
    between = [
        bits
        for start, end, bits in zip(
            found.tokens.starts, found.tokens.ends, found.tokens.bits, strict=True
        )
        if text[start:end].isspace() and "\n" in text[start:end]
    ]
    assert total - inside == pytest.approx(math.fsum(between), abs=1e-6)
    (said,) = found.measurements()
    assert (said.rubric, said.item, said.value) == ("fluency", "bits_per_word", found.bits_per_word)
    assert said.signature == str(measure.signature)


def test_shuffled_words_are_more_surprising(measure: FluencyMeasure):
    sentence = "He put the kettle on the stove and waited for it to sing"
    words = sentence.split()
    random.Random(4).shuffle(words)
    before, after = "The kitchen was cold. ", ". Then he sat down."
    values = []
    for middle in (sentence, " ".join(words)):
        found = one(measure, before + middle + after)
        (span,) = found.of_spans([(len(before), len(before) + len(middle))])
        assert span.n_words == len(words)
        assert span.bits_per_word is not None
        values.append(span.bits_per_word)
    assert values[1] > values[0] + 3


def test_the_signature_names_all_that_decides(measure: FluencyMeasure):
    parts = dict(measure.signature.parts)
    assert parts["model"].startswith("local/smollm2-135m")
    assert parts["unit"] == "bits-a-word"
    assert parts["pipe"].startswith("en_core_web_md-")
    assert parts["spacy"] == importlib.metadata.version("spacy")
    assert parts["run"] == f"onnxruntime-{importlib.metadata.version('onnxruntime')}"
    assert parts["ctx"] == "4096"
    assert parts["lang"].startswith("py3langid-")
    nlp = load_pipeline(("senter",))
    other = FluencyMeasure(SurprisalModel("local", max_context=512), nlp)
    assert measure.signature.differences(other.signature) == ["ctx: 4096 | 512"]

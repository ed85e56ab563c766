"""Fluency in bits a word: the arithmetic by hand, then the embedded model on prose."""

import importlib.metadata
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import if_installed

from fabula.core.types import Document, Signature
from fabula.models.surprisal import SurprisalModel, TokenSurprisal
from fabula.style.fluency import Fluency, FluencyMeasure, SpanSurprisal
from fabula.text.pipeline import load_pipeline

pytest.importorskip("spacy", reason="sentences need what 'fabula[nlp]' installs")
pytest.importorskip("gguf", reason="surprisals need what 'fabula[local]' installs")
pytest.importorskip("xllamacpp", reason="surprisals need what 'fabula[local]' installs")


@pytest.fixture(scope="module")
def measure() -> Iterator[FluencyMeasure]:
    with if_installed(lambda: SurprisalModel("local")) as model:
        yield FluencyMeasure(model, if_installed(lambda: load_pipeline(("senter",))))


def one(measure: FluencyMeasure, text: str) -> Fluency:
    (found,) = measure.measure([Document("d", text)])
    return found


def by_hand(text: str, pieces: list[tuple[str, float]]) -> Fluency:
    """A text of which each token's surprisal is given, in bits."""
    assert "".join(piece for piece, _ in pieces) == text
    ends = np.cumsum([len(piece) for piece, _ in pieces])
    return with_tokens(text, [0, *ends[:-1]], ends, [bits for _, bits in pieces])


def with_tokens(text: str, starts: Any, ends: Any, bits: list[float]) -> Fluency:
    nats = np.array(bits, np.float32) * np.float32(math.log(2))
    tokens = TokenSurprisal(np.array(starts), np.array(ends), nats)
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
    assert found.of_spans([(0, 14), (16, 30), (0, 30), (14, 16), (17, 19)]) == (
        # The first word was only read; the space before a word is of the word's sentence.
        span(0, 14, 2, 7.5 / 2),
        span(16, 30, 3, 16.25 / 3),
        # What stands between sentences counts in a stretch that holds it.
        span(0, 30, 5, (7.5 + 32 + 16.25) / 5),
        SpanSurprisal(14, 16, 0, None, "no_words"),
        span(17, 19, 1, 8.0),
    )
    assert found.of_spans([]) == ()


def test_a_token_over_a_border_goes_where_its_first_letter_stands():
    found = by_hand("One two.\nThree", [("One", 1), (" two", 2), (".\nTh", 4), ("ree", 8)])
    assert [s.bits_per_word for s in found.of_spans([(0, 8), (9, 14)])] == pytest.approx([3.5, 8.0])
    # The parts of a split character count together.
    found = with_tokens("a 🙂 b", [0, 1, 2, 3], [1, 3, 3, 5], [1, 2, 4, 8])
    bits = [s.bits_per_word for s in found.of_spans([(0, 1), (2, 3), (4, 5)])]
    assert bits == pytest.approx([1, 6, 8])


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


def test_a_figure_that_is_not_finite_is_missing_where_it_stands():
    found = by_hand("One two three", [("One", 1), (" two", math.nan), (" three", 2)])
    assert found.of_spans([(0, 3), (4, 7), (8, 13)]) == (
        span(0, 3, 1, 1.0),
        SpanSurprisal(4, 7, 1, None, "not_finite"),
        span(8, 13, 1, 2.0),
    )


FRENCH = "Il était une fois un roi qui aimait les livres. Il lisait toute la nuit."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no_words"), (" \n", "no_words"), ("… — !", "no_words"), ("Stop!", "too_short"),
        (FRENCH, "not English: looks like French"),
    ],
)  # fmt: skip
def test_what_has_no_fluency_says_why(measure: FluencyMeasure, text: str, reason: str):
    found = one(measure, text)
    assert (found.bits_per_word, found.missing_reason) == (None, reason)
    (said,) = found.measurements()
    assert (said.value, said.missing_reason) == (None, reason)
    if text == FRENCH:
        assert found.sentences == ()
        assert [s.missing_reason for s in found.of_spans([(0, 10)])] == [reason]
    else:
        assert found.n_words == 0
    sentences = one(measure, "Stop! It was late.").sentences
    assert [s.missing_reason for s in sentences] == ["too_short", None]


def test_sentences_add_up_to_the_text(measure: FluencyMeasure, examples: Path):
    text = (examples / "the-count.txt").read_text(encoding="utf-8")[:1200]
    found = one(measure, text)
    assert found.missing_reason is None
    assert len(found.sentences) > 8
    assert sum(s.n_words for s in found.sentences) == found.n_words
    # What stands between sentences is in the whole only: line breaks.
    inside = math.fsum(s.n_words * s.bits_per_word for s in found.sentences if s.bits_per_word)
    total = found.n_words * found.bits_per_word
    tokens = zip(found.tokens.starts, found.tokens.ends, found.tokens.bits, strict=True)
    between = [bits for a, b, bits in tokens if text[a:b].isspace() and "\n" in text[a:b]]
    assert total - inside == pytest.approx(math.fsum(between), abs=1e-6)
    (said,) = found.measurements()
    assert (said.rubric, said.item, said.value) == ("fluency", "bits_per_word", found.bits_per_word)
    assert said.signature == str(measure.signature)


def test_the_signature_names_all_that_decides(measure: FluencyMeasure):
    version = importlib.metadata.version
    parts = ["model:local/smollm2-135m", "unit:bits-a-word|", "pipe:en_core_web_md-", "ctx:4096|"]
    parts += [f"spacy:{version('spacy')}|", f"run:onnxruntime-{version('onnxruntime')}|"]
    assert all(part in str(measure.signature) for part in [*parts, "lang:py3langid-"])
    other = FluencyMeasure(SurprisalModel("local", max_context=512), load_pipeline(("senter",)))
    assert measure.signature.differences(other.signature) == ["ctx: 4096 | 512"]

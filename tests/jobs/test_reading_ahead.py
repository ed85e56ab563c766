"""Texts that a model reads in a thread: the same numbers, and an end when it is wanted."""

from pathlib import Path
from threading import Event

import pytest

from fabula.core.errors import CallFailed, ModelError
from fabula.core.types import Document
from fabula.models.surprisal import SurprisalModel
from fabula.review.reviewer import ReadingAhead
from fabula.text import count_words

pytest.importorskip("spacy", reason="the language of texts needs what 'fabula[nlp]' installs")
pytest.importorskip("onnxruntime", reason="surprisals need what 'fabula[local]' installs")

TEXTS = [
    Document("a", "The lamp went out. Nobody rowed over, and the boat lay on the sand. " * 4),
    Document("b", "Der Hafen war leer, und niemand kam mehr herüber, weil das Licht aus war. " * 4),
    Document("c", "She counted nine, and one, and then she put out her hand and held it still."),
]


def test_what_is_read_ahead_is_what_the_model_says(small_model: Path):
    with SurprisalModel(small_model) as model:
        expected = [model.score(TEXTS[k].text) for k in (0, 2)]
        n_read: list[int] = []
        with ReadingAhead(lambda: model, TEXTS) as reading:
            found = [reading.tokens(k, n_read.append) for k in range(3)]
            assert reading.model() is model
    assert sum(n_read) == sum(count_words(text.text) for text in TEXTS)
    # The second is German.
    assert found[1] is None
    for one, other in zip(expected, (found[0], found[2]), strict=True):
        assert other is not None
        assert other.nats.tobytes() == one.nats.tobytes()
        assert other.starts.tolist() == one.starts.tolist()


def test_a_model_that_cannot_be_opened_is_told_of_when_it_is_asked_for(tmp_path: Path):
    with (
        ReadingAhead(lambda: SurprisalModel(tmp_path / "none.gguf"), TEXTS) as reading,
        pytest.raises(ModelError, match=r"none\.gguf"),
    ):
        reading.tokens(0, lambda _: None)


def test_nobody_waits_for_what_is_left(small_model: Path):
    """Leaving ends a text that is being read, and those behind it are never begun."""
    text, is_reading, is_left = Document("d", TEXTS[0].text * 40), Event(), Event()

    class Slow(SurprisalModel):
        def score(self, text: str, check: object = None, report: object = None) -> object:  # type: ignore[override]
            is_reading.set()
            is_left.wait(60)
            assert callable(check)
            with pytest.raises(CallFailed, match="not read to its end"):
                super().score(text, check)
            raise CallFailed("ended")

    with Slow(small_model) as model:
        reading = ReadingAhead(lambda: model, [text, text])
        with reading:
            assert is_reading.wait(60)
            reading._is_over.set()
            is_left.set()
    assert reading._read[1].cancelled() or reading._read[1].exception() is not None

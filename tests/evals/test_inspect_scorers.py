"""Texts in an Inspect log, measured by Fabula's instruments as Fabula measures them."""

import math
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import score
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import SampleScore, Score
from tests.eval_logs import log_of, streams_left_open
from tests.forking import INSTALLED, inspect_command

import fabula as fb
from fabula.core import instruments
from fabula.core.types import Document, Measurement, Signature
from fabula.evals.text_scorers import figures, fluency, instrument, originality, profile
from fabula.models.surprisal import SurprisalModel
from fabula.style.fluency import FluencyMeasure
from fabula.text.pipeline import load_pipeline

TIDE = "The tide went out and the boats lay down in the mud like cows, and nobody minded them."
BOOKS = ["Long ago the boats lay down in the mud like cows, and nobody minded them at all."]
TEXTS = {
    "tide": TIDE,
    "tin": "She slowly kept the letters in a tin that had once held tea from far away.",
    "note": "Back at five.",
    "empty": "",
    "refusal": "I'm sorry, but I can't write that story for you.",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def books(folder: Path) -> fb.Reference:
    return fb.Reference.open(fb.reference_build(BOOKS, folder / "books.ref", jobs=1).place)


@pytest.fixture(scope="module")
def log(folder: Path) -> EvalLog:
    return log_of(folder, TEXTS)


def scored(log: EvalLog, scorer: Any) -> tuple[dict[str, Score], dict[str, float]]:
    """The scores by sample, and the metrics."""
    with streams_left_open():
        # Read whole before: Inspect would do it in its running loop, and change asyncio for that.
        assert log.samples
        return read(score(log, scorer, action="overwrite", display="none"))


def read(log: EvalLog) -> tuple[dict[str, Score], dict[str, float]]:
    scores = {str(one.id): next(iter(one.scores.values())) for one in log.samples}
    return scores, {name: one.value for name, one in log.results.scores[0].metrics.items()}


def inspect(folder: Path, log: EvalLog, *words: str, program: Path) -> Any:
    """The command, which scores a log for originality."""
    done = subprocess.run(
        [str(program), "score", log.location, "--action", "append", "--output-file", "scored.eval",
         "--scorer", "fabula/originality", *words],
        cwd=folder, env=os.environ | {"COLUMNS": "80"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stdout + done.stderr
    return done


def test_a_log_is_scored_for_originality_as_texts(log: EvalLog, books: fb.Reference, folder: Path):
    settings = ("-S", "reference=books.ref", "-S", "levels=3-5")
    done = inspect(folder, log, *settings, program=inspect_command())
    assert done.returncode == 0, done.stderr
    assert "creativity_index" in done.stdout
    scores, metrics = read(read_eval_log(str(folder / "scored.eval")))
    expected = fb.originality(TEXTS, books, levels="3-5", jobs=1).frame().set_index("id")
    for id_ in ("tide", "tin"):
        for name in ("creativity_index", "uniqueness_4"):
            assert scores[id_].as_dict()[name] == expected.loc[id_, name]
    assert scores["tin"].as_dict()["uniqueness_4"] == 1
    borrowed = '"the boats lay down in the mud like cows, and nobody minded them"'
    assert borrowed in scores["tide"].explanation
    assert "|L:3-5|" in scores["tide"].metadata["signature"]
    assert {id_: one.reason for id_, one in scores.items()} == {
        "tide": None, "tin": None, "note": None, "empty": "no_words", "refusal": "refusal",
    }  # fmt: skip
    # Of three words there is a run of three, and no index.
    note = scores["note"].as_dict()
    assert note["uniqueness_3"] == 1
    assert math.isnan(float(note["creativity_index"] or 0))
    indices = expected.loc[["tide", "tin"], "creativity_index"]
    assert metrics["creativity_index"] == pytest.approx(indices.mean())
    assert metrics["creativity_index missing"] == 3
    assert metrics["uniqueness_3 missing"] == 2
    assert "creativity_index low" not in metrics, "of two texts there is no interval"


def test_settings_are_the_command_s_and_fields_the_samples_metadata(log: EvalLog, folder: Path):
    library = [{"id": "b", "text": BOOKS[0], "school": "north"}]
    fb.reference_build(library, folder / "school.ref", jobs=1, restart=True)
    path = str(folder / "school.ref")
    with_all, _ = scored(log, originality(path, levels=3))
    without, _ = scored(log, originality([path], levels="3", exclude_same="school"))
    assert with_all["tide"].as_dict()["uniqueness_3"] < 1
    # All that the reference holds is of the text's own school.
    assert without["tide"].reason == "no_known_words"


def test_what_is_wrong_is_a_sentence_and_not_a_traceback(log: EvalLog, folder: Path):
    done = inspect(folder, log, "-S", "reference=nosuch.ref",
                   program=INSTALLED.with_name("inspect"))  # fmt: skip
    assert done.returncode != 0
    assert "not a reference corpus" in " ".join(done.stdout.split())
    with pytest.raises(PrerequisiteError, match="did you mean `exclude`"):
        originality("books.ref", exclud="auto")
    with pytest.raises(PrerequisiteError, match="no such instrument; the registered ones are"):
        instrument("nosuch")


def test_profile_and_fluency_are_those_of_the_texts(log: EvalLog, small_model: Path):
    scores, metrics = scored(log, profile(grammar="none"))
    (expected,) = fb.profile({"tide": TIDE}, grammar="none", jobs=1).profiles
    found = scores["tide"].as_dict()
    for name, value in expected.values.items():
        assert found[name] == value or (value is None and math.isnan(float(found[name] or 0)))
    assert (scores["tide"].metadata or {})["missing"]["grammaticality"] == "not_measured"
    assert metrics["grammaticality missing"] == 5
    assert "grammaticality" not in metrics, "nothing was measured: no mean, and not 0"
    scores, _ = scored(log, fluency(str(small_model)))
    with SurprisalModel(small_model) as model:
        measure = FluencyMeasure(model, load_pipeline(("senter",)))
        (fluent,) = measure.measure([Document("tide", TIDE)])
    assert scores["tide"].as_dict()["bits_per_word"] == fluent.bits_per_word


class Adverbs:
    """The share of words in -ly."""

    id, title, citation, methods = "adverbs", "Adverbs", "", ""
    figures = (instruments.Figure("share", "Words in -ly"),)
    signature = Signature.of("adverbs")

    def measure(self, documents: Sequence[Document]) -> Iterator[Sequence[Measurement]]:
        for document in documents:
            words = document.text.split()
            share = sum(w.endswith("ly") for w in words) / len(words) if words else None
            reason = None if words else "no_words"
            yield [
                Measurement(document.id, "adverbs", "share", "fabula", share, reason, (), None,
                            str(self.signature))
            ]  # fmt: skip


def test_a_registered_instrument_is_a_scorer(log: EvalLog, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(instruments._OWN, "adverbs", Adverbs())
    scores, metrics = scored(log, instrument("adverbs"))
    assert scores["tin"].as_dict() == {"share": 1 / 16}
    assert scores["empty"].reason == "no_words"
    assert metrics["share missing"] == 2


def test_what_was_not_written_or_withheld_is_no_text(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(instruments._OWN, "adverbs", Adverbs())
    withheld = ModelOutput.from_content("mock", "Once", stop_reason="content_filter")
    texts = {"blocked": withheld, "nothing": ModelOutput(model="mock")}
    log = log_of(folder, texts, fail_on_error=False)
    scores, metrics = scored(log, instrument("adverbs"))
    assert [one.reason for one in scores.values()] == ["blocked", "no_text"]
    assert metrics == {"share missing": 2}


def test_a_mean_leaves_out_what_is_missing_and_draws_samples_whole():
    def given(n: int, n_epochs: int) -> list[SampleScore]:
        scores = [Score(value={"a": float(k), "b": math.nan}) for k in range(n)]
        return [SampleScore(score=one, sample_id=k % n) for k, one in enumerate(scores * n_epochs)]

    nine, ten = figures()(given(9, 5)), figures()(given(10, 5))
    assert nine == {"a": 4, "b missing": 45}, "45 scores, but of nine samples only"
    once = figures()(given(10, 1))
    assert (ten["a low"], ten["a high"]) == (once["a low"], once["a high"])
    assert once["a low"] < once["a"] == 4.5 < once["a high"]
    unscored = [SampleScore(score=Score(value={"a": math.nan}), sample_id=0)]
    assert figures()(unscored) == {"a missing": 1}

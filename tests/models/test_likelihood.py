"""Likelihoods of given texts: a tiny random model beside a slow oracle."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.models.conftest import TEXT
from tests.tiny_gguf import MARK, slow_logits, write_tiny_gguf

from fabula.models import surprisal
from fabula.models.local import LocalModel
from fabula.models.surprisal import Likelihood, OutputLayer, SurprisalModel

pytest.importorskip("tokenizers", reason="it spells the tiny model's words")
pytest.importorskip("gguf", reason="likelihoods need what 'fabula[local]' installs")
pytest.importorskip("onnxruntime", reason="likelihoods need what 'fabula[local]' installs")


def by_the_book(logits: Sequence[Sequence[float]], tokens: Sequence[int]) -> NDArray[np.float64]:
    """Log p, log rank, mean and variance of log p as their definitions read, in float64."""
    rows = []
    for row, token in zip(logits, tokens, strict=True):
        total = math.log(math.fsum(math.exp(x - max(row)) for x in row)) + max(row)
        log_p = [x - total for x in row]
        rank = 1 + sum(x > row[token] for x in row)
        mean = math.fsum(math.exp(x) * x for x in log_p)
        variance = math.fsum(math.exp(x) * (x - mean) ** 2 for x in log_p)
        rows.append([log_p[token], math.log(rank), mean, variance])
    return np.array(rows)


def rows(path: Path, windows: Sequence[tuple[list[int], int]]) -> NDArray[np.float64]:
    """Of windows of tokens, each scored from its n-th token on, by the weights in float64."""
    found = []
    for tokens, n_known in windows:
        logits = slow_logits(path, tokens[:-1])[n_known - 1 :]
        found.append(by_the_book(logits.tolist(), tokens[n_known:]))
    return np.concatenate(found)


def tokens_of(model: SurprisalModel, text: str) -> list[int]:
    return model._opened.tokenise(text)[0]


def assert_alike(one: Likelihood, other: Likelihood) -> None:
    assert one.n_tokens == other.n_tokens
    assert one.missing_reason is other.missing_reason is None
    assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-4)
    # Two tokens that are equally probable may change places where the last digit differs.
    assert one.log_rank == pytest.approx(other.log_rank, abs=1e-2)
    assert one.curvature == pytest.approx(other.curvature, abs=1e-3)


def check(model: SurprisalModel, expected: NDArray[np.float64]) -> None:
    """Its figures of the text, and of each token that is not only read, are these."""
    log_p, log_rank, mean, variance = expected.T
    curvature = (log_p.sum() - mean.sum()) / math.sqrt(variance.sum())
    figures = Likelihood(len(log_p), log_p.mean(), log_rank.mean(), curvature)
    assert_alike(model.likelihood(TEXT), figures)
    nats = model.score(TEXT).nats
    is_read = len(nats) - len(log_p)
    assert np.isnan(nats[:is_read]).all()
    assert nats[is_read:] == pytest.approx(-log_p, abs=0.001)


def test_the_figures_are_those_of_a_slow_reading(plain: Path, marked: Path, tmp_path: Path):
    """Without a mark of the beginning, the first token is only read; matrices may be tied."""
    tied = write_tiny_gguf(tmp_path / "tied.gguf", has_mark=True, is_tied=True)
    for path, mark in ((plain, []), (marked, [MARK]), (tied, [MARK])):
        with SurprisalModel(path) as model:
            tokens = tokens_of(model, TEXT)
            check(model, rows(path, [(mark + tokens, 1)]))
            # " t" is one token, in `over to`.
            assert len(tokens) == len(TEXT) - 1
            assert model.likelihood(TEXT).n_tokens == len(tokens) - (not mark)
        assert model.name == LocalModel(path).name


@pytest.mark.parametrize("has_mark", [False, True])
def test_windows_give_each_token_half_a_context(plain: Path, marked: Path, has_mark: bool):
    path, mark = (marked, [MARK]) if has_mark else (plain, [])
    n_window = 15 - len(mark)
    n_again = math.ceil(n_window / 2)
    with SurprisalModel(path, max_context=15) as model:
        tokens = tokens_of(model, TEXT)
        parts, start, end = [(mark + tokens[:n_window], 1)], 0, n_window
        while end < len(tokens):
            start, end = end - n_again, min(end - n_again + n_window, len(tokens))
            parts.append((mark + tokens[start:end], len(mark) + n_again))
        check(model, rows(path, parts))


def test_steps_chunks_threads_and_company_change_no_byte(
    marked: Path, monkeypatch: pytest.MonkeyPatch
):
    texts = [TEXT, TEXT * 5, "", "sea", "\ud800 half", TEXT[::-1]]
    with SurprisalModel(marked) as model:
        found = list(map(model.likelihood, texts))
        assert list(map(model.likelihood, reversed(texts))) == found[::-1]
        monkeypatch.setenv("FABULA_THREADS", "1")
        assert list(map(model.likelihood, texts)) == found
        monkeypatch.setattr(surprisal, "_STEP_FLOATS", 3 * 258)
        monkeypatch.setattr(surprisal, "_CHUNK_FLOATS", 7 * 258)
        monkeypatch.setattr(surprisal, "_SCORED_TOKENS", 16)
        for one, other in zip(map(model.likelihood, texts), found, strict=True):
            assert one.missing_reason == other.missing_reason
            if one.missing_reason is None:
                assert_alike(one, other)


def test_a_bias_and_a_soft_cap_are_in_the_figures(monkeypatch: pytest.MonkeyPatch):
    draw = np.random.default_rng(1)
    matrix = draw.normal(0, 1, (11, 4)).astype(np.float32)
    bias = draw.normal(0, 1, 11).astype(np.float32)
    states = draw.normal(0, 3, (7, 4)).astype(np.float32)
    tokens = draw.integers(11, size=7).tolist()
    for b, cap in ((None, None), (bias, None), (bias, 2.0)):
        logits = states.astype(np.float64) @ matrix.T.astype(np.float64)
        logits = logits if b is None else logits + b
        logits = logits if cap is None else cap * np.tanh(logits / cap)
        layer = OutputLayer(matrix, b, cap, 128)
        expected = by_the_book(logits.tolist(), tokens)
        assert layer.likelihoods(states, tokens) == pytest.approx(expected, abs=1e-5)
        assert layer.surprisals(states, tokens) == pytest.approx(-expected[:, 0], abs=1e-5)
        with monkeypatch.context() as patch:
            patch.setattr(surprisal, "_CHUNK_FLOATS", 2 * 11)
            one, three = (layer.surprisals(states, tokens, n_threads=n) for n in (1, 3))
        assert one == pytest.approx(-expected[:, 0], abs=1e-5)
        assert one.tobytes() == three.tobytes()
    assert layer.likelihoods(states[:0], []).shape == (0, 4)
    assert layer.surprisals(states[:0], []).shape == (0,)


def test_what_cannot_be_scored_has_a_reason(plain: Path, marked: Path):
    with SurprisalModel(plain) as model:
        assert model.likelihood("") == Likelihood(0, missing_reason="the text has no tokens")
        one = model.likelihood("a")
        assert (one.n_tokens, one.log_likelihood, one.curvature) == (0, None, None)
        assert "with nothing before it" in str(one.missing_reason)
        assert model.likelihood("\udfff!").missing_reason is None
        # Letters that spell a control token are letters.
        assert model.likelihood("a<s>").n_tokens == 3
    with SurprisalModel(marked) as model:
        assert model.likelihood("T").n_tokens == 1


def test_a_model_without_doubt_has_no_curvature():
    certain = np.full((2, 5), -np.inf, np.float32)
    certain[:, 3] = 1.0
    found = Likelihood.of(surprisal._likelihoods(certain.copy(), np.array([3, 3])))
    assert (found.n_tokens, found.log_likelihood, found.log_rank) == (2, 0.0, 0.0)
    assert found.curvature is None
    assert "certain" in str(found.missing_reason)
    impossible = Likelihood.of(surprisal._likelihoods(certain.copy(), np.array([3, 1])))
    assert impossible.log_likelihood is None
    assert "finite" in str(impossible.missing_reason)

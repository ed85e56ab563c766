"""Likelihoods of given texts: a tiny random model beside slow oracles, then the embedded one."""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tiny_gguf import byte_words, write_tiny_gguf

from fabula.errors import ModelError
from fabula.models import likelihood as module
from fabula.models.likelihood import Likelihood, LikelihoodModel
from fabula.models.local import LocalModel, embedded_model
from fabula.models.surprisal import SurprisalModel

WHY = "likelihoods need what 'fabula[neural]' installs"
torch = pytest.importorskip("torch", reason=WHY)
transformers = pytest.importorskip("transformers", reason=WHY)
gguf = pytest.importorskip("gguf", reason=WHY)
pytest.importorskip("accelerate", reason=WHY)

MARK = 256
TEXT = "The lamp went out. Nobody rowed over to see why."


def save_tiny(folder: Path, *, has_mark: bool) -> Path:
    """A GPT-2 of two layers and 64 places over single bytes, with weights that know nothing."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    words = {word: number for number, word in enumerate(byte_words())}
    tokenizer = Tokenizer(models.BPE(words, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if has_mark:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", MARK)]
        )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>"
    ).save_pretrained(folder)
    config = transformers.GPT2Config(
        vocab_size=257, n_positions=64, n_embd=32, n_layer=2, n_head=2, initializer_range=0.4,
        bos_token_id=MARK, eos_token_id=MARK,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(7)
        transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("tiny") / "Plain", has_mark=False)


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("tiny") / "Marked", has_mark=True)


def tokens_of(text: str) -> list[int]:
    words = {word: number for number, word in enumerate(byte_words())}
    tokenizer = transformers.convert_slow_tokenizer.bytes_to_unicode()
    return [words[tokenizer[byte]] for byte in text.encode()]


def distribution(network: Any, before: list[int]) -> list[float]:
    """Log-probabilities of the next token: a softmax by the book, one token at a time."""
    with torch.no_grad():
        logits = [float(x) for x in network(torch.tensor([before])).logits[0, -1]]
    total = math.fsum(math.exp(x) for x in logits)
    return [x - math.log(total) for x in logits]


def oracle(network: Any, contexts: list[tuple[list[int], int]]) -> Likelihood:
    """The three figures as their definitions read, from what stands before each token."""
    log_ps, log_ranks, means, variances = [], [], [], []
    for before, token in contexts:
        row = distribution(network, before)
        log_ps.append(row[token])
        log_ranks.append(math.log(1 + sum(other > row[token] for other in row)))
        mean = sum(math.exp(x) * x for x in row)
        means.append(mean)
        variances.append(sum(math.exp(x) * (x - mean) ** 2 for x in row))
    n = len(contexts)
    curvature = (sum(log_ps) - sum(means)) / math.sqrt(sum(variances))
    return Likelihood(n, sum(log_ps) / n, sum(log_ranks) / n, curvature)


def network_of(folder: Path) -> Any:
    return transformers.GPT2LMHeadModel.from_pretrained(folder).eval()


def assert_alike(one: Likelihood, other: Likelihood) -> None:
    assert one.n_tokens == other.n_tokens
    assert one.missing_reason is other.missing_reason is None
    assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-4)
    # Two tokens that are equally probable may change places where the last digit differs.
    assert one.log_rank == pytest.approx(other.log_rank, abs=1e-2)
    assert one.curvature == pytest.approx(other.curvature, abs=1e-3)


def test_the_figures_are_those_of_a_slow_reading(plain: Path) -> None:
    tokens = tokens_of(TEXT)
    contexts = [(tokens[:t], tokens[t]) for t in range(1, len(tokens))]
    found = LikelihoodModel(plain).score(TEXT)
    assert_alike(found, oracle(network_of(plain), contexts))
    assert found.n_tokens == len(TEXT) - 1
    assert found.log_likelihood is not None
    assert found.log_likelihood < -1


def test_the_first_token_counts_where_a_mark_stands_before_it(marked: Path) -> None:
    tokens = tokens_of(TEXT)
    contexts = [([MARK, *tokens[:t]], tokens[t]) for t in range(len(tokens))]
    model = LikelihoodModel(marked)
    found = model.score(TEXT)
    assert_alike(found, oracle(network_of(marked), contexts))
    assert found.n_tokens == len(TEXT)
    assert model.score("T").n_tokens == 1
    assert model.score("").missing_reason == "the text has no tokens"


@pytest.mark.parametrize("has_mark", [False, True])
def test_windows_give_each_token_half_a_context(
    plain: Path, marked: Path, monkeypatch: pytest.MonkeyPatch, has_mark: bool
) -> None:
    folder, mark = (marked, [MARK]) if has_mark else (plain, [])
    n_window = 15 - len(mark)
    n_again = math.ceil(n_window / 2)
    tokens = tokens_of(TEXT)
    contexts, start, end = [], 0, n_window
    for t in range(0 if has_mark else 1, len(tokens)):
        if t == end:
            start, end = end - n_again, end - n_again + n_window
        assert t < n_window or t - start >= n_again
        contexts.append(([*mark, *tokens[start:t]], tokens[t]))
    narrow = LikelihoodModel(folder, max_context=15)
    assert narrow.context_tokens == 15
    found = narrow.score(TEXT)
    assert_alike(found, oracle(network_of(folder), contexts))
    # What fits into one window is the same with and without; what does not, is not.
    whole = LikelihoodModel(folder)
    assert whole.context_tokens == 64
    assert narrow.score(TEXT[:n_window]) == whole.score(TEXT[:n_window])
    assert found.n_tokens == whole.score(TEXT).n_tokens
    assert found.log_likelihood != whole.score(TEXT).log_likelihood
    # Steps and chunks are for memory only.
    monkeypatch.setattr(module, "_STEP_TOKENS", 4)
    monkeypatch.setattr(module, "_CHUNK_FLOATS", 3 * 257)
    assert_alike(narrow.score(TEXT), found)
    assert_alike(whole.score(TEXT * 4), LikelihoodModel(folder).score(TEXT * 4))


def test_a_text_has_the_same_likelihood_in_any_company(marked: Path) -> None:
    texts = [TEXT, TEXT * 5, "", "sea", "\ud800 half", TEXT[::-1]]
    model = LikelihoodModel(marked)
    alone = [LikelihoodModel(marked).score(text) for text in texts]
    assert list(map(model.score, texts)) == alone
    assert list(map(model.score, reversed(texts))) == alone[::-1]
    n_before = torch.get_num_threads()
    model.score(TEXT)
    assert torch.get_num_threads() == n_before


def test_what_cannot_be_scored_has_a_reason(plain: Path) -> None:
    model = LikelihoodModel(plain)
    nothing = model.score("")
    assert nothing == Likelihood(0, None, None, None, "the text has no tokens")
    one = model.score("a")
    assert (one.n_tokens, one.log_likelihood, one.curvature) == (0, None, None)
    assert "with nothing before it" in str(one.missing_reason)
    assert model.score("\udfff!").missing_reason is None
    # Letters that spell a control token are letters.
    assert model.score("a<s>").n_tokens == 3


def test_a_model_without_doubt_has_no_curvature() -> None:
    certain = torch.full((2, 5), -math.inf)
    certain[:, 3] = 1.0
    found = module._likelihood(list(module._figures(torch, certain, torch.tensor([3, 3]))))
    assert (found.n_tokens, found.log_likelihood, found.log_rank) == (2, 0.0, 0.0)
    assert found.curvature is None
    assert "certain" in str(found.missing_reason)
    impossible = module._likelihood(list(module._figures(torch, certain, torch.tensor([3, 1]))))
    assert impossible.log_likelihood is None
    assert "finite" in str(impossible.missing_reason)


def test_a_model_has_a_name_and_must_be_whole(
    plain: Path, tiny_gguf: Callable[[bool], Path], tmp_path: Path
) -> None:
    name = LikelihoodModel(plain).name
    assert name.startswith("local/plain@")
    assert name == LikelihoodModel(str(plain)).name
    from safetensors.numpy import load_file, save_file

    cut = save_tiny(tmp_path / "plain", has_mark=False)
    weights = load_file(cut / "model.safetensors")
    del weights["transformer.h.1.mlp.c_fc.weight"]
    save_file(weights, cut / "model.safetensors", {"format": "pt"})
    assert LikelihoodModel(cut).name != name
    with pytest.raises(ModelError, match=r"incomplete; it lacks transformer\.h\.1\.mlp"):
        LikelihoodModel(cut).score(TEXT)
    (cut / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match="cannot load"):
        LikelihoodModel(cut).score(TEXT)
    half = tmp_path / "half.gguf"
    half.write_bytes(tiny_gguf(False).read_bytes()[:2000])
    with pytest.raises(ModelError, match="cannot load"):
        LikelihoodModel(half).score(TEXT)
    with pytest.raises(ModelError, match=r"no config\.json"):
        LikelihoodModel(tmp_path)
    with pytest.raises(ModelError, match="no such model file"):
        LikelihoodModel(tmp_path / "none.gguf")
    with pytest.raises(ModelError, match="too short"):
        LikelihoodModel(plain, max_context=3)


@pytest.mark.parametrize("name", ["torch", "transformers", "gguf", "accelerate"])
def test_a_missing_library_is_named_with_its_remedy(
    tiny_gguf: Callable[[bool], Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModelError, match=rf"need {name}; run: pip install 'fabula\[neural\]'"):
        LikelihoodModel(tiny_gguf(False)).score(TEXT)


@pytest.fixture(scope="module")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Path]:
    """A Llama of two layers over single bytes, in float32, as llama.cpp reads it."""
    folder = tmp_path_factory.mktemp("gguf")

    def write(has_mark: bool) -> Path:
        path = folder / f"Tiny-{has_mark}.gguf"
        if not path.exists():
            write_tiny_gguf(path, has_mark=has_mark)
        return path

    return write


def next_of_llama_cpp(path: Path, prompt: str) -> list[dict[str, Any]]:
    """The likeliest next tokens, as llama.cpp sees them: `id` and `logprob`, best first."""

    async def ask() -> Any:
        async with LocalModel(path) as model:
            request = {"prompt": prompt, "max_tokens": 1, "logprobs": 200, "temperature": 0.0}
            return await asyncio.to_thread(model._server.handle_completions, request)

    reply = asyncio.run(ask())
    reply = json.loads(reply) if isinstance(reply, str | bytes) else reply
    best: list[dict[str, Any]] = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    return best


def differences(model: LikelihoodModel, prompt: str) -> Any:
    """How far the log-probability of each of llama.cpp's next tokens is from what it is here."""
    reader = model._reader
    tokens = torch.tensor([reader.beginning + reader.tokens_of(prompt)])
    with torch.inference_mode():
        row = torch.log_softmax(reader._network(tokens).logits[0, -1], -1)
    theirs = next_of_llama_cpp(model.path, prompt)
    assert len(theirs) == 200
    assert int(row.argmax()) == theirs[0]["id"]
    return np.abs([float(row[one["id"]]) - one["logprob"] for one in theirs])


@pytest.mark.parametrize("has_mark", [False, True])
def test_float32_weights_mean_to_llama_cpp_what_they_mean_here(
    tiny_gguf: Callable[[bool], Path], has_mark: bool
) -> None:
    pytest.importorskip("xllamacpp", reason="the other reader of a GGUF")
    model = LikelihoodModel(tiny_gguf(has_mark))
    assert model.context_tokens == 128
    found = model.score(TEXT)
    # " t" is one token, in `over to`.
    assert found.n_tokens == len(TEXT) - 1 - (not has_mark)
    assert differences(model, TEXT).max() < 0.02


@pytest.fixture(scope="module")
def embedded() -> LikelihoodModel:
    """To unpack its weights takes twenty seconds."""
    try:
        return LikelihoodModel("local")
    except ModelError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_llama_cpp_reads_the_embedded_model_as_torch_does(
    embedded: LikelihoodModel, examples: Path
) -> None:
    pytest.importorskip("xllamacpp", reason="the other reader of a GGUF")
    text = (examples / "the-count.txt").read_text(encoding="utf-8")[:1000]
    reader = embedded._reader
    by_torch = [-row[0] for row in reader.figures(reader.tokens_of(text))]
    with SurprisalModel("local") as model:
        apart = np.abs(model.score(text).nats[1:] - by_torch)
    # llama.cpp rounds what flows between 4-bit weights to 8 bits. Seen: 0.046 on average, 0.26.
    assert apart.mean() < 0.1
    assert apart.max() < 0.6


@pytest.mark.slow
def test_the_embedded_model_prefers_prose_to_its_shuffled_words(
    embedded: LikelihoodModel, examples: Path
) -> None:
    model = embedded
    assert model.name == LocalModel(embedded_model()).name
    prose = (examples / "the-count.txt").read_text(encoding="utf-8")[:600]
    words = prose.split()
    random.Random(5).shuffle(words)
    written, shuffled = map(model.score, [prose, " ".join(words)])
    for one in (written, shuffled):
        assert one.log_likelihood is not None
        assert one.log_rank is not None
        assert one.curvature is not None
    assert -4.5 < written.log_likelihood < -2.5
    assert written.log_likelihood > shuffled.log_likelihood + 1
    assert written.log_rank < shuffled.log_rank
    assert written.curvature > shuffled.curvature
    assert model.score(prose) == written
    assert model.context_tokens == 8192
    # llama.cpp rounds what flows between 4-bit weights to 8 bits, which moves its own figures.
    pytest.importorskip("xllamacpp", reason="the other reader of a GGUF")
    apart = differences(model, "The capital of France is")
    assert apart.mean() < 0.2
    assert apart.max() < 0.6

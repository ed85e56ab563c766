"""Surprisals of given texts: a tiny random model beside slow oracles, then the embedded one."""

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.conftest import if_installed
from tests.models.conftest import TEXT
from tests.tiny_gguf import MARK, N_DIMENSIONS, write_tiny_gguf

from fabula.core.cached_results import CachedResults
from fabula.core.errors import CallFailed, ModelError
from fabula.models import llama, surprisal
from fabula.models.llama import Llama, LlamaServer
from fabula.models.surprisal import SurprisalModel, TokenSurprisal
from fabula.text.sentences import encodable

pytest.importorskip("tokenizers", reason="it spells the tiny model's words")
gguf = pytest.importorskip("gguf", reason="surprisals need what 'fabula[local]' installs")
pytest.importorskip("xllamacpp", reason="surprisals need what 'fabula[local]' installs")


@pytest.fixture(scope="module", params=["bytes", "spaced"])
def tiny(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("tiny") / "Tiny.gguf"
    with SurprisalModel(
        write_tiny_gguf(path, has_mark=True, is_spaced=request.param == "spaced")
    ) as model:
        yield model


@pytest.fixture(scope="module")
def embedded() -> Iterator[SurprisalModel]:
    with if_installed(lambda: SurprisalModel("local")) as model:
        yield model


@pytest.fixture
def n_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From which token on each step reads."""
    found: list[int] = []
    step = Llama._step
    monkeypatch.setattr(
        Llama, "_step", lambda self, *given: found.append(given[1]) or step(self, *given)
    )
    return found


def test_a_bias_and_a_soft_cap_are_found(tmp_path: Path):
    bias = np.arange(258, dtype=np.float32)

    def change(writer: Any) -> None:
        writer.add_tensor("output.bias", bias)
        writer.add_final_logit_softcapping(30.0)

    path = write_tiny_gguf(tmp_path / "b.gguf", has_mark=True, change=change)
    layer = surprisal.read_output_layer(path)
    assert layer.bias.tolist() == bias.tolist()
    assert (layer.softcap, layer.context_tokens) == (30.0, 128)


@pytest.mark.parametrize("is_here", [True, False])
def test_the_next_draft_costs_the_windows_from_the_change_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_here: bool
):
    path = write_tiny_gguf(tmp_path / "Draft.gguf", has_mark=True, is_spaced=not is_here)
    draft = "The lamp went out. Nobody rowed over. "  # A byte a token, but for " t".
    engine: Any = Llama if is_here else LlamaServer
    n_read = []
    read = engine.states
    monkeypatch.setattr(
        engine, "states", lambda self, tokens, *more: n_read.append(len(tokens))
        or read(self, tokens, *more),
    )  # fmt: skip
    with SurprisalModel(path, max_context=17) as model:
        first = model.score(draft)
        n_first = len(n_read)
        assert model.score(draft).nats.tobytes() == first.nats.tobytes()
        assert len(n_read) == n_first
        later = draft[:-4] + "ed, and on."
        found = model.score(later)
        n_second = len(n_read) - n_first
        other = model.score("W" + draft[1:])
    assert 0 < n_second < n_first
    with SurprisalModel(path, max_context=17) as fresh:
        assert found.nats.tobytes() == fresh.score(later).nats.tobytes()
    # A change at the beginning is seen by what comes after it.
    assert other.nats[4] != first.nats[4]


def test_a_window_that_begins_as_the_last_one_is_read_from_the_change_on(
    marked: Path, monkeypatch: pytest.MonkeyPatch, n_read: list[int]
):
    monkeypatch.setattr(llama, "STEP_TOKENS", 8)
    monkeypatch.setattr(surprisal, "_SCORED_TOKENS", 16)
    drafts = [TEXT, TEXT[:30] + "!", TEXT, TEXT[:7] + TEXT, "Nobody.", TEXT[:16], TEXT[:17], TEXT]
    with SurprisalModel(marked) as model:
        found = []
        for draft in drafts:
            found.append(model.score(draft).nats.tobytes())
            model._known.clear()
    assert n_read[: len(TEXT) // 8 + 1] == [*range(0, len(TEXT), 8), 24]
    for draft, nats in zip(drafts, found, strict=True):
        with SurprisalModel(marked) as fresh:
            assert fresh.score(draft).nats.tobytes() == nats


def test_what_was_read_before_is_not_read_again_by_another_process(
    marked: Path, tmp_path: Path, n_read: list[int]
):
    def nats(text: str, *, store: CachedResults | None = None) -> tuple[bytes, int]:
        n_read.clear()
        with SurprisalModel(marked, max_context=32, store=store) as model:
            found = model.score(text).nats.tobytes()
        return found, len(n_read)

    text = TEXT + TEXT
    expected, n_whole = nats(text)
    cache = tmp_path / "cache"
    assert nats(text, store=CachedResults(cache)) == (expected, n_whole)
    assert nats(text, store=CachedResults(cache)) == (expected, 0)
    # Windows before a change are known; another model's are not.
    later, n_later = nats(text[:-5] + "no?", store=CachedResults(cache))
    assert later == nats(text[:-5] + "no?")[0]
    assert 0 < n_later < n_whole


def test_a_window_of_another_length_is_not_found(marked: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CachedResults, "find", lambda self, keys: [b"\0" * 8])
    monkeypatch.setattr(CachedResults, "keep", lambda self, results: None)
    with SurprisalModel(marked, store=CachedResults()) as model, SurprisalModel(marked) as fresh:
        assert model.score(TEXT).nats.tobytes() == fresh.score(TEXT).nats.tobytes()


@given(st.integers(0, 200), st.integers(3, 60))
def test_every_token_is_scored_in_one_window(n_tokens: int, n_window: int):
    seen = []
    for start, first, end in surprisal.windows(n_tokens, n_window):
        assert 0 < end - start <= n_window
        assert start == 0 or first - start >= n_window / 2
        seen += range(first, end)
    assert seen == list(range(n_tokens))


HARD = [
    "🙂", "👩‍👩‍👧", "🇫🇷", "e\u0301", "\u0301", "नि", "שלום", "\u202eabc", "\x00", "\ud800",
    "\udfff", "<s>", "<|im_start|>", "</s>", "<0x41>", "▁", "Ġ", "  ", "\n\n", "\r\n", " t", "漢字",
    "\ufeff", "\U0010ffff", "don’t", "<|endoftext|>",
]  # fmt: skip
TEXTS = st.lists(
    st.sampled_from(HARD) | st.text(st.characters(codec=None), max_size=8), max_size=12
).map("".join)


def check_places(found: TokenSurprisal, text: str) -> None:
    """Tokens cover the text from end to end, and overlap in a split character at most."""
    assert len(found.starts) == len(found.ends) == len(found.nats)
    if not text:
        assert set(found.ends.tolist()) <= {0}
        return
    spans = list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    for (a, b), (c, d) in pairwise(spans):
        assert a <= c <= b <= d
        assert c in (b, b - 1)


@settings(max_examples=60)
@given(text=TEXTS)
@example(text="".join(HARD))
@example(text="")
@example(text=" ")
@example(text="  a")
def test_tokens_cover_any_text(tiny: SurprisalModel, text: str):
    found = tiny.score(text)
    check_places(found, text)
    assert np.isfinite(found.nats).all()
    # By hand: each byte is a token, but " t", and, spaced, the space that comes before a text.
    is_byte = (found.ends - found.starts) == 1
    n_bytes = len(encodable(text).encode())
    assert len(found.nats) <= n_bytes + 1
    for k in np.flatnonzero(~is_byte).tolist():
        assert text[found.starts[k] : found.ends[k]] in (" t", ""), k


@settings(max_examples=10)
@given(text=TEXTS)
@example(text="".join(HARD))
def test_the_embedded_models_tokens_cover_any_text(embedded: SurprisalModel, text: str):
    found = embedded.score(text)
    check_places(found, text)
    assert np.isnan(found.nats).sum() == bool(text)
    # An oracle that adds up bytes one token at a time.
    read, _, pieces = embedded._read(text)
    owner = [k for k, character in enumerate(read) for _ in character.encode()]
    at = 0
    for piece, start, end in zip(pieces, found.starts, found.ends, strict=True):
        owned = owner[at : at + len(piece)]
        assert (start, end) == (owned[0], owned[-1] + 1)
        at += len(piece)
    assert at == len(owner)


def test_what_a_tokeniser_does_not_know_is_read_as_a_question_mark(
    embedded: SurprisalModel, tmp_path: Path
):
    def same(model: SurprisalModel, text: str, read: str) -> bool:
        found, other = model.score(text), model.score(read)
        assert found.ends[-1] == len(text)
        return found.nats.tobytes() == other.nats.tobytes()

    # The embedded model has no token for the byte F1, and llama.cpp would leave it out.
    assert same(embedded, "He \U00040000 saw 漢 \ud800.", "He ? saw 漢 ?.")
    # SentencePiece writes spaces as ▁, and ▁ as a space.
    path = write_tiny_gguf(tmp_path / "spaced.gguf", has_mark=True, is_spaced=True)
    with SurprisalModel(path) as spaced:
        assert same(spaced, "A ▁ b", "A ? b")


def test_letters_that_spell_a_control_token_are_letters(embedded: SurprisalModel):
    found = embedded.score("He wrote <|im_start|> twice<|endoftext|>")
    assert (found.ends - found.starts).max() < len("<|im_start|>")
    ends_alike = embedded.score("He wrote <|im_start|> twice").nats
    assert len(found.nats) > len(ends_alike) > 5
    assert found.nats[: len(ends_alike)] == pytest.approx(ends_alike, abs=1e-3, nan_ok=True)


@pytest.mark.parametrize("is_packed", [False, True])
def test_llama_cpp_finds_the_same_in_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_packed: bool
):
    """The oracle of the network and of its words is another runtime."""

    def pack(writer: Any) -> None:
        add = writer.add_tensor

        def packed(name: str, values: Any) -> None:
            kind = gguf.GGMLQuantizationType.Q4_1
            if is_packed and name.startswith("blk.") and values.ndim == 2:
                add(name, gguf.quantize(values, kind), raw_dtype=kind)
            else:
                add(name, values)

        writer.add_tensor = packed

    path = write_tiny_gguf(tmp_path / "t.gguf", has_mark=True, change=pack, context_tokens=2048)
    text = f"{TEXT} In 1984, l'été: 漢字 {''.join(HARD).encode(errors='replace').decode()} " * 12
    with SurprisalModel(path) as model:
        found = model.score(text)
    monkeypatch.setattr(surprisal, "llama_layout", lambda path: None)
    with SurprisalModel(path) as model:
        assert model.runtime.startswith("xllamacpp-")
        expected = model.score(text)
    assert len(found.nats) > 2 * surprisal._SCORED_TOKENS
    assert found.starts.tolist() == expected.starts.tolist()
    # llama.cpp rounds to 8 bits between 4-bit weights, and keeps keys and values in 16.
    apart = np.abs(found.nats - expected.nats)
    assert apart.mean() < (0.05 if is_packed else 0.005)


def test_a_model_that_is_more_than_a_llama_is_read_by_llama_cpp(tmp_path: Path):
    def runtime(change: Callable[[Any], None]) -> str:
        path = write_tiny_gguf(tmp_path / "more.gguf", has_mark=False, change=change)
        return SurprisalModel(path).runtime.partition("-")[0]

    assert runtime(lambda writer: None) == "onnxruntime"
    frequencies = np.ones(8, np.float32)
    for change in (
        lambda writer: writer.add_expert_count(2),
        lambda writer: writer.add_rope_scaling_factor(2.0),
        lambda writer: writer.add_rope_dimension_count(8),
        lambda writer: writer.add_tensor("rope_freqs.weight", frequencies),
        lambda writer: writer.add_tokenizer_pre("llama-bpe"),
        lambda writer: writer.add_token_types([1] * MARK + [3, 4]),
        lambda writer: writer.add_string("general.architecture", "qwen2"),
    ):
        assert runtime(change) == "xllamacpp"


@pytest.mark.parametrize(
    ("said", "change"),
    [
        ("(llama.logit_scale)", lambda w: w.add_logit_scale(0.5)),
        ("(output.scale)", lambda w: w.add_tensor("output.scale", np.ones(1, np.float32))),
        ("(grok)", lambda w: w.add_string("general.architecture", "grok")),
        ("left to right", lambda w: w.add_causal_attention(False)),
        ("left to right", lambda w: w.add_decoder_start_token_id(0)),
        ("join its parts", lambda w: w.add_uint16("split.count", 2)),
        (f"({N_DIMENSIONS}) differ in size", lambda w: w.add_embedding_length(32)),
    ],
)
def test_what_is_more_than_a_matrix_is_refused(
    tmp_path: Path, said: str, change: Callable[[Any], None]
):
    path = write_tiny_gguf(tmp_path / "more.gguf", has_mark=False, change=change)
    with pytest.raises(ModelError) as caught, SurprisalModel(path):
        pass
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_what_cannot_be_read_is_said_in_a_sentence(plain: Path, tmp_path: Path):
    false = tmp_path / "false.gguf"
    false.write_bytes(b"PK\x03\x04")
    for path, more, said in (
        (tmp_path / "none.gguf", {}, "no such model file"), (false, {}, "not a GGUF"),
        (plain, {"max_context": 3}, "too short"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=said), SurprisalModel(path, **more):
            pass
    served = write_tiny_gguf(tmp_path / "served.gguf", has_mark=True, is_spaced=True)
    with SurprisalModel(served) as model, pytest.raises(CallFailed, match="too large"):
        # More than a window is refused by llama.cpp, not cut.
        model._opened.states([1] * 200, lambda: None)
    with pytest.raises(RuntimeError, match="open the model first"):
        model.score(TEXT)


@pytest.mark.parametrize(
    ("name", "is_spaced"),
    [("onnxruntime", False), ("tokenizers", False), ("threadpoolctl", False), ("xllamacpp", True)],
)
def test_a_missing_library_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_spaced: bool
):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", has_mark=False, is_spaced=is_spaced)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModelError, match=rf"need {name}; run: pip install 'fabula\[local\]'"):
        SurprisalModel(path).__enter__()

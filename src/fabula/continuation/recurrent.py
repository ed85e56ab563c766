"""A story written word by word by a recurrent network: gated recurrent units over the whole story.

Roemmele, Gordon and Swanson 2017, section 3.3: an embedding of 300, two layers of 500 units, a
softmax over the vocabulary; the context is read, then words are sampled with a temperature until an
end of sentence. Needs torch (extra `[neural]`).

It is trained on 50 stories at a time, with cross-entropy and Adam. Here they are read in parallel
lanes, each from beginning to end, and the gradient goes back through a window of words (truncated
backpropagation), while the state is carried from window to window until the story ends. A free lane
takes the next story, also across epochs, so that no step consists of the end of one long story
alone. After each epoch the held-out stories are evaluated, and the weights with the lowest
perplexity on them are kept.
"""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.continuation.corpus import MAX_TOKENS, UNKNOWN, Corpus
from fabula.continuation.scores import Story
from fabula.core.errors import CorpusError, InputError, ModelError
from fabula.core.packages import needing
from fabula.core.store import NETWORK, checksum, write_whole, writer_lock

MODEL_FILE = "recurrent/model.pt"


@dataclass(frozen=True, slots=True)
class Network:
    """The shape of the network; the defaults are the paper's."""

    n_embedding: int = 300
    n_hidden: int = 500
    n_layers: int = 2

    def __str__(self) -> str:
        return f"{self.n_embedding}-{self.n_layers}x{self.n_hidden}"


def load_torch() -> Any:
    """The module torch. Raises `ModelError` if it is not installed."""
    missing = "the recurrent generator needs torch; run: pip install 'fabula[neural]'"
    return needing("torch", missing, ModelError)


def network_of(shape: Network, n_words: int) -> Any:
    """A torch module: embedding, recurrent layers, and an output layer that scores every word.

    The embedding has one row more than there are words, for the beginning of a story.
    """
    nn = load_torch().nn
    return nn.ModuleDict(
        {
            "embedding": nn.Embedding(n_words + 1, shape.n_embedding),
            "layers": nn.GRU(shape.n_embedding, shape.n_hidden, shape.n_layers, batch_first=True),
            "scores": nn.Linear(shape.n_hidden, n_words),
        }
    )


class Recurrent:
    """The trained network as a generator: one context at a time, on one thread.

    This way a sentence depends neither on what else is generated nor on the number of processors.
    It is what `fabula continuation train --kind recurrent` wrote. Raises `CorpusError`.
    """

    name = "recurrent"

    def __init__(self, corpus: Corpus, temperature: float = 0.7) -> None:
        torch = load_torch()
        path = corpus.folder / MODEL_FILE
        try:
            digest = checksum(path)[:8]
            saved = torch.load(path, map_location="cpu", weights_only=True)
        except FileNotFoundError as error:
            raise CorpusError(
                f"{corpus.folder}: contains no recurrent network; run `fabula continuation train` "
                "with `kind` recurrent"
            ) from error
        except (RuntimeError, EOFError, OSError, pickle.UnpicklingError) as error:
            raise CorpusError(f"{path}: is damaged; train again with `restart`") from error
        if not isinstance(saved, dict) or "vocabulary" not in saved:
            raise CorpusError(f"{path}: contains no recurrent network; {NETWORK.remedy}")
        NETWORK.check(saved, path)
        if saved["vocabulary"] != corpus.digest:
            raise CorpusError(
                f"{path}: trained on other texts than those now in the folder; train again with "
                "`restart`"
            )
        self._network = network_of(Network(**saved["shape"]), len(corpus.vocabulary))
        self._network.load_state_dict(saved["weights"])
        self._network.eval()
        self._vocabulary = corpus.vocabulary
        self._is_end = corpus.vocabulary.are_ends()
        self._is_word = corpus.vocabulary.are_words()
        self._temperature = temperature
        self.signature = f"{saved['signature']}|weights:@{digest}|temperature:{temperature:g}"

    def continue_(self, passage: Story, rng: np.random.Generator) -> str:
        """A sentence sampled word by word."""
        torch = load_torch()
        numbers = [len(self._vocabulary)]
        for sentence in passage.context:
            numbers += self._vocabulary.encode(sentence).tolist()
        written: list[int] = []
        n_threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.inference_mode():
                state = None
                while len(written) < MAX_TOKENS:
                    embedded = self._network["embedding"](torch.tensor([numbers]))
                    hidden, state = self._network["layers"](embedded, state)
                    scores = self._network["scores"](hidden[0, -1]).double().numpy()
                    if not self._is_word[written].any():
                        # A sentence does not end before its first word.
                        scores[self._is_end] = -np.inf
                    # By its probability; never the unknown one.
                    scores[UNKNOWN] = -np.inf
                    edges = np.cumsum(np.exp((scores - scores.max()) / self._temperature))
                    drawn = np.searchsorted(edges, rng.random() * edges[-1], side="right")
                    written.append(int(drawn))
                    if self._is_end[written[-1]]:
                        break
                    numbers = written[-1:]
        finally:
            torch.set_num_threads(n_threads)
        return self._vocabulary.spell(written)


_CHECKPOINT = "recurrent/checkpoint.pt"
_HELD_OUT = 20
"""One story in this many is held out."""
_IGNORED = -1
_MAX_NORM = 5.0


@dataclass(frozen=True, slots=True)
class Training:
    """How the network is trained."""

    n_epochs: int = 3
    n_lanes: int = 50
    """Stories read in parallel (the paper's 50)."""
    window_tokens: int = 50
    learning_rate: float = 1e-3
    seed: int = 0
    precision: str = "auto"
    """`float32`, or `bfloat16` in matrix products; by default, whichever is faster."""
    checkpoint_windows: int = 200


@dataclass(slots=True)
class Progress:
    """How far the training has come, and its loss so far."""

    window: int = 0
    """Windows read, over all epochs."""
    n_windows: int = 0
    """Windows per epoch."""
    log: list[dict[str, float]] = field(default_factory=list)
    """Rows of `n_tokens` and `loss` in nats per token; after each epoch also its number, `epoch`,
    and the `perplexity` of the held-out stories.
    """


def train_recurrent(
    corpus: Corpus,
    training: Training,
    shape: Network | None = None,
    *,
    restart: bool = False,
    report: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Train, or resume from the last checkpoint, and write the best weights to the corpus folder.

    Raises `InputError` for a checkpoint with other settings, `ModelError` without torch.
    """
    torch = load_torch()
    shape = shape or Network()
    folder = (corpus.folder / MODEL_FILE).parent
    with writer_lock(folder / ".lock", str(folder)):
        run = _Run(torch, corpus, training, shape)
        if not restart:
            run.resume()
        run.train(report)
    return run.progress


def _lanes(
    stories: Iterable[NDArray[np.uint32]], n_lanes: int, width: int, start: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]]:
    """Parallel stories, a window at a time. A lane whose story has ended idles until the next.

    Each is (input words, target words, lanes that begin a story): int64 (n_lanes, width) for both
    kinds of words, -1 for a missing target, and bool (n_lanes,).
    """
    waiting = iter(stories)
    lanes: list[tuple[NDArray[np.uint32], int] | None] = [None] * n_lanes
    while True:
        inputs = np.zeros((n_lanes, width), np.int64)
        targets, begins = np.full_like(inputs, _IGNORED), np.zeros(n_lanes, np.bool_)
        for k, lane in enumerate(lanes):
            if lane is None:
                story = next(waiting, None)
                if story is None:
                    continue
                lane, begins[k] = (story, 0), True
            story, at = lane
            part = story[at : at + width]
            inputs[k, 1 : len(part)] = part[:-1]
            inputs[k, 0] = story[at - 1] if at else start
            targets[k, : len(part)] = part
            at += len(part)
            lanes[k] = (story, at) if at < len(story) else None
        if (targets == _IGNORED).all():
            return
        yield inputs, targets, begins


class _Run:
    def __init__(self, torch: Any, corpus: Corpus, training: Training, shape: Network) -> None:
        self._torch, self._corpus, self._training, self._shape = torch, corpus, training, shape
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._precision = training.precision
        if self._precision == "auto":
            # bfloat16 products are 2.2 times as fast, measured on AVX-512.
            on_cpu = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
            is_faster = torch.cuda.is_bf16_supported() if torch.cuda.is_available() else on_cpu()
            self._precision = "bfloat16" if is_faster else "float32"
        torch.manual_seed(training.seed)
        self._network = network_of(shape, len(corpus.vocabulary)).to(self._device)
        self._optimiser = torch.optim.Adam(self._network.parameters(), training.learning_rate)
        self._state: Any = None
        self._best = math.inf
        self.progress = Progress()
        stories = list(_stories(corpus))
        order = np.random.default_rng([training.seed, 0]).permutation(len(stories))
        n_held = max(1, len(stories) // _HELD_OUT)
        if len(stories) <= n_held:
            raise InputError(
                "the texts contain only one story; training needs at least two, one of them for "
                "testing"
            )
        self._held = [stories[k] for k in order[:n_held]]
        self._stories = [stories[k] for k in order[n_held:]]

    @property
    def signature(self) -> str:
        """Everything that determines the weights after a given number of epochs."""
        how = self._training
        return (
            f"recurrent|net:{self._shape}|corpus:{self._corpus.label}|"
            f"lanes:{how.n_lanes}|window:{how.window_tokens}|rate:{how.learning_rate:g}|"
            f"precision:{self._precision}|seed:{how.seed}"
        )

    def resume(self) -> None:
        path = self._corpus.folder / _CHECKPOINT
        if not path.exists():
            return
        saved = self._torch.load(path, map_location=self._device, weights_only=True)
        NETWORK.check(saved, path)
        if saved["signature"] != self.signature:
            raise InputError(
                f"{path}: contains interrupted training with other settings "
                f"({saved['signature']}); repeat its command, or start over with `restart`"
            )
        self._network.load_state_dict(saved["network"])
        self._optimiser.load_state_dict(saved["optimiser"])
        self._state, self._best = saved["state"], saved["best"]
        self.progress = Progress(**saved["progress"])

    def train(self, report: Callable[[Progress], None]) -> None:
        """Process the remaining windows; finished ones are not repeated."""
        how, progress = self._training, self.progress
        tokens_each = how.n_lanes * how.window_tokens
        progress.n_windows = math.ceil(sum(map(len, self._stories)) / tokens_each)
        n_all = how.n_epochs * progress.n_windows
        # The stories of all epochs, each in its own order; and one more, which is not read.
        rngs = (np.random.default_rng([how.seed, 1, k]) for k in range(how.n_epochs + 1))
        read = (self._stories[k] for rng in rngs for k in rng.permutation(len(self._stories)))
        layout = how.n_lanes, how.window_tokens, len(self._corpus.vocabulary)
        for number, (inputs, targets, begins) in enumerate(_lanes(read, *layout)):
            if number < progress.window:
                continue
            if number == n_all:
                return
            loss = self._loss(self._scores(inputs, begins), targets, "mean")
            self._optimiser.zero_grad()
            loss.backward()
            self._torch.nn.utils.clip_grad_norm_(self._network.parameters(), _MAX_NORM)
            self._optimiser.step()
            progress.window += 1
            n_tokens = int((targets != _IGNORED).sum())
            progress.log.append({"n_tokens": n_tokens, "loss": float(loss.detach())})
            if progress.window % progress.n_windows == 0:
                # The weights are kept if the perplexity of the held-out stories, with the unknown
                # word as one word, is the lowest so far.
                state, self._state, total, n_held = self._state, None, 0.0, 0
                with self._torch.no_grad():
                    for inputs, targets, begins in _lanes(self._held, *layout):
                        total += float(self._loss(self._scores(inputs, begins), targets, "sum"))
                        n_held += int((targets != _IGNORED).sum())
                perplexity, self._state = math.exp(total / n_held), state
                epoch = progress.window // progress.n_windows
                progress.log.append({"epoch": epoch, "perplexity": perplexity})
                if perplexity < self._best:
                    self._best = perplexity
                    form = {
                        "shape": asdict(self._shape),
                        "vocabulary": self._corpus.digest,
                        "signature": f"{self.signature}|epoch:{epoch}",
                        "perplexity": perplexity,
                        "weights": self._network.state_dict(),
                    }
                    self._save(MODEL_FILE, form)
                self._save_checkpoint()
            elif progress.window % how.checkpoint_windows == 0:
                self._save_checkpoint()
            report(progress)

    def _scores(self, inputs: NDArray[np.int64], begins: NDArray[np.bool_]) -> Any:
        torch = self._torch
        if self._state is not None:
            goes_on = torch.from_numpy(~begins).to(self._device)
            self._state = self._state.detach() * goes_on[None, :, None].to(self._state.dtype)
        read = torch.from_numpy(inputs).to(self._device)
        is_half = self._precision == "bfloat16"
        with torch.autocast(self._device.type, dtype=torch.bfloat16, enabled=is_half):
            embedded = self._network["embedding"](read)
            hidden, self._state = self._network["layers"](embedded, self._state)
            return self._network["scores"](hidden)

    def _loss(self, scores: Any, targets: NDArray[np.int64], reduction: str) -> Any:
        gold = self._torch.from_numpy(targets).to(self._device)
        return self._torch.nn.functional.cross_entropy(
            scores.float().flatten(0, 1), gold.flatten(), ignore_index=_IGNORED, reduction=reduction
        )

    def _save_checkpoint(self) -> None:
        form = {
            "signature": self.signature,
            "network": self._network.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "state": None if self._state is None else self._state.detach(),
            "best": self._best,
            "progress": asdict(self.progress),
        }
        self._save(_CHECKPOINT, form)

    def _save(self, name: str, form: dict[str, Any]) -> None:
        data = io.BytesIO()
        self._torch.save({**NETWORK.mark, **form}, data)
        write_whole(self._corpus.folder / name, data.getvalue())


def _stories(corpus: Corpus) -> Iterator[NDArray[np.uint32]]:
    """The words of each story, uint32, shape (n_tokens,)."""
    for shard in corpus.shards:
        start = 0
        for story_end in shard.story_ends:
            end = int(shard.token_ends[story_end - 1])
            tokens = np.asarray(shard.tokens[start:end])
            if (tokens != UNKNOWN).any():
                yield tokens
            start = end

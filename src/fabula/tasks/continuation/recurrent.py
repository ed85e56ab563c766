"""A story written word by word by a recurrent network: gated recurrent units over the whole story.

Roemmele, Gordon and Swanson 2017, section 3.3: an embedding of 300, two layers of 500 units, a
softmax over the vocabulary; the context is read, then words are sampled with a temperature until an
end of sentence. Needs torch (extra `[neural]`).
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabula.errors import CorpusError, ModelError
from fabula.formats import NETWORK
from fabula.measures.linguistic.system_scores import Story
from fabula.store import checksum
from fabula.tasks.continuation.corpus import Corpus
from fabula.tasks.continuation.generator_vocabulary import MAX_TOKENS, UNKNOWN, Vocabulary

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
    try:
        import torch
    except ImportError as error:
        raise ModelError(
            "the recurrent generator needs torch; run: pip install 'fabula[neural]'"
        ) from error
    return torch


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
    """

    name = "recurrent"

    def __init__(
        self, network: Any, vocabulary: Vocabulary, signature: str, temperature: float
    ) -> None:
        self._network = network
        self._vocabulary = vocabulary
        self._is_end = vocabulary.are_ends()
        self._is_word = vocabulary.are_words()
        self._temperature = temperature
        self.signature = f"{signature}|temperature:{temperature:g}"

    @classmethod
    def load(cls, corpus: Corpus, *, temperature: float = 0.7) -> Recurrent:
        """Load what `fabula continuation train --kind recurrent` wrote. Raises `CorpusError`."""
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
        shape = Network(**saved["shape"])
        network = network_of(shape, len(corpus.vocabulary))
        network.load_state_dict(saved["weights"])
        network.eval()
        signature = f"{saved['signature']}|weights:@{digest}"
        return cls(network, corpus.vocabulary, signature, temperature)

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
                    written.append(self._draw(scores, rng))
                    if self._is_end[written[-1]]:
                        break
                    numbers = written[-1:]
        finally:
            torch.set_num_threads(n_threads)
        return self._vocabulary.spell(written)

    def _draw(self, scores: Any, rng: np.random.Generator) -> int:
        """Sample a word by its probability; never the unknown one."""
        scores[UNKNOWN] = -np.inf
        weights = np.exp((scores - scores.max()) / self._temperature)
        edges = np.cumsum(weights)
        return int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))

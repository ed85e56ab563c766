"""Client of a served reference over HTTP: replies are checked; failures never count as novelty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError, LookupFailed
from fabula.reference.http_client import LookupServer
from fabula.reference.part_walk import WalkPart
from fabula.reference.parts import Found
from fabula.reference.serving import messages
from fabula.reference.serving.exchange import Asking
from fabula.reference.serving.plausibility import are_ascending, sendable
from fabula.reference.serving.served_passages import ServedPassages
from fabula.types import Document

__all__ = ["ServedPart"]


class ServedPart:
    """The shards behind a service, as one part of a reference.

    Every method raises `LookupFailed` if no valid answer was received in all attempts, `ServerAway`
    after three such failures in a row, and `CorpusError` if the service now serves other documents.
    """

    def __init__(self, server: LookupServer, told: messages.About) -> None:
        self._asking = Asking(server, told)
        self._limits = told.limits

    @property
    def n_documents(self) -> int:
        return self._asking.n_documents

    def close(self) -> None:
        self._asking.close()

    def match(
        self,
        words: Sequence[str],
        places: NDArray[np.int32],
        *,
        exclude: Sequence[int] = (),
        n_threads: int = 1,
    ) -> NDArray[np.int32]:
        """As in every part; input longer than a request is sent in pieces.

        A match that reaches the end of a piece is requested again from its start.
        """
        longest = np.zeros(len(places), np.int32)
        out = self._excluded(exclude)
        # For a text without words there is nothing to request.
        begin = 0 if places.any() else len(places)
        while begin < len(places):
            end = min(len(places), begin + self._limits.max_words)
            body = self._match_body(words, places[begin:end], out)
            while len(body) > self._limits.max_body_bytes and end - begin > 1:
                end = begin + (end - begin) // 2
                body = self._match_body(words, places[begin:end], out)
            found = self._match(body, places[begin:end])
            n_sure = end - begin
            if end < len(places) and places[end]:
                reaching = np.flatnonzero(np.arange(begin, end) + found == end)
                n_sure = int(reaching[0]) if len(reaching) else n_sure
            if not n_sure:
                raise LookupFailed(
                    f"{self._asking.url}: {end - begin:,} consecutive words occur in the "
                    "reference, more than the service accepts in one request; start the service "
                    "with higher limits"
                )
            longest[begin : begin + n_sure] = found[:n_sure]
            begin += n_sure
        return longest

    def find(
        self,
        grams: Sequence[Sequence[str]],
        *,
        limit: int,
        max_places: int,
        exclude: Sequence[int] = (),
    ) -> list[Found]:
        limits = self._limits
        limit = min(limit, self.n_documents)
        n_most = max(1, min(limits.max_grams, limits.max_named // max(1, limit)))
        common = {"limit": limit, "max_places": max_places, "exclude": self._excluded(exclude)}
        out = self._asking.removed.union(exclude)

        def ask(some: Sequence[Sequence[str]]) -> list[Found]:
            def fault(answer: messages.FindAnswer) -> str | None:
                return self._fault_in_found(answer.found, len(some), limit, out)

            body = self._asking.body(
                messages.FindAsked, grams=[sendable(gram) for gram in some], **common
            )
            n_words = sum(map(len, some))
            if len(some) > 1 and (len(body) > limits.max_body_bytes or n_words > limits.max_words):
                half = (len(some) + 1) // 2
                return ask(some[:half]) + ask(some[half:])
            answer = self._asking.ask("v1/find", body, messages.FindAnswer, fault)
            return [
                Found(
                    one.count,
                    one.n_places,
                    one.n_documents,
                    np.array(one.numbers, np.int64),
                    np.array(one.places, np.int64),
                )
                for one in answer.found
            ]

        # In the order of the n-grams, however they are distributed.
        return [one for at in range(0, len(grams), n_most) for one in ask(grams[at : at + n_most])]

    def documents(self, numbers: Sequence[int]) -> list[Document]:
        n_most = self._limits.max_documents
        found: list[Document] = []
        for at in range(0, len(numbers), n_most):
            some = list(numbers[at : at + n_most])

            def fault(
                answer: messages.DocumentsAnswer, wanted: Sequence[int] = tuple(some)
            ) -> str | None:
                return (
                    None
                    if len(answer.documents) == len(wanted)
                    else "documents that were not requested"
                )

            body = self._asking.body(messages.DocumentsAsked, numbers=some)
            answer = self._asking.ask("v1/documents", body, messages.DocumentsAnswer, fault)
            found += (
                Document(one.id, one.text, one.author, one.prompt_id, one.meta)
                for one in answer.documents
            )
        return found

    def numbers_of(self, ids: Sequence[str]) -> list[list[int]]:
        n_most = max(1, self._limits.max_excluded)
        found: list[list[int]] = []
        for at in range(0, len(ids), n_most):
            some = sendable(ids[at : at + n_most])

            def fault(answer: messages.IdsAnswer, n: int = len(some)) -> str | None:
                is_right = len(answer.numbers) == n and all(
                    are_ascending(numbers, self.n_documents, self._asking.removed)
                    for numbers in answer.numbers
                )
                return None if is_right else "invalid document numbers"

            body = self._asking.body(messages.IdsAsked, ids=some)
            found += self._asking.ask("v1/ids", body, messages.IdsAnswer, fault).numbers
        return found

    def passages(self, key: str) -> ServedPassages:
        """Passages with the settings `key`. Raises `InputError` if the service has none."""
        return ServedPassages(self._asking, key)

    def walks(self) -> WalkPart:
        """Not supported: raises `InputError`."""
        raise InputError(
            f"{self._asking.url}: only its passages can be searched over HTTP; leave out "
            "`near_search` index, or use the folder of a corpus on a local disk"
        )

    def _match_body(
        self, words: Sequence[str], places: NDArray[np.int32], exclude: list[int]
    ) -> bytes:
        used, renumbered = np.unique(places, return_inverse=True)
        # 0 is a gap and remains 0; the others are counted from 1.
        shift = 0 if len(used) and used[0] == 0 else 1
        known = sendable([words[k - 1] for k in used.tolist() if k])
        return self._asking.body(
            messages.MatchAsked, words=known, places=(renumbered + shift).tolist(), exclude=exclude
        )

    def _match(self, body: bytes, places: NDArray[np.int32]) -> NDArray[np.int32]:
        # The maximum extent of a match: up to the next gap.
        n = len(places)
        gaps = np.where(places == 0, np.arange(n), n)
        room = np.minimum.accumulate(gaps[::-1])[::-1] - np.arange(n)

        def fault(answer: messages.MatchAnswer) -> str | None:
            if len(answer.lengths) != n:
                return f"{len(answer.lengths)} lengths for {n} words"
            lengths = np.array(answer.lengths, np.int64)
            is_short = bool((lengths > room).any())
            # Every part of an n-gram that occurs must occur too.
            falls = bool((lengths[1:] < lengths[:-1] - 1).any())
            return "lengths that no text can have" if is_short or falls else None

        return np.array(
            self._asking.ask("v1/match", body, messages.MatchAnswer, fault).lengths, np.int32
        )

    def _fault_in_found(
        self, found: Sequence[messages.FoundAnswer], n: int, limit: int, out: frozenset[int]
    ) -> str | None:
        if len(found) != n:
            return f"{len(found)} answers for {n} n-grams"
        is_right = all(
            one.n_documents <= one.n_places <= one.count
            and len(one.numbers) == len(one.places) == min(limit, one.n_documents)
            and are_ascending(one.numbers, self.n_documents, out)
            for one in found
        )
        return None if is_right else "places that no reference can have"

    def _excluded(self, exclude: Sequence[int]) -> list[int]:
        numbers = [int(number) for number in exclude]
        if len(numbers) > self._limits.max_excluded:
            raise InputError(
                f"{self._asking.url}: excludes at most {self._limits.max_excluded:,} documents, "
                f"not {len(numbers):,}; start the service with `--max-excluded {len(numbers)}`"
            )
        return numbers

"""The passages behind a service: near matches are searched as on a local disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError, LookupFailed
from fabula.reference.http_client import Refused
from fabula.reference.passage_parts import PassageTokens, Queries, Ranked
from fabula.reference.serving import messages
from fabula.reference.serving.exchange import Asking
from fabula.reference.serving.plausibility import sendable

__all__ = ["ServedPassages"]


class ServedPassages:
    """As `LocalPassages`. Raises `InputError` if the service has no passages with these settings.

    Every method raises `LookupFailed` if no valid answer was received in all attempts.
    """

    def __init__(self, asking: Asking, key: str) -> None:
        self._asking = asking
        self._key = key
        # A key begins with the number of words of a passage.
        self._n_words = int(key.partition("-")[0])
        body = asking.body(messages.PassagesAsked, key=key)
        try:
            told = asking.ask("v1/passages", body, messages.PassagesAnswer, lambda _: None)
        except LookupFailed as error:
            if isinstance(error.__cause__, Refused):
                raise InputError(f"{asking.url}: {error.__cause__}") from error
            raise
        self.n_passages = told.n_passages
        self.n_vocabularies = list(told.n_vocabularies)

    def n_with(self, terms: Sequence[str]) -> NDArray[np.int64]:
        n_most = self._asking.limits.max_words
        found: list[int] = []
        for some in _pieces(sendable(terms), n_most):

            def fault(answer: messages.HoldersAnswer, n: int = len(some)) -> str | None:
                is_right = len(answer.n_with) == n and max(answer.n_with) <= self.n_passages
                return None if is_right else "numbers that passages cannot have"

            body = self._asking.body(messages.HoldersAsked, key=self._key, terms=some)
            found += self._asking.ask(
                "v1/passages/holders", body, messages.HoldersAnswer, fault
            ).n_with
        return np.array(found, np.int64)

    def best(
        self, queries: Queries, n_passages: int, *, exclude: Sequence[int] = ()
    ) -> list[Ranked]:
        """Texts are sent in batches, within the service's limits."""
        most = self._asking.limits
        n_most = max(1, most.max_named // max(1, n_passages))
        out = [int(number) for number in exclude]
        found: list[Ranked] = []
        begin = 0
        while begin < len(queries.places):
            end, n_words = begin, 0
            while end < min(len(queries.places), begin + n_most):
                n_words += len(queries.places[end])
                if end > begin and n_words > most.max_words:
                    break
                end += 1
            found += self._best(queries, begin, end, n_passages, out)
            begin = end
        return found

    def _best(
        self, queries: Queries, begin: int, end: int, n_passages: int, exclude: list[int]
    ) -> list[Ranked]:
        places = queries.places[begin:end]
        used = np.unique(np.concatenate(places)) if places else np.empty(0, np.int64)
        body = self._asking.body(
            messages.BestAsked,
            key=self._key,
            terms=sendable([queries.terms[k] for k in used.tolist()]),
            weights=queries.weights[used].tolist(),
            texts=[np.searchsorted(used, one).tolist() for one in places],
            n_passages=n_passages,
            exclude=exclude,
        )

        def fault(answer: messages.BestAnswer) -> str | None:
            is_right = len(answer.found) == len(places) and all(
                len(one.shards) == len(one.passages) == len(one.scores) <= n_passages
                and max(one.shards, default=0) < len(self.n_vocabularies)
                and max(one.passages, default=0) < self.n_passages
                and all(score > 0 for score in one.scores)
                for one in answer.found
            )
            return None if is_right else "passages that no reference can have"

        answer = self._asking.ask("v1/passages/best", body, messages.BestAnswer, fault)
        return [
            Ranked(
                np.array(one.shards, np.int64),
                np.array(one.passages, np.int64),
                np.array(one.scores, np.float32),
            )
            for one in answer.found
        ]

    def read(self, wanted: Mapping[int, NDArray[np.int64]]) -> dict[int, PassageTokens]:
        n_most = max(1, self._asking.limits.max_words // self._n_words)
        return {
            shard: _joined([self._read(shard, some) for some in _pieces(numbers.tolist(), n_most)])
            for shard, numbers in wanted.items()
        }

    def _read(self, shard: int, passages: list[int]) -> PassageTokens:
        def fault(answer: messages.ReadAnswer) -> str | None:
            rows = (answer.numbers, answer.first_words, answer.lengths)
            is_right = (
                all(len(row) == len(passages) for row in rows)
                and sum(answer.lengths) == len(answer.tokens)
                and max(answer.numbers, default=0) < self._asking.n_documents
                # Kernels use these as indices.
                and max(answer.tokens, default=0) <= self.n_vocabularies[shard]
                and min(answer.tokens, default=1) > 0
            )
            return None if is_right else "passages that no reference can have"

        body = self._asking.body(messages.ReadAsked, key=self._key, shard=shard, passages=passages)
        answer = self._asking.ask("v1/passages/read", body, messages.ReadAnswer, fault)
        lengths = np.array(answer.lengths, np.int32)
        return PassageTokens(
            np.array(passages, np.int64),
            numbers=np.array(answer.numbers, np.int64),
            first_words=np.array(answer.first_words, np.int64),
            tokens=np.array(answer.tokens, np.uint32),
            begins=np.cumsum(lengths, dtype=np.int64) - lengths,
            lengths=lengths,
        )

    def words(self, wanted: Mapping[int, NDArray[np.uint32]]) -> dict[int, list[str]]:
        return {shard: self._words(shard, ids.tolist()) for shard, ids in wanted.items()}

    def _words(self, shard: int, ids: list[int]) -> list[str]:
        found: list[str] = []
        for some in _pieces(ids, self._asking.limits.max_words):

            def fault(answer: messages.WordsAnswer, n: int = len(some)) -> str | None:
                return None if len(answer.words) == n else "words that were not requested"

            body = self._asking.body(messages.WordsAsked, key=self._key, shard=shard, ids=some)
            found += self._asking.ask("v1/passages/words", body, messages.WordsAnswer, fault).words
        return found


def _pieces(all_of: Sequence[Any], n_most: int) -> Iterator[list[Any]]:
    return (list(all_of[at : at + n_most]) for at in range(0, len(all_of), n_most))


def _joined(parts: Sequence[PassageTokens]) -> PassageTokens:
    """Concatenate consecutive passages."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([one.lengths for one in parts])
    return PassageTokens(
        np.concatenate([one.passages for one in parts]),
        np.concatenate([one.numbers for one in parts]),
        np.concatenate([one.first_words for one in parts]),
        np.concatenate([one.tokens for one in parts]),
        np.cumsum(lengths, dtype=np.int64) - lengths,
        lengths,
    )

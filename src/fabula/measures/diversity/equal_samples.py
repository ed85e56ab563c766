"""Which texts are compared: equally many per group and prompt, in several random draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Design = Literal["texts", "prompts", "own-prompts"]
"""The unit drawn: texts, equally many per group for each prompt that all groups share; or, where
groups have prompts of their own, prompts, with one text of each."""

_MIN_SHARED = 0.5
"""Groups share prompts if all have this share of the prompts of the group with the fewest."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Texts of groups, and how many of them are drawn.

    labels: int64 (n_texts,), the group of each, or -1 if excluded. units: int64 (n_texts,), the
    independent unit: the text, its prompt, or its group's prompt. quota: int64 (n_units,), how many
    texts of a unit are drawn from a group.
    """

    design: Design
    labels: NDArray[np.int64]
    units: NDArray[np.int64]
    quota: NDArray[np.int64]
    n_drawn: int
    """Texts that are drawn from each group."""

    def n_available(self, group: int) -> int:
        """Texts that a draw could contain if the other groups did not limit it."""
        own = np.bincount(self.units[self.labels == group], minlength=len(self.quota))
        return int(np.minimum(own, self.quota).sum())

    def is_whole(self, group: int) -> bool:
        """Whether every draw contains all texts of the group."""
        return int(np.count_nonzero(self.labels == group)) == self.n_drawn

    def n_units(self, group: int) -> int:
        return len(np.unique(self.units[self.labels == group]))

    def narrowed(self, kept: NDArray[np.int64]) -> Pool:
        """The same for these texts only."""
        return replace(self, labels=self.labels[kept], units=self.units[kept])

    def draws(
        self, labels: NDArray[np.int64], group: int, n_draws: int, rng: np.random.Generator
    ) -> NDArray[np.uint8]:
        """Random draws from a group, given these labels: uint8, shape (n_draws, n_texts)."""
        members = np.zeros((n_draws, len(labels)), np.uint8)
        own = np.flatnonzero(labels == group)
        for row in members:
            by_unit = own[np.lexsort((rng.random(len(own)), self.units[own]))]
            units = self.units[by_unit]
            place = np.arange(len(units)) - np.searchsorted(units, units)
            chosen = by_unit[place < self.quota[units]]
            if len(chosen) > self.n_drawn:
                chosen = rng.permutation(chosen)[: self.n_drawn]
            row[chosen] = 1
        return members

    def weights(self) -> NDArray[np.float64]:
        """The probability that a draw from its group has each text: float64, shape (n_texts,)."""
        found = np.zeros(len(self.labels))
        for group in range(int(self.labels.max(initial=-1)) + 1):
            own = np.flatnonzero(self.labels == group)
            n_own = np.bincount(self.units[own], minlength=len(self.quota))[self.units[own]]
            found[own] = np.minimum(1, self.quota[self.units[own]] / n_own)
            found[own] *= self.n_drawn / found[own].sum()
        return found

    def permuted(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Permuted labels, under the null hypothesis that groups do not differ.

        Texts are permuted within their prompt where groups share prompts, else whole units are.
        """
        if self.design == "prompts":
            before = np.argsort(self.units, kind="stable")
            after = np.lexsort((rng.random(len(self.units)), self.units))
            labels = np.empty_like(self.labels)
            labels[after] = self.labels[before]
            return labels
        _, first, place = np.unique(self.units, return_index=True, return_inverse=True)
        mixed: NDArray[np.int64] = rng.permutation(self.labels[first])[place]
        return mixed


def plan_pool(
    labels: NDArray[np.int64], prompts: Sequence[str] | None, most: int | None = None
) -> Pool:
    """The pool of texts with groups numbered from 0, and one prompt each, or none at all.

    most: draw no more texts than this from each group; without it as many as the smallest has.
    """
    n, n_groups = len(labels), int(labels.max(initial=-1)) + 1
    design: Design = "texts"
    units, quota = np.arange(n), np.ones(n, np.int64)
    if prompts is not None:
        numbers = {prompt: k for k, prompt in enumerate(dict.fromkeys(prompts))}
        of_text = np.array([numbers[prompt] for prompt in prompts], np.int64)
        table = np.zeros((n_groups, len(numbers)), np.int64)
        np.add.at(table, (labels, of_text), 1)
        quota = table.min(axis=0)
        fewest = (table > 0).sum(axis=1).min(initial=n)
        if np.count_nonzero(quota) >= max(1, _MIN_SHARED * fewest):
            labels = np.where(quota[of_text] > 0, labels, -1)
            design, units = "prompts", of_text
        else:
            design, units = "own-prompts", labels * len(numbers) + of_text
            quota = np.ones(n_groups * len(numbers), np.int64)
    pool = Pool(design, labels, units, quota, 0)
    # The same number from every group: as many as the smallest can give, or `most`.
    n_drawn = min((pool.n_available(group) for group in range(n_groups)), default=0)
    return replace(pool, n_drawn=n_drawn if most is None else min(n_drawn, most))

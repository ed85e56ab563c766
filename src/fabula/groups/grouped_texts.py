"""The texts of groups cut to one length, and which are compared: equally many, in random draws.

Values of groups with their intervals, and tests between groups.

Intervals are by the jackknife: the measures are recomputed without each text (or prompt; if there
are many, without blocks of them), and their spread gives the error of the value (Tukey 1958). A
bootstrap would draw some texts twice, and a text shares everything with its copy. Tests permute the
group of the texts, then draw and measure again each time; where that would take too long
(compression of many texts), the difference is tested against its jackknife error (t).
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fabula.core.errors import InputError
from fabula.core.packages import scipy
from fabula.core.types import Contrast, Document, Estimate
from fabula.groups.shared_ngrams import SHARED, Located, WordTable
from fabula.stats.contrasts import adjusted
from fabula.stats.prediction_powered import clopper_pearson_high
from fabula.stats.resampling import (
    JACKKNIFE,
    MIN_UNITS,
    SLACK,
    Units,
    estimate,
    jackknife_error,
    reach,
)
from fabula.text import TextSettings, TextWords

Design = Literal["texts", "prompts", "own-prompts"]
"""The unit drawn: texts, equally many per group for each prompt that all groups share; or, where
groups have prompts of their own, prompts, with one text of each."""
_MIN_SHARED = 0.5
"""Groups share prompts if all have this share of the prompts of the group with the fewest."""
_MOST_FIT = 0.9
"""The share of each group's texts that are long enough, if no length is requested."""
_MIN_WORDS = 10


def groups_by(documents: Sequence[Document], field: str) -> list[str]:
    """The group of each text; `(no FIELD)` for texts that lack a field others have."""
    values = [document.fields.get(field) for document in documents]
    if all(value is None for value in values):
        known = [k for k, value in documents[0].fields.items() if value is not None]
        raise InputError(
            f"no text has the field {field!r} to group by; the fields of the first text are "
            f"{', '.join(known) or 'none'}"
        )
    return [f"(no {field})" if value is None else str(value) for value in values]


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
        n_held = np.bincount(self.units[self.labels == group], minlength=len(self.quota))
        return int(np.minimum(n_held, self.quota).sum())

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
        texts = np.flatnonzero(labels == group)
        for row in members:
            by_unit = texts[np.lexsort((rng.random(len(texts)), self.units[texts]))]
            units = self.units[by_unit]
            place = np.arange(len(units)) - np.searchsorted(units, units)
            chosen = by_unit[place < self.quota[units]]
            if len(chosen) > self.n_drawn:
                chosen = rng.permutation(chosen)[: self.n_drawn]
            row[chosen] = 1
        return members

    def weights(self) -> NDArray[np.float64]:
        """The probability that a draw from its group has each text: float64, shape (n_texts,)."""
        weights = np.zeros(len(self.labels))
        for group in range(int(self.labels.max(initial=-1)) + 1):
            texts = np.flatnonzero(self.labels == group)
            n_own = np.bincount(self.units[texts], minlength=len(self.quota))[self.units[texts]]
            weights[texts] = np.minimum(1, self.quota[self.units[texts]] / n_own)
            weights[texts] *= self.n_drawn / weights[texts].sum()
        return weights

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
        return rng.permutation(self.labels[first])[place]


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
        numbered = Units.by(prompts)
        of_text, n_prompts = numbered.of, numbered.n
        table = np.zeros((n_groups, n_prompts), np.int64)
        np.add.at(table, (labels, of_text), 1)
        quota = table.min(axis=0)
        fewest = (table > 0).sum(axis=1).min(initial=n)
        if np.count_nonzero(quota) >= max(1, _MIN_SHARED * fewest):
            labels = np.where(quota[of_text] > 0, labels, -1)
            design, units = "prompts", of_text
        else:
            design, units = "own-prompts", labels * n_prompts + of_text
            quota = np.ones(n_groups * n_prompts, np.int64)
    pool = Pool(design, labels, units, quota, 0)
    n_drawn = min((pool.n_available(group) for group in range(n_groups)), default=0)
    return replace(pool, n_drawn=n_drawn if most is None else min(n_drawn, most))


@dataclass(frozen=True, slots=True)
class Stages:
    """Called with each stage and its number of steps, and with the steps done."""

    begin: Callable[[str, int | None], None] = lambda stage, total: None
    advance: Callable[[int], None] = lambda n: None


@dataclass(frozen=True, slots=True)
class GroupedTexts:
    """Documents with their group, their prompt and their words."""

    documents: Sequence[Document]
    groups: Sequence[str]
    prompts: Sequence[str] | None
    located: Sequence[TextWords]

    @classmethod
    def of(
        cls,
        documents: Sequence[Document],
        groups: Sequence[str],
        prompt: str | None,
        settings: TextSettings,
        stages: Stages,
    ) -> GroupedTexts:
        """prompt: the field of the texts' prompts. Raises `InputError` if one lacks it."""
        prompts = None
        if prompt is not None:
            prompts = []
            for document in documents:
                if (value := document.fields.get(prompt)) is None:
                    raise InputError(
                        f"{document.id}: no field {prompt!r}; set `prompt` to a field of every "
                        "text that contains its prompt or the prompt's id"
                    )
                prompts.append(str(value))
        stages.begin("finding words", len(documents))
        located = []
        for document in documents:
            located.append(settings.locate(document.text))
            stages.advance(1)
        return cls(documents, groups, prompts, located)

    def in_order(self) -> Located:
        """The words of all texts, one text after the other."""
        return Located([document.id for document in self.documents], self.located)

    def table(self, settings: TextSettings) -> WordTable:
        words = [text.words for text in self.located]
        if self.prompts is None:
            return WordTable(words)
        numbers = {prompt: k for k, prompt in enumerate(dict.fromkeys(self.prompts))}
        prompts = [settings.words(prompt) for prompt in numbers]
        return WordTable(words, prompts, [numbers[prompt] for prompt in self.prompts])

    def signature_parts(self, settings: TextSettings) -> dict[str, str]:
        """How words count, and whether those of prompts do: an id has too few to be echoed."""
        parts = settings.signature_parts()
        if self.prompts is None:
            return parts
        has_words = any(len(settings.words(prompt)) >= SHARED.start for prompt in set(self.prompts))
        return parts | {"echo": "left-out" if has_words else "kept"}

    def counts(self, name: str, n_words: int = 0) -> tuple[int, int, int]:
        """Texts of a group, those with fewer words, and those with the words of another of it."""
        texts = [t.words for g, t in zip(self.groups, self.located, strict=True) if g == name]
        # Of equal texts only a digest is kept.
        joined = (" ".join(words).encode(errors="surrogatepass") for words in texts if words)
        times = Counter(hashlib.blake2b(text, digest_size=12).digest() for text in joined)
        n_short = sum(len(words) < n_words for words in texts)
        return len(texts), n_short, sum(n for n in times.values() if n > 1)


@dataclass(frozen=True, slots=True)
class CutTexts:
    """The texts that are long enough, cut to one length, in random order."""

    texts: GroupedTexts
    pool: Pool
    names: tuple[str, ...]
    """Of the groups of the pool."""
    n_words: int

    def strings(self) -> list[str]:
        """What remains of each text."""
        both = zip(self.texts.documents, self.texts.located, strict=True)
        return [text.text[int(words.starts[0]) : int(words.ends[-1])] for text, words in both]


def cut_texts(
    texts: GroupedTexts, n_words: int | None, seed: int, n_texts: int | None = None
) -> CutTexts:
    """n_words: by default the length that nine tenths of the texts of every group reach. n_texts:
    how many texts are drawn from each group; without it as many as the smallest has.

    Raises `InputError` if no group has two texts of that length, or one has fewer than `n_texts`.
    """
    if n_words is None:
        lengths: dict[str, list[int]] = {}
        for group, text in zip(texts.groups, texts.located, strict=True):
            lengths.setdefault(group, []).append(len(text.words))
        reached = {
            group: sorted(counts, reverse=True)[math.ceil(_MOST_FIT * len(counts)) - 1]
            for group, counts in lengths.items()
        }
        shortest = min(reached, key=lambda group: reached[group])
        n_words = reached[shortest]
        if n_words < _MIN_WORDS:
            raise InputError(
                f"{shortest}: more than a tenth of its texts have fewer than {_MIN_WORDS} words; "
                "set the number of words that texts are cut to with `n_words`, or leave out the "
                "short texts"
            )
    long_enough = [k for k, text in enumerate(texts.located) if len(text.words) >= n_words]
    n_of: dict[str, int] = dict.fromkeys(texts.groups, 0)
    for k in long_enough:
        n_of[texts.groups[k]] += 1
    names = tuple(name for name, n in n_of.items() if n > 1)
    if not names:
        raise InputError(
            f"no group has two texts of at least {n_words} words; choose another field for `by`, "
            "or fewer words with `n_words`"
        )
    kept = [k for k in long_enough if texts.groups[k] in names]
    # gzip looks back only a few texts, so they are in random order.
    order = np.random.default_rng([seed, 3]).permutation(len(kept))
    kept = [kept[k] for k in order]
    chosen = GroupedTexts(
        [texts.documents[k] for k in kept],
        [texts.groups[k] for k in kept],
        None if texts.prompts is None else [texts.prompts[k] for k in kept],
        [texts.located[k].part(0, n_words) for k in kept],
    )
    labels = np.array([names.index(group) for group in chosen.groups], np.int64)
    pool = plan_pool(labels, chosen.prompts, n_texts)
    available = {name: pool.n_available(k) for k, name in enumerate(names)}
    fewest = min(available, key=lambda name: available[name])
    if n_texts is not None and available[fewest] < n_texts:
        what = "texts" if pool.design == "texts" else "texts that the prompts allow,"
        raise InputError(
            f"`n_texts` {n_texts:,}: {fewest} has only {available[fewest]:,} {what} of {n_words:,} "
            f"words or more; choose fewer, or leave that group out"
        )
    return CutTexts(chosen, pool, names, n_words)


_ROWS_AT_ONCE = 512
_CELLS_AT_ONCE = 1 << 25
"""Subsets times texts that are measured at the same time, which bounds memory."""
_MIN_PERMUTATIONS = 199
"""If time allows fewer, a t-test replaces the permutations."""


class Measures(Protocol):
    """Measures of a set of texts. A larger value need not mean more similar."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def max_draws(self) -> int: ...

    @property
    def max_blocks(self) -> int: ...

    @property
    def max_permutations(self) -> int: ...

    def narrowed(self, kept: NDArray[np.int64]) -> Measures:
        """The same for these texts only."""

    def values(self, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        """members: uint8 (n_subsets, n_texts). Returns float64 (n_subsets, n_measures)."""


@dataclass(frozen=True, slots=True)
class Resampling:
    """Number of draws and permutations."""

    n_draws: int = 5
    n_permutations: int = 1000
    seed: int = 0


_SHARES = "shared_ngrams", "self_bleu", "distinct"


@dataclass(frozen=True, slots=True)
class _GroupValues:
    """draws: uint8 (n_draws, n_texts); replicates: float64 (n_blocks, n_measures), without each
    block; None if there are too few units."""

    draws: NDArray[np.uint8]
    values: NDArray[np.float64]
    replicates: NDArray[np.float64] | None
    n_units: int


def measure_groups(
    measures: Measures,
    pool: Pool,
    groups: Sequence[str],
    pairs: Sequence[tuple[str, str]] | None,
    how: Resampling,
    signature: str,
    advance: Callable[[int], None] = lambda n: None,
) -> tuple[dict[str, dict[str, Estimate]], list[Contrast]]:
    """Each measure of each group, by the names of both; tests of each for each pair (or for all).

    `advance` is called for each group, and each pair, that is done.
    """
    by_group, estimates = {}, {}
    for group, name in enumerate(groups):
        drawn = by_group[name] = _of_group(measures, pool, group, how)
        estimates[name] = {
            measure: _estimate(
                drawn.values[k],
                _error(drawn.replicates, k),
                pool,
                drawn,
                signature,
                most=1.0 if measure.startswith(_SHARES) else np.inf,
            )
            for k, measure in enumerate(measures.names)
        }
        advance(1)
    listed = list(combinations(groups, 2)) if pairs is None else list(pairs)
    p_values = {}
    for a, b in listed:
        p_values[a, b] = _p_values(measures, pool, groups.index(a), groups.index(b), by_group, how)
        advance(1)
    tests: list[Contrast] = []
    for k, measure in enumerate(measures.names):
        contrasts = []
        for a, b in listed:
            first, other = by_group[a], by_group[b]
            fewer = min(first, other, key=lambda values: values.n_units)
            apart = _estimate(
                first.values[k] - other.values[k], _joint_error(first, other, k, pool), pool, fewer,
                signature, least=-np.inf,
            )  # fmt: skip
            ps, n = p_values[a, b]
            p = None if np.isnan(ps[k]) else float(ps[k])
            test, why = "permutation" if n else "jackknife t", "few_texts" if p is None else None
            details = {"n_permutations": 0 if p is None else n}
            contrasts.append(Contrast(measure, a, b, apart, p, None, test, why, details=details))
        tests += adjusted(contrasts)
    return estimates, tests


def _of_group(measures: Measures, pool: Pool, group: int, how: Resampling) -> _GroupValues:
    rng = np.random.default_rng([how.seed, 0, group])
    texts = np.flatnonzero(pool.labels == group)
    mine, own_pool = measures.narrowed(texts), pool.narrowed(texts)
    n_draws = 1 if pool.is_whole(group) else min(how.n_draws, measures.max_draws)
    draws = own_pool.draws(own_pool.labels, group, n_draws, rng)
    if pool.n_drawn < 2:
        return _GroupValues(draws, np.full(len(measures.names), np.nan), None, pool.n_units(group))
    values = mine.values(draws).mean(axis=0)
    # The block of each text: texts of one unit are in one block. Shared prompts are assigned in the
    # same way in every group, which makes differences paired.
    distinct, place = np.unique(own_pool.units, return_inverse=True)
    n_blocks = min(measures.max_blocks, len(distinct))
    dealt = np.random.default_rng([how.seed, 1, pool.n_drawn]).permutation(len(distinct))
    blocks = (dealt % max(1, n_blocks))[place]
    n_dealt = int(blocks.max(initial=-1)) + 1
    rows = (draws * (blocks != block).astype(np.uint8) for block in range(n_dealt))
    n_units = pool.n_units(group)
    replicates = None
    if n_units >= MIN_UNITS:
        parts = (part.reshape(-1, n_draws, len(values)) for part in _valued(mine, rows, n_draws))
        replicates = np.concatenate([part.mean(axis=1) for part in parts])
    return _GroupValues(draws, values, replicates, n_units)


def _valued(
    measures: Measures, rows: Iterator[NDArray[np.uint8]], n_draws: int
) -> Iterator[NDArray[np.float64]]:
    """The values of all rows, a few at a time, those of one item together."""
    waiting: list[NDArray[np.uint8]] = []
    for block in rows:
        waiting.append(block)
        if len(waiting) * n_draws >= min(_ROWS_AT_ONCE, _CELLS_AT_ONCE // max(1, block.shape[1])):
            yield measures.values(np.concatenate(waiting))
            waiting = []
    if waiting:
        yield measures.values(np.concatenate(waiting))


def _error(replicates: NDArray[np.float64] | None, k: int) -> tuple[float, int] | None:
    """The jackknife error of a measure, and the number of blocks."""
    if replicates is None or (error := jackknife_error(replicates[:, k])) is None:
        return None
    return error, len(replicates)


def _estimate(
    value: float,
    error: tuple[float, int] | None,
    pool: Pool,
    group: _GroupValues,
    signature: str,
    *,
    least: float = 0.0,
    most: float = np.inf,
) -> Estimate:
    known = float(value) if np.isfinite(value) else None
    low = high = None
    if known is not None and error is not None:
        wide = reach(*error)
        # No measure is negative, and no share above 1.
        low, high = max(least, known - wide), min(most, known + wide)
    elif known == 0 and most == 1 and group.n_units >= MIN_UNITS:
        # Of so many pairs of texts, no two of them with a text in common, none shared anything.
        low, high = 0.0, clopper_pearson_high(0, group.n_units // 2, 0.975)
    units = "texts" if pool.design == "texts" else "prompts"
    return estimate(
        known, (low, high), pool.n_drawn, group.n_units,
        of=f"mean of {len(group.draws)} draws over {units}", by=JACKKNIFE, signature=signature,
    )  # fmt: skip


def _p_values(
    measures: Measures,
    pool: Pool,
    a: int,
    b: int,
    by_group: Mapping[str, _GroupValues],
    how: Resampling,
) -> tuple[NDArray[np.float64], int]:
    """Two-sided p-values of all measures, NaN where unknown, and the number of permutations.

    Without permutations they are of the differences by their jackknife errors.
    """
    nothing = np.full(len(measures.names), np.nan)
    if pool.n_drawn < 2:
        return nothing, 0
    both = np.flatnonzero((pool.labels == a) | (pool.labels == b))
    mine, sub = measures.narrowed(both), pool.narrowed(both)
    values = list(by_group.values())
    seen = values[a].values - values[b].values
    n_a, n_b = len(values[a].draws), len(values[b].draws)
    n = min(how.n_permutations, mine.max_permutations)
    if n < min(how.n_permutations, _MIN_PERMUTATIONS):
        for k, difference in enumerate(seen):
            error = _joint_error(values[a], values[b], k, pool)
            if error is not None:
                t = abs(difference) / error[0]
                nothing[k] = float(2 * scipy("stats").t.sf(t, error[1] - 1))
        return nothing, 0

    def rows() -> Iterator[NDArray[np.uint8]]:
        # Each pair has its own random stream, independent of which pairs are tested.
        rng = np.random.default_rng([how.seed, 2, a, b])
        for _ in range(n):
            labels = sub.permuted(rng)
            # The same number of draws as for the values, or their spreads would differ.
            yield np.concatenate([sub.draws(labels, a, n_a, rng), sub.draws(labels, b, n_b, rng)])

    n_extreme = np.zeros(len(seen), np.int64)
    for part in _valued(mine, rows(), n_a + n_b):
        drawn = part.reshape(-1, n_a + n_b, len(seen))
        apart = np.abs(drawn[:, :n_a].mean(axis=1) - drawn[:, n_a:].mean(axis=1))
        slack = SLACK * np.maximum(1e-300, np.maximum(np.abs(seen), apart))
        n_extreme += np.count_nonzero(apart >= np.abs(seen) - slack, axis=0)
    return np.where(np.isfinite(seen), (n_extreme + 1) / (n + 1), np.nan), n


def _joint_error(
    first: _GroupValues, other: _GroupValues, k: int, pool: Pool
) -> tuple[float, int] | None:
    """For a difference: prompt by prompt where groups share prompts, else of independent groups."""
    if first.replicates is None or other.replicates is None:
        return None
    if pool.design == "prompts":
        return _error(first.replicates - other.replicates, k)
    mine, theirs = _error(first.replicates, k), _error(other.replicates, k)
    if mine is None or theirs is None:
        return None
    return float(np.hypot(mine[0], theirs[0])), min(mine[1], theirs[1])

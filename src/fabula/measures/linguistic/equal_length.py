"""Compare continuations with random sentences of the same length, to separate story from length.

Several metrics of Roemmele, Gordon and Swanson 2017 depend on the length of a sentence, and systems
write sentences of different lengths. So each continuation is compared with random sentences of the
same number of words from its book, put in its place; the test is paired, and passages of one
chapter count as one unit.

- The sentences come from other passages of the same book; from all books where the book is unknown
  or has too few sentences. Larger pools are randomly reduced to `_MAX_POOL` sentences.
- The sentences nearest in length are used; the seed breaks ties.
- The control of a continuation is the mean over its drawn sentences that have a value.
"""

from __future__ import annotations

import functools
import hashlib
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.measures.linguistic.continuation_metrics import (
    Context,
    Reading,
    alone,
    in_story,
    read_texts,
)
from fabula.measures.linguistic.metrics import METRICS, ToolChoice, open_tools
from fabula.measures.linguistic.parsing import count_word_tokens
from fabula.measures.linguistic.system_scores import BLOCK, Story, rounded, rows_of_blocks
from fabula.measures.linguistic.table import SystemTable, clusters_of
from fabula.packages import scipy
from fabula.resume import Row, RowKind
from fabula.stats.association import association_within
from fabula.stats.compare import holm
from fabula.stats.effects import mean_estimates
from fabula.stats.permutation import PairTest, compare_pairs
from fabula.text.language import not_english
from fabula.types import Estimate, Signature
from fabula.workers import InOrder, in_order

__all__ = ["AtLength", "Draw", "EqualLength", "Pool", "compare_at_equal_length", "control_rows"]

_EACH = tuple(metric.id for metric in METRICS if not metric.is_of_all)
_LENGTH = "sentence_length"
_AS_LONG = "random as long"
_MAX_POOL = 4096
_CHUNK = 64
_N_CHUNKS = 2 * _MAX_POOL // _CHUNK
"""Blocks of parsed sentences that a process caches: those of two books."""
_CONTROLS = RowKind("the control", ("id",), ("controls", "digest", "signature"), in_order=True)


@dataclass(frozen=True, slots=True)
class Pool:
    """The sentences of a book that are sampled."""

    sentences: tuple[str, ...]
    places: Mapping[int, Sequence[int]]
    """The sentences by number of words."""
    place_of: Mapping[str, int]
    digest: str

    @classmethod
    def of(cls, sentences: Iterable[str], n_words: Mapping[str, int], seed: int) -> Pool:
        kept = [text for text in dict.fromkeys(sentences) if n_words[text]]
        if len(kept) > _MAX_POOL:
            chosen = sorted(random.Random(seed).sample(range(len(kept)), _MAX_POOL))
            kept = [kept[k] for k in chosen]
        places: dict[int, list[int]] = {}
        for k, text in enumerate(kept):
            places.setdefault(n_words[text], []).append(k)
        digest = hashlib.sha256("\n".join(kept).encode(errors="replace")).hexdigest()[:16]
        return cls(tuple(kept), places, {text: k for k, text in enumerate(kept)}, digest)

    def draw(self, n: int, n_words: int | None, rng: random.Random, own: frozenset[str]) -> Draw:
        """Up to n sentences nearest to a number of words, or of any length; none from `own`."""
        if n_words is None:
            others = [k for k, text in enumerate(self.sentences) if text not in own]
            return Draw(None, tuple(rng.sample(others, min(n, len(others)))))
        drawn: list[int] = []
        by_distance: dict[int, list[int]] = {}
        for length in self.places:
            by_distance.setdefault(abs(length - n_words), []).append(length)
        for distance in sorted(by_distance):
            near = [
                k
                for length in sorted(by_distance[distance])
                for k in self.places[length]
                if self.sentences[k] not in own
            ]
            drawn += rng.sample(near, min(n - len(drawn), len(near)))
            if len(drawn) == n:
                break
        return Draw(n_words, tuple(drawn))


@dataclass(frozen=True, slots=True)
class Draw:
    """Pool sentences that replace a continuation of `n_words` words; None for any length."""

    n_words: int | None
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Task:
    """A story, and the lengths of its continuations."""

    story: Story
    pool: Pool
    lengths: tuple[int, ...]


def control_rows(
    stories: Sequence[Story],
    scored: Iterable[Mapping[str, Any]],
    choice: ToolChoice,
    out: Path | None = None,
    *,
    n_draws: int = 20,
    seed: int = 0,
    n_jobs: int = 1,
    spread: InOrder | None = None,
    restart: bool = False,
    advance: Callable[[int], None] = lambda _: None,
) -> list[Row]:
    """A row for each story: the controls of its continuations, whose scores are the rows `scored`.

    `controls` holds, for each length, the mean metrics of the drawn sentences; `any` is a sentence
    of any length. Other arguments and errors are those of `scoring.score_rows`.
    """
    run = spread or partial(in_order, n_jobs=n_jobs)
    tasks = _tasks(stories, scored, n_draws, seed)
    return rows_of_blocks(
        _CONTROLS,
        [tasks[k : k + BLOCK] for k in range(0, len(tasks), BLOCK)],
        lambda blocks: run(
            partial(_score_block, choice, _way(n_draws, seed)),
            (_drawn(block, n_draws, seed) for block in blocks),
        ),
        lambda block, signature: [_expected(task, signature) for task in block],
        lambda: _signature(choice, _way(n_draws, seed)),
        out,
        restart=restart,
        advance=advance,
    )


def _way(n_draws: int, seed: int) -> dict[str, str]:
    """How sentences are drawn, as parts of a signature."""
    return {
        "control": f"{n_draws}-nearest-in-words",
        "pool": f"book-else-all,not-own,{_MAX_POOL}",
        "drawn": str(seed),
    }


def _signature(choice: ToolChoice, way: Mapping[str, str]) -> str:
    measured = open_tools(choice).signature
    return str(Signature(measured.name, (*measured.parts, *way.items())))


def _tasks(
    stories: Sequence[Story], scored: Iterable[Mapping[str, Any]], n_draws: int, seed: int
) -> list[_Task]:
    lengths: dict[str, set[int]] = {}
    for row in scored:
        n_words = row["values"][_LENGTH]
        lengths.setdefault(row["id"], set()).update([int(n_words)] if n_words else [])
    by_book: dict[str | None, list[str]] = {}
    for story in stories:
        by_book.setdefault(story.book, []).extend(_sentences_of(story))
    every = [text for sentences in by_book.values() for text in sentences]
    distinct = list(dict.fromkeys(every))
    n_words_of = dict(zip(distinct, count_word_tokens(distinct), strict=True))
    whole = Pool.of(every, n_words_of, seed)
    pools = {book: Pool.of(texts, n_words_of, seed) for book, texts in by_book.items() if book}

    def pool_of(story: Story) -> Pool:
        pool = pools.get(story.book or "", whole)
        n_others = len(pool.sentences) - len(set(_sentences_of(story)))
        return pool if n_others >= n_draws else whole

    return [
        _Task(story, pool_of(story), tuple(sorted(lengths[story.id])))
        for story in stories
        if story.id in lengths
    ]


def _sentences_of(story: Story) -> Sequence[str]:
    return story.context if story.gold is None else (*story.context, story.gold)


def _expected(task: _Task, signature: str) -> Row:
    """What a story's row must contain to be reused."""
    made_of = "\x1f".join([*_sentences_of(task.story), str(task.lengths), task.pool.digest])
    return {
        "id": task.story.id,
        "chapter": task.story.chapter,
        "digest": hashlib.sha256(made_of.encode(errors="replace")).hexdigest()[:16],
        "signature": signature,
    }


_Drawn = tuple[_Task, tuple[Draw, ...]]


def _drawn(block: Sequence[_Task], n_draws: int, seed: int) -> list[_Drawn]:
    """The sentences for each length, then one of any; by story, whatever else is compared."""
    found: list[_Drawn] = []
    for task in block:
        own = frozenset(_sentences_of(task.story))
        draws = [
            task.pool.draw(n, n_words, random.Random(f"{seed} {n_words} {task.story.id}"), own)
            for n, n_words in (*((n_draws, length) for length in task.lengths), (1, None))
        ]
        found.append((task, tuple(draws)))
    return found


@dataclass(frozen=True, slots=True)
class _Known:
    """A parsed pool sentence with its context-free metrics; None if not English."""

    reading: Reading
    alone: Mapping[str, Any] | None


@functools.lru_cache(_N_CHUNKS)
def _read_chunk(choice: ToolChoice, texts: tuple[str, ...]) -> list[_Known]:
    """Sentences that are always parsed together, so that results do not depend on the process."""
    tools = open_tools(choice)
    return [
        _Known(one, None if not_english(text) else alone(tools, one.parsed))
        for text, one in zip(texts, read_texts(tools, texts), strict=True)
    ]


def _score_block(choice: ToolChoice, way: Mapping[str, str], block: Sequence[_Drawn]) -> list[Row]:
    tools, signature = open_tools(choice), _signature(choice, way)
    readings = _read_contexts(choice, [task for task, _ in block])
    rows: list[Row] = []
    for task, draws in block:
        context = Context([readings[text] for text in task.story.context])
        drawn = [[_known_at(choice, task.pool, k) for k in draw.places] for draw in draws]
        every = [one for part in drawn for one in part]
        flags = iter(
            tools.resolver.in_context(context.sentences, [[one.reading.parsed] for one in every])
        )
        *controls, anything = (
            _control(draw, [_outcome(context, one, next(flags)) for one in part])
            for draw, part in zip(draws, drawn, strict=True)
        )
        rows.append({**_expected(task, signature), "controls": controls, "any": anything})
    return rows


def _read_contexts(choice: ToolChoice, tasks: Sequence[_Task]) -> dict[str, Reading]:
    """The sentences of the contexts, as parsed in the pool."""
    found: dict[str, Reading] = {}
    others: dict[str, None] = {}
    for task in tasks:
        for text in task.story.context:
            place = task.pool.place_of.get(text)
            if place is None:
                others[text] = None
            elif text not in found:
                found[text] = _known_at(choice, task.pool, place).reading
    read = read_texts(open_tools(choice), list(others))
    return found | dict(zip(others, read, strict=True))


def _known_at(choice: ToolChoice, pool: Pool, place: int) -> _Known:
    first = place - place % _CHUNK
    return _read_chunk(choice, pool.sentences[first : first + _CHUNK])[place - first]


def _outcome(context: Context, one: _Known, in_context: Sequence[bool]) -> Mapping[str, Any]:
    """The metrics of a drawn sentence in place of a continuation; empty if not English."""
    if one.alone is None:
        return {}
    return {**one.alone, **in_story(context, one.reading, in_context)}


def _control(draw: Draw, outcomes: Sequence[Mapping[str, Any]]) -> Row:
    """The mean of each metric over the drawn sentences that have a value."""
    values: dict[str, float | None] = {}
    for metric in _EACH:
        given = [one[metric] for one in outcomes if isinstance(one.get(metric), float)]
        values[metric] = rounded(math.fsum(given) / len(given)) if given else None
    return {"n_words": draw.n_words, "n": len(outcomes), "values": values}


@dataclass(frozen=True, slots=True)
class AtLength:
    """A system compared with random sentences of equal length, in one metric."""

    control: Estimate
    """The mean of the random sentences, over the passages where the system has a value."""
    test: PairTest
    """For the paired difference, system - control; corrected over the systems of the metric."""


@dataclass(frozen=True, slots=True)
class EqualLength:
    """What remains of every difference at equal length."""

    n_draws: int
    cells: Mapping[tuple[str, str], AtLength]
    """By metric and system."""
    any_length: Mapping[str, Estimate]
    """The mean of each metric over random sentences of any length, one per passage."""
    with_length: Mapping[str, Estimate]
    """Spearman's correlation of each metric with the length of these sentences."""
    words_apart: float | None
    """Mean difference in words between continuations and the sentences drawn for them."""
    n_short: int
    """Continuations for which too few sentences were available."""
    signature: str

    def differs(self, metric: str, system: str, level: float, correction: str) -> int:
        """1 where a system is above its control at the corrected level, -1 below, else 0."""
        test = self.cells[metric, system].test
        p = test.p_holm if correction == "holm" else test.p_bonferroni
        value = test.difference.value
        if p is None or value is None or p > level:
            return 0
        return (value > 0) - (value < 0)

    def to_json(self) -> dict[str, Any]:
        """As plain values; the metrics themselves are with the table's."""
        return {
            "equal_length": {
                "n_draws": self.n_draws,
                "words_apart": self.words_apart,
                "n_short": self.n_short,
                "signature": self.signature,
            }
        }


def compare_at_equal_length(
    table: SystemTable,
    scored: Iterable[Mapping[str, Any]],
    controls: Sequence[Mapping[str, Any]],
    *,
    n_draws: int,
    seed: int = 0,
) -> SystemTable:
    """The table with its systems compared with their controls, the rows of `control_rows`."""
    place = {row["id"]: k for k, row in enumerate(controls)}
    clusters, _, _ = clusters_of({row["id"]: row.get("chapter") for row in controls})
    by_length = [{one["n_words"]: one for one in row["controls"]} for row in controls]
    pairs = {
        (metric, system): np.full((2, len(controls)), np.nan)
        for metric in _EACH
        for system in table.systems
    }
    apart: list[float] = []
    n_short = 0
    for row in scored:
        k = place[row["id"]]
        control = by_length[k].get(row["values"][_LENGTH])
        if control is None:
            continue
        n_short += control["n"] < n_draws
        drawn_words = control["values"][_LENGTH]
        if drawn_words is not None:
            apart.append(abs(drawn_words - row["values"][_LENGTH]))
        for metric in _EACH:
            pair = row["values"][metric], control["values"][metric]
            if None not in pair:
                pairs[metric, row["system"]][:, k] = pair
    signature = _table_signature(table.signature, controls)
    anything = _columns(controls)
    return replace(
        table,
        at_equal_length=EqualLength(
            n_draws=n_draws,
            cells=dict(_cells(pairs, table, clusters, seed, signature)),
            any_length={
                metric: estimate
                for (metric, _), estimate in mean_estimates(
                    {metric: {"any": column} for metric, column in anything.items()},
                    clusters=clusters,
                    seed=seed,
                    signature=signature,
                ).items()
            },
            with_length={
                metric: _correlation(anything[_LENGTH], column, clusters, seed, signature)
                for metric, column in anything.items()
            },
            words_apart=math.fsum(apart) / len(apart) if apart else None,
            n_short=n_short,
            signature=signature,
        ),
    )


def _table_signature(of_table: str, controls: Sequence[Mapping[str, Any]]) -> str:
    """The table's signature, with how the sentences were drawn."""
    table = Signature.parse(of_table)
    drawn = dict(Signature.parse(controls[0]["signature"]).parts)
    more = tuple((key, drawn[key]) for key in ("control", "pool", "drawn"))
    return str(Signature(table.name, (*table.parts, *more)))


def _columns(controls: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[np.float64]]:
    """Each metric of the sentence of any length by passage, NaN where it has none."""
    return {
        metric: np.array(
            [
                np.nan if (value := row["any"]["values"][metric]) is None else value
                for row in controls
            ],
            np.float64,
        )
        for metric in _EACH
    }


def _cells(
    pairs: Mapping[tuple[str, str], NDArray[np.float64]],
    table: SystemTable,
    clusters: NDArray[np.int64],
    seed: int,
    signature: str,
) -> Iterator[tuple[tuple[str, str], AtLength]]:
    """Each system against its control; tested one at a time, since each has its own passages."""
    means = {
        system: {metric: pairs[metric, system] for metric in _EACH} for system in table.systems
    }
    tests = {
        system: {
            test.metric: test
            for test in compare_pairs(
                {
                    metric: {system: both[0], f"{system}, {_AS_LONG}": both[1]}
                    for metric, both in columns.items()
                },
                {},
                clusters=clusters,
                seed=seed,
                n_permutations=table.n_permutations,
                signature=signature,
            )
        }
        for system, columns in means.items()
    }
    controls = mean_estimates(
        {metric: {s: means[s][metric][1] for s in table.systems} for metric in _EACH},
        clusters=clusters,
        seed=seed,
        signature=signature,
    )
    for metric in _EACH:
        ps = [tests[system][metric].p for system in table.systems]
        n_tests = sum(p is not None for p in ps)
        for system, p, by_holm in zip(table.systems, ps, holm(ps), strict=True):
            test = replace(
                tests[system][metric],
                p_bonferroni=None if p is None else min(1.0, p * n_tests),
                p_holm=by_holm,
            )
            yield (metric, system), AtLength(controls[metric, system], test)


def _correlation(
    n_words: NDArray[np.float64],
    values: NDArray[np.float64],
    clusters: NDArray[np.int64],
    seed: int,
    signature: str,
) -> Estimate:
    """Spearman's correlation of a metric with length, its interval by resampling clusters."""
    rankdata = scipy("stats").rankdata
    kept = ~(np.isnan(n_words) | np.isnan(values))
    return association_within(
        rankdata(n_words[kept]),
        rankdata(values[kept]),
        [0] * int(kept.sum()),
        list(clusters[kept]),
        kind="correlation",
        seed=seed,
        method="Spearman correlation with length, percentile bootstrap over clusters of passages",
        signature=signature,
    )

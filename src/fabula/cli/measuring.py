"""From options to the measure of originality, opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fabula.cli.engine import open_cluster
from fabula.cli.progress import Bar

if TYPE_CHECKING:
    from fabula.cluster import Cluster
    from fabula.measures.near import NearSearch
    from fabula.measures.originality import OriginalityMeasure
    from fabula.reference import Backend, Reference
    from fabula.reference.passages import PassageSettings
    from fabula.types import Document

    Rows = Callable[[Iterable[Document]], Iterator[tuple[Document, dict[str, Any]]]]

__all__ = ["near_options", "open_measure", "open_rows"]

F = TypeVar("F", bound=Callable[..., Any])

_NEAR_ONLY = ("preset", "threshold", "floor", "ratio", "meaning", "n_passages", "window",
              "passage_words", "passage_overlap", "stop_words", "vectors")  # fmt: skip


def near_options(command: F) -> F:
    """What decides a near match; all of them for `--match near` only."""
    options = (
        click.option(
            "--preset", type=click.Choice(["paper"]),
            help="near: paper, as published: a threshold of 0.95, no floor on content words, no "
            "check of lengths, ends or meaning.",
        ),
        click.option(
            "--threshold", type=click.FloatRange(0, 1, min_open=True), metavar="T",
            help="near: least similarity, in both directions.  [default: 0.75]",
        ),
        click.option(
            "--floor", type=click.IntRange(min=1), metavar="N",
            help="near: content words that both spans must hold.  [default: 5]",
        ),
        click.option(
            "--ratio", type=click.FloatRange(min=1), metavar="R",
            help="near: how many times as many words as the other a span may have.  [default: 2]",
        ),
        click.option(
            "--meaning", type=click.FloatRange(0, 1), metavar="M",
            help="near: least cosine of both spans' sentence vectors; 0 for no such check.  "
            "[default: 0.7]",
        ),
        click.option(
            "--passages", "n_passages", type=click.IntRange(min=1), metavar="K",
            help="near: most similar passages to look at for each window of the text.  "
            "[default: 100]",
        ),
        click.option(
            "--window", type=click.IntRange(min=1), metavar="N",
            help="near: words of a window.  [default: 50]",
        ),
        click.option(
            "--passage-words", type=click.IntRange(min=1), metavar="N",
            help="near: words of a passage.  [default: 300]",
        ),
        click.option(
            "--passage-overlap", type=click.IntRange(min=0), metavar="N",
            help="near: words that a passage shares with the one before.  [default: 50]",
        ),
        click.option(
            "--stop-words", metavar="english|none|FILE",
            help="near: words that are no content words.  [default: english]",
        ),
        click.option(
            "--vectors", metavar="PATH|spacy",
            help="near: word vectors, a .kv, .vec or GloVe file, or a Hugging Face model's folder; "
            "spacy, those of the English pipeline.  [default: the sentence encoder's]",
        ),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def open_measure(
    references: Sequence[str], given: dict[str, Any], bar: Bar, opened: Reference | None = None
) -> Iterator[OriginalityMeasure]:
    """The measure that the options of `originality` describe, over a reference if it is open."""
    from fabula.measures.exclusion import ExcludeSame
    from fabula.measures.originality import OriginalityMeasure
    from fabula.measures.quoting import QuoteJudge
    from fabula.measures.uniqueness import Levels
    from fabula.reference import Reference
    from fabula.reference.choose import open_backend
    from fabula.workers import default_jobs

    unused = [name for name in _NEAR_ONLY if given[name] is not None]
    if unused and given["match"] != "near":
        option = {"n_passages": "passages"}.get(unused[0], unused[0]).replace("_", "-")
        raise click.UsageError(f"--{option} is for --match near")
    with ExitStack() as stack:

        def say(n_asked: int, n_remembered: int) -> None:
            bar.say(f"measuring ({n_asked:,} look-ups, {n_remembered:,} from memory)")

        backend: Backend = opened or open_backend(
            references, n_parallel=given["parallel"], max_retries=given["max_retries"],
            fresh=given["restart"], meter=say, report=bar.say,
        )  # fmt: skip
        stack.enter_context(closing(backend))
        judge = None
        if given["exclude_model"] is not None:
            from fabula.models import open_model

            judge = stack.enter_context(
                QuoteJudge(open_model(given["exclude_model"], given.get("model_terms")))
            )
        near = None
        if given["match"] == "near" and isinstance(backend, Reference):
            near = _open_near(backend, references, given, bar)
        elif given["match"] == "near":
            raise click.UsageError(
                "--match near needs a reference corpus that was built here; an infini-gram index "
                "can only say where n-grams stand verbatim"
            )
        levels = given["levels"]
        if levels is None:
            levels = "5-7" if isinstance(backend, Reference) and backend.written_by else "5-12"
        same = None
        if given["exclude_same"] is not None:
            if not isinstance(backend, Reference):
                raise click.UsageError("--exclude-same needs a reference that was built here")
            same = ExcludeSame.of(backend, given["exclude_same"])
        yield OriginalityMeasure(
            backend,
            exclude_same=same,
            levels=Levels.parse(levels),
            exclude=_excluded(given["exclude"], backend),
            judge=judge,
            near=near,
            n_sources=given["n_sources"],
            spread=given["n_spread"],
            n_threads=given["jobs"] or default_jobs(),
        )


@contextmanager
def open_rows(
    references: Sequence[str], given: dict[str, Any], bar: Bar
) -> Iterator[tuple[Rows, str]]:
    """Where the rows of scores come from, this process or a cluster; and the reference's size."""
    from fabula.measures.scores import ScoreRun, to_row

    paths = list(references) if given["engine"] == "local" else _corpora(references)
    with ExitStack() as stack:
        cluster = stack.enter_context(open_cluster(given, bar))
        if cluster is None:
            measure = stack.enter_context(open_measure(paths, given, bar))
            run = ScoreRun(measure, to_row, given["out"], restart=given["restart"])
            yield run.rows, measure.reference.size
        else:
            yield _rows_on_cluster(stack, cluster, paths, given, bar)


def _corpora(references: Sequence[str]) -> list[str]:
    """The references, which are corpora on disks or in object stores, by names for all nodes."""
    from fabula.reference.choose import is_elsewhere
    from fabula.reference.home import open_home
    from fabula.reference.layout import Manifest

    if any(map(is_elsewhere, references)):
        raise click.UsageError("--engine ray needs a reference corpus that was built here")
    homes = [open_home(reference).everywhere() for reference in references]
    # One that is named twice counts once.
    found: dict[str, str] = {}
    for home in homes:
        found.setdefault(Manifest.read(home).fingerprint, home.spec)
    return list(found.values())


def _rows_on_cluster(
    stack: ExitStack, cluster: Cluster, paths: list[str], given: dict[str, Any], bar: Bar
) -> tuple[Rows, str]:
    """As `open_rows`. Where there are several nodes, none needs all of the reference."""
    from functools import partial

    from fabula.measures.scores import ScoreRun, to_row
    from fabula.measures.team import TeamMeasure, row_of
    from fabula.reference.shares import Holders

    opened = None
    if len(nodes := cluster.nodes()) > 1:
        if given["match"] == "near":
            _build_passages(paths, given, bar, cluster)
        holders = Holders.over(cluster, paths, nodes)
        stack.callback(cluster.end, holders.actors)
        opened = holders.open()
    measure = stack.enter_context(open_measure(paths, given, bar, opened))
    there = partial(open_measure, paths, {**given, "jobs": 1}, Bar())
    team = TeamMeasure(cluster, measure, there, to_row, paths)
    rows = ScoreRun(team, row_of, given["out"], restart=given["restart"]).rows
    return rows, measure.reference.size


def _build_passages(
    paths: Sequence[str], given: dict[str, Any], bar: Bar, cluster: Cluster
) -> None:
    """Those that near matches are looked for in; on the nodes."""
    from fabula.reference.layout import Manifest
    from fabula.reference.passages import build_passages
    from fabula.text.stopwords import load_stop_words

    words = load_stop_words(given["stop_words"] or "english")
    for path in dict.fromkeys(paths):
        build_passages(
            path, Manifest.read(path).shards, _passages_asked(given), words, bar.say,
            spread=cluster.in_order,
        )  # fmt: skip


def _passages_asked(given: dict[str, Any]) -> PassageSettings:
    from fabula.reference.passages import PassageSettings

    cut = {"n_words": given["passage_words"], "overlap": given["passage_overlap"]}
    return PassageSettings(**{k: v for k, v in cut.items() if v is not None})


def _open_near(
    reference: Reference, paths: Sequence[str], given: dict[str, Any], bar: Bar
) -> NearSearch:
    """Near-verbatim search as the options say."""
    from dataclasses import replace

    from fabula.measures.near import NEAR_PRESETS, NearSettings
    from fabula.measures.near_opening import open_near

    names = ("threshold", "floor", "ratio", "meaning", "n_passages", "window")
    settings = replace(
        NEAR_PRESETS.get(given["preset"] or "", NearSettings()),
        **{name: given[name] for name in names if given[name] is not None},
    )
    return open_near(
        reference, paths, settings, _passages_asked(given),
        stop_words=given["stop_words"] or "english", vectors=given["vectors"] or "", say=bar.say,
    )  # fmt: skip


def _excluded(exclude: str, reference: Backend) -> Any:
    from fabula.measures.exclusion import ExcludeIds
    from fabula.reference import Reference
    from fabula.reference.exclude import CopyRule
    from fabula.text import read_ids

    if exclude == "none":
        return None
    if exclude == "auto":
        return CopyRule()
    if not isinstance(reference, Reference):
        raise click.UsageError("--exclude needs a reference corpus that was built here")
    return ExcludeIds.of(reference, read_ids(Path(exclude)))

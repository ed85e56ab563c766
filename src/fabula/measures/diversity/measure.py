"""How similar the texts of groups are: all measures, at equal length and number of texts."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabula import __version__
from fabula.errors import InputError, ModelError
from fabula.measures.diversity.common_phrases import PHRASES, shared_phrases
from fabula.measures.diversity.diversity_tests import (
    Measures,
    Resampled,
    Resampling,
    measure_groups,
)
from fabula.measures.diversity.grouped_texts import (
    CutTexts,
    GroupedTexts,
    common_length,
    cut_texts,
    groups_by,
    prompt_of,
)
from fabula.measures.diversity.result import Diversity, GroupDiversity
from fabula.measures.diversity.shared_ngrams import SHARED, NgramMeasures, Ngrams
from fabula.measures.diversity.templates import Tagged, Tagger, Templates, template_ngrams
from fabula.measures.diversity.text_pairs import SimilarPair, similar_pairs
from fabula.models.encoder import Encoder
from fabula.text import TextSettings, TextWords
from fabula.text.language import language_gate, not_english
from fabula.types import Document, Estimate, Signature, Span

_LEVEL = 9
_NAME_BYTES = 11
"""Size of the file name in the header that the package's file has."""
_BUDGET_BYTES = 40_000_000
"""Approximate limit of what a pair's permutations compress: half a dozen seconds."""

GZIP = f"gzip{_LEVEL}-{zlib.ZLIB_RUNTIME_VERSION}"
"""For signatures: other versions of zlib give other sizes."""


def compression_ratio(texts: Sequence[bytes]) -> float:
    """Bytes of the texts, with a space between them, over their bytes after compression.

    The ratio of the package `diversity` (Shaib et al. 2024), which compresses the compressed data
    once more; above a few thousand words the difference is negligible.
    """
    data = b" ".join(texts)
    once = gzip.compress(data, _LEVEL, mtime=0)
    return len(data) / (len(gzip.compress(once, _LEVEL, mtime=0)) + _NAME_BYTES)


@dataclass(frozen=True, slots=True)
class Compression:
    """`compression`: the ratio, of texts in the order given.

    gzip looks back 32 KB, so the order matters: it must be unrelated to the properties of the
    texts.
    """

    texts: tuple[bytes, ...]
    n_threads: int = 1
    max_draws: int = 1
    max_blocks: int = 20

    names = ("compression",)

    @property
    def max_permutations(self) -> int:
        return _BUDGET_BYTES // max(1, sum(map(len, self.texts)))

    def narrowed(self, kept: NDArray[np.int64]) -> Compression:
        return replace(self, texts=tuple(self.texts[k] for k in kept))

    def values(self, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Float64, shape (n_subsets, 1)."""

        def one(row: NDArray[np.uint8]) -> float:
            return compression_ratio([self.texts[k] for k in np.flatnonzero(row)])

        with ThreadPoolExecutor(self.n_threads) as pool:
            return np.array([*pool.map(one, members)], np.float64).reshape(-1, 1)


@dataclass(frozen=True, slots=True)
class Embeddings:
    """`embeddings`: the mean cosine distance of two different texts.

    vectors: float64, shape (n_texts, n_dimensions), of length 1.
    """

    vectors: NDArray[np.float64]
    max_draws: int = 1 << 30
    max_blocks: int = 100
    max_permutations: int = 1 << 30

    names = ("embeddings",)

    def narrowed(self, kept: NDArray[np.int64]) -> Embeddings:
        return replace(self, vectors=self.vectors[kept])

    def values(self, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Float64, shape (n_subsets, 1); NaN for fewer than two texts."""
        sums = members.astype(np.float64) @ self.vectors
        n = members.sum(axis=1, dtype=np.float64)
        # The square of a sum of unit vectors contains each pair twice, and each vector with itself.
        with np.errstate(invalid="ignore", divide="ignore"):
            distances: NDArray[np.float64] = 1 - ((sums**2).sum(axis=1) - n) / (n * (n - 1))
        return distances[:, None]


Extra = Literal["templates", "embeddings"]
ALL_TEXTS = "all"
"""The group of all texts, if they are not split."""

_NOT_ASKED = "not asked for (see `extras`)"


@dataclass(frozen=True, slots=True)
class Plan:
    """Which measures are computed, on which texts."""

    by: str | None = None
    prompt: str | None = None
    baseline: str | None = None
    n_words: int | None = None
    n_texts: int | None = None
    settings: TextSettings = TextSettings()
    how: Resampling = field(default_factory=Resampling)
    extras: Collection[Extra] = ()
    encoder: Path | None = None
    n_phrases: int = 10
    n_pairs: int = 0
    run_words: int = 6
    n_threads: int = 1


@dataclass(frozen=True, slots=True)
class Stages:
    """Called with each stage and its number of steps, and with the steps done."""

    begin: Callable[[str, int | None], None] = lambda stage, total: None
    advance: Callable[[int], None] = lambda n: None


def measure_diversity(
    documents: Sequence[Document], plan: Plan, stages: Stages | None = None
) -> Diversity:
    """Measure each group, and test each pair of groups (or each against the `baseline`).

    Raises `InputError` if a text lacks a field, or no group has two texts.
    """
    stages = stages or Stages()
    names = [ALL_TEXTS] * len(documents)
    if plan.by is not None:
        names = groups_by(documents, plan.by)
    if plan.baseline is not None and plan.baseline not in names:
        there = ", ".join(dict.fromkeys(names))
        raise InputError(f"`baseline` {plan.baseline}: no such group; the groups are {there}")
    prompts = None if plan.prompt is None else [prompt_of(one, plan.prompt) for one in documents]
    stages.begin("finding words", len(documents))
    texts = GroupedTexts(
        documents, names, prompts, [*locate_words(documents, plan.settings, stages)]
    )
    n_words = plan.n_words or common_length(texts)
    cut = cut_texts(texts, n_words, plan.how.seed, plan.n_texts)
    extras = Extras(plan, cut, stages)
    signature = _signature(cut, plan, extras)
    found, lengths = _measure(cut, plan, extras, stages, signature)
    # A group without texts that are long enough.
    nothing = Estimate(None, None, None, 0, "too few texts", signature, 0)
    estimates = dict.fromkeys(found.estimates[cut.names[0]], nothing)
    groups = [
        _group(name, texts, cut, found.estimates[name], lengths, extras, plan.n_phrases)
        if name in cut.names
        else GroupDiversity(
            name,
            texts.groups.count(name),
            texts.n_short(name, n_words),
            0,
            0,
            0,
            estimates,
            n_identical=texts.n_identical(name),
        )
        for name in texts.names()
    ]
    pairs: list[SimilarPair] = []
    if plan.n_pairs:
        stages.begin("comparing pairs of texts", None)
        table = texts.table(plan.settings)
        ids = [document.id for document in documents]
        pairs = similar_pairs(ids, texts.located, table, plan.run_words, plan.n_pairs)
    return Diversity(
        plan.by,
        cut.pool.design,
        groups,
        found.tests,
        pairs,
        plan.run_words if plan.n_pairs else None,
        extras.left_out,
        n_words,
        signature,
    )


def locate_words(
    documents: Sequence[Document], settings: TextSettings, stages: Stages
) -> Iterator[TextWords]:
    for document in documents:
        yield settings.locate(document.text)
        stages.advance(1)


class Extras:
    """Parts of speech and vectors, if requested and available."""

    def __init__(self, plan: Plan, cut: CutTexts, stages: Stages) -> None:
        self.tagged: list[Tagged] = []
        """For each remaining text, in order."""
        self.templates: Ngrams | None = None
        self.vectors: NDArray[np.float64] | None = None
        self.signature_parts: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        for name, take in (("templates", self._tag), ("embeddings", self._embed)):
            if name not in plan.extras:
                self.left_out[name] = _NOT_ASKED
                continue
            try:
                take(plan, cut.strings(), stages)
            except ModelError as error:
                self.left_out[name] = str(error)

    def _tag(self, plan: Plan, texts: Sequence[str], stages: Stages) -> None:
        tagger = Tagger()
        stages.begin("tagging parts of speech", len(texts))
        foreign = [reason for text in texts if (reason := not_english(text)) is not None]
        if 2 * len(foreign) > len(texts):
            self.left_out["templates"] = foreign[0]
            return
        self.tagged = tagger.tag(texts, stages.advance)
        self.templates = template_ngrams(self.tagged)
        self.signature_parts |= {**tagger.signature_parts, "lang": language_gate()}

    def _embed(self, plan: Plan, texts: Sequence[str], stages: Stages) -> None:
        encoder = Encoder(plan.encoder)
        stages.begin("encoding texts", len(texts))
        found = []
        for text in texts:
            # The mean of the vectors of its parts, each read whole.
            mean = encoder.encode(encoder.parts(text)).astype(np.float64).mean(axis=0)
            found.append(mean / max(1e-12, float(np.linalg.norm(mean))))
            stages.advance(1)
        self.vectors = np.stack(found)
        self.signature_parts["enc"] = encoder.name


def _measure(
    cut: CutTexts, plan: Plan, extras: Extras, stages: Stages, signature: str
) -> tuple[Resampled, list[Ngrams]]:
    """All measures of the groups and tests between them, and the n-grams of listed phrases."""
    stages.begin("counting n-grams", None)
    # Words as numbers are only needed to count n-grams, and strings to encode them.
    counted = cut.texts.table(plan.settings).ngrams(SHARED[-1])
    ngrams = NgramMeasures(tuple(one for one, _ in counted), plan.n_threads)
    encoded = tuple(text.encode(errors="replace") for text in cut.strings())
    together = Compression(encoded, plan.n_threads)
    kinds: list[Measures] = [ngrams, together]
    if extras.templates is not None:
        n_tokens = np.array([len(one.tags) for one in extras.tagged], np.int64)
        kinds.append(Templates(extras.templates, n_tokens))
    if extras.vectors is not None:
        kinds.append(Embeddings(extras.vectors))
    tested = list(combinations(cut.names, 2))
    if plan.baseline is not None:
        tested = [(name, plan.baseline) for name in cut.names if name != plan.baseline]
        tested = tested if plan.baseline in cut.names else []
    stages.begin("resampling", len(kinds) * (len(cut.names) + len(tested)))
    found = Resampled({name: {} for name in cut.names}, [])
    for kind in kinds:
        found.add(
            measure_groups(kind, cut.pool, cut.names, tested, plan.how, signature, stages.advance)
        )
    return found, [one for one in ngrams.lengths if one.n in PHRASES]


def _signature(cut: CutTexts, plan: Plan, extras: Extras) -> str:
    """The rule of equal length and number comes first: it determines every number."""
    return str(
        Signature.of(
            "diversity",
            words=str(cut.n_words),
            texts=str(cut.pool.n_drawn),
            draws=f"{cut.pool.design},{plan.how.n_draws}",
            **cut.texts.signature_parts(plan.settings),
            n=f"{SHARED[0]}-{SHARED[-1]}",
            gzip=GZIP,
            **extras.signature_parts,
            seed=str(plan.how.seed),
            v=__version__,
        )
    )


def _group(
    name: str,
    texts: GroupedTexts,
    cut: CutTexts,
    estimates: Mapping[str, Estimate],
    lengths: Sequence[Ngrams],
    extras: Extras,
    n_phrases: int,
) -> GroupDiversity:
    pool, number = cut.pool, cut.names.index(name)
    is_named = np.array([group == name for group in cut.texts.groups])
    is_in = pool.labels == number
    templates = [] if extras.templates is None else [extras.templates]
    starts = np.concatenate([[0], np.cumsum([len(one.tags) for one in extras.tagged])])

    def words_at(place: int, n: int) -> Sequence[str]:
        text, first = divmod(place, cut.n_words)
        return cut.texts.located[text].words[first : first + n]

    def span_at(text: int, place: int, n: int) -> Span:
        words, first = cut.texts.located[text], place - text * cut.n_words
        document = cut.texts.documents[text].id
        return Span(document, int(words.starts[first]), int(words.ends[first + n - 1]))

    def tags_at(place: int, n: int) -> Sequence[str]:
        text = int(np.searchsorted(starts, place, "right")) - 1
        return extras.tagged[text].tags[place - starts[text] :][:n]

    def tagged_at(text: int, place: int, n: int) -> Span:
        # The tagged text begins at the first word of the text.
        shift = int(cut.texts.located[text].starts[0])
        places = extras.tagged[text].places[place - starts[text] :][:n]
        document = cut.texts.documents[text].id
        return Span(document, shift + places[0][0], shift + places[-1][1])

    return GroupDiversity(
        name,
        texts.groups.count(name),
        texts.n_short(name, cut.n_words),
        int(np.count_nonzero(is_named & ~is_in)),
        pool.n_drawn,
        pool.n_units(number),
        estimates,
        shared_phrases(lengths, is_in, n_phrases, words_at, span_at),
        shared_phrases(templates, is_in, n_phrases, tags_at, tagged_at),
        texts.n_identical(name),
    )

"""How similar texts are that should differ: all measures, at equal length and number of texts."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fabula.core import __version__
from fabula.core.errors import InputError, ModelError
from fabula.core.types import Contrast, Document, Estimate, Signature
from fabula.groups import shared_ngrams
from fabula.groups.grouped_texts import (
    CutTexts,
    GroupedTexts,
    Measures,
    Resampling,
    Stages,
    cut_texts,
    groups_by,
    measure_groups,
)
from fabula.groups.shared_ngrams import (
    SHARED,
    Located,
    Ngrams,
    PairTable,
    SharedPhrase,
    SharedText,
    SimilarPair,
)
from fabula.jobs.result import picked
from fabula.models.encoder import Encoder
from fabula.stats.resampling import MIN_UNITS, Units
from fabula.text import TextSettings, TextWords
from fabula.text.clusters import own_field
from fabula.text.sentences import language_gate, not_english
from fabula.text.wording import MaskedTexts

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

    gzip looks back 32 KB, so the order matters: it must be unrelated to what the texts are like.
    """

    texts: tuple[bytes, ...]
    n_threads: int = 1

    names = ("compression",)
    max_draws, max_blocks = 1, 20

    @property
    def max_permutations(self) -> int:
        return _BUDGET_BYTES // max(1, sum(map(len, self.texts)))

    def narrowed(self, kept: NDArray[np.int64]) -> Compression:
        return replace(self, texts=tuple(self.texts[k] for k in kept))

    def values(self, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Float64, shape (n_subsets, 1)."""

        def ratio(row: NDArray[np.uint8]) -> float:
            return compression_ratio([self.texts[k] for k in np.flatnonzero(row)])

        with ThreadPoolExecutor(self.n_threads) as pool:
            return np.array([*pool.map(ratio, members)], np.float64).reshape(-1, 1)


@dataclass(frozen=True, slots=True)
class Embeddings:
    """`embeddings`: the mean cosine distance of two different texts.

    vectors: float64, shape (n_texts, n_dimensions), of length 1.
    """

    vectors: NDArray[np.float64]

    names = ("embeddings",)
    max_draws, max_blocks, max_permutations = 1 << 30, 100, 1 << 30

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
_N_PAIRS = 5
_N_PAIRS_OF_A_CLASS = 20
NOT_ASKED = "not asked for (see `extras`)"


RUN_WORDS = 6
"""The shortest run that counts for a pair of texts."""


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
    n_threads: int = 1
    own: MaskedTexts | None = None
    """What the texts are without the wording that they were given."""


@dataclass(frozen=True, slots=True)
class GroupDiversity:
    """A group; `estimates` by measure, such as `shared_ngrams.4`."""

    name: str
    n_texts: int
    n_too_short: int
    n_other_prompts: int
    """Texts whose prompts not all groups have."""
    n: int
    """Texts compared at a time, equally many in every group."""
    n_units: int
    """Number of texts or prompts that intervals are over."""
    estimates: Mapping[str, Estimate]
    phrases: Sequence[SharedPhrase] = ()
    templates: Sequence[SharedPhrase] = ()
    n_identical: int = 0
    """Texts that have the same words as another of the group."""

    def to_json(self) -> dict[str, Any]:
        """Where a value or its interval is None, `missing_reason` says why."""
        values: dict[str, Any] = {}
        for name, estimate in self.estimates.items():
            measure, _, n = name.partition(".")
            shown: dict[str, Any] = estimate.ends()
            if estimate.value is None:
                shown["missing_reason"] = "few_texts"
            elif estimate.low is None:
                shown["missing_reason"] = reason_of(estimate)
            if n:
                values.setdefault(measure, {})[n] = shown
            else:
                values[measure] = shown
        sizes = "n", "n_texts", "n_too_short", "n_other_prompts", "n_identical", "n_units"
        return {
            **picked(self, *sizes),
            **values,
            "phrases": [phrase.to_json() for phrase in self.phrases],
            "templates_shared": [template.to_json() for template in self.templates],
        }


SHORT = "are shorter than {} words and were left out"
IDENTICAL = "have the same words as another; copies are not independent, so keep one of each"


def remark_on(group: str, n: int, n_texts: int, what: str) -> list[str]:
    """`model: 2 of 40 texts are ...`, if there are any."""
    return [f"{group}: {n:,} of {n_texts:,} texts {what}"] if n else []


def reason_of(estimate: Estimate) -> str:
    """Why a value has no interval."""
    return "few_units" if (estimate.n_units or 0) < MIN_UNITS else "no_spread"


@dataclass(frozen=True, slots=True)
class Diversity:
    """How similar the texts of groups are."""

    by: str | None
    design: str
    groups: Sequence[GroupDiversity]
    tests: Sequence[Contrast]
    pairs: Sequence[SimilarPair]
    has_pairs: bool
    """Whether pairs were requested."""
    left_out: Mapping[str, str]
    """Measures that were skipped, with the reason."""
    n_words: int
    """Words to which every text was cut."""
    signature: str

    @property
    def measures(self) -> list[str]:
        return list(self.groups[0].estimates) if self.groups else []

    @property
    def remarks(self) -> list[str]:
        """Notices for a reader of the numbers."""
        others = "are of prompts that not all groups have, and were left out"
        lines: list[str] = []
        for count, what in (
            ("n_too_short", SHORT.format(self.n_words)),
            ("n_other_prompts", others),
            ("n_identical", IDENTICAL),
        ):
            for group in self.groups:
                lines += remark_on(group.name, getattr(group, count), group.n_texts, what)
        if self.design == "own-prompts":
            lines.append(
                "groups have prompts of their own: one text of each prompt is compared at a time"
            )
        return lines + [f"without {name}: {why}" for name, why in self.left_out.items()]

    def to_json(self) -> dict[str, Any]:
        return {
            "by": self.by,
            "groups": {group.name: group.to_json() for group in self.groups},
            "contrasts": [test.to_json() for test in self.tests],
            "pairs": [pair.to_json() for pair in self.pairs],
            "left_out": dict(self.left_out),
            "remarks": self.remarks,
            "signature": self.signature,
        }


def measure_diversity(
    documents: Sequence[Document], plan: Plan, stages: Stages | None = None
) -> Diversity:
    """Measure each group, and test each pair of groups (or each against the `baseline`).

    Raises `InputError` if a text lacks a field, or no group has two texts.
    """
    stages = stages or Stages()
    names = [ALL_TEXTS] * len(documents) if plan.by is None else groups_by(documents, plan.by)
    if plan.baseline is not None and plan.baseline not in names:
        known = ", ".join(dict.fromkeys(names))
        raise InputError(f"`baseline` {plan.baseline}: no such group; the groups are {known}")
    texts = GroupedTexts.of(documents, names, plan.prompt, plan.settings, stages)
    cut = cut_texts(texts, plan.n_words, plan.how.seed, plan.n_texts)
    extras = Extras(plan.extras, cut, stages, plan.encoder)
    # The rule of equal length and number comes first: it determines every number.
    signature = str(
        Signature.of(
            "diversity",
            words=str(cut.n_words),
            texts=str(cut.pool.n_drawn),
            draws=f"{cut.pool.design},{plan.how.n_draws}",
            **cut.texts.signature_parts(plan.settings),
            n=f"{SHARED[0]}-{SHARED[-1]}",
            gzip=GZIP,
            **extras.signature_parts,
            **({} if plan.own is None else {"given": plan.own.digest}),
            seed=str(plan.how.seed),
            v=__version__,
        )
    )
    stages.begin("counting n-grams", None)
    # Words as numbers are only needed to count n-grams, and strings to encode them.
    ngrams = shared_ngrams.NgramMeasures.of(cut.texts.table(plan.settings), plan.n_threads)
    encoded = tuple(text.encode(errors="replace") for text in cut.strings())
    kinds: list[Measures] = [ngrams, Compression(encoded, plan.n_threads)]
    if extras.templates is not None and extras.tags is not None:
        n_tokens = np.array([len(text.words) for text in extras.tags.texts], np.int64)
        kinds.append(shared_ngrams.Templates(extras.templates[0], n_tokens))
    if extras.vectors is not None:
        kinds.append(Embeddings(extras.vectors))
    tested = list(combinations(cut.names, 2))
    if plan.baseline is not None:
        tested = [(name, plan.baseline) for name in cut.names if name != plan.baseline]
        tested = tested if plan.baseline in cut.names else []
    stages.begin("resampling", len(kinds) * (len(cut.names) + len(tested)))
    by_group: dict[str, dict[str, Estimate]] = {name: {} for name in cut.names}
    tests: list[Contrast] = []
    for kind in kinds:
        estimates, contrasts = measure_groups(
            kind, cut.pool, cut.names, tested, plan.how, signature, stages.advance
        )
        tests += contrasts
        for name, by_measure in estimates.items():
            by_group[name] |= by_measure
    lengths = [grams for grams in ngrams.lengths if grams.n in shared_ngrams.PHRASES]
    # A group without texts that are long enough.
    nothing = Estimate(None, None, None, 0, "too few texts", signature, 0)
    without = dict.fromkeys(by_group[cut.names[0]], nothing)
    groups = [
        _group(name, texts, cut, by_group.get(name, without), lengths, extras, plan)
        for name in dict.fromkeys(texts.groups)
    ]
    pairs: list[SimilarPair] = []
    if plan.n_pairs:
        stages.begin("comparing pairs of texts", None)
        table = PairTable(texts.in_order(), texts.table(plan.settings), RUN_WORDS)
        pairs = table.similar_pairs(plan.n_pairs)
    about = plan.n_pairs > 0, extras.left_out, cut.n_words, signature
    return Diversity(plan.by, cut.pool.design, groups, tests, pairs, *about)


class Extras:
    """Parts of speech and vectors of the remaining texts, if requested and available."""

    def __init__(
        self, asked: Collection[Extra], cut: CutTexts, stages: Stages, encoder: Path | None = None
    ) -> None:
        self.tags: Located | None = None
        self.templates: tuple[Ngrams, NDArray[np.int32]] | None = None
        """As from `templates_of`."""
        self.vectors: NDArray[np.float64] | None = None
        self.signature_parts: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        for name in ("templates", "embeddings"):
            reason: str | None = NOT_ASKED
            if name in asked:
                try:
                    take = self._tag if name == "templates" else partial(self._embed, path=encoder)
                    reason = take(cut, stages)
                except ModelError as error:
                    reason = str(error)
            if reason is not None:
                self.left_out[name] = reason

    def _tag(self, cut: CutTexts, stages: Stages) -> str | None:
        tagger, texts = shared_ngrams.Tagger(), cut.strings()
        stages.begin("tagging parts of speech", len(texts))
        foreign = [reason for text in texts if (reason := not_english(text)) is not None]
        if 2 * len(foreign) > len(texts):
            return foreign[0]
        tagged = list(tagger.tag(texts, stages.advance))
        # A tagged text begins at its first word.
        begins = [words.starts[0] for words in cut.texts.located]
        both = zip((text.tags for text in tagged), begins, strict=True)
        placed = [TextWords(t.words, begin + t.starts, begin + t.ends) for t, begin in both]
        self.tags = Located([document.id for document in cut.texts.documents], placed)
        self.templates = shared_ngrams.templates_of(tagged)
        self.signature_parts |= {**tagger.signature_parts, "lang": language_gate()}
        return None

    def _embed(self, cut: CutTexts, stages: Stages, path: Path | None) -> str | None:
        encoder, texts = Encoder(path), cut.strings()
        stages.begin("encoding texts", len(texts))
        vectors = []
        for text in texts:
            # The mean of the vectors of its parts, each read whole.
            mean = encoder.encode(encoder.parts(text)).astype(np.float64).mean(axis=0)
            vectors.append(mean / max(1e-12, float(np.linalg.norm(mean))))
            stages.advance(1)
        self.vectors = np.stack(vectors)
        self.signature_parts["enc"] = encoder.name
        return None


def _group(
    name: str,
    texts: GroupedTexts,
    cut: CutTexts,
    estimates: Mapping[str, Estimate],
    lengths: Sequence[Ngrams],
    extras: Extras,
    plan: Plan,
) -> GroupDiversity:
    n_texts, n_short, n_identical = texts.counts(name, cut.n_words)
    if name not in cut.names:
        return GroupDiversity(name, n_texts, n_short, 0, 0, 0, estimates, n_identical=n_identical)
    number = cut.names.index(name)
    is_named = np.array([group == name for group in cut.texts.groups])
    is_in = cut.pool.labels == number
    templates: list[SharedPhrase] = []
    if extras.templates is not None and extras.tags is not None:
        counted = [extras.templates[0]]
        templates = shared_ngrams.shared_phrases(counted, is_in, plan.n_phrases, extras.tags)
    phrases = shared_ngrams.shared_phrases(lengths, is_in, plan.n_phrases, cut.texts.in_order())
    n_others = int(np.count_nonzero(is_named & ~is_in))
    sizes = n_texts, n_short, n_others, cut.pool.n_drawn, cut.pool.n_units(number)
    return GroupDiversity(name, *sizes, estimates, phrases, templates, n_identical)


@dataclass(frozen=True, slots=True)
class Together:
    """Which texts resemble which, and how similar all are."""

    shared: Sequence[SharedText]
    """What each text shares with any other, most shared first."""
    pairs: Sequence[SimilarPair]
    """Those with the most words in common runs first; only some are listed."""
    diversity: Diversity | None
    reason: str
    """Why the set has no numbers; empty if it has."""
    remarks: Sequence[str]
    is_class: bool = False
    """Whether each text was to be compared with all others, not only described."""
    apart: str | None = None
    """Texts that share this field were not compared with each other."""

    def to_json(self) -> dict[str, Any]:
        diversity = self.diversity
        return {
            "shared": [asdict(text) for text in self.shared],
            "pairs": [pair.to_json() for pair in self.pairs],
            "direction": "unknown",
            "not_compared_within": self.apart,
            "set": None if diversity is None else diversity.groups[0].to_json(),
            "missing_reason": self.reason or None,
            "remarks": list(self.remarks),
            "signature": None if diversity is None else diversity.signature,
        }


def measure_together(
    documents: Sequence[Document],
    *,
    seed: int,
    n_threads: int,
    is_class: bool = False,
    apart: str | None = None,
    own: MaskedTexts | None = None,
) -> Together:
    """The pairs of texts with most in common; from ten texts on, also the diversity of all.

    is_class: list more pairs. apart: a field; texts that share it are not compared with each other.
    own: what was left out of the texts.
    """
    plan = Plan(how=Resampling(seed=seed), n_phrases=0, n_threads=n_threads, own=own)
    texts = GroupedTexts.of(documents, [ALL_TEXTS] * len(documents), None, plan.settings, Stages())
    owners = None
    if apart is not None:
        # A text without the field has a number of its own.
        values = [own_field(document, apart) for document in documents]
        if all(value is None for value in values):
            raise InputError(f"cannot exclude by {apart!r}: none of these texts has this field")
        keys = [k if value is None else value for k, value in enumerate(values)]
        owners = Units.by(keys).of.tolist()
    table = PairTable(texts.in_order(), texts.table(plan.settings), RUN_WORDS, owners)
    pairs = table.similar_pairs(_N_PAIRS_OF_A_CLASS if is_class else _N_PAIRS)
    shared = table.shared_texts()
    remarks = remark_on("these texts", texts.counts(ALL_TEXTS)[2], len(documents), IDENTICAL)
    remarks += [] if own is None else own.remarks
    diversity, reason = None, ""
    if len(documents) < MIN_UNITS:
        reason = f"figures of the set need {MIN_UNITS} texts, and these are {len(documents)}"
    else:
        try:
            diversity = measure_diversity(documents, plan)
            remarks += [line for line in diversity.remarks if "were left out" in line]
        except InputError:
            reason = "more than a tenth of the texts are too short to be compared"
    return Together(shared, pairs, diversity, reason, remarks, is_class, apart)

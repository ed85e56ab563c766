"""Tell human from machine by a score, with the accuracy and its uncertainty.

Lu et al. 2024, section "Evaluation": texts of higher Creativity Index are more likely human, which
is measured by the area under the ROC curve (AUROC): the probability that a human text ranks above a
machine one. Other scores, from a language model's log-probabilities, take their direction from the
papers that propose them, never from the data.

A score may be unable to tell the two apart, or rank them the wrong way round. If the interval of
the AUROC includes 0.5, or lies below it, there are no verdicts: they would accuse people falsely.

The false-positive rate was measured on certain people's texts, and is valid for texts like them: of
similar length, with as many line breaks, sentences and quotation marks of each style, in similar
vocabulary. Texts outside the range of the people's texts get no verdict. Machines' texts do not
matter here, since nothing is guaranteed about how often they are flagged.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fabula.core.errors import DAMAGE, InputError, MixError
from fabula.core.packages import scipy
from fabula.core.store import DETECTORS, write_whole
from fabula.core.types import Estimate, Signature
from fabula.novelty.scores import DIRECTIONS
from fabula.stats.prediction_powered import clopper_pearson_high, share_high
from fabula.stats.resampling import MIN_UNITS, auroc_interval
from fabula.text.clusters import Sketch, cluster_field, find_clusters, has_value

Outcome = Literal["separates", "cannot tell", "reversed", "too few"]

_N_FOLDS = 5
_N_BINS = 10

OUTCOMES = {
    "separates": "it tells them apart",
    "cannot tell": "the interval of the AUROC includes 0.5",
    "reversed": "it ranks them the wrong way round",
    "too few": "there are too few clusters for an interval",
}
_NO_VERDICT = "the detector cannot tell human from machine"
_CALIBRATED_ON = (
    "the detector was calibrated on this text, or on one that shares 25 words in a row with it: "
    "its error rates hold for other texts only; apply it to texts that it has not seen"
)
_MAX_EXCESS = 3
"""Maximum ratio of the upper bound of false alarms to the requested rate."""

_TRIMMED = 0.005
"""Share of the people's texts trimmed at either end of a range: outliers do not widen it."""
_SLACK_WORDS = 0.1
_NAMES = {
    "n_words": "{} words",
    "line_breaks": "{} line breaks per 100 words",
    "sentence_ends": "{} ends of sentences per 100 words",
    "straight_quotes": "{} straight quotation marks per 100 words",
    "curly_quotes": "{} curly quotation marks per 100 words",
    "other_quotes": "{} single or foreign quotation marks per 100 words",
    "unknown_words": "{} % words that no calibration text has",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """The range of the people's texts, and what identifies the calibration texts."""

    ranges: Mapping[str, tuple[float, float]]
    vocabulary: NDArray[np.uint16]
    """The words of all texts, as in sketches, sorted."""
    runs: NDArray[np.uint64]
    digests: frozenset[str]

    @classmethod
    def of(
        cls,
        sketches: Sequence[Sketch],
        is_human: NDArray[np.bool_],
        clusters: NDArray[np.int64],
        digests: Sequence[str],
    ) -> Kind:
        """The kind of labelled texts, at least one of which is by a person."""
        people = [s for s, human in zip(sketches, is_human, strict=True) if human]
        ranges = {name: _range([traits(s)[name] for s in people]) for name in traits(people[0])}
        words = np.concatenate([s.vocabulary for s in sketches])
        owners = np.repeat(clusters, [len(s.vocabulary) for s in sketches])
        pairs = np.unique(np.stack([words.astype(np.int64), owners]), axis=1)
        n_clusters = np.bincount(pairs[0], minlength=1 << 16)
        # The percentage of a text's words that no text of another cluster has: its own cluster has
        # all of its words, so a word in one cluster is in no other.
        unknown = [
            100 * float(np.mean(n_clusters[s.vocabulary] < 2)) if s.n_words else 0.0 for s in people
        ]
        ranges["unknown_words"] = (0.0, _range(unknown)[1])
        runs = np.unique(np.concatenate([s.runs for s in sketches]))
        return cls(ranges, np.unique(words), runs, frozenset(digests))

    def refusal(self, sketch: Sketch) -> str | None:
        """Why a text is of another kind, or None."""
        if not sketch.n_words:
            return None
        unknown = 100 * float(np.mean(~np.isin(sketch.vocabulary, self.vocabulary)))
        parts = []
        for name, value in {**traits(sketch), "unknown_words": unknown}.items():
            low, high = self.ranges[name]
            slack = _SLACK_WORDS * value if name == "n_words" else 100 / sketch.n_words
            if not low - slack <= value <= high + slack:
                shown = "up to " if name == "unknown_words" else f"{low:.3g} to "
                parts.append(f"{_NAMES[name].format(f'{value:.3g}')} (people's: {shown}{high:.3g})")
        return f"of another kind than the calibration texts: {', '.join(parts)}" if parts else None

    def holds(self, sketch: Sketch, digest: str) -> bool:
        """Whether the text is one of the calibration texts, or shares a long run with one."""
        return digest in self.digests or bool(np.isin(sketch.runs, self.runs).any())

    def to_row(self) -> dict[str, Any]:
        """As plain values; `of_row` reads them."""
        return {
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "vocabulary": _packed(self.vocabulary.astype("<u2")),
            "runs": _packed(self.runs.astype("<u8")),
            "digests": sorted(self.digests),
        }

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Kind:
        """Read output of `to_row`. Raises `KeyError`, `TypeError` or `ValueError` if damaged."""
        ends = {name: row["ranges"][name] for name in _NAMES}
        ranges = {name: (float(low), float(high)) for name, (low, high) in ends.items()}
        vocabulary = np.frombuffer(base64.b64decode(row["vocabulary"], validate=True), "<u2")
        runs = np.frombuffer(base64.b64decode(row["runs"], validate=True), "<u8")
        return cls(ranges, vocabulary, runs, frozenset(map(str, row["digests"])))


def traits(sketch: Sketch) -> dict[str, float]:
    """Length and layout of a text."""
    return {"n_words": float(sketch.n_words), **sketch.marks}


def _range(values: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(values)
    n_left_out = int(_TRIMMED * len(ordered))
    return ordered[n_left_out], ordered[len(ordered) - 1 - n_left_out]


def _packed(values: NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()


@dataclass(frozen=True, slots=True)
class Labelled:
    """Texts known to be by people or machines, with one score each.

    scores: float64 (n,), oriented so that human texts should be higher. is_human: bool (n,).
    clusters: int64 (n,), texts of one cluster (a prompt, an author) count as one independent unit:
    they are held out together, and intervals and guarantees are over clusters.
    """

    scores: NDArray[np.float64]
    is_human: NDArray[np.bool_]
    clusters: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Threshold:
    """Where to call a text machine-written so that few human ones are."""

    target: float
    """The allowed share of human texts that are called machine-written."""
    value: float
    """Texts with an oriented score below it are called machine-written."""
    false_positives: float
    """The share of these human texts that are."""
    false_positives_high: float
    """Upper bound of that share among texts of other clusters, with 95 % confidence."""
    true_positives: float
    """The share of these machine texts that are."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What is known about the texts besides their scores."""

    kind: Kind
    n_copies: int
    """Texts that nearly repeat a text of another cluster; such clusters were joined."""
    n_clusters_before: int
    cluster: str | None
    """The field whose texts count as one, besides copies; None if no text has a usual one."""
    layout: Mapping[str, float]
    """How well length and layout alone tell people's texts from machines': AUROC by trait."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well a score tells human from machine on labelled texts."""

    score: str
    direction: int
    outcome: Outcome
    auroc: Estimate
    n_human: int
    n_machine: int
    n_missing: int
    n_clusters: int
    n_human_clusters: int
    """Independent people, or prompts that people responded to."""
    calibration_error: float | None
    """Expected difference between stated probability and truth, over texts whose cluster was not in
    the fit; None with too few clusters."""
    slope: float
    intercept: float
    """The probability of being human is the logistic function of slope * score + intercept."""
    score_range: tuple[float, float]
    """The lowest and the highest score, oriented, of all texts."""
    thresholds: tuple[Threshold, ...]
    signature: str
    curve: tuple[tuple[float, float], ...]
    """ROC: (share of human texts called machine-written, share of machine texts)."""
    collected: Collected | None = None
    """Origin and kind of the texts, if known."""


def calibrate(
    texts: Labelled,
    *,
    score: str,
    signature: str,
    n_missing: int,
    targets: Sequence[float] = (0.01, 0.05, 0.1),
    seed: int = 0,
    collected: Collected | None = None,
) -> Calibration:
    """Evaluate a score on these texts.

    Raises `InputError` if there are no human texts or no machine texts.
    """
    n_human, n_machine = int(texts.is_human.sum()), int((~texts.is_human).sum())
    if not n_human or not n_machine:
        raise InputError(
            f"{score}: {n_human} human and {n_machine} machine texts with a score; both are needed"
        )
    distinct, groups = np.unique(texts.clusters, return_inverse=True)
    n_groups = len(distinct)
    value = auroc(texts.scores, texts.is_human)
    low, high = _auroc_interval(value, texts, groups)
    outcome: Outcome = "separates"
    if low is None or high is None:
        outcome = "too few"
    elif low <= 0.5:
        outcome = "cannot tell" if high >= 0.5 else "reversed"
    slope, intercept = _fit(texts.scores, texts.is_human)
    how = f"AUROC, score interval over {n_groups} clusters"
    people, machines = np.sort(texts.scores[texts.is_human]), np.sort(texts.scores[~texts.is_human])
    cuts = np.append(np.unique(texts.scores), np.inf)
    below = zip(np.searchsorted(people, cuts), np.searchsorted(machines, cuts), strict=True)
    field = collected and collected.cluster
    signed = signature if field is None else f"{signature}|cluster:{field}"
    return Calibration(
        score=score,
        direction=DIRECTIONS[score],
        signature=signature,
        n_human=n_human,
        n_machine=n_machine,
        n_missing=n_missing,
        n_clusters=n_groups,
        n_human_clusters=len(set(groups[texts.is_human])),
        auroc=Estimate(value, low, high, n_human + n_machine, how, signed),
        outcome=outcome,
        thresholds=tuple(find_threshold(texts, target) for target in targets),
        curve=tuple((float(a) / n_human, float(b) / n_machine) for a, b in below),
        slope=slope,
        intercept=intercept,
        calibration_error=_calibration_error(texts, groups, n_groups, seed),
        score_range=(float(texts.scores.min()), float(texts.scores.max())),
        collected=collected,
    )


def auroc(scores: NDArray[np.float64], is_human: NDArray[np.bool_]) -> float:
    """The share of pairs in which the human text scores higher, ties counting half."""
    return float(_shares_below(scores[is_human], scores[~is_human]).mean())


def _shares_below(values: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each value the share of the others that are below it, ties counting half: shape (n,)."""
    others = np.sort(others)
    below = np.searchsorted(others, values, "left") + np.searchsorted(others, values, "right")
    return below / (2 * len(others))


def _auroc_interval(
    value: float, texts: Labelled, groups: NDArray[np.int64]
) -> tuple[float | None, float | None]:
    """The 95 % interval, as of so many independent texts as the clusters are worth.

    Texts of a cluster are worth less by as much as they increase DeLong's variance; if the groups
    are perfectly separated, a cluster counts once. None with fewer than ten clusters of either.
    """
    sides = groups[texts.is_human], groups[~texts.is_human]
    n_clusters = [len(set(side)) for side in sides]
    if min(n_clusters) < MIN_UNITS:
        return None, None
    n_human, n_machine = map(len, sides)
    people, machines = texts.scores[texts.is_human], texts.scores[~texts.is_human]
    added = np.empty(len(groups))
    added[texts.is_human] = (_shares_below(people, machines) - value) / n_human
    added[~texts.is_human] = (1 - _shares_below(machines, people) - value) / n_machine
    alone = math.fsum(
        n / (n - 1) * float((added[mask] ** 2).sum())
        for mask, n in ((texts.is_human, n_human), (~texts.is_human, n_machine))
    )
    if not alone > 0:
        return auroc_interval(value, *n_clusters)
    by_cluster = np.bincount(groups, added)
    n = len(by_cluster)
    worth = max(1.0, n / (n - 1) * float((by_cluster**2).sum()) / alone)
    return auroc_interval(value, n_human / worth, n_machine / worth)


def find_threshold(texts: Labelled, target: float) -> Threshold:
    """The threshold with at most a share of `target` of the human texts below it.

    The bound on that share is over clusters of human texts (`share_high`), since texts by one
    author or to one prompt are flagged together.
    """
    people = np.sort(texts.scores[texts.is_human])
    machines = texts.scores[~texts.is_human]
    value = float(people[min(len(people) - 1, int(target * len(people) + 1e-9))])
    flagged = texts.scores[texts.is_human] < value
    _, which = np.unique(texts.clusters[texts.is_human], return_inverse=True)
    shares = np.bincount(which, flagged) / np.bincount(which)
    n_false = int(flagged.sum())
    return Threshold(
        target=target,
        value=value,
        false_positives=n_false / len(people),
        # One cluster may hold most of the texts; then they say more than the mean of clusters.
        false_positives_high=max(share_high(shares), clopper_pearson_high(n_false, len(people))),
        true_positives=float((machines < value).mean()),
    )


def _logistic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-np.clip(x, -500, 500)))


def _fit(scores: NDArray[np.float64], is_human: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and intercept of the logistic curve (Platt 1999, with his smoothed targets, so that
    classes that do not overlap have one too)."""
    minimize = scipy("optimize").minimize
    n_human, n_machine = int(is_human.sum()), int((~is_human).sum())
    goal = np.where(is_human, (n_human + 1) / (n_human + 2), 1 / (n_machine + 2))
    centre, scale = float(scores.mean()), float(scores.std()) or 1.0
    x = (scores - centre) / scale

    def loss(line: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        z = line[0] * x + line[1]
        p = _logistic(z)
        value = np.logaddexp(0, z).sum() - (goal * z).sum()
        return float(value), np.array([((p - goal) * x).sum(), (p - goal).sum()])

    line = minimize(loss, np.zeros(2), jac=True, method="BFGS").x
    slope = float(line[0]) / scale
    return slope, float(line[1]) - slope * centre


def _calibration_error(
    texts: Labelled, groups: NDArray[np.int64], n_groups: int, seed: int
) -> float | None:
    """Expected calibration error in ten bins of equal size, each text judged by a curve that was
    fitted to other clusters."""
    if n_groups < 2 * _N_FOLDS:
        return None
    fold = np.random.default_rng([seed, 1]).permutation(n_groups)[groups] % _N_FOLDS
    stated = np.full(len(groups), np.nan)
    for k in range(_N_FOLDS):
        rest, held = fold != k, fold == k
        if not held.any() or len(set(texts.is_human[rest])) < 2:
            continue
        slope, intercept = _fit(texts.scores[rest], texts.is_human[rest])
        stated[held] = _logistic(slope * texts.scores[held] + intercept)
    judged = np.isfinite(stated)
    truth = texts.is_human[judged].astype(np.float64)
    _, which, counts = np.unique(stated[judged], return_inverse=True, return_counts=True)
    # Texts of equal probability share a bin, so that the order of texts does not matter.
    middle = (np.cumsum(counts) - counts / 2) / max(1, int(judged.sum()))
    bins = (middle * _N_BINS).astype(np.int64)[which]
    gap = np.bincount(bins, stated[judged] - truth, minlength=_N_BINS)
    return float(np.abs(gap).sum() / np.bincount(bins, minlength=_N_BINS).sum())


def calibration_row(calibration: Calibration) -> dict[str, Any]:
    # What identifies the texts is large, and written apart.
    row = asdict(replace(calibration, curve=(), collected=None))
    del row["curve"], row["collected"]
    row["auroc"] = {name: row["auroc"][name] for name in ("value", "low", "high", "method")}
    if (collected := calibration.collected) is not None:
        row |= {
            "cluster": collected.cluster,
            "n_copies": collected.n_copies,
            "n_clusters_before": collected.n_clusters_before,
            "layout_auroc": {name: round(value, 4) for name, value in collected.layout.items()},
        }
    return row


@dataclass(frozen=True, slots=True)
class Label:
    """Which rows are human: those whose field has the value."""

    field: str
    human: str

    @classmethod
    def parse(cls, text: str) -> Label:
        field, equals, human = text.partition("=")
        if not (field and equals and human):
            raise InputError(f"`label` {text}: must be FIELD=VALUE, as in label=human")
        return cls(field, human)

    def __str__(self) -> str:
        return f"{self.field}={self.human}"


def calibrate_rows(
    scored: Iterable[dict[str, Any]],
    label: Label,
    path: str,
    *,
    cluster: str | None = None,
    targets: Sequence[float] = (0.01, 0.05, 0.1),
    seed: int = 0,
) -> list[Calibration]:
    """Calibrate each known score in rows; `path` names the rows.

    Texts that share the field `cluster` count as one; by default `prompt_id`, `pair_id` or
    `author`, whichever the rows have. Clusters whose texts are copies of each other are joined.

    Raises `InputError` if a row lacks the label or the field, `MixError` if rows were not measured
    in the same way.
    """
    rows = list(_checked(scored, path))
    measured = _measured(rows[0])
    if not measured:
        raise InputError(
            f"{path}: no {' or '.join(DIRECTIONS)} in its rows; use files of "
            "`fabula originality --out` or `fabula detect score --out`"
        )
    for k, row in enumerate(rows, 1):
        if row.get(label.field) is None:
            raise InputError(
                f"{path}, line {k}: no field {label.field!r} to distinguish human from machine; "
                f"the fields are {', '.join(map(repr, row))}"
            )
    is_human = np.array([str(row[label.field]) == label.human for row in rows])
    if not is_human.any():
        values = sorted({str(row[label.field]) for row in rows})
        raise InputError(
            f"{path}: no text has {label}; the values of its {label.field} are "
            f"{', '.join(values[:10])}"
        )
    sketches = [_sketch(row, path, k) for k, row in enumerate(rows, 1)]
    digests = [str(row["text_digest"]) for row in rows]
    field = cluster_field(rows, cluster)
    # The cluster of each row, as far as its fields say.
    keys = [f"text={digest}" for digest in digests]
    for k, row in enumerate(rows, 1):
        if field is None:
            break
        if not has_value(row.get(field)):
            raise InputError(
                f"{path}, line {k}: no field {field!r} to cluster by; clusters keep texts that "
                "belong together from counting as independent: add the field, or choose another "
                "field (`id` for none)"
            )
        keys[k - 1] = f"{field}={row[field]}"
    clusters = find_clusters(keys, sketches, is_human.tolist(), digests)
    layout = {
        name: auroc(np.array([traits(sketch)[name] for sketch in sketches]), is_human)
        for name in (traits(sketches[0]) if not is_human.all() else ())
    }
    kind = Kind.of(sketches, is_human, clusters.numbers, digests)
    collected = Collected(kind, len(clusters.copies), clusters.n_before, field, layout)
    calibrations = []
    for name in measured:
        known = np.array([row.get(name) is not None for row in rows])
        values = [DIRECTIONS[name] * row[name] for row in rows if row.get(name) is not None]
        calibrations.append(
            calibrate(
                Labelled(np.array(values, np.float64), is_human[known], clusters.numbers[known]),
                score=name,
                signature=str(rows[0]["signature"]),
                n_missing=int((~known).sum()),
                targets=targets,
                seed=seed,
                collected=collected,
            )
        )
    return calibrations


def _checked(rows: Iterable[dict[str, Any]], path: str) -> Iterator[dict[str, Any]]:
    """The rows of a score file, all measured in the same way."""
    signature: str | None = None
    for line, row in enumerate(rows, 1):
        current = row.get("signature")
        if not isinstance(current, str) or "id" not in row or not _measured(row):
            raise InputError(f"{path}, line {line}: not a row of scores")
        for name in _measured(row):
            value = row[name]
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            # The bound also excludes NaN and infinity.
            if value is not None and not (is_number and abs(value) < 1e300):
                raise InputError(f"{path}, line {line}: {name} is {repr(value)[:40]}, not a number")
        signature = signature or current
        before = f"{path}, line {line} and the rows before it"
        remedy = "score all texts with the same settings"
        Signature.parse(signature).check_same(current, before, remedy)
        yield row
    if signature is None:
        raise InputError(f"{path}: contains no rows of scores")


def _measured(row: dict[str, Any]) -> list[str]:
    """The scores in the row that the instrument of its signature gives."""
    instrument = str(row.get("signature")).partition("|")[0]
    of = {"creativity_index": "originality"}
    names = [name for name in DIRECTIONS if of.get(name, "probability") == instrument]
    return [name for name in names if name in row]


def _sketch(row: dict[str, Any], path: str, number: int) -> Sketch:
    sketch = Sketch.of_row(row.get("sketch"))
    if sketch is None or "text_digest" not in row:
        raise InputError(
            f"{path}, line {number}: lacks the sketch of the text that rows of this version have; "
            "score the texts again"
        )
    return sketch


def write_detectors(
    path: Path, calibrations: Sequence[Calibration], label: Label, cluster: str | None
) -> None:
    """Write a file for `read_detectors`."""
    kinds = list({id(c.collected): c.collected.kind for c in calibrations if c.collected}.values())
    places = {id(kind): place for place, kind in enumerate(kinds)}
    content = {
        **DETECTORS.mark,
        "label": str(label),
        "cluster": cluster,
        "detectors": [
            calibration_row(c) | {"kind": places[id(c.collected.kind)] if c.collected else None}
            for c in calibrations
        ],
        "kinds": [kind.to_row() for kind in kinds],
    }
    write_whole(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def read_detectors(path: Path) -> list[dict[str, Any]]:
    """Read the detectors of a file, each with its `Kind`. Raises `InputError` if it has none."""
    try:
        content = json.loads(path.read_bytes())
        DETECTORS.check(content, path)
        detectors = list(content["detectors"])
        kinds = [Kind.of_row(row) for row in content["kinds"]]
        for detector in detectors:
            float(detector["slope"]), float(detector["intercept"]), int(detector["direction"])
            str(detector["signature"]), [float(t["value"]) for t in detector["thresholds"]]
            _low, _high = map(float, detector["score_range"])
            [(float(t["target"]), float(t["false_positives_high"])) for t in detector["thresholds"]]
            detector["kind"] = kinds[detector["kind"]]
            if detector["outcome"] not in OUTCOMES or detector["score"] not in DIRECTIONS:
                raise InputError(f"{path}: contains an unknown score or outcome")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except DAMAGE as error:
        raise InputError(
            f"{path}: not a file of detectors ({error!r}); `fabula detect calibrate --out` writes "
            f"one"
        ) from error
    if not detectors:
        raise InputError(f"{path}: contains no detectors")
    return detectors


def apply_to_rows(
    detectors: Sequence[dict[str, Any]], scored: Iterable[dict[str, Any]], path: str, target: float
) -> Iterator[dict[str, Any]]:
    """A row with the verdict on each row of scores: `machine`, `not flagged`, or none and why.

    `target` is the allowed share of human texts called machine-written, one of the rates for which
    the detector was calibrated; `path` names the rows in errors. The verdict is missing if the
    detector does not separate, or may flag far more of people's texts than that, and for texts that
    it was calibrated on, near-duplicates of these, and texts of another kind. Raises `MixError` if
    the scores were measured in another way than the detector's.
    """
    rows = list(_checked(scored, path))
    fitting = [d for d in detectors if _differences(d, rows[0]) == []]
    if not fitting:
        raise MixError(
            f"{path}: not measured in the same way as any of the detectors "
            f"({'; '.join(_differences(detectors[0], rows[0]))}); calibrate on scores of this kind"
        )
    detector = next((d for d in fitting if d["outcome"] == "separates"), fitting[0])
    limit = next((t for t in detector["thresholds"] if abs(t["target"] - target) < 1e-9), None)
    if limit is None:
        rates = ", ".join(f"{t['target']:g}" for t in detector["thresholds"])
        raise InputError(
            f"a rate of {target:g}: the detector was calibrated for {rates}; choose one of these"
        )
    low, high = sorted(detector["direction"] * end for end in detector["score_range"])
    slack = (high - low) / 10
    kind, high_rate = detector["kind"], limit["false_positives_high"]
    of_detector = None
    if detector["outcome"] != "separates":
        of_detector = f"{_NO_VERDICT}: {OUTCOMES[detector['outcome']]}"
    elif high_rate > _MAX_EXCESS * limit["target"]:
        of_detector = (
            f"it may flag up to {high_rate:.1%} of such people's texts (95 % confidence), far "
            f"above the {limit['target']:.1%} that was asked; calibrate on texts by more people, "
            f"or ask for a higher rate"
        )
    for number, row in enumerate(rows, 1):
        sketch, value = _sketch(row, path, number), row[detector["score"]]
        verdict, probability = None, None
        is_known = kind.holds(sketch, str(row["text_digest"]))
        missing = of_detector or (_CALIBRATED_ON if is_known else None)
        if missing is None and value is None:
            missing = row.get("missing_reason") or "no score"
        if missing is None:
            missing = kind.refusal(sketch)
        if missing is None and not low - slack <= value <= high + slack:
            missing = (
                f"of another kind than the calibration texts: a score of {value:.4g} (theirs: "
                f"{low:.4g} to {high:.4g})"
            )
        if missing is None:
            oriented = detector["direction"] * value
            stated = _logistic(np.array([detector["slope"] * oriented + detector["intercept"]]))
            probability = round(float(stated[0]), 4)
            verdict = "machine" if oriented < limit["value"] else "not flagged"
        yield {
            "id": row["id"],
            "verdict": verdict,
            "missing_reason": missing,
            "probability_human": probability,
            "score": detector["score"],
            "value": value,
            "calibrated_on": is_known,
            "false_positives": limit["false_positives"],
            "false_positives_high": high_rate,
            "signature": row["signature"],
        }


def _differences(detector: dict[str, Any], row: dict[str, Any]) -> list[str]:
    expected = Signature.parse(str(detector["signature"]))
    parts = expected.differences(Signature.parse(str(row["signature"])))
    return parts if detector["score"] in _measured(row) else [*parts, f"no {detector['score']}"]

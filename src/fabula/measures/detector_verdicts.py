"""Calibrate detectors from score files, and apply a detector to other texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fabula.errors import DAMAGE, InputError, MixError
from fabula.formats import DETECTORS
from fabula.measures.clusters import cluster_field, find_clusters, has_value
from fabula.measures.detector import INSTRUMENTS, Calibration, Collected, Labelled, auroc, calibrate
from fabula.measures.kind import Kind, traits
from fabula.measures.scores import DIRECTIONS
from fabula.store import write_whole
from fabula.text.sketch import Sketch
from fabula.types import Signature


def calibration_row(calibration: Calibration) -> dict[str, Any]:
    """As plain values for files and JSON output; `read_calibration` reads it back."""
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
    given: Iterable[dict[str, Any]],
    label: Label,
    path: str,
    *,
    cluster: str | None = None,
    scores: Sequence[str] = (),
    targets: Sequence[float] = (0.01, 0.05, 0.1),
    seed: int = 0,
) -> list[Calibration]:
    """Calibrate each score in rows (those in `scores`, or all known ones); `path` names the rows.

    Texts that share the field `cluster` count as one; by default `prompt_id`, `pair_id` or
    `author`, whichever the rows have. Clusters whose texts are copies of each other are joined.

    Raises `InputError` if a row lacks the label or the field, `MixError` if rows were not measured
    in the same way.
    """
    found = []
    rows = list(_checked(given, path))
    measured = _measured(rows[0])
    chosen = [name for name in scores or measured if name in measured]
    if not chosen:
        raise InputError(
            f"{path}: no {' or '.join(scores or DIRECTIONS)} in its rows; use files of "
            "`fabula originality --out` or `fabula detect score --out`"
        )
    is_human = np.array([_is_human(row, label, path, k) for k, row in enumerate(rows, 1)])
    if not is_human.any():
        values = sorted({str(row[label.field]) for row in rows})
        raise InputError(
            f"{path}: no text has {label}; the values of its {label.field} are "
            f"{', '.join(values[:10])}"
        )
    sketches = [_sketch(row, path, k) for k, row in enumerate(rows, 1)]
    digests = [str(row["text_digest"]) for row in rows]
    field = cluster_field(rows, cluster)
    clusters = find_clusters(_keys(rows, field, path), sketches, is_human.tolist(), digests)
    layout = {}
    if not is_human.all():
        for name in traits(sketches[0]):
            of_text = np.array([traits(sketch)[name] for sketch in sketches])
            layout[name] = auroc(of_text, is_human)
    collected = Collected(
        kind=Kind.of(sketches, is_human, clusters.numbers, digests),
        n_copies=len(clusters.copies),
        n_clusters_before=clusters.n_before,
        cluster=field,
        layout=layout,
    )
    for name in chosen:
        known = np.array([row.get(name) is not None for row in rows])
        values = [DIRECTIONS[name] * row[name] for row in rows if row.get(name) is not None]
        texts = Labelled(np.array(values, np.float64), is_human[known], clusters.numbers[known])
        found.append(
            calibrate(
                texts,
                score=name,
                signature=str(rows[0]["signature"]),
                n_missing=int((~known).sum()),
                targets=targets,
                seed=seed,
                collected=collected,
            )
        )
    return found


def _checked(rows: Iterable[dict[str, Any]], path: str) -> Iterator[dict[str, Any]]:
    """The rows of a score file, all measured in the same way."""
    signature: str | None = None
    for number, row in enumerate(rows, 1):
        found = row.get("signature")
        if not isinstance(found, str) or "id" not in row or not _measured(row):
            raise InputError(f"{path}, line {number}: not a row of scores")
        for name in _measured(row):
            value = row[name]
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            # The bound also excludes NaN and infinity.
            if value is not None and not (is_number and abs(value) < 1e300):
                raise InputError(
                    f"{path}, line {number}: {name} is {repr(value)[:40]}, not a number"
                )
        if signature is None:
            signature = found
        else:
            Signature.parse(signature).check_same(
                found,
                f"{path}, line {number} and the rows before it",
                "score all texts with the same settings",
            )
        yield row
    if signature is None:
        raise InputError(f"{path}: contains no rows of scores")


def _measured(row: dict[str, Any]) -> list[str]:
    """The scores in the row that the instrument of its signature gives."""
    instrument = str(row.get("signature")).partition("|")[0]
    return [name for name in DIRECTIONS if INSTRUMENTS[name] == instrument and name in row]


def _is_human(row: dict[str, Any], label: Label, path: str, number: int) -> bool:
    if label.field not in row or row[label.field] is None:
        own = ", ".join(map(repr, row))
        raise InputError(
            f"{path}, line {number}: no field {label.field!r} to distinguish human from machine; "
            f"the fields are {own}"
        )
    return str(row[label.field]) == label.human


def _sketch(row: dict[str, Any], path: str, number: int) -> Sketch:
    sketch = Sketch.of_row(row.get("sketch"))
    if sketch is None or "text_digest" not in row:
        raise InputError(
            f"{path}, line {number}: lacks the sketch of the text that rows of this version have; "
            "score the texts again"
        )
    return sketch


def _keys(rows: list[dict[str, Any]], field: str | None, path: str) -> list[str]:
    """The cluster key of each row, as far as its fields say."""
    if field is None:
        return [f"text={row['text_digest']}" for row in rows]
    for number, row in enumerate(rows, 1):
        if not has_value(row.get(field)):
            raise InputError(
                f"{path}, line {number}: no field {field!r} to cluster by; clusters keep texts "
                "that belong together from counting as independent: add the field, or choose "
                "another field (`id` for none)"
            )
    return [f"{field}={row[field]}" for row in rows]


def write_detectors(
    path: Path, calibrations: Iterable[Calibration], label: Label, cluster: str | None
) -> None:
    """Write a file for `read_detectors`."""
    calibrations = list(calibrations)
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


def detector_rows(calibrations: Iterable[Calibration]) -> list[dict[str, Any]]:
    """Detectors as from `read_detectors`, without a file."""
    return [calibration_row(c) | {"kind": c.collected.kind} for c in calibrations if c.collected]


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
    detectors: Sequence[dict[str, Any]], given: Iterable[dict[str, Any]], path: str, target: float
) -> Iterator[dict[str, Any]]:
    """A row with the verdict on each row of scores: `machine`, `not flagged`, or none and why.

    `target` is the allowed share of human texts called machine-written, one of the rates for which
    the detector was calibrated; `path` names the rows in errors. There is no verdict if the
    detector does not separate, or may flag far more of people's texts than that; nor on a text that
    it was calibrated on, or a near-duplicate; nor on one of another kind. Raises `MixError` if the
    scores were measured in another way than the detector's.
    """
    rows = list(_checked(given, path))
    fitting = [d for d in detectors if _differences(d, rows[0]) == []]
    if not fitting:
        raise MixError(
            f"{path}: not measured in the same way as any of the detectors "
            f"({'; '.join(_differences(detectors[0], rows[0]))}); calibrate on scores of this kind"
        )
    detector = next((d for d in fitting if d["outcome"] == "separates"), fitting[0])
    limit = next((t for t in detector["thresholds"] if abs(t["target"] - target) < 1e-9), None)
    if limit is None:
        known = ", ".join(f"{t['target']:g}" for t in detector["thresholds"])
        raise InputError(
            f"a rate of {target:g}: the detector was calibrated for {known}; choose one of these"
        )
    for number, row in enumerate(rows, 1):
        yield _verdict(detector, row, _sketch(row, path, number), limit)


def _differences(detector: dict[str, Any], row: dict[str, Any]) -> list[str]:
    own = Signature.parse(str(detector["signature"]))
    found = own.differences(Signature.parse(str(row["signature"])))
    return found if detector["score"] in _measured(row) else [*found, f"no {detector['score']}"]


def _verdict(
    detector: dict[str, Any], row: dict[str, Any], sketch: Sketch, limit: dict[str, float]
) -> dict[str, Any]:
    value, kind = row[detector["score"]], detector["kind"]
    verdict, probability = None, None
    is_known = kind.holds(sketch, str(row["text_digest"]))
    missing = _no_verdict(detector, limit) or (_CALIBRATED_ON if is_known else None)
    if missing is None and value is None:
        missing = row.get("missing_reason") or "no score"
    if missing is None:
        missing = kind.refusal(sketch) or _beyond(detector, value)
    if missing is None:
        oriented = detector["direction"] * value
        probability = 1 / (1 + np.exp(-(detector["slope"] * oriented + detector["intercept"])))
        verdict = "machine" if oriented < limit["value"] else "not flagged"
    return {
        "id": row["id"],
        "verdict": verdict,
        "missing_reason": missing,
        "probability_human": None if probability is None else round(float(probability), 4),
        "score": detector["score"],
        "value": value,
        "calibrated_on": is_known,
        "false_positives": limit["false_positives"],
        "false_positives_high": limit["false_positives_high"],
        "signature": row["signature"],
    }


def _no_verdict(detector: dict[str, Any], limit: dict[str, float]) -> str | None:
    """Why the detector gives no verdict on any text, or None."""
    if detector["outcome"] != "separates":
        return f"{_NO_VERDICT}: {OUTCOMES[detector['outcome']]}"
    asked, high = limit["target"], limit["false_positives_high"]
    if high > _MAX_EXCESS * asked:
        return (
            f"it may flag up to {high:.1%} of such people's texts (95 % confidence), far above the "
            f"{asked:.1%} that was asked; calibrate on texts by more people, or ask for a higher "
            f"rate"
        )
    return None


def _beyond(detector: dict[str, Any], value: float) -> str | None:
    """Why a score is outside the range of the calibration texts, or None."""
    low, high = sorted(detector["direction"] * end for end in detector["score_range"])
    slack = (high - low) / 10
    if low - slack <= value <= high + slack:
        return None
    return (
        f"of another kind than the calibration texts: a score of {value:.4g} (theirs: {low:.4g} to "
        f"{high:.4g})"
    )

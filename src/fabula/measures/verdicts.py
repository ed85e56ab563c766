"""From files of scores to calibrated detectors, and from a detector to verdicts on other texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fabula.errors import InputError, MixError
from fabula.measures.detection import (
    DIRECTIONS,
    INSTRUMENTS,
    Calibration,
    Labelled,
    calibrate,
    calibration_row,
)
from fabula.store import read_rows, write_whole
from fabula.types import Signature

__all__ = ["Label", "apply_detectors", "calibrate_files", "read_detectors", "write_detectors"]

FORMAT = 1
OUTCOMES = {
    "separates": "it tells them apart",
    "cannot tell": "the interval of the AUROC includes 0.5",
    "reversed": "it ranks them the wrong way round",
    "too few": "there are too few groups for an interval",
}
_NO_VERDICT = "the detector cannot tell human from machine"


@dataclass(frozen=True, slots=True)
class Label:
    """Which rows are human: those whose field holds the value."""

    field: str
    human: str

    @classmethod
    def parse(cls, text: str) -> Label:
        field, equals, human = text.partition("=")
        if not (field and equals and human):
            raise InputError(f"--label {text}: write FIELD=VALUE, as in label=human")
        return cls(field, human)

    def __str__(self) -> str:
        return f"{self.field}={self.human}"


def calibrate_files(
    paths: Sequence[Path],
    label: Label,
    *,
    group: str | None = None,
    scores: Sequence[str] = (),
    targets: Sequence[float] = (0.01, 0.05, 0.1),
    seed: int = 0,
) -> list[Calibration]:
    """A calibration of each score in each file (of `scores`, or of all that are known).

    Texts of one `group` stay together when resampled; by default those of one `prompt_id`,
    `pair_id` or `author`, whichever the rows have. Texts that are the same stand in one group.

    Raises `InputError` where a row lacks the label or a group, `MixError` where the rows of a file
    were not measured alike.
    """
    found = []
    for path in paths:
        rows = list(_checked(path))
        measured = _measured(rows[0])
        chosen = [name for name in scores or measured if name in measured]
        if not chosen:
            raise InputError(
                f"{path}: no {' or '.join(scores or DIRECTIONS)} in its rows; give files of "
                f"`fabula originality --out` or `fabula detect score --out`"
            )
        is_human = np.array([_is_human(row, label, path, k) for k, row in enumerate(rows, 1)])
        if not is_human.any():
            values = sorted({str(row[label.field]) for row in rows})
            raise InputError(
                f"{path}: no text has {label}; its {label.field} is one of {', '.join(values[:10])}"
            )
        groups = np.array(_group_numbers(rows, group, path), np.int64)
        for name in chosen:
            known = np.array([row.get(name) is not None for row in rows])
            values = [DIRECTIONS[name] * row[name] for row in rows if row.get(name) is not None]
            found.append(
                calibrate(
                    Labelled(np.array(values, np.float64), is_human[known], groups[known]),
                    score=name,
                    signature=str(rows[0]["signature"]),
                    n_missing=int((~known).sum()),
                    targets=targets,
                    seed=seed,
                )
            )
    return found


def _checked(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file of scores, all measured alike."""
    signature: str | None = None
    for number, row in enumerate(read_rows(path), 1):
        found = row.get("signature")
        if not isinstance(found, str) or "id" not in row or not _measured(row):
            raise InputError(f"{path}, line {number}: not a row of scores")
        for name in _measured(row):
            if row[name] is not None and not _is_number(row[name]):
                shown = repr(row[name])[:40]
                raise InputError(f"{path}, line {number}: {name} is {shown}, not a number")
        if signature is None:
            signature = found
        elif differences := Signature.parse(signature).differences(Signature.parse(found)):
            raise MixError(
                f"{path}, line {number}: measured in another way than the rows before it "
                f"({'; '.join(differences)})"
            )
        yield row
    if signature is None:
        raise InputError(f"{path}: holds no rows of scores")


def _measured(row: dict[str, Any]) -> list[str]:
    """The scores that the instrument of the row's signature gives, and the row holds."""
    instrument = str(row.get("signature")).partition("|")[0]
    return [name for name in DIRECTIONS if INSTRUMENTS[name] == instrument and name in row]


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e300  # also neither NaN nor infinite


def _is_human(row: dict[str, Any], label: Label, path: Path, number: int) -> bool:
    if label.field not in row or row[label.field] is None:
        own = ", ".join(map(repr, row))
        raise InputError(
            f"{path}, line {number}: no field {label.field!r} to tell human from machine by; the "
            f"fields are {own}"
        )
    return str(row[label.field]) == label.human


def _group_numbers(rows: list[dict[str, Any]], group: str | None, path: Path) -> list[int]:
    """A number for each row; rows of one group, or of one and the same text, share it."""
    if group is None:
        usual = ("prompt_id", "pair_id", "author")
        group = next((f for f in usual if any(row.get(f) is not None for row in rows)), None)
    parent: dict[Any, Any] = {}

    def root(key: Any) -> Any:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    keys = []
    for number, row in enumerate(rows, 1):
        if group is not None and row.get(group) is None:
            raise InputError(
                f"{path}, line {number}: no field {group!r} to group by, which keeps texts that "
                f"belong together from being counted as independent; add it, or name another "
                f"with --group (`id` for none)"
            )
        own = ("text", row.get("text_digest") or number)
        key = ("group", str(row[group])) if group is not None else own
        parent[root(own)] = root(key)
        keys.append(key)
    # Numbered by name, so that the order of the rows does not matter.
    names: dict[Any, str] = {}
    for key in keys:
        names[root(key)] = min(names.get(root(key), str(key)), str(key))
    order = {name: k for k, name in enumerate(sorted(names.values()))}
    return [order[names[root(key)]] for key in keys]


def write_detectors(
    path: Path, calibrations: Iterable[Calibration], label: Label, group: str | None
) -> None:
    """Write what `read_detectors` reads."""
    content = {
        "format": FORMAT,
        "label": str(label),
        "group": group,
        "detectors": [calibration_row(calibration) for calibration in calibrations],
    }
    write_whole(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def read_detectors(path: Path) -> list[dict[str, Any]]:
    """The detectors of a file. Raises `InputError` where it holds none."""
    try:
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT:
            raise InputError(f"{path}: in format {content['format']}, this version reads {FORMAT}")
        detectors = list(content["detectors"])
        for detector in detectors:
            float(detector["slope"]), float(detector["intercept"]), int(detector["direction"])
            str(detector["signature"]), [float(t["value"]) for t in detector["thresholds"]]
            if detector["outcome"] not in OUTCOMES or detector["score"] not in DIRECTIONS:
                raise InputError(f"{path}: holds a score or an outcome that is not known")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: not a file of detectors ({error!r}); `fabula detect calibrate --out` writes "
            f"one"
        ) from error
    if not detectors:
        raise InputError(f"{path}: holds no detector")
    return detectors


def apply_detectors(
    detectors: Sequence[dict[str, Any]], path: Path, target: float
) -> Iterator[dict[str, Any]]:
    """A row with the verdict on each row of scores: `machine`, `not flagged`, or none and why.

    `target` is the share of human texts that may be called machine-written, one of those that the
    detector was calibrated for. A detector that does not separate gives no verdicts. Raises
    `MixError` where the scores were measured otherwise than the detector's.
    """
    rows = list(_checked(path))
    fitting = [d for d in detectors if _differences(d, rows[0]) == []]
    if not fitting:
        raise MixError(
            f"{path}: measured in another way than any of the detectors "
            f"({'; '.join(_differences(detectors[0], rows[0]))}); calibrate on scores of this kind"
        )
    detector = next((d for d in fitting if d["outcome"] == "separates"), fitting[0])
    limit = next((t for t in detector["thresholds"] if abs(t["target"] - target) < 1e-9), None)
    if limit is None:
        known = ", ".join(f"{t['target']:g}" for t in detector["thresholds"])
        raise InputError(f"--fpr {target:g}: the detector was calibrated for {known}")
    for row in rows:
        yield _verdict(detector, row, limit)


def _differences(detector: dict[str, Any], row: dict[str, Any]) -> list[str]:
    own = Signature.parse(str(detector["signature"]))
    found = own.differences(Signature.parse(str(row["signature"])))
    return found if detector["score"] in _measured(row) else [*found, f"no {detector['score']}"]


def _verdict(
    detector: dict[str, Any], row: dict[str, Any], limit: dict[str, float]
) -> dict[str, Any]:
    value = row[detector["score"]]
    verdict, probability, missing = None, None, None
    if detector["outcome"] != "separates":
        missing = f"{_NO_VERDICT}: {OUTCOMES[detector['outcome']]}"
    elif value is None:
        missing = row.get("missing_reason") or "no score"
    else:
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
        "false_positives": limit["false_positives"],
        "false_positives_high": limit["false_positives_high"],
        "signature": row["signature"],
    }

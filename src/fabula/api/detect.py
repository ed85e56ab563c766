"""Tell human from machine: `fabula.detect.calibrate` and `fabula.detect.open`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fabula.api.made import recorded_call
from fabula.api.results import Detector, Scores


@recorded_call
def calibrate(
    scores: Scores | Iterable[dict[str, Any]],
    *,
    label: str,
    positive: str = "human",
    cluster: str | None = None,
    rates: Sequence[float] = (0.01, 0.05, 0.1),
    seed: int = 0,
) -> Detector:
    """Calibrate how well scores of labelled texts tell human from machine.

    A text is human if its field `label` is `positive`. Texts that share the field `cluster` (by
    default prompt_id, pair_id or author) count as one. `rates` are the allowed shares of human
    texts called machine-written. Raises `InputError` if a row lacks a field, `MixError` if rows
    were measured in different ways.
    """
    from fabula.measures.detector_verdicts import Label, calibrate_rows

    rows = scores.rows if isinstance(scores, Scores) else list(scores)
    chosen = Label(label, positive)
    found = calibrate_rows(rows, chosen, "scores", cluster=cluster, targets=rates, seed=seed)
    return Detector(found, chosen, cluster)

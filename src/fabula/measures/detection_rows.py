"""Calibrated detectors as plain values, for files and JSON output."""

from __future__ import annotations

from typing import Any

from fabula.measures.detector import Calibration, Collected


def calibration_row(calibration: Calibration) -> dict[str, Any]:
    """As plain values for files and JSON output; `read_calibration` reads it back."""
    a = calibration.auroc
    return {
        "score": calibration.score,
        "direction": calibration.direction,
        "outcome": calibration.outcome,
        "auroc": {"value": a.value, "low": a.low, "high": a.high, "method": a.method},
        "n_human": calibration.n_human,
        "n_machine": calibration.n_machine,
        "n_missing": calibration.n_missing,
        "n_clusters": calibration.n_clusters,
        "n_human_clusters": calibration.n_human_clusters,
        "calibration_error": calibration.calibration_error,
        "slope": calibration.slope,
        "intercept": calibration.intercept,
        "score_range": list(calibration.score_range),
        "thresholds": [
            {
                "target": t.target,
                "value": t.value,
                "false_positives": t.false_positives,
                "false_positives_high": t.false_positives_high,
                "true_positives": t.true_positives,
            }
            for t in calibration.thresholds
        ],
        "signature": calibration.signature,
        **_collected_row(calibration.collected),
    }


def _collected_row(collected: Collected | None) -> dict[str, Any]:
    if collected is None:
        return {}
    return {
        "cluster": collected.cluster,
        "n_copies": collected.n_copies,
        "n_clusters_before": collected.n_clusters_before,
        "layout_auroc": {name: round(value, 4) for name, value in collected.layout.items()},
    }

"""The figures of Tables 1 and 3 to 9 of Rashkin et al. 2025, as printed.

One cell of Table 9 (GPT 4, spot the problem, twoshot) is not in the text that the figures were read
from; it stands as None, and `story_feedback_check` says what it must hold.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "AUTOMATIC",
    "CELLS",
    "COLUMNS",
    "METHODS",
    "MODELS",
    "ONE_SENTENCE",
    "PERFECT_BY_METHOD",
    "PROMPTS",
    "QUESTIONS",
    "RATINGS",
    "SHOTS",
    "SIMILARITY",
    "automatic",
    "ratings",
]

MODELS = (
    "Bloomz 7B", "Bloomz 176B", "Gemma 9B", "Gemma 27B", "Gemini 1.5 Flash", "Gemini 1.5 Pro",
    "GPT 3.5", "GPT 4",
)  # fmt: skip
PROMPTS = ("bulleted list only", "bulleted list", "spot the problem", "one sentence")
SHOTS = ("zeroshot", "twoshot")
METHODS = ("original", "backtranslate", "swap", "delete")
COLUMNS = ("length", "perfect", "perfect_precision", "repetition", "repetition_imperfect")
"""Of Tables 1 and 9, under the names of `tasks.feedback.scoring`."""

AUTOMATIC: dict[str, tuple[float, float, float, float, float]] = {
    "Bloomz 7B": (88.31, 0.32, 0.24, 0.77, 0.68),
    "Bloomz 176B": (124.74, 0.26, 0.25, 0.67, 0.57),
    "Gemma 9B": (343.62, 0.06, 0.43, 0.47, 0.44),
    "Gemma 27B": (354.31, 0.03, 0.46, 0.46, 0.44),
    "Gemini 1.5 Flash": (443.46, 0.04, 0.51, 0.40, 0.37),
    "Gemini 1.5 Pro": (482.10, 0.07, 0.52, 0.38, 0.34),
    "GPT 3.5": (176.23, 0.43, 0.29, 0.70, 0.48),
    "GPT 4": (349.08, 0.25, 0.40, 0.55, 0.41),
    "bulleted list only": (542.62, 0.15, 0.31, 0.51, 0.43),
    "bulleted list": (445.12, 0.23, 0.34, 0.65, 0.56),
    "spot the problem": (96.62, 0.20, 0.31, 0.50, 0.38),
    "one sentence": (96.56, 0.15, 0.30, 0.53, 0.44),
    "zeroshot": (366.83, 0.12, 0.28, 0.49, 0.42),
    "twoshot": (223.63, 0.24, 0.34, 0.61, 0.49),
}
"""Table 1."""

_CELLS: dict[tuple[str, str], tuple[tuple[float | None, ...] | None, ...]] = {
    ("bulleted list", "zeroshot"): (
        (75.51, 0.27, 0.24, 0.88, 0.85),
        (96.66, 0.06, 0.28, 0.93, 0.93),
        (625.96, 0.06, 0.48, 0.56, 0.54),
        (602.12, 0.02, 0.44, 0.55, 0.54),
        (980.99, 0.02, 0.45, 0.47, 0.47),
        (1011.8, 0.0, 0.75, 0.43, 0.43),
        (323.63, 0.57, 0.31, 0.76, 0.49),
        (838.02, 0.1, 0.42, 0.59, 0.57),
    ),
    ("bulleted list", "twoshot"): (
        (72.15, 0.69, 0.24, 0.92, 0.8),
        (122.63, 0.41, 0.24, 0.77, 0.65),
        (420.65, 0.22, 0.42, 0.62, 0.52),
        (454.35, 0.12, 0.47, 0.58, 0.52),
        (465.07, 0.16, 0.48, 0.52, 0.44),
        (457.32, 0.21, 0.52, 0.51, 0.4),
        (162.69, 0.49, 0.35, 0.76, 0.52),
        (412.38, 0.28, 0.47, 0.59, 0.44),
    ),
    ("bulleted list only", "zeroshot"): (
        (71.54, 0.51, 0.25, 0.78, 0.58),
        (178.72, 0.14, 0.29, 0.19, 0.08),
        (833.17, 0.0, 0.0, 0.43, 0.43),
        (836.19, 0.01, 0.2, 0.41, 0.41),
        (1134.44, 0.0, 0.0, 0.35, 0.35),
        (1298.6, 0.01, 0.15, 0.34, 0.34),
        (466.04, 0.17, 0.28, 0.53, 0.44),
        (844.28, 0.1, 0.37, 0.47, 0.43),
    ),
    ("bulleted list only", "twoshot"): (
        (197.42, 0.23, 0.21, 0.95, 0.94),
        (165.59, 0.25, 0.26, 0.71, 0.67),
        (462.98, 0.08, 0.41, 0.46, 0.42),
        (549.64, 0.02, 0.42, 0.44, 0.43),
        (547.54, 0.05, 0.51, 0.42, 0.39),
        (661.52, 0.08, 0.52, 0.4, 0.35),
        (172.5, 0.36, 0.3, 0.67, 0.49),
        (261.74, 0.46, 0.39, 0.66, 0.37),
    ),
    ("one sentence", "zeroshot"): (
        (88.38, 0.04, 0.34, 0.37, 0.34),
        (98.06, 0.35, 0.25, 0.47, 0.21),
        (101.03, 0.0, None, 0.44, 0.44),
        (90.67, 0.0, None, 0.49, 0.49),
        (99.29, 0.0, None, 0.37, 0.37),
        (118.86, 0.0, None, 0.35, 0.35),
        (90.46, 0.33, 0.23, 0.66, 0.49),
        (150.59, 0.04, 0.36, 0.44, 0.42),
    ),
    ("one sentence", "twoshot"): (
        (59.62, 0.45, 0.24, 0.85, 0.74),
        (61.37, 0.48, 0.24, 0.92, 0.84),
        (94.67, 0.04, 0.48, 0.49, 0.47),
        (100.64, 0.0, 0.0, 0.42, 0.42),
        (102.02, 0.03, 0.65, 0.48, 0.47),
        (100.48, 0.08, 0.53, 0.44, 0.39),
        (93.78, 0.2, 0.39, 0.63, 0.53),
        (95.09, 0.34, 0.42, 0.6, 0.4),
    ),
    ("spot the problem", "zeroshot"): (
        (72.21, 0.09, 0.32, 0.47, 0.41),
        (16.78, 0.01, 0.21, 0.45, 0.41),
        (108.45, 0.01, 0.36, 0.33, 0.32),
        (110.5, 0.0, 0.0, 0.38, 0.38),
        (110.21, 0.0, 0.0, 0.2, 0.2),
        (110.37, 0.0, 0.5, 0.21, 0.21),
        (37.94, 0.85, 0.26, 0.91, 0.42),
        (117.17, 0.16, 0.38, 0.38, 0.26),
    ),
    ("spot the problem", "twoshot"): (
        (69.63, 0.27, 0.24, 0.95, 0.94),
        (258.1, 0.4, 0.22, 0.79, 0.79),
        (102.08, 0.07, 0.41, 0.45, 0.41),
        (90.36, 0.11, 0.49, 0.41, 0.34),
        (108.14, 0.07, 0.53, 0.36, 0.31),
        (97.86, 0.13, 0.53, 0.38, 0.28),
        (62.8, 0.47, 0.27, 0.69, 0.42),
        None,
    ),
}

CELLS: dict[tuple[str, str, str], tuple[float | None, ...] | None] = {
    (prompt, shots, model): row
    for (prompt, shots), rows in _CELLS.items()
    for model, row in zip(MODELS, rows, strict=True)
}
"""Table 9, by prompt, shots and model; a precision is None where nothing was said to be perfect."""

SIMILARITY: dict[str, tuple[float, float]] = {
    "Bloomz 7B": (0.10, 83.74),
    "Bloomz 176B": (0.11, 83.98),
    "Gemma 9B": (0.09, 83.89),
    "Gemma 27B": (0.10, 84.00),
    "Gemini 1.5 Flash": (0.10, 84.17),
    "Gemini 1.5 Pro": (0.11, 84.05),
    "GPT 3.5": (0.05, 83.67),
    "GPT 4": (0.08, 84.09),
    "bulleted list only": (0.08, 84.01),
    "bulleted list": (0.05, 83.12),
    "spot the problem": (0.15, 84.37),
    "one sentence": (0.09, 84.28),
    "zeroshot": (0.12, 84.14),
    "twoshot": (0.07, 83.76),
}
"""Table 6: of feedback with its story, shared trigrams and BERTScore times 100."""

PERFECT_BY_METHOD = {"original": 0.23, "backtranslate": 0.13, "swap": 0.15, "delete": 0.21}
"""Table 7."""

_ONE_SENTENCE: dict[str, tuple[float, float, float, float]] = {
    "Bloomz 7B": (0.62, 0.90, 0.78, 0.95),
    "Bloomz 176B": (0.64, 0.96, 0.95, 0.29),
    "Gemma 9B": (0.99, 0.98, 0.92, 0.83),
    "Gemma 27B": (1.00, 0.99, 0.99, 0.99),
    "Gemini 1.5 Flash": (1.00, 1.00, 0.99, 0.96),
    "Gemini 1.5 Pro": (0.99, 0.99, 0.99, 0.97),
    "GPT 3.5": (1.00, 1.00, 0.95, 0.99),
    "GPT 4": (0.98, 0.99, 0.99, 0.98),
}
_ASKED = (
    ("one sentence", "zeroshot"), ("one sentence", "twoshot"),
    ("spot the problem", "zeroshot"), ("spot the problem", "twoshot"),
)  # fmt: skip
ONE_SENTENCE: dict[tuple[str, str, str], float] = {
    (*asked, model): share
    for model, shares in _ONE_SENTENCE.items()
    for asked, share in zip(_ASKED, shares, strict=True)
}
"""Table 8, by prompt, shots and model."""

QUESTIONS = (
    "sanity", "feedback-type", "perfect-agree", "correctness", "error-detection", "specificity",
    "relevance",
)  # fmt: skip

RATINGS: dict[str, tuple[tuple[float | None, ...], tuple[float | None, ...]]] = {
    "Bloomz 7B": (
        (0.874, 0.41, 0.285, 0.292, 0.219, 0.288, 0.226),
        (0.02, 0.03, 0.04, 0.03, 0.03, 0.03, 0.03),
    ),
    "Bloomz 176B": (
        (0.792, 0.291, 0.45, 0.316, 0.254, 0.46, 0.243),
        (0.02, 0.03, 0.04, 0.02, 0.03, 0.04, 0.02),
    ),
    "Gemma 9B": (
        (0.993, 0.062, 0.656, 0.734, 0.609, 0.904, 0.462),
        (0.0, 0.02, 0.07, 0.02, 0.02, 0.02, 0.03),
    ),
    "Gemma 27B": (
        (0.997, 0.051, 0.485, 0.755, 0.614, 0.902, 0.455),
        (0.0, 0.01, 0.07, 0.02, 0.02, 0.02, 0.02),
    ),
    "Gemini 1.5 Flash": (
        (0.989, 0.026, 0.367, 0.763, 0.687, 0.917, 0.481),
        (0.0, 0.01, 0.11, 0.02, 0.02, 0.01, 0.02),
    ),
    "Gemini 1.5 Pro": (
        (0.982, 0.052, 0.625, 0.792, 0.703, 0.953, 0.497),
        (0.01, 0.01, 0.1, 0.02, 0.02, 0.01, 0.02),
    ),
    "GPT 3.5": (
        (0.989, 0.419, 0.427, 0.766, 0.663, 0.862, 0.438),
        (0.0, 0.03, 0.03, 0.02, 0.03, 0.02, 0.03),
    ),
    "GPT 4": (
        (0.989, 0.199, 0.573, 0.834, 0.757, 0.942, 0.593),
        (0.0, 0.03, 0.05, 0.02, 0.02, 0.01, 0.03),
    ),
    "original": (
        (0.958, 0.241, 0.581, 0.63, 0.485, 0.825, None),
        (0.01, 0.02, 0.03, 0.02, 0.02, 0.02, None),
    ),
    "backtranslate": (
        (0.946, 0.124, 0.301, 0.77, 0.712, 0.84, 0.577),
        (0.01, 0.02, 0.04, 0.01, 0.02, 0.02, 0.02),
    ),
    "delete": (
        (0.955, 0.213, 0.422, 0.666, 0.545, 0.813, 0.367),
        (0.01, 0.02, 0.03, 0.02, 0.02, 0.02, 0.02),
    ),
    "swap": (
        (0.943, 0.158, 0.331, 0.691, 0.621, 0.815, 0.378),
        (0.01, 0.02, 0.04, 0.02, 0.02, 0.02, 0.02),
    ),
    "spot the problem": (
        (0.894, 0.216, 0.461, 0.577, 0.437, 0.788, 0.414),
        (0.01, 0.02, 0.03, 0.02, 0.02, 0.02, 0.02),
    ),
    "one sentence": (
        (0.962, 0.139, 0.444, 0.689, 0.538, 0.741, 0.439),
        (0.01, 0.02, 0.04, 0.02, 0.02, 0.02, 0.02),
    ),
    "bulleted list only": (
        (0.96, 0.174, 0.446, 0.746, 0.679, 0.923, 0.406),
        (0.01, 0.02, 0.04, 0.01, 0.02, 0.01, 0.02),
    ),
    "bulleted list": (
        (0.986, 0.205, 0.389, 0.747, 0.719, 0.844, 0.513),
        (0.0, 0.02, 0.03, 0.01, 0.02, 0.02, 0.02),
    ),
    "zeroshot": (
        (0.919, 0.152, 0.387, 0.722, 0.628, 0.849, 0.45),
        (0.01, 0.01, 0.03, 0.01, 0.01, 0.01, 0.01),
    ),
    "twoshot": (
        (0.982, 0.206, 0.463, 0.674, 0.577, 0.804, 0.446),
        (0.0, 0.01, 0.02, 0.01, 0.01, 0.01, 0.01),
    ),
}
"""Tables 3 (models), 4 (corruptions), 5 (prompts and shots): means by question, then errors."""


def automatic(where: Mapping[str, str]) -> dict[str, float]:
    """The printed figures of a subset in Tables 1 and 6 to 9, by metric; those that there are."""
    if set(where) == {"prompt", "shots", "model"}:
        key = where["prompt"], where["shots"], where["model"]
        cell = dict(zip(COLUMNS, CELLS.get(key) or (), strict=False))
        cell["one_sentence"] = ONE_SENTENCE.get(key)
        return {name: value for name, value in cell.items() if value is not None}
    if len(where) != 1:
        return {}
    (dimension, name), *_ = where.items()
    if dimension == "method":
        return {"perfect": PERFECT_BY_METHOD[name]} if name in PERFECT_BY_METHOD else {}
    if name not in AUTOMATIC:
        return {}
    similar = zip(("overlap", "bertscore"), SIMILARITY[name], strict=True)
    return dict(zip(COLUMNS, AUTOMATIC[name], strict=True)) | dict(similar)


def ratings(name: str) -> dict[str, tuple[float, float]]:
    """The printed means and standard errors of a model, corruption, prompt or number of shots."""
    means, errors = RATINGS.get(name, ((), ()))
    return {
        question: (mean, error)
        for question, mean, error in zip(QUESTIONS, means, errors, strict=False)
        if mean is not None and error is not None
    }

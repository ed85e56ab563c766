"""Fabula in Inspect AI: rubrics as tasks, and scorers for existing logs.

Inspect AI loads this module by its entry point, which makes its contents available as
`fabula/NAME`.
"""

from fabula.evals.rubrics import answers, rubric, ttcw, verdict
from fabula.evals.text_scorers import fluency, instrument, originality, profile

__all__ = [
    "answers", "fluency", "instrument", "originality", "profile", "rubric", "ttcw", "verdict",
]  # fmt: skip

"""Fabula in Inspect AI: rubrics as tasks, and scorers of logs that are there already.

Inspect AI loads this module by its entry point, so that `fabula/NAME` names what is here.
"""

from fabula.evals.rubric_scorers import answers, verdict
from fabula.evals.tasks import rubric, ttcw
from fabula.evals.text_scorers import fluency, instrument, originality, profile

__all__ = [
    "answers",
    "fluency",
    "instrument",
    "originality",
    "profile",
    "rubric",
    "ttcw",
    "verdict",
]

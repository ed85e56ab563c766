"""Fabula in Inspect AI: rubrics as tasks, and scorers of logs that are there already.

Inspect AI loads this module by its entry point, so that `fabula/NAME` names what is here.
"""

from fabula.evals.tasks import rubric, ttcw
from fabula.evals.texts import fluency, instrument, originality, profile
from fabula.evals.verdicts import answers, verdict

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

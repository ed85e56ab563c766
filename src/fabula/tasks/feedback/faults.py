"""Faults for longer stories: a name, a fact, a motive or the tense changes, a thread dangles.

These go beyond Rashkin et al. 2025, whose corruptions are visible within a few sentences. Each rule
looks for a place where its fault is certain to be one, and each result is parsed again and checked;
a story without such a place is left out, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fabula.tasks.feedback.facts import change_fact, check_fact
from fabula.tasks.feedback.names import check_name, rename_character
from fabula.tasks.feedback.narration import Narration, read_narration
from fabula.tasks.feedback.statements import check_motive, plant_motive
from fabula.tasks.feedback.story_edits import Fault, apply_edits
from fabula.tasks.feedback.tense import check_tense, shift_tense
from fabula.tasks.feedback.threads import check_thread, plant_thread

__all__ = ["FAULTS", "NARRATION_PARTS", "RULES", "plant_fault"]

NARRATION_PARTS = ("tok2vec", "tagger", "parser", "attribute_ruler", "lemmatizer", "ner")
"""The components of the English pipeline that the rules need."""

RULES = "3"
"""The version of the rules, for signatures."""
_MAX_TRIES = 10
Rule = Callable[[Narration, np.random.Generator], Fault | str]
Check = Callable[[Narration, Fault, Narration], str | None]
FAULTS: dict[str, tuple[Rule, Check]] = {
    "name": (rename_character, check_name),
    "fact": (change_fact, check_fact),
    "tense": (shift_tense, check_tense),
    "thread": (plant_thread, check_thread),
    "motive": (plant_motive, check_motive),
}


def plant_fault(
    method: str, story: Narration, nlp: Any, rng: np.random.Generator
) -> tuple[str, dict[str, Any]] | str:
    """Return the story with the fault and the record of the change, or the reason for none.

    The changed story is parsed again to check that it has the fault; if not, the rule draws another
    place.
    """
    rule, check = FAULTS[method]
    why_not: str | None = None
    for _ in range(_MAX_TRIES):
        fault = rule(story, rng)
        if isinstance(fault, str):
            return fault
        text, edits = apply_edits(story.text, fault.edits)
        why_not = check(story, fault, read_narration(text, nlp))
        if why_not is None:
            record = {"edits": edits, "kind": fault.kind, "beyond_paper": True, **fault.details}
            return text, record | {"what": fault.what}
    return f"no change passed the check ({why_not})"

"""Judging texts by rubrics with language models."""

from fabula.judging.judge_prompts import Template, read_template
from fabula.judging.judging_plan import ANSWERS, AnswerBook, JudgePlan
from fabula.judging.run import judge_stories
from fabula.models.verdicts import Style, read_verdict

__all__ = [
    "ANSWERS",
    "AnswerBook",
    "JudgePlan",
    "Style",
    "Template",
    "judge_stories",
    "read_template",
    "read_verdict",
]

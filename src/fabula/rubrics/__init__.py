"""Rubrics: the items by which people and models judge a text, as data."""

from fabula.rubrics.conditions import Condition
from fabula.rubrics.load import (
    builtin_rubrics,
    load_rubric,
    parse_rubric,
    rubric_faults,
    rubric_toml,
)
from fabula.rubrics.released import read_released_tests, released_rubric

__all__ = [
    "Condition",
    "builtin_rubrics",
    "load_rubric",
    "parse_rubric",
    "read_released_tests",
    "released_rubric",
    "rubric_faults",
    "rubric_toml",
]

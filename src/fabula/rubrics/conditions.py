"""When an item is asked: an expression of and, or, not over earlier answers.

    sanity == 'Yes' and (tone in ('suggestions', 'both') or not perfect == 'Yes')

It is read by Python's own parser and allows nothing but names of items, constants, comparisons
and and/or/not, so a rubric from a stranger cannot run code.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fabula.errors import InputError

__all__ = ["Condition"]

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda value, several: operator.contains(several, value),
    ast.NotIn: lambda value, several: not operator.contains(several, value),
}
_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.Compare,
    ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.List, *_COMPARE,
)  # fmt: skip
_MAX_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as written. `names` are the items on whose answers it depends."""

    text: str
    names: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Raises `InputError` for anything but and/or/not and comparisons over item ids."""
        if len(text) > _MAX_CHARS:
            raise InputError(f"a condition has more than {_MAX_CHARS:,} characters; shorten it")
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise InputError(
                f"condition {text!r} cannot be read; write it like: sanity == 'Yes' and not short"
            ) from error
        for node in ast.walk(tree):
            if not isinstance(node, _ALLOWED):
                raise InputError(
                    f"condition {text!r} uses {type(node).__name__}; only item ids, constants, "
                    f"comparisons, and, or, not are allowed"
                )
        names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
        return cls(text, names)

    def holds(self, answers: Mapping[str, object]) -> bool:
        """Whether it is so. An item without an answer is None, and compares with nothing."""
        return bool(_value(ast.parse(self.text.strip(), mode="eval").body, answers))


def _value(node: ast.expr, answers: Mapping[str, object]) -> object:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return answers.get(node.id)
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_value(element, answers) for element in node.elts)
    if isinstance(node, ast.UnaryOp):
        value = _value(node.operand, answers)
        if isinstance(node.op, ast.Not):
            return not value
        return -value if isinstance(value, int | float) else None
    if isinstance(node, ast.BoolOp):
        values = (bool(_value(part, answers)) for part in node.values)
        return all(values) if isinstance(node.op, ast.And) else any(values)
    assert isinstance(node, ast.Compare)
    left = _value(node.left, answers)
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = _value(comparator, answers)
        try:
            if not _COMPARE[type(op)](left, right):
                return False
        except TypeError:
            # None < 3, 'Yes' in 3: what cannot be compared does not hold.
            return False
        left = right
    return True

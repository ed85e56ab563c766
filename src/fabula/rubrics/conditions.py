"""When an item is asked: an expression of and, or, not over earlier answers.

    sanity == 'Yes' and (tone in ('suggestions', 'both') or not perfect == 'Yes')

It is parsed by Python's own parser and allows only item ids, constants, comparisons and and/or/not,
so an untrusted rubric cannot run code.
"""

from __future__ import annotations

import ast
import functools
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fabula.core.errors import InputError
from fabula.core.scales import Scale

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
_LOGIC = (ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub)
_VALUES = (ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.List)
_ALLOWED = (ast.Expression, ast.Compare, *_LOGIC, *_VALUES, *_COMPARE)
_MAX_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as written. `names` are the items on whose answers it depends."""

    text: str
    names: frozenset[str]

    @classmethod
    @functools.lru_cache(maxsize=1_000)
    def parse(cls, text: str) -> Condition:
        """Raises `InputError` for anything but and/or/not and comparisons over item ids."""
        if len(text) > _MAX_CHARS:
            raise InputError(f"a condition has more than {_MAX_CHARS:,} characters; shorten it")
        try:
            with warnings.catch_warnings():
                # What Python only warns of, as in `1or x`, is a mistake here.
                warnings.simplefilter("error", SyntaxWarning)
                tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise InputError(
                f"cannot parse the condition {text!r}; write it like: sanity == 'Yes' and not short"
            ) from error
        for node in ast.walk(tree):
            if not isinstance(node, _ALLOWED):
                raise InputError(
                    f"condition {text!r} uses {type(node).__name__}; only item ids, constants, "
                    f"comparisons, and, or, not are allowed"
                )
        return cls(text, frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name)))

    def faults(self, scales: Mapping[str, Scale]) -> list[str]:
        """Mistakes in the condition, one phrase each.

        These are answers that an item does not have, and words compared with numbers. Names without
        a scale are facts, whose values are unknown.
        """
        return list(dict.fromkeys(_faults(_tree(self.text), scales)))

    def holds(self, answers: Mapping[str, object]) -> bool:
        """Whether it is true. An item without an answer is None, and compares with nothing."""
        return bool(_value(_tree(self.text), answers))


@functools.lru_cache(maxsize=1_000)
def _tree(text: str) -> ast.expr:
    """Cached, since a study evaluates the same conditions for every saved answer."""
    return ast.parse(text.strip(), mode="eval").body


def _faults(node: ast.expr, scales: Mapping[str, Scale]) -> Iterator[str]:
    """The mistakes in a part of a condition that must be true or false."""
    if isinstance(node, ast.BoolOp):
        for operand in node.values:
            yield from _faults(operand, scales)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from _faults(node.operand, scales)
    elif isinstance(node, ast.Compare):
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            yield from _pair_faults(left, op, right, scales)
            left = right
    elif isinstance(node, ast.Name):
        scale = scales.get(node.id)
        if scale is not None and scale.answers:
            first = scale.answers[0]
            yield f"{node.id} alone is true whatever the answer; write {node.id} == {first!r}"
    elif not isinstance(node, ast.Constant):
        yield f"{ast.unparse(node)} is neither true nor false; add a comparison"


def _pair_faults(
    left: ast.expr, op: ast.cmpop, right: ast.expr, scales: Mapping[str, Scale]
) -> Iterator[str]:
    is_in = isinstance(op, ast.In | ast.NotIn)
    if is_in and not isinstance(right, ast.Tuple | ast.List):
        holder = _scale_of(right, scales)
        if isinstance(right, ast.Constant) or (holder is not None and holder.form != "prose"):
            yield f"`in` must be followed by a list, as in {ast.unparse(left)} in ('a', 'b')"
        return
    values = right.elts if isinstance(right, ast.Tuple | ast.List) else [right]
    if not is_in and values != [right]:
        yield f"{ast.unparse(left)} is a single answer, not a list; use `in`"
        return
    for other in values:
        for side, against in ((left, other), (other, left)):
            scale = _scale_of(side, scales)
            if scale is None:
                continue
            name, held = ast.unparse(side), _scale_of(against, scales)
            if scale.form != "number" and isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                yield f"{name} has no order; compare it with == or in"
            elif held is not None:
                answers, others = set(scale.answers), set(held.answers)
                is_apart = bool(answers) != bool(others) or (bool(answers) and not answers & others)
                if is_apart and "prose" not in (scale.form, held.form):
                    yield f"{name} and {ast.unparse(against)} have no answer in common"
            else:
                value = None
                with suppress(ValueError):
                    value = ast.literal_eval(against)
                if value is not None and (why := scale.refuses(value)):
                    yield f"{name} {why}"


def _scale_of(node: ast.expr, scales: Mapping[str, Scale]) -> Scale | None:
    return scales.get(node.id) if isinstance(node, ast.Name) else None


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
        # Evaluate all of them, even if the first decides: the time must not reveal a fact that
        # participants may not know.
        values = [bool(_value(operand, answers)) for operand in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)
    assert isinstance(node, ast.Compare)
    left, *others = (_value(operand, answers) for operand in (node.left, *node.comparators))
    for op, right in zip(node.ops, others, strict=True):
        try:
            if not _COMPARE[type(op)](left, right):
                return False
        except TypeError:
            # None < 3, 'Yes' in 3: incomparable values give False.
            return False
        left = right
    return True

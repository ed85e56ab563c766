"""Scales: which answers an item allows, one class per kind.

A rubric's file names the kind, and `Scale(kind, ...)` creates an instance of its class, as
`Path(...)` does for the current system. Code that prompts, parses, asks on a page, displays,
averages or compares answers uses the scale's methods; nothing else distinguishes kinds. To add a
kind, register another class, here, in your own program or by an entry point of the group
`fabula.core.scales`; docs/extend.md has an example.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from fabula.core.packages import Registry

_MAX_CHOICES = 5
_MAX_CHARS = 400

KINDS: Registry[type[Scale]] = Registry("scales")
"""The class of each kind, by its name in rubric files."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The answers an item allows: one of a few fixed answers, unless a kind overrides this.

    The fields are those of a rubric's file; a kind checks the ones it needs, and may add its own.
    An answer is a word or a number as given by a rater (`Yes`, `4`); its value is what a
    measurement holds (1.0, 4.0).
    """

    kind: str = "yes-no"
    options: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    """What each option of a choice counts in means."""
    low: float | None = None
    high: float | None = None

    form: ClassVar[Literal["option", "number", "prose"]] = "option"
    """How an answer is written, for parsers: one of `answers`, a number, or free text."""
    widget: ClassVar[str] = "radio"
    """The input on a study's page: `radio`, `textarea`, or a type of HTML input."""
    agreement: ClassVar[Literal["kappa", "alpha"]] = "alpha"
    """The measure of agreement: kappa of passed or not, or Krippendorff's alpha of worths."""
    is_test: ClassVar[bool] = False
    """Passed (1) or not (0): what `count` counts, and what judges are calibrated on."""
    is_grade: ClassVar[bool] = False
    """A number that is averaged by a rubric's `mean`."""
    is_ranking: ClassVar[bool] = False
    """The rank of a text in its group; meaningless for a text alone."""

    def __new__(cls, kind: str = "yes-no", *_: object, **__: object) -> Scale:
        if cls is not Scale:
            return object.__new__(cls)
        if kind not in KINDS:
            raise ValueError(f"unknown scale {kind!r}; the scales are {', '.join(KINDS)}")
        return object.__new__(KINDS[kind])

    def fault(self) -> str | None:
        """What is wrong with the fields of the file, as a sentence, or None."""
        if self.options:
            return "only a choice has options"
        return "values needs a number for each option, in their order" if self.values else None

    # Possible answers.

    @property
    def answers(self) -> tuple[str, ...]:
        """The fixed answers; empty for numbers and free text."""
        return self.options

    @property
    def allowed(self) -> str:
        """What a prompt or a page asks for: `Yes or No`; empty for free text."""
        return ", ".join(self.answers[:-1]) + f" or {self.answers[-1]}"

    @property
    def range(self) -> str:
        """`1 to 5`; empty for a scale without bounds."""
        return "" if self.low is None or self.high is None else f"{self.low:g} to {self.high:g}"

    @property
    def limits(self) -> Mapping[str, str]:
        """The attributes of the HTML input, if the widget is one."""
        return {}

    def refuses(self, answer: object) -> str | None:
        """Why a condition can never match this answer, as in `is never 'x'`, or None."""
        if answer in self.answers:
            return None
        return f"cannot be {answer!r}; it must be {' or '.join(map(repr, self.answers))}"

    @property
    def level(self) -> Literal["nominal", "ordinal", "interval"] | None:
        """The level of measurement, which defines the distance of two answers; None for prose."""
        if self.form == "prose":
            return None
        return "interval" if self.has_worth else "ordinal" if self.is_ranking else "nominal"

    # Answers and values.

    def read(self, answer: str) -> float | str | None:
        """The value of an answer, or None if the scale does not have it."""
        return answer if answer in self.answers else None

    def word(self, value: float | str) -> str:
        """The answer for a value."""
        return value if isinstance(value, str) else f"{value:g}"

    def named(self, value: float | str | None) -> object:
        """A value as conditions name it: `Yes`, `4`; None if missing or a tie."""
        return None if value is None else self.word(value)

    def decided(self, value: float | str | None) -> float | str | None:
        """The answer that a combination of repeated answers stands for; None for a tie."""
        return value

    def combine(self, values: Sequence[float | str]) -> float | str | None:
        """Combine one or more repeated answers: the most frequent; None for a tie."""
        (best, n_best), *others = Counter(values).most_common()
        return None if others and others[0][1] == n_best else best

    def spread(self, values: Sequence[float | str]) -> dict[str, Any]:
        """What a measurement keeps of repeated answers besides their combination."""
        return {"counts": dict(Counter(map(self.word, values)).most_common())}

    # How values are displayed.

    def shown(self, value: float | str) -> str:
        """One answer: `Yes`, `4 (1 to 5)`, an option, the beginning of a text."""
        word = self.word(value)
        return word if len(word) <= _MAX_CHARS else f"{word[:_MAX_CHARS].rstrip()} …"

    def shown_repeated(self, value: float | str, n: int, spread: Mapping[str, Any]) -> str:
        """`n` answers about one text: `67% Yes of 3`, `plot (2 of 3)`."""
        n_given = (spread.get("counts") or {}).get(self.word(value))
        return self.shown(value) + (f" ({n_given} of {n})" if n_given else "")

    def shown_together(self, values: Sequence[float | str]) -> str:
        """Answers about several texts: a share, mean and median, or the most frequent."""
        counted = Counter(map(self.word, values)).items()
        counts = sorted(counted, key=lambda entry: (-entry[1], entry[0]))
        more = [f"{len(counts) - _MAX_CHOICES} others"] if len(counts) > _MAX_CHOICES else []
        return ", ".join([*(f"{word} {n}" for word, n in counts[:_MAX_CHOICES]), *more])

    def short(self, value: float | str) -> str:
        """A few characters, for a cell of a wide table."""
        return "·" if isinstance(value, str) else f"{value:.3g}"

    def metrics(self, item: str, values: Sequence[float | str]) -> dict[str, float]:
        """The metrics of an item over texts, by name, where each must be a single number."""
        words = [self.word(value) for value in values]
        return {f"{item}: {answer}": words.count(answer) / len(words) for answer in self.answers}

    # What values count in means.

    @property
    def has_worth(self) -> bool:
        """Whether answers count as numbers in means."""
        return bool(self.values)

    @property
    def span(self) -> float:
        """The largest distance of two worths; 1 if options count from 0 to 1."""
        return max(1.0, max(self.values) - min(self.values)) if self.values else 1.0

    def worth(self, value: float | str) -> float | None:
        """What a value counts in means; None for a scale without worth.

        Accepts an option in any case, or a worth itself. Raises `ValueError` for anything else.
        """
        if not self.values:
            return None
        if not isinstance(value, str):
            if value in self.values:
                return float(value)
        else:
            folded = [option.casefold() for option in self.options]
            if value.strip().casefold() in folded:
                return self.values[folded.index(value.strip().casefold())]
        raise ValueError(f"{value!r} is not an option; the options are {', '.join(self.options)}")


_Kind = TypeVar("_Kind", bound=type[Scale])


def register(kind: _Kind) -> _Kind:
    """Register a kind for rubrics, by the default of its field `kind`."""
    KINDS[kind().kind] = kind
    return kind


@register
@dataclass(frozen=True, slots=True)
class YesNoScale(Scale):
    """A test: 1 for Yes, 0 for No, in between the share of Yes among repeated answers."""

    agreement = "kappa"
    is_test = True

    @property
    def answers(self) -> tuple[str, ...]:
        return ("Yes", "No")

    def read(self, answer: str) -> float | None:
        return {"Yes": 1.0, "No": 0.0}.get(answer)

    def word(self, value: float | str) -> str:
        return value if isinstance(value, str) else "Yes" if value else "No"

    def named(self, value: float | str | None) -> object:
        decided = self.decided(value)
        return None if decided is None else self.word(decided)

    def decided(self, value: float | str | None) -> float | str | None:
        if not isinstance(value, float):
            return value
        return None if value == 0.5 else float(value > 0.5)

    def combine(self, values: Sequence[float | str]) -> float:
        return round(_mean(values), 6)

    def spread(self, values: Sequence[float | str]) -> dict[str, Any]:
        return {}

    def shown_repeated(self, value: float | str, n: int, spread: Mapping[str, Any]) -> str:
        return value if isinstance(value, str) else f"{value:.0%} Yes of {n}"

    def shown_together(self, values: Sequence[float | str]) -> str:
        passed = sum(value > 0.5 for value in values if isinstance(value, float))
        return f"{passed / len(values):.1%}"

    def short(self, value: float | str) -> str:
        return "·" if isinstance(value, str) else "Y" if value > 0.5 else "N"

    def metrics(self, item: str, values: Sequence[float | str]) -> dict[str, float]:
        return {item: _mean(values)}

    @property
    def has_worth(self) -> bool:
        return True

    def worth(self, value: float | str) -> float | None:
        return float(value)


@register
@dataclass(frozen=True, slots=True)
class ChoiceScale(Scale):
    """One of `options`, which count `values` in means if given."""

    kind: str = "choice"

    def fault(self) -> str | None:
        options = {option.casefold().strip() for option in self.options}
        if len(options) < 2 or len(options) < len(self.options) or "" in options:
            return "a choice needs at least two options, all different, none empty"
        if self.values and (
            len(self.values) != len(self.options) or not all(map(math.isfinite, self.values))
        ):
            return "values needs a number for each option, in their order"
        return None


@register
@dataclass(frozen=True, slots=True)
class NumberScale(Scale):
    """A number from `low` to `high`."""

    kind: str = "number"

    form = "number"
    widget = "number"
    is_grade = True

    def fault(self) -> str | None:
        low, high = self.low, self.high
        if low is None or high is None or not -math.inf < low < high < math.inf:
            return Scale.fault(self) or "a number needs low and high, the lower one first"
        return Scale.fault(self)

    @property
    def _lowest(self) -> float:
        return 1.0 if self.low is None else self.low

    def contains(self, number: float) -> bool:
        """Whether a number is on the scale."""
        return self._lowest <= number <= (math.inf if self.high is None else self.high)

    @property
    def allowed(self) -> str:
        return f"a number from {self._lowest:g}" + self._to_high

    @property
    def _to_high(self) -> str:
        return "" if self.high is None else f" to {self.high:g}"

    @property
    def limits(self) -> Mapping[str, str]:
        return {"min": f"{self.low:g}", "max": f"{self.high:g}", "step": "any"}

    def refuses(self, answer: object) -> str | None:
        if isinstance(answer, bool) or not isinstance(answer, int | float):
            return f"is a number and cannot be {answer!r}; write it without quotes"
        if self.contains(answer):
            return None
        return f"goes from {self._lowest:g}{self._to_high} and cannot be {answer:g}"

    def read(self, answer: str) -> float | None:
        return float(answer) if self.contains(float(answer)) else None

    def named(self, value: float | str | None) -> object:
        return value

    def combine(self, values: Sequence[float | str]) -> float:
        return round(_mean(values), 6)

    def spread(self, values: Sequence[float | str]) -> dict[str, Any]:
        return {"range": [min(values, key=float), max(values, key=float)]} if values else {}

    def shown(self, value: float | str) -> str:
        return self._with_range(self.word(value))

    def shown_repeated(self, value: float | str, n: int, spread: Mapping[str, Any]) -> str:
        low, high = spread.get("range") or (value, value)
        return self._with_range(f"mean {value:.3g} of {n}, from {low:g} to {high:g}")

    def shown_together(self, values: Sequence[float | str]) -> str:
        import statistics

        median = statistics.median(map(float, values))
        return self._with_range(f"mean {_mean(values):.2f}, median {median:g}")

    def _with_range(self, text: str) -> str:
        return f"{text} ({self.range})" if self.range else text

    def metrics(self, item: str, values: Sequence[float | str]) -> dict[str, float]:
        return {f"{item} ({self.range})": _mean(values)}

    @property
    def has_worth(self) -> bool:
        return True

    @property
    def span(self) -> float:
        return 1.0 if self.low is None or self.high is None else self.high - self.low

    def worth(self, value: float | str) -> float | None:
        return float(value)


@register
@dataclass(frozen=True, slots=True)
class RankScale(NumberScale):
    """The rank of a text in its group: 1 is first."""

    kind: str = "rank"

    widget = "radio"
    is_grade = False
    is_ranking = True

    def fault(self) -> str | None:
        return Scale.fault(self)

    @property
    def has_worth(self) -> bool:
        return False

    def worth(self, value: float | str) -> float | None:
        return None


@register
@dataclass(frozen=True, slots=True)
class TextScale(Scale):
    """Free text."""

    kind: str = "text"

    form = "prose"
    widget = "textarea"

    @property
    def allowed(self) -> str:
        return ""

    def refuses(self, answer: object) -> str | None:
        return None if isinstance(answer, str) else f"is a text and cannot be {answer!r}"

    def read(self, answer: str) -> str:
        return answer

    def combine(self, values: Sequence[float | str]) -> float | str:
        return values[0]

    def spread(self, values: Sequence[float | str]) -> dict[str, Any]:
        return {}

    def shown_together(self, values: Sequence[float | str]) -> str:
        return "1 text" if len(values) == 1 else f"{len(values):,} texts"

    def metrics(self, item: str, values: Sequence[float | str]) -> dict[str, float]:
        return {f"{item}: texts": float(len(values))}


def _mean(values: Sequence[float | str]) -> float:
    return math.fsum(map(float, values)) / len(values)

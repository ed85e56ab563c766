"""How far a judge can be trusted: its measured agreement with experts, kept by what was measured.

A figure belongs to a model, a wording of the rubric, a style of asking and the data on which it was
measured. What was never measured is said to be so; a figure of another style is not borrowed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from platformdirs import user_data_path

from fabula.errors import InputError
from fabula.measures.agreement import JudgeAgreement
from fabula.stats.agreement import Confusion
from fabula.store import dump_json, read_rows, write_whole
from fabula.types import Rubric, Signature

__all__ = ["NEVER_CHECKED", "Trust", "TrustBook", "trust_of"]

NEVER_CHECKED = "never checked against experts"
_SHIPPED = Path(__file__).parent / "trust.jsonl"


@dataclass(frozen=True, slots=True)
class Trust:
    """A judge's agreement with the experts' majority on an item (`all`: over all items)."""

    model: str
    rubric: str
    style: str
    prompt: str
    item: str
    kappa: float | None
    low: float | None
    high: float | None
    n: int
    n_missing: int
    balanced_accuracy: float | None
    data: str
    how: str = ""
    """How many answers were asked for, and at which temperature."""
    always: str = ""
    """Where one side says the same of all, so that there is nothing to agree on."""

    @property
    def shown(self) -> str:
        """For a table: `0.12 [-0.05, 0.31], n 36`."""
        if self.kappa is None:
            return f"kappa undefined, n {self.n}"
        if self.always:
            return f"{self.kappa:.2f}: {self.always}, n {self.n}"
        interval = "" if self.low is None else f" [{self.low:.2f}, {self.high:.2f}]"
        return f"{self.kappa:.2f}{interval}, n {self.n}"

    @property
    def worth(self) -> str:
        """What the agreement means, in a sentence."""
        if self.kappa is None or self.n_dots <= 1:
            return (
                "That is little or nothing above chance: take its verdicts as a demonstration, not "
                "as a judgement."
            )
        if self.n_dots == 2:
            return "That is fair; experts among themselves reach 0.41 (Fleiss, on TTCW)."
        return "That is what experts reach among themselves (Fleiss 0.41, on TTCW), or above."

    @property
    def n_dots(self) -> int:
        """1 to 4: under 0.2, from 0.2, 0.4, 0.6; 0 where it is undefined."""
        return 0 if self.kappa is None else 1 + sum(self.kappa >= edge for edge in (0.2, 0.4, 0.6))


def trust_of(agreement: JudgeAgreement, rubric: Rubric) -> list[Trust]:
    """The trust that a measured agreement (by item) establishes."""
    parts = dict(Signature.parse(agreement.signature).parts)
    return [
        Trust(
            model=agreement.rater,
            rubric=rubric.key,
            style=parts["style"],
            prompt=parts["prompt"],
            item=row.name,
            kappa=_rounded(row.kappa.value),
            low=_rounded(row.kappa.low),
            high=_rounded(row.kappa.high),
            n=row.confusion.n,
            n_missing=row.n_missing,
            balanced_accuracy=_rounded(row.confusion.balanced_accuracy),
            data=parts["experts"],
            how=f"{_answers(parts['samples'])} at temperature {parts['temperature']}",
            always=_always(row.confusion),
        )
        for row in (*agreement.rows, agreement.overall)
    ]


class TrustBook:
    """What is known: what ships with Fabula, then what this user has measured."""

    def __init__(self, path: Path | None = None) -> None:
        home = os.environ.get("FABULA_HOME")
        self.path = path or (Path(home) if home else user_data_path("fabula")) / "trust.jsonl"
        self._known: dict[tuple[str, ...], Trust] = {}
        for source in (_SHIPPED, self.path):
            if source.exists():
                self._known |= {_key(trust): trust for trust in _read(source)}

    def find(self, model: str, rubric: str, style: str, prompt: str) -> Mapping[str, Trust]:
        """The trust by item; empty where this judge was never checked."""
        wanted = (model, rubric, style, prompt)
        return {key[-1]: trust for key, trust in self._known.items() if key[:-1] == wanted}

    def add(self, trusts: Iterable[Trust]) -> None:
        """Keep these, in place of what was known of the same."""
        own = {_key(trust): trust for trust in (_read(self.path) if self.path.exists() else ())}
        new = {_key(trust): trust for trust in trusts}
        own |= new
        self._known |= new
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(_line(trust) for trust in own.values())
        write_whole(self.path, lines.encode())


def _key(trust: Trust) -> tuple[str, ...]:
    return trust.model, trust.rubric, trust.style, trust.prompt, trust.item


def _line(trust: Trust) -> str:
    return dump_json(asdict(trust)) + "\n"


def _read(path: Path) -> Sequence[Trust]:
    try:
        return [_checked(Trust(**row)) for row in read_rows(path)]
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: not a file of trust ({error}); remove it") from error


def _checked(trust: Trust) -> Trust:
    """Raise `ValueError` where a figure is none."""
    for figure in (trust.kappa, trust.low, trust.high, trust.n):
        if figure is not None and not isinstance(figure, int | float):
            raise ValueError(f"{figure!r} is no number")
    return trust


def _answers(n: str) -> str:
    return "1 answer" if n == "1" else f"{n} answers"


def _always(counts: Confusion) -> str:
    for n_yes, who in (
        (counts.true_yes + counts.false_yes, "always"),
        (counts.true_yes + counts.false_no, "experts always"),
    ):
        if n_yes in (0, counts.n):
            return f"{who} {'Yes' if n_yes else 'No'}"
    return ""


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)

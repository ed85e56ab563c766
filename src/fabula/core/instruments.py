"""Instruments as plug-ins: define one class, and its metrics appear wherever texts are measured.

A registered instrument appears on the pages of the report and the desk, in the JSON, LaTeX and CSV
of `fabula report`, among the metrics that groups are compared by and that `fabula reference group`
stores, in the methods text for a paper, and as a scorer of Inspect AI. Register it by `register`,
or by an entry point of the group `fabula.instruments` in any installed package:

    [project.entry-points."fabula.instruments"]
    adverbs = "my_package:Adverbs"

docs/extend.md has an example.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fabula.core.packages import installed, load
from fabula.core.types import Document, Measurement, Signature

_OWN: dict[str, Instrument] = {}


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric that an instrument computes for a text. `item` is its name among measurements."""

    item: str
    title: str
    form: str = ".3f"
    """Format of the value."""
    explained: str = ""
    """A short explanation for readers who do not know the metric."""


class Instrument(Protocol):
    """Measures texts. `id` names it in commands and files, `title` on pages.

    Errors: `ModelError` if something it needs is not installed; it is then left out, with the
    error's message.
    """

    id: str
    title: str
    figures: Sequence[Figure]
    citation: str
    """BibTeX of the paper that it follows, or empty."""

    @property
    def signature(self) -> Signature:
        """Everything that determines its numbers."""

    @property
    def methods(self) -> str:
        """What was done, in one or two sentences, for the methods section of a paper."""

    def measure(self, documents: Sequence[Document]) -> Iterator[Sequence[Measurement]]:
        """Yield, for each document in order, one measurement per figure.

        A missing value has a reason; `evidence` holds the spans that determine the value. Yield no
        measurements for a text that the instrument does not apply to: nothing is shown then.
        """


I = TypeVar("I", bound=Instrument)  # noqa: E741 (an instrument's type)


def register(instrument: I) -> I:
    """Register an instrument. Raises `ValueError` if its id is taken."""
    is_part = instrument.id in {part.id for part in own_parts()}
    if is_part or _OWN.get(instrument.id, instrument) is not instrument:
        raise ValueError(f"the instrument {instrument.id!r} already exists")
    _OWN[instrument.id] = instrument
    return instrument


@cache
def _parts() -> tuple[Any, ...]:
    """Fabula's own, found in its rooms: `PARTS` of each module `part`, in their order."""
    rooms = sorted(file.parent.name for file in Path(__file__).parents[1].glob("*/part.py"))
    parts = [part for room in rooms for part in import_module(f"fabula.{room}.part").PARTS]
    return tuple(sorted(parts, key=lambda part: part.order))


def own_parts() -> tuple[Any, ...]:
    """The parts of every report (`fabula.show.parts`), in order, without the instruments."""
    return tuple(part for part in _parts() if not hasattr(part, "measure"))


@cache
def _installed() -> tuple[Instrument, ...]:
    """Fabula's own instruments and those of other packages, created once."""
    own = (part for part in _parts() if hasattr(part, "measure"))
    return (*own, *(load(point)() for point in installed("instruments")))


def instruments() -> tuple[Instrument, ...]:
    """All registered instruments, in order, besides the built-in parts of the report."""
    by_id = dict(_OWN)
    for instrument in _installed():
        by_id.setdefault(instrument.id, instrument)
    return tuple(by_id.values())


def names_of_parts() -> tuple[str, ...]:
    """All possible parts of a report: the built-in ones, then registered instruments."""
    return tuple(part.id for part in (*own_parts(), *instruments()))

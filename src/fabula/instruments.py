"""Instruments as plug-ins: one class, and what it measures is wherever texts are measured.

An instrument that is registered is on the page of the report and of the desk, in the JSON, LaTeX
and CSV of `fabula report`, among the numbers that groups are compared by and that `fabula groups
measure` keeps, in the sentences for a paper, and a scorer of Inspect AI. It is registered by
`register`, or by an entry point of the group `fabula.instruments` of any package that is installed:

    [project.entry-points."fabula.instruments"]
    adverbs = "my_package:Adverbs"

docs/extend.md has an example.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, TypeVar

from fabula.types import PARTS, Document, Measurement, Signature

__all__ = [
    "SET",
    "Figure",
    "Instrument",
    "find_instrument",
    "instruments",
    "names_of_parts",
    "register",
]

SET = "diversity"
"""The part of a report that is of several texts together."""
_GROUP = "fabula.instruments"
_BUILT_IN = (EntryPoint("book", "fabula.measures.book:BookInstrument", _GROUP),)
"""Fabula's own, which are loaded when they are asked for, as those of other packages are."""
_OWN: dict[str, Instrument] = {}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that an instrument has of a text. `item` is its name among measurements."""

    item: str
    title: str
    form: str = ".3f"
    """The format of its value."""
    explained: str = ""
    """What it is, in a phrase, for somebody who never heard of it."""


class Instrument(Protocol):
    """What measures texts. `id` names it in commands and files, `title` on pages.

    Errors: `ModelError` where something that it needs is not installed; it is left out then, with
    the error's sentence.
    """

    id: str
    title: str
    figures: Sequence[Figure]
    citation: str
    """BibTeX of the paper that it follows; empty where there is none."""

    @property
    def signature(self) -> Signature:
        """All that decides its numbers."""

    @property
    def methods(self) -> str:
        """What was done, in a sentence or two, for the methods section of a paper."""

    def measure(self, documents: Sequence[Document]) -> Iterator[Sequence[Measurement]]:
        """For each document, in order, a measurement of each figure.

        One without a value gives the reason; `evidence` holds the places that decided the value.
        No measurement at all where the instrument is not for such a text: nothing is shown then.
        """


I = TypeVar("I", bound=Instrument)  # noqa: E741 (an instrument's type)


def register(instrument: I) -> I:
    """Make an instrument known. Raises `ValueError` where its id is taken."""
    if instrument.id in (*PARTS, SET) or _OWN.get(instrument.id, instrument) is not instrument:
        raise ValueError(f"the instrument {instrument.id!r} already exists")
    _OWN[instrument.id] = instrument
    return instrument


@cache
def _installed() -> tuple[Instrument, ...]:
    """Fabula's own, and those of other packages, made once."""
    others = sorted(entry_points(group=_GROUP), key=lambda one: one.name)
    return tuple(one.load()() for one in (*_BUILT_IN, *others))


def instruments() -> tuple[Instrument, ...]:
    """All that are registered, in order, besides the parts of the report that Fabula has."""
    found = dict(_OWN)
    for one in _installed():
        found.setdefault(one.id, one)
    return tuple(found.values())


def find_instrument(name: str) -> Instrument | None:
    """The registered instrument of this id."""
    return next((one for one in instruments() if one.id == name), None)


def names_of_parts() -> tuple[str, ...]:
    """Everything that a report may have: Fabula's own parts, then what is registered."""
    return (*PARTS, SET, *(one.id for one in instruments()))

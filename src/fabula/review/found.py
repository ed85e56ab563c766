"""The results of a review."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from fabula.instruments import Instrument
from fabula.measures.groups import GroupBook
from fabula.measures.line_notes import LineReview
from fabula.measures.linguistic.profile import Profile
from fabula.measures.originality_measure import Originality
from fabula.types import Document, Measurement, Rubric, Signature

if TYPE_CHECKING:
    from fabula.judging.summary import JudgeSummary
    from fabula.measures.corrected_means import Correction
    from fabula.measures.diversity.measure import Together
    from fabula.measures.fluency import Fluency
    from fabula.tasks.feedback.advising import Advice


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An instrument that did not run, or did not finish."""

    part: str
    reason: str
    remedy: str
    """How to enable it; commands are in backticks."""
    is_failure: bool = False
    """It was requested and failed."""


@dataclass(frozen=True, slots=True)
class TextReview:
    """All results for one text; None and empty for instruments that did not run."""

    document: Document
    originality: Originality | None = None
    fluency: Fluency | None = None
    profile: Profile | None = None
    lines: LineReview | None = None
    verdicts: tuple[Measurement, ...] = ()
    advice: tuple[Advice, ...] = ()
    others: Mapping[str, tuple[Measurement, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """Results of registered instruments, by their ids."""

    def _repr_html_(self) -> str:
        from fabula.web.notebook import measured_lines, notebook_table

        return notebook_table(self.document.id, measured_lines(self.measurements()))

    def measurements(self) -> list[Measurement]:
        """All results as measurements."""
        found = [] if self.originality is None else self.originality.measurements()
        found += [] if self.fluency is None else self.fluency.measurements()
        found += [] if self.profile is None else self.profile.measurements()
        found += [] if self.lines is None else self.lines.measurements(self.document.id)
        found += self.verdicts
        for advice in self.advice:
            found += advice.measurements()
        for said in self.others.values():
            found += said
        return found


@dataclass(frozen=True, slots=True)
class Review:
    """All results for some texts."""

    texts: tuple[TextReview, ...]
    left_out: tuple[LeftOut, ...]
    groups: GroupBook
    size: str = ""
    """The size and age of the reference, for display."""
    remarks: tuple[str, ...] = ()
    """What a reader of the numbers should know."""
    rubric: Rubric | None = None
    judges: tuple[JudgeSummary, ...] = ()
    people: tuple[Measurement, ...] = ()
    """People's labels of some of the texts."""
    corrected: Mapping[str, Correction] = field(default_factory=lambda: MappingProxyType({}))
    """By judge, what these people would have said of all texts; empty without labels."""
    signatures: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What determined the numbers of each instrument, by its name."""
    together: Together | None = None
    """What several texts have in common."""
    instruments: tuple[Instrument, ...] = ()
    """Those besides Fabula's own parts: registered ones, and those named in the settings."""

    def found_elsewhere(self) -> dict[str, float | None]:
        """For a class, by id, the share of a text's words that originality found in other sources.

        None if it is missing; empty if only the runs shared between texts were searched.
        """
        signature = Signature.parse(self.signatures.get("originality", "originality"))
        parts = dict(signature.parts)
        is_more = parts.get("match") == "near" or "+" in parts.get("ref", "")
        if self.together is None or not self.together.is_class or not is_more:
            return {}
        found = {}
        for text in self.texts:
            levels = {} if text.originality is None else text.originality.uniqueness
            lowest = next(iter(levels.values()), None)
            found[text.document.id] = None if lowest is None else 1 - lowest
        return found

    def instrument(self, name: str) -> Instrument | None:
        """The instrument with this id."""
        return next((one for one in self.instruments if one.id == name), None)

    def measurements(self) -> list[Measurement]:
        return [one for text in self.texts for one in text.measurements()]

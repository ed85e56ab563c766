"""Correct a judge by experts: what they would have said of every document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fabula.errors import InputError
from fabula.jobs.given import GivenSource, Labels, Run
from fabula.jobs.result import Result, Row
from fabula.settings import Between, Settings, SettingsError, of_field, seed_setting, setting

if TYPE_CHECKING:
    from fabula.measures.corrected_means import Correction
    from fabula.presentation.sheet import Block
    from fabula.types import Document, Measurement, Rubric


@dataclass(frozen=True, slots=True)
class CorrectSettings(Settings):
    """What a judge is corrected with, and what to compute."""

    labels: Labels | None = setting(
        None,
        help="People's labels for some of the documents, drawn at random: a table of document, "
        "item, rater, value, a study's export, or TTCW's.",
    )
    by: str | None = of_field(
        "Correct each group separately, and compare groups, by this field of the texts."
    )
    texts: GivenSource | None = setting(
        None, help="The texts that were judged, needed for fields other than author.", unit="TEXTS"
    )
    judge: str | None = setting(None, help="Judge to use, if the run has several.", unit="NAME")
    truth: Literal["mean", "majority"] = setting(
        "mean",
        help="How the answers of several experts on a document are combined (majority: "
        "for yes-no items).",
    )
    about: Literal["texts", "source"] = setting(
        "texts",
        help="What the intervals are about: the texts that were judged, or the source that they "
        "are a sample of (all that a model or an author would write), which is wider.",
    )
    cluster: str | None = of_field(
        "Count texts that share this field (a prompt, an author) as one, above all if labels "
        "were drawn by it."
    )
    width: float = setting(
        0.1,
        help="Estimate how many labels would make the interval this wide, as a share of the scale.",
        check=Between(0.001, 1),
    )
    n_next: int = setting(
        5, help="Number of documents to suggest for labelling next.", check=Between(0, 10_000)
    )
    seed: int = seed_setting("Seed for the choice of documents to label next.")


@dataclass(frozen=True, slots=True, repr=False)
class CorrectedRun(Result):
    """A judge's means as experts would have given them."""

    correction: Correction
    rubric: Rubric

    def tables(self) -> list[Block]:
        from fabula.presentation.correction_tables import correction_tables

        return correction_tables(self.correction, self.rubric)

    def rows(self) -> list[Row]:
        """A row for `all`, each item and each group: raw and corrected mean, interval, and n."""
        found = self.to_json()
        named = [("all", "all", found["overall"])]
        named += [("item", name, one) for name, one in found["items"].items()]
        named += [("group", name, one) for name, one in found["groups"].items()]
        return [{"kind": kind, "name": name, **one} for kind, name, one in named]

    def to_json(self) -> dict[str, Any]:
        return self.correction.to_json()


def correct(run: Run, settings: CorrectSettings) -> CorrectedRun:
    """Estimate what experts would have said about all documents of RUN, from labels for some.

    A judge that passes more documents than experts do is just as wrong on documents that nobody
    labelled. Means, rates of items and differences between groups are corrected by
    prediction-powered inference (PPI++), with 95 % intervals that are valid for few labels. The
    labelled documents must be drawn at random; labels for a different kind of document are refused.

    Raises `InputError`, `SettingsError`.
    """
    rubric, measurements = run.read()
    if any("orders" in one.details for one in measurements):
        raise InputError(
            f"{run.name}: compares stories, and has no answer about a story that could be "
            f"corrected; `fabula judge agreement` says how far the judge prefers the same stories "
            f"as people"
        )
    labels = [] if settings.labels is None else settings.labels.read(rubric)
    documents = run.documents() if settings.texts is None else settings.texts.read()
    return correct_measurements(measurements, labels, rubric, settings, documents)


def correct_measurements(
    measurements: Sequence[Measurement],
    labels: Sequence[Measurement],
    rubric: Rubric,
    settings: CorrectSettings,
    documents: Sequence[Document] = (),
) -> CorrectedRun:
    """Correct given measurements by labels; `documents` have its fields."""
    from fabula.judging.run import RETEST
    from fabula.measures.corrected_means import correct

    if not labels:
        raise SettingsError("labels", "are needed: what people said of some of the documents")
    mine = [one for one in measurements if not one.document_id.endswith(RETEST)]
    judges = list(dict.fromkeys(one.rater for one in mine))
    if settings.judge is not None or len(judges) != 1:
        if settings.judge not in judges:
            raise SettingsError(
                "judge", f"must be one of {', '.join(judges) or 'none: nobody judged'}"
            )
        mine = [one for one in mine if one.rater == settings.judge]
    found = correct(
        mine,
        labels,
        rubric,
        group_of=_field_of(settings.by, [*labels, *mine], documents),
        truth=settings.truth,
        about=settings.about,
        cluster_of=_field_of(settings.cluster, [*labels, *mine], documents),
        width=settings.width,
        n_next=settings.n_next,
        seed=settings.seed,
    )
    return CorrectedRun(found, rubric)


def _field_of(
    by: str | None, measurements: Sequence[Measurement], documents: Sequence[Document]
) -> Callable[[str], str] | None:
    if by is None:
        return None
    known: dict[str, Any] = {one.id: one.fields.get(by) for one in documents}
    if not documents and by == "author":
        known = {one.document_id: one.details.get("author") for one in measurements}
        named = (one for one in measurements if one.details.get("author"))
        known |= {one.document_id: one.details["author"] for one in named}

    def field_of(document: str) -> str:
        value = known.get(document)
        if value is None:
            hint = "" if documents else "; give the texts that were judged with `texts`"
            raise InputError(f"{document}: has no field {by!r}{hint}")
        return str(value)

    return field_of

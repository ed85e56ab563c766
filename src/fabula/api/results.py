"""Results of the functions of `fabula`: they print, save, and convert to frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.api.coercion import FrameKind, frame_of
from fabula.api.made import Made, recorded_save
from fabula.store import write_rows

if TYPE_CHECKING:
    from fabula.jobs.agreement import Agreements
    from fabula.jobs.books import MeasuredBooks
    from fabula.jobs.correction import CorrectedRun
    from fabula.jobs.judge_comparison import JudgeComparison as _JudgeComparison
    from fabula.jobs.judging import Judged
    from fabula.jobs.originality_result import OriginalityResult
    from fabula.jobs.plan import Plan as _Plan
    from fabula.jobs.planted_faults import FoundFaults as _FoundFaults
    from fabula.jobs.reported import Reported
    from fabula.measures.detector import Calibration
    from fabula.measures.detector_verdicts import Label
    from fabula.measures.group_comparison import Comparison as _Comparison
    from fabula.measures.linguistic.profile import Profile
    from fabula.measures.number_comparison import NumberComparison
    from fabula.measures.rater_agreement import JudgeAgreement, PanelRow
    from fabula.presentation.sheet import Block
    from fabula.review import Review
    from fabula.types import Measurement, Rubric
if TYPE_CHECKING:
    from fabula.presentation.sheet import Block


class Tabled(ABC):
    """A result displayed as tables: printed, in a notebook, in LaTeX and as CSV."""

    __slots__ = ("_made",)
    _made: Made

    @property
    def made(self) -> Made | None:
        """How it was made: the call with its settings, for provenance records of saved files."""
        return getattr(self, "_made", None)

    @abstractmethod
    def tables(self) -> list[Block]:
        """The tables, with the lines between them, as the command prints them."""

    @recorded_save
    def save_tables(self, path: str | Path) -> list[Path]:
        """Write them for LaTeX (.tex), or as CSV (.csv, with each further table in its own file).

        Returns the files. Raises `SettingsError` for another extension.
        """
        from fabula.jobs.result_files import TableFiles

        name = "latex" if str(path).endswith(".tex") else "csv"
        return TableFiles(**{name: Path(path)}).write(self._written())

    def _written(self) -> list[Block]:
        """The tables as they are written to files."""
        return self.tables()

    def __str__(self) -> str:
        from fabula.presentation.sheet import render

        return render(*self.tables())

    def _repr_html_(self) -> str:
        from fabula.presentation.sheet import html_of

        return html_of(self.tables())


@dataclass(frozen=True, slots=True)
class Scores(Tabled):
    """The originality of texts: a row for each, as `fabula originality --out` writes it."""

    rows: list[dict[str, Any]]
    result: OriginalityResult
    kind: FrameKind | None = None

    def wide(self) -> Any:
        """A frame of the input's kind, one row per text: `id` and its scores.

        `creativity_index`; `uniqueness_L` for each L; `n_words`; `missing_reason`, None if there
        are scores. Join it to your own frame on `id`.
        """
        names = ("creativity_index", "n_words", "missing_reason")
        return frame_of(
            (
                {
                    "id": row["id"],
                    **{name: row[name] for name in names},
                    **{f"uniqueness_{level}": v for level, v in row["uniqueness"].items()},
                }
                for row in self.rows
            ),
            self.kind,
        )

    @property
    def remarks(self) -> list[str]:
        """Notices for a reader of the numbers."""
        return self.result.remarks()

    @property
    def signature(self) -> str:
        return self.result.signature

    @recorded_save
    def save(self, path: str | Path) -> None:
        """The rows (.jsonl), or the page of borrowed spans (.html)."""
        if str(path).endswith(".html"):
            self.result.save_page(Path(path))
        else:
            write_rows(Path(path), self.rows, are_results=True)

    def tables(self) -> list[Block]:
        from fabula.presentation.originality_tables import originality_table

        result = self.result
        return originality_table(result.table, result.levels, result.signature, result.own)

    def _repr_html_(self) -> str:
        from fabula.web.notebook import notebook_table

        lines = [(r["id"], r["creativity_index"], r["missing_reason"]) for r in self.rows]
        return notebook_table("Creativity Index", lines, self.signature)


@dataclass(frozen=True, slots=True)
class Profiles(Tabled):
    """The profile of each text."""

    profiles: list[Profile]
    kind: FrameKind | None = None

    def wide(self) -> Any:
        """A frame of the input's kind, one row per text: `id` and a column for each metric."""
        return frame_of(({"id": p.document.id, **p.values} for p in self.profiles), self.kind)

    def measurements(self) -> list[Measurement]:
        return [one for profile in self.profiles for one in profile.measurements()]

    @recorded_save
    def save(self, path: str | Path) -> None:
        """The rows (.jsonl), or a page with rhythm and repetitions (.html)."""
        if str(path).endswith(".html"):
            self.save_page(path)
        else:
            self.save_rows(path)

    @recorded_save
    def save_page(self, path: str | Path) -> None:
        from fabula.presentation.profile_page import write_profile_page

        write_profile_page(self.profiles, Path(path))

    @recorded_save
    def save_rows(self, path: str | Path) -> None:
        write_rows(Path(path), [profile.to_row() for profile in self.profiles], are_results=True)

    @recorded_save
    def plot(self, path: str | Path) -> None:
        """Draw rhythm and rarity of up to 12 texts (.svg, .pdf or .png)."""
        from fabula.presentation.charts import save_profiles

        save_profiles(self.profiles, Path(path))

    def tables(self) -> list[Block]:
        from fabula.presentation.profile_page import profile_tables

        return profile_tables(self.profiles)

    def _repr_html_(self) -> str:
        return "".join(profile._repr_html_() for profile in self.profiles)


@dataclass(frozen=True, slots=True)
class Books(Tabled):
    """Texts by chapter."""

    found: MeasuredBooks
    kind: FrameKind | None = None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row per text, with its chapters, people and repetitions, as the command prints them."""
        return self.found.to_json()

    def wide(self) -> Any:
        """A frame of the input's kind, one row per chapter: `id`, and a column for each number."""
        return frame_of(self.found.chapter_rows(), self.kind)

    def tables(self) -> list[Block]:
        return self.found.tables()


@dataclass(frozen=True, slots=True)
class Verdicts(Tabled):
    """Judges' answers about each text on each item of a rubric."""

    judged: Judged
    kind: FrameKind | None = None

    def measurements(self) -> list[Measurement]:
        return self.judged.measurements

    @property
    def rubric(self) -> Rubric:
        return self.judged.plan.rubric

    def wide(self) -> Any:
        """A frame of the input's kind, one row per text and judge: `id`, `rater`, each item."""
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for one in self.judged.measurements:
            row = rows.setdefault(
                (one.document_id, one.rater), {"id": one.document_id, "rater": one.rater}
            )
            row[one.item] = one.value
        return frame_of(rows.values(), self.kind)

    @recorded_save
    def save(self, path: str | Path) -> None:
        """The measurements (.jsonl), or the page of verdicts (.html)."""
        if str(path).endswith(".html"):
            self.judged.save_page(Path(path))
            return
        write_rows(Path(path), self.judged.rows(), are_results=True)

    def tables(self) -> list[Block]:
        return self.judged.tables()


@dataclass(frozen=True, slots=True)
class Agreement(Tabled):
    """Agreement of judges with experts, and of experts with each other."""

    found: Agreements

    @property
    def judges(self) -> list[JudgeAgreement]:
        """Each judge with the experts' majority, on yes-no items."""
        return self.found.judges

    @property
    def experts(self) -> list[PanelRow]:
        """Experts among themselves, on yes-no items."""
        return self.found.experts

    def to_json(self) -> dict[str, Any]:
        return self.found.content()

    def wide(self) -> Any:
        """A frame, one row per judge and group of items: kappa with its interval, and counts."""
        return frame_of(
            (
                {
                    "rater": judge.rater,
                    "name": row.name,
                    "kappa": row.kappa.value,
                    "low": row.kappa.low,
                    "high": row.kappa.high,
                    "n": row.kappa.n,
                    "n_missing": row.n_missing,
                }
                for judge in self.judges
                for row in (*judge.rows, judge.overall)
            ),
            None,
        )

    def tables(self) -> list[Block]:
        return self.found.tables()


@dataclass(frozen=True, slots=True)
class Corrected(Tabled):
    """A judge's means as experts would have given them."""

    found: CorrectedRun

    def to_json(self) -> dict[str, Any]:
        return self.found.content()

    def wide(self) -> Any:
        """A frame, one row per item, group and `all`: raw and corrected mean, interval, and n."""
        content = self.found.content()
        named = [("all", "all", content["overall"])]
        named += [("item", name, one) for name, one in content["items"].items()]
        named += [("group", name, one) for name, one in content["groups"].items()]
        return frame_of(({"kind": kind, "name": name, **one} for kind, name, one in named), None)

    def tables(self) -> list[Block]:
        return self.found.tables()


@dataclass(frozen=True, slots=True)
class JudgeComparison(Tabled):
    """Judges and their panels compared with each other, and with people if there are labels."""

    found: _JudgeComparison

    def to_json(self) -> list[dict[str, Any]]:
        """An entry for each judge and panel, as `fabula judge compare --json` prints it."""
        return self.found.to_json()

    def wide(self) -> Any:
        """A frame, one row per judge and panel: every numeric figure.

        `kappa` with people's majority, its `low` and `high`, and the kappa of one person
        (`baseline`); `n_missing` counts the answers without a verdict. The differences between each
        two judges are in `to_json`.
        """
        return frame_of((_flat(entry) for entry in self.to_json()), None)

    def tables(self) -> list[Block]:
        return self.found.tables()


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    """A judge's figures in one row; those with an interval have columns for its ends."""
    row: dict[str, Any] = {}
    for name, value in entry.items():
        if name == "missing":
            row["n_missing"] = sum(value.values())
        elif isinstance(value, dict) and "low" in value:
            key = name if name in value else next(iter(value))
            rest = {f"{name}_{end}": number for end, number in value.items() if end != key}
            row |= {name: value[key], **rest}
        elif not isinstance(value, dict | list | tuple):
            row[name] = value
    return row


@dataclass(frozen=True, slots=True)
class Plan(Tabled):
    """What studies of each size would show."""

    found: _Plan

    def to_json(self) -> dict[str, Any]:
        """The sizes, and the smallest that reach the targets, as `fabula plan --json` has them."""
        return self.found.to_json()

    def wide(self) -> Any:
        """A frame, one row per item and size; `item` is missing for all yes-no items together."""
        return frame_of(self.found.rows(), None)

    def tables(self) -> list[Block]:
        return self.found.tables()


@dataclass(frozen=True, slots=True)
class FoundFaults(Tabled):
    """Which answers find the planted faults, according to quotations and each judge."""

    found: _FoundFaults

    def to_json(self) -> dict[str, Any]:
        """Every subset with its intervals, as `fabula feedback find --json` prints them."""
        return self.found.to_json()

    def wide(self) -> Any:
        """A frame, one row per readable answer: what it finds, by which rule."""
        return frame_of(self.found.rows(), None)

    def tables(self) -> list[Block]:
        return self.found.tables()


@dataclass(frozen=True, slots=True)
class Comparison(Tabled):
    """Groups of texts compared."""

    comparison: _Comparison | NumberComparison

    def to_json(self) -> dict[str, Any]:
        return self.comparison.to_json()

    def wide(self) -> Any:
        """A frame, one row per group: mean Creativity Index with its interval, and n.

        Of other numbers one row per number and group, with `number` and `mean`.
        """
        return frame_of(self.comparison.rows(), None)

    @recorded_save
    def plot(self, path: str | Path) -> None:
        """Draw curves and distributions (.svg, .pdf or .png)."""
        from fabula.errors import InputError
        from fabula.measures.number_comparison import NumberComparison
        from fabula.presentation.charts import save_comparison

        if isinstance(self.comparison, NumberComparison):
            raise InputError("only a comparison of scores of originality alone can be drawn")
        save_comparison(self.comparison, Path(path))

    def tables(self) -> list[Block]:
        from fabula.presentation.originality_tables import comparison_tables

        return comparison_tables(self.comparison)


@dataclass(frozen=True, slots=True)
class Detector(Tabled):
    """How well scores tell human from machine, ready to be applied to other texts."""

    calibrations: list[Calibration]
    label: Label
    cluster: str | None = None

    def apply(self, scores: Scores, *, fpr: float = 0.01) -> Any:
        """A frame of verdicts on other scored texts: `machine`, `not flagged`, or none and why.

        `fpr` is the allowed share of human texts called machine-written. Raises `MixError` if the
        scores were measured in another way.
        """
        from fabula.measures.detector_verdicts import apply_to_rows, detector_rows

        rows = apply_to_rows(detector_rows(self.calibrations), scores.rows, "scores", fpr)
        return frame_of(rows, scores.kind)

    @recorded_save
    def save(self, path: str | Path) -> None:
        """Input for `fabula detect apply`."""
        from fabula.measures.detector_verdicts import write_detectors

        write_detectors(Path(path), self.calibrations, self.label, self.cluster)

    @recorded_save
    def plot(self, path: str | Path) -> None:
        """Draw the ROC curves (.svg, .pdf or .png)."""
        from fabula.presentation.detection_tables import save_rocs

        save_rocs(self.calibrations, Path(path))

    def tables(self) -> list[Block]:
        from fabula.presentation.detection_tables import calibration_tables

        return calibration_tables(self.calibrations)


@dataclass(frozen=True, slots=True)
class Report(Tabled):
    """Every instrument on the same texts."""

    reported: Reported
    kind: FrameKind | None = None

    @property
    def review(self) -> Review:
        """All results."""
        return self.reported.review

    def wide(self) -> Any:
        """A frame of the input's kind, one row per text: `id` and every number of the report."""
        from fabula.review import numbers_of_review

        _, rows = numbers_of_review(self.review)
        named = zip(self.review.texts, rows, strict=True)
        return frame_of(({"id": text.document.id, **row} for text, row in named), self.kind)

    def measurements(self) -> list[Measurement]:
        return list(self.review.measurements())

    @recorded_save
    def save(self, path: str | Path) -> None:
        """The page (.html), or the tables for LaTeX (.tex)."""
        if str(path).endswith(".tex"):
            self.save_tables(path)
            return
        from fabula.presentation.page_file import check_page_path

        check_page_path(Path(path))
        self.reported.write_page(Path(path))

    @recorded_save
    def save_comments(self, path: str | Path, source: str | Path | None = None) -> int:
        """The findings on one text as comments of a Word document; returns how many had no place.

        source: the .docx that the text was read from, whose formatting is kept. Raises `InputError`
        for several texts.
        """
        return self.reported.write_comments(Path(path), None if source is None else Path(source))

    def _written(self) -> list[Block]:
        return self.reported.sheets()

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values, with paragraphs on methods and the citations."""
        return self.reported.to_json()

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """Instruments that did not run, each with the reason and the remedy."""
        return [asdict(entry) for entry in self.review.left_out]

    def tables(self) -> list[Block]:
        return self.reported.tables()

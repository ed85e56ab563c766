"""What the functions of `fabula` give back: it shows and saves itself, and becomes a frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.api.texts import FrameKind, frame_of
from fabula.store import dump_json, write_whole

if TYPE_CHECKING:
    from fabula.jobs.judging import Judged
    from fabula.jobs.originality import OriginalityResult
    from fabula.measures.agreement import JudgeAgreement, PanelRow
    from fabula.measures.comparison import Comparison as _Comparison
    from fabula.measures.detection import Calibration
    from fabula.measures.linguistic.profile import Profile
    from fabula.measures.verdicts import Label
    from fabula.presentation.sheet import Block
    from fabula.review import GroupTest, Review
    from fabula.types import Measurement, Rubric

__all__ = ["Agreement", "Comparison", "Detector", "Profiles", "Report", "Scores", "Verdicts"]


def _save_rows(path: str | Path, rows: Sequence[dict[str, Any]]) -> None:
    lines = "".join(dump_json(row) + "\n" for row in rows)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(Path(path), lines.encode(errors="replace"))


class _Tabled(ABC):
    """A result that is shown as tables: printed, in a notebook, in LaTeX and as CSV."""

    __slots__ = ()

    @abstractmethod
    def tables(self) -> list[Block]:
        """The tables, with the lines between them, as the command prints them."""

    def save_tables(self, path: str | Path) -> list[Path]:
        """Write them for LaTeX (.tex), or as CSV (.csv, each further table in a file beside it).

        Returns the files. Raises `SettingsError` for another ending.
        """
        from fabula.jobs.tables import TableFiles

        name = "latex" if str(path).endswith(".tex") else "csv"
        return TableFiles(**{name: Path(path)}).write(self._written())

    def _written(self) -> list[Block]:
        """The tables as files hold them."""
        return self.tables()

    def __str__(self) -> str:
        from fabula.presentation.sheet import render

        return render(*self.tables())

    def _repr_html_(self) -> str:
        from fabula.presentation.sheet import html_of

        return html_of(self.tables())


@dataclass(frozen=True, slots=True)
class Scores(_Tabled):
    """The originality of texts: a row for each, as `fabula originality --out` writes it."""

    rows: list[dict[str, Any]]
    result: OriginalityResult
    kind: FrameKind | None = None

    def wide(self) -> Any:
        """A frame of the input's kind, one row per text: `id` and its scores.

        `creativity_index`; `uniqueness_L` for each L; `n_words`; `missing_reason`, None where there
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
        """What a reader of the numbers should know."""
        return self.result.remarks()

    @property
    def signature(self) -> str:
        return self.result.signature

    def save(self, path: str | Path) -> None:
        """The rows (.jsonl), or the page of borrowed spans (.html)."""
        if str(path).endswith(".html"):
            self.result.save_page(Path(path))
        else:
            _save_rows(path, self.rows)

    def tables(self) -> list[Block]:
        from fabula.presentation.originality_tables import originality_table

        return originality_table(self.result.table, self.result.levels, self.signature)

    def _repr_html_(self) -> str:
        from fabula.web.notebook import notebook_table

        lines = [(r["id"], r["creativity_index"], r["missing_reason"]) for r in self.rows]
        return notebook_table("Creativity Index", lines, self.signature)


@dataclass(frozen=True, slots=True)
class Profiles(_Tabled):
    """The profile of each text."""

    profiles: list[Profile]
    kind: FrameKind | None = None

    def wide(self) -> Any:
        """A frame of the input's kind, one row per text: `id` and a column for each metric."""
        return frame_of(({"id": p.document.id, **p.values} for p in self.profiles), self.kind)

    def measurements(self) -> list[Measurement]:
        return [one for profile in self.profiles for one in profile.measurements()]

    def save(self, path: str | Path) -> None:
        """The rows (.jsonl), or a page with rhythm and repetitions (.html)."""
        if str(path).endswith(".html"):
            self.save_page(path)
        else:
            self.save_rows(path)

    def save_page(self, path: str | Path) -> None:
        from fabula.presentation.profile_page import write_profile_page

        write_profile_page(self.profiles, Path(path))

    def save_rows(self, path: str | Path) -> None:
        _save_rows(path, [profile.to_row() for profile in self.profiles])

    def plot(self, path: str | Path) -> None:
        """Draw rhythm and rarity of up to 12 texts (.svg, .pdf or .png)."""
        from fabula.presentation.plots import save_profiles

        save_profiles(self.profiles, Path(path))

    def tables(self) -> list[Block]:
        from fabula.presentation.profile_page import profile_tables

        return profile_tables(self.profiles)

    def _repr_html_(self) -> str:
        return "".join(profile._repr_html_() for profile in self.profiles)


@dataclass(frozen=True, slots=True)
class Verdicts(_Tabled):
    """What judges said of each text on each item of a rubric."""

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

    def save(self, path: str | Path) -> None:
        """The measurements (.jsonl), or the page of verdicts (.html)."""
        if str(path).endswith(".html"):
            self.judged.save_page(Path(path))
            return
        from fabula.store import measurement_row

        _save_rows(path, [measurement_row(one) for one in self.judged.measurements])

    def tables(self) -> list[Block]:
        from fabula.presentation.judging_tables import judge_tables

        return judge_tables(self.judged.summaries(), self.judged.measurements, self.rubric)


@dataclass(frozen=True, slots=True)
class Agreement(_Tabled):
    """How far judges agree with experts, and experts with each other."""

    judges: list[JudgeAgreement]
    experts: list[PanelRow]
    expert_correlation: float | None
    rubric: Rubric

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
        from fabula.presentation.judging_tables import agreement_tables

        return agreement_tables(self.judges, self.experts, self.expert_correlation, self.rubric)


@dataclass(frozen=True, slots=True)
class Comparison(_Tabled):
    """Groups of scored texts beside each other."""

    comparison: _Comparison

    def to_json(self) -> dict[str, Any]:
        return self.comparison.to_json()

    def wide(self) -> Any:
        """A frame, one row per group: mean Creativity Index with its interval, and n."""
        return frame_of(
            (
                {
                    "name": group.name,
                    "creativity_index": group.index.value,
                    "low": group.index.low,
                    "high": group.index.high,
                    "n": group.index.n,
                    "n_missing": sum(group.missing.values()),
                }
                for group in self.comparison.groups
            ),
            None,
        )

    def plot(self, path: str | Path) -> None:
        """Draw curves and distributions (.svg, .pdf or .png)."""
        from fabula.presentation.plots import save_comparison

        save_comparison(self.comparison, Path(path))

    def tables(self) -> list[Block]:
        from fabula.presentation.originality_tables import comparison_tables

        return comparison_tables(self.comparison)


@dataclass(frozen=True, slots=True)
class Detector(_Tabled):
    """How well scores tell human from machine, ready to be applied to other texts."""

    calibrations: list[Calibration]
    label: Label
    cluster: str | None = None

    def apply(self, scores: Scores, *, fpr: float = 0.01) -> Any:
        """A frame of verdicts on other scored texts: `machine`, `not flagged`, or none and why.

        `fpr` is the share of human texts that may be called machine-written. Raises `MixError`
        where the scores were measured in another way.
        """
        from fabula.measures.verdicts import apply_to_rows, detector_rows

        rows = apply_to_rows(detector_rows(self.calibrations), scores.rows, "scores", fpr)
        return frame_of(rows, scores.kind)

    def save(self, path: str | Path) -> None:
        """For `fabula detect apply`."""
        from fabula.measures.verdicts import write_detectors

        write_detectors(Path(path), self.calibrations, self.label, self.cluster)

    def plot(self, path: str | Path) -> None:
        """Draw the ROC curves (.svg, .pdf or .png)."""
        from fabula.presentation.detection_tables import save_rocs

        save_rocs(self.calibrations, Path(path))

    def tables(self) -> list[Block]:
        from fabula.presentation.detection_tables import calibration_tables

        return calibration_tables(self.calibrations)


@dataclass(frozen=True, slots=True)
class Report(_Tabled):
    """Every instrument on the same texts."""

    review: Review
    by: str | None = None
    tests: tuple[GroupTest, ...] = ()
    kind: FrameKind | None = None

    def wide(self) -> Any:
        """A frame of the input's kind, one row per text: `id` and every number of the report."""
        from fabula.review import numbers_of_review

        _, rows = numbers_of_review(self.review)
        named = zip(self.review.texts, rows, strict=True)
        return frame_of(({"id": text.document.id, **row} for text, row in named), self.kind)

    def measurements(self) -> list[Measurement]:
        return list(self.review.measurements())

    def save(self, path: str | Path) -> None:
        """The page (.html), or the tables for LaTeX (.tex)."""
        if str(path).endswith(".tex"):
            self.save_tables(path)
            return
        from fabula.presentation.page_file import check_page_path

        check_page_path(Path(path))
        self.save_page(Path(path))

    def save_page(self, path: Path) -> None:
        from fabula.presentation.review_page import write_review_page

        write_review_page(path, self.review, by=self.by, tests=self.tests)

    def _written(self) -> list[Block]:
        from fabula.presentation.review_tables import review_sheets

        return review_sheets(self.review, self.tests)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values, with a paragraph on methods and the citations."""
        from fabula.presentation.methods import bibtex_of, methods_of
        from fabula.presentation.review_groups import was_tested
        from fabula.presentation.review_tables import review_json

        tested = self.by if was_tested(self.tests) else None
        content = review_json(self.review, self.tests)
        return content | {
            "methods": methods_of(self.review, tested),
            "bibtex": bibtex_of(self.review),
        }

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """Instruments that did not run, each with the reason and the remedy."""
        return [asdict(entry) for entry in self.review.left_out]

    def tables(self) -> list[Block]:
        from fabula.presentation.review_tables import review_tables

        return review_tables(self.review, self.tests)

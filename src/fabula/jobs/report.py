"""All instruments on the same texts, on one page: which to run, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import ClassVar, Literal

from fabula.jobs.engine import Processes
from fabula.jobs.given import Labels, Run
from fabula.jobs.models import NoModelSettings, temperature_setting
from fabula.jobs.originality import Marking, Matching
from fabula.jobs.reading import grammar_setting
from fabula.jobs.result_files import TableFiles, page_setting
from fabula.settings import Between, Settings, SettingsError, of_field, part, seed_setting, setting

ON_REQUEST = ("fluency",)
"""The instruments that are off by default."""


def _is_part(name: str) -> str | None:
    from fabula.instruments import names_of_parts
    from fabula.measures.line_rules import LINE_KINDS

    known = (*names_of_parts(), *LINE_KINDS)
    return None if name in known else f"{name!r}: must be one of {', '.join(known)}"


def _is_off(name: str) -> str | None:
    """Reject what is on by default, and what is not known."""
    from fabula.measures.line_rules import LINE_KINDS

    known = [*ON_REQUEST, *(kind.id for kind in LINE_KINDS.values() if not kind.is_on)]
    return None if name in known else f"{name!r}: must be one of {', '.join(known)}"


def _ungrouped() -> list[str]:
    """What models say, comparisons of several texts and line notes: they make no group."""
    from fabula.review import OWN_PARTS

    return [one.id for one in OWN_PARTS if not one.has_groups]


def _is_measured(name: str) -> str | None:
    return f"{name!r} is never part of a group" if name in _ungrouped() else _is_part(name)


@dataclass(frozen=True, slots=True)
class InstrumentSettings(Processes, Matching):
    """Settings of the instruments that do not call a model."""

    references: tuple[str, ...] = setting(
        (),
        help="Corpus to measure originality against: its folder or s3:// address, http://... if "
        "it is served, or infinigram:NAME; repeat it to search several as one.",
        unit="PATH",
        option="reference",
        env="FABULA_REFERENCE",
    )
    exclude: Literal["none", "auto"] = setting(
        "none", help="auto: leave out documents of the reference that copy or quote the text."
    )
    exclude_same: str | None = of_field(
        "Leave out documents whose FIELD equals the text's, such as author or prompt_id; "
        "texts that share it are not compared with each other either."
    )
    fluency_model: str = setting(
        "local",
        help="Model used for surprisal (with fluency): local (the embedded model) or a .gguf file.",
        unit="MODEL",
        tunes="tools",
    )
    grammar: str = grammar_setting()
    without: tuple[str, ...] = setting(
        (),
        help="Leave an instrument out: originality, profile, lines, verdicts, feedback, "
        "book, diversity (of several texts), or one that another package adds; or a kind of "
        "note on lines, such as grammar; repeat it for several.",
        unit="INSTRUMENT",
        check=_is_part,
    )

    with_: tuple[str, ...] = setting(
        (),
        help="Add what is off by default: fluency, or a kind of note on lines that is wrong more "
        "often than right: stock, echo or long; repeat it for several.",
        unit="NAME",
        option="with",
        check=_is_off,
    )

    def asks(self, instrument: str) -> bool:
        """Whether an instrument should run."""
        is_wanted = instrument in self.with_ or instrument not in ON_REQUEST
        return is_wanted and instrument not in self.without

    def check_together(self) -> None:
        for name in self.with_:
            if name in self.without:
                raise SettingsError("with_", f"adds {name}, which `without` leaves out")
        if self.fluency_model != "local" and not self.asks("fluency"):
            raise SettingsError("fluency_model", "is of use with fluency only: add it in `with_`")


@dataclass(frozen=True, slots=True)
class AdviceOptions(Settings):
    """How one model is asked for feedback on one draft, with `only` feedback."""

    n_points: int = setting(
        7, help="feedback: maximum number of points per reading.", check=Between(1, 50)
    )
    temperature: float = temperature_setting(0.7)
    by_chapter: bool = setting(
        False,
        help="feedback: ask about each chapter of a book by itself, then about contradictions "
        "between chapters.",
    )
    since: Path | None = setting(
        None,
        help="feedback: the `points_file` of an earlier draft; shows which of its points are "
        "resolved.",
    )
    points_file: Path | None = setting(
        None,
        help="feedback: keep the points here (.jsonl), for `since` of the next draft; answers "
        "saved beside it (FILE with .answers before its ending) are not asked for again.",
    )


Only = Literal["lines", "book", "profile", "feedback", "fluency", "originality", "verdicts"]


@dataclass(frozen=True, slots=True)
class ReportSettings(InstrumentSettings):
    """All instruments, and the models that judge and advise."""

    sets: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("levels", "match", "exclude", "exclude_same", "n_marks"), "matching"),
        **dict.fromkeys(("rubric", "style", "labels", "judge", "by"), "verdicts"),
        **dict.fromkeys(("n_points", "by_chapter", "since", "points_file", "n_samples"), "advice"),
    }
    only: Only | None = setting(
        None, help="Run one instrument alone, and print all that it has to say."
    )
    per_thousand: int = setting(
        10,
        help="lines, alone: show the N most important notes per thousand words (0: all).",
        check=Between(0),
    )
    n_people: int = setting(
        12, help="book, alone: show the N people named most often (0: all).", check=Between(0)
    )
    advice: AdviceOptions = part(AdviceOptions)
    by: str | None = of_field(
        "Correct verdicts in groups by this field: author, model, ... (`fabula compare` "
        "compares groups)."
    )
    against_each_other: bool = setting(
        False,
        help="Compare each text with all the others, as in a class: what it shares, how long the "
        "longest passage is, and with whom; in addition to `references`, if any are named.",
    )
    rubric: str = setting(
        "ttcw", help="Rubric that the models judge by (with `models`).", unit="NAME|FILE"
    )
    style: Literal["reason-first", "verdict-first"] = setting(
        "reason-first", help="Ask for reasons before the verdict, or after it (faster and cheaper)."
    )
    n_samples: int = setting(5, help="Ask each model N times for feedback.", check=Between(1, 50))
    groups: tuple[Path, ...] = setting(
        (), help="Additional reference groups, as `fabula reference group` writes them."
    )
    phrases: tuple[Path, ...] = setting(
        (),
        help="Mark the phrases in this list: the file that `fabula phrases --out` wrote, "
        "or a JSON list of phrases, or of [phrase, count]; repeat it for several.",
    )
    marking: Marking = part(Marking)
    labels: Labels | None = setting(
        None,
        help="People's labels for some of the texts, drawn at random: shows an estimate of what "
        "people would have said about all texts beside what the models say (with `models`).",
    )
    judge: Run | None = setting(
        None,
        help="Show the verdicts of this run of `fabula judge`, in place of asking `models`.",
        unit="RUN",
    )
    models: NoModelSettings = part(NoModelSettings)
    seed: int = seed_setting()
    keep: Path | None = None
    """A folder where models' answers are cached, so that none is paid for twice."""

    def asks(self, instrument: str) -> bool:
        if self.only is not None:
            return instrument == self.only
        # A dataclass with slots is a new class, where `super()` without arguments fails.
        return InstrumentSettings.asks(self, instrument)

    def check_together(self) -> None:
        InstrumentSettings.check_together(self)
        for name, usual in asdict(AdviceOptions()).items():
            if self.only != "feedback" and getattr(self.advice, name) != usual:
                raise SettingsError(name, "is only for `only` feedback")
        if self.only in ("feedback", "verdicts") and not self.models.models:
            raise SettingsError("models", f"must be named for `only` {self.only}")
        if self.only == "originality" and not (self.references or self.against_each_other):
            raise SettingsError("references", "must be named for `only` originality")
        if not self.against_each_other:
            return
        from fabula.reference.search import is_elsewhere

        if self.exclude == "auto":
            raise SettingsError(
                "exclude", "auto leaves out copies, which `against_each_other` looks for"
            )
        if far := [one for one in self.references if "://" in one or is_elsewhere(one)]:
            raise SettingsError(
                "against_each_other",
                f"searches the texts together with references in a folder, and {far[0]} is not in "
                "one",
            )


@dataclass(frozen=True, slots=True)
class ReportFiles(TableFiles):
    """The output files of a report."""

    out: Path | None = page_setting(
        "Write the page here.", default_text="report.html, but none with `only`"
    )
    comments: Path | None = setting(
        None,
        help="Write the findings as comments into a Word document (.docx), which keeps the "
        "formatting of a .docx draft.",
    )


@dataclass(frozen=True, slots=True)
class GroupSettings(InstrumentSettings):
    """The instruments whose numbers make up a reference group."""

    without: tuple[str, ...] = setting(
        (),
        help="Leave an instrument out: originality, profile, book, or one that another package "
        "adds; repeat it for several.",
        unit="INSTRUMENT",
        check=_is_measured,
    )
    with_: tuple[str, ...] = setting(
        (),
        help="Add an instrument that is off by default: fluency.",
        unit="INSTRUMENT",
        option="with",
        check=_is_measured,
    )

    def report(self) -> ReportSettings:
        """A report without models' answers."""
        shared = {one.name: getattr(self, one.name) for one in fields(InstrumentSettings)}
        return ReportSettings(**{**shared, "without": (*self.without, *_ungrouped())})

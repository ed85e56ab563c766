"""Whether readers notice planted faults: their answers, recorded with the stories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.jobs.progress import SILENT, Progress
from fabula.settings import Between, Settings, seed_setting, setting

if TYPE_CHECKING:
    from fabula.presentation.sheet import Block
    from fabula.resume import Row
    from fabula.tasks.feedback.noticed_faults import NoticeScore
    from fabula.types import Estimate, Measurement

__all__ = ["NoticeSettings", "NoticedFaults", "record_noticed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeSettings(Settings):
    """Whose answers are recorded, and where."""

    answers: tuple[Path, ...] = setting(
        (),
        help="Answers to the rubric story_fault about these stories: measurements of `judge`, or "
        "people's from `study export` or a table (document, item, rater, value); repeat it for "
        "several.",
        unit="FILE",
    )
    out: Path | None = setting(
        None,
        help="Write the stories here (.jsonl), each with what its readers noticed.",
        unit="FILE",
    )
    study: Path | None = setting(
        None,
        help="Write the stories here (.jsonl) for people to read in a study: blinded, in groups "
        "without two versions of one story.",
        unit="FILE",
    )
    per_group: int = setting(4, help="Number of stories in a group of the study.", check=Between(1))
    seed: int = seed_setting()


@dataclass(frozen=True, slots=True)
class NoticedFaults:
    """The stories with the record, and what it says about each kind of fault."""

    rows: Sequence[Row]
    scores: Sequence[NoticeScore]

    @property
    def status(self) -> dict[str, int]:
        """How many changed stories are noticed, not noticed, and not checked."""
        from fabula.tasks.feedback.fault_matches import status_of

        changed = (row for row in self.rows if row["method"] != "original")
        return dict(sorted(Counter(status_of(row["change"]) for row in changed).items()))

    def tables(self) -> list[Block]:
        from fabula.presentation.noticing_tables import noticing_tables

        return noticing_tables(self.scores, self.status)

    def to_json(self) -> dict[str, Any]:
        return {"status": self.status, "kinds": [asdict(one) for one in self.scores]}


def record_noticed(
    corrupted: Path, settings: NoticeSettings, *, progress: Progress = SILENT
) -> NoticedFaults:
    """Record for each story of `feedback corrupt` which readers noticed its fault.

    Writes what `out` and `study` name. Raises `InputError` if the answers are about none of the
    stories.
    """
    from fabula.errors import InputError
    from fabula.store import write_rows
    from fabula.tasks.feedback.eliciting import read_corrupted
    from fabula.tasks.feedback.noticed_faults import group_blinded, read_noticed, score_noticed
    from fabula.text.pipeline import load_pipeline
    from fabula.text.sentences import paragraph_docs, spans_of_docs

    rows = read_corrupted(corrupted)
    answers = [one for path in settings.answers for one in _answers(path)]
    ids = {row["id"] for row in rows}
    if answers and not any(one.document_id in ids for one in answers):
        raise InputError(
            f"`answers`: none of them is about a story of {corrupted}; their documents look like "
            f"{answers[0].document_id!r}, the stories like {rows[0]['id']!r}"
        )
    if answers:
        progress.begin("reading answers", len(answers))
        nlp = load_pipeline(("tok2vec", "parser"))
        rows = read_noticed(
            rows, answers, lambda text: list(spans_of_docs(tuple(paragraph_docs(text, nlp))))
        )
        progress.advance(len(answers))
    if settings.out is not None:
        write_rows(settings.out, rows)
    if settings.study is not None:
        write_rows(settings.study, group_blinded(rows, settings.per_group, settings.seed))
    return NoticedFaults(rows, score_noticed(rows, _estimates(settings.seed)))


def _answers(path: Path) -> list[Measurement]:
    """A judge's measurements, or people's labels, on the rubric."""
    from fabula.measures.labels import read_labels
    from fabula.rubrics import load_rubric
    from fabula.store import read_measurements, read_rows

    rubric = load_rubric("story_fault")
    if path.suffix == ".jsonl":
        first = next(iter(read_rows(path)), {})
        if {"id", "rubric", "item", "rater", "signature"} <= first.keys():
            return [
                one for one in read_measurements(path) if one.rubric.partition("-")[0] == rubric.id
            ]
    return list(read_labels(path, rubric))


def _estimates(seed: int) -> Any:
    """A function that makes an estimate from shares and the stories they are about."""
    import numpy as np

    from fabula.stats.reliability import bootstrap_interval
    from fabula.tasks.feedback.noticed_faults import RULES
    from fabula.types import Signature

    signature = str(Signature.of("feedback-noticed", rules=RULES))

    def estimate(values: Sequence[float], stories: Sequence[str]) -> Estimate:
        rows = np.array([(value, 1.0) for value in values], np.float64).reshape(-1, 2)
        return bootstrap_interval(
            float(rows[:, 0].mean()) if len(rows) else None,
            rows,
            lambda sums: sums[..., 0] / sums[..., 1],
            stories,
            seed=seed,
            method="share, percentile bootstrap over stories",
            signature=signature,
            n=len(values),
        )

    return estimate

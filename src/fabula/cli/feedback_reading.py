"""Reading feedback, and people's answers on it: this project's files, or the released ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fabula.models.encoder import Encoder

__all__ = ["feedback_rows", "open_encoder", "people_means"]


def feedback_rows(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Rows of `feedback elicit`; the files released with the paper are known by their names."""
    from fabula.replicate.story_feedback_files import RELEASED_FILES, read_released_file
    from fabula.store import read_rows

    rows: list[dict[str, Any]] = []
    for path in paths:
        rows += read_released_file(path) if path.name in RELEASED_FILES else read_rows(path)
    return rows


def people_means(paths: Sequence[Path]) -> dict[str, dict[str, float]]:
    """People's means by item and piece of feedback, from measurements or the released ratings.

    Raises `InputError` where there is not a single answer.
    """
    from fabula.errors import InputError
    from fabula.measures.ratings import feedback_id, mean_scores, score_table
    from fabula.replicate.story_feedback_files import RATINGS_FILE, read_released_file
    from fabula.rubrics import load_rubric
    from fabula.store import read_measurements

    means: dict[str, dict[str, float]] = {}
    own = [path for path in paths if path.name != RATINGS_FILE]
    given = (one for path in own for one in read_measurements(path))
    for item, by_document in mean_scores(score_table(given, load_rubric("feedback"))).items():
        means.setdefault(item, {}).update(by_document)
    for path in (path for path in paths if path not in own):
        for row in read_released_file(path):
            for question, value in row["ratings"].items():
                if value is not None:
                    item = question.replace("-", "_")
                    means.setdefault(item, {})[feedback_id(row)] = value
    if paths and not any(means.values()):
        raise InputError(f"{paths[0]}: holds no answer to an item of the rubric feedback")
    return means


def open_encoder(name: str | None) -> Encoder | None:
    """The encoder of `--bertscore`: `packaged`, a folder, or none."""
    if name is None:
        return None
    from fabula.models.encoder import Encoder

    return Encoder(None if name == "packaged" else Path(name))

"""Read feedback, and people's answers on it: this project's files, or the released ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError
from fabula.jobs.given import Part, Row, located_in

if TYPE_CHECKING:
    from fabula.types import Measurement, Rubric


def feedback_rows(parts: Iterable[Part], *, whole: bool = False) -> list[Row]:
    """Rows of `feedback elicit`; files released with the paper are recognised by name.

    From files of `study export`, these are people's own feedback. `whole` requires every field of
    such a row, and that no piece occurs twice. Raises `InputError` with the line.
    """
    from fabula.text.feedback_pieces import check_feedback_row, feedback_id, own_feedback_row

    rows: list[Row] = []
    seen: set[str] = set()
    for part in parts:
        for row, where in _located(part):
            if whole:
                check_feedback_row(row, where)
                id_ = feedback_id(row)
                if id_ in seen:
                    raise InputError(f"{where}: the id {id_!r} occurs twice")
                seen.add(id_)
            elif {"rubric", "item", "rater"} <= row.keys():
                own = own_feedback_row(row)
                if own is None:
                    continue
                row = own
            rows.append(row)
    return rows


def _located(part: Part) -> Iterator[tuple[Row, str]]:
    from fabula.replicate.story_feedback import RELEASED_FILES, read_released_file

    if not isinstance(part, Path) or part.name not in RELEASED_FILES:
        return located_in(part)
    rows = read_released_file(part)
    return ((row, f"{part}, line {number}") for number, row in enumerate(rows, 1))


def people_means(
    paths: Sequence[Path], rubric: Rubric, ids: Collection[str]
) -> dict[str, dict[str, float]]:
    """People's means by item and piece of feedback, from measurements or the released ratings.

    Raises `InputError` for answers of a model, on another rubric, with another wording, or about
    none of the pieces `ids`.
    """
    from fabula.measures.ratings import mean_scores, score_table
    from fabula.replicate.story_feedback import RATINGS_FILE, read_released_file
    from fabula.store import read_measurements
    from fabula.text.feedback_pieces import OWN_FEEDBACK, feedback_id

    given: list[Measurement] = []
    means: dict[str, dict[str, float]] = {}
    for path in paths:
        if path.name != RATINGS_FILE:
            for one in list(read_measurements(path)):
                if one.signature.startswith("judge|"):
                    by = f"by a model ({one.rater}), not by people"
                    raise InputError(f"{path}: contains answers {by}")
                if one.rubric != OWN_FEEDBACK and one.rubric.partition("-")[0] != rubric.id:
                    raise InputError(
                        f"{path}: contains answers to {one.rubric}, not to {rubric.key}"
                    )
                given.append(one)
            continue
        for row in read_released_file(path):
            for question, value in row["ratings"].items():
                if value is not None:
                    item = question.replace("-", "_")
                    means.setdefault(item, {})[feedback_id(row)] = value
    try:
        table = mean_scores(score_table(given, rubric))
    except InputError as error:
        raise InputError(f"`people`: {error}") from error
    for item, by_document in table.items():
        means.setdefault(item, {}).update(by_document)
    if paths and not any(means.values()):
        raise InputError(f"{paths[0]}: contains no answer to an item of the rubric {rubric.id}")
    for answered in means.values():
        check_overlap(ids, answered, "people")
    return means


def check_overlap(ids: Collection[str], given: Mapping[str, Any], name: str) -> None:
    """Raise `InputError` if answers or labels are about none of the pieces."""
    if given and not any(id_ in given for id_ in ids):
        raise InputError(
            f"`{name}`: none of its ids matches the feedback; its ids look like "
            f"{next(iter(given))!r}, those of the feedback like {next(iter(ids))!r} (id_model)"
        )

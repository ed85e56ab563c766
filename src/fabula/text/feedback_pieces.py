"""Pieces of writing feedback: their ids, their rows, and their form as documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.text.refusals import is_refusal

OWN_FEEDBACK = "own_feedback"
"""The rubric for the feedback that people in a study would have given the writer themselves."""
_TEXTS = ("id", "story_id", "method", "prompt", "model", "story")
_KNOWN = ("story", "original", "change", "story_id", "method", "prompt", "shots", "model")
_ADVICE = "use the output of `fabula feedback elicit`"


def feedback_id(row: Mapping[str, Any]) -> str:
    """The id of a piece of feedback among those of all models; people's pieces have none."""
    return f"{row['id']}_{row['model']}" if row.get("model") else str(row["id"])


def check_feedback_row(row: Mapping[str, Any], where: str) -> None:
    """Raise `InputError` if a row is not one of `feedback elicit`."""
    lacking = [name for name in _TEXTS if not isinstance(row.get(name), str)]
    if not isinstance(row.get("feedback", 0), str | None):
        lacking.append("feedback")
    if not isinstance(row.get("shots"), int | str):
        lacking.append("shots")
    if lacking:
        raise InputError(f"{where}: no {', '.join(lacking)}; {_ADVICE}")


def why_missing(row: Mapping[str, Any], *, keep_refusals: bool = False) -> str | None:
    """Why a row has no feedback: it is missing, or a model refused; None if it has some.

    Other tools may write refusals as feedback.
    """
    if row.get("feedback") is None:
        reason = row.get("missing_reason")
        return str(reason) if reason else None
    is_checked = row.get("model") and not keep_refusals
    return "refused" if is_checked and is_refusal(str(row["feedback"])) else None


def count_missing(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Number of rows without feedback, by reason, as every table of feedback reports it."""
    return dict(sorted(Counter(filter(None, map(why_missing, rows))).items()))


def own_feedback_row(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """A person's own feedback from a study as a feedback row without a model.

    None for any other answer. Rows are those of `study export`.
    """
    if row["rubric"] != OWN_FEEDBACK or row.get("value") is None:
        return None
    details = row.get("details") or {}
    known = {name: details[name] for name in ("story_id", "method") if details.get(name)}
    return {"id": f"{row['id']}_{row['rater']}", "feedback": row["value"], **known}


def feedback_documents(
    rows: Sequence[Mapping[str, Any]], where: str, *, with_story: bool = True
) -> Iterator[Document]:
    """Yield pieces of feedback as documents, without missing ones and models' refusals.

    Rows are those of `feedback elicit`. A person's need only `id`, `feedback` and, unless it is not
    shown, `story`. Raises `InputError` naming the line.
    """
    seen: set[str] = set()
    needed = ("id", "feedback", "story") if with_story else ("id", "feedback")
    for number, row in enumerate(rows, 1):
        if why_missing(row) is not None:
            continue
        for name in needed:
            if not isinstance(row.get(name), str):
                raise InputError(f"{where}, line {number}: no text {name!r}; {_ADVICE}")
        for name in ("story_id", "method", "model"):
            if not isinstance(row.get(name), str | None):
                raise InputError(f"{where}, line {number}: {name!r} is not a string; {_ADVICE}")
        id_ = feedback_id(row)
        if id_ in seen:
            raise InputError(f"{where}, line {number}: the feedback id {id_!r} occurs twice")
        seen.add(id_)
        method = row.get("method")
        known = {name: row[name] for name in _KNOWN if row.get(name) is not None}
        if with_story and method not in (None, "original") and "original" not in known:
            raise InputError(
                f"{where}, line {number}: has no text 'original', the corrupted story's original"
            )
        if method is not None:
            known["corrupted"] = "No" if method == "original" else "Yes"
        yield Document(id_, row["feedback"], row.get("model"), meta=MappingProxyType(known))

"""The files released with Rashkin et al. 2025, with the paper's names of models and prompts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabula.core.errors import InputError
from fabula.rubrics.released import released_rows

METHODS = ("original", "backtranslate", "swap", "delete")
PROMPTS = ("bulleted list only", "bulleted list", "spot the problem", "one sentence")
SHOTS = ("zeroshot", "twoshot")
QUESTIONS = (
    "sanity", "feedback-type", "perfect-agree", "correctness", "error-detection", "specificity",
    "relevance",
)  # fmt: skip
HOME = "github.com/google-deepmind/igen"
FEEDBACK_FILE = "generated_feedback.jsonl"
RATINGS_FILE = "human_ratings.jsonl"
RELEASED_FILES = (FEEDBACK_FILE, RATINGS_FILE)
_FIELDS = ("story_id", "noise", "prompt", "nshot", "model", "story", "gold_story", "feedback")
_COLUMNS = {
    "length": "story_length_num_characters_all",
    "perfect": "contains_perfect_as_is",
    "repetition": "nonunique_trigram_ratio",
    "repetition_imperfect": "nonunique_trigram_ratio_no_pai",
    "overlap": "nonunique_trigram_ratio_vs_story",
    "one_sentence": "is_one_sentence",
    "n_words": "story_length_num_words",
    "n_trigrams": "story_length_num_trigrams",
}
"""The authors' measures of a piece of feedback, under our names."""
_RATINGS = {question: question for question in QUESTIONS} | {"feedback-type": "is-perfect-as-is"}
_NOISES = {
    "original": "original", "gold": "original", "none": "original", "swap": "swap",
    "delet": "delete", "backtransl": "backtranslate",
}  # fmt: skip
_MODELS = {
    "Bloomz 7B": r"bloomz?7b1?", "Bloomz 176B": r"bloomz?176b", "Gemma 9B": r"gemma2?9b(it)?",
    "Gemma 27B": r"gemma2?27b(it)?", "Gemini 1.5 Flash": r"gemini(15)?flash(00\d)?",
    "Gemini 1.5 Pro": r"gemini(15)?pro(00\d)?", "GPT 3.5": r"(chat)?gpt35(turbo)?(\d{4})?",
    "GPT 4": r"gpt4(\d{4})?",
}  # fmt: skip
"""The paper's names of models, each with those that files may have."""
MODELS = tuple(_MODELS)


def read_released(folder: Path) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """The rows of a folder's released files by name, and the files' prompt names by the paper's.

    Rows are as `feedback.scores.read_answers` takes them, with `columns` and `ratings`.
    Raises `InputError` with file, line and remedy.
    """
    names = [name for name in RELEASED_FILES if (folder / name).is_file()]
    rows_of = {name: list(_released_rows(folder / name)) for name in names}
    if not rows_of:
        raise InputError(
            f"{folder}: contains neither {FEEDBACK_FILE} nor {RATINGS_FILE}; download them "
            f"from {HOME}"
        )
    return rows_of, _rename([row for rows in rows_of.values() for row in rows])


def read_released_file(path: Path) -> list[dict[str, Any]]:
    """The rows of one of the released files. Raises `InputError` like `read_released`."""
    rows = list(_released_rows(path))
    _rename(rows)
    return rows


def _rename(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Give prompts and models the paper's names; return the files' prompt names, by these.

    A name that is unknown, or would be ambiguous, is unchanged.
    """
    new: dict[str, dict[str, str]] = {}
    for field, known in (("prompt", _known_prompt), ("model", known_model)):
        meant = {name: known(name) for name in {row[field] for row in rows}}
        times = Counter(meant.values())
        new[field] = {
            name: paper if paper is not None and times[paper] == 1 else name
            for name, paper in meant.items()
        }
        for row in rows:
            row[field] = new[field][row[field]]
    return {paper: name for name, paper in sorted(new["prompt"].items())}


def _released_rows(path: Path) -> Iterator[dict[str, Any]]:
    again = f"download {path.name} again from {HOME}"
    rated = path.name == RATINGS_FILE
    seen: Counter[str] = Counter()
    for where, row in released_rows(path, again):
        if not isinstance(row, dict):
            raise InputError(f"{where}: not a JSON object; {again}")
        lacking = [name for name in _FIELDS if name not in row]
        lacking += [name for name in _RATINGS.values() if rated and name not in row]
        if lacking:
            raise InputError(f"{where}: no field {', '.join(lacking)}; {again}")
        for name in ("story", "feedback"):
            if not isinstance(row[name], str | None):
                raise InputError(f"{where}: {name} is not a text; {again}")
        if row["story"] is None:
            raise InputError(f"{where}: there is no story; {again}")
        key = "-".join(str(row[name]) for name in _FIELDS[:5])
        seen[key] += 1
        noise = row["noise"]
        method = next((m for part, m in _NOISES.items() if part in str(noise).casefold()), None)
        if method is None:
            raise InputError(
                f"{where}: unknown noise {noise!r}; it must contain one of {', '.join(_NOISES)} "
                f"(methods: {', '.join(METHODS)})"
            )
        yield {
            # A second answer to the same question is an answer too.
            "id": key if seen[key] == 1 else f"{key}#{seen[key]}",
            "story_id": str(row["story_id"]),
            "method": method,
            "prompt": str(row["prompt"]),
            "shots": shots_of(row["nshot"]),
            "model": str(row["model"]),
            "feedback": row["feedback"],
            "missing_reason": None if row["feedback"] is not None else "not_released",
            "story": row["story"],
            "original": row["gold_story"],
            "columns": _figures(row, _COLUMNS, where),
            "ratings": _figures(row, _RATINGS, where, most=1.0) if rated else {},
        }
    if not seen:
        raise InputError(f"{path}: is empty; {again}")


def _figures(
    row: Mapping[str, Any], fields: Mapping[str, str], where: str, most: float = math.inf
) -> dict[str, float | None]:
    figures: dict[str, float | None] = {}
    for name, field in fields.items():
        value = row.get(field)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            figures[name] = None
        elif isinstance(value, int | float) and 0 <= value <= most and value < math.inf:
            figures[name] = float(value)
        else:
            bound = "0 or more" if most == math.inf else f"from 0 to {most:g}"
            raise InputError(f"{where}: {field} must be a number {bound} or NaN, not {value!r}")
    return figures


def shots_of(n_shots: object) -> str:
    plain = _plain(str(n_shots))
    for name, digit in zip(SHOTS, ("0", "2"), strict=True):
        if plain in (name, digit, f"{digit}shot"):
            return name
    return str(n_shots)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _known_prompt(name: str) -> str | None:
    plain = _plain(name)
    if known := next((prompt for prompt in PROMPTS if _plain(prompt) == plain), None):
        return known
    if "sentence" in plain:
        return "one sentence"
    if "spot" in plain or "problem" in plain:
        return "spot the problem"
    if "list" in plain or "bullet" in plain:
        return "bulleted list only" if "only" in plain else "bulleted list"
    return None


def known_model(name: str) -> str | None:
    """The paper's name of a model; None if it is not in the paper."""
    plain = _plain(name.rpartition("/")[2])
    return next((model for model in MODELS if re.fullmatch(_MODELS[model], plain)), None)

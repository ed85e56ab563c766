"""Read the release of Rashkin et al. 2025, or your own feedback, into the same rows.

`generated_feedback.jsonl` has each piece of feedback with the authors' measures of it;
`human_ratings.jsonl` has those that people rated, with the mean of three raters for each
question, NaN if it was not asked. A missing figure is None here, never 0.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabula.errors import InputError
from fabula.replicate.claims import printed_table
from fabula.store import read_rows
from fabula.tasks.feedback.feedback_prompts import PROMPTS as OWN_PROMPTS
from fabula.text.feedback_pieces import check_feedback_row

PAPER = "story_feedback"
MODELS, METHODS, _SETTINGS = (
    tuple(printed_table(PAPER, table)) for table in ("Table 3", "Table 4", "Table 5")
)
PROMPTS, SHOTS = _SETTINGS[:4], _SETTINGS[4:]
COLUMNS = tuple(printed_table(PAPER, "Table 1")["GPT 4"])
"""Metrics of Tables 1 and 9, under the names of `tasks.feedback.scoring`."""
ERROR = ", standard error"
"""Suffix of a question's column of standard errors."""
QUESTIONS = tuple(q for q in printed_table(PAPER, "Table 3")["GPT 4"] if not q.endswith(ERROR))

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
_OWN_PROMPTS = {
    "full": "bulleted list",
    "list": "bulleted list only",
    "sentence": "one sentence",
    "spot": "spot the problem",
}


@dataclass(frozen=True, slots=True)
class Released:
    """Rows as `tasks.feedback.answers.read_answers` takes them, with `columns` and `ratings`."""

    feedback: tuple[dict[str, Any], ...] | None
    """None if the file is missing."""
    rated: tuple[dict[str, Any], ...] | None
    names: Mapping[str, str]
    """The prompt names in the files, by the names in the paper."""


def read_released(folder: Path) -> Released:
    """Read the released files of a folder. Raises `InputError` with file, line and remedy."""
    found = {
        name: tuple(_released_rows(folder / name))
        for name in RELEASED_FILES
        if (folder / name).is_file()
    }
    if not found:
        raise InputError(
            f"{folder}: contains neither {FEEDBACK_FILE} nor {RATINGS_FILE}; download them "
            f"from {HOME}"
        )
    names = _rename([row for some in found.values() for row in some])
    return Released(found.get(FEEDBACK_FILE), found.get(RATINGS_FILE), names)


def read_released_file(path: Path) -> list[dict[str, Any]]:
    """The rows of one of the released files. Raises `InputError` like `read_released`."""
    rows = list(_released_rows(path))
    _rename(rows)
    return rows


def _rename(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Give prompts and models the paper's names; return the files' prompt names, by these."""
    prompts = _renamed({row["prompt"] for row in rows}, _known_prompt)
    models = _renamed({row["model"] for row in rows}, known_model)
    for row in rows:
        row["prompt"], row["model"] = prompts[row["prompt"]], models[row["model"]]
    return {ours: theirs for theirs, ours in sorted(prompts.items())}


def _released_rows(path: Path) -> Iterator[dict[str, Any]]:
    rated = path.name == RATINGS_FILE
    seen: dict[str, int] = {}
    for where, given in _objects(path):
        lacking = [name for name in _FIELDS if name not in given]
        lacking += [name for name in _RATINGS.values() if rated and name not in given]
        if lacking:
            raise InputError(f"{where}: no field {', '.join(lacking)}; {_again(path)}")
        for name in ("story", "feedback"):
            if not isinstance(given[name], str | None):
                raise InputError(f"{where}: {name} is not a text; {_again(path)}")
        if given["story"] is None:
            raise InputError(f"{where}: there is no story; {_again(path)}")
        key = "-".join(str(given[name]) for name in _FIELDS[:5])
        seen[key] = seen.get(key, 0) + 1
        yield {
            # A second answer to the same question is an answer too.
            "id": key if seen[key] == 1 else f"{key}#{seen[key]}",
            "story_id": str(given["story_id"]),
            "method": _method(given["noise"], where),
            "prompt": str(given["prompt"]),
            "shots": _shots(given["nshot"]),
            "model": str(given["model"]),
            "feedback": given["feedback"],
            "missing_reason": None if given["feedback"] is not None else "not_released",
            "story": given["story"],
            "original": given["gold_story"],
            "columns": _figures(given, _COLUMNS, where),
            "ratings": _figures(given, _RATINGS, where, most=1.0) if rated else {},
        }


def _objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file and line, object); the released files contain NaN, which Python's parser accepts."""
    n_rows = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                where = f"{path}, line {number}"
                if not line.strip():
                    continue
                try:
                    given = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise InputError(f"{where}: not JSON, or truncated; {_again(path)}") from error
                if not isinstance(given, dict):
                    raise InputError(f"{where}: not a JSON object; {_again(path)}")
                n_rows += 1
                yield where, given
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if not n_rows:
        raise InputError(f"{path}: is empty; {_again(path)}")


def _again(path: Path) -> str:
    return f"download {path.name} again from {HOME}"


def _figures(
    given: Mapping[str, Any], fields: Mapping[str, str], where: str, most: float = math.inf
) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name, field in fields.items():
        value = given.get(field)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            found[name] = None
        elif isinstance(value, int | float) and 0 <= value <= most and value < math.inf:
            found[name] = float(value)
        else:
            bound = "0 or more" if most == math.inf else f"from 0 to {most:g}"
            raise InputError(f"{where}: {field} must be a number {bound} or NaN, not {value!r}")
    return found


def _method(noise: object, where: str) -> str:
    if noise is None:
        return "original"
    for part, method in _NOISES.items():
        if part in str(noise).casefold():
            return method
    raise InputError(
        f"{where}: unknown noise {noise!r}; it must contain one of {', '.join(_NOISES)} (methods: "
        f"{', '.join(METHODS)})"
    )


def _shots(given: object) -> str:
    plain = _plain(str(given))
    for name, digit in zip(SHOTS, ("0", "2"), strict=True):
        if plain in (name, digit, f"{digit}shot"):
            return name
    return str(given)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _known_prompt(name: str) -> str | None:
    plain = _plain(name)
    if plain in map(_plain, PROMPTS):
        return next(prompt for prompt in PROMPTS if _plain(prompt) == plain)
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


def _renamed(names: Collection[str], known: Callable[[str], str | None]) -> dict[str, str]:
    """Each name as in the paper; unchanged if it is unknown, or would be ambiguous."""
    found = {name: known(name) for name in names}
    meant = list(found.values())
    return {
        name: new if new is not None and meant.count(new) == 1 else name
        for name, new in found.items()
    }


def read_own(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Rows of `feedback elicit`, prompts and shots under the paper's names.

    Raises `InputError` with file and line.
    """
    found: list[dict[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    for path in paths:
        for number, row in enumerate(read_rows(path), 1):
            check_feedback_row(row, f"{path}, line {number}")
            if (row["id"], row["model"]) in seen:
                raise InputError(f"{path}, line {number}: {row['id']!r} occurs twice")
            seen.add((row["id"], row["model"]))
            prompt = _OWN_PROMPTS.get(row["prompt"], row["prompt"])
            found.append({**row, "prompt": prompt, "shots": _shots(row["shots"])})
    if not found:
        raise InputError(f"{', '.join(map(str, paths))}: no feedback found")
    return found


ONE_SENTENCE = frozenset(_OWN_PROMPTS[name] for name in OWN_PROMPTS.one_sentence)
"""The prompts that ask for one sentence, under the paper's names."""

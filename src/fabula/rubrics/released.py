"""The files that the authors of "Art or Artifice?" released, and their quirks.

`ttcw_all_tests.json` (wording), `ttcw_annotations.json` (experts), `ttcw_short_stories.json` and
`llm_judges/annotations_<judge>.jsonl`. A story's id is `<group>_<author>`, to be split at the first
`_`; a judge's answer is about `story_<story_id>_test<index>`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fabula.core.errors import InputError
from fabula.core.types import Document, Item, Rubric

EXPERTS_FILE = "ttcw_annotations.json"
STORIES_FILE = "ttcw_short_stories.json"

_JUDGE_ID = re.compile(r"story_(?P<story>.+)_test(?P<index>\d+)")
# One of the prompts has an `n` before its `Q)`, left over from a line break.
_PROMPT = re.compile(
    r"(?P<background>.*?)\s*(?P<instruction>Given the story.*?)\s*n?Q\).*", re.DOTALL
)
_MAX_BYTES = 1 << 28
_REMEDY = "is this the authors' file?"


@dataclass(frozen=True, slots=True)
class ExpertVerdict:
    """One expert's answer to one test about one story."""

    story_id: str
    expert: str
    index: int
    passed: bool
    rationale: str


def split_story_id(story_id: str) -> tuple[str, str]:
    """Split an id into group and author: `3_GPT3.5` is a story of group 3 by GPT3.5."""
    group, _, author = story_id.partition("_")
    return group, author


def published_ttcw(path: Path) -> Rubric:
    """The built-in rubric `ttcw` with the published wording of the file at `path`.

    Ids, dimensions and the aggregate are ours, so that answers to both wordings can be compared;
    the digest differs, so that they are not confused. Raises `InputError`.
    """
    from fabula.rubrics.load import load_rubric, parse_rubric, rubric_toml

    ours = load_rubric("ttcw")
    # A `full_prompt` is the background, an instruction ("Given the story ...") that says what to
    # list and how to answer, and the question after `Q)`.
    tests = {}
    for row, where in _rows(path, {"ttcw_idx", "torrance_dimension", "category", "question"}):
        prompt = _PROMPT.fullmatch(str(row.get("full_prompt", "")))
        if prompt is None:
            raise InputError(
                f"{where}: full_prompt must contain background, instruction and question, in this "
                "order"
            )
        index = _integer(row["ttcw_idx"], where)
        tests[index] = Item(
            id=f"test_{index}",
            index=index,
            title=str(row["category"]),
            question=str(row["question"]),
            dimension=str(row["torrance_dimension"]),
            background=prompt["background"],
            list_first=prompt["instruction"],
        )
    indices = {item.index for item in ours.items}
    if set(tests) != indices:
        missing = sorted(indices - set(tests)) or sorted(set(tests) - indices)
        raise InputError(f"{path}: its tests differ from those of ttcw (see {missing})")
    items = tuple(replace(tests[item.index], id=item.id) for item in ours.items)
    version, wording = f"{ours.version}-published", f"the authors', from {path.name}"
    rubric = replace(ours, version=version, wording=wording, items=items)
    return parse_rubric(rubric_toml(rubric).encode(), str(path))


def read_expert_verdicts(path: Path) -> list[ExpertVerdict]:
    """The experts' verdicts from `ttcw_annotations.json`, in the file's order."""
    verdicts = []
    for row, where in _rows(path, {"story_id", "expert_idx", "ttcw_idx", "binary_verdict"}):
        if row["binary_verdict"] not in ("Yes", "No"):
            raise InputError(f"{where}: binary_verdict is neither Yes nor No")
        story, expert = str(row["story_id"]), str(row["expert_idx"])
        index, passed = _integer(row["ttcw_idx"], where), row["binary_verdict"] == "Yes"
        why = str(row.get("explanation") or "")
        verdicts.append(ExpertVerdict(story, expert, index, passed, why))
    return verdicts


def read_released_stories(path: Path) -> list[Document]:
    """The stories of `ttcw_short_stories.json` that include their text; the others have a URL."""
    documents = []
    for row, where in _rows(path, {"story_id", "content"}):
        content = row["content"]
        if not isinstance(content, str):
            raise InputError(f"{where}: content has no text")
        if re.fullmatch(r"\s*https?://\S+\s*", content):
            continue
        story = str(row["story_id"])
        group, author = split_story_id(story)
        meta = {"group": group, "title": row.get("story_name"), "plot": row.get("plot")}
        documents.append(Document(story, content, author=author, prompt_id=group, meta=meta))
    return documents


def read_judge_answers(path: Path) -> dict[tuple[str, int], str]:
    """A released judge's answers by story and test index, from `annotations_<judge>.jsonl`."""
    answers = {}
    for row, where in _rows(path, {"id", "response"}):
        match = _JUDGE_ID.fullmatch(str(row["id"]))
        if match is None:
            raise InputError(
                f"{where}: the id {row['id']!r} does not have the form story_3_GPT4_test7"
            )
        answers[match["story"], int(match["index"])] = str(row["response"] or "")
    return answers


def _rows(path: Path, fields: set[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """The rows of a file with all these fields, each with its place."""
    for where, row in released_rows(path, _REMEDY):
        lacking = sorted(fields - row.keys()) if isinstance(row, dict) else ["fields"]
        if lacking:
            raise InputError(f"{where}: lacks {', '.join(lacking)}; {_REMEDY}")
        yield row, where


def released_rows(path: Path, remedy: str, what: str = "row") -> Iterator[tuple[str, Any]]:
    """The place and value of each row of a JSON array or of JSON lines, with NaN where released.

    `what` is a row in the places of an array. Raises `InputError`, which ends with the remedy.
    """
    is_lines = path.suffix == ".jsonl"
    try:
        if not is_lines and path.stat().st_size > _MAX_BYTES:
            raise InputError(f"{path}: larger than {_MAX_BYTES >> 20} MB; {remedy}")
        with path.open("rb") as file:
            for number, data in enumerate(file if is_lines else [file.read()], 1):
                where = f"{path}, line {number}" if is_lines else str(path)
                if is_lines and not data.strip():
                    continue
                try:
                    value = json.loads(data)
                except (ValueError, RecursionError) as error:
                    kind = "JSON" if is_lines else "a JSON file"
                    raise InputError(f"{where}: not {kind} ({error}); {remedy}") from error
                if is_lines:
                    yield where, value
                elif isinstance(value, list):
                    yield from ((f"{path}, {what} {k}", row) for k, row in enumerate(value, 1))
                else:
                    raise InputError(f"{path}: not a list of {what}s; {remedy}")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def _integer(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{where}: {value!r} is not a whole number")
    return value

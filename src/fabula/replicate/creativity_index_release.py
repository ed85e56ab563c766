"""Files published by the authors of "AI as Humanity's Salieri", and the output of their search.

Their repository (github.com/GXimingLu/creativity_index) has no licence, so Fabula reads the user's
copy and includes nothing of it. `data/<kind>/<writer>_<kind>.json` is a list of texts with their
prompts; `outputs/**/<writer>_<kind>.json`, written when a user runs their programs, is the same
list with the matched spans.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from fabula.errors import InputError
from fabula.measures.uniqueness import Levels
from fabula.reference.layout import text_digest
from fabula.text.sketch import sketch_of
from fabula.types import Document, Signature

KINDS = ("book", "poem", "speech")
_PEOPLE = "Human"
_ASKED = re.compile(r"^.*?starting with the following (?:prompt|line|sentence): ", re.DOTALL)
_CLOSING = re.compile(r"\s*(?:\[/INST\]|<\|assistant\|>)\s*$")
_MAX_ERROR = 1e-6
_WHOLE = "whole_digest"
"""The field that contains a text as it was before truncation."""


def release_folder(folder: Path) -> Path:
    """The folder of the kinds: `folder` itself, or its `data`."""
    inner = folder / "data"
    return inner if inner.is_dir() and any((inner / kind).is_dir() for kind in KINDS) else folder


def read_release(folder: Path) -> dict[str, list[Document]]:
    """Their texts by kind, as far as present.

    Each has its `label`, its `model` (for people `human`) and its prompt, the opening that all
    writers of the kind share, without any text around it. The prompt at the beginning of a text is
    marked (`shared_prefix_chars`): people's texts begin with it, those of models often do.

    Raises `InputError` if there are none, a file has another format, or a kind has no texts by
    people.
    """
    found: dict[str, list[Document]] = {}
    for kind in KINDS:
        files = _files(release_folder(folder), kind)
        if not files:
            continue
        if _PEOPLE not in files:
            raise InputError(f"{release_folder(folder) / kind}: lacks {_PEOPLE}_{kind}.json")
        found[kind] = [
            _document(row, kind, writer, place)
            for writer, path in files.items()
            for place, row in enumerate(_rows(path))
        ]
    if not found:
        raise InputError(
            f"{release_folder(folder)}: has no book/{_PEOPLE}_book.json or other texts of the "
            f"authors; their repository, github.com/GXimingLu/creativity_index, says where they are"
        )
    return found


def _files(data: Path, kind: str) -> dict[str, Path]:
    """By writer, people first."""
    end = f"_{kind}.json"
    paths = sorted((data / kind).glob(f"*{end}"), key=lambda path: (_PEOPLE not in path.name, path))
    return {path.name.removesuffix(end): path for path in paths}


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        rows = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise InputError(f"{path}: not a JSON file ({error})") from error
    if not isinstance(rows, list):
        raise InputError(f"{path}: not a list of texts")
    for number, row in enumerate(rows, 1):
        is_row = isinstance(row, dict)
        if not is_row or not all(isinstance(row.get(key), str) for key in ("prompt", "text")):
            raise InputError(f"{path}, text {number}: lacks `prompt` or `text`")
    return rows


def _document(row: Mapping[str, Any], kind: str, writer: str, place: int) -> Document:
    # The required opening of a text: without the request, and without chat markup.
    prompt, text = " ".join(_CLOSING.sub("", _ASKED.sub("", row["prompt"])).split()), row["text"]
    words = r"\s+".join(map(re.escape, prompt.split()))
    opens = re.match(rf"\W*{words}", text, re.IGNORECASE)
    # A text that is nothing but its prompt is kept.
    n_shared = opens.end() if opens is not None and text[opens.end() :].strip() else 0
    is_human = writer == _PEOPLE
    return Document(
        f"{kind}-{writer}-{place:03}",
        text,
        prompt_id=hashlib.sha256(prompt.casefold().encode()).hexdigest()[:12],
        meta={
            "label": "human" if is_human else "machine",
            "model": "human" if is_human else writer,
            "shared_prefix_chars": n_shared,
            _WHOLE: text_digest(text),
        },
    )


def read_outputs(
    folder: Path, texts: Mapping[str, Sequence[Document]], levels: Levels
) -> Iterator[tuple[str, Literal["verbatim", "near"], list[dict[str, Any]]]]:
    """Their search results, as rows of scores: (kind, match, rows) for each kind that has files.

    L-uniqueness follows from the spans, which are maximal: a word is unique at L if it lies in none
    of L tokens or more. The number of tokens follows from their `coverage`. Texts that were
    truncated or omitted there are not in these rows; others have the clusters that `texts` have.
    Raises `InputError` for a file in another format, and for a kind without texts of people or of
    machines.
    """
    known = {
        (kind, document.meta["model"], str(document.meta[_WHOLE])): document
        for kind, some in texts.items()
        for document in some
    }
    for kind in KINDS:
        every = sorted((folder / "outputs").glob(f"**/*_{kind}.json"))
        for match in ("verbatim", "near"):
            paths = [path for path in every if ("semantic" in path.parts) == (match == "near")]
            if not paths:
                continue
            digest = hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]
            signature = Signature.of(
                "originality", match=match, L=str(levels), tok="theirs", ref=f"theirs@{digest}"
            )
            rows = [
                _output_row(row, known[key], levels, str(signature), f"{path}, text {number}")
                for path in paths
                for number, row in enumerate(_rows(path), 1)
                if (key := _key(row, kind, path)) in known
            ]
            if len({row["label"] for row in rows}) == 1:
                raise InputError(
                    f"{paths[0].parent}: contains only the {kind} files of {rows[0]['label']} "
                    "texts, but people's are compared with machines'; add the others, or move "
                    "these away"
                )
            if rows:
                yield kind, match, rows


def _key(row: Mapping[str, Any], kind: str, path: Path) -> tuple[str, str, str]:
    writer = path.name.removesuffix(f"_{kind}.json")
    return kind, "human" if writer == _PEOPLE else writer, text_digest(row["text"])


def _output_row(
    row: Mapping[str, Any], document: Document, levels: Levels, signature: str, where: str
) -> dict[str, Any]:
    try:
        spans = [(int(s["start_index"]), int(s["end_index"])) for s in row["matched_spans"]]
        coverage = float(row["coverage"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where}: lacks `matched_spans` or `coverage`") from error
    n_covered = _n_covered(spans, 1)
    n_tokens = round(n_covered / coverage) if coverage > 0 else 0
    last = max((end for _, end in spans), default=0)
    if last > n_tokens or (n_tokens and abs(n_covered / n_tokens - coverage) > _MAX_ERROR):
        raise InputError(f"{where}: a coverage of {coverage:g} does not match its spans")
    uniqueness = {
        level: 1 - _n_covered(spans, level) / n_tokens if n_tokens else 1.0 for level in levels
    }
    return {
        "id": document.id,
        "text_digest": text_digest(document.text),
        "uniqueness": {str(level): value for level, value in uniqueness.items()},
        "creativity_index": math.fsum(uniqueness.values()),
        "in_reference": None,
        "missing_reason": None,
        "signature": signature,
        "sketch": sketch_of(document.text).to_row(),
        "prompt_id": document.prompt_id,
        **document.meta,
    }


def _n_covered(spans: Sequence[tuple[int, int]], least: int) -> int:
    """How many tokens lie in spans of `least` or more."""
    covered: set[int] = set()
    for start, end in spans:
        if end - start >= least:
            covered.update(range(start, end))
    return len(covered)

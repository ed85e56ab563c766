"""Files published by the authors of "AI as Humanity's Salieri", and the output of their search.

Their repository (github.com/GXimingLu/creativity_index) has no licence, so Fabula reads the user's
copy and includes nothing of it. `data/<kind>/<writer>_<kind>.json` is a list of texts with their
prompts; `outputs/**/<writer>_<kind>.json`, written when a user runs their programs, is the same
list with the matched spans.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from fabula.core.errors import InputError
from fabula.core.store import text_digest
from fabula.core.types import Document, Signature
from fabula.novelty.measure import Levels
from fabula.rubrics.released import released_rows
from fabula.text.clusters import sketch_of

_HOME = "github.com/GXimingLu/creativity_index"
KINDS = ("book", "poem", "speech")
_PEOPLE = "Human"
_ASKED = re.compile(r"^.*?starting with the following (?:prompt|line|sentence): ", re.DOTALL)
_CLOSING = re.compile(r"\s*(?:\[/INST\]|<\|assistant\|>)\s*$")
_MAX_ERROR = 1e-6
_WHOLE = "whole_digest"
"""The field that contains a text as it was before truncation."""


def read_release(folder: Path) -> dict[str, list[Document]]:
    """Their texts by kind, as far as present.

    Each has its `label`, its `model` (for people `human`) and its prompt, the opening that all
    writers of the kind share, without any text around it. The prompt at the beginning of a text is
    marked (`shared_prefix_chars`): people's texts begin with it, those of models often do.

    Raises `InputError` if there are none, a format is another, or a kind has no texts by people.
    """
    data = folder / "data"
    if not any((data / kind).is_dir() for kind in KINDS):
        data = folder
    texts: dict[str, list[Document]] = {}
    for kind in KINDS:
        end = f"_{kind}.json"
        paths = {p.name.removesuffix(end): p for p in sorted((data / kind).glob(f"*{end}"))}
        if paths and _PEOPLE not in paths:
            raise InputError(f"{data / kind}: lacks {_PEOPLE}_{kind}.json")
        if paths:
            texts[kind] = []
        # People first.
        for writer in sorted(paths, key=lambda writer: _PEOPLE not in writer):
            for place, (_, row) in enumerate(_rows(paths[writer])):
                # The required opening of a text: without the request, and without chat markup.
                prompt = " ".join(_CLOSING.sub("", _ASKED.sub("", row["prompt"])).split())
                text, words = row["text"], r"\s+".join(map(re.escape, prompt.split()))
                opens = re.match(rf"\W*{words}", text, re.IGNORECASE)
                # A text that is nothing but its prompt is kept.
                n_shared = opens.end() if opens is not None and text[opens.end() :].strip() else 0
                meta = {
                    "label": "human" if writer == _PEOPLE else "machine",
                    "model": _model(writer),
                    "shared_prefix_chars": n_shared,
                    _WHOLE: text_digest(text),
                }
                digest = hashlib.sha256(prompt.casefold().encode()).hexdigest()[:12]
                id_ = f"{kind}-{writer}-{place:03}"
                texts[kind].append(Document(id_, text, prompt_id=digest, meta=meta))
    if not texts:
        raise InputError(
            f"{data}: has no book/{_PEOPLE}_book.json or other texts of the authors; their "
            f"repository, {_HOME}, says where they are"
        )
    return texts


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for where, row in released_rows(path, f"get it again from {_HOME}", "text"):
        is_row = isinstance(row, dict)
        if not is_row or not all(isinstance(row.get(key), str) for key in ("prompt", "text")):
            raise InputError(f"{where}: lacks `prompt` or `text`")
        yield where, row


def _model(writer: str) -> str:
    return "human" if writer == _PEOPLE else writer


def read_outputs(
    folder: Path, texts: Mapping[str, Sequence[Document]], levels: Levels
) -> Iterator[tuple[str, Literal["verbatim", "near"], list[dict[str, Any]]]]:
    """Their search results, as rows of scores: (kind, match, rows) for each kind that has files.

    L-uniqueness follows from the spans, which are maximal: a word is unique at L if it lies in none
    of L tokens or more. The number of tokens follows from their `coverage`. Texts that were
    truncated or omitted there are not in these rows; others have the clusters that `texts` have.
    Raises `InputError` for another format, and for a kind without texts of people or machines.
    """
    of_kinds = ((kind, document) for kind, some in texts.items() for document in some)
    known = {(kind, d.meta["model"], str(d.meta[_WHOLE])): d for kind, d in of_kinds}
    for kind in KINDS:
        every = sorted((folder / "outputs").glob(f"**/*_{kind}.json"))
        for match in ("verbatim", "near"):
            paths = [path for path in every if ("semantic" in path.parts) == (match == "near")]
            if not paths:
                continue
            digest = hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]
            parts = {"match": match, "L": str(levels), "tok": "theirs", "ref": f"theirs@{digest}"}
            signature = Signature.of("originality", **parts)
            rows = [
                _output_row(row, known[key], levels, str(signature), where)
                for path in paths
                for model in [_model(path.name.removesuffix(f"_{kind}.json"))]
                for where, row in _rows(path)
                if (key := (kind, model, text_digest(row["text"]))) in known
            ]
            if len({row["label"] for row in rows}) == 1:
                raise InputError(
                    f"{paths[0].parent}: contains only the {kind} files of {rows[0]['label']} "
                    "texts, but people's are compared with machines'; add the others, or move "
                    "these away"
                )
            if rows:
                yield kind, match, rows


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
    uniqueness = {str(n): 1 - _n_covered(spans, n) / n_tokens if n_tokens else 1.0 for n in levels}
    return {
        "id": document.id,
        "text_digest": text_digest(document.text),
        "uniqueness": uniqueness,
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

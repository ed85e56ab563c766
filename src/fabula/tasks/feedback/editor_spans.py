"""Compare feedback with what professional editors changed in the same texts.

Chakrabarty, Laban and Wu (2024), *Can AI writing be salvaged?*: professional writers edited
paragraphs by models, and each edit names the words that it replaces. Here those are compared, in
characters, with the words that feedback quotes: *precision*, the share of these that an editor
changed; *recall*, the share of what the editor changed that is quoted; *overlap*, what both marked
as a share of what either did. Each answer is compared with each editor of its text, and so is each
editor with each other, which is the ceiling: no feedback can be expected to agree with an editor
more than another editor does. *Chance* is the expected value for spans of the same lengths as those
of the answer, each placed at random in the text.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.stats.reliability import bootstrap_interval
from fabula.tasks.feedback.answers import why_missing
from fabula.tasks.feedback.fault_matches import PointedStory, Span, merged, points_of
from fabula.tasks.feedback.feedback_prompts import without_perfect
from fabula.types import Estimate

__all__ = ["EditScore", "EditedTexts", "read_edits", "score_edits"]

_EDITORS = "editors, by each other"
MEASURES = ("precision", "recall", "overlap")


@dataclass(frozen=True, slots=True)
class EditedTexts:
    """What editors changed: by text and editor, the spans, half-open in characters."""

    spans: Mapping[str, Mapping[str, list[Span]]]
    n_edits: int
    n_unplaced: int
    """Edits whose words do not occur in their text, or that replace nothing."""
    digest: str
    """Digest of the files."""


@dataclass(frozen=True, slots=True)
class EditScore:
    """Agreement of the spans that `who` marks with the editors' changes."""

    who: str
    n: int
    n_texts: int
    n_pointless: int
    """Answers that quote nothing from their text: they have a recall of 0 and no precision."""
    missing: Mapping[str, int]
    values: Mapping[str, Estimate]
    """Estimates by measure, and by `measure_chance`."""


def read_edits(paths: Sequence[Path]) -> EditedTexts:
    """Read files in the released format of LAMP: rows with `id`, `preedit`, `fine_grained_edits`.

    The editor is the part of the id before the first `_` (W3_reannotation_1). Raises `InputError`
    with the file and row.
    """
    spans: dict[str, dict[str, list[Span]]] = defaultdict(dict)
    n_edits = n_unplaced = 0
    for path in paths:
        for number, row in enumerate(_rows(path), 1):
            where = f"{path}, row {number}"
            text, edits = row.get("preedit"), row.get("fine_grained_edits")
            if not (isinstance(text, str) and isinstance(edits, list)):
                raise InputError(
                    f"{where}: needs a text 'preedit' and a list 'fine_grained_edits'; use "
                    "editors' spans in the format of the LAMP release"
                )
            editor = str(row.get("id", path.stem)).partition("_")[0]
            if editor in spans[_key(text)]:
                raise InputError(f"{where}: {editor} already edited this text earlier in the file")
            found: list[Span] = []
            for edit in edits:
                words = edit.get("originalText") if isinstance(edit, dict) else None
                if not isinstance(words, str):
                    raise InputError(f"{where}: an edit without a text 'originalText'")
                # Edits are usually listed in the order of the text.
                at = text.find(words, found[-1][1] if found else 0) if words.strip() else -1
                at = text.find(words) if at < 0 and words.strip() else at
                if at < 0:
                    n_unplaced += 1
                else:
                    found.append((at, at + len(words)))
            n_edits += len(edits)
            shift = len(text) - len(text.lstrip())
            spans[_key(text)][editor] = merged((max(0, a - shift), b - shift) for a, b in found)
    if not spans:
        raise InputError(f"{', '.join(map(str, paths))}: no edited texts found")
    content = b"".join(path.read_bytes() for path in paths)
    digest = hashlib.sha256(content).hexdigest()[:8]
    return EditedTexts(spans, n_edits, n_unplaced, digest)


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        content = path.read_text(encoding="utf-8")
        rows = (
            [json.loads(line) for line in content.splitlines() if line.strip()]
            if path.suffix == ".jsonl"
            else json.loads(content)
        )
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error})") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: not a list of edited texts")
    return rows


def _key(text: str) -> str:
    return text.strip()


@dataclass(slots=True)
class _Side:
    """What one rater marks, compared with editors."""

    n: int = 0
    n_pointless: int = 0
    missing: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    texts: list[str] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def compare(self, text: str, marked: Sequence[Span], changed: Sequence[Span]) -> None:
        self.texts.append(text)
        seen = _agreement(_mask(marked, len(text)), _mask(changed, len(text)))
        chance = _agreement(_covered(marked, len(text)), _mask(changed, len(text)))
        for name, a, b in zip(MEASURES, seen, chance, strict=True):
            self.values[name].append(a)
            self.values[f"{name}_chance"].append(b)


def score_edits(
    rows: Sequence[Mapping[str, Any]], edited: EditedTexts, *, seed: int = 0, signature: str = ""
) -> Iterator[EditScore]:
    """Scores of each model's feedback, of each editor against the others, and of all editors.

    rows: those of `feedback elicit`; feedback on other texts is ignored. Raises `InputError` if
    none is about an edited text.
    """
    models: dict[str, _Side] = defaultdict(_Side)
    stories: dict[str, PointedStory] = {}
    for row in rows:
        text = _key(str(row["story"]))
        if text not in edited.spans:
            continue
        side = models[str(row["model"])]
        reason = why_missing(row)
        if reason is not None:
            side.missing[reason] += 1
            continue
        if text not in stories:
            stories[text] = PointedStory.of(text, [])
        said, _ = without_perfect(str(row["feedback"]))
        marked = merged(span for point in points_of(said, stories[text]) for span in point.quoted)
        side.n += 1
        side.n_pointless += not marked
        for changed in filter(None, edited.spans[text].values()):
            side.compare(text, marked, changed)
    if not models:
        raise InputError("no answer is about a text edited in `edits`")
    for name, side in models.items():
        yield _score(name, side, seed, signature)
    editors: dict[str, _Side] = defaultdict(_Side)
    for text, by_editor in edited.spans.items():
        for (one, marked), (other, changed) in permutations(by_editor.items(), 2):
            if marked and changed:
                for side in (editors[f"editor {one}, by {other}"], editors[_EDITORS]):
                    side.n += 1
                    side.compare(text, marked, changed)
    for name in sorted(editors, key=lambda name: (name == _EDITORS, name)):
        yield _score(name, editors[name], seed, signature)


def _mask(spans: Sequence[Span], n: int) -> NDArray[np.float64]:
    """1 inside a span, 0 outside: float64 (n,)."""
    mask = np.zeros(n)
    for start, end in spans:
        mask[start:end] = 1
    return mask


def _covered(spans: Sequence[Span], n: int) -> NDArray[np.float64]:
    """The probability that such spans, each placed at random, cover a character: (n,)."""
    free = np.ones(n)
    places = np.arange(n)
    for start, end in spans:
        length = end - start
        n_starts = n - length + 1
        covering = np.minimum.reduce(
            [places + 1, n - places, np.full(n, length), np.full(n, n_starts)]
        )
        free *= 1 - covering / n_starts
    return 1 - free


def _agreement(
    marked: NDArray[np.float64], changed: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Precision, recall and overlap; precision is NaN if nothing is marked."""
    both, n_marked, n_changed = (float(one.sum()) for one in (marked * changed, marked, changed))
    return (
        both / n_marked if n_marked else math.nan,
        both / n_changed,
        both / (n_marked + n_changed - both),
    )


def _score(who: str, side: _Side, seed: int, signature: str) -> EditScore:
    values = {}
    for name in (*MEASURES, *(f"{name}_chance" for name in MEASURES)):
        column = np.array(side.values[name], np.float64)
        known = ~np.isnan(column)
        sums = np.column_stack([np.where(known, column, 0.0), known])
        n = int(known.sum())
        values[name] = bootstrap_interval(
            float(column[known].mean()) if n else None,
            sums,
            lambda sums: sums[..., 0] / sums[..., 1],
            side.texts,
            seed=seed,
            method="mean over answers and editors, percentile bootstrap over texts",
            signature=signature,
            n=n,
        )
    n_texts = len(set(side.texts))
    return EditScore(who, side.n, n_texts, side.n_pointless, dict(side.missing), values)

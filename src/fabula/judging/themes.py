"""Raters' reasons, grouped into themes: why stories pass an item, and why they fail it.

Chakrabarty et al. 2024, section 7.2 and Tables 8 and 9: reasons are clustered, the clusters are
named by a model, and people revise them. Here reasons are split into sentences, grouped by sentence
embeddings, named by a model if there is one (else by their words), and written to a file whose
labels a person edits; a later run reuses them.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fabula.core.errors import InputError
from fabula.core.packages import scipy
from fabula.core.store import read_measurements, read_rows
from fabula.core.types import Rubric
from fabula.models.encoder import Encoder
from fabula.models.model_spec import ModelOptions, open_model
from fabula.models.texts import one_line
from fabula.rubrics.load import load_rubric
from fabula.rubrics.released import read_expert_verdicts
from fabula.text import TextSettings

_STOP = frozenset(
    files("fabula.judging").joinpath("reason_stop_words.txt").read_text(encoding="utf-8").split()
)
_MIN_CHARS = 3
_PHRASE = 3
"""How many times as good as a word a phrase is that as many texts say."""


def content_words(text: str) -> set[str]:
    """The content words of a text, truncated to their first five letters."""
    words = TextSettings().words(text)
    return {word[:5] for word in words if len(word) >= _MIN_CHARS and word not in _STOP}


def names_by_words(groups: Sequence[Sequence[str]], n_phrases: int = 2) -> list[str]:
    """For each group, one or two phrases or words that many of its texts say and few of others.

    A phrase is two or three words in a row, the first and last of which are content words.
    """
    inside = [Counter[str]() for _ in groups]
    for k, text in [(k, text) for k, group in enumerate(groups) for text in group]:
        words = TextSettings().words(text)
        ends = [len(word) >= _MIN_CHARS and word not in _STOP and "'" not in word for word in words]
        spans = ((at, at + n) for n in (1, 2, 3) for at in range(len(words) - n + 1))
        inside[k].update({" ".join(words[a:b]) for a, b in spans if ends[a] and ends[b - 1]})
    everywhere: Counter[str] = Counter()
    for counts in inside:
        everywhere.update(counts)
    names = []
    for counts in inside:
        weights = {
            phrase: n**2 / everywhere[phrase] * (_PHRASE if " " in phrase and n > 1 else 1)
            for phrase, n in counts.items()
        }
        chosen: list[str] = []
        for _, phrase in sorted((-weight, phrase) for phrase, weight in weights.items()):
            if not content_words(phrase) & content_words(" ".join(chosen)):
                chosen.append(phrase)
            if len(chosen) == n_phrases:
                break
        names.append(", ".join(chosen).capitalize() or "Unnamed")
    return names


Side = Literal["passes", "fails"]
_SIDES: tuple[Side, ...] = ("passes", "fails")
_SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)]*\s+(?=[\"'“‘(A-Z])")
_MIN_WORDS = 4
_QUOTATION = re.compile(r"[\"“][^\"“”]*[\"”]")
_NAME = re.compile(r"(?<=[a-z,;:] )(?!I\b)[A-Z][\w’'-]*(?: (?:the )?[A-Z][\w’'-]*)*")


@dataclass(frozen=True, slots=True)
class Rationale:
    """Why a rater passed or failed a document on an item."""

    document_id: str
    item: str
    rater: str
    passed: bool
    text: str


@dataclass(frozen=True, slots=True)
class Theme:
    """Reasons of one kind. `reasons` has the most typical first; each is a sentence by a rater."""

    item: str
    side: Side
    label: str
    """For people to edit."""
    drafted: str
    """The label before it was edited."""
    drafted_by: str
    """`words`, or the model that gave the name."""
    n_rationales: int
    """The number of rationales with a sentence of this theme."""
    n_of: int
    """The total number of rationales of this item and side."""
    reasons: tuple[Mapping[str, str], ...]


def read_rationales(sources: Sequence[Path]) -> tuple[Rubric, list[Rationale]]:
    """The rubric, and the reasons given on its yes-no items. Raises `InputError`."""
    rubric = load_rubric("ttcw")
    for source in sources:
        if (source / "rubric.toml").exists():
            rubric = load_rubric(source / "rubric.toml")
    # A mark or a choice is neither a pass nor a fail.
    yes_no = {item.id for item in rubric.items if item.scale.is_test}
    ids = {item.index: item.id for item in rubric.items}
    reasons: list[Rationale] = []
    for source in sources:
        if source.suffix == ".json":
            reasons += [
                Rationale(v.story_id, ids[v.index], v.expert, v.passed, v.rationale)
                for v in read_expert_verdicts(source)
                if v.rationale and v.index in ids
            ]
            continue
        file = source / "measurements.jsonl" if source.is_dir() else source
        reasons += [
            Rationale(each.document_id, each.item, each.rater, each.value > 0.5, each.rationale)
            for each in read_measurements(file)
            if each.rationale
            and isinstance(each.value, float)
            and each.value != 0.5
            and each.item in yes_no
        ]
    if not reasons:
        raise InputError(f"{', '.join(map(str, sources))}: contain no reasons")
    return rubric, reasons


def find_themes(
    rationales: Iterable[Rationale],
    rubric: Rubric,
    *,
    n_themes: int = 4,
    model: str | None = None,
    options: ModelOptions | None = None,
    agree: Callable[[Sequence[str]], None] = lambda _: None,
    meter: Callable[[int], None] = lambda _: None,
) -> list[Theme]:
    """Find up to `n_themes` themes for each item and side, in the rubric's order.

    `agree` receives the prompts before the first one is sent, and raises to stop.
    """
    encoder = Encoder()
    sides: dict[tuple[str, Side], list[Rationale]] = defaultdict(list)
    for rationale in rationales:
        sides[rationale.item, "passes" if rationale.passed else "fails"].append(rationale)
    drafted: list[Theme] = []
    words = TextSettings()
    for item, side in [(i.id, side) for i in rubric.items for side in _SIDES]:
        of_side = sides.get((item, side), [])
        reasons = [
            {"document": rationale.document_id, "rater": rationale.rater, "text": sentence}
            for rationale in of_side
            for piece in _SENTENCE.split(rationale.text)
            # With content; a rationale without full stops is one sentence.
            if len(words.raw_words(sentence := " ".join(piece.split()))) >= _MIN_WORDS
        ]
        # Without names and quotations, what is said of a story and not which one it is: otherwise
        # the groups would correspond to stories.
        general = []
        for reason in reasons:
            bare = _NAME.sub("somebody", _QUOTATION.sub("", reason["text"]))
            general.append(" ".join(bare.split()) or reason["text"])
        groups: list[list[int]] = []
        if reasons:
            vectors = encoder.encode(general)
            groups = [central(vectors, ids) for ids in group_vectors(vectors, n_groups=n_themes)]
        labels = names_by_words([[general[place] for place in group] for group in groups])
        for group, label in zip(groups, labels, strict=True):
            some = tuple(reasons[place] for place in group)
            n, n_of = len({(entry["document"], entry["rater"]) for entry in some}), len(of_side)
            drafted.append(Theme(item, side, label, label, "words", n, n_of, some))
        meter(len(of_side))
    if model is None:
        return drafted
    questions = {item.id: item.question for item in rubric.items}
    prompts = [naming_prompt(theme, questions[theme.item]) for theme in drafted]
    agree(prompts)

    async def named() -> list[Theme]:
        async with open_model(model, options) as opened:
            lines = [await one_line(opened, prompt) for prompt in prompts]
            return [
                replace(theme, label=line, drafted=line, drafted_by=opened.name) if line else theme
                for theme, line in zip(drafted, lines, strict=True)
            ]

    return asyncio.run(named())


def naming_prompt(theme: Theme, question: str) -> str:
    """The prompt that asks a model what the reasons of a theme have in common."""
    listed = "\n".join(f"- {reason['text']}" for reason in theme.reasons[:10])
    return (
        f"Readers were asked about a story: {question}\nThese are reasons why "
        f"it {'does' if theme.side == 'passes' else 'does not'}:\n\n{listed}\n\nSay in at "
        f"most twelve words what these reasons have in common. Write only that."
    )


def keep_labels(themes: Sequence[Theme], edited: Path) -> tuple[list[Theme], list[dict[str, Any]]]:
    """The themes with the labels that a person gave in an earlier file.

    Also returns the file's rows on items and sides that this run lacks. A theme is matched by its
    most typical reason. Raises `InputError` if an edited label would be lost.
    """
    labels: dict[tuple[str, str, str], str] = {}
    foreign: list[dict[str, Any]] = []
    present = {(theme.item, theme.side) for theme in themes}
    for row in read_rows(edited):
        try:
            key = str(row["item"]), str(row["side"]), str(row["reasons"][0]["text"])
            if key[:2] not in present:
                foreign.append(row)
            elif row["label"] != row["drafted"]:
                labels[key] = str(row["label"])
        except (KeyError, IndexError, TypeError) as error:
            raise InputError(f"{edited}: not a file of themes") from error
    labelled = []
    for theme in themes:
        label = labels.pop((theme.item, theme.side, theme.reasons[0]["text"]), theme.label)
        labelled.append(replace(theme, label=label))
    if labels:
        raise InputError(
            f"{edited}: the edited label {next(iter(labels.values()))!r} does not belong to any "
            "theme of this run and would be lost; choose another `out`"
        )
    return labelled, foreign


def group_vectors(
    vectors: NDArray[np.float32], *, n_groups: int | None = None, distance: float = 0.55
) -> list[list[int]]:
    """Agglomerative clustering: the indices of each group's members, the largest group first.

    vectors: float32, shape (n, d), of length 1. `n_groups` of similar spread (Ward's criterion);
    without a number, groups that are farther apart than `distance` (mean 1 - cosine). The same
    vectors always give the same groups.
    """
    hierarchy = scipy("cluster.hierarchy")
    fcluster, linkage = hierarchy.fcluster, hierarchy.linkage
    n = len(vectors)
    if n < 2:
        return [[place] for place in range(n)]
    points = np.asarray(vectors, np.float64)
    if n_groups is not None:
        labels = fcluster(linkage(points, "ward"), min(n_groups, n), criterion="maxclust")
    else:
        labels = fcluster(linkage(points, "average", "cosine"), distance, criterion="distance")
    groups: dict[int, list[int]] = {}
    for place, label in enumerate(labels):
        groups.setdefault(int(label), []).append(place)
    return sorted(groups.values(), key=lambda members: (-len(members), members[0]))


def central(vectors: NDArray[np.float32], members: list[int]) -> list[int]:
    """The members, the one closest to the group's mean first."""
    chosen = np.asarray(vectors, np.float64)[members]
    closeness = chosen @ chosen.mean(axis=0)
    return [members[k] for k in np.argsort(-closeness, kind="stable")]

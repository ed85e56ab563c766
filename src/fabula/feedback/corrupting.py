"""Corrupt stories in known ways.

Rashkin et al. 2025, section 4: two consecutive sentences are swapped (swap), a sentence is deleted
(delete), or the story is translated and back again ten times (backtranslate); and the story as it
is (original), for comparison. Each corrupted story has a record of the exact changes. Beyond the
paper, and only on request: a character is renamed midway (`names`), or a model writes a fault of
fact, thread or motive (`written_faults`). Swaps and deletions keep the two marks of every quotation
together if the story has such a place; if not, `cuts_quotation` says so.

A story that is too short for a method, or that the method leaves unchanged, is never passed off as
corrupted: it is left out, with the reason.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from fabula.core import __version__
from fabula.core.resume import KeptRows, RowKind
from fabula.core.types import Document, Signature
from fabula.feedback.characters import RULES, plant_rename
from fabula.feedback.translating import Rounds, Translator, back_translate, vocabulary_name
from fabula.feedback.written_faults import (
    WRITABLE,
    Edit,
    Fault,
    FaultWriter,
    apply_edits,
    edits_between,
)
from fabula.text import check_documents
from fabula.text.pipeline import pipeline_parts
from fabula.text.reading import Reading
from fabula.text.sentences import language_gate, not_english
from fabula.text.speech import READER
from fabula.text.words import ORDINALS, UNITS

CORRUPTED = RowKind("the story", ("id",), ("method", "original", "signature"))

Method = Literal["original", "backtranslate", "swap", "delete", "name", "fact", "thread", "motive"]
Span = tuple[int, int]
_Made = tuple[str, dict[str, Any]] | str
"""A changed story and the record of it, or why there is none."""
_BATCH = 8
METHODS: tuple[Method, ...] = ("original", "backtranslate", "swap", "delete")
"""The methods of the paper."""
ALL_METHODS: tuple[Method, ...] = (*METHODS, "name", "fact", "thread", "motive")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A story that a method could not corrupt."""

    story_id: str
    method: str
    reason: str


@dataclass(frozen=True, slots=True)
class CorruptPlan:
    """How stories are corrupted."""

    methods: tuple[Method, ...] = METHODS
    rounds: int = 10
    seed: int = 0
    balanced: bool = False
    """Keep only stories that every method can corrupt."""
    per_set: int | None = None
    """Maximum number of these per set, if they are balanced."""
    by: str = "source"
    """The field that names the set."""


def story_rng(seed: int, story_id: str, method: str) -> np.random.Generator:
    """A random stream per story and method, independent of what else is corrupted."""
    digest = hashlib.sha256(f"{method}\0{story_id}".encode(errors="replace")).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "big")])


def sample_sets(
    stories: Sequence[Document], field: str, n: int | None, seed: int
) -> list[Document]:
    """At most `n` stories per set (a field's value), drawn at random, in their order."""
    stories = list(check_documents(stories))
    sets: dict[str, list[int]] = {}
    for k, story in enumerate(stories):
        sets.setdefault(_set_of(story, field), []).append(k)
    chosen: list[int] = []
    for name, members in sets.items():
        if n is not None and len(members) > n:
            rng = story_rng(seed, name, "sample")
            members = [members[k] for k in rng.choice(len(members), size=n, replace=False)]
        chosen += members
    return [stories[k] for k in sorted(chosen)]


def _set_of(story: Document, field: str) -> str:
    return str(story.meta.get(field, ""))


def without_repeats(stories: Sequence[Document]) -> tuple[list[Document], list[str]]:
    """The stories without repeated texts, and the ids of the repeats."""
    seen: set[str] = set()
    kept, repeated = [], []
    for story in check_documents(stories):
        if story.text in seen:
            repeated.append(story.id)
        else:
            seen.add(story.text)
            kept.append(story)
    return kept, repeated


def swap_sentences(
    text: str, spans: Sequence[Span], rng: np.random.Generator, quotations: Sequence[Span] = ()
) -> list[Edit] | None:
    """Swap two consecutive sentences; None if no two differ.

    Where possible, `quotations`, half-open in characters, stay whole, no sentences of one speech
    are swapped, and no tag ("said the fox") leaves its speech.
    """
    pairs = [k for k, (a, b) in enumerate(pairwise(spans)) if text[slice(*a)] != text[slice(*b)]]
    if not pairs:
        return None
    whole = [k for k in pairs if not cuts_quotation(spans[k : k + 2], quotations)]
    # Two sentences of one speech may be in either order; a tag stays with its speech, and is parsed
    # as a sentence: `said the fox.`
    kept = [
        k
        for k in whole
        if not any(a < spans[k][0] and spans[k + 1][1] < b for a, b in quotations)
        and not any(text[a:b].lstrip("—–- ")[:1].islower() for a, b in spans[k : k + 3])
    ]
    places = kept or whole or pairs
    k = places[int(rng.integers(len(places)))]
    first, second = spans[k], spans[k + 1]
    return [Edit(*first, text[slice(*second)]), Edit(*second, text[slice(*first)])]


def delete_sentence(
    text: str, spans: Sequence[Span], rng: np.random.Generator, quotations: Sequence[Span] = ()
) -> list[Edit] | None:
    """Delete a sentence and the space after it, or before the last one; None if it is the only one.

    `quotations`, half-open in characters, stay whole where possible.
    """
    if len(spans) < 2:
        return None
    whole = [k for k in range(len(spans)) if not cuts_quotation(spans[k : k + 1], quotations)]
    places = whole or range(len(spans))
    k = places[int(rng.integers(len(places)))]
    start, end = spans[k]
    if k + 1 < len(spans):
        end = spans[k + 1][0]
    else:
        start = spans[k - 1][1]
    return [Edit(start, end, "")]


def cuts_quotation(moved: Sequence[Span], quotations: Sequence[Span]) -> bool:
    """Whether moving or deleting consecutive sentences would separate the marks of a quotation.

    It does not if each quotation is within one of them, outside all, or around all of them.
    """
    return any(
        not (a < moved[0][0] and moved[-1][1] < b)
        and any(a < end and start < b and not (start <= a and b <= end) for start, end in moved)
        for a, b in quotations
    )


_RULES = {"swap": swap_sentences, "delete": delete_sentence}


def corrupt_stories(
    stories: Sequence[Document],
    plan: CorruptPlan,
    nlp: Any,
    translator: Translator | None = None,
    kept: KeptRows | None = None,
    writer: FaultWriter | None = None,
) -> Iterator[tuple[list[dict[str, Any]], list[LeftOut]]]:
    """Yield the rows of one story after another, and why others are missing.

    Rows from an earlier run are reused, and new ones are kept. `writer` writes faults of
    fact, thread and motive. Raises `InputError` if a kept row was made from another text or in
    another way, `ModelError` if the translator or writer fails.
    """
    stories = list(check_documents(stories))
    kept = KeptRows(CORRUPTED) if kept is None else kept
    size = _BATCH if translator is None else translator.n_parallel
    n_whole: Counter[str] = Counter()

    def is_wanted(story: Document) -> bool:
        return plan.per_set is None or n_whole[_set_of(story, plan.by)] < plan.per_set

    if plan.balanced and plan.per_set is not None:
        stories = [stories[k] for k in np.random.default_rng(plan.seed).permutation(len(stories))]
    signatures = {m: _signature(m, plan, nlp, translator, writer) for m in plan.methods}
    for begin in range(0, len(stories), size):
        batch = list(filter(is_wanted, stories[begin : begin + size]))
        readings = {story.id: Reading(story, nlp) for story in batch}
        todo = [
            (f"{story.id}_{method}", method, story)
            for story in batch
            for method in plan.methods
            if (f"{story.id}_{method}",) not in kept and not_english(story.text) is None
        ]
        rounds, written = dict[str, Rounds](), dict[str, Fault | str]()
        if translator is not None:
            asked = [story for _, method, story in todo if method == "backtranslate"]
            translated = back_translate([story.text for story in asked], translator, plan.rounds)
            rounds.update(zip((s.id for s in asked), translated, strict=True))
        if writer is not None:
            to_write = [(id_, (m, readings[s.id])) for id_, m, s in todo if m in WRITABLE]
            faults = writer.write([wanted for _, wanted in to_write])
            written.update(zip((id_ for id_, _ in to_write), faults, strict=True))
        for story in filter(is_wanted, batch):
            rows, left_out = list[dict[str, Any]](), list[LeftOut]()
            for method in plan.methods:
                id_, signature = f"{story.id}_{method}", signatures[method]
                row = kept.find({"id": id_, "original": story.text, "signature": signature})
                if row is None:
                    fault = written.get(id_, "no model was set to write it")
                    read, back = readings[story.id], rounds.get(story.id)
                    made = _changed(method, read, back, fault, plan.seed)
                    if isinstance(made, str):
                        left_out.append(LeftOut(story.id, method, made))
                        continue
                    row = {
                        "id": id_,
                        "story_id": story.id,
                        "method": method,
                        "text": made[0],
                        "original": story.text,
                        "change": made[1],
                        "signature": signature,
                    }
                rows.append(row)
            if plan.balanced and left_out:
                reason = "another method cannot change it (`balanced`)"
                left_out += [LeftOut(story.id, row["method"], reason) for row in rows]
                rows = []
            n_whole[_set_of(story, plan.by)] += plan.balanced and bool(rows)
            for row in rows:
                if (row["id"],) not in kept:
                    kept.add(row)
            yield rows, left_out


def _changed(
    method: Method, story: Reading, rounds: Rounds | None, fault: Fault | str, seed: int
) -> _Made:
    """A story as a method changes it. rounds, fault: what models have already produced for it."""
    if method == "original":
        return story.text, {"edits": []}
    if (foreign := not_english(story.text)) is not None:
        return foreign
    if method == "backtranslate":
        if rounds is None:
            return "no translator was set"
        if not rounds.texts:
            if rounds.reason is not None:
                return f"the first round produced no translation ({rounds.reason})"
            if rounds.foreign_round is not None:
                return "the translation of the first round contains words that are not English"
            return "the translation degenerated in the first round"
        text = rounds.texts[-1]
        edits = edits_between(story.text, text)
        if not any(e.text.strip() or story.text[e.start : e.end].strip() for e in edits):
            return "the translation is identical"
        changed, record = apply_edits(story.text, edits)
        n = len(rounds.texts)
        times = "once" if n == 1 else f"{UNITS[n - 1] if n <= 10 else n} times"
        change: dict[str, Any] = {
            "edits": record,
            "rounds": list(rounds.texts),
            "stable_round": rounds.stable_round,
            "degenerate_round": rounds.degenerate_round,
        }
        if rounds.refused_round is not None:
            change |= {"refused_round": rounds.refused_round, "refused_reason": rounds.reason}
        if rounds.foreign_round is not None:
            change["foreign_round"] = rounds.foreign_round
            change["foreign_words"] = list(rounds.foreign_words)
        change["what"] = f"The story was translated to another language and back {times}."
        return changed, change
    rng = story_rng(seed, story.document.id, method)
    if method in _RULES:
        spans = story.sentences
        if len(spans) < 2:
            return f"it has {len(spans)} sentence{'' if len(spans) == 1 else 's'}"
        quotations = [(quotation.start, quotation.end) for quotation in story.quotations]
        cuts = _RULES[method](story.text, spans, rng, quotations)
        if cuts is None:
            return "its sentences are all the same"
        text, record = apply_edits(story.text, cuts)
        k = story.sentence_of(cuts[0].start)
        moved = [(a, b) for a, b in spans if any(e.start <= a and b <= e.end for e in cuts)]
        what = (
            f"The {_place(k)} and {_place(k + 1)} sentences changed places."
            if method == "swap"
            else f"A sentence was taken out: '{record[0]['was'].strip()}'"
        )
        change = {"edits": record, "what": what}
        if cuts_quotation(moved, quotations):
            change["cuts_quotation"] = True
        return text, change
    if method == "name":
        fault = plant_rename(story, rng)
    if isinstance(fault, str):
        return fault
    text, record = apply_edits(story.text, fault.edits)
    return text, {"edits": record, **fault.details, "what": fault.what}


def _place(k: int) -> str:
    """The ordinal of the sentence with index k: third, 21st."""
    n = k + 1
    if n <= 10:
        return ORDINALS[k]
    ending = {1: "st", 2: "nd", 3: "rd"}.get(n % 10 if n % 100 not in (11, 12, 13) else 0, "th")
    return f"{n}{ending}"


def _signature(
    method: Method,
    plan: CorruptPlan,
    nlp: Any,
    translator: Translator | None,
    writer: FaultWriter | None,
) -> str:
    parts = {"method": str(method)}
    if method != "original":
        parts["lang"] = language_gate()
    if method in _RULES or method == "name" or method in WRITABLE:
        parts |= {"seed": str(plan.seed), **pipeline_parts(nlp), "speech": READER}
    if method in _RULES:
        parts["places"] = "speech-whole" if method == "swap" else "quotations-whole"
    if method == "name":
        parts["rules"] = RULES
    if writer is not None and method in WRITABLE:
        parts["written"] = writer.name
    if method == "backtranslate" and translator is not None:
        parts |= {"rounds": str(plan.rounds), "by": translator.name, "sound": vocabulary_name()}
    return str(Signature.of("corrupt", **parts, v=__version__))

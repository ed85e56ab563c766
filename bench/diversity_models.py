"""Whether stories by each model are more alike than those by people on the same prompts.

    python bench/diversity_models.py [--permutations 999] [--smoke]

HANNA: 48 prompts, one story by a person and one by each of six models. Fast-DetectGPT's
WritingPrompts: pairs of a story by a person and its continuation by one of three models; what both
begin with counts as the prompt. That set cuts long prompts, so that their ends are in the texts: of
pairs on the same prompt, where people's texts share a run of 12 words, only the first is taken.
Each model is compared with the people of its own prompts, prompt by prompt. No measure has anything
that was fitted to texts, so all prompts are held out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import corpora
from fabula.core.types import Document, Estimate
from fabula.core.workers import default_jobs
from fabula.groups.diversity import Plan, measure_diversity
from fabula.groups.grouped_texts import Resampling
from fabula.text import TextSettings

MEASURES = {
    "shared_ngrams.4": 1, "self_bleu": 1, "self_repetition": 1, "compression": 1, "distinct.4": -1,
}  # fmt: skip
"""1 where a larger value means more alike."""
RUN_WORDS = 12


def sets() -> Iterator[tuple[str, list[Document]]]:
    """For each model its stories and those of people on the same prompts."""
    for path in (corpora.HANNA, corpora.FAST_DETECT):
        rows = [json.loads(line) for line in path.open(encoding="utf-8")]
        by_models = [row for row in rows if row["label"] == "machine"]
        by_people = [row for row in rows if row["label"] != "machine"]
        for model in dict.fromkeys(row.get("model") or "machine" for row in by_models):
            own = [row for row in by_models if (row.get("model") or "machine") == model]
            pairs = {row["pair_id"] for row in own}
            people = _one_a_prompt(
                {row["pair_id"]: row for row in by_people if row["pair_id"] in pairs}
            )
            own = [row for row in own if row["pair_id"] in people]
            yield model, [_document(row) for row in [*people.values(), *own]]


def _one_a_prompt(people: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Without those that share a run with an earlier one."""
    seen: set[tuple[str, ...]] = set()
    kept = {}
    for pair, row in people.items():
        words = TextSettings().words(_document(row).text)
        runs = {tuple(words[k : k + RUN_WORDS]) for k in range(len(words) - RUN_WORDS + 1)}
        if not runs & seen or corpora.SMOKE:
            kept[pair] = row
        seen |= runs
    return kept


def _document(row: dict[str, Any]) -> Document:
    n = row.get("shared_prefix_chars") or 0
    prompt = row["text"][:n] if n else row.get("prompt") or str(row["pair_id"])
    return Document(row["id"], row["text"][n:], meta={"label": row["label"], "prompt": prompt})


def _shown(one: Estimate, form: str = ".4f") -> str:
    if one.value is None:
        return "none"
    ends = "-" if one.low is None or one.high is None else f"{one.low:{form}} to {one.high:{form}}"
    return f"{one.value:{form}} [{ends}]"


def main() -> None:
    given = corpora.options(__doc__, permutations=corpora.sized(999, 99))
    how = Resampling(n_permutations=given.permutations)
    held: Counter[str] = Counter()
    apart: Counter[str] = Counter()
    n_models = 0
    for model, documents in sets():
        plan = Plan(
            by="label",
            prompt="prompt",
            baseline="human",
            how=how,
            n_phrases=0,
            n_threads=default_jobs(),
        )
        found = measure_diversity(documents, plan)
        by_name = {one.name: one for one in found.groups}
        n_models += 1
        print(f"{model}: {by_name['machine'].n} texts each, {found.n_words} words", flush=True)
        for test in found.tests:
            if test.number not in MEASURES:
                continue
            sign = MEASURES[test.number]
            nearest = test.difference.low if sign > 0 else test.difference.high
            held[test.number] += sign * (test.difference.value or 0) > 0
            apart[test.number] += nearest is not None and sign * nearest > 0
            p = "none" if test.p is None else f"{test.p:.4f}"
            print(
                f"  {test.number}: people {_shown(by_name['human'].estimates[test.number])}, "
                f"model {_shown(by_name['machine'].estimates[test.number])}, difference "
                f"{_shown(test.difference, '+.4f')}, p {p}"
            )
    for measure in MEASURES:
        print(
            f"{measure}: models more alike than people in {held[measure]} of {n_models}, "
            f"with an interval that excludes 0 in {apart[measure]}"
        )


if __name__ == "__main__":
    main()

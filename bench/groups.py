"""The reference groups that ship, measured from the shared data.

    python bench/groups.py [--out FILE] [--smoke]

Without --out they replace src/fabula/stats/groups.jsonl. Run it again where a signature of the
profile, of fluency or of originality has changed: a number is placed among a group only where both
were measured in the same way. Stories by people and by models that answer the same prompts, by
people who were published, and by the models of the TTCW study; only numbers are kept.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import corpora
from fabula.core.types import Document
from fabula.core.workers import default_jobs
from fabula.reference.search import Reference
from fabula.review.job import ReportSettings, group_numbers
from fabula.review.reviewer import Reviewer
from fabula.rubrics.released import read_released_stories
from fabula.stats import norms as groups
from fabula.stats.norms import GroupKind, GroupNumbers, write_groups
from fabula.text import read_documents

N_PASSAGES, PASSAGE_WORDS, YEARS = 100, 600, (1811, 1913)
MODELS_A_PROMPT = 2
JUDGED = ("verdicts", "feedback")
EXAMPLES = Path(__file__).parents[1] / "examples" / "library"


def answers(label: str) -> list[Document]:
    """Stories of HANNA: all by people, or two machine stories to each prompt, models by turns."""
    found = [d for d in read_documents([corpora.HANNA]) if d.meta["label"] == label]
    if label == "human":
        return found
    by_prompt: dict[str, list[Document]] = {}
    for document in found:
        by_prompt.setdefault(str(document.meta["pair_id"]), []).append(document)
    return [
        stories[(MODELS_A_PROMPT * k + place) % len(stories)]
        for k, stories in enumerate(by_prompt.values())
        for place in range(min(MODELS_A_PROMPT, len(stories)))
    ]


def published() -> list[Document]:
    """Passages of novels, whole paragraphs from a place drawn in each chapter drawn."""
    rng = random.Random(0)
    files = sorted((corpora.SHARED / "reference").glob("*novels.jsonl.gz"))
    first, last = YEARS
    chapters = [d for d in read_documents(files) if first <= int(d.meta.get("year", first)) <= last]
    rng.shuffle(chapters)
    passages = (passage(chapter, rng) for chapter in chapters)
    return [found for found, _ in zip(filter(None, passages), range(N_PASSAGES), strict=False)]


def passage(chapter: Document, rng: random.Random) -> Document | None:
    """At least `PASSAGE_WORDS` words from a paragraph on; None where the chapter is shorter."""
    paragraphs = chapter.text.split("\n\n")
    wanted = corpora.sized(PASSAGE_WORDS, 60)
    n_left = 0
    starts = []
    for k in reversed(range(len(paragraphs))):
        n_left += len(paragraphs[k].split())
        if n_left >= wanted:
            starts.append(k)
    if not starts:
        return None
    kept: list[str] = []
    for paragraph in paragraphs[rng.choice(starts) :]:
        kept.append(paragraph)
        if sum(len(one.split()) for one in kept) >= wanted:
            break
    return Document(chapter.id, "\n\n".join(kept))


def measured(
    name: str, kind: GroupKind, title: str, texts: list[Document], references: list[Path]
) -> Iterator[GroupNumbers]:
    """The numbers of a group: profile and fluency, then originality against each reference."""
    texts = texts[: corpora.sized(len(texts), 1)]
    plans = [ReportSettings(with_=("fluency",), without=(*JUDGED, "originality"))]
    plans += [
        ReportSettings(references=(str(path),), without=(*JUDGED, "profile")) for path in references
    ]
    for plan in plans:
        with Reviewer(plan) as reviewer:
            review = reviewer.run(texts)
        for entry in review.left_out:
            if entry.is_failure:
                raise RuntimeError(f"{name}: {entry.part}: {entry.reason}")
        yield from group_numbers(review, name, kind, title)
    print(f"{name}: {len(texts)} texts", flush=True)


def main() -> None:
    given = corpora.options(__doc__, out=Path)
    with corpora.scratch() as scratch:
        # The page names a reference by its folder.
        library, books = scratch / "library.ref", scratch / "books.ref"
        Reference.build(read_documents([EXAMPLES]), library).close()
        Reference.build(
            read_documents([corpora.SHARED / "reference"]), books, n_jobs=default_jobs()
        ).close()
        people, machines, novels = answers("human"), answers("machine"), published()
        released = corpora.SHARED / "ttcw" / "ttcw_short_stories.json"
        judged = [d for d in read_released_stories(released) if d.text]
        both = [library, books]
        found = [
            *measured("people-prompts", "people",
                      f"people, {len(people)} stories of r/WritingPrompts", people, both),
            *measured("people-published", "people",
                      f"people, {len(novels)} passages of fiction published "
                      f"{YEARS[0]}–{YEARS[1]}", novels, []),
            *measured("models-open", "models",
                      f"models, {len(machines)} stories by six open models of 2023", machines,
                      both),
            *measured("models-ttcw", "models",
                      f"models, {len(judged)} stories by GPT-3.5, GPT-4 and Claude", judged, both),
        ]  # fmt: skip
        shipped = Path(groups.__file__).with_name("groups.jsonl")
        smoke = scratch / "groups.jsonl" if corpora.SMOKE else shipped
        out = given.out or smoke
        write_groups(out, sorted(found, key=lambda one: (one.kind != "people", one.group)))
        print(f"written: {out}, {len(found)} lines")


if __name__ == "__main__":
    main()

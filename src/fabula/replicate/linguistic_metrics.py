"""Replicate Table 2 of "Evaluating Story Generation Systems Using Automated Linguistic Analyses".

Roemmele, Gordon and Swanson 2017: five systems continue passages of children's books, and fifteen
metrics distinguish them. Here the passages come from the available books, and the generators are
trained on the available texts, so only the ranking of the systems can agree, not the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

from fabula.continuation.corpus import Corpus, build_corpus
from fabula.continuation.generating import CONTINUATIONS, GeneratorChoice, generate
from fabula.continuation.passages import book_chapters, passages_of
from fabula.continuation.retrieval import index_cases
from fabula.continuation.scores import (
    GOLD,
    Continuation,
    Example,
    Story,
    gold_continuations,
    sample_examples,
    score_rows,
)
from fabula.continuation.tables import SystemTable, compare_systems, system_tables
from fabula.core.resume import kept_rows
from fabula.linguistic.metrics import METRICS, Metric, ToolChoice
from fabula.replicate.tables import Claim, agreement_lines, claim_sheet, claims_of, printed_table
from fabula.show.sheet import Block, number
from fabula.text import find_files, read_documents

_KINDS = {"random": "random", "case-based": "case", "unigram": "unigram", "recurrent": "recurrent"}
PAPER_SYSTEMS = (*_KINDS, GOLD)
"""The columns of Table 2, in order."""


@dataclass(frozen=True, slots=True)
class Replica:
    """Our table, and the corpus and passages behind it."""

    table: SystemTable
    papers_way: SystemTable
    """The same with the paper's tests: of two independent samples, over all passages."""
    corpus: Corpus
    n_passages: int
    examples: Sequence[Example] = ()
    """Passages with what every system wrote and its scores, as in Table 1."""

    def is_highest(self, metric: Metric) -> bool:
        """Whether gold has the largest value of the paper's systems, whatever the tests say."""
        systems = [system for system in PAPER_SYSTEMS if system in self.table.systems]
        values = {system: self.table.cells[metric.id, system].estimate.value for system in systems}
        known = {system: value for system, value in values.items() if value is not None}
        return max(known, key=known.__getitem__) == GOLD

    def beats_all(self, metric: Metric) -> bool:
        """Whether gold is above each of the paper's other systems, at the corrected level."""
        others = set(PAPER_SYSTEMS) & set(self.table.systems) - {GOLD}
        return all(self.table.beats(metric.id, GOLD, system) for system in others)

    def to_json(self) -> dict[str, Any]:
        """As plain values for JSON output."""
        return {
            **self.table.to_json(),
            "corpus": self.corpus.label,
            "papers_way": self.papers_way.to_json(),
            "examples": [example.to_json() for example in self.examples],
            "paper": printed_table("linguistic_metrics", "Table 2"),
            "gold": {
                metric.id: {
                    "is_highest": self.is_highest(metric),
                    "beats_all": self.beats_all(metric),
                }
                for metric in METRICS
                if metric.needs_context
            },
            "claims": [claim.to_json() for claim in self.claims],
        }

    @property
    def claims(self) -> list[Claim]:
        """Table 2, over the paper's 18,000 passages for each system."""
        return claims_of(
            "linguistic_metrics",
            ["Table 2"],
            {place: cell.estimate.value for place, cell in self.table.cells.items()},
            missing="the system has no text that the metric is defined of",
            why="Other passages and other training texts: what can agree is which system stands "
            "above which.",
            notes={
                (metric.id, system): "the system has no generator"
                for metric in METRICS
                for system in PAPER_SYSTEMS
                if system not in self.table.systems
            },
        )


def replicate_table(
    books: Sequence[str],
    training: Sequence[str],
    out: Path,
    *,
    stride: int = 5,
    recurrent: bool = True,
    seed: int = 0,
    n_jobs: int = 1,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> Replica:
    """Cut, train, generate, score and compare; every step resumes where it was interrupted.

    `report` gets a stage, how much of it is done, and the total.
    """
    # Passages of 20 sentences, from tokenised books (a list of sentences) or from any text.
    field = "sentences" if any(".jsonl" in book for book in books) else "text"
    documents = read_documents(find_files(books), text_field=field)
    cuts = passages_of(book_chapters(documents), 20, stride)
    stories = [Story(c.id, c.context, c.gold, f"{c.book}/{c.chapter}", c.book) for c in cuts]
    report("reading the training texts", 0, 1)
    read = read_documents(find_files(training))
    corpus = build_corpus(read, out / "generators", n_jobs=n_jobs, report=lambda s: report(s, 0, 1))
    index_cases(corpus, lambda s: report(s, 0, 1))
    if recurrent:
        from fabula.continuation.recurrent import Progress, Training, train_recurrent

        plan = Training(seed=seed)

        def show(progress: Progress) -> None:
            n_windows = plan.n_epochs * progress.n_windows
            report("training the recurrent network", progress.window, n_windows)

        train_recurrent(corpus, plan, report=show)
    kinds = {system: kind for system, kind in _KINDS.items() if recurrent or kind != "recurrent"}
    continuations: list[Continuation] = []
    with kept_rows(out / "systems.jsonl", CONTINUATIONS) as kept:
        for system, kind in kinds.items():
            choice = GeneratorChoice(kind, corpus.folder)
            made = generate(stories, choice, kept, seed=seed, n_jobs=n_jobs)
            for number, row in enumerate(made, 1):
                report(f"generating: {system}", number, len(stories))
                continuations.append(Continuation(row["id"], row["system"], row["text"]))
    continuations += gold_continuations(stories)
    n_measured = 0

    def advance(n: int) -> None:
        nonlocal n_measured
        n_measured += n
        report("measuring", n_measured, len(continuations))

    file, tools = out / "scores.jsonl", ToolChoice()
    rows = score_rows(stories, continuations, tools, file, n_jobs=n_jobs, advance=advance)
    report("comparing", 0, 1)
    known = frozenset(corpus.vocabulary.words[1:])
    compare = partial(compare_systems, rows, [*kinds, GOLD], vocabulary=known, seed=seed)
    table = compare()
    examples = sample_examples(stories, continuations, rows, table.systems, seed)
    return Replica(table, compare(design="two-sample"), corpus, len(stories), examples)


def beside_paper(replica: Replica) -> list[Block]:
    """Our table with its tests; ours and the paper's side by side; and the interpretation."""
    claims = replica.claims
    titles = {metric.id: f"{metric.number:2}. {metric.title}" for metric in METRICS}
    systems = {system: system for system in PAPER_SYSTEMS}
    highest = []
    for metric in METRICS:
        if metric.needs_context:
            place = "highest" if replica.is_highest(metric) else "not highest"
            above = "above" if replica.beats_all(metric) else "not above"
            highest.append(f"  {metric.number}. {metric.title}: {place}, {above} every system")
    otherwise = [
        f"{metric.number} {a} over {b}"
        for metric in METRICS
        for a, b in permutations((s for s in PAPER_SYSTEMS if s in replica.table.systems), 2)
        if replica.table.beats(metric.id, a, b) != replica.papers_way.beats(metric.id, a, b)
    ]
    cells = (replica.table.cells["sentence_length", system] for system in (GOLD, "random"))
    gold, random = (number(cell.estimate.value, ".1f") for cell in cells)
    corpus = replica.corpus
    return [
        *system_tables(replica.table),
        "",
        "Table 2 (printed)",
        "",
        claim_sheet("paper", titles, systems, claims, form=".3f"),
        "",
        *agreement_lines(claims),
        "Is gold highest on what depends on the story? In the paper, on all six. Here:",
        *highest,
        "The paper's tests take passages and systems as independent samples. By them these marks "
        f"would be otherwise: {', '.join(otherwise) or 'none'}.",
        f"What differs: the passages are {replica.n_passages:,} of the books at hand, not 18,000 "
        f"of CBT; the generators learnt from {corpus.n_sentences:,} sentences, not 41,458,210, and "
        f"know {len(corpus.vocabulary) - 1:,} words, not 83,292. Gold has "
        f"{gold} words a sentence here and 28.8 in the paper, random sentences {random} and 13.4: "
        f"metrics 13 and 14 rise with length, so that there gold has the advantage and here it has "
        f"not.",
        "Tools: harper for LanguageTool, wordfreq for Reddit counts, the pipeline's vectors for "
        "GloVe, MiniLM for skip-thoughts (another scale), a sieve for coreference; type-token "
        "ratios fall with the amount of text, so they are higher on fewer passages.",
    ]

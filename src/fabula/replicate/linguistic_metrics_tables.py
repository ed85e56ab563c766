"""Our Table 2 next to the paper's, and what differs."""

from __future__ import annotations

from collections.abc import Iterator

from fabula.measures.linguistic.metrics import METRICS
from fabula.measures.linguistic.system_scores import GOLD
from fabula.presentation.continuation_tables import example_blocks, system_tables
from fabula.presentation.sheet import Block, number
from fabula.replicate.claims import agreement_lines, claim_sheet
from fabula.replicate.linguistic_metrics import PAPER_SYSTEMS, Replica


def beside_paper(replica: Replica) -> list[Block]:
    """Our table with its tests; ours and the paper's side by side; and the interpretation."""
    claims = replica.claims
    titles = {metric.id: f"{metric.number:2}. {metric.title}" for metric in METRICS}
    systems = {system: system for system in PAPER_SYSTEMS}
    return [
        *system_tables(replica.table),
        "",
        *example_blocks(replica.table, replica.examples),
        "Table 2 (printed)",
        "",
        claim_sheet("paper", titles, systems, claims, form=".3f"),
        "",
        *agreement_lines(claims),
        *_remarks(replica),
    ]


def _papers_way(replica: Replica) -> str:
    """What the paper's tests would mark differently."""
    otherwise = [f"{metric.number} {a} over {b}" for metric, a, b in replica.marked_otherwise()]
    return (
        "The paper's tests take passages and systems as independent samples. By them these marks "
        f"would be otherwise: {', '.join(otherwise) or 'none'}."
    )


def _remarks(replica: Replica) -> Iterator[str]:
    yield "Is gold highest on what depends on the story? In the paper, on all six. Here:"
    for metric in METRICS:
        if metric.needs_context:
            parts = [
                "highest" if replica.is_highest(metric) else "not highest",
                "above every system" if replica.beats_all(metric) else "not above every system",
            ]
            yield f"  {metric.number}. {metric.title}: {', '.join(parts)}"
    yield _papers_way(replica)
    lengths = {
        system: replica.table.cells["sentence_length", system].estimate.value
        for system in (GOLD, "random")
    }
    corpus = replica.corpus
    yield (
        f"What differs: the passages are {replica.n_passages:,} of the books at hand, not 18,000 "
        f"of CBT; the generators learnt from {corpus.n_sentences:,} sentences, not 41,458,210, and "
        f"know {len(corpus.vocabulary) - 1:,} words, not 83,292. Gold has "
        f"{number(lengths[GOLD], '.1f')} words a sentence here and 28.8 in the paper, random "
        f"sentences {number(lengths['random'], '.1f')} and 13.4: metrics 13 and 14 rise with "
        f"length, so that there gold has the advantage and here it has not."
    )
    yield (
        "Tools: harper for LanguageTool, wordfreq for Reddit counts, the pipeline's vectors for "
        "GloVe, MiniLM for skip-thoughts (another scale), a sieve for coreference; type-token "
        "ratios fall with the amount of text, so they are higher on fewer passages."
    )

"""Which borrowed spans are quotations: the rule, and a model, against labels.

    python bench/spans.py [--model MODEL] [--draw FILE] [--smoke]

Draws 200 spans that stories by people and models, children's books and openings of novels by
GPT-3.5 share with old books, speeches, the Bible and Shakespeare by other authors: half passages,
half commonplaces, with a seed. Their labels are in tests/golden/borrowed_spans.jsonl: made by a
language model, span by span, from the words and the source, and from the context where those left a
doubt; no person has checked them. Printed are the tables of `fabula spans score`. --draw writes the
spans to label, with their context.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import corpora
from fabula.jobs.models import NoModelSettings
from fabula.jobs.spans import SpanSampleSettings, SpanScoreSettings, sample_spans, score_spans
from fabula.measures.labels import read_labels
from fabula.measures.span_sample import RUBRIC, voted_kinds
from fabula.presentation.sheet import render
from fabula.reference import Reference
from fabula.rubrics import load_rubric
from fabula.store import write_rows
from fabula.text import read_documents

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "borrowed_spans.jsonl"
TEXTS = (
    "human_vs_machine/hanna_writingprompts.jsonl",
    "human_vs_machine/fastdetect_writing.jsonl",
    "cbt/children_books.jsonl.gz",
    "generated/gpt35_novel.jsonl",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--draw", type=Path)
    given = parser.parse_args()
    texts = [corpora.SHARED / name for name in TEXTS if (corpora.SHARED / name).exists()]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "reference"
        Reference.build(read_documents([str(corpora.SHARED / "reference")]), place).close()
        drawn = sample_spans(
            read_documents(texts),
            SpanSampleSettings(
                references=(str(place),),
                exclude_same="author",
                n_spans=corpora.sized(200, 20),
                out=Path(folder) / "spans.jsonl",
            ),
        )
    print("\n".join(drawn.lines()[:2]))
    if given.draw is not None:
        write_rows(given.draw, [span.to_row() for span in drawn.spans])
        return
    labels = read_labels(GOLDEN, load_rubric(RUBRIC))
    kinds = voted_kinds(labels, [span.id for span in drawn.spans])
    print(f"{len(kinds)} of {len(drawn.spans)} are labelled")
    if not kinds:
        return
    settings = SpanScoreSettings(labels=GOLDEN, models=NoModelSettings(models=tuple(given.model)))
    print(render(*score_spans(drawn.spans, settings, labels).tables()))


if __name__ == "__main__":
    main()

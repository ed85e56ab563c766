"""A reference that models write, for texts that are younger than any corpus.

Lu et al. 2024, section "Evaluation" ("How to measure creativity in LLMs trained on data outside of
the reference corpus?") and appendix B.1: sentences are drawn from a corpus, models continue them
with nucleus sampling at p 0.9 to at most 2048 tokens, and what they write is the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fabula.types import Document

__all__ = ["draw_sentences", "written_documents"]


def draw_sentences(sentences: Sequence[Document], n: int | None, seed: int) -> list[Document]:
    """`n` of the sentences, drawn without repetition, in their order; all where `n` is None."""
    if n is None or n >= len(sentences):
        return list(sentences)
    chosen = np.random.default_rng(seed).choice(len(sentences), size=n, replace=False)
    return [sentences[k] for k in sorted(map(int, chosen))]


def written_documents(rows: Sequence[Mapping[str, Any]]) -> Iterator[Document]:
    """What models wrote, as documents of a reference; rows without a text are none."""
    for row in rows:
        if row["text"] is not None:
            yield Document(
                id=f"{row['id']}_{row['model']}",
                text=row["text"],
                author=row["model"],
                prompt_id=row["prompt_id"],
                meta={"prompt": row["prompt"]},
            )

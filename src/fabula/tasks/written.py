"""A reference written by models, for texts that are newer than any corpus.

Lu et al. 2024, section "Evaluation" ("How to measure creativity in LLMs trained on data outside of
the reference corpus?") and appendix B.1: sentences are drawn from a corpus, models continue them
with nucleus sampling at p 0.9 to at most 2048 tokens, and what they write is the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fabula.text import TextSettings, check_documents
from fabula.types import Document


def by_line(documents: Sequence[Document]) -> list[Document]:
    """One document per line, for texts with several lines: a file of first sentences."""
    found = []
    for document in check_documents(documents):
        lines = [line.strip() for line in document.text.splitlines() if line.strip()]
        if len(lines) == 1:
            found.append(replace(document, text=lines[0]))
            continue
        found += [
            replace(document, id=f"{document.id}:{number}", text=line)
            for number, line in enumerate(lines, 1)
        ]
    return found


def draw_sentences(sentences: Sequence[Document], n: int | None, seed: int) -> list[Document]:
    """`n` of the sentences, drawn without replacement, in their order; all if `n` is None.

    A repeated sentence is dropped: a model would continue it in the same way.
    """
    first: dict[str, Document] = {}
    for sentence in check_documents(sentences):
        first.setdefault(sentence.text, sentence)
    sentences = list(first.values())
    if n is None or n >= len(sentences):
        return list(sentences)
    chosen = np.random.default_rng(seed).choice(len(sentences), size=n, replace=False)
    return [sentences[k] for k in sorted(map(int, chosen))]


def without_prompt(text: str, prompt: str) -> str:
    """The answer without the sentence to continue, if it begins by repeating it.

    A person wrote that sentence, and it would match itself in the text attributed to models.
    """
    words = TextSettings()
    given, answered = words.words(prompt), words.locate(text)
    n = len(given)
    if not n or answered.words[:n] != given:
        return text
    return text[int(answered.ends[n - 1]) :].lstrip(" \t\n.,;:!?\"'”’)*…—-")


def written_documents(rows: Sequence[Mapping[str, Any]]) -> Iterator[Document]:
    """What models wrote, as documents of a reference; rows without a text are skipped."""
    for row in rows:
        if row["text"] is not None:
            yield Document(
                id=f"{row['id']}_{row['model']}",
                text=without_prompt(row["text"], row["prompt"]),
                author=row["model"],
                prompt_id=row["prompt_id"],
                meta={"prompt": row["prompt"]},
            )

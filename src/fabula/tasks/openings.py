"""Texts from a first sentence or a heading: novels, poems, speeches, news, proofs.

Lu et al. 2024, appendix B.1: a plain request for each kind, nucleus sampling with p 0.9, at most
288 tokens; and formats that ask for creativity, to see whether they change the Creativity Index
(Figure 4a). The wording is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product, starmap

from fabula.models.base import Model, Prompt, Sampling
from fabula.resume import KeptRows, Row, RowKind
from fabula.tasks.model_texts import Wanted, ask_for, read_written
from fabula.text import check_documents
from fabula.types import Document

OPENINGS = RowKind("the text", ("id", "model"), ("missing_reason", "text", "prompt"))

KINDS = {
    "novel": ("a few paragraphs of a novel that begin with this sentence", "Sentence"),
    "poem": ("a poem that begins with this line", "Line"),
    "speech": ("a speech that begins with this sentence", "Sentence"),
    "news": ("a news article for this headline", "Headline"),
    "proof": ("a proof of this theorem", "Theorem"),
    "continuation": ("a continuation of this sentence", "Sentence"),
}
"""The description of each kind, and the name of its beginning."""

_TITLED = ("news", "proof")
"""Kinds that have a headline, or the word "Proof", of their own."""

FORMATS = {
    "plain": "Write {what}.",
    "ideas": "Write {what}. Reach for creative ideas, uncommon feelings and turns of your own.",
    "perspectives": "Write {what}. Take a perspective or a turn that nobody else would take; let "
    "your originality show.",
    "novelty": "Write {what}. Put new ideas, feelings or viewpoints first, and be as creative as "
    "you can.",
    "bold": "Write {what}. Explore surprising turns, feelings or unusual views. Be daring.",
    "free": "Write {what}. Explore surprising turns, deep feelings or unusual views. Give "
    "your imagination its way and try what is not usually done.",
    "writer": "You are a creative writer. Write {what}.",
}
"""Prompt formats by name: `plain`, and six that ask for creativity in different ways."""


def opening_prompt(beginning: str, kind: str, format_: str) -> Prompt:
    """The prompt for one beginning."""
    what, called = KINDS[kind]
    return Prompt("", f"{FORMATS[format_].format(what=what)}\n\n{called}: {beginning.strip()}\n")


async def write_openings(
    beginnings: Sequence[Document],
    model: Model,
    rows: KeptRows,
    *,
    kind: str,
    formats: Sequence[str] = ("plain",),
    sampling: Sampling,
    meter: Callable[[int], None] = lambda _: None,
) -> list[Row]:
    """A row for each beginning and format; a missing text has its reason."""

    def wanted(beginning: Document, format_: str) -> Wanted:
        made_of = {
            "id": f"{beginning.id}_{format_}",
            "model": model.name,
            "prompt": beginning.text,
            "kind": kind,
            "sampling": str(sampling),
        }

        async def make() -> Row:
            answer = await model.ask(opening_prompt(beginning.text, kind, format_), sampling)
            written = read_written(answer, has_title=kind in _TITLED)
            return {
                "id": made_of["id"],
                "text": written.text,
                "missing_reason": written.missing_reason,
                "frame_removed": list(written.frame_removed),
                "author": model.name,
                "model": model.name,
                "prompt_id": beginning.id,
                "prompt": beginning.text,
                "kind": kind,
                "format": format_,
                "is_cut": answer.stop == "length",
                "sampling": made_of["sampling"],
            }

        return Wanted(made_of, make)

    grid = product(list(check_documents(beginnings)), formats)
    return await ask_for(starmap(wanted, grid), rows, model.n_parallel, meter)

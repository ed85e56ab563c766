"""Texts from a first sentence or a heading: novels, poems, speeches, news, proofs.

Lu et al. 2024, appendix B.1: a plain request for each kind, nucleus sampling with p 0.9, at most
288 tokens; and formats that ask for creativity, to see whether they change the Creativity Index
(Figure 4a). The wording is ours, or that of the paper's text. People's own texts stand beside
models' as in appendix B.2.

For texts that are newer than any corpus, what models write is the reference itself (section
"Evaluation", "How to measure creativity in LLMs trained on data outside of the reference corpus?"):
sentences are drawn from a corpus, and models continue them to at most 2048 tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product, starmap
from pathlib import Path
from typing import Any

import numpy as np

from fabula.core.errors import InputError
from fabula.core.resume import KeptRows, Row, RowKind
from fabula.core.store import text_digest
from fabula.core.types import Document
from fabula.models.base import Model, Prompt, Sampling
from fabula.models.texts import Wanted, ask_for, read_prompts, read_written
from fabula.text import TextSettings, check_documents
from fabula.text.sentences import first_sentences

HUMAN_WORDS = 256
"""People's texts end with the sentence that passes this."""

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
    "agent": "You make creative things. Write {what}, and give life to ideas and feelings that are "
    "your own.",
    "writer": "You are a creative writer. Write {what}. Look for views that others miss and for "
    "turns that nobody expects, and let creativity lead you.",
    "direction": "You make creative things, and this text may go wherever you take it. Write "
    "{what}, and imagine your way to its surprises and its depth.",
    "task": "You are a creative writer with a task: write {what}. Go into ideas of your own, look "
    "closely at feelings, and surprise even yourself.",
    "life": "You are a creative writer whose stories live. Write {what}. Let your imagination take "
    "daring turns that nobody sees coming.",
}
"""Prompt formats by name: `plain`, and the ten of Figure 4a that ask for creativity."""

_BLANK = re.compile(r"\[(?:PROMPT SENTENCE|PROMPT LINE|NEWS HEADLINE|THEOREM QUESTION)\]")


def read_formats(path: Path, kind: str) -> dict[str, str]:
    """Prompts by the names of formats, with `{prompt}` for the beginning, from a file.

    That is a TOML table `prompts`, or the text of Lu et al. 2024 (.txt, .md), whose appendix B.1
    has the published ones: a plain one for each kind, and ten for novels. Raises `InputError`.
    """
    content, text = read_prompts(path, "{prompt}")
    if content is not None:
        return dict(content["prompts"])
    prompts = []
    for piece in _BLANK.split(text)[:-1]:
        # Without the mark of a figure or a heading, and what a page of the PDF has at its head.
        words = re.split(r"\n\s*\n|\]\(\)|!\[|^#+", piece, flags=re.MULTILINE)[-1].split()
        words = words[1:] if words[:1] == ["Preprint"] else words
        prompts.append(" ".join([*words, "{prompt}"]))
    # Those that ask for creativity end with the name of what follows.
    creative = [prompt for prompt in prompts if prompt.endswith(" Prompt: {prompt}")]
    plain = next((prompt for prompt in prompts if prompt not in creative and kind in prompt), None)
    if plain is None or len(creative) != len(FORMATS) - 1:
        raise InputError(
            f"{path}: does not contain the prompts of appendix B.1; use the paper's text as .txt "
            f"or .md, or prompts as .toml"
        )
    names = list(FORMATS)[1:] if kind == "novel" else []
    return {"plain": plain, **dict(zip(names, creative, strict=False))}


def opening_prompt(
    beginning: str, kind: str, format_: str, published: Mapping[str, str] | None = None
) -> Prompt:
    """The prompt for one beginning, in our words, or in those of a file."""
    if published is not None:
        return Prompt("", published[format_].replace("{prompt}", beginning.strip()) + "\n")
    what, called = KINDS[kind]
    return Prompt("", f"{FORMATS[format_].format(what=what)}\n\n{called}: {beginning.strip()}\n")


def human_row(text: Document, beginning: Document, kind: str, nlp: Any) -> Row:
    """A text by a person as a row beside those that models began alike (appendix B.2)."""
    cut = first_sentences(text.text, nlp, n_words=HUMAN_WORDS)
    return {
        "id": f"{text.id}_human",
        "text": cut,
        "missing_reason": None,
        "author": text.author or "human",
        "model": "human",
        "label": "human",
        "prompt_id": beginning.id,
        "prompt": beginning.text,
        "kind": kind,
        "format": None,
        "shared_prefix_chars": _shared(cut, beginning.text),
    }


def _shared(text: str, prompt: str) -> int:
    """How many characters of a text are its prompt."""
    start = len(text) - len(text.lstrip())
    return start + len(prompt) if text.startswith(prompt, start) else 0


async def write_openings(
    beginnings: Sequence[Document],
    model: Model,
    rows: KeptRows,
    *,
    kind: str,
    formats: Sequence[str] = ("plain",),
    published: Mapping[str, str] | None = None,
    sampling: Sampling,
    meter: Callable[[int], None] = lambda _: None,
) -> list[Row]:
    """A row for each beginning and format, with text or reason; by `published` prompts, or ours."""

    def wanted(beginning: Document, format_: str) -> Wanted:
        prompt = opening_prompt(beginning.text, kind, format_, published)
        made_of = {
            "id": f"{beginning.id}_{format_}",
            "model": model.name,
            "prompt": beginning.text,
            "kind": kind,
            "prompt_digest": text_digest(prompt.text),
            "sampling": str(sampling),
        }

        async def make() -> Row:
            answer = await model.ask(prompt, sampling)
            written = read_written(answer, has_title=kind in _TITLED)
            return {
                "id": made_of["id"],
                **asdict(written),
                "author": model.name,
                "model": model.name,
                "prompt_id": beginning.id,
                "prompt": beginning.text,
                "kind": kind,
                "format": format_,
                "label": "machine",
                "prompt_digest": text_digest(prompt.text),
                "shared_prefix_chars": _shared(written.text or "", beginning.text),
                "is_cut": answer.stop == "length",
                "sampling": made_of["sampling"],
            }

        return made_of, make

    grid = product(list(check_documents(beginnings)), formats)
    return await ask_for(starmap(wanted, grid), rows, model.n_parallel, meter)


def by_line(documents: Sequence[Document]) -> list[Document]:
    """One document per line, for texts with several lines: a file of first sentences."""
    parts = []
    for document in check_documents(documents):
        lines = [line.strip() for line in document.text.splitlines() if line.strip()]
        for number, line in enumerate(lines, 1):
            id_ = document.id if len(lines) == 1 else f"{document.id}:{number}"
            parts.append(replace(document, id=id_, text=line))
    return parts


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
    """An answer without the sentence it repeats: a person wrote that, and it would match itself."""
    words = TextSettings()
    prompted, answered = words.words(prompt), words.locate(text)
    n = len(prompted)
    if not n or answered.words[:n] != prompted:
        return text
    return text[int(answered.ends[n - 1]) :].lstrip(" \t\n.,;:!?\"'”’)*…—-")


def written_documents(rows: Sequence[Mapping[str, Any]]) -> Iterator[Document]:
    """What models wrote, as documents of a reference; rows without a text are skipped."""
    for row in rows:
        if row["text"] is not None:
            id_, text = f"{row['id']}_{row['model']}", without_prompt(row["text"], row["prompt"])
            yield Document(id_, text, row["model"], row["prompt_id"], {"prompt": row["prompt"]})

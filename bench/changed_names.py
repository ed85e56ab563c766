"""How many changes of a character's name are found in novels, and how many false alarms there are.

    python bench/changed_names.py [--books N] [--smoke]

Every note on a novel of ../shared/data as it is counts as a false alarm. Then, one at a time, each
of its twenty most frequent characters gets another name from one mention on, drawn between a fifth
and four fifths of the text, `PLANTED` times. Changes with twenty mentions before and after, which
the rule requires, are counted separately. The rule's thresholds were chosen on the thirteen novels
of `gutenberg_novels`; the other books are unseen.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from copy import copy
from dataclasses import replace

import corpora
from fabula.linguistic.cast import cast_of
from fabula.linguistic.metrics import TextTools
from fabula.style.lines import MIN_NAMED, LineNote, names
from fabula.text import read_documents
from fabula.text.reading import Reading

FILES = {
    "chosen on": "reference/gutenberg_novels.jsonl.gz",
    "unseen, Austen": "reference/austen_novels.jsonl.gz",
    "unseen, Melville": "reference/moby_dick.jsonl.gz",
    "unseen, for children": "cbt/children_books.jsonl.gz",
}
MIN_WORDS = 20_000
PLANTED = 4
NEW = "Zebulon"


def main() -> None:
    given = corpora.options(__doc__, books=(corpora.sized(100, 1), "of each file"))
    tools = TextTools("none")
    for what, path in list(FILES.items())[: corpora.sized(len(FILES), 1)]:
        found, n_planted, alarms, n_books = Counter[str](), Counter[str](), [], 0
        for title, text in list(novels(str(corpora.SHARED / path)))[: given.books]:
            n_books += 1
            read = tools.read(text)
            alarms += [f"{title}: {note.why}" for note in changes(read)]
            for kind, is_found in planted(read, [one.name for one in cast_of(read)]):
                n_planted[kind] += 1
                found[kind] += is_found
        print(f"{what}: {n_books} books, {len(alarms)} false alarms")
        for one in alarms:
            print(f"  {one}")
        for kind in sorted(n_planted):
            share = found[kind] / n_planted[kind]
            print(f"  {kind}: {found[kind]} of {n_planted[kind]} found, {share:.0%}", flush=True)


def novels(path: str) -> Iterator[tuple[str, str]]:
    books: dict[str, list[str]] = defaultdict(list)
    for document in read_documents([path]):
        books[str(document.meta.get("book"))].append(document.text)
    for title, parts in books.items():
        text = "\n\n".join(parts[: corpora.sized(len(parts), 2)])
        if corpora.SMOKE or len(text.split()) >= MIN_WORDS:
            yield title, text


def planted(read: Reading, people: list[str]) -> Iterator[tuple[str, bool]]:
    """Whether each planted change is noted at its place."""
    rng = random.Random(0)
    for person in people[:20]:
        name = person.split()[-1]
        places = [
            sentence.at(token)[0]
            for sentence in read.parsed
            for token in sentence.tokens
            if token.text == name
        ]
        n_chars = len(read.text)
        inner = [k for k, at in enumerate(places) if 0.2 * n_chars < at < 0.8 * n_chars]
        for k in rng.sample(inner, min(PLANTED, len(inner))):
            is_often = min(k, len(places) - k) >= MIN_NAMED
            notes = changes(with_change(read, name, places[k]))
            is_found = any(note.start == places[k] for note in notes)
            yield ("all", is_found)
            if is_often:
                yield (f"named {MIN_NAMED} times before and after", is_found)


def changes(read: Reading) -> list[LineNote]:
    return [note for note in names(read) if note.kind == "renamed"]


def with_change(read: Reading, name: str, start: int) -> Reading:
    """The text with another name from a place on; offsets are those of the text itself."""
    changed = copy(read)
    changed.parsed = [
        sentence
        if sentence.end <= start
        else replace(
            sentence,
            parsed=replace(
                sentence.parsed,
                tokens=tuple(
                    replace(token, text=NEW)
                    if token.text == name and sentence.at(token)[0] >= start
                    else token
                    for token in sentence.tokens
                ),
            ),
        )
        for sentence in read.parsed
    ]
    return changed


if __name__ == "__main__":
    main()

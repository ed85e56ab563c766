"""Who tells a chapter, and in which tense: how often small words outside speech say it rightly.

    python bench/telling.py [--smoke]

Chapters of public-domain novels of ../shared/data, each told by one of its people or by nobody
named, in the past tense, as anybody who has read them knows. Some of their chapters are not: a
letter, a preface by the author, a flight told in the present tense. Those count as wrong here.
"""

from __future__ import annotations

import argparse

import corpora
from fabula.measures.telling import telling_of
from fabula.text import TextSettings, read_documents
from fabula.text.speech import flags_within, speech_spans

IN_FIRST = {
    "The Adventures of Sherlock Holmes", "Great Expectations", "Dracula", "Wuthering Heights",
    "The War of the Worlds", "Adventures of Huckleberry Finn", "Treasure Island", "Frankenstein",
}  # fmt: skip
IN_THIRD = {
    "Emma", "Mansfield Park", "Northanger Abbey", "Persuasion", "Pride and Prejudice",
    "Sense and Sensibility", "A Tale of Two Cities", "The Picture of Dorian Gray", "Middlemarch",
    "The Call of the Wild", "The Scarlet Letter",
}  # fmt: skip


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    counts: dict[str, dict[str, int]] = {"first": {}, "third": {}, "past": {}}
    for document in read_documents(sorted((corpora.SHARED / "reference").glob("*novels.jsonl.gz"))):
        book = str(document.meta.get("book", document.title))
        known = "first" if book in IN_FIRST else "third" if book in IN_THIRD else None
        known = "third" if corpora.SMOKE else known
        if known is None:
            continue
        words = TextSettings().locate(document.text)
        spoken = flags_within(words.starts.tolist(), speech_spans(document.text))
        pairs = zip(words.words, spoken, strict=True)
        told = telling_of(word for word, is_spoken in pairs if not is_spoken)
        for what, said in ((known, told.person), ("past", told.tense)):
            found = counts[what]
            found[said or "cannot be told"] = found.get(said or "cannot be told", 0) + 1
    for what, found in counts.items():
        n = sum(found.values())
        shares = ", ".join(f"{said} {k}" for said, k in sorted(found.items(), key=lambda x: -x[1]))
        print(f"told in {what}: {n} chapters: {shares}")


if __name__ == "__main__":
    main()

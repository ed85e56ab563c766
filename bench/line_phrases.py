"""How often phrases stand in published fiction: what `fabula lines` calls a pet phrase beside.

    python bench/line_phrases.py

Counts runs of three to five words in the novels of the shared data (public domain, 1811 to 1913),
between marks of punctuation and of common words only, and writes those that stand there often to
src/fabula/measures/fiction_phrases.json.gz. Rarer ones are taken to stand there as often as the
rarest that are listed. Children's books and stories by people of today are left for labels.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter

import corpora
from fabula.measures.line_slips import PET_FILE, is_common
from fabula.measures.linguistic.lexis import Frequencies
from fabula.store import write_whole
from fabula.text import read_documents
from fabula.text.pipeline import load_pipeline

LEAST = 30
SIZES = (3, 4, 5)


def main() -> None:
    nlp, frequencies = load_pipeline(("tok2vec", "senter")), Frequencies()
    known: dict[str, bool] = {}
    counts: Counter[str] = Counter()
    n_words = 0
    for document in read_documents(sorted((corpora.SHARED / "reference").glob("*novels.jsonl.gz"))):
        row: list[str] = []
        for token in nlp.tokenizer(" ".join(document.text.split())):
            word = token.text.lower().replace("’", "'")
            is_word = any(character.isalnum() for character in word)
            n_words += is_word
            if is_word and word not in known:
                known[word] = is_common(frequencies, (word,))
            row = [*row[1 - SIZES[-1] :], word] if is_word and known[word] else []
            counts.update(" ".join(row[-n:]) for n in SIZES if n <= len(row))
    kept = {phrase: n for phrase, n in sorted(counts.items()) if n >= LEAST}
    held = {"n_words": n_words, "least": LEAST, "counts": kept}
    data = json.dumps(held, separators=(",", ":"), ensure_ascii=False).encode()
    path = corpora.SHARED / PET_FILE.name if corpora.SMOKE else PET_FILE
    write_whole(path, gzip.compress(data, 9, mtime=0))
    print(f"{n_words:,} words, {len(kept):,} phrases, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

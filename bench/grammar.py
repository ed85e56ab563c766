"""How often each of Harper's rules fires on edited prose: python bench/grammar.py PATH...

A rule that fires where nothing is wrong is noise (`_NOISE` in text/grammar.py).
PATHs are texts as `fabula profile` reads them. 530,000 words of novels, children's books and
speeches took half an hour on a core that others used too.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import harper

import corpora
from fabula.text import read_documents
from fabula.text.grammar import linter_of
from fabula.text.pipeline import load_pipeline
from fabula.text.sentences import paragraphs_of, sentences_of

_EXAMPLES = Path(__file__).parents[1] / "examples" / "the-count.txt"


def main() -> None:
    asked = corpora.options(
        __doc__, {"paths": {"nargs": "*", "default": [str(_EXAMPLES)]}},
        paragraphs=(7000, "how many are drawn"), all=(False, "also rules that do not count"),
    )  # fmt: skip
    paths = [str(_EXAMPLES)] if corpora.SMOKE else asked.paths
    paragraphs = [
        paragraph
        for document in read_documents(paths)
        for paragraph in paragraphs_of(document.text)
        if len(paragraph.split()) > 5
    ]
    n = min(len(paragraphs), 3 if corpora.SMOKE else asked.paragraphs)
    drawn = random.Random(0).sample(paragraphs, n)
    linter = (harper.Linter if asked.all else linter_of)(harper.Dialect.AMERICAN)
    nlp = load_pipeline(("senter",))
    fired: Counter[str] = Counter()
    n_sentences = 0
    for sentences in sentences_of(drawn, nlp):
        n_sentences += len(sentences)
        for sentence in sentences:
            for rule, lints in linter.organized_lints(sentence).items():
                fired[rule] += len(lints)
    assert n_sentences
    print(f"{n_sentences:,} sentences")
    for rule, count in (+fired).most_common():
        print(f"{1000 * count / n_sentences:8.2f} in 1,000  {rule}")


if __name__ == "__main__":
    main()

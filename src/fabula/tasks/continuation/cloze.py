"""Passages by the rule of the Children's Book Test: the last sentence repeats a word of its story.

Hill, Bordes, Chopra and Weston 2016 (arXiv 1511.02301): a word is removed from the sentence after a
context of 20, and must be chosen among ten words of its class. So only sentences count that have a
word of the class which also occurs in the context; they are longer than others. Here the classes
come from the pipeline's parts of speech, while the released items used another tagger: common nouns
(CN, `NOUN`), names (NE, `PROPN`), verbs (V, `VERB`) and prepositions (P, `ADP`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fabula.tasks.continuation.story_passages import Passage
from fabula.text.sentences import encodable

ClozeKind = Literal["CN", "NE", "V", "P"]
_CLASSES: Mapping[str, ClozeKind] = {"NOUN": "CN", "PROPN": "NE", "VERB": "V", "ADP": "P"}
_N_CANDIDATES = 10
_BLANK = "XXXXX"


@dataclass(frozen=True, slots=True)
class Cloze:
    """A passage with a word of its last sentence removed, to be chosen from candidates."""

    passage: Passage
    kind: ClozeKind
    answer: str
    question: str
    """The last sentence, with XXXXX in place of the word."""
    candidates: tuple[str, ...]
    """Up to ten words of the class from the whole passage, including the answer."""

    def to_row(self) -> dict[str, Any]:
        """The passage's row, with the class added to its id, and the question."""
        row = self.passage.to_row()
        return {
            **row,
            "id": f"{row['id']}:{self.kind}",
            "kind": self.kind,
            "question": self.question,
            "answer": self.answer,
            "candidates": list(self.candidates),
        }


@dataclass(frozen=True, slots=True)
class _Word:
    kind: ClozeKind
    text: str
    start: int

    @property
    def key(self) -> str:
        """The key by which occurrences of a word are matched: a name keeps its capitals."""
        return self.text if self.kind == "NE" else self.text.lower()


def cloze_items(
    passages: Sequence[Passage], kinds: Sequence[ClozeKind], nlp: Any, seed: int
) -> Iterator[Cloze]:
    """Yield an item for each passage and class whose last sentence repeats a word of the class.

    `nlp` is spaCy's pipeline with parts of speech. Where several words qualify, the seed decides
    which is removed, and which others are the candidates.
    """
    words = _words_of((text for one in passages for text in (*one.context, one.gold)), nlp)
    for passage in passages:
        before = [word for text in passage.context for word in words[text]]
        for kind in dict.fromkeys(kinds):
            known = {word.key: word.text for word in before if word.kind == kind}
            own = [word for word in words[passage.gold] if word.kind == kind]
            recurring = [word for word in own if word.key in known]
            if not recurring:
                continue
            rng = random.Random(f"{seed} {kind} {passage.id}")
            answer = rng.choice(recurring)
            others = {**known, **{word.key: word.text for word in own}}
            del others[answer.key]
            n_others = min(_N_CANDIDATES - 1, len(others))
            candidates = [answer.text, *rng.sample(list(others.values()), n_others)]
            rng.shuffle(candidates)
            gold, end = passage.gold, answer.start + len(answer.text)
            question = gold[: answer.start] + _BLANK + gold[end:]
            yield Cloze(passage, kind, answer.text, question, tuple(candidates))


def _words_of(sentences: Iterable[str], nlp: Any) -> dict[str, list[_Word]]:
    """The words of the four classes in each sentence."""
    distinct = list(dict.fromkeys(sentences))
    docs = nlp.pipe(map(encodable, distinct), batch_size=256)
    return {
        text: [
            _Word(_CLASSES[token.pos_], token.text, token.idx)
            for token in doc
            if token.pos_ in _CLASSES and any(map(str.isalpha, token.text))
        ]
        for text, doc in zip(distinct, docs, strict=True)
    }

"""The sieve on real passages annotated by hand, and rule by rule."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import if_installed

from fabula.continuation.passages import book_chapters, passages_of
from fabula.linguistic.coreference import entities_of, in_context
from fabula.text import find_files, read_documents
from fabula.text.parsing import Parser

GOLDEN = Path(__file__).parents[1] / "golden" / "coreference.json"
N_SENTENCES = 13


@pytest.fixture(scope="module")
def parser() -> Parser:
    return if_installed(Parser)


def annotated_passages(shared_data: Path) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """The annotation of each passage, and its sentences, cut from the books again."""
    golden = {row["passage"]: row for row in json.loads(GOLDEN.read_text(encoding="utf-8"))}
    for name, field in (("cbt_test_3books", "sentences"), ("children_books", "text")):
        files = find_files([str(shared_data / "cbt" / f"{name}.jsonl.gz")], format_=None)
        every = read_documents(
            files, text_field=field, id_field="id", format_=None, meter=lambda _: None
        )
        documents = [one for one in every if any(name.startswith(f"{one.id}/") for name in golden)]
        for passage in passages_of(book_chapters(documents), N_SENTENCES, N_SENTENCES + 1):
            if passage.id in golden:
                yield golden[passage.id], [*passage.context, passage.gold]


def test_precision_and_recall_on_real_passages(parser: Parser, shared_data: Path):
    """Of eight passages, as docs/profile.md has them; a link is right where its antecedent is."""
    n_mentions = n_right = n_linked = n_known = 0
    for row, sentences in annotated_passages(shared_data):
        assert hashlib.sha256("\n".join(sentences).encode()).hexdigest() == row["sha256"]
        found = [e for part in entities_of(list(parser.parse(sentences))) for e in part]
        labels = [mention[3] for mention in row["mentions"]]
        assert len(found) == len(labels)
        n_mentions += len(labels)
        for k, (entity, label) in enumerate(zip(found, labels, strict=True)):
            before = [j for j in range(k) if entity >= 0 and found[j] == entity]
            n_linked += bool(before)
            n_known += label is not None and label in labels[:k]
            n_right += bool(before) and label is not None and labels[before[-1]] == label
    assert n_mentions == 629
    assert n_right / n_linked >= 0.745
    assert n_right / n_known >= 0.685


@pytest.mark.parametrize(
    ("context", "sentence", "flags"),
    [
        # equal words; an indefinite phrase is new
        (["The wolf slept."], "The wolf saw a wolf.", [True, False]),
        # a name and a part of it
        (["Mr. Darcy bowed."], "Darcy left the room.", [True, False]),
        # pronouns by gender and number
        (["The queen met a soldier."], "She thanked him.", [True, True]),
        (["The lamp stood there."], "They broke it.", [False, True]),
        # "he saw him": two arguments of one verb are two
        (["The boy ran."], "He saw him.", [True, False]),
        # who speaks
        (["The fox came."], '"I am hungry," said the fox.', [True, True]),
        # "it" that means nothing
        (["The box was open."], "It was night.", [False, False]),
        # possessors tell things apart
        (["Her hat was red."], "His hat was red.", [False]),
    ],
)
def test_rule(parser: Parser, context: list[str], sentence: str, flags: list[bool]):
    parsed = list(parser.parse([*context, sentence]))
    assert in_context(parsed[:-1], parsed[-1:])[0][: len(flags)] == flags


def test_one_continuation_does_not_change_another(parser: Parser):
    context, *others = parser.parse(["A dog ran.", "The dog bit a cat.", "It bit."])
    assert in_context([context], others)[1] == in_context([context], others[1:])[0]

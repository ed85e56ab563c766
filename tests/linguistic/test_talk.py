"""Who says what, by the names beside speech: places written out by hand."""

import re

import pytest

from fabula.linguistic.cast import Person, Talk, speakers_of, talk_of
from fabula.text.reading import Reading


def told(text: str) -> list[str | None]:
    """The speakers of a text whose people are Anne, Marilla and Mr. Darcy."""
    people = [
        Person(name, (name,), tuple(match.span() for match in re.finditer(form, text)))
        for name, form in [
            ("Anne", "Anne(?: Shirley)?"),
            ("Marilla", "Marilla"),
            ("Mr. Darcy", r"(?:Mr\. )?Darcy"),
        ]
    ]  # fmt: skip
    return speakers_of(Reading(text), people)


@pytest.mark.parametrize(
    ("text", "speakers"),
    [
        ('"I will go there," said Anne.', ["Anne"]),
        ('"I will go there," Anne said.', ["Anne"]),
        ('"I will go there," replied poor Anne Shirley to Marilla.', ["Anne"]),
        ('"You may not go," said Mr. Darcy. "It is too late now."', ["Mr. Darcy", "Mr. Darcy"]),
        ('Marilla said softly, "You may not go there."', ["Marilla"]),
        ('Anne looked up. Marilla cried: "You may not go there."', ["Marilla"]),
        ('"You may not go," she said to Anne.', [None]),
        ('"You may not go," said the aunt of Anne.', [None]),
        ('"You may not go." Anne went all the same.', [None]),
        ('"Anne, may I go there?"\n\n"You may not," said Marilla.', [None, "Marilla"]),
        ('"Do go," said Anne. "No, I will not," said Marilla. "I am too old."',
         ["Anne", "Marilla", None]),
        ('"Do go there," said Anne. "But why not?" I said, and went.', ["Anne", None]),
        ('He met Anne. It was late. "You may not go," said he.', [None]),
    ],
)  # fmt: skip
def test_a_speech_is_of_whoever_is_named_beside_it(text: str, speakers: list[str | None]):
    assert told(text) == speakers


def test_speeches_and_words_are_summed_by_speaker():
    people = [Person(name, (name,), ()) for name in ("Anne", "Marilla", "Ruby")]
    found = talk_of(people, ["Anne", None, "Marilla", "Anne"], [3, 9, 5, 4])
    assert found == {"Anne": Talk(2, 7), "Marilla": Talk(1, 5)}

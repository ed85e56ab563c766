"""Notes on the lines of a draft: each kind is found where it was put, and not where it was not."""

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.commands import invoke

from fabula.core.types import Document
from fabula.linguistic.metrics import TextTools
from fabula.style.lines import LINE_KINDS, LineReview, is_misspelt, read_lines

PLAIN = (
    "The ferry came in at noon with nobody on deck. Anna put down her basket and counted the "
    "ropes, as her father had taught her. Three were missing. She went to ask the pilot, who was "
    "asleep under a tree and did not want to be asked anything before his dinner.\n\n"
    "“Where is everybody?” she said.\n\n“At the wedding,” said the pilot. “Go home.”"
)


SEA = " ".join(
    f"The {one} turned at noon. She counted every {one} again. Nobody came to the {one}."
    for one in ("tide", "wind", "boat", "net", "rope", "lamp", "stove")
)
"""Twenty-one sentences that name nobody."""


def told_of(*names: str) -> str:
    """Twenty-two sentences about each person in turn."""
    acts = ("rowed home", "mended a net", "lit the stove", "counted the boats", "read a letter")
    return " ".join(
        f"On day {k} of the voyage {name} {acts[k % 5]}." for name in names for k in range(1, 23)
    )


opened = cache(TextTools)


def read(text: str) -> LineReview:
    return read_lines(opened(), Document("d", text))


def found(text: str) -> list[tuple[str, str]]:
    return [(note.kind, text[note.start : note.end]) for note in read(text).notes]


DIALECT = (
    "I warn't tired, and I knowed it. They was late, but it ain't my way to say so. We was going "
    "to the river, and nobody knowed why."
)


@pytest.mark.parametrize(
    "text",
    [
        # Foreign, dialect, old verbs, and what somebody spells as they speak.
        "C'est beaucoup que le jugement des hommes; tard il devient efficace, they read aloud.",
        "“Thou beliest thine own heart,” said the old captain to his mate.",
        "“Looky here, sumfn's wrong wid dey boat,” the old man said at last.",
        "The dog warn't there when they came home from the harbour.",
        DIALECT,
        "[Footnote 1: A book.] [Footnote 2: A map.] [Footnote 3: A bell.] [Footnote 4: A lamp.]",
        # Who is from a place is no misspelling of it.
        "They went to Kjoge by boat. Kjoge was small. She liked Kjoge. A Kjoger hen sat there.",
    ],
)  # fmt: skip
def test_what_was_labelled_wrong_in_novels_is_not_noted(text: str):
    kinds = {kind for kind, _ in found(text)}
    assert not kinds & {"spelling", "grammar", "beginning", "name"}


def test_what_is_wrong_is_still_noted():
    assert ("spelling", "recieve") in found("“They did not recieve the letter,” said the clerk.")
    assert ("grammar", "was") in found("They was late for the boat, and nobody came.")


def test_a_plain_text_has_nothing_to_note():
    assert found(PLAIN) == []


@pytest.mark.parametrize(
    ("kind", "place", "text"),
    [
        ("echo", "lantern", "A lantern hung from the beam. Somebody had left the lantern burning."),
        ("spelling", "recieve", "They did not recieve the letter until spring."),
        ("grammar", "go", "He go to the harbour in the morning, and nobody knew why."),
        ("stock", "Butterflies in her stomach", "Butterflies in her stomach, Anna rang the bell."),
        ("stock", "at the end\nof the day", "It was, at the end\nof the day, a question of bread."),
        ("tag", "smiled", "“I never saw him,” she smiled."),
        ("beginning", "It was", "It was cold. It was a Monday. It was far to go."),
        ("renamed", "Victor", told_of("Henry", "Victor")),
        (
            "sentence", "Nobody had lived there since the fire.",
            "Nobody had lived there since the fire. It stood open. "
            "Nobody had lived there since the fire.",
        ),
        (
            "name", "Kathrine",
            "Katherine came first. Later we saw Katherine dance. All looked at Katherine then, and "
            "when Kathrine fell, nobody laughed.",
        ),
        (
            "name", "Eleano",
            "Eleanor came first. Later we saw Eleanor dance. All looked at Eleanor then, and when "
            "Eleano fell, nobody laughed.",
        ),
        (
            "name", "Waiter",
            "Walter came first. Later we saw Walter dance. All looked at Walter then, and when "
            "Waiter fell, nobody laughed.",
        ),
    ],
)  # fmt: skip
def test_what_was_put_there_is_noted_at_its_place(kind: str, place: str, text: str):
    assert (kind, place) in found(text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("echo", "They tore the contract limb by limb, shoulder to shoulder, without a word."),
        ("echo", "“A lantern!” he said. “Give me the lantern and go.”"),
        ("spelling", "A tri-colored flag hung there, unearthly in the light."),
        ("spelling", "We asked for Zorvath at the gate, and old Zorvath came."),
        ("tag", "“I never saw him.” She smiled."),
        ("tag", "“Get out,” he said. Slowly the door opened."),
        ("beginning", "“She took a cup.” “She took the bread.” “She took her coat.”"),
        # The first name recurs; two names could follow it; the second begins much later.
        ("renamed", told_of("Henry", "Victor") + " Then Henry came back."),
        ("renamed", told_of("Henry", "Victor") + f" {told_of('Martin')}"),
        ("renamed", told_of("Henry") + f" {SEA}{SEA} " + told_of("Victor")),
        ("name", "Mason came with Jason. Mason spoke, Mason sang, and Mason left."),
        (
            "name",
            "The Count rose. Then the Count sat, and the Count spoke; after that, said the Count, "
            "he would go before the Court.",
        ),
        (
            "name",
            "The Americans came. We met Americans, and the Americans met us; after the Americans "
            "had left, all the Americas were quiet.",
        ),
        ("name", "The Miller came. Miller sat, Miller ate; the Millers are all like that."),
        ("beginning", "She took a cup. She took some bread. She took off."),
        ("beginning", "Maybe it was fog. Maybe it was rain. Maybe it was neither."),
        ("sentence", "“Who has it now, and where?” he asked. “Who has it now, and where?”"),
        ("spelling", "He went wanderin’ about, and wanderin’ he fell."),
        ("grammar", "“He go to the harbour in the morning,” she said."),
        ("grammar", "She held him out to be an honest man, and found an urn in an hotel."),
        ("grammar", "They stood at the fire, longing for the re-entrance of her elder cousin."),
        ("grammar", "She told her her own name, and no no, it was not hers."),
        ("tag", "“Is he there?” said Cecily timidly."),
    ],
)
def test_what_only_looks_like_it_is_not_noted(kind: str, text: str):
    assert kind not in {name for name, _ in found(text)}


def test_a_long_sentence_is_long_beside_the_others():
    long = "He walked and " * 25 + "stopped."
    assert ("long", long) in found(f"{PLAIN} {long}")
    assert not any(kind == "long" for kind, _ in found(f"{long} {long.replace('stop', 'fell')}"))


def test_straight_quotation_marks_give_the_same_notes():
    text = PLAIN + " “I never saw him,” she smiled. A lantern hung there; the lantern smoked."
    straight = text.replace("“", '"').replace("”", '"')
    assert found(text) == found(straight)
    assert found(text)


@pytest.mark.parametrize(
    ("text", "reason"), [("", "no_words"), ("Der Hund lief über die Straße. " * 9, "German")]
)
def test_what_cannot_be_read_has_a_reason_and_no_notes(text: str, reason: str):
    review = read(text)
    assert review.notes == ()
    assert reason in str(review.missing_reason)
    # Words of another language were not counted, which is not to have none.
    assert review.n_words == (None if text else 0)


def test_those_that_matter_most_are_shown_in_the_order_of_the_text():
    text = (
        "It was cold. It was late. It was far. "
        + PLAIN
        + " They recieve it. "
        + "A word fell. " * 8
    )
    review = read(text)
    all_notes = list(review.notes)
    assert review.first(0) == all_notes
    one = review.first(1)
    assert [note.kind for note in one] == [max(all_notes, key=lambda n: n.strength).kind]
    assert [n.start for n in review.first(10)] == sorted(n.start for n in review.first(10))


def test_plain_slips_come_before_what_somebody_says_and_before_rare_words():
    # Of the three, only "seperate" is an error; "thriven" is in no dictionary of the checker.
    text = (
        "“That is t' fowld of the farm,” said Joseph. It had thriven there, while the lamb slept. "
        "It was a seperate matter, and nobody spoke of it again."
    )
    notes = [one for one in read(text).notes if one.kind == "spelling"]
    places = [text[one.start : one.end] for one in sorted(notes, key=lambda one: -one.strength)]
    assert places == ["seperate", "thriven", "fowld"]


def test_a_capitalized_noun_has_one_spelling():
    text = (
        "We serve our Nation, and the Nation is strong. " * 3 + "They defend our Naiton with care."
    )
    (note,) = [one for one in read(text).notes if one.kind == "name"]
    assert text[note.start : note.end] == "Naiton"
    assert note.why == "“Naiton” here, but “Nation” 6 times in this text."


def test_words_made_of_others_and_words_of_published_books_are_not_misspellings():
    meant = ("foemen", "leant", "fadeless", "unbrimmed", "gaol", "kelpy")
    slips = ("slighty", "prefered", "untill", "pryed", "truely")
    text = " ".join(f"It was what everybody called {word} at that time." for word in meant + slips)
    notes = [one for one in read(text).notes if one.kind == "spelling"]
    found = [text[one.start : one.end] for one in notes]
    assert found == [*slips]


def test_a_checkers_question_ends_with_its_own_mark():
    text = "The boarder between the two countries was closed, and nobody crossed it that night."
    (note,) = [one for one in read(text).notes if one.kind == "grammar"]
    assert note.why.startswith("Did you mean “border”? Perhaps “border”")


def test_kinds_are_ordered_by_how_much_they_matter():
    weights = [kind.weight for kind in LINE_KINDS.values()]
    assert weights == sorted(weights, reverse=True)


def test_a_kind_is_on_unless_it_is_known_to_be_wrong_more_often_than_right():
    counts = {kind.id: (kind.n_right, kind.n_labelled) for kind in LINE_KINDS.values()}
    off = [kind.id for kind in LINE_KINDS.values() if not kind.is_on]
    assert off == [name for name, (right, n) in counts.items() if 2 * right < n]
    assert off == ["stock", "echo", "long"]
    assert LINE_KINDS["grammar"].shown == "right 85 %"
    assert LINE_KINDS["name"].shown == ""


NAME = st.text("abcdeR", min_size=5, max_size=8).map(str.capitalize)


@given(NAME, NAME)
@settings(max_examples=300)
def test_a_misspelling_is_one_edit_away_as_a_slow_oracle_has_it(name: str, other: str):
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    near = {name[:k] + name[k + 1 :] for k in range(len(name))}
    near |= {name[:k] + c + name[k:] for k in range(len(name) + 1) for c in letters}
    near |= {name[:k] + c + name[k + 1 :] for k in range(len(name)) for c in letters}
    near |= {name[:k] + name[k + 1] + name[k] + name[k + 2 :] for k in range(len(name) - 1)}
    is_plural = {name + "s", other + "s"} & {name, other}
    wanted = name != other and name[0] == other[0] and other in near and not is_plural
    assert is_misspelt(name, other) == wanted


def test_the_plainest_notes_of_a_kind_come_first():
    """Transposed letters before an old word, a long repeated sentence before a short one."""
    text = (
        "He was in pattens. They did not seocnd him. Joe gave me some more gravy. He ate. "
        "Joe gave me some more gravy. It stood open. Nobody had lived there since the fire that "
        "summer. It rained. Nobody had lived there since the fire that summer."
    )
    notes = read(text).notes
    first = {
        kind: max((note for note in notes if note.kind == kind), key=lambda note: note.strength)
        for kind in ("spelling", "sentence")
    }
    assert {kind: text[note.start : note.end] for kind, note in first.items()} == {
        "spelling": "seocnd",
        "sentence": "Nobody had lived there since the fire that summer.",
    }


def test_the_command_lists_notes_with_lines_and_keeps_the_same_bytes(tmp_path: Path):
    draft = tmp_path / "draft.txt"
    draft.write_text(f"{PLAIN}\n\nThey did not recieve it.\n\n“I never saw him,” she smiled.\n")
    runs = [invoke("report", "--only", "lines", draft, "--json").stdout for _ in range(2)]
    assert runs[0] == runs[1]
    (row,) = json.loads(runs[0])
    assert [(n["line"], n["kind"], n["text"]) for n in row["notes"]] == [
        (7, "spelling", "recieve"), (9, "tag", "smiled"),
    ]  # fmt: skip
    assert [n["precision"] for n in row["notes"]] == [0.6, 1.0]
    shown = invoke("report", "--only", "lines", draft, "--without", "tag").output
    assert "1 spelling" in shown
    assert "smiled" not in shown
    draft.write_text("He fell head over heels.")
    assert "nothing to note" in invoke("report", "--only", "lines", draft).output
    more = invoke("report", "--only", "lines", draft, "--with", "stock").output
    assert "1 stock" in more.splitlines()[0]
    wrong = invoke("report", "--only", "lines", draft, "--without", "style", code=2)
    assert "'style': must be one of originality, fluency" in wrong.output

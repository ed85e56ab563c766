"""Words that are wrong in their place: a random model beside an oracle, then the embedded one."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.commands import invoke
from tests.conftest import if_installed

from fabula.core.errors import ModelError
from fabula.core.types import Document
from fabula.jobs.job import SILENT
from fabula.models.surprisal import SurprisalModel, Swap
from fabula.style.contexts import suspects
from fabula.style.lines import LineReview
from fabula.style.proofreading import (
    WHOLE_WORDS,
    WrongWord,
    alternatives,
    likely_wrong,
    proofread_drafts,
    wrong_words,
)

pytest.importorskip("gguf", reason="surprisals need what 'fabula[local]' installs")
pytest.importorskip("xllamacpp", reason="surprisals need what 'fabula[local]' installs")

PLAIN = (
    "The weather had been poor all week, and nobody expected the ferry before evening. There were "
    "only three people on the quay, and they had said nothing for an hour."
)
WRONG = (
    "It was to cold to go out without them, and they walked passed the church.\n\nThe rope fell "
    "before the the tide turned. “Whose there?” he called, but only the wind answered."
)


@pytest.fixture(scope="module")
def small(small_model: Path) -> Iterator[SurprisalModel]:
    with SurprisalModel(small_model) as model:
        yield model


@pytest.fixture(scope="module")
def embedded() -> Iterator[SurprisalModel]:
    with if_installed(lambda: SurprisalModel("local")) as model:
        yield model


def noted(model: SurprisalModel, text: str) -> list[tuple[str, str]]:
    return [
        (text[one.start : one.end], one.other) for one in wrong_words(model, Document("d", text))
    ]


@pytest.mark.parametrize("word", ["hair", ""])
@pytest.mark.parametrize("other", ["heir", "y", "", "é"])
def test_a_swap_gains_what_two_whole_readings_differ_by(
    small: SurprisalModel, word: str, other: str
):
    """Of the exchanged or added tokens, which are bytes here, and the eight after them."""
    before, after = "They sold ", " coats on the quay.\n"
    n = len(before)
    (gain,) = small.gains(before + word + after, [Swap(n, n + len(word), other, -1e9)])
    if not (word or other):
        assert gain is None
        return

    def nats(word: str) -> float:
        scored = small.score(before + word + after)
        end = n + len(word) + 8
        kept = (scored.starts >= n) & (scored.starts < end)
        return math.fsum(scored.nats[kept])

    assert gain == pytest.approx(nats(word) - nats(other), abs=1e-4)
    assert small.gains(before + word + after, [Swap(n, n + len(word), other, 1e9)]) == [None]


def test_a_model_that_keeps_nothing_of_what_it_read_is_refused(
    small_model: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("fabula.models.surprisal.llama_layout", lambda path: None)
    drafts, lines = [Document("d", WRONG)], [LineReview(9, (), "lines|rules:1")]
    with SurprisalModel(small_model) as model:
        with pytest.raises(ModelError, match="cannot compare words with this model"):
            proofread_drafts(lambda: model, drafts, lines, SILENT, is_asked=True)
        assert proofread_drafts(lambda: model, drafts, lines, SILENT, is_asked=False) == lines


def test_a_changed_paragraph_is_read_alone_and_a_stop_keeps_what_was_read(
    small: SurprisalModel, monkeypatch: pytest.MonkeyPatch
):
    # With one word of a set each: a random model reads all that are likely to it.
    climbed = "Margaret climbed quickly under seventeen grey clouds. Nobody followed her. " * 3
    paragraphs = [f"Part {k}. {climbed}".rstrip() for k in range(40)]
    text = "\n\n".join(paragraphs)
    n_read = 0

    def gains(text: str, swaps: list[Swap]) -> list[float | None]:
        nonlocal n_read
        n_read += len(text)
        return original(text, swaps)

    def stop(_: int) -> None:
        if n_read > len(text) / 2:
            raise KeyboardInterrupt

    def read(text: str, advance: Callable[[int], object] = int) -> list[WrongWord]:
        nonlocal n_read
        n_read = 0
        return wrong_words(small, Document("d", text), advance)

    original = small.gains
    monkeypatch.setattr(small, "gains", gains)
    with pytest.raises(KeyboardInterrupt):
        read(text, stop)
    first, n_rest = read(text), n_read
    assert read(text) == first
    assert n_read == 0
    paragraphs[20] = paragraphs[20].replace("grey", "darkening")
    read("\n\n".join(paragraphs))
    n_changed = n_read
    # The same without what is kept.
    read("\n\n".join(paragraphs).replace("grey", "blue"))
    assert 0 < n_changed < n_read / 3
    assert 0 < n_rest < n_read * 2 / 3


def test_sets_are_of_several_words_in_lower_case_and_symmetric_but_for_verbs():
    listed = alternatives()
    for word, others in listed.items():
        assert word == word.lower()
        assert word not in others
        alike = (other for other, kind in others.items() if kind != "verb")
        assert all(listed[other][word] == others[other] for other in alike)
    assert listed["take"] == {"takes": "verb", "took": "verb"}


def test_wrong_words_are_noted_and_what_is_meant_is_not(embedded: SurprisalModel):
    assert noted(embedded, f"{PLAIN}\n\n{WRONG}") == [
        ("to", "too"), ("passed", "past"), ("Whose", "Who's"),
    ]  # fmt: skip
    lacking = "“I have to tell you of it,” she said, and he wanted go home."
    assert noted(embedded, f"{PLAIN}\n\n{lacking}") == [("go", "to go")]
    amiss = (
        "A van passed with its horn going, and Alwyn raise one hand to the mirror. He had been "
        "practising on his uncles farm. Nobody spoke she went and made some tea. “What did you "
        "find,” he asked, like a man come to apolagise for something. The tide would push them "
        "both down the bristol channel. “I know that he is dead Gail. I went to the funeral.”"
    )
    assert noted(embedded, f"{PLAIN}\n\n{amiss}") == [
        ("raise", "raised"), ("uncles", "uncle's"), ("spoke she", "spoke. She"), ("find,", "find?"),
        ("apolagise", "apologise"), ("bristol", "Bristol"), ("dead Gail", "dead, Gail"),
    ]  # fmt: skip
    # Names, words in capitals, headings, verse, and what is right.
    meant = (
        "# Whose There\n\nShe met Mr Passed, and IT WAS TO COLD to stay. He had had enough of it, "
        "and she knew that that was a lie.\n\nOf arms I sing and of the see,\nThe wind that blue "
        "so fair for me,\nThe knight was to long by the tree,\nAnd passed the night their merrily."
    )
    assert noted(embedded, f"{PLAIN}\n\n{meant}") == []


def test_a_word_is_suspected_by_the_words_around_it():
    right = (
        'She knew that they had gone through the gate, though it was late. "There you are," he '
        "said. It was quite dark, and its door had a new lock. By then the weather was worse than "
        "ever, and nobody knew whether their boat was loose."
    )
    assert list(suspects(right)) == []
    assert list(suspects("")) == []
    wrong = {
        "the rain came threw the roof": ("threw", "through"),
        "he put his head round it's edge": ("it's", "its"),
        "nobody knew weather she would come": ("weather", "whether"),
        "her hands where shaking so hard": ("where", "were"),
    }
    for words, noted in wrong.items():
        text = f"{right} After that {words}."
        assert [(text[one.start : one.end], one.other) for one in suspects(text)] == [noted]
    # Words in capitals and names are not.
    assert list(suspects(f"{right} After that Mr Threw and the rain CAME THREW the roof.")) == []


def test_of_a_long_text_only_suspects_are_read(
    embedded: SurprisalModel, monkeypatch: pytest.MonkeyPatch
):
    n_read = 0

    def gains(text: str, swaps: list[Swap]) -> list[float | None]:
        nonlocal n_read
        n_read += len(text)
        return original(text, swaps)

    original = embedded.gains
    monkeypatch.setattr(embedded, "gains", gains)
    plain = "\n\n".join([PLAIN] * (WHOLE_WORDS // len(PLAIN.split()) + 1))
    # The missing “to” is found in texts that are read whole.
    wrong = f"# Through\n\n{WRONG} Then he wanted go home. The rain came threw the roof."
    text = f"{plain}\n\n{wrong}\n\n{plain}"
    assert noted(embedded, text) == [
        ("to", "too"), ("passed", "past"), ("Whose", "Who's"), ("threw", "through"),
    ]  # fmt: skip
    assert 0 < n_read < 5_000
    n_read = 0
    assert len(noted(embedded, f"{PLAIN}\n\n{text}")) == 4
    assert n_read == 0
    verse = "The rain came threw the roof,\nThe wind came threw the door,\nAnd it was loud."
    assert noted(embedded, f"{plain}\n\n{verse}") == []


@pytest.mark.parametrize("asked", [("--only", "lines"), ("--out", "page.html")])
def test_suspected_words_are_read_unasked_where_there_is_a_model(
    asked: tuple[str, ...],
    embedded: SurprisalModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    pytest.importorskip("spacy", reason="lines need what 'fabula[nlp]' installs")
    monkeypatch.chdir(tmp_path)
    draft = Path("draft.txt")
    # The missing “to” is found in texts that are read whole.
    wrong = "Her hands where shaking so hard, and he wanted run home."
    draft.write_text(f"{PLAIN} {wrong}\n", encoding="utf-8")

    def texts(*more: str) -> list[str]:
        read = json.loads(invoke("report", draft, *asked, "--json", *more).stdout)
        row = read[0] if isinstance(read, list) else read
        lines = row["texts"][0]["lines"] if "texts" in row else row
        assert ("|whole:0" in lines["signature"]) == bool(lines["notes"])
        assert not any(one["part"] == "proofreading" for one in row.get("left_out", ()))
        return [note["text"] for note in lines["notes"]]

    assert texts() == ["where"]
    assert texts("--without", "confused") == []
    monkeypatch.setenv("FABULA_LOCAL_MODEL", "none.gguf")
    assert texts() == []


def test_a_model_that_fails_is_not_taken_for_one_that_finds_nothing(
    embedded: SurprisalModel, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> None:
        raise ModelError("the model failed")

    monkeypatch.setattr(embedded, "gains", fail)
    draft = Document("d", f"{PLAIN} My feet where cold.")
    lines = LineReview(9, (), "lines|rules:1")
    with pytest.raises(ModelError, match="the model failed"):
        proofread_drafts(lambda: embedded, [draft], [lines], SILENT, is_asked=False)


def test_where_errors_are_rare_a_word_must_gain_more():
    found = [WrongWord(k, k + 1, "a", gain, "set") for k, gain in enumerate((4.5, 7.0, 9.0))]
    gains = {
        n: [one.gain for one in likely_wrong(found, n, 1_000)] for n in (9, 1, 0)
    }  # fmt: skip
    # By the logarithm of six errors in 1,000 words over those that the text has, here with half an
    # error more, and the one word that gains five nats more than its margin: 0, 0.9 and 1.4.
    assert gains == {9: [4.5, 7.0, 9.0], 1: [7.0, 9.0], 0: [7.0, 9.0]}
    assert [one.gain for one in likely_wrong(found, 13, 70_000)] == [9.0]
    assert likely_wrong([], 0, 0) == []


@pytest.mark.long
def test_one_thread_and_two_find_the_same_bytes(
    embedded: SurprisalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found = []
    for n_threads in ("1", "2"):
        monkeypatch.setenv("FABULA_THREADS", n_threads)
        monkeypatch.setenv("FABULA_CACHE", str(tmp_path / n_threads))
        with SurprisalModel("local") as model:
            found.append(wrong_words(model, Document("d", f"{PLAIN}\n\n{WRONG}")))
    assert found[0] == found[1]
    assert len(found[0]) == 3


def test_the_report_has_the_notes_where_they_are_asked_for(
    embedded: SurprisalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("spacy", reason="lines need what 'fabula[nlp]' installs")
    draft, page = tmp_path / "draft.txt", tmp_path / "page.html"
    quiet = "Below them the river went by in no hurry, quiet shallow, the color of tea."
    draft.write_text(f"{PLAIN}\n\n{WRONG}\n\n{quiet}\n", encoding="utf-8")
    asked = ("report", draft, "--with", "proofreading", "--without", "profile", "--without", "book")
    row = json.loads(invoke(*asked, "--out", page, "--json").stdout)
    (text,) = row["texts"]
    notes = [one for one in text["lines"]["notes"] if one["kind"] == "confused"]
    # What a rule notes is not noted again: "the the", "was to cold".
    assert [one["text"] for one in notes] == ["quiet"]
    assert notes[0]["why"] == "“no hurry, quiet shallow, the”: is “quite” meant?"
    signature = text["lines"]["signature"]
    assert f"|proofreading:6|model:{embedded.name}|" in signature
    assert signature.endswith("|margins:4+10+8+4+7+5+3+1+5+8+10+5|usual:6|whole:10000")
    assert "Wrong word?" in page.read_text(encoding="utf-8")
    assert "smollm2" in " ".join(row["methods"])
    alone = invoke("report", "--only", "lines", draft, "--with", "proofreading").output
    assert "1 confused" in alone
    refused = invoke(*asked, "--without", "lines", code=2).output
    assert "--with adds proofreading, whose notes --without leaves out" in " ".join(refused.split())
    monkeypatch.setenv("FABULA_LOCAL_MODEL", str(tmp_path / "none.gguf"))
    (left,) = [
        one for one in json.loads(invoke(*asked, "--out", page, "--json").stdout)["left_out"]
        if one["part"] == "proofreading"
    ]  # fmt: skip
    assert "no such model file" in left["reason"]
    assert "fabula setup local" in left["remedy"]

"""The Creativity Index by its definition, with its defined answers for the texts that have none."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import oracles
from tests.serving import serving

from fabula.core.errors import InputError, LookupFailed
from fabula.core.types import Document
from fabula.models.model_spec import ModelOptions, open_model
from fabula.originality.measure import ExcludeIds, Levels, OriginalityMeasure, uniqueness
from fabula.originality.quoting import QuoteJudge
from fabula.reference import Reference
from fabula.reference.backend import dj_search
from fabula.reference.exclude import CopyRule, maximal_spans

WORDS = ["the", "sea", "was", "calm"]
texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=15), min_size=1, max_size=5)
queries = st.lists(st.sampled_from([*WORDS, "unseen"]), max_size=30)


def lengths_of(words: list[str], held: list[list[str]]) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(oracles.longest_matches(words, held), np.int32)


@given(queries, texts, st.integers(1, 6))
def test_uniqueness_follows_its_definition(words: list[str], held: list[list[str]], level: int):
    found = uniqueness(lengths_of(words, held), level)
    assert found == (pytest.approx(expected) if (expected := oracles.uniqueness(
        words, held, level)) is not None else None)  # fmt: skip


def test_dj_search_passes_a_failed_look_up_on():
    def occurs(i: int, j: int) -> bool:
        raise LookupFailed("the server is away")

    with pytest.raises(LookupFailed):
        dj_search(20, 5, occurs)


@given(queries, texts, st.integers(1, 6))
def test_maximal_spans_are_those_that_no_other_contains(
    words: list[str], held: list[list[str]], min_words: int
):
    lengths = lengths_of(words, held)
    every = [(i, int(n)) for i, n in enumerate(lengths) if n >= min_words]
    maximal = [(i, n) for i, n in every if not any(j < i and i + n <= j + m for j, m in every)]
    assert maximal_spans(lengths, min_words) == maximal


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    rng = np.random.default_rng(0)
    vocabulary = np.array([f"w{k}" for k in range(300)])
    documents = [Document(f"d{k}", " ".join(rng.choice(vocabulary, 300))) for k in range(8)]
    documents.append(Document("phrase", "once upon a time there was a king who ate no cake"))
    return Reference.build(documents, tmp_path_factory.mktemp("ref") / "r")


def one(reference: Reference, text: str, **options: object):  # type: ignore[no-untyped-def]
    (result,) = OriginalityMeasure(reference, **options).measure([Document("x", text)])  # type: ignore[arg-type]
    return result


def test_a_text_with_a_borrowed_phrase_by_hand(reference: Reference):
    # 13 words; "once upon a time there was a" is 7 of them: unique at L <= 7 are the other 6.
    text = "Once upon a time, there was a lion: w1 w299 zebra quagga okapi!"
    result = one(reference, text)
    assert result.n_words == 13
    assert result.uniqueness == {
        level: pytest.approx(6 / 13) if level <= 7 else 1.0 for level in range(5, 13)
    }
    assert result.creativity_index == pytest.approx(3 * 6 / 13 + 5)
    (span,) = result.borrowed
    assert text[span.span.start : span.span.end] == "Once upon a time, there was a"
    assert (span.n_words, span.attribution.count) == (7, 1)
    (source,) = span.attribution.sources
    held = source.document.text[source.span.start : source.span.end]
    assert (source.document.id, held) == ("phrase", "once upon a time there was a")


@pytest.mark.parametrize(
    ("text", "reason", "by_level"),
    [
        ("", "no_words", {5: None, 6: None}),
        ("… — !", "no_words", {5: None, 6: None}),
        ("once upon a", "too_short", {5: None, 6: None}),
        ("once upon a time there", "too_short", {5: 0.0, 6: None}),
        ("ein Text in anderer Sprache hier", "no_known_words", {5: None, 6: None}),
    ],
)
def test_where_no_number_makes_sense_it_is_missing_with_its_reason(
    reference: Reference, text: str, reason: str, by_level: dict[int, float | None]
):
    result = one(reference, text, levels=Levels(5, 6))
    assert result.creativity_index is None
    assert (result.missing_reason, result.uniqueness) == (reason, by_level)
    for measurement in result.measurements():
        assert (measurement.value is None) == (measurement.missing_reason is not None)


def test_unknown_words_among_known_ones_are_new(reference: Reference):
    result = one(reference, "w1 zebra quagga okapi tapir gnu kudu", levels=Levels(5, 6))
    assert result.creativity_index == 2.0
    assert (result.n_words, result.n_known_words) == (7, 1)


def test_a_failed_look_up_raises_and_scores_nothing(
    reference: Reference, monkeypatch: pytest.MonkeyPatch
):
    def fail(*arguments: object, **options: object) -> None:
        raise LookupFailed("the disk went away")

    monkeypatch.setattr(Reference, "longest_matches_many", fail)
    with pytest.raises(LookupFailed):
        one(reference, "once upon a time")


def test_copies_and_quotations_of_a_text_are_left_out(tmp_path: Path):
    rng = np.random.default_rng(1)
    fresh = lambda n: [f"u{k}" for k in rng.integers(10**9, size=n)]  # noqa: E731
    text = fresh(200)
    edited = [word for k, word in enumerate(text) if k % 12]  # runs of 11 words, all of it
    held = {
        "itself": text, "copy": [*fresh(50), *text, *fresh(50)], "edited": edited,
        "quotes 30": [*fresh(50), *text[60:90], *fresh(50)],
        "quotes 12": [*fresh(50), *text[20:32], *fresh(50)], "other": fresh(300),
    }  # fmt: skip
    reference = Reference.build([Document(i, " ".join(w)) for i, w in held.items()], tmp_path / "r")
    result = one(reference, " ".join(text), exclude=CopyRule())
    assert [copy.id for copy in result.excluded] == ["itself", "copy", "edited", "quotes 30"]
    assert result.excluded[0].longest_run == 200
    assert result.excluded[3].longest_run == 30
    # 17 words are gone, and the last run has 7 words, too few to count.
    assert result.excluded[2].coverage == pytest.approx(176 / 200)
    # The short quotation stays: its 12 words are not unique at any level.
    assert result.uniqueness == dict.fromkeys(range(5, 13), pytest.approx(188 / 200))
    assert "excl:auto(run25,cover0.5x8,all)" in str(result.signature)
    assert one(reference, " ".join(text)).creativity_index == 0


def test_an_excluded_documents_ngrams_count_where_they_occur_elsewhere(tmp_path: Path):
    words = [f"w{k}" for k in range(60)]
    held = [Document("a", " ".join(words)), Document("b", " ".join(words[:20]))]
    reference = Reference.build(held, tmp_path / "r")
    listed = ExcludeIds.of(reference, ["a"])
    result = one(reference, " ".join(words), exclude=listed)
    assert result.uniqueness[5] == pytest.approx(40 / 60)
    assert [b.n_words for b in result.borrowed] == [20]
    with pytest.raises(InputError, match="'zz'"):
        ExcludeIds.of(reference, ["zz"])


def test_a_real_chapter_is_nothing_new_until_its_copies_are_out(tmp_path: Path, shared_data: Path):
    from fabula.text import read_documents

    chapters = list(read_documents([str(shared_data / "reference" / "austen_novels.jsonl.gz")]))
    reference = Reference.build(chapters, tmp_path / "r", n_jobs=2)
    mine = Document("mine", chapters[10].text.upper())
    (whole,) = OriginalityMeasure(reference).measure([mine])
    assert whole.creativity_index == 0
    (fair,) = OriginalityMeasure(reference, exclude=CopyRule()).measure([mine])
    assert [copy.id for copy in fair.excluded] == [chapters[10].id]
    assert 7 < fair.creativity_index < 8


def test_every_choice_is_in_the_signature(reference: Reference, tmp_path: Path):
    base = OriginalityMeasure(reference).signature
    other = Reference.build([Document("a", "One two")], tmp_path / "r")
    changed = [
        OriginalityMeasure(reference, levels=Levels(5, 7)),
        OriginalityMeasure(reference, exclude=CopyRule()),
        OriginalityMeasure(reference, exclude=ExcludeIds.of(reference, ["d1"])),
        OriginalityMeasure(other),
    ]
    assert len({str(base), *(str(measure.signature) for measure in changed)}) == 5


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.sampled_from(["w1", "w2", "once", "upon", "a", "time"]), max_size=30),
                max_size=6))  # fmt: skip
def test_texts_are_measured_alike_alone_and_together(reference: Reference, many: list[list[str]]):
    documents = [Document(str(k), " ".join(words)) for k, words in enumerate(many)]
    together = list(OriginalityMeasure(reference, n_threads=3).measure(documents))
    alone = [next(OriginalityMeasure(reference).measure([d])) for d in documents]
    assert [r.uniqueness for r in together] == [r.uniqueness for r in alone]
    assert [r.borrowed for r in together] == [r.borrowed for r in alone]


@pytest.mark.parametrize("text", ["12-5", "0-4", "five", "5-", "-5", "5-6-7"])
def test_levels_that_are_none_are_refused(text: str):
    with pytest.raises(InputError, match="`levels`"):
        Levels.parse(text)


@pytest.mark.parametrize(("said", "is_left_out"), [("Yes", True), ("No", False), ("Hm.", None)])
def test_a_model_decides_on_documents_that_the_rule_leaves_in_doubt(
    tmp_path: Path, said: str, is_left_out: bool | None
):
    text = [f"u{k}" for k in range(200)]
    held = {
        "itself": text,
        "quotes 12": [*(f"v{k}" for k in range(50)), *text[20:32], *(f"w{k}" for k in range(50))],
        "other": ["u0", *(f"x{k}" for k in range(300))],
    }
    reference = Reference.build([Document(i, " ".join(w)) for i, w in held.items()], tmp_path / "r")
    with (
        serving(lambda *_: said) as served,
        QuoteJudge(open_model(f"{served.url}#m", ModelOptions(max_retries=0))) as judge,
    ):
        measure = OriginalityMeasure(reference, exclude=CopyRule(), judge=judge)
        (result,) = measure.measure([Document("t", " ".join(text))])
        (prompt,) = served.prompts()
    if is_left_out is None:
        # A document in doubt is neither in nor out: nothing can be said of the text.
        assert (result.creativity_index, result.missing_reason) == (None, "lookup_failed")
        return
    assert "u20 u21" in prompt
    assert [copy.id for copy in result.excluded] == ["itself", *["quotes 12"] * is_left_out]
    expected = 1.0 if is_left_out else 188 / 200
    assert result.uniqueness[5] == pytest.approx(expected)
    assert "model(" in str(result.signature)

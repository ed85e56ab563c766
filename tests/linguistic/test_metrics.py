"""Each metric against a calculation by hand, with the arithmetic shown."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import if_installed

from fabula.core.errors import REASONS, InputError
from fabula.linguistic.metrics import (
    METRICS,
    Context,
    Scored,
    ToolChoice,
    Tools,
    encode_texts,
    jaccard,
    mattr,
    mtld,
    open_tools,
    read_texts,
    score_continuations,
    trigrams,
    type_token_ratio,
)
from fabula.text.grammar import open_checker, share_correct

CONTEXT = ("The old king had a golden ring.", "He lost it in the garden.")
SENTENCE = "The king found the ring."


@pytest.fixture(scope="module")
def tools() -> Tools:
    return if_installed(lambda: open_tools(ToolChoice()))


def scored(tools: Tools, *texts: str | None, context: tuple[str, ...] = CONTEXT) -> list[Scored]:
    known = Context(read_texts(tools, context))
    return score_continuations(tools, known, texts, read_texts(tools, [t or "" for t in texts]))


# The | king | found | the | ring | .        5 words; DET NOUN VERB DET NOUN PUNCT
# noun phrases: "The king" (2), "the ring" (2); verb phrase: "found the ring" (3)
# content words: king found ring; of the context: old king had golden ring he lost it garden
BY_HAND = {
    "sentence_length": 5,
    "noun_phrases": 2 / 5,
    "noun_phrase_length": (2 + 2) / 2 / 5,
    "verb_phrases": 1 / 5,
    "verb_phrase_length": 3 / 1 / 5,
    # wordfreq 3.1.1: the 0.0537, king 0.000148, found 0.000479, ring 0.0000646
    "inverse_word_frequency": -math.log(0.0537**2 * 0.000148 * 0.000479 * 0.0000646) / 5,
    # king and ring are shared; 3 + 9 - 2 words in all
    "jaccard_similarity": 2 / 10,
    # shares of 6 tokens and of 15: adverb 0, 0 and conjunction 0, 0 match fully; adjective 0, 2/15,
    # pronoun 0, 2/15, preposition 0, 1/15 not at all; determiner and noun 2/6, 3/15; mark 1/6, 2/15
    "pos_similarity": (2 + 2 * (1 - (5 - 3) / (5 + 3)) + (1 - (5 - 4) / (5 + 4))) / 8,
    # 4 trigrams: DNV NVD VDN DN.; 10 of the context: DAN ANV NVD VDA AN. PVP VPI PID IDN DN.
    "pos_trigram_similarity": 2 / (4 + 10 - 2),
    # the king and the ring were both there before
    "coreference_rate": 2 / 2,
    "grammaticality": 1.0,
}  # fmt: skip


@pytest.mark.parametrize("metric", BY_HAND)
def test_metric_equals_the_calculation_by_hand(tools: Tools, metric: str):
    assert scored(tools, SENTENCE)[0].values[metric] == pytest.approx(BY_HAND[metric])


def test_similarities_are_the_mean_over_all_words_and_the_cosine_with_the_mean(tools: Tools):
    """Against the double loop over spaCy's own vectors; of sentences with the context's mean."""
    vocab = tools.parser._nlp.vocab
    ours, theirs = (
        [vocab[word].vector for word in words.split()]
        for words in ("king found ring", "old king had golden ring He lost it garden")
    )
    pairs = [float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y))) for x in ours for y in theirs]
    values = scored(tools, SENTENCE)[0].values
    assert values["vector_similarity"] == pytest.approx(sum(pairs) / len(pairs), abs=1e-6)
    a, b, c = (tools.encoder.encode([text])[0].astype(float) for text in (*CONTEXT, SENTENCE))
    mean = (a + b) / 2
    expected = float(mean @ c) / math.sqrt(float(mean @ mean) * float(c @ c))
    assert values["sentence_similarity"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # "go" does not agree with "He": 5 of 6 words are free of errors
        ("He go to the store yesterday.", 5 / 6),
        ("He went to teh shop and slept.", 6 / 7),
        ("She was definately tired.", 3 / 4),
        ("Hargrave rode to Villeneuve.", 1),
        ("The neighbouring colour was grey.", 1),
        ("The gray color was near.", 1),
    ],
)
def test_grammaticality_is_the_share_of_words_without_error(tools: Tools, text: str, value: float):
    assert scored(tools, text)[0].values["grammaticality"] == pytest.approx(value)


def test_a_contraction_is_as_frequent_as_its_words(tools: Tools):
    """The list of frequencies hardly knows "n't", which is no rarer than "not"."""
    short, curly, full = scored(tools, "She didn't go.", "She didn’t go.", "She did not go.")
    assert short.values["inverse_word_frequency"] == full.values["inverse_word_frequency"]
    assert short.words == curly.words == ("she", "did", "n't", "go")


def test_all_of_a_long_text_is_encoded(tools: Tools):
    long = "Unquestionably incomprehensible heterogeneity characterises disestablishmentarians. "
    texts = [long * 30 + end for end in ("The cat sat down.", "Stocks fell in Tokyo.")]
    first, second = encode_texts(texts, tools.encoder)
    assert not np.allclose(first, second)
    assert "".join(tools.encoder.parts(texts[0])) == texts[0]
    assert len(tools.encoder.parts(long)) == 1


def test_an_error_counts_for_each_word_it_touches():
    words = [(0, 3), (4, 8), (9, 12), (13, 15)]
    assert share_correct(words, [(5, 10)]) == 2 / 4
    assert share_correct(words, [(3, 4), (8, 9)]) == 1  # only the spaces between
    assert open_checker("none") is None
    with pytest.raises(InputError, match="unknown grammar checker"):
        open_checker("grammarly")


def test_verb_phrases_nest_and_leave_out_subject_and_what_is_coordinated(tools: Tools):
    # "wanted to leave his house" 5, "to leave his house" 4; had never wanted: its helpers are in
    (parsed,) = tools.parser.parse(["The man had never wanted to leave his house."])
    assert parsed.verb_phrase_words == (7, 4)
    # "sang" and "danced" part at the conjunction, which belongs to neither
    (parsed,) = tools.parser.parse(["She sang songs and danced."])
    assert sorted(parsed.verb_phrase_words) == [1, 2]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "no_text"), ("", "no_words"), ("?!", "no_words"), ("  \n", "no_words"),
        ("Il est allé à la maison hier soir avec sa mère.", "not English: looks like French"),
        ("Zarquon fleebed the gronk wumpily, snorgling.", None),
        ("'Twas brillig, and the slithy toves did gyre and gimble.", None),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_says_why(tools: Tools, text: str | None, reason: str | None):
    (result,) = scored(tools, text)
    missing = dict(result.missing)
    if reason is None:
        assert result.values["sentence_length"] > 0
        return
    if reason == "no_words":
        # An empty continuation has a length, and it is 0.
        assert result.values["sentence_length"] == 0
        missing["sentence_length"] = reason
    assert set(missing.values()) == {reason}
    assert len(missing) == 13


@pytest.mark.parametrize(
    "text",
    ["You!", "Xyzzy qwrt.", "word " * 1_000, "7 8 9", "Bonjour, mon ami.", "\ud800 ok \x00"],
)  # fmt: skip
def test_degenerate_continuations_are_defined(tools: Tools, text: str):
    (result,) = scored(tools, text)
    for metric, value in result.values.items():
        if value is None:
            assert result.missing[metric] in REASONS
        else:
            assert math.isfinite(value)
            assert metric not in result.missing
    assert result.values["sentence_length"] == len(text.replace("!", "").split()) or len(text) < 60


def test_what_a_text_scores_does_not_depend_on_its_company(tools: Tools):
    alone = scored(tools, SENTENCE)[0]
    beside = scored(tools, "Other words.", SENTENCE, "The queen lost the king a ring.")[1]
    assert alone.values == pytest.approx(beside.values, abs=1e-6)


def test_what_has_no_part_or_context_is_missing_with_its_reason(tools: Tools):
    (result,) = scored(tools, "You!")
    assert result.missing["verb_phrase_length"] == "no_verb_phrase"
    assert (result.values["sentence_length"], result.values["jaccard_similarity"]) == (1, 0)
    assert "coref:sieve2,marks-and-dashes-1" in str(tools.signature)
    (result,) = scored(tools, SENTENCE, context=())
    assert {result.missing[m.id] for m in METRICS if m.needs_context} == {"no_context"}


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_jaccard_is_between_0_and_1_and_the_same_both_ways(a: set[int], b: set[int]):
    value = jaccard(a, b)
    assert value == jaccard(b, a)
    assert (value is None) == (not a and not b)
    assert value is None or 0 <= value <= 1


def test_ratios_by_hand():
    assert type_token_ratio("abac") == 3 / 4
    assert type_token_ratio([]) is None
    assert trigrams(list("abcd")) == [("a", "b", "c"), ("b", "c", "d")]
    # windows aba 2/3, bab 2/3, abc 3/3
    assert mattr(list("ababc"), window=3) == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)
    assert mattr(list("ab"), window=3) is None


def test_mtld_by_hand():
    # forth: a b a falls to 2/3 < 0.72, one run; c d stays at 1, no part of one: 5 words / 1
    # back: d c a b a ends at 4/5, a part (1 - 0.8) / (1 - 0.72) of a run: 5 / 0.714... = 7
    assert mtld(list("abacd")) == pytest.approx((5 + 7) / 2)
    assert mtld(list("abcd")) is None
    # Forth, 18 of 25 words are new: the ratio falls to 0.72 exactly, one run of 25. Back, the last
    # word stands eight times, four runs of two, and the others end none: 25 / 4.
    assert mtld([f"w{min(k, 17)}" for k in range(25)]) == pytest.approx((25 + 25 / 4) / 2)


def test_mattr_equals_the_peers(tools: Tools, examples):
    """lexicalrichness 0.5.1 says 0.7733333333333339 of the same 529 words, window 50."""
    paragraphs = (examples / "the-count.txt").read_text(encoding="utf-8").split("\n\n")
    words = [word for part in tools.parser.parse(paragraphs) for word in part.words]
    assert len(words) == 529
    assert mattr(words) == pytest.approx(0.7733333333333339)

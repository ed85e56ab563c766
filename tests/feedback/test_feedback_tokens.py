"""What trigrams are made of: words, or what the authors of StoryFeedback seem to have counted."""

import pytest

from fabula.feedback.scores import read_answers, tokeniser, treebank_tokens

PUBLIC = (
    'The sentence lacks a clear subject for the "we solved it" action, making it slightly '
    "ambiguous."
)
"""The feedback of the one row that the README of the released files prints (CC BY 4.0)."""


def test_the_authors_public_row_has_as_many_words_and_trigrams_as_they_count():
    row = {"id": "1", "story_id": "1", "model": "m", "prompt": "p", "shots": 0, "method": "swap",
           "feedback": PUBLIC, "story": "We solved it."}  # fmt: skip
    found = read_answers([row], tokens="authors")
    # Its columns: 95 characters, 18 words, 16 trigrams, all of them different.
    assert (found.lengths[0], found.n_words[0], len(found.trigrams.kinds)) == (95, 18, 16)
    assert "|tokens:authors@1" in found.signature
    words = read_answers([row])
    assert words.n_words[0] == 16
    assert "tokens" not in words.signature


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ('"I don\'t," she said.', "`` I do n't , '' she said ."),
        ("It's Anna's well-known dog -- isn't it?", "It 's Anna 's well-known dog -- is n't it ?"),
        ("They'll pay 1,000 (or 3.5%)...", "They 'll pay 1,000 ( or 3.5 % ) ..."),
        ("“We can’t,” he’d said; “no!”", "`` We ca n't , '' he 'd said ; `` no ! ''"),
    ],
)
def test_tokens_are_those_of_nltk(text: str, tokens: str):
    """As NLTKWordTokenizer of NLTK 3.9 has them, curly marks made straight."""
    assert treebank_tokens(text) == tokens.split()


def test_single_marks_are_dropped_and_marks_of_two_characters_stay():
    assert tokeniser("authors")('"Yes," -- he said...') == ["``", "yes", "''", "--", "he", "said",
                                                           "..."]  # fmt: skip

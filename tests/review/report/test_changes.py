"""What became of the findings of one draft in the next."""

import re
from dataclasses import asdict

import pytest

from fabula.review.findings import Finding, compare_noted, followed, noted_of_rows

FIRST = (
    "The lamp went round. She felt teh cold.\n\nShe counted nine lamps, and one, and then she "
    "held it still.\n\nNobody woke.\n\nThe end was very near to them."
)
SIGNED = {"lines": "a", "originality": "b", "feedback": "c"}


def noted(text: str, words: str, kind: str = "spelling", why: str = "", nth: int = 0) -> Finding:
    start = [m.start() for m in re.finditer(re.escape(words), text)][nth]
    return Finding(kind, kind.title(), start, start + len(words), text.count("\n", 0, start) + 1,
                 why, words)  # fmt: skip


def kinds(found: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(one.kind, one.words) for one in found]


def test_findings_are_followed_by_place_and_meaning():
    """Gone where the words were mended, still there where they moved or stayed, new otherwise."""
    after = (
        "Nobody woke.\n\nThe lamp went round. She felt the cold, and htat was all.\n\nA new "
        "paragraph.\n\nShe counted nine lamps, and two, and then she held it still.\n\n"
        "The end was very near to them."
    )
    old = [
        noted(FIRST, "teh"), noted(FIRST, "Nobody woke", "sentence"),
        noted(FIRST, "counted nine lamps, and one, and then", "passage"),
        noted(FIRST, "The end", "point", "The ending comes too early for what is at stake."),
    ]  # fmt: skip
    new = [
        noted(after, "htat"), noted(after, "Nobody woke", "sentence"),
        noted(after, "counted nine lamps, and two, and then", "near"),
        noted(after, "The end", "point", "For what is at stake the ending comes too early."),
    ]  # fmt: skip
    found = compare_noted((FIRST, old, SIGNED), (after, new, SIGNED))
    assert kinds(found.gone) == [("spelling", "teh")]
    assert kinds(found.new) == [("spelling", "htat")]
    assert [kind for kind, _ in kinds(found.still)] == ["sentence", "near", "point"]


def test_another_point_at_the_same_place_is_new():
    old = [noted(FIRST, "The end", "point", "The ending comes too early.")]
    new = [noted(FIRST, "The end", "point", "Who are they? Name the people on the boat.")]
    found = compare_noted((FIRST, old, SIGNED), (FIRST, new, SIGNED))
    assert (len(found.gone), len(found.new), len(found.still)) == (1, 1, 0)


def test_a_finding_that_others_crowd_out_of_the_marks_has_not_gone():
    one = noted(FIRST, "teh")
    hidden = Finding(**{**asdict(one), "is_marked": False})
    for before, after in (([one], [hidden]), ([hidden], [one])):
        found = compare_noted((FIRST, before, SIGNED), (FIRST, after, SIGNED))
        assert (found.gone, found.new, kinds(found.still)) == ((), (), [("spelling", "teh")])


def test_what_was_measured_otherwise_or_once_is_not_compared():
    old = [noted(FIRST, "lamp", "passage"), noted(FIRST, "teh"), noted(FIRST, "end", "point")]
    after = {"lines": "a", "originality": "another"}
    found = compare_noted((FIRST, old, SIGNED), (FIRST, [], after))
    assert kinds(found.gone) == [("spelling", "teh")]
    assert found.not_compared.keys() == {"originality", "feedback"}


@pytest.mark.parametrize(
    ("words", "after", "there"),
    [
        ("lamps, and one", FIRST.replace("and one", "and perhaps one"), "lamps, and perhaps one"),
        ("woke", FIRST.replace("Nobody woke.\n\n", ""), None),
        ("end was", "More.\n\n" * 3 + FIRST, "end was"),
        ("cold.\n\nShe counted", FIRST.replace("teh", "the"), "cold.\n\nShe counted"),
    ],
)
def test_places_are_followed_from_draft_to_draft(words: str, after: str, there: str | None):
    start = FIRST.index(words)
    (place,) = followed([(start, start + len(words))], FIRST, after)
    assert (place and after[slice(*place)]) == there


def test_long_texts_are_followed_in_a_short_time():
    """A novel in one paragraph, or in many, is compared without all of its pairs."""
    one = "the lamp went round and round " * 2_000
    assert followed([(4, 8)], one, one[:500] + "x" + one[500:]) == [None]
    many = "".join(f"Line {k}.\n" for k in range(20_000))
    place = many.index("Line 5000.")
    after = many.replace("Line 7.", "Line seven.")
    assert followed([(place, place + 4)], many, after) == [(place + 4, place + 8)]


def test_rows_that_cannot_be_read_are_left_out():
    one = noted(FIRST, "teh")
    assert noted_of_rows([asdict(one), {}, 7, asdict(one) | {"start": "1"}]) == [one]
    assert noted_of_rows(None) == []

"""A report's numbers by chapter, against counts by hand."""

import math
from pathlib import Path

import numpy as np
import pytest

from fabula.core.types import Document, Signature
from fabula.models.surprisal import TokenSurprisal
from fabula.reference.search import Reference
from fabula.review.job import ReportSettings
from fabula.review.page import write_review_page
from fabula.review.reviewer import Reviewer
from fabula.review.tables import review_json
from fabula.show.parts import TextReview
from fabula.style.book import by_chapter
from fabula.style.fluency import Fluency

TAKEN = "the copper weathercock above the ferryman’s crooked chapel had quarrelled with every wind"
PLAIN = "She walked home and nobody spoke. "
ROWS = [{"number": 1, "start": 0, "end": 20}, {"number": 2, "start": 20, "end": 40}]


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("chapters") / "books.ref"
    others = " ".join(f"word{k} and the wind" for k in range(600))
    Reference.build([Document("a", f"It was {TAKEN}."), Document("b", others)], path).close()
    return str(path)


def test_borrowed_words_are_counted_in_the_chapter_where_they_stand(books: str, tmp_path: Path):
    bodies = [PLAIN * 10, f"{PLAIN * 4}Then {TAKEN}.", PLAIN * 10]
    text = "\n\n".join(f"CHAPTER {k}\n\n{body}" for k, body in enumerate(bodies, 1))
    without = ("profile", "lines")
    with Reviewer(ReportSettings(references=(books,), without=without, n_jobs=1)) as reviewer:
        review = reviewer.run([Document("d", text)])
    found = review_json(review)["texts"][0]["by_chapter"]
    n_taken, n_all = len(TAKEN.split()), len(bodies[1].split()) + 2
    assert [one["chapter"] for one in found] == [1, 2, 3]
    assert [one["borrowed"] for one in found] == [0.0, pytest.approx(n_taken / n_all), 0.0]
    assert [one["surprise"] for one in found] == [None] * 3
    write_review_page(tmp_path / "page.html", review)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "the share of words in passages found in the reference" in page
    # What was not measured has no picture.
    assert "how improbable a small language model finds the words" not in page


def test_surprise_is_that_of_the_words_of_a_chapter():
    document = Document("d", "One two three four. " + "Five six seven eight ")
    ends = np.array([19, 40])
    tokens = TokenSurprisal(
        np.array([0, 20]), ends, np.array([12 * math.log(2), 4 * math.log(2)], np.float32)
    )
    fluency = Fluency(document, 8, 2.0, (), None, Signature("fluency"), tokens)
    found = by_chapter(TextReview(document, {"fluency": fluency}), ROWS)
    # Twelve bits over four words, and four over four.
    assert [one["surprise"] for one in found] == [pytest.approx(3.0), pytest.approx(1.0)]
    assert [one["borrowed"] for one in found] == [None, None]

"""Every instrument on the same texts: what runs, what is left out and why, what is missing."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.judging.judged_stories import rubric_text
from tests.reference_serving import TOKEN, serving_reference
from tests.serving import prompt_of, serving

from fabula.core.errors import CorpusError, InputError
from fabula.core.settings import SettingsError
from fabula.core.types import Document, Signature
from fabula.groups.part import DiversityPart
from fabula.jobs.job import SILENT
from fabula.jobs.models import NoModelSettings, Spending
from fabula.judging.agreement import CorrectSettings, correct_measurements
from fabula.judging.job import Labels
from fabula.models.surprisal import TokenSurprisal
from fabula.raters.labels import read_labels
from fabula.reference.build import add_documents
from fabula.reference.search import Reference
from fabula.review.job import GroupSettings, ReportFiles, ReportSettings, report
from fabula.review.page import write_review_page
from fabula.review.reviewer import Declined, Reviewer, corrected
from fabula.review.tables import review_json, review_tables
from fabula.rubrics.load import load_rubric
from fabula.show.parts import Review, TextReview, numbers_of_review
from fabula.show.sheet import render
from fabula.style import lines
from fabula.style.book import by_chapter
from fabula.style.fluency import Fluency
from fabula.text import grammar, sentences

STORY = (
    "The lamp went round. She counted nine, and one, and then she put out her hand and held it "
    "still.\n\nNobody in the harbour woke. It was the best of times in that house, and the worst."
)
SOURCES = [
    Document("a", "It was the best of times, it was the worst of times, it was the age of wisdom."),
    Document("b", "She put out her hand and held it still until the bell had rung."),
]


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("review") / "books.ref"
    Reference.build(SOURCES, path).close()
    return str(path)


def run(texts: list[Document], **given: Any) -> Review:
    with Reviewer(ReportSettings(**({"n_jobs": 1} | given))) as reviewer:
        return reviewer.run(texts)


def judge_at(url: str, **more: Any) -> NoModelSettings:
    return NoModelSettings((f"{url}/v1#judge",), structured=False, **more)


def test_a_served_reference_is_taken_as_it_is_when_a_text_is_reviewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A reviewer that stays open, as the desk's does, meets a corpus that has changed."""
    monkeypatch.setenv("FABULA_REFERENCE_TOKEN", TOKEN)
    Reference.build(SOURCES[:1], tmp_path / "r")
    with serving_reference(tmp_path / "r") as served:
        plan = ReportSettings(references=(served.url,), without=("profile",))
        with Reviewer(plan) as reviewer:
            for borrowed in ([6], [9, 6]):
                (text,) = reviewer.run([Document("s", STORY)]).texts
                assert [b.n_words for b in text.results["originality"].borrowed] == borrowed
                assert reviewer.can_do(plan)
                add_documents(SOURCES[1:], tmp_path / "r", n_jobs=1)
                served.served.reload()


def test_what_can_run_runs_and_the_rest_says_how_to_have_it(books: str):
    review = run([Document("s", STORY)], references=(books,))
    (text,) = review.texts
    assert [b.n_words for b in text.results["originality"].borrowed] == [9, 6]
    assert text.results["profile"] is not None
    assert {entry.part for entry in review.left_out} == {"verdicts", "feedback"}
    assert all(entry.remedy and not entry.is_failure for entry in review.left_out)
    assert set(review.signatures) == {"originality", "profile", "lines"}
    # Without a reference nothing counts as new.
    alone = run([Document("s", STORY)])
    assert "originality" not in alone.texts[0].results
    (entry,) = [one for one in alone.left_out if one.part == "originality"]
    assert "fabula reference build" in entry.remedy
    assert "creativity_index" not in {n.key for n in numbers_of_review(alone)[0]}


def test_a_reference_that_is_not_there_is_an_error_not_left_out(tmp_path: Path):
    with pytest.raises((CorpusError, InputError), match=r"gone\.ref"):
        run([Document("s", STORY)], references=(str(tmp_path / "gone.ref"),))


def answer(body: dict[str, Any], _: int) -> str:
    prompt = prompt_of(body)
    if "Put each" in prompt:
        return '- "counted nine, and one": The count leads nowhere. Let it cost her something.'
    return "Yes. It is so, as the second paragraph shows."


def test_a_model_judges_and_advises_and_is_not_asked_twice(books: str, tmp_path: Path):
    with serving(answer) as served:
        plan: dict[str, Any] = {
            "references": (books,), "n_samples": 2, "style": "verdict-first",
            "models": judge_at(served.url), "keep": tmp_path / "answers",
        }  # fmt: skip
        review = run([Document("s", STORY)], **plan)
        # 14 questions, 2 readings, and whether the point asks for a change.
        assert len(served.requests) == 17
        again = run([Document("s", STORY)], **plan)
        assert len(served.requests) == 17
    (text,) = review.texts
    assert len(text.results["verdicts"]) == 14
    assert [judge.scores for judge in review.of_all["verdicts"].judges] == [{"s": 14.0}]
    assert review.of_all["verdicts"].judges[0].overall_trust is None, "nobody checked this judge"
    (advice,) = text.results["feedback"]
    (point,) = advice.points
    assert (point.n_said, advice.n_answers) == (2, 2)
    assert text.document.text[slice(*point.places[0])] == "counted nine, and one"
    assert again.measurements() == review.measurements()


def test_kept_answers_cost_nothing_so_that_a_limit_can_be_reached_by_going_on(tmp_path: Path):
    n_asked = [0]
    with serving(answer) as served:
        models = judge_at(served.url, spending=Spending("1000/1000", 2.6))
        while len(n_asked) < 9 and (len(n_asked) < 2 or n_asked[-1] > n_asked[-2]):
            review = run([Document("s", STORY)], models=models, without=("feedback", "profile"),
                         style="verdict-first", keep=tmp_path / "answers")  # fmt: skip
            n_asked.append(len(served.requests))
    # More at each try, each question once, and in the end all of them.
    assert 0 < n_asked[1] < 14
    assert n_asked[-1] == len(review.texts[0].results["verdicts"]) == 14


def test_who_does_not_agree_to_the_cost_keeps_all_the_rest(books: str):
    def refuse(model: str, _: object) -> None:
        raise Declined(model)

    with serving(answer) as served:
        plan = ReportSettings(references=(books,), models=judge_at(served.url))
        with Reviewer(plan) as reviewer:
            review = reviewer.run([Document("s", STORY)], SILENT, refuse)
        assert served.requests == []
    assert review.texts[0].results["originality"] is not None
    declined = {e.part for e in review.left_out if "its cost was not confirmed" in e.reason}
    assert declined == {"verdicts", "feedback"}


def test_a_model_that_is_named_and_not_there_is_a_failure(books: str):
    review = run([Document("s", STORY)], references=(books,), with_=("fluency",),
                 fluency_model="nosuch.gguf")  # fmt: skip
    (entry,) = [one for one in review.left_out if one.part == "fluency"]
    assert entry.is_failure
    assert "tools.fluency-model" in entry.remedy


def test_what_is_off_by_default_is_asked_for_in_one_place():
    assert not ReportSettings().asks("fluency")
    assert ReportSettings(with_=("fluency",)).asks("fluency")
    assert not GroupSettings().report().asks("fluency")
    assert GroupSettings(with_=("fluency",)).report().asks("fluency")
    for wrong, what in (
        (
            {"with_": ("profile",)},
            "must be one of fluency, proofreading, stock, beginning, echo, long",
        ),
        ({"with_": ("fluency",), "without": ("fluency",)}, "`with_` adds fluency, which"),
        ({"fluency_model": "my.gguf"}, "`fluency_model` is of use with fluency only"),
    ):
        with pytest.raises(SettingsError, match=re.escape(what)):
            ReportSettings(**wrong)


def test_a_review_grows_part_by_part(books: str):
    with Reviewer(ReportSettings(references=(books,), n_jobs=1)) as reviewer:
        seen = [
            ("originality" in r.texts[0].results, "profile" in r.texts[0].results)
            for r in reviewer.steps([Document("s", STORY)])
        ]
    assert seen[:2] == [(True, False), (True, True)]


def test_many_texts_have_the_numbers_of_each_alone(books: str):
    texts = [Document(f"t{k}", STORY.replace("nine", f"nine {k}")) for k in range(4)]
    together = run(texts, references=(books,), n_jobs=2)
    alone = [run([text], references=(books,)).measurements() for text in texts]
    assert together.measurements() == [one for found in alone for one in found]


def test_several_texts_say_who_wrote_like_whom(tmp_path: Path):
    words = "the keeper of the last lamp never once looked out to sea"
    texts = [Document(f"t{k}", " ".join(f"w{k}x{j}" for j in range(30))) for k in range(12)]
    texts[3] = Document("t3", f"{words} {texts[3].text}")
    texts[7] = Document("t7", f"{texts[7].text} {words}")
    texts[11] = Document("t11", texts[0].text)
    without = ("profile", "originality")
    with Reviewer(ReportSettings(without=without, n_jobs=1)) as reviewer:
        review, few, alone = (reviewer.run(texts[:n]) for n in (12, 5, 1))
    found = review.of_all["diversity"]
    assert [{pair.a, pair.b} for pair in found.pairs[:2]] == [{"t0", "t11"}, {"t3", "t7"}]
    assert found.pairs[1].n_words == len(words.split())
    assert "2 of 12 texts have the same words as another" in found.remarks[0]
    assert review.signatures["diversity"] == found.diversity.signature
    assert (few.of_all["diversity"].diversity, few.of_all["diversity"].pairs) == (None, [])
    assert "need 10 texts, and these are 5" in few.of_all["diversity"].reason
    content = review_json(review)["together"]
    assert content["pairs"][1]["longest_run"] == len(words.split())
    assert content["set"]["n_units"] == 12
    assert "keeper of the last lamp" in render(*review_tables(review))
    page = tmp_path / "page.html"
    write_review_page(page, review)
    assert page.read_text().count(f"<td>{words}</td>") == 2
    # It can be left out, and of one text nothing is said of it.
    left_out = run(texts[:2], without=(*without, "diversity"))
    assert "diversity" not in left_out.of_all
    parts = [{entry.part for entry in one.left_out} for one in (left_out, alone)]
    assert ["diversity" in one for one in parts] == [True, False]


def test_people_s_labels_of_some_texts_correct_the_judge_of_all(tmp_path: Path):
    """The figures are those of `fabula judge correct`, whole and by group."""
    texts = [
        Document(f"t{k:02d}", f"The lamp went round {k} times. {STORY}", author="ab"[k % 2])
        for k in range(24)
    ]

    def lenient(body: dict[str, Any], _: int) -> str:
        # Of every fifth text it says No; people do of every second.
        number = int(prompt_of(body).split("The lamp went round ")[1].split()[0])
        return "No. It drags." if number % 5 == 0 else "Yes. It holds."

    ttcw = load_rubric("ttcw")
    labels, page = tmp_path / "labels.csv", tmp_path / "page.html"
    rows = [
        f"t{k:02d},{item.id},Ann,{'Yes' if k % 4 < 2 else 'No'}" for k in range(12)
        for item in ttcw.items
    ]  # fmt: skip
    labels.write_text("\n".join(["document,item,rater,value", *rows]))
    with serving(lenient) as served:
        given: dict[str, Any] = {
            "models": judge_at(served.url), "style": "verdict-first", "labels": labels,
            "without": ("profile", "originality", "feedback", "diversity"),
        }  # fmt: skip
        review = run(texts, **given)
        with pytest.raises(InputError, match="labels none of the stories"):
            run([Document("other", STORY)], **given)
        n_asked = len(served.requests)
    assert n_asked == 24 * 14, "labels of other texts are refused before anything is asked"
    people = read_labels(labels, ttcw)
    verdicts = [one for text in review.texts for one in text.results["verdicts"]]
    for by, groups in ((None, set()), ("author", {"a", "b"})):
        known = corrected(review, by)
        expected = correct_measurements(verdicts, people, ttcw, CorrectSettings(by=by), texts)
        found = review_json(known)["corrected"]
        assert found == [expected.to_json()]
        assert (found[0]["overall"]["raw"], found[0]["overall"]["n_labelled"]) == (19 / 24, 12)
        assert set(found[0]["groups"]) == groups
        assert render(*expected.tables()) in render(*review_tables(known))
    write_review_page(page, known)
    written = page.read_text()
    assert "Corrected by experts" in written
    assert "prediction-powered inference" in written
    assert written.count("</b> by Ann") == 12 * 14, "what people said stands beside the judge"


def test_a_judge_that_cannot_be_corrected_takes_nothing_of_the_rest_with_it(tmp_path: Path):
    """It was paid for: that it said nothing of the labelled text is told, and no more."""
    labels, rubric = tmp_path / "labels.csv", tmp_path / "short.toml"
    labels.write_text("document,item,rater,value\nt0,1,Ann,Yes\n")
    rubric.write_text(rubric_text("short", {"thesis": "Is there a thesis?"}))

    def silent_on_the_first(body: dict[str, Any], _: int) -> str:
        return "Hm." if "Text 0." in prompt_of(body) else "Yes. It holds."

    texts = [Document(f"t{k}", f"Text {k}. {STORY}") for k in range(3)]
    with serving(silent_on_the_first) as served:
        review = run(texts, models=judge_at(served.url), rubric=str(rubric), labels=labels,
                     without=("profile", "originality", "feedback", "diversity"))  # fmt: skip
    known = corrected(review, None)
    assert not known.of_all["verdicts"].corrected
    assert known.texts == review.texts
    (entry,) = [one for one in known.left_out if "not corrected" in one.reason]
    assert (entry.part, entry.is_failure) == ("verdicts", False)


def test_labels_without_a_judge_are_refused(tmp_path: Path):
    settings = ReportSettings(labels=Labels(tmp_path / "labels.csv"))
    with pytest.raises(SettingsError, match="no model was named"):
        report([Document("a", "One two.")], settings, ReportFiles())


FERRY = "The ferry was late again and the porter counted the lamps on the far bank. "
TIN = "She kept her letters in a tin that had once held tea for nine people. "
CLASS = [
    Document("ann", FERRY + "Ann wrote this rather crooked sentence herself.", author="Ann"),
    Document("ben", FERRY + "Ben wrote about trains, timetables and porridge.", author="Ben"),
    Document("cleo", TIN + "Cleo says that nobody here has read what she has.", author="Cleo"),
    Document("cleo2", TIN + "A second text of hers begins like the first.", author="Cleo"),
    Document("dora", "Dora has nothing in common with anybody, and likes it so."),
]


def of_class(texts: list[Document] = CLASS, **given: Any) -> Review:
    return run(texts, against_each_other=True, without=("profile", "lines", "book"), **given)


def test_a_class_is_compared_with_itself_and_no_text_with_itself():
    review = of_class()
    # By counting: a run of 15 words in 22 and 22 words, one of 14 in 24 and in 23.
    by_id = {one.id: one for one in review.of_all["diversity"].shared}
    assert [(one.id, one.longest) for one in review.of_all["diversity"].shared[:2]] == [
        ("ann", 15), ("ben", 15)
    ]  # fmt: skip
    assert (by_id["ann"].most_with, by_id["cleo"].most_with) == ("ben", "cleo2")
    assert by_id["dora"].share == 0
    index = {text.document.id: text.results["originality"].uniqueness[5] for text in review.texts}
    assert index["dora"] == 1
    assert index["ann"] == pytest.approx(1 - 15 / 22)
    assert "excl=same(id)" in review.signatures["originality"].replace("excl:", "excl=")
    shown = " ".join(render(*review_tables(review)).split())
    assert shown.index("in others") < shown.index("Creativity Index")
    assert "direction unknown" in shown
    found = review_json(review)["together"]
    assert (found["direction"], found["not_compared_within"]) == ("unknown", None)


TASK = (
    "Describe a place that you know well, and say what nobody else would see there. Use no names."
)
ESSAYS = [
    Document("ann", f"{TASK} Our kitchen smells of wet dog and of burnt toast every day."),
    Document("ben", f"I was asked to describe a place that you know well, so: my attic. {TIN}"),
    Document("cleo", f"{TASK}\n\nThe bridge hums when a lorry passes. {TIN}"),
    Document("dora", f"Say what nobody else would see there: in my street it is {SOURCES[1].text}"),
    Document("eve", f"Behind our school there is a pond. {TASK} So I did."),
    Document("finn", "A bus is a place that you know well, and say what you like, it is warm."),
]


def test_what_the_assignment_says_is_neither_shared_nor_borrowed(tmp_path: Path):
    Reference.build([Document("task", TASK), SOURCES[1]], tmp_path / "tasks.ref").close()
    (tmp_path / "task.txt").write_text(TASK)
    given = {"references": (str(tmp_path / "tasks.ref"),), "assignment": tmp_path / "task.txt"}
    review = of_class([*ESSAYS, Document("task", TASK)], **given)
    together = review.of_all["diversity"]
    assert {one.id for one in together.shared if one.share} == {"ben", "cleo"}, "they share TIN"
    (run,) = together.pairs[0].runs
    assert ESSAYS[1].text[run.a.start : run.a.end] == TIN.rstrip(". ")
    borrowed = {
        text.document.id: [text.document.text[r.span.start : r.span.end] for r in found.borrowed]
        for text in review.texts
        for found in [text.results["originality"]]
    }
    tin = [TIN.rstrip(". ")]
    assert borrowed == {"ann": [], "ben": tin, "cleo": tin, "eve": [], "finn": [],
                        "dora": [SOURCES[1].text.rstrip(".")]}  # fmt: skip
    shown = " ".join(render(*review_tables(review)).split())
    assert "words of the assignment are left out of 6 texts" in shown
    assert "task: has the assignment's words only, and is left out" in shown
    plain = of_class(ESSAYS).of_all["diversity"]
    assert {one.id for one in plain.shared if one.share} > {"ann", "ben", "cleo", "eve"}
    (tmp_path / "task.txt").write_text("Write a story.")
    with pytest.raises(InputError, match="fewer than 5 words"):
        of_class(ESSAYS, **given)


def test_texts_of_one_author_are_not_compared_where_that_is_left_out(tmp_path: Path):
    review = of_class(exclude_same="author")
    by_id = {one.id: one for one in review.of_all["diversity"].shared}
    assert by_id["cleo"].share == by_id["cleo2"].share == 0
    assert by_id["ann"].most_with == "ben"
    uniqueness = {t.document.id: t.results["originality"].uniqueness[5] for t in review.texts}
    assert uniqueness["cleo"] == 1
    assert uniqueness["ann"] < 1
    assert "same(id,author)" in review.signatures["originality"]
    page = tmp_path / "class.html"
    write_review_page(page, review)
    content = page.read_text(encoding="utf-8")
    assert content.index("What each shares with the others") < content.index("Side by side")


def test_a_class_and_books_are_searched_together(books: str):
    texts = [*CLASS[:2], Document("eve", "It was the best of times, it was the worst of times.")]
    review = of_class(texts, references=(books,))
    assert DiversityPart().found_elsewhere(review)["eve"] == 1
    assert {one.id: one.share for one in review.of_all["diversity"].shared}["eve"] == 0
    assert review_json(review)["texts"][2]["originality"]["n_words"] == 12
    assert "found elsewhere" in render(*review_tables(review))


def test_what_a_class_cannot_be_is_said():
    with pytest.raises(InputError, match="only one text was given"):
        of_class(CLASS[:1])
    with pytest.raises(SettingsError, match="auto leaves out copies"):
        of_class(exclude="auto")
    with pytest.raises(SettingsError, match="infinigram:x is not"):
        of_class(references=("infinigram:x",))


TAKEN = "the copper weathercock above the ferryman’s crooked chapel had quarrelled with every wind"
PLAIN = "She walked home and nobody spoke. "


def test_borrowed_words_are_counted_in_the_chapter_where_they_stand(tmp_path: Path):
    others = " ".join(f"word{k} and the wind" for k in range(600))
    own = [Document("a", f"It was {TAKEN}."), Document("b", others)]
    Reference.build(own, tmp_path / "ref").close()
    bodies = [PLAIN * 10, f"{PLAIN * 4}Then {TAKEN}.", PLAIN * 10]
    text = "\n\n".join(f"CHAPTER {k}\n\n{body}" for k, body in enumerate(bodies, 1))
    without = ("profile", "lines")
    review = run([Document("d", text)], references=(str(tmp_path / "ref"),), without=without)
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
    nats = np.array([12 * math.log(2), 4 * math.log(2)], np.float32)
    tokens = TokenSurprisal(np.array([0, 20]), np.array([19, 40]), nats)
    fluency = Fluency(document, 8, 2.0, (), None, Signature("fluency"), tokens)
    rows = [{"number": 1, "start": 0, "end": 20}, {"number": 2, "start": 20, "end": 40}]
    found = by_chapter(TextReview(document, {"fluency": fluency}), rows)
    # Twelve bits over four words, and four over four.
    assert [one["surprise"] for one in found] == [pytest.approx(3.0), pytest.approx(1.0)]
    assert [one["borrowed"] for one in found] == [None, None]


def test_a_long_text_read_in_pieces_by_processes_has_the_same_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lines, "_PIECE_CHARS", 400)
    told = (f"She counted lamp {k} of the harbour, and teh boat {k} came." for k in range(60))
    text = Document("long", "\n\n".join(told))

    def read(name: str, *, ahead: bool) -> list[Review]:
        """As if nothing of it had been read before."""
        monkeypatch.setenv("FABULA_CACHE", str(tmp_path / f"cache {name}"))
        for known in (lines.opened_tools, sentences._spans_memo, grammar._faults_memo):
            known.cache_clear()
        with Reviewer(ReportSettings(n_jobs=2)) as reviewer:
            reviews = list(reviewer.steps([text], ahead=ahead))
        write_review_page(tmp_path / name, reviews[-1])
        return reviews

    openings = [
        sum("|opening" in review.signatures.get("lines", "") for review in read(name, ahead=ahead))
        for name, ahead in (("whole", True), ("pieces", False))
    ]
    assert openings == [0, 1], "the notes on the first piece are shown before the others are read"
    assert (tmp_path / "pieces").read_bytes() == (tmp_path / "whole").read_bytes()

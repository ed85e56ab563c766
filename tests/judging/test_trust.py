import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.commands import write_rows
from tests.judging.judged_stories import TTCW, measured, session
from tests.serving import completion, serving

from fabula.core.errors import InputError
from fabula.core.store import CHECKSUM
from fabula.core.types import Document, Measurement, Signature
from fabula.judging.part import write_judging_page
from fabula.judging.plan import Asked, Judged, JudgePlan, identity, is_identified
from fabula.judging.prompts import Template
from fabula.judging.run import own_story
from fabula.judging.session import run_session
from fabula.judging.summary import summarise
from fabula.judging.tables import calibration_tables
from fabula.judging.trust import Mode, Trust, TrustBook, calibrate, released_folder
from fabula.models.base import Answer
from fabula.models.verdicts import Verdict
from fabula.raters import agreement
from fabula.raters.agreement import Panel, judge_agreement, people_agreement, read_experts
from fabula.rubrics.released import read_expert_verdicts
from fabula.show.sheet import render

PLAN = JudgePlan(TTCW, Template("verdict-first"))
M = str(PLAN.signature("local/m@1"))


Experts = tuple[Panel, dict[tuple[str, str], float]]


@pytest.fixture(scope="module")
def experts(shared_data: Path) -> Experts:
    """The released panel, and its majority on the stories that have texts."""
    documents, file = released_folder(shared_data / "ttcw")
    panel = read_experts(file, TTCW)
    texts = {document.id for document in documents}
    return panel, {key: value for key, value in panel.majority().items() if key[0] in texts}


def trust_in(said: dict[tuple[str, str], float], name: str, panel: Panel, folder: Path) -> Trust:
    """In a judge that says this, over all items."""
    signature = str(PLAN.signature(f"local/{name}@1"))
    mine = [measured(*key, value, signature=signature) for key, value in said.items()]
    ((_, trusts),) = calibrate(mine, panel, PLAN, TrustBook(folder / "t.jsonl"))
    assert trusts[-1].item == "all"
    return trusts[-1]


ARGS = ("m", TTCW.key, "verdict-first", "own@1")
MEASURED = Trust(*ARGS, "all", 0.5, 0.4, 0.6, 36, 0, 0.7, "x")


def test_a_judge_that_says_what_the_experts_say_is_trusted(experts: Experts, tmp_path: Path):
    panel, truth = experts
    said = [measured(*key, value, signature=M) for key, value in truth.items()]
    ((found, _),) = calibrate(said, panel, PLAN, TrustBook(tmp_path / "trust.jsonl"))
    assert found.overall.kappa.value == 1
    assert found.pearson.value > 0.9
    parts = dict(Signature.parse(found.signature).parts)
    known = TrustBook(tmp_path / "trust.jsonl").find(
        parts["model"], TTCW.key, "verdict-first", parts["prompt"], Mode.of(parts)
    )
    assert (known["all"].kappa, known["all"].n, known["all"].is_other_mode) == (1, 504, False)
    # On two tests the majority lets no model story pass: nothing can be said of them.
    undefined = [item for item, trust in known.items() if trust.kappa is None]
    assert undefined == ["originality_in_form", "character_development"]


def test_trust_is_not_borrowed_from_another_style_wording_or_model(tmp_path: Path):
    book = TrustBook(tmp_path / "trust.jsonl")
    book.add([MEASURED])
    assert book.find(*ARGS) == {"all": MEASURED}
    for k, other in enumerate(("m2", "ttcw-2@0", "reason-first", "own@2")):
        assert not book.find(*ARGS[:k], other, *ARGS[k + 1 :])
    better = replace(MEASURED, kappa=0.9)
    book.add([better])
    assert TrustBook(tmp_path / "trust.jsonl").find(*ARGS) == {"all": better}
    assert len((tmp_path / "trust.jsonl").read_text().splitlines()) == 1


def kappa_by_hand(pairs: list[tuple[int, bool, bool]]) -> float:
    """Agreement beyond the chance of each item, over what chance leaves; item by item."""
    gained = possible = 0.0
    for item in {item for item, *_ in pairs}:
        own = [(a, b) for name, a, b in pairs if name == item]
        n = len(own)
        yes = sum(a for a, _ in own) / n, sum(b for _, b in own) / n
        chance = yes[0] * yes[1] + (1 - yes[0]) * (1 - yes[1])
        gained += sum(a == b for a, b in own) - n * chance
        possible += n * (1 - chance)
    return gained / possible


def test_a_judge_that_never_reads_is_not_above_chance_but_named(experts: Experts, tmp_path: Path):
    """The best answer to each item, for every story: 0.36 when items were pooled. A coin that knows
    how often experts pass each item is above chance in one run of twenty at most."""
    panel, truth = experts
    of_item = {item.id: [v for (_, i), v in truth.items() if i == item.id] for item in TTCW.items}
    best = {key: float(2 * sum(of_item[key[1]]) > len(of_item[key[1]])) for key in truth}
    constant = trust_in(best, "constant", panel, tmp_path)
    assert constant.kappa == 0
    assert constant.always == "says the same of every story"
    assert "says the same of every text" in constant.worth
    assert not constant.is_above_chance
    rng = np.random.default_rng(0)
    above = 0
    for _ in range(40):
        coin = [measured(*key, float(rng.random() < np.mean(of_item[key[1]]))) for key in truth]
        above += judge_agreement(coin, panel, TTCW, "dimension").overall.kappa.low > 0
    assert above <= 2


def test_an_expert_as_the_judge_is_no_worse_than_experts(experts: Experts):
    """Each of three in turn is the judge, and stays among those that it is compared with."""
    panel, _ = experts
    for column in range(3):
        own = zip(panel.subjects, panel.ratings[:, column], strict=True)
        said = {subject: float(value) for subject, value in own if not np.isnan(value)}
        rest = replace(panel, ratings=np.delete(panel.ratings, column, axis=1))
        less = people_agreement(rest, {d for d, _ in panel.subjects}, said)["all"].judge_less
        assert less.low < 0 < less.high


def test_some_items_have_their_trust_and_a_score_of_their_own(tmp_path: Path):
    """A run of `--items`: it was not "never checked", and no score is missing."""
    asked = [item.id for item in TTCW.items[:4]]
    rows = [measured("s", item, float(k < 3), signature=M) for k, item in enumerate(asked)]
    parts = dict(Signature.parse(M).parts)
    book = TrustBook(tmp_path / "t.jsonl")
    own = replace(MEASURED, model=parts["model"], prompt=parts["prompt"])
    book.add(replace(own, item=item) for item in asked)
    documents = [Document("s", "A text.")]
    (summary,) = summarise(rows, documents, TTCW, book)
    assert summary.scores == {"s": 3.0}
    assert summary.unchecked == "checked against experts on 4 of 4 items, not over all"
    write_judging_page(tmp_path / "page.html", [summary], rows, documents, TTCW)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "never checked" not in page
    assert "3 of 4" in page


def test_the_yardstick_is_what_people_reach_on_these_stories(experts: Experts, shared_data: Path):
    # Against counting by hand: one expert with the two others where these agree, on the 36 stories
    # that have texts, and on all 48.
    _, file = released_folder(shared_data / "ttcw")
    panel, truth = experts
    texts = {story for story, _ in truth}
    by_set = []
    for stories in (texts, {story for story, _ in panel.subjects}):
        given: dict[tuple[str, int], list[bool]] = {}
        for verdict in read_expert_verdicts(file):
            if verdict.story_id in stories:
                given.setdefault((verdict.story_id, verdict.index), []).append(verdict.passed)
        pairs = [
            (index, three[k], three[k - 1])
            for (_, index), three in given.items()
            for k in range(3) if three[k - 1] == three[k - 2]
        ]  # fmt: skip
        found = people_agreement(panel, stories)["all"]
        assert found.one_with_rest == pytest.approx(kappa_by_hand(pairs))
        by_set.append(found)
    assert (by_set[0].n_documents, by_set[1].n_documents) == (36, 48)
    assert by_set[0].one_with_rest == pytest.approx(0.153, abs=5e-4)
    assert by_set[0].fleiss == pytest.approx(0.063, abs=5e-4)
    assert by_set[0].fleiss_mean == pytest.approx(0.053, abs=5e-4)
    shipped = {row["item"]: row for row in map(json.loads, _shipped().read_text().splitlines())}
    for item, one in people_agreement(panel, texts).items():
        people = shipped[item]["people"], shipped[item]["people_fleiss"]
        wanted = [None if v is None else round(v, 4) for v in (one.one_with_rest, one.fleiss)]
        assert list(people) == wanted
    model, prompt = shipped["all"]["model"], shipped["all"]["prompt"]
    worth = TrustBook(Path("none")).find(model, TTCW.key, "verdict-first", prompt)["all"].worth
    assert "on the same 36 documents one of them reaches 0.15" in worth
    assert "0.41" not in worth


def test_what_a_judge_is_worth_is_said_beside_chance_and_people(experts: Experts, tmp_path: Path):
    panel, truth = experts
    rng = random.Random(0)
    coin = {key: float(rng.random() < 0.5) for key in truth}
    half = {key: value if rng.random() < 0.4 else float(rng.random() < 0.5)
            for key, value in truth.items()}  # fmt: skip
    contrary = {key: 1 - value for key, value in truth.items()}
    as_one = "cannot be distinguished from what one"
    few = sorted({story for story, _ in truth})[:9]
    for name, said, *expected in (
        ("the majority itself", truth, "above chance", "more than one person"),
        ("a coin", coin, "distinguished from chance", as_one),
        ("the contrary", contrary, "below chance", "less than one"),
        ("half of each", half, "above chance", as_one),
        ("a few", {key: half[key] for key in half if key[0] in few}, "too few documents"),
    ):
        worth = trust_in(said, name, panel, tmp_path).worth
        assert [one for one in expected if one not in worth] == [], name


def test_a_calibration_shows_the_two_sets_of_stories_apart(experts: Experts, tmp_path: Path):
    panel, truth = experts
    said = [measured(*key, float(k % 2), signature=M)
            for k, key in enumerate(panel.subjects) if key in truth]  # fmt: skip
    few, all_ = (
        agreement.panel_agreement(one, TTCW, "item")
        for one in (panel.on({story for story, _ in truth}), panel)
    )
    found = calibrate(said, panel, PLAN, TrustBook(tmp_path / "t.jsonl"))
    correlation = agreement.expert_correlation(panel, TTCW)
    tables = calibration_tables(found, few, all_, correlation, TTCW, (36, 48))
    first, _, second = render(*tables).partition("all 48 stories")
    assert "36 stories that the judge read" in first
    assert "on 504 items that both judged" in " ".join(first.split())
    assert "2016" not in first.replace(",", "")
    assert "experts only" in " ".join(second.split())
    # The n of the experts' rows of a table: stories by item, and all of them.
    n_of_all = [
        [line.split()[1] for line in part.splitlines() if line.startswith("all ")]
        for part in (first, second)
    ]
    assert n_of_all == [["504", "504"], ["672"]]


HERE, THERE = "http://127.0.0.1:8080/v1", "http://gpu:9000/v1#qwen3-8b"


@pytest.mark.parametrize(
    ("url", "served", "expected"),
    [
        (HERE, None, HERE), (THERE, None, f"{THERE}@qwen3-8b"),
        ("http://localhost:1/v1#m", "m", "http://localhost:1/v1#m@m"),
        ("http://localhost:1/v1", "m", "http://localhost:1/v1@m"),
        ("openai/gpt-4o", "gpt-4o-2024-08-06", "openai/gpt-4o@openai/gpt-4o-2024-08-06"),
        ("openai/gpt-4o", "gpt-4o", "openai/gpt-4o"), ("local/m@1f", None, "local/m@1f"),
    ],
)  # fmt: skip
def test_a_judge_is_named_by_what_it_says_of_itself(url: str, served: str | None, expected: str):
    assert (identity(url) if served is None else identity(url, served)) == expected


def test_a_model_is_known_by_its_own_name_and_not_by_its_address():
    def judged(served: str) -> list[Judged]:
        asked = Asked("d", "ending", 0, "", 0)
        return [Judged(asked, Verdict(1.0, None, None), Answer("Yes.", served=served))]

    here, there = (PLAN.signature(url, judged("qwen3-8b")) for url in (HERE, THERE))
    assert not here.differences(there)
    assert here.differences(PLAN.signature(HERE, judged("llama-3.2")))
    assert not is_identified(identity(HERE))
    assert not is_identified(identity("http://user:word@host/v1"))
    assert is_identified(identity(HERE, "qwen3-8b"))
    # Two models behind a server that reports one name are two.
    one, other = (identity(f"http://localhost:1/v1#{name}", "m") for name in "ab")
    assert one.rpartition("@")[2] != other.rpartition("@")[2]


def served_as(name: str) -> list[Measurement]:
    reply = completion("Yes. It holds.") | {"model": name}
    with serving(lambda *_: (200, reply)) as server:
        asked = session(server.url, None, documents=[Document("a", "The lamp.")], plan=PLAN)
        return run_session(replace(asked, models=[f"{server.url}/v1"]))[0]


def test_trust_in_what_an_address_serves_is_not_trust_in_the_address(tmp_path: Path):
    first, moved, other = served_as("qwen3-8b"), served_as("qwen3-8b"), served_as("smollm2")
    rows = [
        {"id": "a", "rubric": "ttcw", "item": item.id, "rater": rater, "value": 1.0,
         "missing_reason": None}
        for item in TTCW.items for rater in "xyz"
    ]  # fmt: skip
    experts = read_experts(write_rows(tmp_path / "experts.jsonl", rows), TTCW)
    book = TrustBook(tmp_path / "trust.jsonl")
    calibrate(first, experts, PLAN, book)
    assert book.path.exists()
    known = []
    for found in (first, moved, other):
        parts = dict(Signature.parse(found[0].signature).parts)
        names = (parts["model"], TTCW.key, parts["style"], parts["prompt"])
        known.append(bool(book.find(*names, Mode.of(parts))))
    assert known == [True, True, False]
    # One that repeats the name it was asked by says nothing of itself: nothing is kept.
    silent = TrustBook(tmp_path / "silent.jsonl")
    calibrate(served_as("default"), experts, PLAN, silent)
    assert not silent.path.exists()


def test_trust_of_another_mode_says_so(tmp_path: Path):
    book = TrustBook(tmp_path / "trust.jsonl")
    five = Mode(5, 1.8)

    def found(mode: Mode) -> Trust:
        return TrustBook(tmp_path / "trust.jsonl").find(*ARGS, mode)["all"]

    book.add([MEASURED])
    assert found(Mode(1, 0.0)).shown == "0.50 [0.40, 0.60], n 36"
    assert "in another mode (1 answer at temperature 0)" in found(five).shown
    assert "may not hold" in found(five).worth
    assert found(five).n_dots == 0
    assert "another mode" in found(Mode(1, 0.0, "on")).shown
    book.add([replace(MEASURED, samples=5, temperature=1.8, kappa=0.1)])
    assert (found(five).kappa, found(Mode(1, 0.0)).kappa) == (0.1, 0.5)


def test_trust_at_another_reasoning_effort_is_of_another_mode(tmp_path: Path):
    held = replace(PLAN, structured=True)
    assert held.signature("m").differences(PLAN.signature("m")) == ["structured: on | absent"]
    thinking = replace(PLAN, effort="high")
    assert thinking.signature("m").differences(PLAN.signature("m")) == ["effort: high | absent"]
    mode = Mode.of(dict(thinking.signature("m").parts))
    assert str(mode) == "1 answer at temperature 0, reasoning effort high"
    high = replace(MEASURED, effort="high")
    TrustBook(tmp_path / "trust.jsonl").add([high, replace(high, effort="", kappa=0.1)])
    again = TrustBook(tmp_path / "trust.jsonl")
    assert again.find(*ARGS, mode)["all"] == high
    assert again.find(*ARGS, Mode(1, 0.0))["all"].kappa == 0.1
    assert again.find(*ARGS, Mode(1, 0.0, effort="low"))["all"].is_other_mode


def test_the_day_of_a_measurement_is_kept_and_shown_and_may_be_absent(tmp_path: Path):
    path = tmp_path / "trust.jsonl"
    TrustBook(path).add([replace(MEASURED, date="2026-05-31")])
    drawn = "x; 1 answer at temperature 0"
    assert TrustBook(path).find(*ARGS)["all"].origin == f"{drawn}; measured on 2026-05-31"
    assert MEASURED.origin == drawn
    row = json.loads(path.read_text())
    del row[CHECKSUM]
    for broken in (row | {"date": "yesterday"}, {"model": 1}):
        path.write_text(json.dumps(broken) + "\n")
        with pytest.raises(InputError, match=r"trust\.jsonl.*not a file of trust"):
            TrustBook(path)


def _shipped() -> Path:
    import fabula.judging.trust as module

    return Path(module.__file__).with_name("trust.jsonl")


def test_agreement_is_over_stories_that_both_have_seen():
    # By hand: truth 1, 1, 0, 0; judge 1, 0, 0, missing: kappa over three is (2/3 - 4/9) / (5/9).
    item = TTCW.items[0].id
    truth = {"a": 1.0, "b": 1.0, "c": 0.0, "d": 0.0, "unseen": 1.0}
    experts = [(story, item, f"e{k}", value) for story, value in truth.items() for k in range(3)]
    panel = agreement.panel_of(experts, "experts.jsonl")
    judged = {"a": 1.0, "b": 0.0, "c": 0.0, "d": None, "other": 1.0}
    said = [measured(story, item, value) for story, value in judged.items()]
    found = judge_agreement(said, panel, TTCW, "item")
    row = next(row for row in found.rows if row.name == item)
    assert row.kappa.value == pytest.approx((2 / 3 - 4 / 9) / (5 / 9))
    assert (row.confusion.n, row.n_missing) == (3, 1)
    by_author = judge_agreement(said, panel, TTCW, "author")
    assert [(row.name, row.confusion.n) for row in by_author.rows] == [("author unknown", 3)]
    with pytest.raises(InputError, match="check that the ids match"):
        judge_agreement([measured("z", item, 1.0)], panel, TTCW, "item")


def test_an_author_is_never_read_from_an_id(tmp_path: Path):
    item = TTCW.items[0].id
    written = {"ch_01": "Ann", "ch_02": "Bob", "ch_03": None}
    rows = [
        {"id": story, "rubric": "ttcw", "item": item, "rater": f"e{k}", "value": 1.0,
         "missing_reason": None, "author": author}
        for story, author in written.items() for k in range(2)
    ]  # fmt: skip
    panel = read_experts(write_rows(tmp_path / "experts.jsonl", rows), TTCW)
    names = [row.name for row in agreement.panel_agreement(panel, TTCW, "author")]
    assert names == ["Ann", "Bob", "author unknown", "all"]
    said = [measured(story, item, 1.0) for story in written]
    # What the run itself says of its documents goes before.
    said[2] = replace(said[2], details={"author": "Cyd"})
    found = judge_agreement(said, panel, TTCW, "author")
    assert [row.name for row in found.rows] == ["Ann", "Bob", "Cyd"]


def test_experts_are_people_and_not_places_of_rows(shared_data: Path, tmp_path: Path):
    released = shared_data / "ttcw" / "ttcw_annotations.json"
    rows = json.loads(released.read_text(encoding="utf-8"))
    straight = read_experts(released, TTCW)
    file = tmp_path / "shuffled.json"
    random.Random(1).shuffle(rows)
    file.write_text(json.dumps(rows))
    shuffled = read_experts(file, TTCW)
    one, other = (agreement.expert_correlation(panel, TTCW).value for panel in (shuffled, straight))
    assert one == pytest.approx(other)
    with pytest.raises(InputError, match="not on mine"):
        read_experts(file, replace(TTCW, id="mine"))
    file.write_text(json.dumps([*rows, rows[0]]))
    with pytest.raises(InputError, match="second answer on"):
        read_experts(file, TTCW)


def test_an_aggregate_lacks_no_item():
    whole = {("a", item.id): 1.0 for item in TTCW.items}
    part = {("b", item.id): 1.0 for item in TTCW.items[1:]}
    assert agreement.aggregates(whole | part, TTCW) == {"a": 14.0}


@pytest.mark.parametrize(
    ("model", "author", "expected"),
    [
        ("openai/gpt-4", "GPT4", "same model"), ("openai/gpt-4o", "GPT3.5", "same family"),
        ("anthropic/claude-sonnet-4-5", "Claude", "same family"), ("openai/gpt-4o", "Claude", None),
        ("openai/gpt-4o", "Ann", None), ("local/smollm2-135m@1", None, None),
        ("openai/gpt-4o", "NewYorker", None), ("openai/gpt-4o", "4o", None),
        ("mistral/mistral-large", "Gabriela Mistral", None),
        ("mistral/mistral-large", "Frédéric Mistral", None),
        ("anthropic/claude-opus-4", "Claude McKay", None),
        ("anthropic/claude-opus-4", "Jean-Claude Izzo", None),
        ("anthropic/claude-opus-4", "Claude Lévi-Strauss", None),
        ("google/gemma-2-9b", "Gemma Malley", None), ("x/phi-3", "Phi Long", None),
        ("anthropic/claude-sonnet-4-5", "Son", None), ("meta/llama-3", "Lam", None),
        ("anthropic/claude-opus-4", "Claude 3 Haiku", "same family"),
        ("anthropic/claude-3-opus-20240229", "Claude 3 Opus", "same model"),
        ("anthropic/claude-opus-4", "claudev13", "same family"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o", "same model"),
        ("openai/gpt-4o", "ChatGPT", "same family"), ("openai/gpt-4o", "GPT4", "same family"),
        ("mistralai/Mistral-Large-2", "Mistral-7b", "same family"),
        ("hf/meta-llama/Llama-3.1-8B", "LlamaInstruct-30b", "same family"),
        ("local/smollm2-135m-instruct.q4_1@747cb1f0", "local/smollm2-135m", "same model"),
        ("openai/my-own-model", "my-own-model", "same model"), ("openai/gpt-4o", "", None),
    ],
)  # fmt: skip
def test_a_judge_knows_its_own_stories(model: str, author: str, expected: str | None):
    assert own_story(model, author) == expected

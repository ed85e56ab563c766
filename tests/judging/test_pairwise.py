import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from tests.commands import rows_of
from tests.serving import Reply, prompt_of, serving

from fabula.core.errors import ModelError
from fabula.core.settings import SettingsError
from fabula.core.types import Document, Measurement
from fabula.jobs.models import ModelSettings
from fabula.judging.job import Judged, Judging, Questions, StoriesSettings, judge
from fabula.judging.pairs import PairRanking, pairs_of, ranking_row
from fabula.judging.tables import ranking_tables
from fabula.show.sheet import render


def story(name: str, worth: float, author: str | None = None, prompt: str = "p") -> Document:
    return Document(name, f"A lamp of worth {worth:.3f}.", author=author, prompt_id=prompt)


STORIES = [story(f"s{k}", worth) for k, worth in enumerate([2, 1.2, 0.8, 0.4, 0, -0.4, -1, -2])]


def by_worth(body: dict[str, Any], _: int) -> Reply:
    """Prefers by Bradley and Terry's model, with a place effect; the same for the same prompt."""
    text = prompt_of(body)
    a, b = map(float, re.findall(r"of worth (-?[\d.]+\d)\.", text))
    drawn = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32
    return f"Verdict: {'A' if drawn < 1 / (1 + math.exp(-(a - b + 0.3))) else 'B'}"


ITEMS = "narrative_ending,narrative_pacing"


def settings(url: str, out: Path | None, *, items: str = ITEMS, **more: Any) -> StoriesSettings:
    models = ModelSettings(models=(f"{url}/v1#m",))
    return StoriesSettings(
        Judging(Questions(items=items), models=models), out, pairwise=True, **more
    )


def only(judged: Judged, **more: Any) -> list[PairRanking]:
    (found,) = judged.rankings(**more).values()
    return found


def test_all_pairs_give_a_ranking_of_stories_over_all_items_and_by_item():
    with serving(by_worth) as server:
        judged = judge(STORIES, settings(server.url, None))
    found = only(judged, by_item=True)
    items = [item.id for item in judged.plan.items]
    assert [(one.of, one.item) for one in found] == [("story", name) for name in ["all", *items]]
    whole = found[0]
    assert (whole.ranking.n, whole.ranking.n_units) == (28 * 2 * 2, 28)
    assert whole.ranking.is_told_from_chance
    order = [whole.names[one.thing] for one in whole.ranking.strengths]
    assert {order[0], order[-1]} == {"s0", "s7"}
    row = ranking_row(whole, "m")
    assert [one["name"] for one in row["strengths"]] == order
    assert row["signature"].startswith(judged.said[0].signature)
    assert "ranking:bradley-terry-1" in row["signature"]
    json.dumps(row, allow_nan=False)
    shown = render(*ranking_tables(whole, "m", None))
    assert "place:" in shown
    assert "log-odds" in shown


def test_wins_by_chance_are_a_sentence_and_no_order():
    def by_chance(body: dict[str, Any], _: int) -> Reply:
        digest = hashlib.sha256(prompt_of(body).encode()).digest()
        return f"Verdict: {'AB'[digest[0] % 2]}"

    with serving(by_chance) as server:
        judged = judge(STORIES, settings(server.url, None))
    (found,) = only(judged)
    assert not found.ranking.is_told_from_chance
    shown = render(*ranking_tables(found, "m", None))
    assert "cannot be distinguished from chance" in shown
    assert "s0" not in shown


def test_groups_are_ranked_over_prompts():
    worth = {"alpha": 1.5, "beta": 0.0, "gamma": -1.0}
    documents = [
        story(f"p{k}-{name}", value + 0.1 * (k % 3), name, f"p{k}")
        for k in range(12)
        for name, value in worth.items()
    ]
    with serving(by_worth) as server:
        judged = judge(documents, settings(server.url, None, by="prompt_id"))
    stories, groups = only(judged)
    assert stories.shared["p3-beta"] == "p3"
    pairs = pairs_of(documents, "prompt_id")
    assert len(pairs) == 12 * 3
    assert all(one.prompt_id == other.prompt_id for one, other in pairs)
    assert len({one.part for one in stories.ranking.strengths}) == 12
    assert groups.of == "author"
    assert (groups.ranking.units, groups.ranking.n_units) == ("clusters", 12)
    order = [groups.names[one.thing] for one in groups.ranking.strengths]
    assert order == ["alpha", "beta", "gamma"]
    assert all(one.estimate.low is not None for one in groups.ranking.strengths)


def test_a_run_under_a_budget_resumes_with_the_same_pairs_and_pays_nothing_twice(tmp_path: Path):
    left = [10_000]

    def stops(body: dict[str, Any], number: int) -> Reply:
        left[0] -= 1
        return by_worth(body, number) if left[0] >= 0 else (401, {"error": {"message": "no"}})

    with serving(stops) as server:

        def run(name: str, n: int) -> tuple[list[Measurement], int]:
            """The measurements, and how many calls they took."""
            n_before = len(server.requests)
            chosen = settings(server.url, tmp_path / name, items="narrative_ending", max_pairs=n)
            return judge(STORIES, chosen).said, len(server.requests) - n_before

        whole, n_whole = run("whole", 16)
        left[0] = 21
        with pytest.raises(ModelError):
            run("part", 16)
        rows = rows_of(tmp_path / "part" / "answers.jsonl")
        n_paid = len({(row["id"], row["item"]) for row in rows if not row.get("failed")})
        left[0] = 10_000
        again, n_again = run("part", 16)
        _, n_idle = run("part", 16)
        larger, n_larger = run("part", 20)
    assert (n_whole, n_again, n_idle, n_larger) == (32, 32 - n_paid, 0, 8)
    assert 0 < n_paid < n_whole
    assert [one.document_id for one in again] == [one.document_id for one in whole]
    assert [one.value for one in again] == [one.value for one in whole]
    assert {one.document_id for one in whole} < {one.document_id for one in larger}


def test_a_budget_that_cannot_connect_the_stories_is_refused():
    with pytest.raises(SettingsError, match="at least 7"):
        judge(STORIES, settings("http://127.0.0.1:1", None, max_pairs=6))
    with pytest.raises(SettingsError, match="pairwise"):
        StoriesSettings(max_pairs=3)
    with pytest.raises(SettingsError, match="`by`"):
        StoriesSettings(pairwise=True, rank_by="author")

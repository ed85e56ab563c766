"""Who can judge here is found without anything being sent elsewhere."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.commands import invoke
from tests.http_serving import serving_files

from fabula.core.errors import ModelError
from fabula.models.available import PROVIDERS, find_models
from fabula.writer.setup import SetupSettings, setup


@contextmanager
def standing_at_a_port(folder: Path, listed: str) -> Iterator[int]:
    """A server whose list of models is this text."""
    (folder / "v1").mkdir(exist_ok=True)
    (folder / "v1" / "models").write_text(listed, encoding="utf-8")
    with serving_files(folder) as url:
        yield int(url.rpartition(":")[2])


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variables in PROVIDERS.values():
        for one in variables:
            monkeypatch.delenv(one, raising=False)


def test_a_key_makes_a_provider_and_a_name_a_model(monkeypatch: pytest.MonkeyPatch):
    assert [one.kind for one in find_models(())] == ["embedded"]
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    assert [one.name for one in find_models(())] == ["local", "google/..."]
    (named,) = setup(SetupSettings(models=("google/gemini-pro",))).judges or ()
    assert (named.trust, named.where) == (None, "named")
    with pytest.raises(ModelError, match="provider/model"):
        setup(SetupSettings(models=("gemini",)))


def served_at(port: int) -> list[str]:
    return [one.name for one in find_models([port]) if one.kind == "server"]


def test_a_local_servers_models_are_named_as_judge_takes_them(tmp_path: Path):
    with standing_at_a_port(tmp_path, '{"data": [{"id": "llama3.2:3b"}, {"id": "qwen3"}]}') as port:
        names = served_at(port)
    assert names == [f"http://127.0.0.1:{port}/v1#{name}" for name in ("llama3.2:3b", "qwen3")]
    assert served_at(port) == [], "nobody listens there now"


@pytest.mark.parametrize("listed", ["", "<html>", "[]", '{"data": 3}', '{"data": [{"name": 1}]}'])
def test_what_else_stands_at_a_port_is_no_model(tmp_path: Path, listed: str):
    with standing_at_a_port(tmp_path, listed) as port:
        assert served_at(port) == []


def test_a_price_that_users_give_is_the_cost_of_a_model_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    name = "http://127.0.0.1:9/v1#mine"
    words = ["setup", "--model", name, "--json"]

    def cost(*more: str) -> float | None:
        (row,) = json.loads(invoke(*words, *more).stdout)
        return row["cost"]

    assert cost() is None
    once = cost("--set", "models.price=1/10")
    Path("fabula.toml").write_text(f'[prices]\n"{name}" = "2/20"\n"openai/x" = "9/9"\n')
    assert cost() == pytest.approx(2 * once)
    assert cost("--set", "models.price=1/10") == once


def test_the_embedded_model_comes_with_its_trust_and_costs_nothing():
    (local,) = setup(SetupSettings(models=("local",))).judges or ()
    assert (local.cost, local.trust.n) == (0, 504)
    (row,) = json.loads(invoke("setup", "--model", "local", "--json").stdout)
    assert (row["model"], row["cost"]) == ("local", 0)
    assert row["trust"]["rubric"].startswith("ttcw")

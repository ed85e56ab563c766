"""`import fabula`: what is public, what goes in, what comes out, and what a mistake says."""

import asyncio
import inspect
import random
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.commands import invoke, refused, write_rows

import fabula as fb
from fabula.api import function_of, name_of, stub
from fabula.core.provenance import read_record, recording
from fabula.core.settings import fields_of
from fabula.core.types import Signature
from fabula.jobs.registry import Job, jobs
from fabula.judging.trust import Trust, TrustBook
from fabula.models.base import Prompt, Sampling
from fabula.models.model_spec import open_model

ROOT = Path(__file__).parents[2]

NAMES = [
    "BusyError", "CallFailed", "CorpusError", "Document", "Estimate", "FabulaError",
    "FunctionModel", "InputError", "Item", "LookupFailed", "Measurement", "MixError", "ModelError",
    "Reference", "Result", "Rubric", "Scale", "Settings", "SettingsError", "Signature", "Span",
    "WorkersEnded", "__version__", "load_rubric", "read", "register", "setting", "to_arrow",
    "to_pandas", "to_polars",
]  # fmt: skip


def test_every_job_is_a_function_and_so_is_nothing_else_that_is_not_named_here():
    """A change of this list is a change of the interface: the changelog names it."""
    functions = [job.python for job in jobs().values()]
    assert sorted(dir(fb)) == sorted([*NAMES, *functions])
    for name in dir(fb):
        assert getattr(fb, name) is not None
        assert name == "__version__" or inspect.getdoc(getattr(fb, name)), name
    with pytest.raises(AttributeError, match="has no attribute 'nosuch'"):
        fb.nosuch  # noqa: B018  # type: ignore[attr-defined]


@pytest.mark.parametrize("job", jobs().values(), ids=lambda job: job.name)
def test_a_function_names_each_argument_once_and_says_what_it_is(job: Job):
    shape = job.load()
    function = function_of(job)
    inputs = [one.name for one in shape.inputs]
    options = [name_of(one) for kind in shape.settings.values() for one in fields_of(kind)]
    assert len({*inputs, *options}) == len([*inputs, *options])
    doc = inspect.getdoc(function)
    assert doc is not None
    assert "Raises" in doc
    assert all(f"    {name}: " in doc for name in inspect.signature(function).parameters)


def test_the_stub_of_the_functions_is_the_one_that_the_jobs_give():
    made = stub()
    assert made == (ROOT / "src" / "fabula" / "__init__.pyi").read_text(encoding="utf-8")


def test_importing_fabula_imports_nothing_else():
    command = [sys.executable, "-c", "import fabula, sys; print(*sys.modules)"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "numba", "pyarrow", "click", "pydantic", "scipy"} & set(said.split())


TIDE = "The tide went out and the boats lay down in the mud like cows."
LETTERS = "She kept the letters in a tin that had once held tea from far away."
DRAFTS = [
    {"id": "a", "text": TIDE, "label": "x"},
    {"id": "b", "text": LETTERS, "label": "y"},
    {"id": "c", "text": "", "label": "y"},
]
BOOKS = {
    "1": "Long ago the boats lay down in the mud like cows, and nobody minded them at all.",
    "2": "It was the best of times, it was the worst of times, it was the age of wisdom.",
}


@pytest.mark.parametrize(
    "texts",
    [
        DRAFTS, pd.DataFrame(DRAFTS), pl.DataFrame(DRAFTS), pa.Table.from_pylist(DRAFTS),
        [fb.Document(row["id"], row["text"], meta={"label": row["label"]}) for row in DRAFTS],
    ],
    ids=["dicts", "pandas", "polars", "arrow", "documents"],
)  # fmt: skip
def test_texts_are_the_same_documents_in_whatever_they_come(texts: Any):
    found = fb.read(texts)
    assert [(one.id, one.text, one.meta["label"]) for one in found] == [
        (row["id"], row["text"], row["label"]) for row in DRAFTS
    ]


def test_strings_mappings_and_paths_are_texts_too(tmp_path: Path):
    assert [(d.id, d.text) for d in fb.read(["one", "two"])] == [("1", "one"), ("2", "two")]
    assert [(d.id, d.text) for d in fb.read({"k": "one"})] == [("k", "one")]
    (tmp_path / "a.txt").write_text("one")
    assert [d.text for d in fb.read(tmp_path)] == ["one"]
    assert [d.text for d in fb.read(str(tmp_path / "*.txt"))] == ["one"]
    (tmp_path / "b.txt").write_text("two")
    names = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    assert [d.text for d in fb.read(names)] == ["one", "two"], "they are files, and no texts"
    assert [d.id for d in fb.read({"id": str(k), "text": "x"} for k in range(2))] == ["0", "1"]
    assert [d.id for d in fb.read(pd.Series(["one", "two"], index=["k", "l"]))] == ["k", "l"]
    assert [d.text for d in fb.read(pl.Series(["one", "two"]))] == ["one", "two"]
    named = pd.DataFrame({"text": ["one"]}, index=pd.Index(["k"], name="story"))
    assert [d.id for d in fb.read(named)] == ["k"]


def test_values_are_taken_in_whatever_they_come(books: Any):
    """Ranges, lists and tuples, one value or several."""
    first, *others = (
        fb.originality(DRAFTS, books, levels=levels, jobs=1).to_json()
        for levels in ("3-5", [3, 4, 5], range(3, 6), (3, 4, 5))
    )
    assert all(other == first for other in others)
    with pytest.raises(fb.SettingsError, match=r"`levels` must be str .* of type object"):
        fb.originality(DRAFTS, books, levels=object())


def test_what_is_missing_in_a_frame_is_missing_in_its_document():
    frame = pd.DataFrame({"id": ["a", "b"], "text": ["x", None], "grade": [1.0, float("nan")]})
    a, b = fb.read(frame)
    assert (a.meta["grade"], b.meta["grade"], b.text) == (1.0, None, "")


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([], "no texts"),
        ("nosuch.txt", "nosuch.txt: no such file"),
        (["nosuch.txt"], "nosuch.txt: no such file"),
        ("It was late.\nNobody came.", "'It was late.\\\\nNobody came.'...: a string names a file"),
        ("It was late. " * 30, "give a text itself in a list"),
        ("", "texts must be a frame"),
        ({"a set", "has no order"}, "texts must be a frame"),
        (pd.Series(["one", "two"], index=[0, 0]), "two texts have the id '0'"),
        (3, "texts must be a frame"),
        (None, "texts must be a frame"),
        (pd.DataFrame({"story": ["x"]}), "row 1: no field 'text'; the fields are 'story'"),
        ([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], "a"),
    ],
)
def test_a_mistake_gets_a_sentence(texts: Any, said: str):
    with pytest.raises(fb.InputError, match=said):
        fb.read(texts)


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return fb.reference_build(BOOKS, tmp_path_factory.mktemp("api") / "books.ref", jobs=1)


def test_originality_equals_the_commands_and_its_frame_keeps_fields(books: Any, tmp_path: Path):
    scores = fb.originality(pd.DataFrame(DRAFTS), books, levels="3-5", jobs=1)
    drafts, theirs = write_rows(tmp_path / "d.jsonl", DRAFTS), tmp_path / "theirs.jsonl"
    score = ["originality", drafts, "--levels", "3-5", "--reference", books.place, "--out", theirs]
    invoke(*score, code=1)  # The third has no words, and so no score.
    scores.save(tmp_path / "mine.jsonl")
    assert (tmp_path / "mine.jsonl").read_bytes() == theirs.read_bytes()
    shown = scores.frame()
    assert list(shown["label"]) == ["x", "y", "y"]
    assert shown["creativity_index"].notna().tolist() == [True, True, False]
    assert shown["missing_reason"][2] == "no_words"
    assert "Creativity Index" in scores._repr_html_()


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame, pa.Table.from_pylist])
def test_a_result_is_a_frame_of_the_kind_that_came_in(books: Any, made: Any):
    given = made(DRAFTS)
    found = fb.originality(given, books, jobs=1)
    assert type(found.frame()) is type(given)
    with pytest.raises(fb.InputError, match="must be one of pandas, polars, arrow"):
        found.frame("dask")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"references": ("x",)}, "`references` is not an argument"),
        ({"threshold": 0.5}, "`threshold` is only for `match` near"),
    ],
)
def test_a_setting_that_does_not_fit_is_named(books: Any, options: dict[str, Any], said: str):
    with pytest.raises(fb.SettingsError, match=said):
        fb.originality(DRAFTS, books, **options)


def answer(prompt: str) -> str:
    return "Yes. The boats lie down." if "boats" in prompt else "No. Nothing happens."


async def awaited(prompt: str) -> str:
    return answer(prompt)


@pytest.mark.parametrize("model", [answer, awaited, fb.FunctionModel(answer, "mine")])
def test_a_function_is_a_judge(model: Any):
    drafts = DRAFTS[:2]
    verdicts = fb.judge(drafts, rubric="ttcw", model=model, style="verdict-first")
    wide = verdicts.frame()
    items = [item.id for item in fb.load_rubric("ttcw").items]
    assert (wide[items].iloc[0] == 1).all()
    assert (wide[items].iloc[1] == 0).all()
    assert list(wide["label"]) == [row["label"] for row in drafts]
    experts = [
        {"document": id_, "item": item, "rater": rater, "value": value}
        for id_, value in (("a", "Yes"), ("b", "No"))
        for item in items
        for rater in ("e1", "e2")
    ]
    found = fb.judge_agreement(verdicts, labels=pd.DataFrame(experts))
    assert found.to_json()["judges"][0]["kappa"] == 1
    assert found.to_json()["judges"][0]["low"] is None, "two stories: too few for an interval"
    corrected = fb.judge_correct(verdicts, labels=pd.DataFrame(experts))
    assert corrected.to_json()["overall"]["corrected"] == 0.5
    row = corrected.frame().set_index("name").loc["all"]
    assert (row["raw"], row["n_labelled"]) == (0.5, 2)
    with pytest.raises(fb.SettingsError, match="labels"):
        fb.judge_correct(verdicts)


def test_judges_that_cannot_be_compared_get_a_sentence(tmp_path: Path):
    with pytest.raises(fb.InputError, match="`labels` are needed without runs"):
        fb.judge_agreement([])
    verdicts = fb.judge(DRAFTS[:1], model=answer, style="verdict-first")
    unknown = [{"document": "a", "item": "pace", "rater": "a", "value": 1}]
    with pytest.raises(fb.InputError, match="row 1: ttcw has no item 'pace'"):
        fb.judge_agreement(verdicts, labels=unknown)
    twice = fb.judge_agreement([verdicts, verdicts]).frame()["rater"]
    assert [name.rpartition(" (")[2] for name in twice] == ["run 1)", "run 2)"]
    rubric = tmp_path / "one.toml"
    item = '[[items]]\nid = "a"\nindex = 1\ntitle = "A"\nquestion = "Is it good?"\n'
    rubric.write_text(f'id = "one"\nversion = "1"\ntitle = "One"\n{item}')
    one = fb.judge(DRAFTS[:1], rubric=rubric, model=answer, style="verdict-first")
    with pytest.raises(fb.MixError, match="run 2: judged on different items"):
        fb.judge_agreement([verdicts, one])


def test_a_function_that_fails_leaves_verdicts_missing_and_a_run_resumes(tmp_path: Path):
    asked: list[str] = []

    def sometimes(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == 1:
            raise TimeoutError("no answer in 30 s")
        return answer(prompt)

    def run() -> Any:
        return fb.judge(DRAFTS[:1], model=sometimes, out=tmp_path / "run", style="verdict-first")

    missing = [one for one in run().measurements() if one.value is None]
    assert [one.missing_reason for one in missing] == ["failed"]
    n = len(asked)
    assert all(one.value == 1 for one in run().measurements())
    assert len(asked) == n + 1, "only what failed is asked again"


def test_a_function_that_gives_no_text_is_named():
    with pytest.raises(fb.ModelError, match="function/lambda: returned a NoneType"):
        fb.judge(DRAFTS[:1], model=lambda _: None, style="verdict-first")  # type: ignore[arg-type, return-value]
    with pytest.raises(fb.InputError, match="a model must be a name or a function"):
        fb.judge(DRAFTS[:1], model=3)  # type: ignore[arg-type]


def test_groups_are_compared_by_a_field_of_the_texts(tmp_path: Path):
    """And told apart: those that copy a sentence each of a book, and those that do not."""
    rng = random.Random(7)
    words = [f"{a}{b}{c}o" for a in "bdfgklmnprst" for b in "aeiou" for c in "lmnrst"]
    ids = [f"t{k}" for k in range(60)]
    frame = pd.DataFrame({"id": ids, "label": ["old"] * 30 + ["new"] * 30})
    frame["text"] = [" ".join(rng.choices(words, k=40)) for _ in range(60)]
    books = fb.reference_build(list(frame["text"][:30]), tmp_path / "words.ref", jobs=1)
    scores = fb.originality(frame, books, levels="3-5", jobs=1)
    found = fb.compare(scores, by="label", baseline="old")
    for kind in ("pandas", "polars", "arrow"):
        again = fb.compare(scores.frame(kind), by="label", baseline="old")
        assert again.to_json() == found.to_json(), kind
    table = found.frame().query("number == 'creativity_index'").set_index("name")
    assert table["mean"]["new"] > table["mean"]["old"]
    detector = fb.detect_calibrate(scores, label="label=new", cluster="id")
    assert detector.calibrations[0].outcome == "separates"
    assert set(fb.detect_apply(detector, scores, fpr=0.1).frame()["id"]) == set(frame["id"])


def test_the_frame_of_a_profile_is_compared_as_the_profile_is():
    profiles = fb.profile(pd.DataFrame(DRAFTS), jobs=1)
    found = fb.compare(profiles, by="label").to_json()
    assert fb.compare(profiles.frame(), by="label").to_json() == found


def test_verdicts_that_are_there_stand_on_the_page(books: Any, tmp_path: Path):
    drafts = DRAFTS[:2]
    verdicts = fb.judge(drafts, rubric="ttcw", model=answer, style="verdict-first")
    without = ("profile", "originality")
    report = fb.report(drafts, judge=verdicts, without=without, jobs=1)
    report.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "The boats lie down." in page
    assert "verdicts" not in {entry["part"] for entry in report.left_out}
    assert list(report.frame().filter(like="score ").iloc[:, 0]) == [14, 0]
    labels = [{"document": one["id"], "item": 1, "rater": "Ann", "value": "No"} for one in drafts]
    labelled = fb.report(drafts, judge=verdicts, labels=labels, without=without, jobs=1)
    (corrected,) = labelled.to_json()["corrected"]
    assert corrected == fb.judge_correct(verdicts, labels=labels).to_json()
    for texts, options, said in (
        (drafts, {"labels": labels}, "`labels` correct what `model` say"),
        (DRAFTS[2:], {"judge": verdicts}, "no verdict on any of these texts"),
        (drafts, {"judge": verdicts, "model": "local"}, "already contains verdicts"),
    ):
        with pytest.raises(fb.InputError, match=said):
            fb.report(texts, without=without, jobs=1, **options)


@pytest.mark.parametrize(("low", "is_shown"), [(0.1, True), (-0.1, False), (None, False)])
def test_a_judge_heads_the_page_only_if_it_was_measured_above_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, low: float | None, is_shown: bool
):
    monkeypatch.setenv("FABULA_HOME", str(tmp_path))
    verdicts = fb.judge(DRAFTS[:2], rubric="ttcw", model=answer, style="verdict-first")
    parts = dict(Signature.parse(verdicts.measurements()[0].signature).parts)
    trust = Trust(
        model=parts["model"], rubric=parts["rubric"], style=parts["style"], prompt=parts["prompt"],
        item="all", kappa=0.3, low=low, high=0.5, n=500, n_missing=0, balanced_accuracy=0.6,
        data="experts.csv", samples=1, temperature=0.0,
    )  # fmt: skip
    TrustBook().add([trust])
    without = ("profile", "originality", "diversity")
    fb.report(DRAFTS[:2], judge=verdicts, without=without).save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    heads = re.findall(r'<dl class="kpi">(.*?)</dl>', page, re.DOTALL)
    assert heads
    assert all(("tests passed, by" in head) == is_shown for head in heads)
    assert "0.30" in page


def test_key_phrases_are_those_of_one_frame_by_a_field_or_of_two():
    rng = random.Random(0)
    words = [f"w{k}" for k in range(40)]
    frame = pd.DataFrame({"id": list("abcdefghijklmnopqrstuvwxyzABCDEF")})
    frame["label"] = ["machine", "human"] * 16
    opening = frame.label.map({"machine": "once upon a time ", "human": ""})
    frame["text"] = [one + " ".join(rng.choices(words, k=30)) for one in opening]
    found = fb.phrases(frame, by="label")
    machine, human = (frame[frame.label == name] for name in ("machine", "human"))
    of_two = fb.phrases(machine, human, of="machine", against="human")
    assert of_two.to_json() == found.to_json()
    first = found.frame().iloc[0]
    assert (first.phrase, first.texts_a, first.texts_b) == ("once upon a time", 16, 0)


def test_what_python_writes_has_a_record_of_its_call(books: Any, tmp_path: Path):
    texts = {"a": "the lamp went out and the sea came in", "b": "nobody in the harbour woke at all"}
    scores = fb.originality(texts, books, levels="3-4", out=tmp_path / "scores.jsonl", jobs=1)
    record = read_record(tmp_path / "scores.jsonl")
    assert record["command"] == "fabula.originality"
    assert record["settings"]["levels"] == "3-4"
    assert set(record["inputs"]) == {str(books.place), "texts in memory 1"}
    assert all(len(digest) == 64 for digest in record["inputs"].values())
    assert read_record(Path(books.place))["command"] == "fabula.reference_build"
    scores.save(tmp_path / "page.html")
    scores.save(tmp_path / "table.csv")
    for path in (tmp_path / "page.html", tmp_path / "table.csv"):
        saved = read_record(path)
        assert saved["settings"] == {**record["settings"], "saved": True}
        assert (saved["inputs"], saved["seconds"]) == (record["inputs"], record["seconds"])
    other = fb.originality({**texts, "b": "quite another text"}, books, levels="3-4", jobs=1)
    other.save(tmp_path / "other.jsonl")
    inputs = read_record(tmp_path / "other.jsonl")["inputs"]
    assert inputs["texts in memory 1"] != record["inputs"]["texts in memory 1"]
    said = refused("rerun", tmp_path / "scores.jsonl")
    assert "by `fabula.originality()`; repeat that call" in said


def test_a_model_asked_from_another_thread_is_named_in_the_record():
    with recording() as noted:
        model = open_model(fb.FunctionModel(lambda prompt: "Yes.", name="mine"))
        ask = model.ask(Prompt("The story. ", "Is it good?"), Sampling(seed=3))
        thread = threading.Thread(target=lambda: asyncio.run(ask))
        thread.start()
        thread.join()
    assert [name for name, _, _ in noted.models] == ["function/mine"]

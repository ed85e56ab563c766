"""What a study exports is read by what works on labels, in every design and every form."""

import zlib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.commands import invoke
from tests.judging.test_judges import write_run
from tests.studies.test_analysis import answer, begin
from tests.studies_data import story_rows

from fabula.core.types import Measurement, Rubric
from fabula.raters.labels import read_labels
from fabula.studies.forms import Key, pages_of
from fabula.studies.study_engine import open_store
from fabula.studies.units import read_units

FORMATS = ("jsonl", "csv", "xlsx", "parquet")


class Answered(NamedTuple):
    """A study that people answered, and a run of a judge on the same texts and items."""

    file: Path
    rubric: Rubric
    judged: Path


def choice(*about: object) -> int:
    return zlib.crc32(repr(about).encode())


def feedback_rows() -> list[dict[str, Any]]:
    return [
        {"id": f"f{k}", "story_id": f"s{k}", "method": "original", "prompt": "spot", "shots": 0,
         "model": "m", "feedback": f"Point {k}.", "missing_reason": None, "story": f"Story {k}.",
         "original": f"Story {k}.", "change": {"edits": []}, "signature": "x"}
        for k in range(12)
    ]  # fmt: skip


def answered(folder: Path, kind: str) -> Answered:
    """Three people on each unit; the judge says what the first of them says, mostly."""
    design = begin(folder, kind, feedback_rows() if kind == "feedback" else story_rows(6, 3))
    units = read_units(design)
    store = open_store(design, units)
    judged: list[Measurement] = []
    for unit in units:
        pages = pages_of(design, len(unit.documents))
        for person in range(3):
            given: dict[Key, str] = {}
            for question in (q for page in pages for q in page.questions):
                part, item = question.key
                options = question.options
                if item == "preference":
                    given[question.key] = part
                elif not options:
                    given[question.key] = "=1+1, or so it seems."
                elif not question.item.show_if:
                    draw = choice(unit.key, part, item, choice(person, unit.key, item) % 5 == 0)
                    given[question.key] = options[draw % len(options)]
                    if question.min_words:
                        given[question.why] = "-and that is why I say so"
            answer(store, design, unit, given)
            if person:
                continue
            for (part, item), said in given.items():
                own = next((one for one in design.rubric.items if one.id == item), None)
                if own is None or item.endswith(".why"):
                    continue
                document = unit.documents[int(part) - 1 if part.isdecimal() else 0]
                value: Any = own.scale.read(said)
                details: dict[str, Any] = {}
                if kind == "pairs":
                    value = unit.documents[said == "Story 2"].id
                    details = {"orders": ["AB"[said == "Story 2"]] * 2}
                judged.append(Measurement(
                    unit.key if kind == "pairs" else document.id, design.rubric.key, item, "judge",
                    value, None, (), None, "judge|x:1", details,
                ))  # fmt: skip
    store.close()
    return Answered(design.path, design.rubric, write_run(folder / "judged", judged, design.rubric))


@pytest.fixture(scope="module", params=["ttcw", "feedback", "pairs"])
def study(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Answered:
    return answered(tmp_path_factory.mktemp(request.param), request.param)


def values(path: Path, rubric: Rubric) -> dict[tuple[str, str, str], tuple[object, object]]:
    return {
        (one.document_id, one.item, one.rater): (one.value, (one.rationale or "").lstrip("'"))
        for one in read_labels(path, rubric)
        if one.value is not None
    }


def test_each_form_holds_the_same_labels(study: Answered, tmp_path: Path):
    found = []
    for form in FORMATS:
        for wide in ([], ["--wide"]):
            out = tmp_path / f"{form}{len(wide)}.{form}"
            invoke("study", "export", study.file, "--format", form, "--out", out, *wide)
            found.append(values(out, study.rubric))
    assert len(found[0]) > 30
    assert all(one == found[0] for one in found)


def test_each_form_is_taken_by_agreement_and_the_comparison_of_judges(
    study: Answered, tmp_path: Path
):
    said: dict[str, list[str]] = {"agreement": [], "compare": [], "correct": []}
    for form in FORMATS:
        out = tmp_path / f"labels.{form}"
        wide = ["--wide"] if form == "xlsx" else []
        invoke("study", "export", study.file, "--format", form, "--out", out, *wide)
        commands = {
            "agreement": ("judge", "agreement", study.judged, "--labels", out),
            "compare": ("judge", "agreement", study.judged, "--labels", out),
            "correct": ("judge", "correct", study.judged, "--labels", out),
        }
        for name, command in commands.items():
            done = invoke(*command, "--json", code=None)
            if name == "correct" and study.rubric.id != "ttcw":
                # There is nothing of these that could be averaged, and it says so.
                why = {"feedback": "no items that can be averaged", "comparison": "compares"}
                assert why[study.rubric.id] in str(done.exception)
                continue
            assert done.exit_code == 0, (name, form, str(done.exception), done.output)
            said[name].append(done.stdout.replace(out.name, "labels"))
    assert all(len(set(found)) == 1 for name, found in said.items() if name != "correct" or found)

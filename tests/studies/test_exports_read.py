"""What a study exports is read by what works on labels, in every design and every form."""

import zlib
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.commands import invoke
from tests.judging.judged_stories import measured
from tests.judging.test_judges import write_run
from tests.studies.running import answer, feedback_rows, make, tales

from fabula.core.types import Measurement, Rubric
from fabula.raters.labels import read_labels
from fabula.studies.forms import Key, pages_of
from fabula.studies.units import Unit


class Answered(NamedTuple):
    """A study that people answered, and a run of a judge on the same texts and items."""

    file: Path
    rubric: Rubric
    judged: Path

    def export(self, out: Path, *more: str) -> Path:
        invoke("study", "export", self.file, "--out", out, *more)
        return out


def choice(*about: object) -> int:
    return zlib.crc32(repr(about).encode())


def verdict(kind: str, rubric: Rubric, unit: Unit, key: Key, said: str) -> Measurement:
    """A judge's, who says what a person said."""
    part, item = key
    document = unit.documents[int(part) - 1 if part.isdecimal() else 0].id
    value: Any = rubric.item(item).scale.read(said)
    if kind == "pairs":
        orders = ["AB"[said == "Story 2"]] * 2
        value = unit.documents[said == "Story 2"].id
        return measured(unit.key, item, value, rubric=rubric, orders=orders)
    return measured(document, item, value, rubric=rubric)


@pytest.fixture(scope="module", params=["ttcw", "feedback", "pairs"])
def study(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Answered:
    """Three people on each unit; the judge says what the first of them says."""
    folder, kind = tmp_path_factory.mktemp(request.param), request.param
    rows = tales(4, 3)
    if kind == "feedback":
        rows = [feedback_rows()[0] | {"id": f"f{k}", "story_id": f"s{k}"} for k in range(12)]
    running = make(folder, kind, rows)
    design = running.design
    judged: list[Measurement] = []
    items = {item.id for item in design.rubric.items}
    for unit in running.units:
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
            answer(running, unit, given)
            if person == 0:
                judged += [verdict(kind, design.rubric, unit, key, said)
                           for key, said in given.items() if key[1] in items]  # fmt: skip
    running.store.close()
    return Answered(design.path, design.rubric, write_run(folder / "judged", judged, design.rubric))


def test_each_form_holds_the_same_labels_and_is_taken_as_people_s(study: Answered, tmp_path: Path):
    found, outs = [], []
    for form, wide in product(("jsonl", "csv", "xlsx", "parquet"), ([], ["--wide"])):
        outs.append(study.export(tmp_path / f"{len(wide)}.{form}", *wide))
        found.append({
            (one.document_id, one.item, one.rater): (one.value, str(one.rationale).lstrip("'"))
            for one in read_labels(outs[-1], study.rubric)
            if one.value is not None
        })  # fmt: skip
    assert len(found[0]) > 30
    assert all(one == found[0] for one in found)
    for command in ("agreement", "correct"):
        told = set()
        for out in (outs[0], outs[-1]):
            done = invoke("judge", command, study.judged, "--labels", out, "--json", code=None)
            told.add(done.stdout.replace(out.name, "labels"))
            if command == "correct" and study.rubric.id != "ttcw":
                # There is nothing of these that could be averaged, and it says so.
                why = {"feedback": "no items that can be averaged", "comparison": "compares"}
                assert why[study.rubric.id] in str(done.exception)
            else:
                assert done.exit_code == 0, (command, out, str(done.exception), done.output)
        assert len(told) == 1

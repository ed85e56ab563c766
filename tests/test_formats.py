"""Files of every format that there ever was are read, or refused with the command that makes them.

The files in `golden/formats/` were written by Fabula as it was, and are never written again: a new
version of a format adds its own.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.desk.drafts import Drafts
from fabula.errors import FabulaError
from fabula.formats import (
    CASES,
    DESK,
    DETECTORS,
    DIVERSITY,
    FORMATS,
    NETWORK,
    PASSAGES,
    PHRASES,
    PROVENANCE,
    REFERENCE,
    ROWS,
    RUN,
    TRAINING,
    Format,
)
from fabula.jobs.comparison import ComparisonSettings, compare_diversity
from fabula.judging import folder, judging_plan, pairwise, trust
from fabula.measures import scores
from fabula.measures.detector_verdicts import read_detectors
from fabula.measures.groups import read_groups
from fabula.measures.linguistic import equal_length, system_scores
from fabula.measures.phrase_list import read_phrases
from fabula.models import caching
from fabula.provenance import read_record
from fabula.reference import Reference
from fabula.reference.checksums import seal
from fabula.reference.passage_shards import open_passages
from fabula.resume import RowKind, kept_rows
from fabula.store import read_measurements, read_rows
from fabula.tasks import openings, story_writing
from fabula.tasks.continuation import corpus, generating, recurrent, retrieval
from fabula.tasks.feedback import corrupting, eliciting

GOLDEN = Path(__file__).parent / "golden" / "formats"
SOURCE = Path(fabula.__file__).parent

ROW_KINDS: dict[str, RowKind] = {
    "answers": judging_plan.ANSWERS,
    "calls": caching.CALLS,
    "continuations": generating.CONTINUATIONS,
    "controls": equal_length._CONTROLS,
    "corrupted": corrupting.CORRUPTED,
    "feedback": eliciting.ANSWERS,
    "metrics": system_scores._SCORES,
    "openings": openings.OPENINGS,
    "pair-rounds": pairwise.ROUNDS,
    "plots": story_writing.PLOTS,
    "scores": scores._SCORES,
    "story-rounds": story_writing.ROUNDS,
}
"""Rows that a job resumes from."""


def resumed(kind: RowKind) -> Callable[[Path], int]:
    def read(path: Path) -> int:
        with kept_rows(path, kind) as rows:
            return len(rows)

    return read


def corpus_of(path: Path) -> int:
    """Every document that is not removed is found by its own words."""
    with closing(Reference.open(str(path))) as reference:
        for number in reference.numbers():
            words = reference.locate(reference.document(number).text).words[:5]
            assert number in reference.documents_with(words)
            assert reference.longest_matches(words).tolist() == [5, 4, 3, 2, 1]
        return len(reference.numbers())


def passages_of(path: Path) -> int:
    with closing(Reference.open(str(path))) as reference:
        (key,) = (one.name for one in (path / "passages").iterdir())
        return sum(len(one.begins) for one in open_passages(reference.local.shards, key))


def training_of(path: Path) -> int:
    found = corpus.Corpus.open(path)
    assert len(found.sentence(0)) > 0
    return found.n_stories


def cases_of(path: Path) -> int:
    found = corpus.Corpus.open(path)
    return int(retrieval.CaseIndex(found).nearest(found.shards[0].tokens[:5]) is not None)


def network_of(path: Path) -> int:
    return len(recurrent.Recurrent.load(corpus.Corpus.open(path)).signature)


def drafts_of(path: Path) -> int:
    drafts = Drafts(path)
    (piece,) = drafts.pieces()
    journal = drafts.journal(piece.id)
    assert journal.writing() is not None
    assert all(journal.text(state) for state in journal.states())
    return len(piece.versions)


def run_of(path: Path) -> int:
    return len(folder.read_run(path)[1]) * resumed(judging_plan.ANSWERS)(path / "answers.jsonl")


def diversity_of(path: Path) -> int:
    return len(compare_diversity([path], ComparisonSettings()).tests)


READERS: dict[str, Callable[[Path], int]] = {
    **{f"rows/{name}-1.jsonl": resumed(kind) for name, kind in ROW_KINDS.items()},
    "rows/groups-1.jsonl": lambda path: len(read_groups(path)),
    "rows/measurements-1.jsonl": lambda path: len(list(read_measurements(path))),
    "rows/passages-1.jsonl": lambda path: len(system_scores.read_contexts(path)),
    "rows/profiles-1.jsonl": lambda path: len(list(read_rows(path))),
    "rows/trust-1.jsonl": lambda path: len(trust._read(path)),
    "detectors-2.json": lambda path: len(read_detectors(path)),
    "diversity-2.json": diversity_of,
    "phrases-1.jsonl": lambda path: len(read_phrases(path).phrases),
    "reference-2": corpus_of,
    "reference-2/passages": lambda path: passages_of(path.parent),
    "reference-2-filtered": corpus_of,
    "reference-2-keyed": corpus_of,
    "training-2": training_of,
    "training-2/cases": lambda path: cases_of(path.parent),
    "training-2/recurrent": lambda path: network_of(path.parent),
    "run-1": run_of,
    "desk-1": drafts_of,
    "record-1.provenance.json": lambda path: len(read_record(path)["outputs"]),
}
REFUSED: dict[str, tuple[Callable[[Path], int], str]] = {
    "detectors-1.json": (READERS["detectors-2.json"], "fabula detect calibrate"),
    "diversity-1.json": (diversity_of, "fabula diversity --json"),
    "reference-1": (corpus_of, "fabula reference build"),
    "training-1": (training_of, "fabula continuation train"),
}
"""Older ones that are not read, with the command that makes them again."""
PLACES: dict[Format, tuple[str, ...]] = {
    ROWS: tuple(name for name in READERS if name.startswith("rows/")),
    RUN: ("run-1",),
    REFERENCE: ("reference-1", "reference-2", "reference-2-filtered", "reference-2-keyed"),
    PASSAGES: ("reference-2/passages",),
    DETECTORS: ("detectors-1.json", "detectors-2.json"),
    DIVERSITY: ("diversity-1.json", "diversity-2.json"),
    PHRASES: ("phrases-1.jsonl",),
    TRAINING: ("training-1", "training-2"),
    CASES: ("training-2/cases",),
    NETWORK: ("training-2/recurrent",),
    DESK: ("desk-1",),
    PROVENANCE: ("record-1.provenance.json",),
}
HEADS = {
    **dict.fromkeys(PLACES[ROWS], ""),
    "reference-2": "manifest.json",
    "reference-2-filtered": "manifest.json",
    "reference-2-keyed": "manifest.json",
    "reference-2/passages": "*/*/shard.json",
    "detectors-2.json": "",
    "diversity-2.json": "",
    "phrases-1.jsonl": "",
    "training-2": "corpus.json",
    "training-2/cases": "index.json",
    "desk-1": "desk.json",
    "record-1.provenance.json": "",
}
"""The file in which each says its version; a network says it within, and a run to who resumes."""


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[str], Path]:
    """A copy of one of them, with all that lies beside it in its folder."""

    def copy(name: str) -> Path:
        whole = GOLDEN / name.partition("/")[0]
        if whole.is_dir():
            shutil.copytree(whole, tmp_path / whole.name)
        else:
            shutil.copy(whole, tmp_path)
        return tmp_path / name

    return copy


def needs(name: str) -> None:
    if name.endswith("recurrent"):
        pytest.importorskip("torch", reason="needs fabula[neural]")


@pytest.mark.parametrize("name", READERS)
def test_what_was_written_once_is_read_for_ever(copied: Callable[[str], Path], name: str) -> None:
    needs(name)
    assert READERS[name](copied(name)) > 0


@pytest.mark.parametrize("name", REFUSED)
def test_an_older_format_is_refused_with_the_command_that_makes_it_again(
    copied: Callable[[str], Path], name: str
) -> None:
    read, command = REFUSED[name]
    with pytest.raises(FabulaError, match="earlier version of Fabula") as caught:
        read(copied(name))
    assert name in str(caught.value)
    assert command in str(caught.value)


def head_of(place: Path, pattern: str) -> Path:
    if not pattern:
        return place
    (head,) = place.glob(pattern)
    return head


@pytest.mark.parametrize("name", HEADS)
def test_a_newer_format_is_refused_in_a_sentence_and_stays_as_it_is(
    copied: Callable[[str], Path], name: str
) -> None:
    place = copied(name)
    head = head_of(place, HEADS[name])
    form = next(one for one, places in PLACES.items() if name in places)
    text = head.read_text(encoding="utf-8")
    first, *more = text.splitlines() if head.suffix == ".jsonl" else [text]
    row: dict[str, Any] = {**json.loads(first), form.field: form.version + 1}
    if row.pop("sha256", None):
        row = seal(row)
    if form is PHRASES:
        row = {form.field: row.pop(form.field), **row}
    changed = "\n".join([json.dumps(row, separators=(",", ":")), *more])
    head.write_text(changed, encoding="utf-8")
    with pytest.raises(FabulaError, match="newer version of Fabula") as caught:
        READERS[name](place)
    said = str(caught.value)
    assert str(head.parent if form is PASSAGES else head) in said
    assert f"format {form.version + 1}" in said
    assert f"reads format {form.version}" in said
    assert form.remedy in said
    assert "\n" not in said
    assert head.read_text(encoding="utf-8") == changed


def test_a_version_that_is_none_is_damage() -> None:
    for found in (0, -1, True, "2", None, 1.5):
        with pytest.raises(FabulaError, match=r"a\.json: damaged .*not a version"):
            RUN.check({"format": found}, "a.json")


def test_what_is_made_again_may_be_older_and_never_newer() -> None:
    assert TRAINING.check({"format": 1}, "a", replaces=True) == 1
    with pytest.raises(FabulaError, match="newer version"):
        TRAINING.check({"format": 3}, "a", replaces=True)


def test_every_version_of_every_format_is_kept() -> None:
    assert set(PLACES) == set(FORMATS)
    for form, places in PLACES.items():
        for version in range(1, form.version + 1):
            kept = [one for one in places if f"-{version}" in Path(one).name or "/" in one]
            assert kept, f"no file of {form.kind}, format {version}, in {GOLDEN}"
        assert all((GOLDEN / one).exists() for one in places)
        assert all(one in READERS or one in REFUSED for one in places)


def row_kinds() -> Iterator[tuple[str, RowKind]]:
    """All that the source declares."""
    for file in sorted(SOURCE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        for node in ast.parse(text).body if "= RowKind(" in text else ():
            value = node.value if isinstance(node, ast.Assign) else None
            if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "RowKind":
                parts = file.relative_to(SOURCE).with_suffix("").parts
                module = importlib.import_module(".".join(("fabula", *parts)))
                (target,) = node.targets
                yield f"{'.'.join(parts)}.{target.id}", getattr(module, target.id)


def test_every_kind_of_rows_that_a_job_resumes_from_is_kept() -> None:
    found = dict(row_kinds())
    lacking = [name for name, kind in found.items() if kind not in ROW_KINDS.values()]
    assert not lacking, f"no file of {', '.join(lacking)} in {GOLDEN / 'rows'}"
    assert len(found) == len(ROW_KINDS)


STUDIES = sorted(path.stem for path in (GOLDEN / "study").iterdir())


@pytest.mark.skipif(importlib.util.find_spec("sqlalchemy") is None, reason="needs fabula[study]")
@pytest.mark.parametrize("revision", STUDIES)
def test_a_study_of_every_earlier_form_keeps_its_answers(tmp_path: Path, revision: str) -> None:
    from sqlalchemy import select

    from fabula.studies.database import answers
    from fabula.studies.study_engine import open_file

    file = tmp_path / "study.db"
    with closing(sqlite3.connect(file)) as database:
        database.executescript((GOLDEN / "study" / f"{revision}.sql").read_text(encoding="utf-8"))
    with closing(open_file(file)) as store, store.reading() as connection:
        (row,) = connection.execute(select(answers))
    assert (row.item, row.value) == ("narrative_ending", "Yes")


def test_every_migration_of_a_study_is_kept() -> None:
    versions = (SOURCE / "studies" / "migrations" / "versions").glob("*.py")
    revisions = {
        node.value.value
        for file in versions
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and getattr(node.targets[0], "id", "") == "revision"
    }
    assert revisions == set(STUDIES)

"""A file of another format is refused in a sentence that says how to make it again."""

import json
from pathlib import Path

import pytest

from fabula import __version__
from fabula.errors import CorpusError, FabulaError, InputError
from fabula.formats import FORMATS, REFERENCE, ROWS, Format
from fabula.reference import Reference
from fabula.resume import RowKind, kept_rows
from fabula.types import Document


@pytest.mark.parametrize("format_", FORMATS, ids=lambda one: one.kind)
def test_what_is_written_is_read_and_nothing_else(format_: Format) -> None:
    format_.check(format_.mark, "file")
    for version in {1, format_.version + 1, 99} - {format_.version}:
        with pytest.raises(format_.error, match="another version of Fabula") as refused:
            format_.check({format_.field: version}, "that/file")
        assert str(refused.value).startswith("that/file: ")
        assert format_.remedy in str(refused.value)
    for version in ("1", True, 0, -1, 1.0, None):
        with pytest.raises(format_.error, match=r"damaged \(its"):
            format_.check({format_.field: version}, "file")


def test_kinds_have_names_and_fields_of_their_own() -> None:
    assert len({one.kind for one in FORMATS}) == len(FORMATS)


def test_rows_of_a_newer_version_are_refused_and_stay(tmp_path: Path) -> None:
    kind, file = RowKind("the row", ("id",)), tmp_path / "rows.jsonl"
    for more in ({ROWS.field: 2}, {"signature": "originality|v:99.0.0"}):
        file.write_text(json.dumps({"id": "a", "missing_reason": None, **more}) + "\n")
        before = file.read_bytes()
        with pytest.raises(InputError, match=rf"line 1: written by .* this is {__version__}"):
            kept_rows(file, kind).__enter__()
        assert file.read_bytes() == before


def test_a_corpus_of_another_version_is_refused_with_the_remedy(tmp_path: Path) -> None:
    Reference.build([Document("a", "one two three")], tmp_path)
    manifest = tmp_path / "manifest.json"
    row = json.loads(manifest.read_bytes()) | {"format": REFERENCE.version - 1}
    manifest.write_text(json.dumps(row))
    with pytest.raises(CorpusError, match="build it again with `fabula reference build`"):
        Reference.open(tmp_path)
    with pytest.raises(FabulaError, match=r"manifest\.json"):
        Reference.open(tmp_path)

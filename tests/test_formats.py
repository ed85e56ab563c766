"""A file of another format is refused in a sentence that says how to make it again."""

import json
from pathlib import Path

import pytest

from fabula.core.errors import CorpusError, FabulaError
from fabula.core.store import FORMATS, REFERENCE, Format
from fabula.core.types import Document
from fabula.reference.files import seal, unsealed
from fabula.reference.search import Reference


@pytest.mark.parametrize("format_", FORMATS, ids=lambda one: one.kind)
def test_what_is_written_is_read_and_nothing_else(format_: Format):
    format_.check(format_.mark, "file")
    for version in {1, format_.version + 1, 99} - {format_.version}:
        with pytest.raises(format_.error, match="another version of Fabula") as refused:
            format_.check({format_.field: version}, "that/file")
        assert str(refused.value).startswith("that/file: ")
        assert format_.remedy in str(refused.value)
    for version in ("1", True, 0, -1, 1.0, None):
        with pytest.raises(format_.error, match=r"damaged \(its"):
            format_.check({format_.field: version}, "file")


def test_kinds_have_names_and_fields_of_their_own():
    assert len({one.kind for one in FORMATS}) == len(FORMATS)


def test_a_corpus_of_another_version_is_refused_with_the_remedy(tmp_path: Path):
    Reference.build([Document("a", "one two three")], tmp_path)
    manifest = tmp_path / "manifest.json"
    row = unsealed(manifest.read_bytes(), "") | {"format": REFERENCE.version - 1}
    manifest.write_text(json.dumps(seal(row)))
    with pytest.raises(CorpusError, match="build it again with `fabula reference build`"):
        Reference.open(tmp_path)
    with pytest.raises(FabulaError, match=r"manifest\.json"):
        Reference.open(tmp_path)

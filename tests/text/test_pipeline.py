"""The English pipeline: what is opened for it, and how often."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.forking import python_command

from fabula.text.pipeline import load_pipeline

pytest.importorskip("spacy")

AGAIN = """
import sys
from fabula.style.lines import read_drafts
from fabula.core.types import Document
text = "The lamp went out. She saw teh sea, and he said nothing at all about it."
[one] = read_drafts([Document("a", text)], ("profile", "lines"))
print(one.profile.to_row(), one.lines.to_row(one.profile.document))
print("spacy" in sys.modules, file=sys.stderr)
"""


def test_a_text_that_was_read_before_is_read_again_without_opening_it(tmp_path: Path):
    pytest.importorskip("harper")
    (tmp_path / "again.py").write_text(AGAIN)
    first, again = (
        subprocess.run(
            [python, tmp_path / "again.py"], env=os.environ | {"FABULA_CACHE": str(tmp_path)},
            capture_output=True, text=True, check=True,
        )
        for python in (python_command(), sys.executable)
    )  # fmt: skip
    assert [first.stderr, again.stderr] == ["True\n", "False\n"]
    assert again.stdout == first.stdout


CODE = """
import sys
from fabula.text.pipeline import load_pipeline
[first, second] = load_pipeline(("senter",))("A lamp went out. She saw it.").sents
assert not {"torch", "spacy.cli", "typer", "weasel"} & set(sys.modules)
import spacy
assert spacy.info(silent=True)["spacy_version"] == spacy.__version__
import spacy.cli
assert spacy.cli.info
"""


def test_opening_it_imports_neither_torch_nor_the_command_line_of_spacy():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_it_is_opened_once_and_each_use_runs_its_own_components():
    sentences, people = load_pipeline(("senter",)), load_pipeline(("ner",))
    assert sentences.vocab is people.vocab
    assert sentences.tokenizer is people.tokenizer
    text = "Charles Dickens wrote it. He lived in London."
    assert [len(list(one(text).ents)) for one in (sentences, people)] == [0, 2]
    assert [one(text).has_annotation("SENT_START") for one in (sentences, people)] == [True, False]

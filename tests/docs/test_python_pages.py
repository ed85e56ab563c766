"""The Python in the manual does what the manual shows."""

import doctest
import re
import shutil
from pathlib import Path

import pytest

from fabula import __version__
from fabula.core import instruments
from fabula.core.scales import KINDS
from fabula.text.readers import READERS

ROOT = Path(__file__).parents[2]
PAGES = ("python", "extend")

_BLOCK = re.compile(r"^```pycon\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def doctest_of(page: Path) -> doctest.DocTest:
    """The page's examples as one session, in which line numbers are those of the page."""
    text = re.sub(r"\|v:[\d.]+$", f"|v:{__version__}", page.read_text("utf-8"), flags=re.MULTILINE)
    shown, at = "", 0
    for block in _BLOCK.finditer(text):
        shown += "\n" * text.count("\n", at, block.start(1)) + block[1]
        at = block.end(1)
    return doctest.DocTestParser().get_doctest(shown, {}, page.stem, str(page), 0)


@pytest.mark.parametrize("name", PAGES)
def test_the_examples_of_the_manual_give_what_it_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    examples = doctest_of(ROOT / "docs" / f"{name}.md")
    assert len(examples.examples) > 10
    said: list[str] = []
    runner = doctest.DocTestRunner()
    registries = READERS, KINDS, instruments._OWN
    known = [dict(registry) for registry in registries]
    try:
        runner.run(examples, out=said.append)
    finally:
        # A page adds a format, a kind of scale and an instrument of its own.
        for registry, before in zip(registries, known, strict=True):
            registry.clear()
            registry.update(before)
    assert runner.tries == len(examples.examples), "an example was skipped"
    assert not said, "".join(said)


def test_no_page_shows_python_that_is_not_run():
    for page in sorted((ROOT / "docs").glob("*.md")):
        if page.stem not in PAGES:
            assert ">>>" not in page.read_text(encoding="utf-8"), f"{page}: add it to PAGES"

"""Every command of the README and docs/ runs as it is written, a page a case."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.reading_pages import PAGES, ROOT, read_page
from tests.docs.scenery import model_reply
from tests.docs.stage import Stage
from tests.forking import fabula_command
from tests.serving import serving

import fabula

NOT_RUN = {
    "make demo": "it sets up an environment; run it on a fresh machine before a release",
    "make setup": "these tests run in what it sets up",
    "pip install": "it would change the environment in which these tests run",
}
"""The beginnings of commands that are not run here, and why."""
STEPS = {
    page.relative_to(ROOT).as_posix():
        [step for step in read_page(page) if not step.text.startswith(tuple(NOT_RUN))]
    for page in PAGES
}  # fmt: skip


@pytest.fixture(scope="module")
def environment(small_model: Path) -> Iterator[dict[str, str]]:
    """With hosted models on loopback."""
    with serving(model_reply) as models:
        yield {
            **os.environ,
            # The sources under test, wherever the commands run.
            "PYTHONPATH": str(Path(fabula.__file__).parents[1].resolve()),
            "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{models.url}/v1",
            "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": models.url,
            "FABULA_STUDY_PASSWORD": "a secret of ours",
            "BROWSER": "true",
            # What it says is not the point here.
            "FABULA_LOCAL_MODEL": str(small_model),
        }  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page, steps in STEPS.items() if steps])
def test_a_page_runs_as_it_is_written(page: str, environment: dict[str, str], tmp_path: Path):
    programs = [fabula_command().parent, Path(sys.executable).parent, os.environ["PATH"]]
    folder = tmp_path / "page"
    folder.mkdir()
    own = environment | {
        "FABULA_CACHE": str(tmp_path / "cache"), "FABULA_HOME": str(folder / "home"),
        "PATH": os.pathsep.join(map(str, programs)),
    }  # fmt: skip
    stage = Stage(folder, own)
    for step in STEPS[page]:
        stage.run(step)


def test_every_page_with_commands_is_read():
    assert all(STEPS[page] for page in ("README.md", "docs/commands.md", "docs/study.md"))
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    n_lines = sum(line.startswith(("    fabula ", "    $ fabula ")) for line in lines)
    assert sum(step.text.startswith("fabula ") for step in STEPS["README.md"]) == n_lines

"""Every command and Python block of the README and docs/ runs as it is written, a page a case."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.reading_pages import PAGES, ROOT, Step, read_page
from tests.docs.scenery import index_reply, model_reply
from tests.docs.stage import Stage
from tests.forking import fabula_command
from tests.infinigram_serving import serving_infinigram
from tests.serving import serving

import fabula

pytest.importorskip("aiohttp", reason="the extra [remote] is not installed")

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
SHARED = (ROOT.parent / "shared" / "data").is_dir()


@pytest.fixture(scope="module")
def environment(small_model: Path) -> Iterator[dict[str, str]]:
    """With hosted models and an index on loopback."""
    with serving(model_reply) as models, serving_infinigram(index_reply) as index:
        yield {
            **os.environ,
            # The sources under test, wherever the commands run.
            "PYTHONPATH": str(Path(fabula.__file__).parents[1].resolve()),
            "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{models.url}/v1",
            "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": models.url,
            "FABULA_INFINIGRAM_URL": index.url,
            "FABULA_STUDY_PASSWORD": "a secret of ours",
            "BROWSER": "true",
            # What it says is not the point here.
            "FABULA_LOCAL_MODEL": str(small_model),
        }  # fmt: skip


@pytest.mark.parametrize("page", [
    pytest.param(page, marks=[] if page == "README.md" else pytest.mark.long)
    for page, steps in STEPS.items() if steps
])  # fmt: skip
def test_a_page_runs_as_it_is_written(page: str, environment: dict[str, str], tmp_path: Path):
    """Each session of it in a folder of its own. The README's commands are the installed ones."""
    programs = [Path(sys.executable).parent, os.environ["PATH"]]
    programs[:0] = [] if page == "README.md" else [fabula_command().parent]
    stages: dict[int, Stage] = {}
    # Figures that are shown are those of data that may not be beside this checkout.
    for step in (step for step in STEPS[page] if SHARED or not step.shown):
        if step.session not in stages:
            folder = tmp_path / str(step.session)
            folder.mkdir()
            own = environment | {
                "FABULA_CACHE": str(folder.with_suffix(".cache")),
                "FABULA_HOME": str(folder / "home"),
                "PATH": os.pathsep.join(map(str, programs)),
            }
            stages[step.session] = Stage(folder, own)
        check_step(step, stages[step.session])


def check_step(step: Step, stage: Stage) -> None:
    """That it ends well, writes what it names, and prints what the page shows."""
    outcome = stage.outcome(step)
    assert outcome.code == 0, f"{step.name}\n{outcome.told}"
    assert "Traceback" not in outcome.stderr, f"{step.name}\n{outcome.told}"
    assert not outcome.lacking, f"{step.name}\ndid not write {outcome.lacking}\n{outcome.told}"
    pattern = "".join(r"(?:.*\n)*" if s == "..." else re.escape(s) + r"\s*?\n" for s in step.shown)
    assert not step.shown or re.fullmatch(pattern, outcome.stdout), f"{step}\n{outcome.told}"


def test_every_page_with_commands_is_read():
    assert all(STEPS[page] for page in ("README.md", "docs/commands.md", "docs/study.md"))
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    n_lines = sum(line.startswith(("    fabula ", "    $ fabula ")) for line in lines)
    assert sum(step.text.startswith("fabula ") for step in STEPS["README.md"]) == n_lines

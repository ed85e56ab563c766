"""Every command and Python block of the README and docs/ runs as it is written.

The pages of docs/ are run side by side.
"""

import pytest
from tests.docs.programme import NOT_RUN, RUN, STEPS, check_step
from tests.docs.reading_pages import ROOT, Step
from tests.docs.stage import Stage

pytest.importorskip("aiohttp", reason="the extra [remote] is not installed")


@pytest.mark.parametrize("step", RUN, ids=lambda step: step.name)
def test_it_runs_as_it_is_written(step: Step, stages: dict[tuple[str, int], Stage]):
    check_step(step, stages)


def test_what_is_not_run_is_on_a_page():
    for beginning in NOT_RUN:
        assert any(step.text.startswith(beginning) for step in STEPS), beginning


def test_every_page_with_commands_is_read():
    by_page = {page: [step for step in STEPS if step.page == page] for page in
               ("README.md", "docs/commands.md", "docs/study.md")}  # fmt: skip
    assert all(by_page.values())
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    n_lines = sum(line.startswith(("    fabula ", "    $ fabula ")) for line in readme.splitlines())
    assert sum(step.text.startswith("fabula ") for step in by_page["README.md"]) == n_lines

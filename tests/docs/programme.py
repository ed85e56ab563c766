"""Which steps of the pages are run, and what is asked of each."""

import re

import pytest
from tests.docs.reading_pages import PAGES, ROOT, Step, read_page
from tests.docs.stage import Stage

__all__ = ["NOT_RUN", "RUN", "STEPS", "check_step", "prints"]

NOT_RUN = {
    "make demo": "it sets up an environment; run it on a fresh machine before a release",
    "make setup": "these tests run in what it sets up",
    "pip install": "it would change the environment in which these tests run",
}
"""The beginnings of commands that are not run here, and why."""

STEPS = [step for page in PAGES for step in read_page(page)]
RUN = [step for step in STEPS if not step.text.startswith(tuple(NOT_RUN))]
SHARED = (ROOT.parent / "shared" / "data").is_dir()


def check_step(step: Step, stages: dict[tuple[str, int], Stage]) -> None:
    """That it ends well, writes what it names, and prints what the page shows."""
    if step.shown and not SHARED:
        pytest.skip("its figures are those of data that are not beside this checkout")
    outcome = stages[step.page, step.session].outcome(step)
    if outcome.hindrance:
        pytest.skip(outcome.hindrance)
    assert outcome.code == 0, f"{step.text}\n{outcome.told}"
    assert "Traceback" not in outcome.stderr, outcome.told
    assert not outcome.lacking, f"{step.text}\ndid not write {outcome.lacking}\n{outcome.told}"
    assert prints(outcome.stdout, step.shown), f"the page shows {step.shown}\n{outcome.told}"


def prints(output: str, shown: tuple[str, ...]) -> bool:
    """Whether these lines are the output; `...` stands for any number of lines."""
    pattern = "".join(r"(?:.*\n)*" if s == "..." else re.escape(s) + r"\s*?\n" for s in shown)
    return not shown or re.fullmatch(pattern, output) is not None

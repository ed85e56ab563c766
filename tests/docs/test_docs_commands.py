"""Every command of docs/ runs as it is written; pages are run side by side."""

import pytest
from tests.docs.programme import check_step, steps_run
from tests.docs.reading_pages import Step
from tests.docs.stage import Stage

pytest.importorskip("aiohttp", reason="the extra [remote] is not installed")


@pytest.mark.parametrize("step", steps_run(readme=False), ids=lambda step: step.name)
def test_it_runs_as_it_is_written(step: Step, stages: dict[tuple[str, int], Stage]):
    check_step(step, stages)

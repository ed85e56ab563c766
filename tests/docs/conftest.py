"""The folders in which the pages' commands run, and the servers around them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.programme import here, steps_run
from tests.docs.scenery import index_reply, model_reply
from tests.docs.stage import Stage
from tests.infinigram_serving import serving_infinigram
from tests.serving import serving

import fabula


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, int], Stage]]:
    """A fresh folder a page, with hosted models and an index on loopback in its environment."""
    home = tmp_path_factory.mktemp("home")
    programs = Path(sys.executable).parent
    with serving(model_reply) as models, serving_infinigram(index_reply) as index:
        environment = {
            **os.environ,
            # The sources under test, wherever the commands run.
            "PYTHONPATH": str(Path(fabula.__file__).parents[1].resolve()),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{models.url}/v1",
            "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": models.url,
            "FABULA_INFINIGRAM_URL": index.url,
            "FABULA_CACHE": str(home / "cache"), "FABULA_HOME": str(home / "data"),
            "FABULA_STUDY_PASSWORD": "secret",
            "BROWSER": "true",
        }  # fmt: skip
        made: dict[tuple[str, int], Stage] = {}
        for step in [*steps_run(readme=True), *steps_run(readme=False)]:
            key = step.page, step.session
            if key not in made:
                made[key] = Stage(tmp_path_factory.mktemp("page"), environment, [])
            made[key].steps.append(here(step)[0])
        yield made

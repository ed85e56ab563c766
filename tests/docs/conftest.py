"""The folders in which the pages' commands run, and the servers around them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.programme import RUN
from tests.docs.scenery import index_reply, model_reply
from tests.docs.stage import Stage
from tests.forking import fabula_command
from tests.infinigram_serving import serving_infinigram
from tests.serving import serving

import fabula


@pytest.fixture(scope="module")
def stages(
    tmp_path_factory: pytest.TempPathFactory, small_model: Path
) -> Iterator[dict[tuple[str, int], Stage]]:
    """A fresh folder a page, with hosted models and an index on loopback in its environment.

    The README's commands are the installed ones.
    """
    programs = Path(sys.executable).parent
    with serving(model_reply) as models, serving_infinigram(index_reply) as index:
        environment = {
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
        made: dict[tuple[str, int], Stage] = {}
        for step in RUN:
            key = step.page, step.session
            if key not in made:
                folder = tmp_path_factory.mktemp("page")
                own = environment | {
                    "FABULA_CACHE": str(tmp_path_factory.mktemp("cache")),
                    "FABULA_HOME": str(folder / "home"),
                }
                is_shared = step.page != "README.md"
                if not is_shared:
                    del own["FABULA_JOBS"]
                first = [fabula_command().parent] if is_shared else []
                own["PATH"] = os.pathsep.join(map(str, [*first, programs, os.environ["PATH"]]))
                made[key] = Stage(folder, own, [], is_shared)
            made[key].steps.append(step)
        yield made

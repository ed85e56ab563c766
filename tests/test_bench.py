"""Every script of bench/ runs at its smallest size, and what it compares agrees."""

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

from tests.forking import fabula_command, python_command

pytestmark = pytest.mark.long
BENCH = Path(__file__).parents[1] / "bench"
SCRIPTS = sorted(p.stem for p in BENCH.glob("*.py") if "def main(" in p.read_text("utf-8"))
NEEDS = {"build": "infini_gram", "search": "infini_gram", "study": "aiohttp"}
NEEDS |= dict.fromkeys(("cluster", "lost_nodes"), "ray")


@pytest.mark.parametrize("script", [
    pytest.param(name, marks=pytest.mark.ray) if NEEDS.get(name) == "ray" else name
    for name in SCRIPTS
])  # fmt: skip
def test_a_script_runs_at_its_smallest_size(script: str, small_model: Path, tmp_path: Path):
    if (needed := NEEDS.get(script)) and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    done = subprocess.run(
        [python_command(), BENCH / f"{script}.py", "--smoke"],
        capture_output=True, text=True, cwd=tmp_path, check=False,
        env={
            **os.environ, "BENCH_DIR": str(tmp_path), "BENCH_FABULA": str(fabula_command()),
            "BENCH_PYTHON": str(python_command()),
            "FABULA_LOCAL_MODEL": str(small_model),  # What it says is not the point here.
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()

"""What a package index, a citation and a stranger's machine are told."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from fabula import __version__

ROOT = Path(__file__).parents[1]


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert project["version"] == cited.group(1) == __version__


def test_the_module_runs_as_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fabula", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"fabula, version {__version__}\n"), done.stderr


def test_windows_is_refused_in_one_sentence_before_anything_else_is_imported() -> None:
    done = run(
        "import sys\n"
        "sys.modules['fcntl'] = sys.modules['resource'] = sys.modules['click'] = None\n"
        "sys.platform = 'win32'\n"
        "from fabula.__main__ import main\n"
        "main()\n"
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "error: Fabula runs on Linux and macOS; on Windows, use it in WSL"
    ]

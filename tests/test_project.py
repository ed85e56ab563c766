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


def test_every_test_and_module_that_the_page_on_security_names_is_there() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(tests) > 60
    for file, name in tests:
        assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), (file, name)
    lines = [line for line in page.splitlines() if line.startswith("| ") and "---" not in line]
    for line in lines:
        threat, stops, test = (cell.strip() for cell in line.strip("|").split(" | "))
        if threat == "threat":
            continue
        assert test.startswith("`tests/"), line
        named = re.findall(r"`([a-z][\w/]+)`", stops)
        assert named, line
        for module in named:
            place = ROOT / "src" / "fabula" / module
            assert place.is_dir() or place.with_suffix(".py").exists(), module

"""What a package index, a citation and a stranger's machine are told."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from fabula import __version__

ROOT = Path(__file__).parents[1]


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_one_version_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert project["version"] == cited.group(1) == __version__


def test_the_module_runs_as_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "fabula", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"fabula, version {__version__}\n"), done.stderr


def test_windows_is_refused_in_one_sentence_before_anything_else_is_imported():
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


def test_every_interval_and_test_is_in_the_table_of_what_it_was_compared_with():
    """Functions of stats/ that return an estimate, its ends or p; and tests that are there."""
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = page.partition("| function | compared with | R | simulation |")[2].partition("\n\n")[0]
    named = re.compile(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)`")
    simulations = "tests/stats/test_simulations.py"
    after = page[page.index(rows) + len(rows) :]
    tests = [(file or simulations, name) for file, name in named.findall(after)]
    for row in rows.strip().splitlines()[1:]:
        _, compared, of_r, simulated = (cell.strip() for cell in row.strip("|").split(" | "))
        assert "`test" in compared, row
        for cell, home in ((compared, simulations), (of_r, "tests/stats/test_r.py"),
                           (simulated, simulations)):  # fmt: skip
            assert "`test" in cell or cell.startswith(("none: ", "through")), row
            tests += [(file or home, name) for file, name in named.findall(cell)]
    assert len(tests) > 80
    for file, name in tests:
        assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), (file, name)
    told = re.compile(r"Estimate|Statistic|Contrast|Omnibus|Corrected|Ranking|float \| None,")
    others = "holm", "kruskal_wallis", "exact_p", "smallest_p", "log_odds", "is_covered"
    for file in sorted((ROOT / "src" / "fabula" / "stats").glob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith(("_", "estimate")):
                continue
            said = "" if node.returns is None else ast.unparse(node.returns)
            if told.search(said) or node.name.endswith("_high") or node.name in others:
                assert f"`{file.stem}.{node.name}`" in rows, (file.stem, node.name)


def test_every_test_and_module_that_the_page_on_security_names_is_there():
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


def test_templates_can_be_read():
    templates = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.j2")]
    assert max(len(line) for text in templates for line in text.splitlines()) <= 160

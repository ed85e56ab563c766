"""What a package index, a citation and a stranger's machine are told.

Whoever installs Fabula, the core or any extra, takes on no duty to open their own code.
"""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fabula import __version__

ROOT = Path(__file__).parents[1]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)


def test_one_version_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert project["version"] == cited.group(1) == __version__


def test_the_module_runs_as_the_command():
    done = run("-m", "fabula", "--version")
    assert (done.returncode, done.stdout) == (0, f"fabula, version {__version__}\n"), done.stderr


def test_windows_is_refused_in_one_sentence_before_anything_else_is_imported():
    done = run(
        "-c",
        "import sys\n"
        "sys.modules['fcntl'] = sys.modules['resource'] = sys.modules['click'] = None\n"
        "sys.platform = 'win32'\n"
        "from fabula.__main__ import main\n"
        "main()\n",
    )
    assert (done.returncode, done.stdout) == (2, "")
    said = "error: Fabula runs on Linux and macOS; on Windows, use it in WSL\n"
    assert done.stderr == said


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


PERMISSIVE = {
    "0BSD", "Apache 2.0", "Apache 2.0 License", "Apache Software License", "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception", "BSD", "BSD License", "BSD-2-Clause", "BSD-3-Clause",
    "BSL-1.0", "CC0-1.0", "CNRI-Python", "ISC", "MIT", "MIT License", "PSF-2.0",
    "Python Software Foundation License", "Zlib",
}  # fmt: skip
"""As packages name them: by SPDX, by classifier, or in the words of the field `License`."""

EXCEPTIONS = {
    # LGPL-3.0: imported as it is, and only by those who keep a study's answers in PostgreSQL.
    "psycopg": {"postgres", "all"}
}
"""The extras that may ask for a package whose licence is not permissive, with the reason."""


def direct_dependencies() -> Iterator[tuple[str, str]]:
    """Each package that Fabula itself asks for, with the extra that does (`` for the core)."""
    for line in importlib.metadata.requires("fabula") or ():
        requirement = Requirement(line)
        extra = re.search(r"extra == [\"'](\w+)", str(requirement.marker))
        yield requirement.name, extra.group(1) if extra else ""


def licences(package: str) -> set[str]:
    """What a package says of its licence; of several fields the most exact. Empty for nothing."""
    metadata = importlib.metadata.metadata(package)
    if expression := metadata.get("License-Expression"):
        return {part for part in re.split(r" AND | OR |[()]", expression) if part.strip()}
    classifiers = {line for line in metadata.get_all("Classifier") or () if "License ::" in line}
    if classifiers:
        return {line.rpartition(" :: ")[2] for line in classifiers}
    return {metadata["License"]} if metadata.get("License") else set()


def is_installed(package: str) -> bool:
    try:
        importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def test_every_direct_dependency_has_a_permissive_licence():
    asked = list(direct_dependencies())
    assert {"numpy", "numba"} <= {package for package, extra in asked if not extra}
    assert {"stats", "tables", "local", "hosted", "postgres"} <= {extra for _, extra in asked}
    assert EXCEPTIONS.keys() <= {package for package, _ in asked}
    found = {
        f"{package} [{extra}]": licences(package)
        for package, extra in asked
        if is_installed(package) and extra not in EXCEPTIONS.get(package, ())
    }
    assert {name: own for name, own in found.items() if not own or own - PERMISSIVE} == {}


def all_dependencies() -> set[str]:
    """Every package that some extra of Fabula brings, however far down, of those installed."""
    found: set[str] = set()
    waiting = [Requirement("fabula[all]")]
    done = set()
    while waiting:
        asked = waiting.pop()
        key = canonicalize_name(asked.name), frozenset(asked.extras)
        if key in done or not is_installed(asked.name):
            continue
        done.add(key)
        found.add(key[0])
        for line in importlib.metadata.requires(asked.name) or ():
            needed = Requirement(line)
            environments = [{"extra": extra} for extra in asked.extras or {""}]
            if needed.marker is None or any(map(needed.marker.evaluate, environments)):
                waiting.append(needed)
    return found - {"fabula"}


def test_no_dependency_of_a_dependency_asks_for_more_than_its_own_files():
    """MPL-2.0 is about its own files; LGPL is excepted above; GPL and AGPL are refused."""
    found = all_dependencies()
    assert {"numpy", "pydantic-core", "starlette"} <= found
    # It says nothing that a program can read; its file is Apache 2.0.
    silent = {package for package in found if not licences(package)}
    assert silent <= {"agent-client-protocol"}
    told = {package: " ".join(licences(package)) for package in found}
    strong = {one for one, own in told.items() if re.search(r"\b[AL]?GPL|General Public", own)}
    assert strong <= {"psycopg", "psycopg-binary"}

"""Whoever installs Fabula, the core or any extra, takes on no duty to open their own code."""

import importlib.metadata
import re
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


def is_permissive(package: str) -> bool:
    return bool(found := licences(package)) and found <= PERMISSIVE


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
    refused = [
        f"{package} [{extra}]: {', '.join(licences(package)) or 'says nothing'}"
        for package, extra in asked
        if is_installed(package)
        and extra not in EXCEPTIONS.get(package, ())
        and not is_permissive(package)
    ]
    assert not refused


def test_an_exception_that_is_no_longer_needed_is_taken_away():
    assert EXCEPTIONS.keys() <= {package for package, _ in direct_dependencies()}


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
    strong = {
        package
        for package in found
        if any(re.search(r"\b[AL]?GPL|General Public", name) for name in licences(package))
    }
    assert strong <= {"psycopg", "psycopg-binary"}

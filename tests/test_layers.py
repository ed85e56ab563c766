"""A room imports only from floors below it; rooms of one floor do not import each other."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "fabula"

FLOORS = {
    "errors": 0, "reasons": 0, "scales": 0,
    "types": 1, "control_characters": 1, "kernels": 1, "settings": 1,
    # On the stairs: what versions of files are, for the store and all above it.
    "formats": 1.5,
    "text": 2, "store": 2, "rubrics": 2, "stats": 2, "web": 2, "workers": 2,
    "frames": 2, "cluster": 2, "instruments": 2,
    # On the stairs: it keeps rows in a store's file, for models and all above them.
    "resume": 2.5, "provenance": 2.5,
    "reference": 3, "models": 3,
    "measures": 4,
    "tasks": 5, "studies": 5, "judging": 5,
    "review": 6,
    "presentation": 7,
    "replicate": 8,
    "jobs": 9,
    "desk": 10, "api": 10,
    "cli": 11, "evals": 11,
    "__main__": 12,
}  # fmt: skip


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "fabula" and len(parts) > 1 else None


def imports(file: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide the floor"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("file", modules(), ids=lambda f: str(f.relative_to(SOURCE)))
def test_imports_go_down(file: Path) -> None:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    room = parts[0]
    if room == "__init__":
        return
    assert room in FLOORS, f"{room} is on no floor; give it one in this test and in the house"
    for module in imports(file):
        other = room_of(module)
        if other is None or other in (room, "__version__"):
            continue
        assert FLOORS[other] < FLOORS[room], f"{file} imports {module}, which is not below it"


@pytest.mark.parametrize("file", modules(), ids=lambda f: str(f.relative_to(SOURCE)))
def test_modules_stay_small(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 600

"""A room imports only from floors below it; rooms of one floor do not import each other."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "fabula"

FLOORS = {
    "errors": 0, "plugins": 0,
    # On the stairs: packages that the core does without, and where fetched models lie.
    "packages": 0.5, "scales": 0.5,
    "types": 1, "control_characters": 1, "kernels": 1, "settings": 1, "workers": 1,
    # On the stairs: files that are whole or not there, and their versions.
    "store": 1.5,
    # For `text` and all above it: what was computed earlier.
    "cached_results": 1.7,
    "text": 2, "rubrics": 2, "stats": 2, "web": 2,
    "frames": 2, "instruments": 2,
    # On the stairs: it keeps rows in a store's file, for models and all above them.
    "stored_results": 2.2, "provenance": 2.4, "resume": 2.5,
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


def rooms() -> dict[str, list[Path]]:
    """The modules of each room, which is a folder or a file."""
    found: dict[str, list[Path]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        room = file.relative_to(SOURCE).with_suffix("").parts[0]
        found.setdefault(room, []).append(file)
    return found


ROOMS = rooms()


@pytest.mark.parametrize("room", sorted(ROOMS.keys() - {"__init__"}))
def test_imports_go_down(room: str):
    assert room in FLOORS, f"{room} is on no floor; give it one in this test and in the house"
    wrong = [
        f"{file} imports {module}, which is not below it"
        for file in ROOMS[room]
        for module in imports(file)
        if (other := room_of(module)) not in (None, room, "__version__")
        and FLOORS[other] >= FLOORS[room]
    ]
    assert not wrong, "\n".join(wrong)

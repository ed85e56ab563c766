"""A room imports only from floors below it; rooms of one floor do not import each other."""

import ast
from pathlib import Path

import pytest

from fabula.jobs.registry import jobs

SOURCE = Path(__file__).parents[1] / "src" / "fabula"

FLOORS = {
    "core": 1, "kernels": 1,
    "text": 2, "rubrics": 2, "stats": 2, "web": 2,
    "models": 3, "show": 3,
    "jobs": 4, "raters": 4,
    "reference": 5, "linguistic": 5, "judging": 5,
    "novelty": 6, "style": 6, "continuation": 6, "feedback": 6, "groups": 6,
    "stories": 7, "review": 7, "replicate": 7,
    "studies": 8, "writer": 8, "api": 8,
    "cli": 9, "evals": 9,
    "__main__": 10,
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
        if (other := room_of(module)) not in (None, room) and FLOORS[other] >= FLOORS[room]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_room_has_the_name_of_a_public_function():
    # Once such a room is imported, Python puts the module in the place of the function.
    assert not ROOMS.keys() & {job.python for job in jobs().values()}

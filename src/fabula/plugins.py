"""What other installed packages add, each kind by a group of entry points of its own.

| group | the entry's name | its object |
| --- | --- | --- |
| `fabula.jobs` | the words of a command | a job's function |
| `fabula.instruments` | any | a function without arguments that gives an instrument |
| `fabula.scales` | its `kind` in rubric files | a class of `Scale` |
| `fabula.readers` | the ending of files | a function of a stream, a name and the fields of tables |
| `fabula.references` | what `--reference` has before `:` | a function of what stands after it |
| `fabula.generators` | its name for `--kind` | a function of a `GeneratorChoice` |

    [project.entry-points."fabula.readers"]
    script = "my_package:read_script"
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

V = TypeVar("V")

_loaded: dict[str, str] = {}


@cache
def installed(kind: str) -> tuple[EntryPoint, ...]:
    """What packages add of a kind, by name. Nothing is loaded yet."""
    # Looking at the files is quicker than the import, and mostly finds none.
    files = (file for path in sys.path for file in Path(path).glob("*-info/entry_points.txt"))
    if not any(b"[fabula." in file.read_bytes() for file in files):
        return ()
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=f"fabula.{kind}"), key=lambda point: point.name))


def load(point: EntryPoint) -> Any:
    """The object of an entry point, whose package records name from now on."""
    found = point.load()
    if point.dist is not None:
        _loaded[point.dist.name] = point.dist.version
    return found


def loaded_packages() -> dict[str, str]:
    """The versions of the packages from which something was loaded, by name."""
    return dict(sorted(_loaded.items()))


class Registry(MutableMapping[str, V]):
    """Things of a kind by name: Fabula's own, those of your program, those of packages."""

    def __init__(self, kind: str, own: dict[str, V] | None = None) -> None:
        self._kind, self._known = kind, dict(own or {})

    def __getitem__(self, name: str) -> V:
        if name not in self._known:
            for point in installed(self._kind):
                if point.name == name:
                    self._known[name] = load(point)
        return self._known[name]

    def __setitem__(self, name: str, thing: V) -> None:
        self._known[name] = thing

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known or any(point.name == name for point in installed(self._kind))

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._known, *(point.name for point in installed(self._kind))]))

    def __len__(self) -> int:
        return len(list(iter(self)))

"""Large optional packages, imported on first use; where `fabula setup` stores models.

What other installed packages add, each kind by a group of entry points of its own.

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

import importlib
import os
import sys
from collections.abc import Iterator, MutableMapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fabula.core.errors import FabulaError, InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def scipy(part: str, what: str = "these statistics") -> Any:
    """Import a module of SciPy (extra `[stats]`), such as "stats"; `what` needs it.

    Raises `InputError` if it is not installed.
    """
    return needing(f"scipy.{part}", f"{what} need SciPy; run: pip install 'fabula[stats]'")


def pyarrow(part: str = "", *, what: str) -> Any:
    """Import PyArrow (extra `[tables]`) or a module of it, such as "parquet"; `what` needs it.

    Raises `InputError` if it is not installed.
    """
    name = f"pyarrow.{part}" if part else "pyarrow"
    return needing(name, f"{what} needs PyArrow; run: pip install 'fabula[tables]'")


def needing(name: str, otherwise: str, error_class: type[FabulaError] = InputError) -> Any:
    """Import a module of an optional package; if it is not installed, raise that `otherwise`."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != name.partition(".")[0]:
            raise  # the package is installed, but a dependency is missing
        raise error_class(otherwise) from error


PIPELINE = "en_core_web_md"
"""spaCy's English pipeline, as spaCy loads it from a folder."""
LANGUAGE_MODEL = "smollm2-135m-instruct"
"""A folder containing one `.gguf` file."""
ENCODER = "all-minilm-l6-v2-int8"
"""A folder containing `model.onnx` and `tokenizer.json`."""


def models_folder() -> Path:
    """The user's folder for models; the environment variable FABULA_MODELS overrides it."""
    from platformdirs import user_data_path

    folder = os.environ.get("FABULA_MODELS")
    return Path(folder) if folder else user_data_path("fabula") / "models"


def fetched(name: str) -> Path | None:
    """The folder of a downloaded model, or None."""
    folder = models_folder() / name
    return folder if folder.is_dir() else None


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
    loaded = point.load()
    if point.dist is not None:
        _loaded[point.dist.name] = point.dist.version
    return loaded


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

    def __setitem__(self, name: str, value: V) -> None:
        self._known[name] = value

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known or any(point.name == name for point in installed(self._kind))

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._known, *(point.name for point in installed(self._kind))]))

    def __len__(self) -> int:
        return len(list(iter(self)))

"""Large optional packages, imported on first use; where `fabula setup` stores models."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from fabula.errors import FabulaError, InputError


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

    given = os.environ.get("FABULA_MODELS")
    return Path(given) if given else user_data_path("fabula") / "models"


def fetched(name: str) -> Path | None:
    """The folder of a downloaded model, or None."""
    folder = models_folder() / name
    return folder if folder.is_dir() else None

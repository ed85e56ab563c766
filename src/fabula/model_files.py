"""Where `fabula setup` stores the files of models."""

from __future__ import annotations

import os
from pathlib import Path

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

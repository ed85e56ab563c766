"""From what a user writes after `--model` to a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fabula.errors import ModelError
from fabula.models.base import Model
from fabula.models.cost import Budget, Price, Purse, known_price
from fabula.models.hosted import HostedModel
from fabula.models.local import LocalModel, embedded_model
from fabula.models.paying import PaidModel
from fabula.models.replay import ReplayedModel

__all__ = ["ModelOptions", "open_model"]


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What a user may say of how a model is called; None is the model's own default."""

    n_parallel: int | None = None
    max_retries: int = 5
    cache: bool = False
    batch: bool = False
    structured: bool | None = None
    """Hold hosted models to a JSON schema; by default those that are known to follow one."""
    price: Price | None = None
    """What tokens cost, where it is not known of the model."""
    purse: Purse | None = None
    """What all models opened with it may spend together; None where somebody else counts."""


def open_model(spec: str, options: ModelOptions | None = None) -> Model:
    """A model, not yet started: `async with open_model("local") as model`.

    `local` is the embedded one, `PATH.gguf` any other of its kind, `http://...` a server that
    speaks OpenAI's protocol, `replay:PATH` recorded answers, and `provider/model` what Inspect AI
    knows. Raises `ModelError`, and `InputError` where a purse needs a price that is not known.
    """
    options = options or ModelOptions()
    model = _model(spec, options)
    if options.purse is None:
        return model
    return PaidModel(model, Budget(options.price or known_price(spec), options.purse))


def _model(spec: str, options: ModelOptions) -> Model:
    if spec == "local":
        return LocalModel(embedded_model(), n_parallel=options.n_parallel or 1)
    if spec.startswith("replay:"):
        path, _, model = spec.removeprefix("replay:").partition("#")
        return ReplayedModel(Path(path), model or None)
    if spec.lower().endswith(".gguf"):
        return LocalModel(Path(spec), n_parallel=options.n_parallel or 1)
    if "/" not in spec:
        raise ModelError(
            f"{spec}: no such model; write `local`, a path to a .gguf file, a URL, or "
            f"provider/model as in openai/gpt-4o"
        )
    return HostedModel(
        spec,
        n_parallel=options.n_parallel or 10,
        max_retries=options.max_retries,
        cache=options.cache,
        batch=options.batch,
        structured=options.structured,
    )

"""From the name of a model to the model."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fabula.errors import InputError, ModelError
from fabula.models.base import Effort, Model
from fabula.models.budgeted import BudgetedModel
from fabula.models.cluster_models import ClusterModel, ClusterTerms
from fabula.models.cost import Budget, Prices, SharedBudget
from fabula.models.function import FunctionModel
from fabula.models.hosted import HostedModel
from fabula.models.local import LocalModel, embedded_model
from fabula.models.model_copies import SharedModel
from fabula.models.replay import ReplayedModel

__all__ = ["ModelOptions", "open_model"]


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What a user may say of how a model is called; None is the model's own default."""

    n_parallel: int | None = None
    max_retries: int = 5
    cache: bool = False
    batch: bool = False
    timeout_s: int | None = None
    """How long an attempt of a call may take; None waits as long as the provider's client does."""
    effort: Effort | None = None
    """How long a reasoning model is to think, where a call does not say."""
    structured: bool | None = None
    """Hold hosted models to a JSON schema; by default those that are known to follow one."""
    prices: Prices = field(default_factory=Prices)
    """What tokens cost, where it is not known of the model."""
    shared_budget: SharedBudget | None = None
    """What all models opened with it may spend together; None is without a limit."""
    cluster: ClusterTerms | None = None
    """Where copies of a local model answer; None has it answer here."""


def open_model(spec: str | FunctionModel, options: ModelOptions | None = None) -> BudgetedModel:
    """A model, not yet started: `async with open_model("local") as model`.

    The one way to a language model, so that none is asked outside of a budget (`model.budget`).

    `local` is the embedded one, `PATH.gguf` any other of its kind, `http://...` a server that
    speaks OpenAI's protocol (several with commas, each asked in turn), `replay:PATH` recorded
    answers, and `provider/model` what Inspect AI knows; a `FunctionModel` is taken as it is.
    Raises `ModelError`, and `InputError` where a limit needs a price that is not known, or where a
    model is not for a cluster.
    """
    options = options or ModelOptions()
    if isinstance(spec, FunctionModel):
        return BudgetedModel(spec, Budget(options.prices.each, options.shared_budget))
    budget = Budget(options.prices.of(spec), options.shared_budget)
    return BudgetedModel(_model(spec, options), budget, effort=options.effort)


def _model(spec: str, options: ModelOptions) -> Model:
    is_here = spec == "local" or spec.lower().endswith(".gguf")
    if is_here and options.effort is not None:
        raise InputError(f"{spec}: `reasoning_effort` is only for hosted models; leave it out")
    if is_here and options.cluster is not None:
        # Nodes have other working folders, and may have the embedded model elsewhere.
        path = spec if spec == "local" else str(Path(spec).absolute())
        n_parallel = options.n_parallel or 1
        return ClusterModel(
            _local(spec, n_parallel), partial(_local, path, n_parallel), options.cluster
        )
    if options.cluster is not None:
        raise InputError(
            f"{spec}: `engine` ray is for models that run on the cluster, `local` or a .gguf file; "
            "leave it out: this model is called from this machine, with `n_parallel` calls at a "
            "time"
        )
    if is_here:
        return _local(spec, options.n_parallel or 1)
    if spec.startswith("replay:"):
        path, _, model = spec.removeprefix("replay:").partition("#")
        return ReplayedModel(Path(path), model or None)
    if "/" not in spec:
        raise ModelError(
            f"{spec}: no such model; write `local`, a path to a .gguf file, a URL, or "
            f"provider/model as in openai/gpt-4o"
        )
    return _hosted(spec, options)


def _local(spec: str, n_parallel: int) -> LocalModel:
    return LocalModel(embedded_model() if spec == "local" else Path(spec), n_parallel=n_parallel)


def _hosted(spec: str, options: ModelOptions) -> Model:
    addresses, mark, name = spec.partition("#")
    servers = [f"{one}{mark}{name}" for one in re.split(r",(?=https?://)", addresses)]
    n_each = options.n_parallel or 10
    models = [
        HostedModel(
            server,
            # Inspect counts the calls to one model, whatever server they go to.
            n_parallel=n_each * len(servers),
            max_retries=options.max_retries,
            timeout_s=options.timeout_s,
            cache=options.cache,
            batch=options.batch,
            structured=options.structured,
        )
        for server in servers
    ]
    return models[0] if len(models) == 1 else SharedModel(models, n_each)

"""Logs of Inspect AI: texts that a model wrote, by Inspect's own mock of one."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog
    from inspect_ai.model import ModelOutput


def log_of(folder: Path, texts: Mapping[str, str | ModelOutput], **options: Any) -> EvalLog:
    """The log of an evaluation whose samples have these outputs, in a file of the folder."""
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import Sample
    from inspect_ai.model import get_model
    from inspect_ai.solver import generate

    samples = [Sample(id=id_, input="Write.", metadata={"school": "north"}) for id_ in texts]
    with streams_left_open():
        (log,) = evaluate(
            Task(dataset=samples, solver=generate()),
            model=get_model("mockllm/model", custom_outputs=_written(list(texts.values()))),
            log_dir=str(folder), display="none", max_samples=1, **options,
        )  # fmt: skip
    assert log.status == "success", log.error
    return log


def _written(texts: Sequence[str | ModelOutput]) -> Iterator[ModelOutput]:
    """The texts as a model puts them out. Without usage the mock would count tokens."""
    from inspect_ai.model import ModelOutput, ModelUsage

    for text in texts:
        one = ModelOutput.from_content("mock", text) if isinstance(text, str) else text
        yield one.model_copy(update={"usage": ModelUsage(output_tokens=1, total_tokens=1)})


@contextmanager
def streams_left_open() -> Iterator[None]:
    """Inspect leaves streams to the garbage collector, which warns of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()

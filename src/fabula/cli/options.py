"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from fabula.cli.engine import cluster_terms, model_engine_options

__all__ = [
    "CorpusType",
    "SizeType",
    "check_outputs",
    "cost_options",
    "cost_terms",
    "further_model_options",
    "grammar_option",
    "jobs_option",
    "json_option",
    "model_options",
    "model_terms",
    "review_options",
    "seed_option",
    "text_options",
    "texts_argument",
]

F = TypeVar("F", bound=Callable[..., Any])


class SizeType(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """An amount of memory such as `4GB`, in bytes."""

    name = "size"
    _units = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}  # noqa: RUF012

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", value.strip(), re.IGNORECASE)
        if match is None:
            self.fail(f"{value!r} is no amount of memory; write 4GB or 800MB", param, ctx)
        return int(float(match[1]) * self._units[match[2].upper()])


class CorpusType(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Where a corpus lies: a folder, or an address of an object store such as `s3://...`."""

    name = "path"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | Path:
        if "://" not in str(value):
            return Path(value)
        if str(value).startswith(("http://", "https://")):
            self.fail(
                f"{value}: name a folder or an address of an object store (s3://, gs://); what is "
                f"served over HTTP is changed where it lies", param, ctx,
            )  # fmt: skip
        return str(value).rstrip("/")


def texts_argument(name: str) -> Callable[[F], F]:
    """Files, folders, patterns, URLs, or `-`."""
    return click.argument(name, nargs=-1, required=True, metavar=f"{name.upper()}...")


def text_options(command: F) -> F:
    """How to read the texts."""
    for option in (
        click.option(
            "--format",
            "format_",
            metavar="FORMAT",
            help="Read every file as this: txt, md, docx, epub, jsonl, csv, tsv, parquet.",
        ),
        click.option(
            "--id-field", default="id", show_default=True, help="Field of a row that names it."
        ),
        click.option(
            "--text-field",
            default="text",
            show_default=True,
            help="Field of a row that holds the text.",
        ),
    ):
        command = option(command)
    return command


def model_options(command: F) -> F:
    """Which models, and on what terms."""
    return _model_options(command, ("local",))


def further_model_options(command: F) -> F:
    """As `model_options`, where no model is asked unless one is named."""
    return _model_options(command, ())


def _model_options(command: F, default: tuple[str, ...]) -> F:
    options = (
        click.option(
            "--model", "models", multiple=True, default=default, show_default=bool(default),
            metavar="MODEL",
            help="local (the embedded one), a .gguf file, a URL that speaks OpenAI's protocol "
            "(URL#name, or URL,URL#name for several servers of it), or provider/model as Inspect "
            "AI names it: openai/..., anthropic/..., google/..., vllm/..., ollama/...; several "
            "are asked one after another.",
        ),
        click.option(
            "--parallel", type=click.IntRange(min=1),
            help="Calls at a time, of each copy or server.  [default: 1 local, 10 elsewhere]",
        ),
        click.option(
            "--max-retries", type=click.IntRange(min=0), default=5, show_default=True,
            help="How often a failed call is made again (hosted models).",
        ),
        click.option("--cache", is_flag=True, help="Use Inspect's cache (hosted models)."),
        click.option(
            "--batch", is_flag=True, help="Use the provider's batch mode: cheaper, slower."
        ),
        click.option(
            "--structured/--no-structured", default=None,
            help="Hold hosted models to a JSON schema.  [default: those known to follow one]",
        ),
    )  # fmt: skip
    command = cost_options(model_engine_options(command))
    for option in reversed(options):
        command = option(command)
    return command


def cost_options(command: F) -> F:
    """What calls of a model may cost."""
    options = (
        click.option(
            "--price", metavar="IN/OUT", help="Dollars a million tokens, to estimate the cost."
        ),
        click.option(
            "--max-cost", type=click.FloatRange(min=0), metavar="DOLLARS",
            help="Stop before spending more than this; needs a price.",
        ),
        click.option("--yes", is_flag=True, help="Do not ask whether the cost is agreed to."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def cost_terms(options: dict[str, Any]) -> Any:
    """What `cost_options` gathered, as `ModelOptions`; all models opened with it share a limit."""
    from fabula.models import ModelOptions
    from fabula.models.cost import Purse, parse_price

    return ModelOptions(
        price=parse_price(options["price"]) if options["price"] else None,
        purse=Purse(options["max_cost"]),
    )


def model_terms(options: dict[str, Any]) -> Any:
    """What `model_options` gathered, as `ModelOptions`; as `cost_terms`."""
    return replace(
        cost_terms(options),
        n_parallel=options["parallel"],
        max_retries=options["max_retries"],
        cache=options["cache"],
        batch=options["batch"],
        structured=options["structured"],
        cluster=cluster_terms(options),
    )


def review_options(command: F) -> F:
    """What texts are measured against by all instruments at once."""
    options = (
        click.option(
            "--reference", "references", multiple=True, metavar="PATH", envvar="FABULA_REFERENCE",
            help="A corpus built by `fabula reference build` (its folder or s3:// address), "
            "http://... where one is served, or infinigram:NAME, to measure originality against; "
            "several are searched as one.  "
            "[env: FABULA_REFERENCE]",
        ),
        click.option("--levels", metavar="LOW-HIGH", help="Lengths of run.  [default: 5-12]"),
        click.option(
            "--exclude", type=click.Choice(["none", "auto"]), default="none", show_default=True,
            help="auto: leave out documents of the reference that copy or quote the text.",
        ),
        click.option(
            "--fluency-model", default="local", show_default=True, metavar="MODEL",
            help="Whose surprise at the words is measured: local (the embedded model) or a .gguf "
            "file.",
        ),
        grammar_option,
        jobs_option,
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="Seed of all that is drawn; the same seed gives the same bytes.",
)


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[Path]) -> None:
    """Raise `UsageError` where an output is an input, or two outputs are one file.

    The folders of the outputs are made.
    """
    taken = {path.resolve() for path in inputs}
    for path in outputs:
        if path is None:
            continue
        if path.is_dir():
            raise click.UsageError(f"{path} is a folder; name a file")
        if path.resolve() in taken:
            raise click.UsageError(
                f"{path} is read or written by this command already; name another"
            )
        taken.add(path.resolve())
        # Now, and not once everything is computed.
        path.parent.mkdir(parents=True, exist_ok=True)


grammar_option = click.option(
    "--grammar",
    default="harper",
    show_default=True,
    metavar="CHECKER",
    help="harper, languagetool (its server, as languagetool@URL where not on port 8081), or none.",
)

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Processors to use.  [default: all; results do not depend on it]",
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON to standard output and nothing else."
)

"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["SizeType", "jobs_option", "json_option", "text_options", "texts_argument"]

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


jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Processors to use.  [default: all; results do not depend on it]",
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON to standard output and nothing else."
)

"""A user's defaults in `fabula.toml`: references, a model and prices."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from fabula.errors import InputError

NAME = "fabula.toml"


@dataclass(frozen=True, slots=True)
class Config:
    """Defaults of options, used if neither an option nor the environment sets a value."""

    reference: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    is_of_folder: bool = False
    """It was found in the current folder, where somebody else may have put it."""
    prices: Mapping[str, str] = field(default_factory=dict)
    """Dollars per million tokens as IN/OUT, by model name."""

    def price_of(self, models: tuple[str, ...] = ()) -> str | None:
        """Return configured prices (all if no model is named) in the format of `price`, or None."""
        asked = models or tuple(self.prices)
        return ";".join(f"{one}={self.prices[one]}" for one in asked if one in self.prices) or None


def read_config() -> Config:
    """Read `fabula.toml` from this folder, else from the user's configuration.

    Empty if there is none. Raises `InputError` that names the file and the error in it.
    """
    from platformdirs import user_config_path

    for path in (Path(NAME), user_config_path("fabula") / NAME):
        if path.is_file():
            return replace(_read(path), is_of_folder=path == Path(NAME))
    return Config()


def agree_to_addresses(values: Iterable[str]) -> None:
    """Ask before texts and keys go to an address that only the current folder's file names.

    Raises `click.UsageError` where nobody can be asked.
    """
    named = [value for value in values if "://" in value and not _is_this_machine(value)]
    if not named:
        return
    from platformdirs import user_config_path

    said = f"{NAME} in this folder names {', '.join(named)}, which texts would be sent to"
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"{said}; give the address as an option, or keep it in {user_config_path('fabula')}"
        )
    click.confirm(f"{said}. Go on?", abort=True, err=True)


def _is_this_machine(address: str) -> bool:
    return urlsplit(address).hostname in ("127.0.0.1", "localhost", "::1")


def _read(path: Path) -> Config:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as TOML ({error})") from error
    unknown = content.keys() - {"reference", "model", "prices"}
    if unknown:
        raise InputError(
            f"{path}: unknown key {min(unknown)!r}; the keys are reference, model and prices"
        )
    prices = content.get("prices", {})
    if not isinstance(prices, dict) or not all(isinstance(one, str) for one in prices.values()):
        raise InputError(f'{path}: prices must be a table such as "openai/gpt-4o" = "2.5/10"')
    return Config(
        _several(path, "reference", content.get("reference", [])),
        _several(path, "model", content.get("model", [])),
        prices=prices,
    )


def _several(path: Path, key: str, value: Any) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise InputError(f"{path}: {key} must be a string or a list of strings")
    return tuple(values)

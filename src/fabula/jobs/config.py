"""A user's defaults in `fabula.toml`: references, a model and prices."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fabula.core.errors import InputError

NAME = "fabula.toml"
_SETS = ("models", "near", "index", "reading", "running", "tools", "tests", "serving")


@dataclass(frozen=True, slots=True)
class Config:
    """Defaults of options, used if neither an option nor the environment sets a value."""

    reference: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    is_of_folder: bool = False
    """It was found in the current folder, where somebody else may have put it."""
    prices: Mapping[str, str] = field(default_factory=dict)
    """Dollars per million tokens as IN/OUT, by model name."""
    sets: Mapping[str, Any] = field(default_factory=dict)
    """What tunes shared sets of settings: `models.timeout`."""

    def values_of(self, options: Mapping[str, bool]) -> dict[str, Any]:
        """The values of a job's options by name, as in `models.timeout`.

        options: whether each takes several values. Raises `InputError` for a name in one of the
        job's tables that no job has.
        """
        tables = {name.partition(".")[0] for name in options if "." in name}
        others = {name for name in self.sets if name.partition(".")[0] in tables} - options.keys()
        if others:
            from fabula.core.settings import Settings, fields_of
            from fabula.jobs.registry import jobs
            from fabula.jobs.shared_settings import Reading

            # What can be set, of all jobs.
            kinds: set[type[Settings]] = {Reading}
            for job in jobs().values():
                kinds.update(job.load().settings.values())
            settings = [d for kind in kinds for d in fields_of(kind) if d.field.tuned]
            if unknown := others - {d.field.option_of(d.path[-1]) for d in settings}:
                name = min(unknown)
                remedy = f"`fabula COMMAND --help {name.partition('.')[0]}` lists all"
                raise InputError(f"{NAME}: {name}: no such setting; {remedy}")
        values = {name: value for name, value in self.sets.items() if name in options}
        if self.reference and options.get("reference"):
            values["reference"] = self.reference
        # A job that asks a model has a limit on what it costs.
        if self.model and options.get("model") and "max-cost" in options:
            values["model"] = self.model
        return values

    def price_of(self, models: tuple[str, ...] = ()) -> str | None:
        """Return configured prices (all if no model is named) in the format of `price`, or None."""
        names = models or self.prices
        return ";".join(f"{n}={self.prices[n]}" for n in names if n in self.prices) or None


def read_config() -> Config:
    """Read `fabula.toml` from this folder, else from the user's configuration.

    Empty if there is none. Raises `InputError` that names the file and the error in it.
    """
    from platformdirs import user_config_path

    for path in (Path(NAME), user_config_path("fabula") / NAME):
        if not path.is_file():
            continue
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
            raise InputError(f"{path}: cannot be read as TOML ({error})") from error
        if "restart" in content.get("running", ()):
            raise InputError(f"{path}: `restart` is for one run: give it as an option")
        if unknown := content.keys() - {"reference", "model", "prices", *_SETS}:
            raise InputError(
                f"{path}: unknown key {min(unknown)!r}; the keys are reference, model and prices, "
                f"and the tables {', '.join(_SETS)}"
            )
        sets = {}
        for name in _SETS:
            table = content.get(name, {})
            if not isinstance(table, dict):
                raise InputError(f"{path}: {name} must be a table, [{name}]")
            for key, value in table.items():
                if not isinstance(value, str | int | float):
                    problem = "must be a text, a number, true or false"
                    raise InputError(f"{path}: {name}.{key} {problem}")
                sets[f"{name}.{key.replace('_', '-')}"] = value
        prices = content.get("prices", {})
        if not isinstance(prices, dict) or not all(isinstance(p, str) for p in prices.values()):
            raise InputError(f'{path}: prices must be a table such as "openai/gpt-4o" = "2.5/10"')
        return Config(
            reference=_several(path, "reference", content.get("reference", [])),
            model=_several(path, "model", content.get("model", [])),
            is_of_folder=path == Path(NAME),
            sets=sets,
            prices=prices,
        )
    return Config()


def addresses_in(values: Iterable[str]) -> list[str]:
    """The addresses among these values that are not on this machine."""
    local = ("127.0.0.1", "localhost", "::1")
    return [value for value in values if "://" in value and urlsplit(value).hostname not in local]


def _several(path: Path, key: str, value: Any) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        raise InputError(f"{path}: {key} must be a string or a list of strings")
    return tuple(values)

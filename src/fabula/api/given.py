"""Settings from keyword arguments, including those of nested settings."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, TypeVar

from fabula.settings import Settings, SettingsError, build, fields_of

__all__ = ["settings_from"]

S = TypeVar("S", bound=Settings)


def settings_from(kind: type[S], given: dict[str, Any], fixed: dict[str, Any]) -> S:
    """Settings of a class from values by name. Raises `SettingsError` for an unknown name.

    `fixed` are values set by the caller's own arguments; they cannot be given again.
    """
    paths = {one.path[-1]: one.path for one in fields_of(kind)}
    for name in given:
        if name not in paths or name in fixed:
            free = sorted(paths.keys() - fixed.keys())
            close = get_close_matches(name, free, n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"the settings are {', '.join(free)}"
            raise SettingsError(name, f"is not a setting here; {hint}")
    return build(kind, {paths[name]: value for name, value in {**given, **fixed}.items()})

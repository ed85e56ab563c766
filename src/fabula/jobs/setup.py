"""Fetch the model files that instruments need: which, from where, their size, and destination."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.jobs.progress import SILENT, Progress
from fabula.settings import Settings, SettingsError, setting

if TYPE_CHECKING:
    from fabula.models.fetching import ModelFiles

SETS = ("nlp", "local")
"""What can be set up, each named after the extra whose code uses it."""
_RUNTIMES = {"nlp": "spacy", "local": "xllamacpp"}


def _is_web(address: str) -> str | None:
    if address.startswith(("http://", "https://")):
        return None
    return f"must begin with http:// or https://, got {address!r}"


@dataclass(frozen=True, slots=True)
class SetupSettings(Settings):
    """Where files are fetched from, if at all."""

    source: Literal["auto", "maker", "index"] = setting(
        "auto",
        help="maker: where the model's maker publishes it; index: your package index, by your pip "
        "or uv; auto: the maker, then the index.",
    )
    mirror: str | None = setting(
        None,
        help="Fetch from this address in place of the makers' hosts; paths and digests stay.",
        unit="URL",
        check=_is_web,
    )
    dry_run: bool = setting(False, help="Show what would be fetched, without fetching it.")

    def check_together(self) -> None:
        if self.mirror is not None and self.source == "index":
            raise SettingsError(
                "mirror", "replaces the makers' hosts, which `source` index does not use"
            )


@dataclass(frozen=True, slots=True)
class Step:
    """One model: where it is, or where to fetch it from and keep it."""

    name: str
    title: str
    licence: str
    n_bytes: int
    origins: tuple[str, ...]
    """In the order in which they are tried."""
    folder: Path
    installed: Path | None

    def line(self) -> str:
        """A line for display."""
        if self.installed is not None:
            return f"{self.title}: installed in {self.installed}"
        return (
            f"{self.title}: {self.n_bytes / 1e6:.0f} MB, licence {self.licence}, from "
            f"{', or '.join(self.origins)}; kept in {self.folder}"
        )

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "name": self.name,
            "title": self.title,
            "licence": self.licence,
            "bytes": self.n_bytes,
            "from": list(self.origins),
            "folder": str(self.folder),
            "installed": None if self.installed is None else str(self.installed),
        }


@dataclass(frozen=True, slots=True)
class SetUp:
    """Models, and what is still missing to use them."""

    steps: tuple[Step, ...]
    extras: tuple[str, ...]
    """Those whose code is not installed."""

    @property
    def missing(self) -> tuple[Step, ...]:
        """Models that are not on this machine yet."""
        return tuple(step for step in self.steps if step.installed is None)

    def lines(self) -> list[str]:
        """A line for each model, and for each extra that is not installed."""
        return [
            *(one.line() for one in self.steps),
            *(f"also needed: pip install 'fabula[{name}]'" for name in self.extras),
        ]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"models": [one.to_json() for one in self.steps], "extras": list(self.extras)}


def usable_sets() -> tuple[str, ...]:
    """The sets whose code is installed here."""
    return tuple(name for name in SETS if importlib.util.find_spec(_RUNTIMES[name]) is not None)


def run_setup(
    sets: Sequence[str],
    settings: SetupSettings,
    *,
    agree: Callable[[SetUp], None],
    progress: Progress = SILENT,
) -> SetUp:
    """Fetch what is missing, unless `agree` raises; with `dry_run`, nothing.

    Raises `ModelError` if no source has a file with the expected digest, `BusyError` if another
    process is fetching it. Partial downloads are kept for the next run.
    """
    from fabula.models.fetching import KNOWN, fetch

    plan = _plan(sets, settings)
    if settings.dry_run:
        return plan
    if plan.missing:
        agree(plan)
    for step in plan.missing:
        fetch(
            KNOWN[step.name],
            source=settings.source,
            mirror=settings.mirror,
            begin=progress.begin,
            advance=progress.advance,
            tell=progress.tell,
        )
    return _plan(sets, settings)


def _plan(sets: Sequence[str], settings: SetupSettings) -> SetUp:
    from fabula.model_files import ENCODER, LANGUAGE_MODEL, PIPELINE
    from fabula.models.fetching import KNOWN

    names: list[str] = []
    if "nlp" in sets:
        names.append(PIPELINE)
    if "local" in sets:
        names.append(LANGUAGE_MODEL)
    names.append(ENCODER)
    extras = tuple(name for name in SETS if name in sets and name not in usable_sets())
    return SetUp(tuple(_step(KNOWN[name], settings) for name in names), extras)


def _step(files: ModelFiles, settings: SetupSettings) -> Step:
    from urllib.parse import urlsplit

    from fabula.model_files import models_folder

    origins: list[str] = []
    n_bytes = files.packages.n_bytes
    if settings.source != "index" and files.download is not None:
        url = files.download.url
        if settings.mirror is not None:
            url = settings.mirror.rstrip("/") + urlsplit(url).path
        origins.append(url)
        n_bytes = files.download.n_bytes
    if settings.source != "maker" or files.download is None:
        origins.append("the package index: " + ", ".join(files.packages.wheels))
    return Step(
        files.name,
        files.title,
        files.licence,
        n_bytes,
        tuple(origins),
        models_folder() / files.name,
        _installed(files.name),
    )


def _installed(name: str) -> Path | None:
    """The path of the model that Fabula would use, following its search order."""
    from fabula.errors import ModelError
    from fabula.model_files import LANGUAGE_MODEL, PIPELINE
    from fabula.models.encoder import packaged_encoder
    from fabula.models.local import embedded_model
    from fabula.text.pipeline import installed_pipeline

    try:
        if name == PIPELINE:
            return installed_pipeline()
        return embedded_model() if name == LANGUAGE_MODEL else packaged_encoder()[1].parent
    except ModelError:
        return None

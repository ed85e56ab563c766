"""Settings that many jobs share: how texts are read, where a job runs, which files it writes.

And a user's defaults in `fabula.toml`: references, a model and prices.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from fabula.core.errors import InputError
from fabula.core.resume import Share
from fabula.core.settings import Between, Described, Settings, SettingsError, fields_of, setting

if TYPE_CHECKING:
    from fabula.core.types import Document
    from fabula.core.workers import Cluster
    from fabula.jobs.job import Progress
    from fabula.show.sheet import Block


@dataclass(frozen=True, slots=True)
class Reading(Settings):
    """The format of files, and the fields of tables."""

    format: str | None = setting(
        None,
        help="Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl, "
        "csv, tsv, xlsx, parquet, wet.",
        unit="FORMAT",
        tunes="reading",
    )
    id_field: str = setting(
        "id", help="Field of a row that contains its id.", option="id", tunes="reading"
    )
    text_field: str = setting(
        "text", help="Field of a row that contains the text.", option="text", shared="reading"
    )

    def documents(self, sources: Any, **more: Any) -> Iterator[Document]:
        """The texts of sources, one after the other; both as `read_documents` takes them."""
        from fabula.text import read_documents

        return read_documents(
            sources, text_field=self.text_field, id_field=self.id_field, format_=self.format, **more
        )


def grammar_setting() -> Any:
    """The checker of grammar."""
    return setting(
        "harper",
        help="harper, languagetool (its server, as languagetool@URL if not on port 8081), or none.",
        unit="CHECKER",
        tunes="tools",
    )


def encoder_setting() -> Any:
    """The encoder of sentences."""
    return setting(
        None,
        help="Sentence encoder: a folder with model.onnx and tokenizer.json.",
        unit="DIR",
        default_text="MiniLM, packaged",
        tunes="tools",
    )


def read_stories(
    sources: Sequence[str], read: Callable[[tuple[str, ...]], Iterable[Document]]
) -> list[Document]:
    """The stories that sources name; the authors' released file is recognised by its name.

    `read` gives the texts of all other sources. Raises `InputError`.
    """
    from fabula.rubrics.released import STORIES_FILE, read_released_stories
    from fabula.text import check_ids

    others = tuple(source for source in sources if Path(source).name != STORIES_FILE)
    released = (Path(source) for source in sources if source not in others)
    stories = [story for path in released for story in read_released_stories(path)]
    if others:
        stories += read(others)
    if not stories:
        raise InputError(f"{', '.join(sources)}: contains no stories")
    check_ids(stories)
    return stories


# Without slots, so that a settings class can have two bases.
@dataclass(frozen=True, kw_only=True)
class Processes(Settings):
    """The number of worker processes on this machine."""

    n_jobs: int | None = setting(
        None,
        help="Number of processes to use; results do not depend on it.",
        check=Between(1),
        default_text="all processors",
        shared="running",
    )

    @property
    def n_processes(self) -> int:
        """The setting, or the number of processors available to this process."""
        from fabula.core.workers import default_jobs

        return self.n_jobs or default_jobs()


@dataclass(frozen=True, slots=True)
class Engine(Processes):
    """Where to compute. Results are the same bytes everywhere."""

    kind: Literal["local", "ray"] = setting(
        "local",
        help="ray: on a Ray cluster, or on `n_jobs` processes of one started for this command.",
        option="engine",
        shared="running",
    )
    address: str | None = setting(
        None,
        help="ray: the cluster, as `ray start` prints it; auto for one that runs on this machine.  "
        "[env: RAY_ADDRESS]",
        unit="ADDRESS",
        tunes="running",
    )

    def check_together(self) -> None:
        if self.kind == "local" and self.address is not None:
            raise SettingsError("address", "is only for `kind` ray")


@contextmanager
def open_cluster(engine: Engine, progress: Progress, stage: str) -> Iterator[Cluster | None]:
    """The cluster, or None to work on this machine. `stage` names the work for progress reports."""
    if engine.kind == "local":
        yield None
        return
    from fabula.core.workers import Cluster

    progress.say("connecting to the cluster")
    with Cluster(engine.address, n_cpus=engine.n_processes) as cluster:
        progress.say(stage)
        yield cluster


WRITTEN = (
    "out", "csv", "latex", "html", "plot", "comments", "details", "points_file", "people_file",
    "times",
)  # fmt: skip
"""The settings, by the last part of their names, whose files a job writes."""


def is_output(described: Described) -> bool:
    """Whether a setting names a file that the job writes."""
    is_file = described.field.unit != "DIR" and described.type in (Path, Path | None)
    return described.path[-1] in WRITTEN and is_file


def is_folder(place: object) -> str | None:
    """Why a corpus cannot be written to a place; None if it can."""
    if ":/" not in str(place):
        return None
    return (
        f"{place}: name a folder; a corpus at an address, or one that is served, is built and "
        "changed in its folder, and copied from there"
    )


def _is_page(path: Path) -> None:
    from fabula.show.page import check_page_path

    check_page_path(path)


def _is_plot(path: Path) -> None:
    from fabula.show.charts import check_plot_path

    check_plot_path(path)


def page_setting(help: str, default_text: str = "") -> Any:  # noqa: A002 (click's word)
    """A field for the page of a result. It refuses to overwrite files not written by Fabula."""
    return setting(None, help=help, unit="PAGE", check=_is_page, default_text=default_text)


def plot_setting(help: str) -> Any:  # noqa: A002
    """A field for a picture; an unknown suffix, or no matplotlib, raises `InputError`."""
    return setting(None, help=help, check=_is_plot)


def restart_setting() -> Any:
    """A field for starting over."""
    return setting(False, help="Start over, ignoring what is there.", tunes="running")


def share_setting() -> Any:
    """A field for the share of a job whose rows are in the file `out`; see `share_of`."""
    return setting(
        None,
        help="Do only the I-th of N shares, as in 3/8, on any machine; when all are done, the same "
        "command without this option joins them.",
        unit="I/N",
        shared="running",
    )


def share_of(share: str | None, out: object) -> Share | None:
    """The share that a job's settings ask for. Raises `InputError`, `SettingsError`."""
    if share is None:
        return None
    if out is None:
        raise SettingsError("share", "needs `out`, which all shares have in common")
    return Share.parse(share)


def rows_file(share: str | None, out: Path) -> Path:
    """The file of the rows of a job with this `out`; a share has its own beside it."""
    part = share_of(share, out)
    return out if part is None else part.beside(out)


def _ends_with(ending: str, path: Path) -> str | None:
    """Check the suffix, so that a typo does not overwrite a draft with a table."""
    return None if path.suffix == ending else f"must end with {ending}, got {path.name!r}"


def check_kept(outputs: Mapping[str, Path | None], kept: Iterable[Path]) -> None:
    """Raise `SettingsError` if an output, by its setting, is a file that must be kept.

    Creates the folders of the outputs.
    """
    taken = {path.resolve() for path in kept}
    for name, path in outputs.items():
        if path is not None and path.resolve() in taken:
            raise SettingsError(name, f"{path} is already read or written; name another file")
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True, slots=True)
class TableFiles(Settings):
    """The files for the tables that a command prints."""

    csv: Path | None = setting(
        None,
        help="Write the first table here (.csv), and each further table beside it, with its name "
        "before the ending.",
        check=partial(_ends_with, ".csv"),
        shared="output",
    )
    latex: Path | None = setting(
        None,
        help="Write the tables for LaTeX here (.tex).",
        check=partial(_ends_with, ".tex"),
        shared="output",
    )

    def check_files(self) -> None:
        """Raise `InputError` if the LaTeX file was not written by Fabula."""
        from fabula.show.sheet import LATEX_BEGIN

        path = self.latex
        if path is not None and path.exists() and path.stat().st_size:
            with path.open("rb") as file:
                if not file.read(64).startswith(LATEX_BEGIN.encode()):
                    raise InputError(f"{path}: was not written by Fabula; choose another name")

    def write(self, parts: Sequence[Block], records: Sequence[Block] = ()) -> list[Path]:
        """Write the requested files; returns their paths.

        `records` are the contents of the CSV, if they differ from the tables as shown.
        """
        from fabula.core.store import write_whole
        from fabula.show.sheet import csv_of, latex_of

        texts: dict[Path, str] = {}
        if self.csv is not None:
            for k, (name, text) in enumerate(csv_of(records or parts).items()):
                texts[self.csv.with_suffix(f".{name}.csv") if k else self.csv] = text
        if self.latex is not None:
            texts[self.latex] = latex_of(parts)
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text.encode(errors="replace"))
        return list(texts)


NAME = "fabula.toml"
_SETS = ("models", "near", "index", "reading", "running", "tools", "tests")


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

        options: whether each takes several values. Raises `InputError` for a name that no job has.
        """
        tables = {name.partition(".")[0] for name in options if "." in name}
        others = {name for name in self.sets if name.partition(".")[0] in tables} - options.keys()
        if others:
            from fabula.jobs.registry import jobs

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

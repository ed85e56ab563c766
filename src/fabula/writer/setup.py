"""Fetch the model files that instruments need; or list the models that can judge here."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.core.errors import ModelError
from fabula.core.settings import Between, SettingsError, setting
from fabula.core.types import Document
from fabula.jobs.job import SILENT, Agree, Progress, agreed_to
from fabula.jobs.models import Pricing
from fabula.jobs.result import Result, Row, picked

if TYPE_CHECKING:
    from fabula.judging.trust import Trust
    from fabula.show.sheet import Block

SETS = ("nlp", "local")
"""What can be set up, each named after the extra whose code uses it."""
_RUNTIMES = {"nlp": "spacy", "local": "xllamacpp"}
_NOT_KNOWN = "name a model to see"


@dataclass(frozen=True, slots=True)
class SetupSettings(Pricing):
    """Where files are fetched from, if at all; or what to find out about models."""

    source: Literal["auto", "maker", "index"] = setting(
        "auto",
        help="maker: where the model's maker publishes it; index: your package index, by your pip "
        "or uv; auto: the maker, then the index.",
    )
    mirror: str | None = setting(
        None,
        help="Fetch from this address in place of the makers' hosts; paths and digests stay.",
        unit="URL",
        check=lambda address: (
            None
            if address.startswith(("http://", "https://"))
            else f"must begin with http:// or https://, got {address!r}"
        ),
    )
    dry_run: bool = setting(False, help="Show what would be fetched, without fetching it.")
    models: tuple[str, ...] = setting(
        (), help="Without SETS: list this model only.", unit="MODEL", option="model"
    )
    rubric: str = setting(
        "ttcw", help="Without SETS: rubric that trust and cost refer to.", unit="NAME|FILE"
    )
    words: int = setting(
        1500,
        help="Without SETS: length of the story that costs are estimated for, in words.",
        check=Between(1, 1_000_000),
    )

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
        if self.installed is not None:
            return f"{self.title}: installed in {self.installed}"
        return (
            f"{self.title}: {self.n_bytes / 1e6:.0f} MB, licence {self.licence}, from "
            f"{', or '.join(self.origins)}; kept in {self.folder}"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            **picked(self, "name", "title", "licence"),
            "bytes": self.n_bytes,
            "from": list(self.origins),
            "folder": str(self.folder),
            "installed": self.installed and str(self.installed),
        }


@dataclass(frozen=True, slots=True)
class Judge:
    """A model that can be called here."""

    name: str
    where: str
    trust: Trust | None
    """Over all items, in the style in which it was best checked; None if it never was."""
    cost: float | None
    """Dollars for the rubric on one story; 0 on this machine, None if the price is unknown."""
    is_named: bool = True
    """Whether it is a single model, rather than all models of a provider."""

    def to_json(self) -> dict[str, Any]:
        row = {"model": self.name, "where": self.where, "cost": self.cost}
        return row | {"is_named": self.is_named, "trust": self.trust and asdict(self.trust)}


@dataclass(frozen=True, slots=True, repr=False)
class SetUp(Result):
    """Models, and what is still missing to use them; or the models that can judge here."""

    steps: tuple[Step, ...] = ()
    extras: tuple[str, ...] = ()
    """Those whose code is not installed."""
    judges: tuple[Judge, ...] | None = None
    """The models on this machine and those of the API keys that are set; None for sets."""
    about: str = ""
    """What the costs of judges are of."""

    @property
    def missing(self) -> tuple[Step, ...]:
        """Models that are not on this machine yet."""
        return tuple(step for step in self.steps if step.installed is None)

    def lines(self) -> list[str]:
        """A line for each model, and for each extra that is not installed."""
        needed = [f"also needed: pip install 'fabula[{name}]'" for name in self.extras]
        return [] if self.judges is not None else [*(step.line() for step in self.steps), *needed]

    def tables(self) -> list[Block]:
        from fabula.core.errors import NEVER_CHECKED
        from fabula.show.sheet import Column, Sheet

        if self.judges is None:
            return list(self.lines())
        if not self.judges:
            return [
                "no model is available here: fetch the embedded one (`pip install "
                "'fabula[local]'` and `fabula setup local`), start Ollama, LM Studio, llama.cpp or "
                "vLLM, or set a key"
            ]

        def cost(row: Judge) -> str:
            if not row.is_named:
                return _NOT_KNOWN
            return "unknown" if row.cost is None else f"{row.cost:.4f}" if row.cost else "nothing"

        def trust(row: Judge) -> str:
            if not row.is_named:
                return _NOT_KNOWN
            return NEVER_CHECKED if row.trust is None else row.trust.shown

        columns = [
            Column("model", of="name"),
            Column("where"),
            Column("cost of one story, dollars", name="cost", of=cost),
            Column("agreement with experts (kappa)", name="trust", of=trust),
        ]
        return [Sheet.of("models", self.judges, columns), "", self.about]

    def rows(self) -> list[Row]:
        """A row for each model."""
        return [row.to_json() for row in self.judges or self.steps]

    def to_json(self) -> Any:
        rows = self.rows()
        return {"models": rows, "extras": list(self.extras)} if self.judges is None else rows


def usable_sets() -> tuple[str, ...]:
    """The sets whose code is installed here."""
    return tuple(name for name in SETS if importlib.util.find_spec(_RUNTIMES[name]) is not None)


def setup(
    settings: SetupSettings,
    sets: Sequence[str] = (),
    *,
    agree: Agree = agreed_to,
    progress: Progress = SILENT,
) -> SetUp:
    """Fetch the model files that instruments need; without SETS, list the models that can judge.

    nlp: spaCy's English pipeline and a sentence encoder, for profile, near matches, lines and
    continuations. local: the small language model that comes with Fabula as a demonstration, and
    the encoder. all: everything. Files that are already installed are kept.

    Says what is fetched from where, and asks first. Each file is checked against a SHA-256 in this
    version of Fabula. What is complete is not downloaded again.

    Without SETS, lists the available models, what is known about each as a judge, and its cost.
    Looks for the embedded model, servers at the usual ports of this machine (Ollama, LM Studio,
    llama.cpp, vLLM), and providers whose key is set. With `models`, lists only these.

    Raises `InputError`, `ModelError`, also if no source has a file with the expected digest, and
    `BusyError` if another process is fetching it. Partial downloads are kept for the next run.
    """
    from fabula.models.fetching import KNOWN, fetch

    if not sets:
        return _available(settings)
    for name in sets:
        if name not in (*SETS, "all"):
            raise SettingsError("sets", f"must be nlp, local or all, got {name!r}")
    chosen = SETS if "all" in sets else sets
    plan = _plan(chosen, settings)
    if settings.dry_run:
        return plan
    if plan.missing:
        agree("Fetch?", [missing.line() for missing in plan.missing])
    for step in plan.missing:
        fetch(
            KNOWN[step.name],
            source=settings.source,
            mirror=settings.mirror,
            begin=progress.begin,
            advance=progress.advance,
            tell=progress.tell,
        )
    return _plan(chosen, settings)


def _plan(sets: Sequence[str], settings: SetupSettings) -> SetUp:
    from urllib.parse import urlsplit

    from fabula.core.packages import ENCODER, LANGUAGE_MODEL, PIPELINE, models_folder
    from fabula.models import encoder, fetching, local
    from fabula.text.pipeline import installed_pipeline

    of_sets = {"nlp": PIPELINE, "local": LANGUAGE_MODEL}
    names = [*(name for key, name in of_sets.items() if key in sets), ENCODER]
    extras = tuple(name for name in SETS if name in sets and name not in usable_sets())
    steps = []
    for name in names:
        files, origins = fetching.KNOWN[name], []
        n_bytes = files.packages.n_bytes
        if settings.source != "index" and files.download is not None:
            url = files.download.url
            if settings.mirror is not None:
                url = settings.mirror.rstrip("/") + urlsplit(url).path
            origins.append(url)
            n_bytes = files.download.n_bytes
        if settings.source != "maker" or files.download is None:
            origins.append("the package index: " + ", ".join(files.packages.wheels))
        # The one that Fabula would use, following its search order.
        try:
            if name == PIPELINE:
                place = installed_pipeline()
            elif name == LANGUAGE_MODEL:
                place = local.embedded_model()
            else:
                place = encoder.packaged_encoder()[1].parent
        except ModelError:
            place = None
        folder = models_folder() / name
        steps.append(Step(name, files.title, files.licence, n_bytes, tuple(origins), folder, place))
    return SetUp(tuple(steps), extras)


def _available(settings: SetupSettings) -> SetUp:
    """The models that are named, or all that are found. Raises `InputError`, `ModelError`."""
    from fabula.judging.plan import AnswerBook, JudgePlan, identity
    from fabula.judging.prompts import Template
    from fabula.judging.session import Session, estimate_calls
    from fabula.judging.trust import TrustBook
    from fabula.models.available import find_models
    from fabula.models.model_spec import open_model
    from fabula.rubrics.load import load_rubric

    plan = JudgePlan(load_rubric(settings.rubric), Template("reason-first"))
    models = [(known.name, known.where, known.kind != "provider") for known in find_models()]
    if settings.models:
        where = {name: place for name, place, _ in models}
        models = [(name, where.get(name, "named"), True) for name in settings.models]
    prices, story = settings.prices(), [Document("story", "word " * settings.words)]
    judges = []
    for name, place, is_named in models:
        if not is_named:
            judges.append(Judge(name, place, None, None, False))
            continue
        model, session = open_model(name), Session(story, [name], plan, None)
        estimate = estimate_calls(session, story, model, AnswerBook(), prices.of(name))
        trust = TrustBook().best(identity(model.name), plan.rubric.key)
        judges.append(Judge(name, place, trust, estimate.cost))
    about = (
        f"one story: {settings.words:,} words, {len(plan.items)} items; use a judge by the name "
        "shown here"
    )
    return SetUp(judges=tuple(judges), about=about)

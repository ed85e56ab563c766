"""Rubrics: show them, import them from a release, draft and expand them with a model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fabula.errors import InputError, ModelError
from fabula.jobs.models import ModelSettings
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.settings import Between, Settings, SettingsError, part, setting

if TYPE_CHECKING:
    from fabula.tasks.expanding import Expanded
    from fabula.types import Rubric

_LINE_TOKENS = 60
"""Approximate tokens of a name or a question."""
_MEANING_TOKENS = 150
"""Approximate tokens of an explanation."""


@dataclass(frozen=True, slots=True)
class ShowSettings(Settings):
    """The format in which a rubric is shown."""

    toml: bool = setting(False, help="Print the file itself, as a start for your own rubric.")


def rubric_text(rubric: Rubric, settings: ShowSettings) -> str:
    """A rubric's items by dimension, with the question of each; or its file."""
    from fabula.rubrics.load import rubric_toml

    if settings.toml:
        return rubric_toml(rubric)
    lines = [f"{rubric.title} ({rubric.key})", rubric.citation, f"Wording: {rubric.wording}", ""]
    dimension = ""
    for item in rubric.items:
        if item.dimension != dimension:
            dimension = item.dimension
            lines += [dimension, ""]
        lines += [f"{item.index:>3}. {item.title} [{item.id}]", _wrapped(item.question)]
        if item.scale.options:
            lines.append(_wrapped(" / ".join(item.scale.options)))
        lines.append("")
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> str:
    import shutil
    import textwrap

    width = min(100, shutil.get_terminal_size((100, 40)).columns) - 2
    return textwrap.fill(text, width, initial_indent="     ", subsequent_indent="     ")


@dataclass(frozen=True, slots=True)
class ImportSettings(Settings):
    """Where a published rubric is written."""

    out: Path | None = setting(
        None, help="Write the rubric here.", default_text="NAME-published.toml"
    )


def import_rubric(name: str, file: Path, settings: ImportSettings) -> tuple[Rubric, Path]:
    """Write the rubric `name` in its published wording, which is in the authors' `file`.

    Returns it and its path. Raises `InputError`, also if another file would be overwritten.
    """
    from fabula.rubrics.load import rubric_toml
    from fabula.rubrics.released import released_rubric
    from fabula.store import write_whole

    out = settings.out or Path(f"{name}-published.toml")
    rubric = released_rubric(name, file)
    if out.exists() and out.read_bytes() != rubric_toml(rubric).encode():
        raise _taken(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, rubric_toml(rubric).encode())
    return rubric, out


def _taken(out: Path) -> InputError:
    return InputError(f"{out}: already exists; name another file with `out`")


@dataclass(frozen=True, slots=True)
class DraftSettings(Settings):
    """How measures are grouped, and which model words the tests."""

    out: Path = setting(help="Write the draft here, a .toml file to edit.")
    n_groups: int | None = setting(
        None,
        help="Number of groups in each dimension.",
        check=Between(1),
        default_text="depends on their distances",
        option="n-groups",
    )
    distance: float = setting(
        0.55,
        help="Measures farther apart than this (1 - cosine) go into different groups.",
        check=Between(0, 2),
    )
    models: ModelSettings = part(ModelSettings)


def draft(
    measures: Path, settings: DraftSettings, *, confirm: Confirm = agreed
) -> tuple[Rubric, int]:
    """Draft yes-no tests from experts' measures, to `out`; the model `none` asks no model.

    Returns the rubric and the number of measures. Raises `InputError`, `ModelError`.
    """
    from fabula.jobs.writing import confirm_prompts
    from fabula.rubrics.load import rubric_toml
    from fabula.store import write_whole
    from fabula.tasks.drafting import draft_rubric, read_measures

    out, (spec, *_), terms = settings.out, settings.models.models, settings.models.options()
    if out.exists():
        raise _taken(out)
    rows = read_measures(measures)
    rubric, sources = draft_rubric(
        rows,
        out.stem,
        n_groups=settings.n_groups,
        distance=settings.distance,
        model=None if spec == "none" else spec,
        options=terms,
        agree=confirm_prompts([spec], terms.prices, _LINE_TOKENS, confirm),
    )
    text = rubric_toml(rubric) + "".join(f"# {line}\n" for line in sources)
    write_whole(out, text.encode())
    return rubric, len(rows)


@dataclass(frozen=True, slots=True)
class ExpansionSettings(Settings):
    """What is written for each item, and by which model."""

    out: Path = setting(help="Write the expanded rubric here, a .toml file to verify.")
    n_paraphrases: int = setting(
        0,
        help="Also write N other wordings of each question, for `fabula judge`.",
        check=Between(0, 20),
    )
    models: ModelSettings = part(ModelSettings)

    def check_together(self) -> None:
        if self.models.n_models != 1:
            raise SettingsError("models", "must be a single model here")


def expand(
    source: str,
    settings: ExpansionSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> Expanded:
    """Write a rubric (its name or file), expanded, to `out`. Raises `InputError`, `ModelError`."""
    from fabula.jobs.writing import confirm_prompts
    from fabula.models.model_spec import open_model
    from fabula.rubrics.load import load_rubric, parse_rubric, rubric_toml
    from fabula.store import write_whole
    from fabula.tasks.expanding import expand_rubric, expansion_prompts

    out = settings.out
    if out.exists():
        raise _taken(out)
    rubric = load_rubric(source)
    prompts = [
        prompt
        for item in rubric.items
        for prompt in expansion_prompts(item, settings.n_paraphrases).values()
    ]
    if not prompts:
        raise InputError(
            f"{source}: every item already has its background, what to list first and as many "
            "paraphrases as asked for; there is nothing to write"
        )
    terms = settings.models.options()
    (spec,) = dict.fromkeys(settings.models.models)
    confirm_prompts([spec], terms.prices, _MEANING_TOKENS, confirm)(prompts)

    async def ask() -> Expanded:
        async with open_model(spec, terms) as model:
            progress.begin("writing", len(prompts))
            return await expand_rubric(
                rubric, model, settings.n_paraphrases, meter=progress.advance
            )

    found = asyncio.run(ask())
    if not found.n_written:
        raise ModelError(f"{spec}: returned no usable text; nothing was written")
    by = f"expanded by {spec}; to be verified by experts"
    wording = f"{rubric.wording}; {by}" if rubric.wording else by
    expanded = replace(found.rubric, wording=wording)
    text = rubric_toml(expanded)
    write_whole(out, text.encode())
    return replace(found, rubric=parse_rubric(text.encode(), str(out)))

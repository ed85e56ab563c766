"""A draft rubric expanded by a model, for experts to verify."""

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

__all__ = ["ExpansionSettings", "expand"]

_LINE_TOKENS = 150
"""About what an answer takes."""


@dataclass(frozen=True, slots=True)
class ExpansionSettings(Settings):
    """What is written for each item, by which model."""

    n_paraphrases: int = setting(
        0,
        help="Also write N other wordings of each question, for `fabula judge`.",
        unit="N",
        check=Between(0, 20),
    )
    models: ModelSettings = part(ModelSettings)

    def check_together(self) -> None:
        if self.models.n_models != 1:
            raise SettingsError("models", "is one model here")


def expand(
    source: str,
    out: Path,
    settings: ExpansionSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> Expanded:
    """Write a rubric (its name or file), expanded, to `out`. Raises `InputError`, `ModelError`."""
    from fabula.jobs.writing import confirm_prompts
    from fabula.models import open_model
    from fabula.rubrics import load_rubric, parse_rubric, rubric_toml
    from fabula.store import write_whole
    from fabula.tasks.expanding import expand_rubric, expansion_prompts

    if out.exists():
        raise InputError(f"{out}: exists already; name another file")
    rubric = load_rubric(source)
    prompts = [
        prompt
        for item in rubric.items
        for prompt in expansion_prompts(item, settings.n_paraphrases).values()
    ]
    if not prompts:
        raise InputError(
            f"{source}: every item has its background, what to list first and as many paraphrases; "
            f"there is nothing to write"
        )
    terms = settings.models.options()
    (spec,) = dict.fromkeys(settings.models.models)
    confirm_prompts([spec], terms.prices, _LINE_TOKENS, confirm)(prompts)

    async def ask() -> Expanded:
        async with open_model(spec, terms) as model:
            progress.begin("writing", len(prompts))
            return await expand_rubric(
                rubric, model, settings.n_paraphrases, meter=progress.advance
            )

    found = asyncio.run(ask())
    if not found.n_written:
        raise ModelError(f"{spec}: gave no text that could be used; nothing was written")
    by = f"expanded by {spec}; to be verified by experts"
    wording = f"{rubric.wording}; {by}" if rubric.wording else by
    expanded = replace(found.rubric, wording=wording)
    text = rubric_toml(expanded)
    write_whole(out, text.encode())
    return replace(found, rubric=parse_rubric(text.encode(), str(out)))

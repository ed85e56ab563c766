"""Profiles of whole texts: rhythm, dialogue, rarity of words, grammar, repetition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.core.errors import InputError
from fabula.core.settings import Settings, part, setting
from fabula.jobs.job import SILENT, Progress, Stream
from fabula.jobs.result import Result, Row, single_values
from fabula.jobs.shared_settings import (
    Engine,
    grammar_setting,
    open_cluster,
    page_setting,
    plot_setting,
)

if TYPE_CHECKING:
    from fabula.core.types import Measurement
    from fabula.linguistic.profile import Profile
    from fabula.show.sheet import Block


@dataclass(frozen=True, slots=True)
class ProfileSettings(Settings):
    """How texts are profiled, and what is written."""

    out: Path | None = setting(None, help="Write a row for each text here (.jsonl).")
    html: Path | None = page_setting("Write a page here: rhythm, rare words, repeated phrases.")
    plot: Path | None = plot_setting(
        "Draw rhythm and rarity for up to 12 texts here (.svg, .pdf or .png)."
    )
    grammar: str = grammar_setting()
    engine: Engine = part(Engine)


@dataclass(frozen=True, slots=True, repr=False)
class Profiles(Result):
    """The profile of each text."""

    profiles: list[Profile]

    def tables(self) -> list[Block]:
        from fabula.linguistic.part import profile_tables

        return profile_tables(self.profiles)

    def rows(self) -> list[Row]:
        return [p.to_row() for p in self.profiles]

    def frame_rows(self) -> list[Row]:
        """A row per text: `id`, a column for each metric, and the text's own fields."""
        return [
            {"id": p.document.id, **p.values, **single_values(p.to_row(), ("id",))}
            for p in self.profiles
        ]

    def measurements(self) -> list[Measurement]:
        return [measurement for profile in self.profiles for measurement in profile.measurements()]

    def writers(self) -> dict[str, Any]:
        from fabula.linguistic import part

        plots = {e: partial(part.save_profiles, self.profiles) for e in (".svg", ".pdf", ".png")}
        return {".html": partial(part.write_profile_page, self.profiles), **plots}

    def _repr_html_(self) -> str:
        return "".join(profile._repr_html_() for profile in self.profiles)


def profile(
    texts: Stream,
    settings: ProfileSettings,
    *,
    progress: Progress = SILENT,
    each: Callable[[Row], None] = lambda _row: None,
) -> Profiles:
    """Profile TEXTS: rhythm of sentences, dialogue, rarity of words, grammar, repetition.

    English only. A metric that cannot be computed is missing, with its reason.

    Raises `InputError`, and `ModelError` if the language pipeline is not installed.
    """
    from fabula.core.store import write_rows
    from fabula.linguistic import part
    from fabula.linguistic.profile import profile_texts

    engine, profiles = settings.engine, []
    with open_cluster(engine, progress, "profiling") as cluster:
        spread = None if cluster is None else cluster.in_order
        for p in profile_texts(texts, settings.grammar, n_jobs=engine.n_processes, spread=spread):
            profiles.append(p)
            each(p.to_row())
    if not profiles:
        raise InputError(f"{', '.join(texts.names) or 'texts'}: contains no texts")
    if settings.out is not None:
        write_rows(settings.out, [p.to_row() for p in profiles], are_results=True)
    if settings.html is not None:
        part.write_profile_page(profiles, settings.html)
    if settings.plot is not None:
        part.save_profiles(profiles, settings.plot)
    return Profiles(profiles)

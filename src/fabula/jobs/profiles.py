"""Profiles of whole texts: rhythm, dialogue, rarity of words, grammar, repetition."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fabula.jobs.engine import Engine, open_cluster
from fabula.jobs.progress import SILENT, Progress
from fabula.jobs.result_files import page_setting, plot_setting
from fabula.settings import Settings, part, setting

if TYPE_CHECKING:
    from fabula.measures.linguistic.profile import Profile
    from fabula.resume import Row
    from fabula.types import Document


@dataclass(frozen=True, slots=True)
class ProfileSettings(Settings):
    """How texts are profiled, and what is written."""

    out: Path | None = setting(None, help="Write a row for each text here (.jsonl).")
    html: Path | None = page_setting("Write a page here: rhythm, rare words, repeated phrases.")
    plot: Path | None = plot_setting(
        "Draw rhythm and rarity for up to 12 texts here (.svg, .pdf or .png)."
    )
    grammar: str = setting(
        "harper",
        help="harper, languagetool (its server, as languagetool@URL where not on port 8081), or "
        "none.",
        unit="CHECKER",
    )
    engine: Engine = part(Engine)


def profile(
    documents: Iterable[Document],
    settings: ProfileSettings,
    *,
    progress: Progress = SILENT,
    each: Callable[[Row], None] = lambda _row: None,
) -> list[Profile]:
    """Profile texts; `each` receives each row at once. Writes `out`, `html` and `plot`.

    Raises `ModelError` if the language pipeline is not installed.
    """
    from fabula.measures.linguistic.profile import profile_texts
    from fabula.presentation.charts import save_profiles
    from fabula.presentation.profile_page import write_profile_page
    from fabula.store import write_rows

    engine, found = settings.engine, []
    with open_cluster(engine, progress, "profiling") as cluster:
        spread = None if cluster is None else cluster.in_order
        for one in profile_texts(
            documents, settings.grammar, n_jobs=engine.n_processes, spread=spread
        ):
            found.append(one)
            each(one.to_row())
    if found and settings.out is not None:
        write_rows(settings.out, [one.to_row() for one in found], are_results=True)
    if found and settings.html is not None:
        write_profile_page(found, settings.html)
    if found and settings.plot is not None:
        save_profiles(found, settings.plot)
    return found

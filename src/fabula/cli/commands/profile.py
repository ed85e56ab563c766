"""`fabula profile`: the style of a whole text, in numbers."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command
from fabula.cli.inputs import reading
from fabula.cli.options import check_outputs, texts_argument
from fabula.cli.printing import JsonRows, print_tables, print_written
from fabula.jobs.profiles import ProfileSettings
from fabula.jobs.profiles import profile as measure
from fabula.jobs.reading import Reading


@click.command(cls=Command, short_help="Measure rhythm, dialogue, word rarity and more.")
@texts_argument("texts")
def profile(
    texts: tuple[str, ...], settings: ProfileSettings, how_to_read: Reading, as_json: str | None
) -> None:
    """Profile TEXTS: rhythm of sentences, dialogue, rarity of words, grammar, repetition.

    English only. A metric that cannot be computed is missing, with its reason.
    """
    from fabula.errors import InputError
    from fabula.presentation.profile_page import profile_tables

    written = [settings.out, settings.html, settings.plot]
    check_outputs(written, map(Path, texts))
    with reading(texts, "profiling", how_to_read) as (documents, bar), JsonRows(as_json) as rows:
        found = measure(documents, settings, progress=bar, each=rows.print)
    if not found:
        raise InputError(f"{', '.join(texts)}: contains no texts")
    if not as_json:
        print_tables(profile_tables(found))
        print_written(written)

"""`fabula diversity`: how alike texts are that should differ."""

from __future__ import annotations

import click

from fabula.cli.derived import Command
from fabula.cli.inputs import read_stories
from fabula.cli.options import check_outputs, texts_argument
from fabula.cli.printing import print_result
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.diversity import DiversitySettings
from fabula.jobs.diversity import diversity as measure
from fabula.jobs.reading import Reading
from fabula.jobs.result_files import TableFiles


@click.command(cls=Command, short_help="Measure how alike texts are that should differ.")
@texts_argument("texts")
def diversity(
    texts: tuple[str, ...],
    settings: DiversitySettings,
    files: TableFiles,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Measure how alike the TEXTS of a group are, and compare groups.

    Every text is cut to the same number of words, and the same number of texts from every group is
    compared. Shows the share of n-grams that also occur in another text, how far the texts compress
    together, self-BLEU, self-repetition and distinct n-grams, with 95 % intervals and permutation
    tests; the phrases that most texts of a group share; and with --pairs who wrote like whom.
    """
    from fabula.presentation.diversity_tables import diversity_tables

    check_outputs([], [], files)
    documents = read_stories(texts, how_to_read)
    with progress_bar("measuring", None) as bar:
        found = measure(documents, settings, progress=bar)
    tables = diversity_tables(found, {one.id: one.text for one in documents})
    print_result(tables, found.to_json(), files, as_json=as_json)

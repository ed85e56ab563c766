"""`fabula reference write`: a reference of what language models write."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Command, Option, settings_options
from fabula.cli.inputs import read_stories
from fabula.cli.options import check_outputs, json_option, yes_option
from fabula.cli.printing import print_done
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.reading import Reading
from fabula.jobs.references import WriteSettings

__all__ = ["write"]


@click.command(cls=Command, short_help="Have models write texts, and build a corpus of them.")
@click.option(
    "--beginnings",
    cls=Option,
    setting="beginnings",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Sentences to continue: a .txt file with one per line, or rows of a table.",
)
@settings_options(WriteSettings)
@yes_option
@json_option
@settings_options(Reading, "how_to_read")
def write(
    beginnings: Path, settings: WriteSettings, yes: bool, as_json: bool, how_to_read: Reading
) -> None:
    """Have models continue sentences, and build a reference from their texts.

    Use this for texts by models that are newer than any corpus: models trained on the same web
    write the same phrases (Lu et al. 2024, section "Evaluation"; 150,000 sentences there). Against
    such a reference `fabula originality` sums levels 5 to 7 by default. Interrupted runs resume.
    """
    from fabula.jobs.references import write_corpus

    check_outputs([settings.answers_path], [beginnings])
    sentences = read_stories((str(beginnings),), how_to_read)
    with progress_bar("texts", None) as bar:
        confirm = confirm_on(bar, yes=yes)
        written = write_corpus(sentences, settings, progress=bar, confirm=confirm)
    print_done(written.to_json(), *written.lines(), as_json=as_json)

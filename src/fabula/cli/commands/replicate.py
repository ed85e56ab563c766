"""`fabula replicate`: a paper's tables recomputed, beside the printed numbers."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Group
from fabula.cli.options import check_outputs
from fabula.cli.printing import print_result
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.replication import (
    CreativityIndexSettings,
    LinguisticMetricsSettings,
    StoryFeedbackSettings,
    TtcwSettings,
    replicate_creativity_index,
    replicate_linguistic_metrics,
    replicate_story_feedback,
    replicate_ttcw,
)
from fabula.jobs.result_files import TableFiles

_folder = click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), required=False)


@click.group(cls=Group, short_help="Recompute a paper's tables from its released data.")
def replicate() -> None:
    """Compute a paper's tables from its released data, beside the printed numbers."""


@replicate.command(short_help='Replicate "Art or Artifice?" (2024).')
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def ttcw(folder: Path, settings: TtcwSettings, files: TableFiles, as_json: bool) -> None:
    """Tables 5 and 6 and Figures 3 and 4 of "Art or Artifice?" (Chakrabarty et al. 2024).

    DIR is the folder Art_or_Artifice of github.com/salesforce/creativity_eval.
    """
    check_outputs([settings.plot], [*settings.judges, settings.preferences], files)
    found = replicate_ttcw(folder, settings)
    print_result(found.tables, found.content, files, as_json=as_json, written=[settings.plot])


@replicate.command(
    "linguistic-metrics", short_help="Replicate the linguistic metrics of Roemmele et al. (2017)."
)
def linguistic_metrics(
    settings: LinguisticMetricsSettings, files: TableFiles, as_json: bool
) -> None:
    """Table 2 of "Evaluating Story Generation Systems Using Automated Linguistic Analyses".

    Roemmele, Gordon and Swanson 2017: random, case-based, unigram and recurrent generators and the
    books' own sentences on fifteen metrics.
    """
    check_outputs([settings.html], map(Path, (*settings.books, *settings.train)), files)
    with progress_bar("replicating", None) as bar:
        found = replicate_linguistic_metrics(settings, progress=bar)
    print_result(found.tables, found.content, files, as_json=as_json, written=[settings.html])


@replicate.command("creativity-index", short_help='Replicate "AI as Humanity\'s Salieri" (2024).')
@_folder
def creativity_index(
    folder: Path | None, settings: CreativityIndexSettings, files: TableFiles, as_json: bool
) -> None:
    """Run the analyses of "AI as Humanity's Salieri" on your own texts and references.

    Lu et al. 2024, Figures 3a to 3j and 3n: the index of people and models, verbatim and near;
    L-uniqueness against L; models before and after alignment; the spread over documents; detection
    beside a language model's log-probabilities. DIR is a copy of the authors' repository
    (github.com/GXimingLu/creativity_index), whose outputs/ are read too.
    """
    check_outputs([], [*settings.texts, *settings.references], files)
    with progress_bar("replicating", None) as bar:
        found = replicate_creativity_index(folder, settings, progress=bar)
    print_result(found.tables, found.content, files, as_json=as_json)
    if not as_json:
        out = settings.out
        click.echo(
            f"written: {out / 'results.json'}, and {len(found.figures)} figures in "
            f"{out / 'figures'}"
        )


@replicate.command("story-feedback", short_help='Replicate "Help Me Write a Story" (2025).')
@_folder
def story_feedback(
    folder: Path | None, settings: StoryFeedbackSettings, files: TableFiles, as_json: bool
) -> None:
    """Tables 1 and 3 to 9 of "Help Me Write a Story" (Rashkin et al. 2025).

    DIR is the folder of the files released at github.com/google-deepmind/igen.
    """
    check_outputs([], settings.runs, files)
    with progress_bar("measuring", None):
        found = replicate_story_feedback(folder, settings)
    print_result(found.tables, found.content, files, as_json=as_json)

"""`fabula replicate creativity-index`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.derived import Command, Option, settings_options
from fabula.cli.options import check_outputs, jobs_option, json_option, seed_option
from fabula.cli.printing import print_result
from fabula.cli.progress import progress_bar
from fabula.jobs.tables import TableFiles

if TYPE_CHECKING:
    from fabula.reference.exclude import CopyRule
    from fabula.replicate.creativity_index import Plan

__all__ = ["creativity_index"]


@click.command(
    cls=Command, name="creativity-index", short_help='Replicate "AI as Humanity\'s Salieri" (2024).'
)
@click.argument("data", metavar="[DATA]", type=click.Path(path_type=Path), required=False)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR",
    help="Folder of references, scores and figures; interrupted runs resume.",
)  # fmt: skip
@click.option(
    "--texts", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Texts by people and machines, a set a file.  [default: DATA/human_vs_machine]",
)  # fmt: skip
@click.option(
    "--reference", "references", multiple=True, type=click.Path(path_type=Path), metavar="DIR",
    help="Corpora to compare with, each by itself.  [default: DATA/reference, the machine texts of "
    "other prompts, and both; for the authors' texts, the machine texts]",
)  # fmt: skip
@click.option(
    "--label", default="label=human", show_default=True, metavar="FIELD=VALUE",
    help="Which texts are by people.",
)  # fmt: skip
@click.option(
    "--by", default="model", show_default=True, metavar="FIELD", help="Field to group texts by."
)
@click.option(
    "--cluster", metavar="FIELD",
    help="Texts that share this field count as one, and so do near-duplicates; in the reference "
    "they are left out.  [default: prompt_id, pair_id or author, whichever there is]",
)  # fmt: skip
@click.option("--levels", default="5-12", show_default=True, metavar="LOW-HIGH")
@click.option(
    "--words", type=click.IntRange(min=12), default=256, show_default=True,
    help="Words that each text is cut to.",
)  # fmt: skip
@click.option(
    "--spread", "sources", cls=Option, setting="sources", formerly=("sources",),
    type=click.IntRange(1, 1000), default=50, show_default=True, metavar="N",
    help="Documents over which the spread is followed.",
)  # fmt: skip
@click.option(
    "--model", default="local", show_default=True, metavar="MODEL|none",
    help="Whose log-probabilities are compared as detectors: local, a .gguf file, a folder, or "
    "none (needs the extra [neural]).",
)  # fmt: skip
@click.option(
    "--match",
    "matches",
    multiple=True,
    type=click.Choice(["verbatim", "near"]),
    default=("verbatim", "near"),
    show_default=True,
    help="Kind of matches, repeatable; near ones take long.",
)
@click.option(
    "--exclude",
    type=click.Choice(["auto", "none"]),
    help="Leave out documents of the reference that copy or quote a text.  [default: auto for the "
    "authors' texts, else none]",
)
@click.option(
    "--aligned",
    multiple=True,
    metavar="BEFORE=AFTER",
    help="Groups of models before and after alignment, to compare at each L; repeatable.",
)
@click.option(
    "--settings",
    "with_settings",
    is_flag=True,
    help="Also score under every combination of case, punctuation, tokeniser, exclusion and "
    "levels; builds each reference eight times.",
)
@settings_options(TableFiles, "files")
@seed_option
@jobs_option
@json_option
def creativity_index(
    data: Path | None,
    out: Path,
    texts: tuple[Path, ...],
    references: tuple[Path, ...],
    files: TableFiles,
    as_json: bool,
    **given: Any,
) -> None:
    """Analyses of "AI as Humanity's Salieri" on texts and references of yours.

    Lu et al. 2024, Figures 3a to 3j and 3n: the index of people and models, verbatim and near;
    L-uniqueness against L; models before and after alignment; the spread over documents; detection
    beside a language model's log-probabilities. DATA is a copy of the authors' repository
    (github.com/GXimingLu/creativity_index), whose outputs/ are read too, or a folder that holds
    human_vs_machine/ and reference/.
    """
    from dataclasses import replace

    from fabula.measures.uniqueness import Levels
    from fabula.measures.verdicts import Label
    from fabula.presentation.plots import check_matplotlib
    from fabula.replicate.creativity_index import Plan, default_plan, run_analyses
    from fabula.replicate.creativity_index_settings import compare_settings
    from fabula.replicate.creativity_index_tables import (
        analyses_json,
        analyses_tables,
        write_figures,
    )
    from fabula.replicate.creativity_index_texts import read_set
    from fabula.store import dump_json, write_whole
    from fabula.workers import default_jobs

    if data is None and not (texts and references):
        raise click.UsageError("name DATA, or --texts and --reference")
    check_matplotlib()
    check_outputs([], [*texts, *references], files)
    n_words, cluster = given["words"], given["cluster"]
    base = default_plan(data, n_words, cluster) if data is not None else None
    label = Label.parse(given["label"])
    chosen = {path.stem: read_set(path, n_words, label, cluster) for path in texts}
    plan = Plan(
        texts=chosen or (base.texts if base else {}),
        references={path.name: path for path in references} or (base.references if base else {}),
        label=label,
        by=given["by"],
        cluster=cluster,
        levels=Levels.parse(given["levels"]),
        spread=given["sources"],
        model=None if given["model"] == "none" else given["model"],
        matches=given["matches"],
        exclude=_exclusion(given["exclude"], base),
        aligned=tuple(_pair(text) for text in given["aligned"]),
        release=base.release if base and not chosen else None,
        seed=given["seed"],
        n_threads=given["jobs"] or default_jobs(),
    )
    with progress_bar("replicating", None) as bar:
        found = run_analyses(plan, out, report=bar.say)
        if given["with_settings"]:
            found = replace(found, settings=compare_settings(plan, out, report=bar.say))
        bar.say("drawing")
        figures = write_figures(found, out / "figures")
    content = analyses_json(found)
    write_whole(out / "results.json", (dump_json(content) + "\n").encode())
    print_result(analyses_tables(found), content, files, as_json=as_json)
    if not as_json:
        click.echo(
            f"written: {out / 'results.json'}, and {len(figures)} figures in {out / 'figures'}"
        )


def _exclusion(asked: str | None, base: Plan | None) -> CopyRule | None:
    from fabula.reference.exclude import CopyRule

    if asked is None:
        return base.exclude if base is not None else None
    return CopyRule() if asked == "auto" else None


def _pair(text: str) -> tuple[str, str]:
    before, equals, after = text.partition("=")
    if not (before and equals and after):
        raise click.UsageError(f"--aligned {text}: write BEFORE=AFTER, two groups of --by")
    return before, after

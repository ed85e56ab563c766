"""`fabula originality`: how much of each text occurs in a reference, and where."""

from __future__ import annotations

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Command, in_options
from fabula.cli.inputs import reading
from fabula.cli.options import check_outputs, texts_argument
from fabula.cli.printing import JsonRows, print_tables, print_written
from fabula.jobs.originality import OriginalitySettings, run
from fabula.jobs.reading import Reading


@click.command(cls=Command, short_help="Score texts against a reference corpus.")
@texts_argument("texts")
def originality(
    texts: tuple[str, ...],
    settings: OriginalitySettings,
    how_to_read: Reading,
    yes: bool,
    as_json: str | None,
) -> None:
    """Measure how original TEXTS are: L-uniqueness, the Creativity Index, and every borrowed span.

    The L-uniqueness of a text is the share of its words outside any run of L or more words found in
    the reference; the Creativity Index is the sum of L-uniqueness over the levels. With --out,
    interrupted runs resume.
    """
    from fabula.jobs.result_files import rows_file
    from fabula.presentation.originality_tables import originality_table, passages_table

    check_outputs([settings.out, settings.html], [])
    with reading(texts, "measuring", how_to_read) as (documents, bar), JsonRows(as_json) as rows:
        result = run(
            documents, settings, progress=bar, confirm=confirm_on(bar, yes=yes), each=rows.print
        )
    if not as_json:
        print_tables(originality_table(result.table, result.levels, result.signature, result.own))
        print_tables(passages_table(result.passages, result.n_passages, result.n_commonplaces))
        for remark in result.remarks():
            click.echo(in_options(remark))
        out = settings.out and rows_file(settings.share, settings.out)
        print_written([out, settings.html])
    if any(index is None for _, _, index, _, _ in result.table):
        # For scripts: some texts have no score. If a look-up failed, another run may find it.
        click.get_current_context().exit(1)

"""`fabula models`: the models that can judge here."""

from __future__ import annotations

import click

from fabula.cli.derived import Command
from fabula.cli.printing import print_result
from fabula.jobs.available_judges import ModelsSettings, available_models
from fabula.jobs.result_files import TableFiles


@click.command(cls=Command, short_help="List the language models that can judge here.")
@click.argument("names", nargs=-1, metavar="[MODEL...]")
def models(
    names: tuple[str, ...], settings: ModelsSettings, files: TableFiles, as_json: bool
) -> None:
    """List the available models, what is known about each as a judge, and its cost.

    Looks for the embedded model, servers at the usual ports of this machine (Ollama, LM Studio,
    llama.cpp, vLLM), and providers whose key is set. With MODELs, lists only these:
    `fabula models openai/gpt-4o`.
    """
    files.check_files()
    found = available_models(names, settings)
    print_result(found.tables(), found.content(), files, as_json=as_json)

"""`fabula reference write`: a reference of what language models write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Command, Option, settings_options
from fabula.cli.options import (
    check_outputs,
    jobs_option,
    json_option,
    seed_option,
    yes_option,
)
from fabula.cli.printing import print_done
from fabula.cli.progress import progress_bar
from fabula.cli.reading import read_stories
from fabula.jobs.models import ModelSettings
from fabula.jobs.reading import Reading
from fabula.jobs.writing import ask_models, estimate_texts
from fabula.resume import kept_rows

__all__ = ["write"]


@click.command(cls=Command, short_help="Have models write texts, and build a corpus of them.")
@click.option(
    "--beginnings", cls=Option, setting="beginnings", formerly=("prompts",), required=True,
    type=click.Path(path_type=Path), metavar="FILE",
    help="Sentences to continue: a .txt file with one per line, or rows of a table.",
)  # fmt: skip
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Folder to build."
)
@click.option(
    "--answers", type=click.Path(path_type=Path), metavar="FILE",
    help="Keep what the models wrote here (.jsonl).  [default: beside DIR, DIR.jsonl]",
)  # fmt: skip
@click.option(
    "--sample", type=click.IntRange(min=1), metavar="N", help="Draw N of the sentences at random."
)
@click.option("--top-p", type=click.FloatRange(0, 1), default=0.9, show_default=True)
@click.option("--temperature", type=click.FloatRange(0, 2), default=1.0, show_default=True)
@click.option(
    "--max-tokens", type=click.IntRange(min=1), default=2048, show_default=True,
    help="Length of a continuation at most.",
)  # fmt: skip
@seed_option
@click.option("--restart", is_flag=True, help="Ask for everything again, and rebuild.")
@settings_options(ModelSettings, "asked")
@yes_option
@jobs_option
@json_option
@settings_options(Reading, "how_to_read")
def write(
    beginnings: Path,
    out: Path,
    answers: Path | None,
    sample: int | None,
    top_p: float,
    temperature: float,
    max_tokens: int,
    seed: int,
    restart: bool,
    jobs: int | None,
    asked: ModelSettings,
    yes: bool,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Have models continue sentences, and build a reference from what they write.

    For texts of models that are younger than any corpus: models that learned from the same web
    write the same phrases (Lu et al. 2024, section "Evaluation"; 150,000 sentences there). Against
    such a reference `fabula originality` sums levels 5 to 7 unless told otherwise. An interrupted
    run goes on where it was.
    """
    from fabula.models import Sampling
    from fabula.reference.build import build_reference
    from fabula.tasks.plots import by_line
    from fabula.tasks.written import draw_sentences, written_documents
    from fabula.text import TextSettings
    from fabula.workers import default_jobs

    answers = answers or out.with_name(out.name + ".jsonl")
    check_outputs([answers], [beginnings])
    sentences = draw_sentences(by_line(read_stories((str(beginnings),), how_to_read)), sample, seed)
    sampling = Sampling(temperature, top_p, max_tokens, seed)
    rows = _ask(sentences, sampling, answers, restart, asked, yes=yes)
    _check_all(rows, answers)
    models = tuple(dict.fromkeys(row["model"] for row in rows))
    with progress_bar("building", None) as bar:
        manifest = build_reference(
            written_documents(rows),
            out,
            settings=TextSettings(),
            n_jobs=jobs or default_jobs(),
            restart=restart,
            report=bar.say,
            written_by=models,
        )
    content = {
        "reference": str(out),
        "n_documents": manifest.n_documents,
        "n_words": manifest.n_words,
        "fingerprint": manifest.fingerprint,
        "models": models,
        "n_asked": len(rows),
        "answers": str(answers),
    }
    print_done(
        content,
        f"{out}: {manifest.n_documents:,} texts, {manifest.n_words:,} words, by "
        f"{', '.join(models)}",
        *_what_lacks(rows),
        f"written: {answers}",
        as_json=as_json,
    )


def _check_all(rows: list[dict[str, Any]], answers: Path) -> None:
    """Raise where a call failed: a reference of some of the answers would be another one."""
    n_failed = sum(row["missing_reason"] == "failed" for row in rows)
    if n_failed:
        raise click.ClickException(
            f"{n_failed:,} of {len(rows):,} calls failed; what was written is kept in {answers}, "
            f"the same command asks for the rest and then builds the reference"
        )


def _what_lacks(rows: list[dict[str, Any]]) -> Iterator[str]:
    from fabula.tasks.written import without_prompt

    texts = [(row["text"], row["prompt"]) for row in rows if row["text"] is not None]
    n_echoed = sum(without_prompt(text, prompt) != text for text, prompt in texts)
    if n_echoed:
        yield f"{n_echoed:,} answers began with their sentence, which was cut off"
    if len(texts) < len(rows):
        yield f"missing: {len(rows) - len(texts):,} texts that the models did not give"


def _ask(
    sentences: list[Any],
    sampling: Any,
    answers: Path,
    restart: bool,
    asked: ModelSettings,
    *,
    yes: bool,
) -> list[dict[str, Any]]:
    from fabula.tasks.openings import OPENINGS, write_openings

    texts = [sentence.text for sentence in sentences]
    with (
        kept_rows(answers, OPENINGS, restart=restart) as kept,
        progress_bar("texts", len(sentences) * len(set(asked.models))) as bar,
    ):
        rows = ask_models(
            asked,
            lambda model: write_openings(
                sentences, model, kept, kind="continuation", sampling=sampling, meter=bar.advance
            ),
            estimate_texts(texts, sampling.max_tokens),
            confirm_on(bar, yes=yes),
        )
        kept.settle(rows)
    return rows

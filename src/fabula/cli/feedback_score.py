"""`fabula feedback score`: what can be measured of feedback without people."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.feedback_reading import (
    check_overlap,
    feedback_rows,
    open_encoder,
    people_means,
)
from fabula.cli.options import check_outputs, json_option, seed_option
from fabula.cli.printing import print_result
from fabula.cli.progress import Bar, progress_bar
from fabula.jobs.tables import TableFiles

__all__ = ["score"]


@click.command(cls=Command, short_help="Measure length, repetition and precision of feedback.")
@click.argument("answers", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--by", default="model,prompt,shots,method", show_default=True, metavar="LIST",
    help="Tables to print: dimensions, or crosses of them such as model*prompt; the JSON has all.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the measures of every subset and cross here (.json).",
)  # fmt: skip
@click.option(
    "--repetition", type=click.Choice(["cell", "subset"]), default="cell", show_default=True,
    help="Count a trigram as repeated within the answers of one model, prompt and number of "
    "examples, as the paper does, or within each subset.",
)  # fmt: skip
@click.option(
    "--one-sentence", default="sentence,spot,one sentence,spot the problem",
    show_default=True, metavar="LIST",
    help="Prompts that ask for a single sentence.",
)  # fmt: skip
@click.option(
    "--bertscore", "encoder", metavar="packaged|DIR",
    help="Measure BERTScore with the story too, by the packaged encoder or by that of a folder "
    "(model.onnx, tokenizer.json).",
)  # fmt: skip
@click.option(
    "--people", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="People's answers on the same feedback (measurements, or the released "
    "human_ratings.jsonl): shows whether the measures say what people say.",
)  # fmt: skip
@seed_option
@settings_options(TableFiles, "files")
@json_option
def score(
    answers: tuple[Path, ...],
    by: str,
    out: Path | None,
    repetition: Any,
    one_sentence: str,
    encoder: str | None,
    people: tuple[Path, ...],
    seed: int,
    files: TableFiles,
    as_json: bool,
) -> None:
    """Measure the feedback of ANSWERS: length, repetition, precision of "perfect as-is".

    By model, prompt, examples and corruption, and every cross of them, with intervals over stories.
    Source: Rashkin et al. 2025, section 5, Tables 1 and 6 to 9, appendix E.
    """
    from fabula.presentation.feedback_tables import score_tables, subset_row, validation_table
    from fabula.rubrics import load_rubric
    from fabula.store import dump_json, write_whole
    from fabula.tasks.feedback.answers import DIMENSIONS
    from fabula.tasks.feedback.scoring import score_answers
    from fabula.tasks.feedback.validation import measured, validate
    from fabula.text.feedback import feedback_id

    check_outputs([out, files.csv, files.latex], [*answers, *people])
    files.check_files()
    crosses = [tuple(name.strip() for name in part.split("*")) for part in by.split(",")]
    for cross in crosses:
        unknown = [name for name in cross if name not in DIMENSIONS]
        if unknown:
            raise click.UsageError(f"--by {unknown[0]}: there are {', '.join(DIMENSIONS)}")
    said = people_means(people, load_rubric("feedback"))
    rows = feedback_rows(answers, whole=True)
    for answered in filter(None, said.values()):
        check_overlap([feedback_id(row) for row in rows], answered, "--people")
    with progress_bar("measuring", len(rows)) as bar:
        columns = _columns(rows, one_sentence, encoder, bar)
        subsets = list(score_answers(columns, within=repetition, seed=seed))
    content: dict[str, Any] = {
        "signature": subsets[0].values["repetition"].signature,
        "missing": columns.n_missing,
        "subsets": [subset_row(subset) for subset in subsets],
    }
    stories = dict(zip(columns.ids, map(str, columns.stories), strict=True))
    validation = (
        validate(measured(columns), said, stories, seed=seed, signature=columns.signature)
        if people
        else {}
    )
    if validation:
        content["validation"] = {item: asdict(one) for item, one in validation.items()}
    if out is not None:
        write_whole(out, (dump_json(content) + "\n").encode())
    tables = score_tables(subsets, crosses, columns)
    if validation:
        tables += validation_table(validation)
    print_result(tables, content, files, as_json=as_json, written=[out])


def _columns(rows: list[dict[str, Any]], one_sentence: str, encoder: str | None, bar: Bar) -> Any:
    from fabula.tasks.feedback.answers import bertscore, read_answers, sentence_counter
    from fabula.text.pipeline import load_pipeline, pipeline_parts

    chosen = open_encoder(encoder)
    nlp = load_pipeline(("tok2vec", "senter"))
    return read_answers(
        rows,
        one_sentence=frozenset(name.strip() for name in one_sentence.split(",")),
        count_sentences=sentence_counter(nlp),
        pipeline=",".join(pipeline_parts(nlp).values()),
        similarity=None if chosen is None else bertscore(chosen),
        encoder="" if chosen is None else chosen.name,
        meter=bar.advance,
    )

"""`fabula continuation`: the next sentence of a story, cut from books, generated, and measured."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Group, settings_options
from fabula.cli.options import (
    check_outputs,
    jobs_option,
    json_option,
    seed_option,
    texts_argument,
    yes_option,
)
from fabula.cli.printing import print_done
from fabula.cli.progress import progress_bar
from fabula.cli.reading import reading
from fabula.cli.scoring import score
from fabula.jobs.models import NoModelSettings
from fabula.jobs.reading import Reading
from fabula.jobs.writing import ask_models, estimate_texts
from fabula.reasons import explain
from fabula.resume import kept_rows

if TYPE_CHECKING:
    from fabula.tasks.continuation.generating import GeneratorChoice

__all__ = ["continuation"]


@click.group(cls=Group, short_help="Generate and score continuations of stories.")
def continuation() -> None:
    """The next sentence of a story: passages, generators to compare with, and fifteen metrics.

    \b
      fabula continuation passages books/ --out passages.jsonl
      fabula continuation train stories/ --out generators
      fabula continuation generate --from generators --contexts passages.jsonl --out systems.jsonl
      fabula continuation score systems.jsonl yours.jsonl --contexts passages.jsonl
    """


continuation.add_command(score)


@continuation.command(short_help="Cut books into contexts and the sentences after them.")
@texts_argument("books")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="FILE",
    help="Write a row for each passage here (.jsonl): context and gold.",
)  # fmt: skip
@click.option(
    "--sentences", "n_sentences", type=click.IntRange(min=1), default=20, show_default=True,
    help="Sentences of a context.",
)  # fmt: skip
@click.option(
    "--stride", type=click.IntRange(min=1), metavar="N",
    help="Sentences from the start of one passage to the next.  [default: no overlap]",
)  # fmt: skip
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep so many passages, drawn by --seed.",
)  # fmt: skip
@seed_option
@json_option
@settings_options(Reading, "how_to_read")
def passages(
    books: tuple[str, ...],
    out: Path,
    n_sentences: int,
    stride: int | None,
    limit: int | None,
    seed: int,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Cut BOOKS into contexts and the sentences that follow them.

    Any text, or files of the Children's Book Test, whose tokens become text again (as rows of
    tokenised sentences, with --text-field sentences). No passage crosses a chapter; headings are
    left out.
    """
    from fabula.errors import InputError
    from fabula.store import dump_json, write_whole
    from fabula.tasks.continuation.passages import book_chapters, passages_of
    from fabula.text.pipeline import load_pipeline

    nlp = load_pipeline(("tok2vec", "senter"))
    with reading(books, "cutting", how_to_read, whole=True) as (documents, _):
        chapters = list(book_chapters(documents, nlp))
    found = list(passages_of(chapters, n_sentences, stride))
    if not found:
        raise InputError(
            f"{', '.join(books)}: no chapter has {n_sentences + 1} sentences; choose fewer with "
            f"--sentences"
        )
    if len({passage.id for passage in found}) < len(found):
        raise InputError(
            f"{', '.join(books)}: two books have the same name, or one was given twice; their "
            f"passages could not be told apart"
        )
    n_found = len(found)
    if limit is not None and limit < n_found:
        keep = sorted(random.Random(seed).sample(range(n_found), limit))
        found = [found[k] for k in keep]
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(dump_json(passage.to_row()) + "\n" for passage in found)
    write_whole(out, lines.encode(errors="replace"))
    n_books = len({chapter.book for chapter in chapters})
    print_done(
        {
            "out": str(out),
            "n": len(found),
            "n_found": n_found,
            "n_texts": n_books,
            "n_chapters": len(chapters),
        },
        f"written: {out}, {len(found):,} of {n_found:,} passages from {n_books:,} texts, "
        f"{len(chapters):,} chapters",
        as_json=as_json,
    )


_KIND = click.Choice(["random", "unigram", "case", "recurrent"])


@continuation.command(short_help="Train the baseline generators.")
@click.argument("texts", nargs=-1, metavar="[TEXTS]...")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR",
    help="Folder of what is learnt. What is there of the same texts is not learnt again.",
)  # fmt: skip
@click.option(
    "--kind", "kinds", multiple=True, type=_KIND, default=("random", "unigram", "case"),
    show_default=True, help="Which generators; several are given one after another.",
)  # fmt: skip
@click.option(
    "--min-count", type=click.IntRange(min=1), default=25, show_default=True,
    help="How often a word must occur to be in the vocabulary.",
)  # fmt: skip
@click.option(
    "--epochs", type=click.IntRange(min=1), default=3, show_default=True,
    help="How often the recurrent network reads all stories.",
)  # fmt: skip
@seed_option
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE",
    help="Draw the recurrent network's loss here (.svg, .pdf or .png).",
)  # fmt: skip
@click.option("--restart", is_flag=True, help="Train the recurrent network again from the start.")
@jobs_option
@json_option
@settings_options(Reading, "how_to_read")
def train(
    texts: tuple[str, ...],
    out: Path,
    kinds: tuple[str, ...],
    min_count: int,
    epochs: int,
    seed: int,
    plot: Path | None,
    restart: bool,
    jobs: int | None,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Train generators on the stories of TEXTS: random, unigram, case-based, recurrent.

    Without TEXTS, on those that --out was made of. Training that was interrupted goes on from its
    last checkpoint when the same command is given again.
    """
    from fabula.tasks.continuation.corpus import Corpus, build_corpus
    from fabula.workers import default_jobs

    if plot is not None:
        from fabula.presentation.plots import check_plot_path

        check_plot_path(plot)
    if texts:
        with reading(texts, "reading", how_to_read, whole=True) as (documents, bar):
            corpus = build_corpus(
                documents, out, min_count=min_count, n_jobs=jobs or default_jobs(), report=bar.say
            )
    else:
        corpus = Corpus.open(out)
    click.echo(
        f"{out}: {corpus.n_stories:,} stories, {corpus.n_sentences:,} sentences, "
        f"{corpus.n_tokens:,} tokens; {len(corpus.vocabulary) - 1:,} words occur at least "
        f"{corpus.min_count} times",
        err=as_json,
    )
    if "case" in kinds:
        from fabula.tasks.continuation.retrieval import index_cases

        with progress_bar("indexing cases", None) as bar:
            index_cases(corpus, bar.say)
    if "recurrent" in kinds:
        _train_recurrent(corpus, epochs, seed, plot, restart, quiet=as_json)
    content = {"out": str(out), "trained": kinds, "plot": plot and str(plot)}
    print_done(content, f"trained: {', '.join(kinds)}", as_json=as_json)


def _train_recurrent(
    corpus: Any, epochs: int, seed: int, plot: Path | None, restart: bool, *, quiet: bool
) -> None:
    from fabula.tasks.continuation.training import Progress, Training, train_recurrent

    with progress_bar("training", epochs * 100) as bar:
        done = 0

        def show(progress: Progress) -> None:
            nonlocal done
            share = progress.window / progress.n_windows
            bar.say(f"training, epoch {min(epochs, int(share) + 1)} of {epochs}")
            bar.advance(int(100 * share) - done)
            done = int(100 * share)

        progress = train_recurrent(
            corpus, Training(n_epochs=epochs, seed=seed), restart=restart, report=show
        )
    for row in progress.log:
        if "perplexity" in row:
            click.echo(
                f"epoch {int(row['epoch'])}: perplexity {row['perplexity']:.1f} on held-out "
                f"stories",
                err=quiet,
            )
    if plot is not None:
        from fabula.presentation.plots import save_loss

        save_loss(progress.log, plot)
        click.echo(f"written: {plot}", err=quiet)


@continuation.command(short_help="Generate the next sentence of each passage.")
@click.option(
    "--contexts", type=click.Path(path_type=Path), required=True, metavar="PASSAGES",
    help="What to continue, as `continuation passages` writes it (.jsonl).",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="FILE",
    help="Write a row for each continuation here (.jsonl).",
)  # fmt: skip
@click.option(
    "--from", "folder", type=click.Path(path_type=Path), metavar="DIR",
    help="What `continuation train` made.",
)  # fmt: skip
@click.option(
    "--kind", "kinds", multiple=True, type=_KIND, default=("random", "unigram", "case"),
    show_default=True, help="Which of the generators there.",
)  # fmt: skip
@click.option(
    "--temperature", type=click.FloatRange(min=0.01, max=10), default=0.7, show_default=True,
    help="Of the recurrent network and of models.",
)  # fmt: skip
@seed_option
@click.option("--restart", is_flag=True, help="Write everything again, ignoring what --out holds.")
@jobs_option
@settings_options(NoModelSettings, "asked")
@yes_option
@json_option
def generate(
    contexts: Path,
    out: Path,
    folder: Path | None,
    kinds: tuple[str, ...],
    temperature: float,
    seed: int,
    restart: bool,
    jobs: int | None,
    asked: NoModelSettings,
    yes: bool,
    as_json: bool,
) -> None:
    """Have generators and language models write the next sentence of each passage.

    Interrupted runs resume; a model whose call failed is asked again.
    """
    from fabula.measures.linguistic.scoring import read_contexts
    from fabula.tasks.continuation.generating import GeneratorChoice

    if folder is None and not asked.models:
        raise click.UsageError("say who writes: --from DIR, --model MODEL, or both")
    check_outputs([out], [contexts])
    stories = read_contexts(contexts)
    choices = [
        GeneratorChoice(kind, folder, temperature)  # type: ignore[arg-type]
        for kind in (kinds if folder is not None else ())
    ]
    for choice in choices:
        choice.open()  # before anything is written
    rows = _generated(
        stories, choices, asked, out, temperature, seed, restart=restart, n_jobs=jobs, yes=yes
    )
    missing = Counter(row["missing_reason"] for row in rows if row["text"] is None)
    n = len(rows) - missing.total()
    print_done(
        {"out": str(out), "n": n, "n_asked": len(rows), "missing": dict(missing)},
        f"written: {out}, {n:,} continuations",
        *(f"without a text: {n:,} ({explain(why)})" for why, n in missing.items()),
        as_json=as_json,
    )


def _generated(
    stories: Sequence[Any],
    choices: Sequence[GeneratorChoice],
    asked: NoModelSettings,
    out: Path,
    temperature: float,
    seed: int,
    *,
    restart: bool,
    n_jobs: int | None,
    yes: bool,
) -> list[dict[str, Any]]:
    """The rows of all generators and models, kept as they come."""
    from fabula.models import Sampling
    from fabula.tasks.continuation.generating import CONTINUATIONS
    from fabula.tasks.continuation.generating import generate as generate_rows
    from fabula.tasks.continuation.language_models import ask_continuations
    from fabula.tasks.continuation.vocabulary import MAX_TOKENS
    from fabula.text.pipeline import load_pipeline
    from fabula.workers import default_jobs

    rows: list[dict[str, Any]] = []
    n_systems = len(choices) + len(set(asked.models))
    with (
        kept_rows(out, CONTINUATIONS, restart=restart) as kept,
        progress_bar("continuations", len(stories) * n_systems) as bar,
    ):
        for choice in choices:
            bar.say(choice.kind)
            rows += generate_rows(
                stories,
                choice,
                kept,
                seed=seed,
                n_jobs=n_jobs or default_jobs(),
                meter=bar.advance,
            )
        bar.say("continuations")
        nlp = load_pipeline(("tok2vec", "senter")) if asked.models else None
        rows += ask_models(
            asked,
            lambda model: ask_continuations(
                stories,
                model,
                kept,
                sampling=Sampling(temperature=temperature, max_tokens=MAX_TOKENS, seed=seed),
                nlp=nlp,
                meter=bar.advance,
            ),
            estimate_texts([" ".join(story.context) for story in stories], _SENTENCE_TOKENS),
            confirm_on(bar, yes=yes),
        )
        kept.settle(rows)
    return rows


_SENTENCE_TOKENS = 40
"""About what a continuation takes."""

"""The stories of a study: plots, stories written from them, and texts from a first sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fabula.jobs.models import ModelSettings
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.result_files import rows_file, share_of, share_setting
from fabula.jobs.writing import Written, ask_models, estimate_texts
from fabula.settings import Between, Settings, SettingsError, part, seed_setting, setting

if TYPE_CHECKING:
    from fabula.resume import Row, Share
    from fabula.tasks.story_writing import Plot, WritePlan
    from fabula.types import Document

_RESTART_HELP = "Ask for everything again and replace `out`."
_SEED_HELP = "Seed for sampling."
_PLOT_TOKENS = 60
_TOKENS_PER_WORD = 1.35


@dataclass(frozen=True, slots=True)
class PlotSettings(Settings):
    """How plots are summarised."""

    out: Path = setting(help="Write a row with the plot of each story here (.jsonl).")
    seed: int = seed_setting(_SEED_HELP)
    share: str | None = share_setting()
    restart: bool = setting(False, help=_RESTART_HELP)
    models: ModelSettings = part(ModelSettings)


@dataclass(frozen=True, slots=True)
class StorySettings(Settings):
    """How stories are written from plots. The defaults are those of Chakrabarty et al. 2024."""

    out: Path = setting(
        help="Write the finished stories here (.jsonl); every round is kept beside it."
    )
    n_words: int | None = setting(
        None,
        help="Target length of every story.",
        check=Between(1),
        default_text="n_words of its row, the length of the human story",
    )
    within: int | None = setting(
        None,
        help="Maximum difference from the target length, in words.",
        check=Between(0),
        default_text="200, or a fifth of the length if that is less",
    )
    attempts: int = setting(20, help="Rewrite a story up to N times.", check=Between(0))
    verified_only: bool = setting(False, help="Use only plots that a person has verified.")
    temperature: float = setting(1.0, help="Sampling temperature.", check=Between(0, 2))
    top_p: float = setting(1.0, help="Nucleus sampling threshold (top-p).", check=Between(0, 1))
    seed: int = seed_setting(_SEED_HELP)
    share: str | None = share_setting()
    restart: bool = setting(False, help=_RESTART_HELP)
    models: ModelSettings = part(ModelSettings)


@dataclass(frozen=True, slots=True)
class OpeningSettings(Settings):
    """How texts are written from their beginnings. The defaults are those of Lu et al. 2024."""

    out: Path = setting(help="Write a row for each text here (.jsonl).")
    kind: Literal["novel", "poem", "speech", "news", "proof", "continuation"] = setting(
        "novel", help="Kind of text to write."
    )
    formats: tuple[str, ...] = setting(
        ("plain",),
        help="Prompt format: plain; ideas, perspectives, novelty, bold, free, agent, writer, "
        "direction, task, life, which ask for creativity; one of the prompt file; or all.",
        unit="NAME",
        option="prompt",
    )
    prompt_file: Path | None = setting(
        None,
        help="Your own prompts (.toml), or the text of the paper (.txt, .md), whose appendix B.1 "
        "has the published ones.",
    )
    n_sentences: int | None = setting(
        None,
        help="BEGINNINGS are whole texts by people: models get the first N sentences of each, and "
        "the text itself, up to the sentence that passes 256 words, becomes a row too.",
        check=Between(1),
        option="sentences",
    )
    top_p: float = setting(0.9, help="Nucleus sampling threshold (top-p).", check=Between(0, 1))
    temperature: float = setting(1.0, help="Sampling temperature.", check=Between(0, 2))
    max_tokens: int = setting(288, help="Maximum length of a text.", check=Between(1))
    seed: int = seed_setting(_SEED_HELP)
    share: str | None = share_setting()
    restart: bool = setting(False, help=_RESTART_HELP)
    models: ModelSettings = part(ModelSettings)


def plot_stories(
    documents: Sequence[Document],
    settings: PlotSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> Written:
    """Return a row with the one-sentence plot of each story, for a person to verify.

    Raises `InputError`, `ModelError`, `BusyError`; finished plots are kept in `out`.
    """
    from fabula.resume import kept_rows
    from fabula.tasks.story_writing import PLOTS, make_plots

    share = share_of(settings.share, settings.out)
    documents = list(documents if share is None else share.of(documents))
    texts = [document.text for document in documents]
    with kept_rows(settings.out, PLOTS, restart=settings.restart, share=share) as kept:
        progress.begin("plots", len(texts) * settings.models.n_models)
        rows = ask_models(
            settings.models,
            kept,
            lambda model: make_plots(
                documents, model, kept, seed=settings.seed, meter=progress.advance
            ),
            estimate_texts(texts, _PLOT_TOKENS),
            confirm,
        )
        kept.settle(rows)
    return Written(rows, rows_file(settings.share, settings.out))


def write_stories(
    plots: Path,
    settings: StorySettings,
    human: Sequence[Document] = (),
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> Written:
    """Write a story for each plot of a file, close to its length; `out` has the finished ones.

    The `human` story of a plot has the plot's id, and joins its group. Raises like `plot_stories`.
    """
    from fabula.store import write_rows
    from fabula.tasks.plots import check_output, read_plots
    from fabula.tasks.story_writing import WritePlan, story_row

    out = settings.out
    check_output(out, [plots])
    wanted, n_unverified = read_plots(
        plots, n_words=settings.n_words, verified_only=settings.verified_only
    )
    share = share_of(settings.share, out)
    wanted = list(wanted if share is None else share.of(wanted))
    if n_unverified:
        progress.tell(f"note: {n_unverified} of {len(wanted)} plots are not verified")
    plan = WritePlan(
        settings.within,
        settings.attempts,
        temperature=settings.temperature,
        top_p=settings.top_p,
        seed=settings.seed,
        effort=settings.models.reasoning_effort,
    )
    last = _last_rounds(wanted, plan, settings, share, progress, confirm)
    if share is not None:
        return Written(last, share.beside(_rounds_of(out)))
    for row in last:
        if not row["missing_reason"] and not row["is_done"]:
            row["missing_reason"] = "not_converged"
    finished = _human_rows(human, wanted)
    finished += [story_row(row, row["model"]) for row in last if not row["missing_reason"]]
    places = {plot.id: place for place, plot in enumerate(wanted)}
    finished.sort(key=lambda row: places[row["prompt_id"]])
    write_rows(out, finished)
    return Written(last, out)


def _last_rounds(
    plots: Sequence[Plot],
    plan: WritePlan,
    settings: StorySettings,
    share: Share | None,
    progress: Progress,
    confirm: Confirm,
) -> list[Row]:
    """The last round of each story; every round is kept beside `out`."""
    from fabula.resume import kept_rows
    from fabula.tasks.story_writing import ROUNDS
    from fabula.tasks.story_writing import write_stories as write

    n_output = round(_TOKENS_PER_WORD * sum(plot.n_words for plot in plots) / len(plots))
    rounds = _rounds_of(settings.out)
    with kept_rows(rounds, ROUNDS, restart=settings.restart, share=share) as kept:
        progress.begin("stories", len(plots) * settings.models.n_models)
        last = ask_models(
            settings.models,
            kept,
            lambda model: write(plots, model, plan, kept, meter=progress.advance),
            estimate_texts([plot.text for plot in plots], n_output, n_again=plan.max_rounds),
            confirm,
        )
        kept.settle(())
    return last


def _rounds_of(out: Path) -> Path:
    return out.with_name(f"{out.stem}.rounds.jsonl")


def _human_rows(documents: Sequence[Document], plots: Sequence[Plot]) -> list[Row]:
    from fabula.text import count_words

    by_id = {plot.id: plot for plot in plots}
    return [
        {
            "id": f"{document.id}_human",
            "text": document.text,
            "author": document.author or "human",
            "prompt_id": document.id,
            "plot": by_id[document.id].text,
            "n_words": count_words(document.text),
        }
        for document in documents
        if document.id in by_id
    ]


def write_openings(
    beginnings: Sequence[Document],
    settings: OpeningSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> Written:
    """A text for each line of the beginnings, in each format. Raises like `plot_stories`."""

    from fabula.models.base import Sampling
    from fabula.resume import kept_rows
    from fabula.tasks.openings import FORMATS, OPENINGS, human_row, read_formats
    from fabula.tasks.openings import write_openings as write
    from fabula.tasks.plots import by_line
    from fabula.text.pipeline import load_pipeline
    from fabula.text.sentences import first_sentences

    file, n = settings.prompt_file, settings.n_sentences
    published = None if file is None else read_formats(file, settings.kind)
    known = list(FORMATS if published is None else published)
    formats = tuple(known) if "all" in settings.formats else settings.formats
    if unknown := [name for name in formats if name not in known]:
        raise SettingsError("formats", f"{unknown[0]}: must be one of {', '.join(known)}, or all")
    share = share_of(settings.share, settings.out)
    documents = list(beginnings) if n is not None else by_line(beginnings)
    documents = list(documents if share is None else share.of(documents))
    human: list[Row] = []
    if n is not None:
        nlp = load_pipeline(("senter",))
        whole = documents
        documents = [replace(one, text=first_sentences(one.text, nlp, n=n)) for one in whole]
        human = [
            human_row(one, beginning, settings.kind, nlp)
            for one, beginning in zip(whole, documents, strict=True)
        ]
    sampling = Sampling(
        settings.temperature,
        settings.top_p,
        settings.max_tokens,
        settings.seed,
        settings.models.reasoning_effort,
    )
    texts = [document.text for document in documents for _ in formats]
    with kept_rows(settings.out, OPENINGS, restart=settings.restart, share=share) as kept:
        progress.begin("texts", len(texts) * settings.models.n_models)
        rows = ask_models(
            settings.models,
            kept,
            lambda model: write(
                documents,
                model,
                kept,
                kind=settings.kind,
                formats=formats,
                published=published,
                sampling=sampling,
                meter=progress.advance,
            ),
            estimate_texts(texts, settings.max_tokens),
            confirm,
        )
        kept.settle([*human, *rows])
    return Written(rows, rows_file(settings.share, settings.out))

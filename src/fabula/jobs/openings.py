"""Texts that models continue from a first sentence, a headline or a theorem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from fabula.jobs import models as calls
from fabula.jobs.job import Texts
from fabula.jobs.models import WrittenStories
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.result import Row
from fabula.jobs.shared_settings import restart_setting, rows_file, share_of, share_setting
from fabula.jobs.stories import _SEED_HELP
from fabula.resume import kept_rows
from fabula.settings import Between, Settings, SettingsError, part, seed_setting, setting


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
    top_p: float = calls.top_p_setting(0.9)
    temperature: float = calls.temperature_setting(1.0)
    max_tokens: int = calls.max_tokens_setting(288)
    seed: int = seed_setting(_SEED_HELP)
    share: str | None = share_setting()
    restart: bool = restart_setting()
    models: calls.ModelSettings = part(calls.ModelSettings)


def openings(
    beginnings: Texts,
    settings: OpeningSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> WrittenStories:
    """Have models continue a first sentence, a headline or a theorem.

    BEGINNINGS are rows of a table, files with one beginning each, or a .txt file with one per line;
    with `n_sentences` they are people's whole texts, which then stand beside the models'.
    The defaults are those of the Creativity Index paper (appendix B.1): top-p 0.9, 288 tokens.

    Raises `InputError`, `ModelError`, `BusyError`; finished texts are kept in `out`.
    """
    from fabula.models.base import Sampling
    from fabula.tasks import openings as task
    from fabula.text.pipeline import SENTENCES, load_pipeline
    from fabula.text.sentences import first_sentences

    file, n = settings.prompt_file, settings.n_sentences
    published = None if file is None else task.read_formats(file, settings.kind)
    known = list(task.FORMATS if published is None else published)
    formats = tuple(known) if "all" in settings.formats else settings.formats
    if unknown := [name for name in formats if name not in known]:
        raise SettingsError("formats", f"{unknown[0]}: must be one of {', '.join(known)}, or all")
    share = share_of(settings.share, settings.out)
    documents = list(beginnings) if n is not None else task.by_line(beginnings)
    documents = list(documents if share is None else share.of(documents))
    human: list[Row] = []
    if n is not None:
        nlp = load_pipeline(SENTENCES)
        whole = documents
        documents = [replace(one, text=first_sentences(one.text, nlp, n=n)) for one in whole]
        human = [
            task.human_row(one, beginning, settings.kind, nlp)
            for one, beginning in zip(whole, documents, strict=True)
        ]
    effort = settings.models.reasoning_effort
    heat, top_p, seed = settings.temperature, settings.top_p, settings.seed
    sampling = Sampling(heat, top_p, settings.max_tokens, seed, effort)
    texts = [document.text for document in documents for _ in formats]
    with kept_rows(settings.out, task.OPENINGS, restart=settings.restart, share=share) as kept:
        progress.begin("texts", len(texts) * settings.models.n_models)
        rows = calls.ask_models(
            settings.models,
            kept,
            lambda model: task.write_openings(
                documents,
                model,
                kept,
                kind=settings.kind,
                formats=formats,
                published=published,
                sampling=sampling,
                meter=progress.advance,
            ),
            calls.estimate_texts(texts, settings.max_tokens),
            confirm,
        )
        kept.settle([*human, *rows])
    return WrittenStories(rows, rows_file(settings.share, settings.out), finished=[*human, *rows])

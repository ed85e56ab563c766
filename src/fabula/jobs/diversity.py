"""Similarity of texts that should differ, group by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.jobs.engine import Processes
from fabula.jobs.job import Texts
from fabula.jobs.progress import SILENT, Progress
from fabula.jobs.reading import encoder_setting
from fabula.jobs.result import Result, Row
from fabula.settings import Between, Settings, SettingsError, of_field, part, seed_setting, setting

if TYPE_CHECKING:
    from fabula.measures.diversity.measure import Diversity
    from fabula.presentation.sheet import Block


@dataclass(frozen=True, kw_only=True)
class EqualLength(Settings):
    """How texts of groups are cut to equal length, and what counts as their words."""

    n_words: int | None = setting(
        None,
        help="Cut every text to N words; shorter ones are left out.",
        check=Between(10),
        option="words",
        default_text="the length that nine tenths of each group reach",
    )
    case: Literal["fold", "keep"] = setting(
        "fold", help="Whether case distinguishes words (keep).", tunes="reading"
    )
    punct: Literal["drop", "keep"] = setting(
        "drop", help="Whether punctuation marks count as words (keep).", tunes="reading"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiversitySettings(EqualLength):
    """Which groups are compared, by what, and how many draws are made."""

    by: str | None = of_field(
        "Field to group the texts by, such as author or model.",
        default_text="all texts are one group",
    )
    prompt: str | None = of_field(
        "Field that holds a text's prompt, or the prompt's id: texts are compared prompt by "
        "prompt, and words of the prompt do not count as shared."
    )
    baseline: str | None = setting(
        None, help="Compare every group with this one only.", unit="NAME"
    )
    n_texts: int | None = setting(
        None,
        help="Compare N texts of each group at a time.",
        check=Between(2),
        option="each",
        default_text="as many as the smallest group has",
    )
    extras: tuple[Literal["templates", "embeddings"], ...] = setting(
        (),
        help="Also measure templates of parts of speech (English; needs `nlp`), or the spread of "
        "sentence vectors (needs `local`).",
        option="with",
    )
    encoder: Path | None = encoder_setting()
    n_phrases: int = setting(
        10, help="Show the N phrases that each group shares most.", check=Between(0)
    )
    n_pairs: int = setting(
        0, help="Show the N pairs of texts with the most words in common.", check=Between(0)
    )
    run_words: int = setting(
        6,
        help="Shortest run that counts for a pair, in words.",
        check=Between(3, 100),
        tunes="tests",
    )
    n_draws: int = setting(
        5,
        help="Average over N draws of as many texts as the smallest group has.",
        check=Between(1, 1000),
        tunes="tests",
    )
    n_permutations: int = setting(
        1000, help="Number of permutations in a test.", check=Between(99, 1_000_000), tunes="tests"
    )
    seed: int = seed_setting()
    engine: Processes = part(Processes)

    def check_together(self) -> None:
        if self.baseline is not None and self.by is None:
            raise SettingsError(
                "baseline", "is a group; name the field that groups the texts with `by`"
            )
        if self.encoder is not None and "embeddings" not in self.extras:
            raise SettingsError("encoder", "is only for `extras` embeddings")


@dataclass(frozen=True, slots=True, repr=False)
class Alike(Result):
    """How similar the texts of groups are, with tests, shared phrases and pairs of texts."""

    diversity: Diversity
    texts: Mapping[str, str]
    """By id, for the words that are shown."""

    def tables(self) -> list[Block]:
        from fabula.presentation.diversity_tables import diversity_tables

        return diversity_tables(self.diversity, self.texts)

    def to_json(self) -> dict[str, Any]:
        return self.diversity.to_json()

    def rows(self) -> list[Row]:
        """A row per group and measure, with its interval."""
        return [
            {"group": group.name, "measure": measure, "value": one.value}
            | {"low": one.low, "high": one.high, "n": group.n, "n_units": one.n_units}
            for group in self.diversity.groups
            for measure, one in group.estimates.items()
        ]


def diversity(texts: Texts, settings: DiversitySettings, *, progress: Progress = SILENT) -> Alike:
    """Measure how alike the TEXTS of a group are, and compare groups.

    Every text is cut to the same number of words, and the same number of texts from every group is
    compared. Shows the share of n-grams that also occur in another text, how far the texts compress
    together, self-BLEU, self-repetition and distinct n-grams, with 95 % intervals and permutation
    tests; the phrases that most texts of a group share; and with `n_pairs` who wrote like whom.
    Sources: Shaib et al. 2024, Li et al. 2016, Zhu et al. 2018, Salkar et al. 2022.

    Raises `InputError` if a text lacks a field, if no group has two texts that are long enough, or
    if SciPy (extra `[stats]`) is not installed.
    """
    from fabula.measures.diversity.diversity_tests import Resampling
    from fabula.measures.diversity.grouped_texts import Stages
    from fabula.measures.diversity.measure import Plan, measure_diversity
    from fabula.packages import check_scipy
    from fabula.text import TextSettings

    check_scipy("the intervals of diversity")
    plan = Plan(
        by=settings.by,
        prompt=settings.prompt,
        baseline=settings.baseline,
        n_words=settings.n_words,
        n_texts=settings.n_texts,
        settings=TextSettings(settings.case, settings.punct),
        how=Resampling(settings.n_draws, settings.n_permutations, settings.seed),
        extras=settings.extras,
        encoder=settings.encoder,
        n_phrases=settings.n_phrases,
        n_pairs=settings.n_pairs,
        run_words=settings.run_words,
        n_threads=settings.engine.n_processes,
    )
    found = measure_diversity(texts, plan, Stages(progress.begin, progress.advance))
    return Alike(found, {one.id: one.text for one in texts})

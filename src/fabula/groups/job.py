"""Groups of texts compared: in any numbers, in how alike their texts are, in their phrases."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from fabula.core.errors import InputError
from fabula.core.settings import (
    Between,
    Settings,
    SettingsError,
    of_field,
    part,
    seed_setting,
    setting,
)
from fabula.core.store import measurement_row
from fabula.core.types import Document, by_rater
from fabula.jobs.given import GivenSource, Rows, located_in
from fabula.jobs.job import SILENT, OneSource, Progress, Texts
from fabula.jobs.result import Result, Row
from fabula.jobs.shared_settings import Processes, encoder_setting, plot_setting

if TYPE_CHECKING:
    from fabula.groups.comparison import Comparison
    from fabula.groups.diversity import Diversity
    from fabula.groups.key_phrases import KeyPhrases
    from fabula.reference.search import Reference
    from fabula.show.sheet import Block

_OF_DIVERSITY = re.compile(rb'\s*\{\s*"by"\s*:')
"""How a result of diversity begins."""


@dataclass(frozen=True, slots=True)
class ComparisonSettings(Settings):
    """Which groups are compared, and what counts as one text."""

    by: str = setting(
        help="Field to group the texts by, such as author or model; for scores of originality also "
        "`file`, the score file.",
        unit="FIELD",
    )
    unnamed: str | None = setting(
        None, help="Name of the group of texts that lack this field, such as human.", unit="NAME"
    )
    texts: GivenSource | None = setting(
        None, help="The texts that were measured, for fields that rows lack.", unit="TEXTS"
    )
    cluster: str | None = of_field(
        "Count texts that share this field (a prompt, an author) as one; near-duplicates "
        "always count as one."
    )
    baseline: str | None = setting(
        None, help="Compare every group with this one only.", unit="NAME"
    )
    plot: Path | None = plot_setting("Draw curves and distributions here (.svg, .pdf or .png).")
    seed: int = seed_setting("Seed for the permutations.")


@dataclass(frozen=True, slots=True, repr=False)
class Compared(Result):
    """Groups of texts beside each other."""

    comparison: Comparison

    def tables(self) -> list[Block]:
        from fabula.groups.tables import comparison_tables

        return comparison_tables(self.comparison)

    def to_json(self) -> dict[str, Any]:
        return self.comparison.to_json()

    def rows(self) -> list[Row]:
        """A row per group: its mean with the interval, and n; per number too, if there are more."""
        return list(self.comparison.rows())

    def writers(self) -> dict[str, Any]:
        """Curves and distributions of scores of originality."""
        return dict.fromkeys((".svg", ".pdf", ".png"), self._draw)

    def _draw(self, path: Path) -> None:
        from fabula.groups.comparison import INDEX
        from fabula.groups.tables import save_comparison

        if all(group.number != INDEX for group in self.comparison.groups):
            raise InputError(f"{path}: only scores of originality can be drawn")
        save_comparison(self.comparison, path)


def compare(results: Sequence[Rows], settings: ComparisonSettings) -> Compared:
    """Compare groups of texts in RESULTS: rows that `originality`, `profile` or `detect score`
    wrote, runs of `judge`, exports of a study, one or several together.

    Shows the mean of each number in each group of `by` with a 95 % interval, and for each pair of
    groups the difference, the Mann-Whitney test (whether texts of A tend to be above those of B;
    not whether means differ), and Holm's correction over everything that is shown. With `cluster`,
    intervals are over clusters and all tests are permutation tests of means: they permute texts
    within a cluster that the groups share, such as a prompt that all wrote to, and whole clusters
    otherwise. Three groups or more are tested all at once too (Kruskal-Wallis). The difference of
    the Creativity Index is also in per cent, (A - B) / B.

    Numbers that were not measured in the same way are refused.

    Raises `InputError` and `MixError`.
    """
    from fabula.groups.comparison import MeasuredTexts, compare_groups
    from fabula.judging.run import RETEST
    from fabula.judging.session import read_run
    from fabula.raters.agreement import aggregates, ratings_of

    sources = [source for given in results for source in given.parts]
    folders = [source for source in sources if isinstance(source, Path) and source.is_dir()]
    files = [source for source in sources if isinstance(source, Path) and source not in folders]
    for file in files:
        try:
            with file.open("rb") as opened:
                beginning = opened.read(256)
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror})") from error
        if _OF_DIVERSITY.match(beginning):
            raise InputError(
                f"{file}: a result of diversity, whose numbers are of groups and not of texts; "
                "`fabula diversity --by` compares the groups"
            )
    texts = [] if settings.texts is None else settings.texts.read()
    fields = {text.id: text.fields for text in texts}
    # Ids of scores alone need not differ from file to file.
    are_rows = not texts and settings.unnamed is None and not folders
    for source in sources if are_rows else ():
        first, _ = next(located_in(source), ({"creativity_index": None}, ""))
        are_rows = are_rows and "creativity_index" in first
    measured = MeasuredTexts(settings.by, settings.cluster, fields=fields, are_rows=are_rows)
    if len({file.resolve() for file in files}) < len(files):
        raise InputError("a score file is listed twice, so its texts would count twice")
    are_named = len({file.name for file in files}) == len(files)
    for source in sources:
        if source in folders:
            continue
        extra = {}
        if settings.by == "file" and isinstance(source, Path):
            extra["file"] = source.name if are_named else str(source)
        for row, where in located_in(source):
            measured.add({**row, **extra}, where)
    for folder in folders:
        rubric, measurements = read_run(folder)
        once = [answer for answer in measurements if not answer.document_id.endswith(RETEST)]
        for answer in once:
            measured.add(measurement_row(answer), str(folder))
        for rater, answers in by_rater(once).items():
            title = f"{rubric.aggregate.title}, {rater}"
            for text, score in aggregates(ratings_of(answers), rubric).items():
                measured.add_number(text, title, score, answers[0].signature)
    unnamed, seed = settings.unnamed, settings.seed
    comparison = compare_groups(measured, baseline=settings.baseline, unnamed=unnamed, seed=seed)
    compared = Compared(comparison)
    if settings.plot is not None:
        compared.save(settings.plot)
    return compared


@dataclass(frozen=True, kw_only=True)
class EqualLength(Settings):
    """How texts of groups are cut to equal length."""

    n_words: int | None = setting(
        None,
        help="Cut every text to N words; shorter ones are left out.",
        check=Between(10),
        option="words",
        default_text="the length that nine tenths of each group reach",
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
        from fabula.groups.tables import diversity_tables

        return diversity_tables(self.diversity, self.texts)

    def to_json(self) -> dict[str, Any]:
        return self.diversity.to_json()

    def rows(self) -> list[Row]:
        """A row per group and measure, with its interval."""
        return [
            {"group": group.name, "measure": measure, "value": e.value}
            | {"low": e.low, "high": e.high, "n": group.n, "n_units": e.n_units}
            for group in self.diversity.groups
            for measure, e in group.estimates.items()
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
    from fabula.core.packages import scipy
    from fabula.groups.diversity import Plan, measure_diversity
    from fabula.groups.grouped_texts import Resampling, Stages

    # Before hours of work that needs it at the end.
    scipy("stats", "the intervals of diversity")
    plan = Plan(
        by=settings.by,
        prompt=settings.prompt,
        baseline=settings.baseline,
        n_words=settings.n_words,
        n_texts=settings.n_texts,
        how=Resampling(n_permutations=settings.n_permutations, seed=settings.seed),
        extras=settings.extras,
        encoder=settings.encoder,
        n_phrases=settings.n_phrases,
        n_pairs=settings.n_pairs,
        n_threads=settings.engine.n_processes,
    )
    measured = measure_diversity(texts, plan, Stages(progress.begin, progress.advance))
    return Alike(measured, {text.id: text.text for text in texts})


_NOTHING = OneSource()


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseSettings(EqualLength):
    """Which groups are compared, and which phrases are listed."""

    by: str | None = of_field("Field that divides the texts into both groups, such as label.")
    of: str | None = setting(
        None,
        help="Group A of the field, or without `by` the name of A.",
        unit="NAME",
        default_text="the first of two",
    )
    against: str | None = setting(
        None,
        help="Group B of the field, or without `by` the name of B.",
        unit="NAME",
        default_text="all texts that are not in A",
    )
    prompt: str | None = of_field(
        "Field that holds a text's prompt, or the prompt's id: texts are compared prompt by "
        "prompt, and phrases of three words or more that occur in the prompt do not count."
    )
    longest: int = setting(5, help="Longest phrase, in words.", check=Between(1, 8), tunes="tests")
    extras: tuple[Literal["templates"], ...] = setting(
        (), help="Also compare templates of parts of speech (English; needs `nlp`).", option="with"
    )
    max_p: float | None = setting(
        None,
        help="List only phrases whose p after Holm's correction is at most this; 1 lists without "
        "a test.",
        unit="P",
        check=Between(0, 1, low_open=True),
        default_text="0.05; 1 with `background`",
        option="p",
        tunes="tests",
    )
    background: tuple[str, ...] = setting(
        (),
        help="Leave out phrases that occur more than 3 times per million words in this corpus of "
        "other texts (a folder, or its address); repeat it for several.",
        unit="DIR|URL",
    )
    n_listed: int = setting(
        20, help="Show the first N phrases of each group.", check=Between(0), option="top"
    )
    out: Path | None = setting(
        None, help="Write the phrases here, one per line (.jsonl), for `fabula report --phrases`."
    )
    seed: int = seed_setting()

    def check_together(self) -> None:
        if self.of is not None and self.of == self.against:
            raise SettingsError("against", "must differ from `of`")


def split_texts(
    documents: Sequence[Document], settings: PhraseSettings
) -> tuple[tuple[str, list[Document]], tuple[str, list[Document]]]:
    """Names and texts of the groups A and B of `by`. Raises `InputError` unless it has just two."""
    from fabula.groups.grouped_texts import groups_by

    names = groups_by(documents, settings.by or "")
    groups = list(dict.fromkeys(names))
    for name, asked in (("of", settings.of), ("against", settings.against)):
        if asked is not None and asked not in groups:
            raise InputError(f"`{name}` {asked}: no such group; the groups are {', '.join(groups)}")
    if len(groups) < 2:
        raise InputError(f"all texts have the same {settings.by}, {groups[0]}; nothing to compare")
    if len(groups) > 2 and settings.of is None:
        raise InputError(
            f"{settings.by} has {len(groups)} groups, {', '.join(groups)}; name one with `of`, and "
            "optionally another with `against`"
        )
    a = settings.of or next(name for name in groups if name != settings.against)
    others = [name for name in groups if name != a]
    b = settings.against or (others[0] if len(others) == 1 else f"not {a}")
    named = list(zip(names, documents, strict=True))
    of_b = [document for name, document in named if name == b or (b not in groups and name != a)]
    return (a, [document for name, document in named if name == a]), (b, of_b)


@dataclass(frozen=True, slots=True, repr=False)
class Phrases(Result):
    """What each of two groups uses more than the other, the largest z first."""

    found: KeyPhrases
    n_listed: int
    """Number of phrases per group in the tables."""

    def tables(self) -> list[Block]:
        from fabula.groups.tables import phrase_tables

        return phrase_tables(self.found, self.n_listed)

    def to_json(self) -> dict[str, Any]:
        return self.found.to_json()

    def rows(self) -> list[Row]:
        """A row per phrase: `over`, its group, and the figures."""
        return list(self.to_json()["phrases"])

    def frame_rows(self) -> list[Row]:
        return [{**row, "folded": "; ".join(row["folded"])} for row in self.rows()]

    def writers(self) -> dict[str, Any]:
        """The list with its date, as `report` takes it."""
        from fabula.groups.phrase_list import write_key_phrases

        return {".jsonl": lambda path: write_key_phrases(path, self.found)}


def phrases(
    a: OneSource, settings: PhraseSettings, b: OneSource = _NOTHING, *, progress: Progress = SILENT
) -> Phrases:
    """List the phrases that texts of A use more often than texts of B, and B more than A.

    A and B are files or folders; or, with `by`, A alone, whose texts are divided by a field. Texts
    are cut to the same length. A listed phrase occurs in more texts of its group than chance
    explains: words within one text do not count as independent. A phrase that hardly occurs outside
    a longer one is left out. It does not detect who wrote a text. Source: Monroe, Colaresi and
    Quinn 2008.

    Raises `InputError` if a text lacks its prompt, or a group has fewer than two texts that are
    long enough, `CorpusError` for a background that cannot be opened, `LookupFailed` for one that
    is not responding.
    """
    from contextlib import ExitStack, closing

    from fabula.core.packages import scipy
    from fabula.groups.grouped_texts import Stages
    from fabula.groups.key_phrases import KeynessPlan, find_key_phrases
    from fabula.groups.phrase_list import write_key_phrases
    from fabula.reference.search import is_elsewhere, is_served, open_backend

    scipy("special", "the tests of phrases")
    if (b is _NOTHING) == (settings.by is None):
        raise SettingsError("by", "must name a field of A, or A and B be given without it")
    if settings.by is not None:
        groups = split_texts(list(a), settings)
    elif a.names and a.names == b.names:
        raise SettingsError("by", f"is missing: {a.names[0]} was given for both groups")
    else:
        usual = ["A", "B"]
        if a.names and b.names:
            usual = [Path(source.names[0]).stem for source in (a, b)]
            if usual[0] == usual[1] or any("*" in stem for stem in usual):
                usual = [a.names[0], b.names[0]]
        groups = (settings.of or usual[0], list(a)), (settings.against or usual[1], list(b))
    stages = Stages(progress.begin, progress.advance)
    with ExitStack() as opened:
        background = None
        for spec in settings.background:
            if is_elsewhere(spec) and not is_served(spec):
                raise InputError(
                    f"`background` {spec}: must be a corpus, in a folder, an object store or "
                    "served; thousands of phrases are looked up"
                )
        if settings.background:
            backend = cast("Reference", open_backend(settings.background, report=progress.say))
            background = opened.enter_context(closing(backend))
        plan = KeynessPlan(
            prompt=settings.prompt,
            n_words=settings.n_words,
            longest=settings.longest,
            extras=settings.extras,
            seed=settings.seed,
            max_p=settings.max_p or (1.0 if settings.background else 0.05),
        )
        listed = find_key_phrases(*groups, plan, stages, background)
    if settings.out is not None:
        write_key_phrases(settings.out, listed)
    return Phrases(listed, settings.n_listed)

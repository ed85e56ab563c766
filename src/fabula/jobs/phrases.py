"""Phrases that one group of texts uses more than another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from fabula.errors import InputError
from fabula.jobs.diversity import EqualLength
from fabula.jobs.job import OneSource
from fabula.jobs.progress import SILENT, Progress
from fabula.jobs.result import Result, Row
from fabula.settings import Between, SettingsError, of_field, seed_setting, setting

if TYPE_CHECKING:
    from fabula.measures.diversity.key_phrases import KeyPhrases
    from fabula.presentation.sheet import Block
    from fabula.reference import Reference
    from fabula.types import Document

_NOTHING = OneSource()
NamedTexts = tuple[str, "Sequence[Document]"]
"""A group's name, and its texts."""


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
    shortest: int = setting(
        1, help="Shortest phrase, in words.", check=Between(1, 8), tunes="tests"
    )
    longest: int = setting(5, help="Longest phrase, in words.", check=Between(1, 8), tunes="tests")
    extras: tuple[Literal["templates"], ...] = setting(
        (), help="Also compare templates of parts of speech (English; needs `nlp`).", option="with"
    )
    min_ratio: float = setting(
        3.0,
        help="List only phrases that a group uses at least N times as often, as a ratio of odds "
        "with the prior.",
        unit="N",
        check=Between(1),
        option="ratio",
        tunes="tests",
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
        help="Leave out phrases that are common in this corpus of other texts (a folder, or its "
        "address); repeat it for several.",
        unit="DIR|URL",
    )
    max_background: float = setting(
        3.0,
        help="With `background`, a phrase is common if it occurs there more than N times per "
        "million words.",
        unit="N",
        check=Between(0),
        tunes="tests",
    )
    prior: float | None = setting(
        None,
        help="Weight of the prior, in occurrences.",
        unit="N",
        check=Between(0, low_open=True),
        default_text="the number of words in a text",
        tunes="tests",
    )
    n_listed: int = setting(
        20, help="Show the first N phrases of each group.", check=Between(0), option="top"
    )
    out: Path | None = setting(
        None, help="Write the phrases here, one per line (.jsonl), for `fabula report --phrases`."
    )
    seed: int = seed_setting()

    def check_together(self) -> None:
        if self.shortest > self.longest:
            raise SettingsError("longest", f"must be at least `shortest`, {self.shortest}")
        if self.of is not None and self.of == self.against:
            raise SettingsError("against", "must differ from `of`")


def split_texts(
    documents: Sequence[Document], settings: PhraseSettings
) -> tuple[NamedTexts, NamedTexts]:
    """The groups A and B of the field `by`. Raises `InputError` unless it has exactly two."""
    from fabula.measures.diversity.grouped_texts import groups_by

    names = groups_by(documents, settings.by or "")
    there = list(dict.fromkeys(names))
    for name, asked in (("of", settings.of), ("against", settings.against)):
        if asked is not None and asked not in there:
            raise InputError(f"`{name}` {asked}: no such group; the groups are {', '.join(there)}")
    if len(there) < 2:
        raise InputError(f"all texts have the same {settings.by}, {there[0]}; nothing to compare")
    if len(there) > 2 and settings.of is None:
        raise InputError(
            f"{settings.by} has {len(there)} groups, {', '.join(there)}; name one with `of`, and "
            "optionally another with `against`"
        )
    a = settings.of or next(name for name in there if name != settings.against)
    others = [name for name in there if name != a]
    b = settings.against or (others[0] if len(others) == 1 else f"not {a}")
    named = list(zip(names, documents, strict=True))
    return (
        (a, [one for name, one in named if name == a]),
        (b, [one for name, one in named if name == b or (b not in there and name != a)]),
    )


@dataclass(frozen=True, slots=True, repr=False)
class Phrases(Result):
    """What each of two groups uses more than the other, the largest z first."""

    found: KeyPhrases
    n_listed: int
    """Number of phrases per group in the tables."""

    def tables(self) -> list[Block]:
        from fabula.presentation.diversity_tables import phrase_tables

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
        from fabula.measures.phrase_list import write_key_phrases

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

    from fabula.measures.diversity.grouped_texts import Stages
    from fabula.measures.diversity.key_phrases import KeynessPlan, find_key_phrases
    from fabula.measures.phrase_list import write_key_phrases
    from fabula.packages import check_scipy
    from fabula.reference.search import is_elsewhere, is_served, open_backend
    from fabula.text import TextSettings

    check_scipy("the tests of phrases")
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
            shortest=settings.shortest,
            longest=settings.longest,
            settings=TextSettings(settings.case, settings.punct),
            extras=settings.extras,
            prior_size=settings.prior,
            min_ratio=settings.min_ratio,
            max_p=settings.max_p or (1.0 if settings.background else 0.05),
            max_background=settings.max_background,
            seed=settings.seed,
        )
        found = find_key_phrases(*_groups(a, b, settings), plan, stages, background)
    if settings.out is not None:
        write_key_phrases(settings.out, found)
    return Phrases(found, settings.n_listed)


def _groups(a: OneSource, b: OneSource, settings: PhraseSettings) -> tuple[NamedTexts, NamedTexts]:
    """The two groups: by a field, or two sources, named after them."""
    if (b is _NOTHING) == (settings.by is None):
        raise SettingsError("by", "must name a field of A, or A and B be given without it")
    if settings.by is not None:
        return split_texts(list(a), settings)
    if a.names and a.names == b.names:
        raise SettingsError("by", f"is missing: {a.names[0]} was given for both groups")
    names = [settings.of or "A", settings.against or "B"]
    if a.names and b.names:
        stems = [Path(one.names[0]).stem for one in (a, b)]
        is_clear = stems[0] != stems[1] and not any("*" in stem for stem in stems)
        usual = stems if is_clear else [a.names[0], b.names[0]]
        names = [settings.of or usual[0], settings.against or usual[1]]
    first, second = ((name, list(one)) for name, one in zip(names, (a, b), strict=True))
    return first, second

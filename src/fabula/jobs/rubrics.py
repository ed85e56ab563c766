"""Rubrics: show them, import them from a release, draft and expand them with a model."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fabula.errors import InputError, ModelError
from fabula.jobs.models import ModelSettings
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.result import Result, Row
from fabula.reasons import explain
from fabula.settings import Between, Settings, SettingsError, part, setting
from fabula.types import Rubric

if TYPE_CHECKING:
    from fabula.tasks.expanding import Expanded

_LINE_TOKENS = 60
"""Approximate tokens of a name or a question."""
_MEANING_TOKENS = 150
"""Approximate tokens of an explanation."""


@dataclass(frozen=True, slots=True)
class ShowSettings(Settings):
    """What is shown of rubrics."""

    toml: bool = setting(False, help="Print the file itself, as a start for your own rubric.")
    check: bool = setting(False, help="Check files, and say all errors in each.")


@dataclass(frozen=True, slots=True, repr=False)
class Rubrics(Result):
    """Rubrics as they are listed, shown or checked."""

    names_settings = False
    said: Sequence[str]
    kept: list[Row]
    shown: Rubric | None = None

    def lines(self) -> Sequence[str]:
        return self.said

    def rows(self) -> list[Row]:
        return self.kept

    def to_json(self) -> Any:
        return self.kept if self.shown is None else asdict(self.shown)


def show(settings: ShowSettings, names: Annotated[Sequence[str], "NAME|FILE"] = ()) -> Rubrics:
    """Show a rubric: its items by dimension, with the question of each; or list those built in.

    With `check`, checks rubric files. A rubric has id, version, title, and optionally citation,
    wording, unit (story, group, text); [aggregate] with rule (count, mean, none), counts (Yes, No),
    title; and [[items]], each with id, index, title, question, and optionally dimension,
    background, list_first (what to list before deciding), show_if (a condition such as
    first == 'Yes' and not second == 'No'), and scale: a table with kind (yes-no, choice, rank,
    number, text), options, low, high. Start from a built-in one, as `toml` prints it.

    Raises `InputError` with all errors of all files.
    """
    from fabula.rubrics.load import builtin_rubrics, load_rubric, rubric_toml

    if settings.check:
        return _checked(names)
    if len(names) > 1:
        raise SettingsError("names", "must be one rubric to show, or files to `check`")
    if names:
        rubric = load_rubric(names[0])
        said = rubric_toml(rubric) if settings.toml else _text(rubric)
        return Rubrics([said.removesuffix("\n")], [], rubric)
    lines, rows = [], []
    for name in builtin_rubrics():
        one = load_rubric(name)
        n = len(one.items)
        rows.append({"name": name, "key": one.key, "title": one.title, "n_items": n})
        lines.append(f"{name:<14} {one.title}, {n} items about a {one.unit}")
    return Rubrics(lines, rows)


def _checked(files: Sequence[str]) -> Rubrics:
    """Raises `InputError` if a file has errors."""
    from fabula.rubrics.load import builtin_rubrics, load_rubric, rubric_faults, rubric_toml

    if not files:
        raise SettingsError("check", "needs the files of rubrics")
    faults: list[str] = []
    lines, rows = [], []
    for file in files:
        try:
            own = rubric_toml(load_rubric(file)).encode() if file in builtin_rubrics() else None
            found = rubric_faults(own or Path(file).read_bytes(), file)
        except OSError as error:
            found = [f"{file}: cannot be read ({error.strerror})"]
        faults += found
        rows.append({"file": file, "faults": found})
        if not found:
            good = load_rubric(file)
            counts = Counter(item.dimension for item in good.items if item.dimension)
            dimensions = ", ".join(f"{name} {n}" for name, n in counts.items())
            shown = f" ({dimensions})" if dimensions else ""
            lines.append(f"{file}: {good.key}, {len(good.items)} items{shown}, valid")
    if faults:
        raise InputError("\n       ".join(faults))
    return Rubrics(lines, rows)


def _text(rubric: Rubric) -> str:
    """A rubric's items by dimension, with the question of each."""
    lines = [f"{rubric.title} ({rubric.key})", rubric.citation, f"Wording: {rubric.wording}", ""]
    dimension = ""
    for item in rubric.items:
        if item.dimension != dimension:
            dimension = item.dimension
            lines += [dimension, ""]
        lines += [f"{item.index:>3}. {item.title} [{item.id}]", _wrapped(item.question)]
        if item.scale.options:
            lines.append(_wrapped(" / ".join(item.scale.options)))
        lines.append("")
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> str:
    import shutil
    import textwrap

    width = min(100, shutil.get_terminal_size((100, 40)).columns) - 2
    return textwrap.fill(text, width, initial_indent="     ", subsequent_indent="     ")


@dataclass(frozen=True, slots=True)
class ImportSettings(Settings):
    """Where a published rubric is written."""

    out: Path | None = setting(
        None, help="Write the rubric here.", default_text="NAME-published.toml"
    )


@dataclass(frozen=True, slots=True, repr=False)
class WrittenRubric(Result):
    """A rubric that was written, and what was said of it."""

    rubric: Rubric
    out: Path
    said: Sequence[str]
    content: dict[str, Any]

    def lines(self) -> Sequence[str]:
        return self.said

    def to_json(self) -> dict[str, Any]:
        return {"out": str(self.out), **self.content}


def import_(name: str, file: Path, settings: ImportSettings) -> WrittenRubric:
    """Make a rubric with the published wording of NAME, from the authors' released FILE.

    For ttcw the file is ttcw_all_tests.json. The new rubric has the same ids as Fabula's own but a
    different digest, so that verdicts on the two wordings can be compared but are never mixed.

    Raises `InputError`, also if another file would be overwritten.
    """
    from fabula.rubrics.load import rubric_toml
    from fabula.rubrics.released import released_rubric
    from fabula.store import write_whole

    out = settings.out or Path(f"{name}-published.toml")
    rubric = released_rubric(name, file)
    if out.exists() and out.read_bytes() != rubric_toml(rubric).encode():
        raise _taken(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, rubric_toml(rubric).encode())
    n = len(rubric.items)
    said = [f"written: {out} ({rubric.key}, {n} items)"]
    return WrittenRubric(rubric, out, said, {"key": rubric.key, "n_items": n})


def _taken(out: Path) -> InputError:
    return InputError(f"{out}: already exists; name another file with `out`")


@dataclass(frozen=True, slots=True)
class DraftSettings(Settings):
    """How measures are grouped, and which model words the tests."""

    out: Path = setting(help="Write the draft here, a .toml file to edit.")
    n_groups: int | None = setting(
        None,
        help="Number of groups in each dimension.",
        check=Between(1),
        default_text="depends on their distances",
        option="n-groups",
    )
    distance: float = setting(
        0.55,
        help="Measures farther apart than this (1 - cosine) go into different groups.",
        check=Between(0, 2),
    )
    models: ModelSettings = part(ModelSettings)


def draft(
    measures: Annotated[Path, "MEASURES.csv"], settings: DraftSettings, *, confirm: Confirm = agreed
) -> WrittenRubric:
    """Draft binary tests from experts' free-form measures, for a person to edit.

    MEASURES.csv has the column measure, and optionally dimension and participant. As in the
    formative study of "Art or Artifice?" (section 4.1), measures are grouped by meaning within
    their dimension, and the fullest measure of each group becomes a yes/no question. The model
    `none` drafts without a model.

    Raises `InputError`, `ModelError`.
    """
    from fabula.jobs.writing import confirm_prompts
    from fabula.rubrics.load import rubric_toml
    from fabula.store import write_whole
    from fabula.tasks.drafting import draft_rubric, read_measures

    out, (spec, *_), terms = settings.out, settings.models.models, settings.models.options()
    if out.exists():
        raise _taken(out)
    rows = read_measures(measures)
    rubric, sources = draft_rubric(
        rows,
        out.stem,
        n_groups=settings.n_groups,
        distance=settings.distance,
        model=None if spec == "none" else spec,
        options=terms,
        agree=confirm_prompts([spec], terms.prices, _LINE_TOKENS, confirm),
    )
    text = rubric_toml(rubric) + "".join(f"# {line}\n" for line in sources)
    write_whole(out, text.encode())
    said = [
        f"written: {out} ({len(rubric.items)} tests from {len(rows)} measures); edit it, then run",
        f"  fabula rubric show {out} --check",
    ]
    return WrittenRubric(rubric, out, said, {"n_items": len(rubric.items), "n_measures": len(rows)})


@dataclass(frozen=True, slots=True)
class ExpansionSettings(Settings):
    """What is written for each item, and by which model."""

    out: Path = setting(help="Write the expanded rubric here, a .toml file to verify.")
    n_paraphrases: int = setting(
        0,
        help="Also write N other wordings of each question, for `fabula judge`.",
        check=Between(0, 20),
    )
    models: ModelSettings = part(ModelSettings)

    def check_together(self) -> None:
        if self.models.n_models != 1:
            raise SettingsError("models", "must be a single model here")


def expand(
    source: Annotated[str, "NAME|FILE"],
    settings: ExpansionSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> WrittenRubric:
    """Have a model write out what each question of a rubric means, for experts to verify.

    A question alone is ambiguous, so each item gets a background, what to list before deciding, and
    with `n_paraphrases` other wordings, as in section 5.2.1 of "Art or Artifice?". Parts that an
    item already has are not changed.

    Raises `InputError`, `ModelError`.
    """
    from fabula.jobs.writing import confirm_prompts
    from fabula.models.model_spec import open_model
    from fabula.rubrics.load import load_rubric, parse_rubric, rubric_toml
    from fabula.store import write_whole
    from fabula.tasks.expanding import expand_rubric, expansion_prompts

    out = settings.out
    if out.exists():
        raise _taken(out)
    rubric = load_rubric(source)
    prompts = [
        prompt
        for item in rubric.items
        for prompt in expansion_prompts(item, settings.n_paraphrases).values()
    ]
    if not prompts:
        raise InputError(
            f"{source}: every item already has its background, what to list first and as many "
            "paraphrases as asked for; there is nothing to write"
        )
    terms = settings.models.options()
    (spec,) = dict.fromkeys(settings.models.models)
    confirm_prompts([spec], terms.prices, _MEANING_TOKENS, confirm)(prompts)

    async def ask() -> Expanded:
        async with open_model(spec, terms) as model:
            progress.begin("writing", len(prompts))
            return await expand_rubric(
                rubric, model, settings.n_paraphrases, meter=progress.advance
            )

    found = asyncio.run(ask())
    if not found.n_written:
        raise ModelError(f"{spec}: returned no usable text; nothing was written")
    by = f"expanded by {spec}; to be verified by experts"
    wording = f"{rubric.wording}; {by}" if rubric.wording else by
    expanded = replace(found.rubric, wording=wording)
    text = rubric_toml(expanded)
    write_whole(out, text.encode())
    rubric = parse_rubric(text.encode(), str(out))
    lacking = ", ".join(f"{n} {explain(reason)}" for reason, n in found.missing.items())
    said = [
        f"written: {out} ({found.n_written} texts for {len(rubric.items)} "
        f"items{f'; missing: {lacking}' if lacking else ''}); verify it, then run",
        f"  fabula rubric show {out} --check",
    ]
    content = {"key": rubric.key, "n_written": found.n_written, "missing": found.missing}
    return WrittenRubric(rubric, out, said, content)

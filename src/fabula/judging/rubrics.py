"""Rubrics: show them, and make them from measures, a published wording, or a bare rubric."""

from __future__ import annotations

import asyncio
import shutil
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fabula.core.errors import InputError, ModelError, explain
from fabula.core.settings import Between, Settings, SettingsError, part, setting
from fabula.core.types import Rubric
from fabula.jobs.job import SILENT, Confirm, Progress, agreed
from fabula.jobs.models import ModelSettings, confirm_prompts
from fabula.jobs.result import Result, Row, picked

if TYPE_CHECKING:
    from fabula.judging.drafting import Expanded

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
    from fabula.rubrics.load import builtin_rubrics, load_rubric, rubric_faults, rubric_toml

    lines, rows = list[str](), list[Row]()
    if settings.check:
        if not names:
            raise SettingsError("check", "needs the files of rubrics")
        faults: list[str] = []
        for file in names:
            try:
                raw = rubric_toml(load_rubric(file)).encode() if file in builtin_rubrics() else None
                errors = rubric_faults(raw or Path(file).read_bytes(), file)
            except OSError as error:
                errors = [f"{file}: cannot be read ({error.strerror})"]
            faults += errors
            rows.append({"file": file, "faults": errors})
            if not errors:
                good = load_rubric(file)
                counts = Counter(item.dimension for item in good.items if item.dimension)
                dimensions = ", ".join(f"{name} {n}" for name, n in counts.items())
                shown = f" ({dimensions})" if dimensions else ""
                lines.append(f"{file}: {good.key}, {len(good.items)} items{shown}, valid")
        if faults:
            raise InputError("\n       ".join(faults))
        return Rubrics(lines, rows)
    if len(names) > 1:
        raise SettingsError("names", "must be one rubric to show, or files to `check`")
    if names:
        rubric = load_rubric(names[0])
        if settings.toml:
            return Rubrics([rubric_toml(rubric).removesuffix("\n")], [], rubric)
        wide = min(100, shutil.get_terminal_size((100, 40)).columns) - 2
        lines += [f"{rubric.title} ({rubric.key})", rubric.citation]
        lines += [f"Wording: {rubric.wording}", ""]
        dimension = ""
        fill = partial(textwrap.fill, width=wide, initial_indent=" " * 5, subsequent_indent=" " * 5)
        for item in rubric.items:
            if item.dimension != dimension:
                dimension = item.dimension
                lines += [dimension, ""]
            lines.append(f"{item.index:>3}. {item.title} [{item.id}]")
            lines += map(fill, filter(None, (item.question, " / ".join(item.scale.options))))
            lines.append("")
        return Rubrics(["\n".join(lines)], [], rubric)
    for name in builtin_rubrics():
        rubric = load_rubric(name)
        n = len(rubric.items)
        rows.append({"name": name, "key": rubric.key, "title": rubric.title, "n_items": n})
        lines.append(f"{name:<14} {rubric.title}, {n} items about a {rubric.unit}")
    return Rubrics(lines, rows)


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


@dataclass(frozen=True, slots=True)
class MakeSettings(Settings):
    """How a rubric is made, and which model words it."""

    out: Path = setting(help="Write the rubric here, a .toml file to edit or verify.")
    n_groups: int | None = setting(
        None,
        help="Measures: number of groups in each dimension.",
        check=Between(1),
        default_text="depends on their distances",
        option="n-groups",
    )
    n_paraphrases: int = setting(
        0,
        help="A rubric: also write N other wordings of each question, for `fabula judge`.",
        check=Between(0, 20),
    )
    models: ModelSettings = part(ModelSettings)

    def check_together(self) -> None:
        if self.models.n_models != 1:
            raise SettingsError("models", "must be a single model here")


def make(
    source: Annotated[str, "SOURCE"],
    settings: MakeSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> WrittenRubric:
    """Make a rubric: from experts' measures, from a published wording, or from a bare rubric.

    SOURCE is one of three. MEASURES.csv has the column measure, and optionally dimension and
    participant: as in the formative study of "Art or Artifice?" (section 4.1), measures are grouped
    by meaning within their dimension, and the fullest measure of each group becomes a yes/no
    question, worded by a model (`none` drafts without one).

    The authors' ttcw_all_tests.json gives the tests of creative writing in their published wording,
    with the ids of ttcw but a different digest, so that verdicts on the two wordings can be
    compared but are never mixed.

    A rubric, by name or file, is written out by a model for experts to verify: a question alone is
    ambiguous, so each item gets a background, what to list before deciding, and with
    `n_paraphrases` other wordings (section 5.2.1 there). What an item has is not changed.

    Raises `InputError`, also if another file would be overwritten, and `ModelError`.
    """
    from fabula.core.store import write_whole
    from fabula.judging.drafting import draft_rubric, read_measures
    from fabula.rubrics.load import rubric_toml
    from fabula.rubrics.released import published_ttcw

    out, ending = settings.out, Path(source).suffix.lower()
    published = published_ttcw(Path(source)) if ending == ".json" else None
    if out.exists() and (not published or out.read_bytes() != rubric_toml(published).encode()):
        raise InputError(f"{out}: already exists; name another file with `out`")
    comments: Sequence[str] = ()
    if published is not None:
        rubric, n = published, len(published.items)
        summary, content = f"{rubric.key}, {n} items", {"key": rubric.key, "n_items": n}
    elif ending == ".csv":
        (spec, *_), terms = settings.models.models, settings.models.options()
        rows = read_measures(Path(source))
        rubric, comments = draft_rubric(
            rows,
            out.stem,
            n_groups=settings.n_groups,
            model=None if spec == "none" else spec,
            options=terms,
            agree=confirm_prompts(spec, terms.prices, _LINE_TOKENS, confirm),
        )
        content = {"n_items": len(rubric.items), "n_measures": len(rows)}
        summary = f"{len(rubric.items)} tests from {len(rows)} measures"
    else:
        rubric, summary, content = _expanded(source, settings, progress, confirm)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, (rubric_toml(rubric) + "".join(f"# {line}\n" for line in comments)).encode())
    lines = [f"written: {out} ({summary})"]
    if ending != ".json":
        lines[0] += f"; {'edit' if ending == '.csv' else 'verify'} it, then run"
        lines.append(f"  fabula rubric show {out} --check")
    return WrittenRubric(rubric, out, lines, content)


def _expanded(
    source: str, settings: MakeSettings, progress: Progress, confirm: Confirm
) -> tuple[Rubric, str, Row]:
    """A rubric with what a model wrote for its items."""
    from fabula.judging.drafting import expand_rubric, expansion_prompts
    from fabula.models.model_spec import open_model
    from fabula.rubrics.load import load_rubric, parse_rubric, rubric_toml

    rubric, n_more = load_rubric(source), settings.n_paraphrases
    prompts = [p for item in rubric.items for p in expansion_prompts(item, n_more).values()]
    if not prompts:
        raise InputError(
            f"{source}: every item already has its background, what to list first and as many "
            "paraphrases as asked for; there is nothing to write"
        )
    terms = settings.models.options()
    (spec,) = dict.fromkeys(settings.models.models)
    confirm_prompts(spec, terms.prices, _MEANING_TOKENS, confirm)(prompts)

    async def ask() -> Expanded:
        async with open_model(spec, terms) as model:
            progress.begin("writing", len(prompts))
            return await expand_rubric(rubric, model, n_more, meter=progress.advance)

    expanded = asyncio.run(ask())
    if not expanded.n_written:
        raise ModelError(f"{spec}: returned no usable text; nothing was written")
    by = f"expanded by {spec}; to be verified by experts"
    wording = f"{rubric.wording}; {by}" if rubric.wording else by
    text = rubric_toml(replace(expanded.rubric, wording=wording))
    rubric = parse_rubric(text.encode(), str(settings.out))
    lacking = ", ".join(f"{n} {explain(reason)}" for reason, n in expanded.missing.items())
    summary = f"{expanded.n_written} texts for {len(rubric.items)} items"
    summary += f"; missing: {lacking}" if lacking else ""
    return rubric, summary, {"key": rubric.key, **picked(expanded, "n_written", "missing")}

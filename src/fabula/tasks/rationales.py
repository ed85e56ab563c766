"""Where raters' reasons come from: runs of judges, measurements of people, the authors' release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fabula.errors import InputError
from fabula.rubrics.load import load_rubric
from fabula.rubrics.released import read_expert_verdicts
from fabula.store import read_measurements
from fabula.tasks.reason_themes import Rationale
from fabula.types import Rubric


def read_rationales(
    sources: Sequence[Path], items: Sequence[str] | None = None
) -> tuple[Rubric, list[Rationale]]:
    """The rubric, and the reasons given on its items (only on `items`, if given).

    Raises `InputError`.
    """
    rubric = load_rubric("ttcw")
    for source in sources:
        if (source / "rubric.toml").exists():
            rubric = load_rubric(source / "rubric.toml")
    known = {item.id for item in rubric.items}
    wanted = {item.strip() for item in items} if items else known
    if not wanted <= known:
        unknown = ", ".join(sorted(wanted - known))
        raise InputError(
            f"{rubric.id} has no item {unknown}; its items are {', '.join(sorted(known))}"
        )
    found = [one for source in sources for one in _of_source(source, rubric) if one.item in wanted]
    if not found:
        raise InputError(f"{', '.join(map(str, sources))}: contain no reasons")
    return rubric, found


def _of_source(source: Path, rubric: Rubric) -> list[Rationale]:
    if source.suffix == ".json":
        ids = {item.index: item.id for item in rubric.items}
        return [
            Rationale(one.story_id, ids[one.index], one.expert, one.passed, one.rationale)
            for one in read_expert_verdicts(source)
            if one.rationale and one.index in ids
        ]
    file = source / "measurements.jsonl" if source.is_dir() else source
    # A mark or a choice is neither a pass nor a fail.
    yes_no = {item.id for item in rubric.items if item.scale.is_test}
    return [
        Rationale(one.document_id, one.item, one.rater, one.value > 0.5, one.rationale)
        for one in read_measurements(file)
        if one.rationale
        and isinstance(one.value, float)
        and one.value != 0.5
        and one.item in yes_no
    ]

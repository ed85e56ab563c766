"""Read rubric files: `NAME.toml`, built-in or the user's own."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from fabula.core.errors import InputError
from fabula.core.scales import KINDS, Scale
from fabula.core.types import Aggregate, Item, Rubric
from fabula.rubrics.conditions import Condition

_HERE = Path(__file__).parent
_ID = re.compile(r"[a-z][a-z0-9_]*")
_MAX_BYTES = 1 << 20


def builtin_rubrics() -> dict[str, Path]:
    """The built-in rubrics, by name."""
    return {path.stem: path for path in sorted(_HERE.glob("*.toml"))}


def load_rubric(name: str | Path) -> Rubric:
    """Load a built-in rubric by name, or a file by path.

    Raises `InputError` naming the file, the item and the remedy.
    """
    path = Path(name)
    if isinstance(name, str) and name in builtin_rubrics():
        path = builtin_rubrics()[name]
    elif path.suffix != ".toml":
        is_there = False
        # A name that no file can have names none.
        with suppress(OSError):
            is_there = path.exists()
        if not is_there:
            known = ", ".join(builtin_rubrics())
            raise InputError(
                f"{str(name)[:200]}: no such rubric; use one of {known}, or a .toml file"
            )
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{str(path)[:200]}: cannot be read ({why})") from error
    return parse_rubric(data, str(path))


def parse_rubric(data: bytes, where: str) -> Rubric:
    """Load a rubric from the bytes of its file. Raises `InputError` like `load_rubric`."""
    rubric, faults = _read(data, where)
    if faults:
        raise InputError(faults[0])
    items = tuple(replace(item, background=item.background.strip()) for item in rubric.items)
    rubric = replace(rubric, items=items)
    # Eight hexadecimal digits over everything that respondents see, and how it counts.
    shown = asdict(replace(rubric, digest="", title="", citation="", wording=""))
    for item in shown["items"]:
        # Runs that use paraphrases have their digest in the signature.
        del item["paraphrases"]
    digest = hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:8]
    return replace(rubric, digest=digest)


def rubric_faults(data: bytes, where: str) -> list[str]:
    """All errors in a rubric's file, one sentence each; empty if it is valid."""
    try:
        return _read(data, where)[1]
    except WrongFields as error:
        return error.faults
    except InputError as error:
        return [str(error)]


class WrongFields(InputError):  # noqa: N818 (names what is wrong)
    """Fields that are missing, misspelt or of the wrong type; one sentence each."""

    def __init__(self, where: str, faults: list[str]) -> None:
        n_more = len(faults) - 1
        also = f" (and {n_more} more: `fabula rubric show --check` shows all)" if n_more else ""
        super().__init__(f"{where}: {faults[0]}{also}")
        self.faults = [f"{where}: {fault}" for fault in faults]


def _read(data: bytes, where: str) -> tuple[Rubric, list[str]]:
    """The rubric as it is written, and the errors in its conditions.

    Raises `InputError` for all other errors.
    """
    if len(data) > _MAX_BYTES:
        raise InputError(f"{where}: larger than 1 MB; is this a rubric?")
    try:
        table = tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not TOML: {error}") from error
    table.pop("digest", None)
    faults: _Faults = []
    if isinstance(items := table.get("items"), list):
        # Each scale is parsed by the class of its kind.
        table["items"] = []
        for k, item in enumerate(items):
            if isinstance(item, dict) and isinstance(scale := item.get("scale"), dict):
                item = {key: value for key, value in item.items() if key != "scale"}
                place, kind = ["items", k, "scale"], _kind_of(scale)
                if kind is None:
                    problem = f"unknown kind {scale['kind']!r}; the kinds are {', '.join(KINDS)}"
                    faults.append(("unknown_kind", [*place, "kind"], problem))
                elif (parsed := _validated(kind, scale, place, faults)) is not None:
                    item["scale"] = parsed
            table["items"].append(item)
    rubric = _validated(Rubric, table, [], faults)
    if faults:
        # Misspelt fields first: they explain missing ones.
        faults.sort(key=lambda fault: fault[0] != "unexpected_keyword_argument")
        raise WrongFields(where, [_sentence(*fault, items) for fault in faults])
    assert isinstance(rubric, Rubric)
    _check(rubric, where)
    # Errors in the conditions, one sentence each with file, line and item.
    problems = []
    scales: dict[str, Scale] = {}
    for n_before, item in enumerate(rubric.items):
        if item.show_if:
            line = _line_of_condition(data, n_before)
            at = f"{where}, {f'line {line}, ' if line else ''}item {item.id}"
            try:
                condition = Condition.parse(item.show_if)
            except InputError as error:
                problems.append(f"{at}: {error}")
            else:
                unknown = condition.names - scales.keys() - set(rubric.facts)
                if unknown:
                    problems.append(
                        f"{at}: show_if names {', '.join(sorted(unknown))}, which is neither an "
                        "earlier item nor a fact"
                    )
                problems += [f"{at}: show_if: {fault}" for fault in condition.faults(scales)]
        scales[item.id] = item.scale
    return rubric, problems


def rubric_toml(rubric: Rubric) -> str:
    """The rubric as a file; reading it gives the same rubric."""
    table = _without_defaults(asdict(replace(rubric, digest="", items=())), asdict(_EMPTY))
    tables = [tomli_w.dumps(table, multiline_strings=True)]
    for item in rubric.items:
        values = _without_defaults(asdict(item), asdict(_EMPTY_ITEM))
        tables.append("[[items]]\n" + tomli_w.dumps(values, multiline_strings=True))
    # One table per item, with its scale as a table below it, so that people can edit the file.
    return "\n".join(tables).replace("\n[scale]\n", "\n[items.scale]\n")


_EMPTY_ITEM = Item("", -1, "", "")
_EMPTY = Rubric("", "", "", ())
_Faults = list[tuple[str, list[Any], str]]
"""Errors in fields: each with pydantic's type of error, the path of its field, and a message."""


def _without_defaults(table: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            value = _without_defaults(value, defaults[key])
        # A scale may have fields that the default one lacks.
        if value not in (defaults.get(key), None, {}):
            changed[key] = list(value) if isinstance(value, tuple) else value
    return changed


def _kind_of(scale: Mapping[str, Any]) -> type[Scale] | None:
    kind = scale.get("kind", Scale().kind)
    return KINDS.get(kind) if isinstance(kind, str) else None


def _validated(kind: type, table: Any, place: list[Any], faults: _Faults) -> object:
    """A table as an object of its class; None, with errors in `faults`, if it has any."""
    try:
        return _adapter(kind).validate_python(table)
    except ValidationError as error:
        faults += [(e["type"], [*place, *e["loc"]], e["msg"]) for e in error.errors()]
        return None


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    # A misspelt field must be an error, not silently ignored.
    for strict in (Scale, Item, Aggregate, Rubric, kind):
        with_config(ConfigDict(extra="forbid"))(strict)
    return TypeAdapter(kind)


_SAID = {
    "missing": "is missing",
    "string_type": "must be a string in quotes",
    **dict.fromkeys(("int_type", "int_parsing"), "must be a whole number without quotes"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number without quotes"),
    "dataclass_type": "must be a table, such as scale = { kind = 'yes-no' }",
    "tuple_type": "must be a list in brackets",
}


def _sentence(kind: str, place: list[Any], message: str, items: Any) -> str:
    """An error as a sentence that names the item by its id."""
    name = ""
    owner: type = Rubric
    if len(place) > 1 and place[0] == "items" and isinstance(place[1], int):
        item = items[place[1]]
        id_ = item.get("id") if isinstance(item, dict) else None
        name, place, owner = f"item {id_ or place[1] + 1}, ", place[2:], Item
        if len(place) > 1 and place[0] == "scale":
            owner = _kind_of(item["scale"]) or Scale
    elif len(place) > 1 and place[0] == "aggregate":
        owner = Aggregate
    field = ".".join(str(step) for step in place) or "the file"
    if kind == "unexpected_keyword_argument":
        known = [entry.name for entry in fields(owner)]
        near = difflib.get_close_matches(str(place[-1]), known, 1)
        hint = f"did you mean {near[0]}?" if near else f"the fields are {', '.join(known)}"
        return f"{name}{field}: unknown field; {hint}"
    return f"{name}{field}: {_SAID.get(kind) or message[0].lower() + message[1:]}"


def _check(rubric: Rubric, where: str) -> None:
    """Check what types cannot express. Raises `InputError`."""
    plain = "must consist of lowercase letters, digits and _, as in"
    if not _ID.fullmatch(rubric.id):
        raise InputError(f"{where}: id: {plain} my_rubric")
    if not re.fullmatch(r"[\w.-]+", rubric.version) or not rubric.title.strip():
        raise InputError(f"{where}: needs a title, and a version such as 1 or 2-draft")
    counted = rubric.aggregate.counts
    if counted not in ("Yes", "No"):
        raise InputError(f"{where}: aggregate must count Yes or No, not {counted!r}")
    if not rubric.items:
        raise InputError(f"{where}: has no items; add at least one [[items]]")
    ids: set[str] = set()
    for item in rubric.items:
        at = f"{where}, item {item.id or '?'}"
        if not _ID.fullmatch(item.id):
            raise InputError(f"{at}: an id {plain} my_item")
        if item.id in ids:
            raise InputError(f"{at}: this id occurs twice; give each item its own")
        if not item.question.strip() or not item.title.strip():
            raise InputError(f"{at}: needs a title and a question")
        wordings = [item.question, *item.paraphrases]
        if not all(map(str.strip, wordings)) or len(set(wordings)) < len(wordings):
            raise InputError(
                f"{at}: each of paraphrases must be a different wording of the question"
            )
        if fault := item.scale.fault():
            raise InputError(f"{at}: {fault}")
        ids.add(item.id)
    if len({item.index for item in rubric.items}) != len(rubric.items):
        raise InputError(f"{where}: two items have the same index; renumber them")
    if rubric.aggregate.rule == "count" and not any(item.scale.is_test for item in rubric.items):
        raise InputError(f"{where}: aggregate counts {counted}, but no item is yes-no")


def _line_of_condition(data: bytes, item: int) -> int | None:
    """The line of an item's `show_if`; None if items are not written as separate tables."""
    n_items = -1
    for number, line in enumerate(data.decode("utf-8-sig").split("\n"), 1):
        n_items += bool(re.match(r"\s*\[\[\s*items\s*\]\]", line))
        if n_items == item and re.match(r"\s*[\"']?show_if[\"']?\s*=", line):
            return number
    return None

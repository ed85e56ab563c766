"""Opens references by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fabula.control_characters import without_controls
from fabula.errors import InputError
from fabula.plugins import Registry
from fabula.reference.backend import Backend
from fabula.reference.info import About
from fabula.reference.parts import JoinedParts, Part
from fabula.reference.search import Reference
from fabula.reference.storage import is_address

if TYPE_CHECKING:
    from fabula.reference.catalogue import Index, Pace

_WEB, _INDEX, _MINI = "infinigram:", "infinigram-index:", "infinigram-mini:"
_OWN_SERVER = "FABULA_INFINIGRAM_URL"

REFERENCES: Registry[Callable[[str], Backend]] = Registry("references")
"""How to open references of other kinds, by what stands before the colon in their names."""


def index_url(spec: str) -> str:
    """The server for `infinigram:NAME[@URL]` or `infinigram-mini:NAME[@URL]`."""
    from fabula.reference.catalogue import API_URL, MINI_URL

    public = MINI_URL if _is_by_characters(spec) else API_URL
    return spec.partition("@")[2] or os.environ.get(_OWN_SERVER) or public


def _is_by_characters(spec: str) -> bool:
    """Whether infini-gram mini serves it, by its prefix or by the catalogue."""
    index = _known_index(spec)
    return spec.startswith(_MINI) or (index is not None and index.by_characters)


def _known_index(spec: str) -> Index | None:
    from fabula.reference.catalogue import read_catalogue

    return read_catalogue().index(spec.partition(":")[2].partition("@")[0])


def is_served(spec: str) -> bool:
    """Whether it names a reference served by `fabula reference serve`."""
    return spec.startswith(("http://", "https://")) and not is_address(spec)


def is_elsewhere(spec: str) -> bool:
    """Whether it names something other than a corpus in a folder or at an address."""
    is_other = spec.startswith((_WEB, _INDEX, _MINI)) or spec.partition(":")[0] in REFERENCES
    return is_served(spec) or is_other


def is_looked_up(spec: str) -> bool:
    """Whether words are looked up over HTTP, in an infini-gram index."""
    return spec.startswith((_WEB, _MINI))


def pace_of(spec: str) -> Pace:
    """The cost of looking up texts there."""
    from fabula.reference.catalogue import BY_CHARACTERS, BY_TOKENS

    return BY_CHARACTERS if _is_by_characters(spec) else BY_TOKENS


def check_spec(spec: str) -> None:
    """Raise `InputError` if this cannot be a path or an address."""
    if without_controls(spec) != spec:
        raise InputError(
            f"{without_controls(spec)}: a reference's path or address must not contain "
            "control characters"
        )


def open_backend(
    specs: Sequence[str],
    *,
    n_parallel: int = 8,
    max_retries: int = 5,
    fresh: bool = False,
    meter: Callable[[int, int], None] | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Backend:
    """Open corpora, in folders, at addresses or served at `http://...`, as one; or
    `infinigram:NAME[@URL]`, `infinigram-mini:NAME[@URL]`, or `infinigram-index:PATH`.

    The default URL is the environment's FABULA_INFINIGRAM_URL, or else the public server: that of
    infini-gram mini for the names that the catalogue lists as its own. The options apply to HTTP
    lookups; `fresh` ignores cached counts. `meter` receives the number of lookups, and the number
    answered from the cache; `report` receives messages on what is copied. Raises `CorpusError`,
    `InputError` and, if a served reference does not respond, `LookupFailed`.
    """
    for named in specs:
        check_spec(named)
    spec = next((spec for spec in specs if is_elsewhere(spec) and not is_served(spec)), None)
    if spec is None:
        if not any(map(is_served, specs)):
            return Reference.open(*specs, report=report)
        return _open_joined(specs, n_parallel, max_retries, report)
    if len(specs) > 1:
        raise InputError(
            f"`references` {spec}: only corpora can be searched together; search this one by itself"
        )
    kind, _, rest = spec.partition(":")
    if kind in REFERENCES:
        return REFERENCES[kind](rest)
    if spec.startswith(_INDEX):
        from fabula.reference.infinigram_index import InfiniGramIndex

        path, _, tokenizer = spec.removeprefix(_INDEX).partition("#")
        if not path:
            raise InputError("`references` infinigram-index: add the folder of the index")
        return InfiniGramIndex(Path(path), Path(tokenizer) if tokenizer else None)
    from fabula.reference.infinigram import InfiniGramMini, InfiniGramWeb

    name = spec.partition(":")[2].partition("@")[0]
    if not name:
        raise InputError(
            "`references` infinigram: add the name of an index, as in infinigram:v4_rpj_llama_s4; "
            "`fabula reference info` lists them"
        )
    index = _known_index(spec)
    opened = InfiniGramMini if _is_by_characters(spec) else InfiniGramWeb
    return opened(
        name if index is None else index.name,
        index_url(spec),
        n_parallel=n_parallel,
        max_retries=max_retries,
        fresh=fresh,
        meter=meter,
    )


def _open_joined(
    specs: Sequence[str], n_parallel: int, max_retries: int, report: Callable[[str], None]
) -> Reference:
    """References on disk and behind servers as one, in this order; duplicates count once."""
    from fabula.reference.serving.client import open_served

    abouts: list[About] = []
    parts: list[Part] = []
    places: list[str] = []
    part: Part
    try:
        for spec in dict.fromkeys(specs):
            if is_served(spec):
                about, part = open_served(spec, n_parallel=n_parallel, max_retries=max_retries)
            else:
                here = Reference.open(spec, report=report)
                about, part = here.about, here.local
            if any(about.fingerprint == other.fingerprint for other in abouts):
                part.close()
                continue
            places.append(spec)
            abouts.append(about)
            parts.append(part)
        joined = About.joined(places, abouts)
    except BaseException:
        for part in parts:
            part.close()
        raise
    return Reference(joined, parts[0] if len(parts) == 1 else JoinedParts(parts))

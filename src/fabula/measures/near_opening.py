"""Open a near-verbatim search: build missing passages, load word vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fabula.measures.near import NearSearch, NearSettings
from fabula.measures.near_walk import NearWalk, WalkSettings
from fabula.models.vectors import open_vectors
from fabula.reference import Reference
from fabula.reference.layout import Manifest
from fabula.reference.local_copies import copy_passages
from fabula.reference.passages import PassageIndex, PassageSettings, build_passages
from fabula.reference.reference_spec import is_served
from fabula.text.stopwords import load_stop_words

__all__ = ["open_near", "open_walk"]


def open_near(
    reference: Reference,
    paths: Sequence[str],
    settings: NearSettings | None = None,
    passages: PassageSettings | None = None,
    *,
    stop_words: str = "english",
    vectors: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> NearSearch:
    """Near-verbatim search in the reference at these paths. Raises `CorpusError`, `ModelError`."""
    words = load_stop_words(stop_words)
    cut = passages or PassageSettings()
    # The passages of shards on several nodes were built before they were distributed; served
    # references have their own.
    here = [path for path in dict.fromkeys(paths) if not is_served(path)]
    for path in here if reference.is_local or len(here) < len(paths) else ():
        shards = Manifest.read(path).shards
        build_passages(path, shards, cut, words, say)
        copy_passages(path, cut.key(words), [shard.name for shard in shards], say)
    say("loading word vectors")
    opened = open_vectors(vectors)
    say("measuring")
    index = PassageIndex(reference, cut, words)
    return NearSearch(index, opened, settings or NearSettings(), is_english=not vectors)


def open_walk(
    reference: Reference,
    settings: WalkSettings | None = None,
    *,
    stop_words: str = "english",
    vectors: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> NearWalk:
    """Near matches by walking the index, which needs no passages. Raises `ModelError`."""
    say("loading word vectors")
    words, opened = load_stop_words(stop_words), open_vectors(vectors)
    found = NearWalk(reference, opened, words, settings or WalkSettings(), is_english=not vectors)
    say("measuring")
    return found

"""The texts that the Creativity Index's replication compares, each with its cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fabula.measures.clusters import cluster_field, find_clusters, has_value
from fabula.measures.detector_verdicts import Label
from fabula.reference.layout import text_digest
from fabula.text import count_words, read_documents
from fabula.text.pipeline import load_pipeline
from fabula.text.sentences import first_sentences
from fabula.text.sketch import sketch_of
from fabula.types import Document

CLUSTER = "cluster"
"""The field of a text that names its cluster: texts of one cluster count as one, everywhere."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The composition of a set of texts."""

    n_texts: int
    n_human: int
    n_clusters: int
    n_clusters_before: int
    """Before joining clusters whose texts are copies of each other."""


def read_set(
    path: Path, n_words: int | None, label: Label, cluster: str | None = None
) -> list[Document]:
    """The texts of a file, processed by `cluster_set`."""
    return cluster_set(list(read_documents([str(path)])), n_words, label, cluster)


def cluster_set(
    found: Sequence[Document], n_words: int | None, label: Label, cluster: str | None = None
) -> list[Document]:
    """Texts without what a pair shares, up to the end of the sentence that passes `n_words`.

    Each has its `cluster`, by the named field or the usual ones, and by what the whole texts,
    including what is dropped, have in common.
    """
    fields = [_fields(document) for document in found]
    field = cluster_field(fields, cluster)
    clusters = find_clusters(
        [_key(d, own, field) for d, own in zip(found, fields, strict=True)],
        [sketch_of(d.text) for d in found],
        [str(own.get(label.field)) == label.human for own in fields],
        [text_digest(d.text) for d in found],
    )
    return [
        _cut(document, n_words, clusters.names[number])
        for document, number in zip(found, clusters.numbers, strict=True)
    ]


def _key(document: Document, fields: Mapping[str, Any], field: str | None) -> str:
    if field is not None and has_value(fields.get(field)):
        return f"{field}={fields[field]}"
    return f"id={document.id}"


def _cut(document: Document, n_words: int | None, cluster: str) -> Document:
    text = document.text[int(document.meta.get("shared_prefix_chars") or 0) :]
    if n_words is not None and count_words(text) > n_words:
        text = first_sentences(text, load_pipeline(("senter",)), n_words=n_words)
    model = document.meta.get("model") or "human"
    return replace(document, text=text, meta={**document.meta, "model": model, CLUSTER: cluster})


def made_of(texts: Sequence[Document], label: Label, cluster: str | None) -> Texts:
    """The number of texts, people and clusters in a set from `read_set`."""
    field = field_of(texts, cluster)
    return Texts(
        n_texts=len(texts),
        n_human=sum(str(d.meta.get(label.field)) == label.human for d in texts),
        n_clusters=len({d.meta[CLUSTER] for d in texts}),
        n_clusters_before=len({_key(d, _fields(d), field) for d in texts}),
    )


def field_of(texts: Sequence[Document], cluster: str | None) -> str | None:
    """The field that defines clusters, before copies are known."""
    return cluster_field([_fields(document) for document in texts], cluster)


def _fields(document: Document) -> dict[str, Any]:
    return {"prompt_id": document.prompt_id, "author": document.author, **document.meta}

"""Score documents of a reference against the rest of it (leave one out)."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from fabula.core.cached_results import cache_folder
from fabula.core.errors import InputError
from fabula.core.settings import Between, seed_setting, setting
from fabula.core.store import dump_json, write_whole
from fabula.core.types import Document
from fabula.jobs.job import SILENT, Progress
from fabula.jobs.job import Corpus as CorpusFolder
from fabula.jobs.result import Result
from fabula.jobs.shared_settings import Processes, restart_setting
from fabula.novelty.job import Matching, OriginalityOptions, open_measure
from fabula.novelty.measure import ExcludeSame
from fabula.reference.files import HELD_OUT, corpus_folder, fetch_corpus
from fabula.reference.search import Reference, check_spec, is_elsewhere, is_served
from fabula.stats.norms import Distribution, GroupBook, GroupNumbers, read_groups, write_groups

_ROWS_FILE = "held_out.scores.jsonl"
_FIELD = "held_out"
"""For a passage, the number of its document, which is excluded for it."""


@dataclass(frozen=True, slots=True)
class HeldOutSettings(Processes, Matching):
    """Which documents are held out, and how they are measured."""

    n_documents: int = setting(
        200, help="Score N documents from the corpus, drawn at random.", check=Between(1)
    )
    n_words: int = setting(
        1000,
        help="Score a passage of up to N words from each, drawn at random; choose about the "
        "length of your texts.",
        check=Between(12),
    )
    exclude: Literal["none", "auto"] = setting(
        "none",
        help="auto: also leave out documents that copy or quote the passage, as in a run with "
        "this option.",
    )
    seed: int = seed_setting()
    restart: bool = restart_setting()


@dataclass(frozen=True, slots=True, repr=False)
class HeldOut(Result):
    """The distribution of a reference's own documents, and where it is kept."""

    group: GroupNumbers
    path: Path

    def lines(self) -> list[str]:
        lines = [f"{self.group.title}, measured by {self.group.signature}"]
        for item, dist in self.group.items.items():
            ends = ", ".join(f"{dist.quantile(share):.4g}" for share in (0.1, 0.5, 0.9))
            n = f"n {dist.n}, {dist.n_missing} without" if dist.n_missing else f"n {dist.n}"
            lines.append(f"  {item}: {ends}  (a tenth, half, nine tenths lie below; {n})")
        return [*lines, f"written: {self.path}"]

    def to_json(self) -> dict[str, Any]:
        return {"out": str(self.path), **asdict(self.group)}


def measure(
    directory: CorpusFolder, settings: HeldOutSettings, *, progress: Progress = SILENT
) -> HeldOut:
    """Score documents of the corpus DIR against the rest of the corpus.

    The distribution is saved in DIR, and served with it. From then on
    `fabula originality` and `fabula report` show the share of the reference's own documents whose
    Creativity Index is below the text's. Interrupted runs resume.

    Raises `InputError` if there are too few documents, or too few have a score.
    """
    from fabula.novelty.scores import run_measure
    from fabula.stats.resampling import MIN_UNITS

    # The numbers have the signature of a text from outside, for which nothing need be excluded.
    corpus = str(directory)
    if is_elsewhere(corpus):
        raise InputError(
            f"{corpus}: held-out numbers are stored with a corpus; run `reference measure` on the "
            "machine that stores it; a service then provides them"
        )
    folder = corpus_folder(corpus)
    options = OriginalityOptions(
        (corpus,),
        levels=settings.levels,
        match=settings.match,
        exclude=settings.exclude,
        n_sources=0,
    )
    with closing(Reference.open(corpus, report=progress.say)) as reference:
        scores = folder / _ROWS_FILE
        # A passage of each sampled document; documents without words are skipped.
        passages, all_numbers = list[Document](), reference.numbers()
        n_drawn = min(settings.n_documents, len(all_numbers))
        drawn = sorted(random.Random(settings.seed).sample(all_numbers, n_drawn))
        for number, document in zip(drawn, reference.documents(drawn), strict=True):
            words = reference.locate(document.text)
            if not len(words.words):
                continue
            chance = random.Random(f"{settings.seed}|{number}")
            first = chance.randrange(max(1, len(words.words) - settings.n_words + 1))
            last = min(first + settings.n_words, len(words.words)) - 1
            text = document.text[int(words.starts[first]) : int(words.ends[last])]
            passages.append(Document(f"{number}:{document.id}", text, meta={_FIELD: str(number)}))
        if len(passages) < MIN_UNITS:
            raise InputError(
                f"{corpus}: has only {len(passages)} documents with words to hold out; a "
                f"distribution needs at least {MIN_UNITS}"
            )
        with open_measure(options, progress, reference, n_threads=settings.n_processes) as measure:
            signature = str(measure.signature)
            numbers = [passage.meta[_FIELD] for passage in passages]
            exclusion = ExcludeSame(_FIELD, {value: frozenset((int(value),)) for value in numbers})
            progress.begin("measuring", len(passages))
            held_out, rows = measure.held_out(exclusion), []
            for _, row in run_measure(held_out, passages, scores, restart=settings.restart):
                rows.append(row)
                progress.advance(1)
    values = {"creativity_index": [row["creativity_index"] for row in rows]}
    for level in rows[0]["uniqueness"]:
        values[f"uniqueness_{level}"] = [row["uniqueness"][level] for row in rows]
    if sum(value is not None for value in values["creativity_index"]) < MIN_UNITS:
        raise InputError(
            f"{corpus}: fewer than {MIN_UNITS} of {len(rows)} passages have a Creativity Index; "
            "they may be shorter than the longest level"
        )
    distributions = {item: Distribution.of(of_item) for item, of_item in values.items()}
    group = GroupNumbers(
        group=f"held-out:{reference.name}",
        kind="models" if reference.written_by else "other",
        title=f"{len(rows):,} documents of {reference.name} itself, each against the others",
        signature=signature,
        items={item: dist for item, dist in distributions.items() if dist is not None},
    )
    path = folder / HELD_OUT
    groups = read_groups(path) if path.exists() else []
    write_groups(path, [*(old for old in groups if old.signature != signature), group])
    scores.unlink(missing_ok=True)
    return HeldOut(group, path)


def groups_of(references: Sequence[str]) -> tuple[Path, ...]:
    """The files of held-out scores stored with these references.

    Those of a served reference are copied. Raises `CorpusError` if an address cannot be fetched,
    and `LookupFailed` if a server does not respond.
    """
    for reference in references:
        check_spec(reference)
    paths = []
    for corpus in references:
        if not is_served(corpus):
            paths += [] if is_elsewhere(corpus) else [fetch_corpus(corpus) / HELD_OUT]
            continue
        from fabula.reference.client import open_served

        key = hashlib.sha256(corpus.rstrip("/").encode()).hexdigest()[:16]
        path = cache_folder() / "served" / key / HELD_OUT
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(open_served(corpus, n_parallel=1)) as part:
            rows = "".join(f"{dump_json(row)}\n" for row in part.held_out)
        write_whole(path, rows.encode())
        paths.append(path)
    return tuple(path for path in paths if path.is_file())


def held_out_of(files: Sequence[Path], signature: str) -> Distribution | None:
    """The Creativity Index of a reference's own documents with this signature, if a file has it."""
    if not files:
        return None
    groups = GroupBook(g for path in files for g in read_groups(path)).find(signature).groups
    return groups[0].items.get("creativity_index") if groups else None

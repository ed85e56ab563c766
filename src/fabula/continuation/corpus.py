"""Training data of generators: sentences of many stories in shards on disk, and their vocabulary.

Where a shard ends depends only on the texts, so the bytes depend neither on the number of workers
nor on an interruption; existing shards are not rebuilt.

Roemmele, Gordon and Swanson 2017, section 3.1: the vocabulary has words that occur at least 25
times; every other one is the unknown word. Words are lower-cased, and punctuation marks are tokens.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.continuation.passages import book_chapters
from fabula.core.errors import CorpusError, InputError, ModelError
from fabula.core.packages import needing
from fabula.core.store import (
    TRAINING,
    dump_json,
    fresh_folder,
    publish_folder,
    write_whole,
    writer_lock,
)
from fabula.core.types import Document
from fabula.core.workers import in_order
from fabula.linguistic.metrics import UNKNOWN_WORD
from fabula.text import check_documents, in_batches
from fabula.text.readers import detokenise

MIN_COUNT = 25
UNKNOWN = 0
"""The number of every word that is not in the vocabulary."""
END_MARKS = (".", "!", "?")
"""A sentence that is written word by word ends with one of these (section 3.3)."""
MAX_TOKENS = 120
"""Maximum length of a generated sentence, in case its end does not come."""
_PLAIN = str.maketrans("“”‘’", "\"\"''")


@functools.cache
def _tokeniser() -> Any:
    missing = "this needs spaCy; run: pip install 'fabula[nlp]'"
    return needing("spacy.lang.en", missing, ModelError).English().tokenizer


def tokens_of(sentence: str) -> list[str]:
    """The words and punctuation marks of a sentence, in their case; quotes are made straight.

    >>> tokens_of("“Don’t you see?” she said.")
    ['"', 'Do', "n't", 'you', 'see', '?', '"', 'she', 'said', '.']
    """
    return [token for token in map(str, _tokeniser()(sentence.translate(_PLAIN))) if token.strip()]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words by decreasing count; number 0 is the unknown word, with the sum of their counts."""

    words: tuple[str, ...]
    counts: NDArray[np.int64]
    """int64, shape (n_words,)."""
    shown: tuple[str, ...]
    """Each word in its most frequent case inside a sentence."""
    numbers: dict[str, int]

    @classmethod
    def of(cls, counts: Counter[str], cased: Counter[str], min_count: int) -> Vocabulary:
        """The vocabulary of lower-cased counts, and of counts of cased words inside sentences."""
        frequent = (word for word, n in counts.items() if n >= min_count)
        kept = sorted(frequent, key=lambda word: (-counts[word], word))
        best: dict[str, tuple[int, str]] = {}
        for form, n in cased.items():
            best[form.lower()] = max(best.get(form.lower(), (0, "")), (n, form))
        words = (UNKNOWN_WORD, *kept)
        numbers = [sum(counts.values()) - sum(counts[word] for word in kept)]
        numbers += [counts[word] for word in kept]
        shown = (UNKNOWN_WORD, *(best.get(word, (0, word))[1] for word in kept))
        places = {word: k for k, word in enumerate(words)}
        return cls(words, np.array(numbers, np.int64), shown, places)

    @classmethod
    def read(cls, path: Path) -> Vocabulary:
        """Raises `InputError` if the file is not a vocabulary."""
        try:
            rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
            counts = np.array([int(n) for _, n, _ in rows], np.int64)
            words, shown = tuple(row[0] for row in rows), tuple(row[2] for row in rows)
        except (OSError, ValueError) as error:
            raise InputError(
                f"{path}: not a vocabulary of `fabula continuation train`; train again"
            ) from error
        return cls(words, counts, shown, {word: k for k, word in enumerate(words)})

    def write(self, path: Path) -> None:
        """Write one word per line: word, count, word as shown, separated by tabs."""
        rows = zip(self.words, self.counts, self.shown, strict=True)
        write_whole(path, "".join(f"{word}\t{n}\t{shown}\n" for word, n, shown in rows).encode())

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, sentence: str) -> NDArray[np.uint32]:
        """The word ids of a sentence's tokens: uint32, shape (n_tokens,)."""
        tokens = tokens_of(sentence)
        return np.array([self.numbers.get(token.lower(), UNKNOWN) for token in tokens], np.uint32)

    def are_words(self) -> NDArray[np.bool_]:
        """Which entries are words, not punctuation or the unknown word: bool, shape (n_words,)."""
        flags = np.array([any(map(str.isalnum, word)) for word in self.words], np.bool_)
        flags[UNKNOWN] = False
        return flags

    def are_ends(self) -> NDArray[np.bool_]:
        """Which entries end a sentence: bool, shape (n_words,)."""
        return np.isin(np.array(self.words, object), END_MARKS)

    def spell(self, numbers: Iterable[int]) -> str:
        """The sentence with these word ids as normal text: case, spaces, quotes, contractions."""
        # Straight quotes, for `detokenise`: the first opens, the next closes; so does the end.
        tokens: list[str] = []
        is_open = {"'": False, '"': False}
        for token in (self.shown[number] for number in numbers):
            is_mark = token in is_open
            if token == "'" and not is_open[token] and tokens and tokens[-1].lower().endswith("s"):
                is_mark = False
            if is_mark:
                is_open[token] = not is_open[token]
            tokens.append("`" if token == "'" and is_mark and is_open[token] else token)
        tokens += [mark for mark in ('"', "'") if is_open[mark]]
        sentence = detokenise(tokens)
        for k, character in enumerate(sentence):
            if character.isalnum():
                return sentence[:k] + character.upper() + sentence[k + 1 :]
        return sentence


_SHARD_CHARS = 4 << 20
_MANIFEST, _VOCABULARY, _SHARDS = "corpus.json", "vocabulary.tsv", "shards"
_INFO, _COUNTS = "shard.json", "counts.json"


@dataclass(frozen=True, slots=True)
class Shard:
    """Some stories. Sentences are numbered through the shard."""

    folder: Path
    text: NDArray[np.uint8]
    """UTF-8, the sentences concatenated: uint8, shape (n_bytes,)."""
    sentence_ends: NDArray[np.int64]
    """In bytes: int64, shape (n_sentences,)."""
    story_ends: NDArray[np.int64]
    """In sentences: int64, shape (n_stories,)."""
    tokens: NDArray[np.uint32]
    """Word ids in the vocabulary: uint32, shape (n_tokens,)."""
    token_ends: NDArray[np.int64]
    """In tokens: int64, shape (n_sentences,)."""

    @classmethod
    def open(cls, folder: Path) -> Shard:
        """Map the files of a shard. Raises `CorpusError`."""
        names = "text", "sentence_ends", "story_ends", "tokens", "token_ends"
        try:
            return cls(folder, *(np.load(folder / f"{name}.npy", mmap_mode="r") for name in names))
        except (OSError, ValueError) as error:
            raise CorpusError(
                f"{folder}: a file of this shard is missing or damaged; train again"
            ) from error

    def sentence(self, number: int) -> str:
        """Return the sentence with this number."""
        start = self.sentence_ends[number - 1] if number else 0
        return bytes(self.text[start : self.sentence_ends[number]]).decode()

    def has_next(self) -> NDArray[np.bool_]:
        """Whether each sentence has a successor in its story: bool, shape (n_sentences,)."""
        flags = np.ones(len(self.sentence_ends), np.bool_)
        flags[self.story_ends - 1] = False
        return flags


@dataclass(frozen=True, slots=True)
class Corpus:
    """The shards, the vocabulary, and what determines both."""

    folder: Path
    shards: tuple[Shard, ...]
    vocabulary: Vocabulary
    n_stories: int
    n_sentences: int
    n_tokens: int
    min_count: int
    digest: str

    @classmethod
    def open(cls, folder: Path) -> Corpus:
        """Raises `InputError` if `folder` has no finished corpus."""
        row = read_object(folder / _MANIFEST)
        if row is None:
            raise InputError(
                f"{folder}: contains no training corpus; run "
                f"`fabula continuation train TEXTS --out {folder}`"
            )
        TRAINING.check(row, folder / _MANIFEST)
        return cls(
            folder,
            tuple(Shard.open(folder / _SHARDS / name) for name in row["shards"]),
            Vocabulary.read(folder / _VOCABULARY),
            **{k: row[k] for k in ("n_stories", "n_sentences", "n_tokens", "min_count", "digest")},
        )

    @property
    def label(self) -> str:
        """Its name in signatures; the part after `@` identifies it."""
        return f"{self.n_sentences}-sentences@{self.digest}"

    def sentence(self, number: int) -> str:
        """Return the sentence with this number, counted through all shards."""
        for shard in self.shards:
            if number < len(shard.sentence_ends):
                return shard.sentence(number)
            number -= len(shard.sentence_ends)
        raise IndexError(number)


def build_corpus(
    documents: Iterable[Document],
    out: Path,
    *,
    min_count: int = MIN_COUNT,
    n_jobs: int = 1,
    report: Callable[[str], None] = lambda _: None,
) -> Corpus:
    """Split the documents into stories and sentences (as for passages) and count their words.

    Each chapter is a story. Raises `InputError` if there are no sentences, `BusyError` if another
    process is building here.
    """
    shards = out / _SHARDS
    with writer_lock(out / ".lock", str(out)):
        shards.mkdir(exist_ok=True)
        infos: list[dict[str, Any]] = []
        counts, cased = Counter[str](), Counter[str]()
        batches = enumerate(in_batches(check_documents(documents), _SHARD_CHARS))
        for info in in_order(partial(_write_shard, shards), batches, n_jobs):
            infos.append(info)
            read = json.loads((shards / info["name"] / _COUNTS).read_bytes())
            counts.update(read["counts"])
            cased.update(read["cased"])
            report(f"{sum(row['n_sentences'] for row in infos):,} sentences")
        if not sum(info["n_sentences"] for info in infos):
            raise InputError("the texts contain no sentences to train on")
        content = ",".join([str(min_count), *(info["digest"] for info in infos)])
        digest = hashlib.sha256(content.encode()).hexdigest()[:12]
        vocabulary = Vocabulary.of(counts, cased, min_count)
        if not vocabulary.are_words().any():
            raise InputError(
                f"no word occurs {min_count} times in the texts; add more texts, or lower "
                "`min_count`"
            )
        before = read_object(out / _MANIFEST) or {}
        if before:
            TRAINING.check(before, out / _MANIFEST)
        if before.get("digest") != digest:
            # Until everything is renumbered, nothing may take the old numbers for the new ones.
            (out / _MANIFEST).unlink(missing_ok=True)
        vocabulary.write(out / _VOCABULARY)
        for info in infos:
            report(f"numbering the words of shard {int(info['name']) + 1}")
            _number_words(shards / info["name"], vocabulary, digest)
        manifest = {
            **TRAINING.mark,
            "min_count": min_count,
            "digest": digest,
            **{k: sum(i[k] for i in infos) for k in ("n_stories", "n_sentences", "n_tokens")},
            "shards": [info["name"] for info in infos],
        }
        write_whole(out / _MANIFEST, dump_json(manifest).encode())
        for old in sorted(shards.iterdir())[len(infos) :]:
            shutil.rmtree(old)
    return Corpus.open(out)


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object of a file; None if there is none."""
    try:
        row = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _write_shard(shards: Path, numbered: tuple[int, Sequence[Document]]) -> dict[str, Any]:
    """Write the shard of these documents, unless it exists, and return a summary."""
    number, documents = numbered
    folder = shards / f"{number:05d}"
    texts = [[d.id, d.text, d.meta.get("sentences")] for d in documents]
    content = dump_json([TRAINING.version, texts])
    digest = hashlib.sha256(content.encode(errors="replace")).hexdigest()[:16]
    info = read_object(folder / _INFO)
    if info is not None and info["digest"] == digest:
        return info
    aside = fresh_folder(folder)
    text = bytearray()
    ends: dict[str, list[int]] = {"sentence": [], "story": [], "token": []}
    tokens: list[int] = []
    known: dict[str, int] = {}
    cased = Counter[str]()
    for chapter in book_chapters(documents):
        for sentence in chapter.sentences:
            text += sentence.encode(errors="replace")
            ends["sentence"].append(len(text))
            words = tokens_of(sentence)
            tokens += [known.setdefault(word.lower(), len(known)) for word in words]
            ends["token"].append(len(tokens))
            cased.update(words[1:])
        ends["story"].append(len(ends["sentence"]))
    arrays: dict[str, NDArray[Any]] = {
        "text": np.frombuffer(bytes(text), np.uint8),
        "local_tokens": np.array(tokens, np.uint32),
        **{f"{name}_ends": np.array(places, np.int64) for name, places in ends.items()},
    }
    n_times = np.bincount(np.array(tokens, np.int64), minlength=len(known)).tolist()
    counts = {"counts": dict(zip(known, n_times, strict=True)), "cased": dict(cased)}
    for name, values in arrays.items():
        np.save(aside / f"{name}.npy", values)
    (aside / _COUNTS).write_bytes(dump_json(counts).encode())
    names = {"n_stories": "story_ends", "n_sentences": "sentence_ends", "n_tokens": "local_tokens"}
    info = {"name": folder.name, "digest": digest, **{n: len(arrays[names[n]]) for n in names}}
    (aside / _INFO).write_bytes(dump_json(info).encode())
    if folder.exists():
        shutil.rmtree(folder)
    publish_folder(aside, folder)
    return info


def _number_words(folder: Path, vocabulary: Vocabulary, digest: str) -> None:
    """Write the shard's tokens as word ids of the vocabulary, once per vocabulary."""
    mark = folder / "numbered"
    if mark.exists() and mark.read_text() == digest:
        return
    words = json.loads((folder / _COUNTS).read_bytes())["counts"]
    table = np.array([vocabulary.numbers.get(word, UNKNOWN) for word in words], np.uint32)
    local = np.load(folder / "local_tokens.npy", mmap_mode="r")
    aside = folder / ".tokens.npy"
    np.save(aside, table[local] if len(table) else np.empty(0, np.uint32))
    aside.replace(folder / "tokens.npy")
    write_whole(mark, digest.encode())

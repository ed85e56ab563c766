"""An infini-gram index on this machine's disk, searched by the `infini_gram` package."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from fabula.errors import CorpusError, LookupFailed
from fabula.packages import needing
from fabula.reference.backend import (
    Attribution,
    IndexElsewhere,
    LocatedText,
    Matches,
    Occurrence,
    dj_search,
    n_gram_text,
    occurs_in_tokens,
)  # fmt: skip
from fabula.types import Document

TokenDtype = Literal["u16", "u32"]
_TOKEN_BYTES: dict[TokenDtype, int] = {"u16": 2, "u32": 4}
_KINDS = ("tokenized", "table", "offset")
_END_BYTES = 64 * 1024
_SHOWN_TOKENS = 1000


class InfiniGramIndex(IndexElsewhere):
    """A folder with `tokenized.N`, `table.N` and `offset.N`, and the tokenizer it was built with.

    `tokenizer`: a `tokenizer.json`, by default the one in the folder. The width of a token id is
    inferred from the sizes of the files.

    An n-gram is found where the index has it token for token, with one space where the text has
    white space; so not across the end of a paragraph, nor at the first word of one if the tokenizer
    includes spaces in its tokens.

    Raises `CorpusError` if files are missing or their sizes are inconsistent, `InputError` if a
    package is not installed.
    """

    def __init__(self, path: Path, tokenizer: Path | None = None) -> None:
        engine = needing(
            "infini_gram.engine",
            "searching an infini-gram index needs the infini_gram package, which is not installed; "
            "run `pip install infini-gram`",
        )
        self.path = path = Path(path).resolve()
        self.name = path.name
        self._files = _files_of(path)
        self.token_dtype = _token_dtype(path, self._files)
        self._tokenizer_path = tokenizer or path / "tokenizer.json"
        self._encoder = _Encoder(self._tokenizer_path)
        # The end-of-text id and the vocabulary size only affect next-token predictions.
        n_ids = 256 ** _TOKEN_BYTES[self.token_dtype] - 1
        self._engine: Any = engine.InfiniGramEngine(
            index_dir=str(path),
            eos_token_id=n_ids - 1,
            vocab_size=n_ids,
            token_dtype=self.token_dtype,
        )

    @cached_property
    def fingerprint(self) -> str:
        """12 hex digits: a digest of the files' names, sizes and ends, and the tokenizer."""
        digest = hashlib.sha256(self.token_dtype.encode())
        for file in self._files:
            n_bytes = file.stat().st_size
            digest.update(f"\0{file.name}\0{n_bytes}\0".encode())
            with file.open("rb") as stream:
                digest.update(stream.read(_END_BYTES))
                stream.seek(max(0, n_bytes - _END_BYTES))
                digest.update(stream.read(_END_BYTES))
        digest.update(self._tokenizer_path.read_bytes())
        return digest.hexdigest()[:12]

    @property
    def size(self) -> str:
        n_bytes = dict.fromkeys(_KINDS, 0)
        for file in self._files:
            n_bytes[file.name.partition(".")[0]] += file.stat().st_size
        n_documents = n_bytes["offset"] // 8
        # Each document begins with a separator, which does not count as a token.
        n_tokens = n_bytes["tokenized"] // _TOKEN_BYTES[self.token_dtype] - n_documents
        return f"{n_tokens:,} tokens in {n_documents:,} documents"

    def close(self) -> None:
        """Nothing to close: the files are memory-mapped."""

    def match_texts(
        self, texts: Sequence[LocatedText], *, exclude: Iterable[int] = (), n_threads: int = 1
    ) -> list[Matches]:
        """The longest matches of many texts, `n_threads` of them at a time.

        Raises `InputError` if `exclude` is used, `CorpusError` if the tokenizer does not fit the
        index.
        """
        self._refuse(exclude)
        with ThreadPoolExecutor(max(1, n_threads)) as pool:
            return list(pool.map(self._search, texts))

    def cite_one(self, text: LocatedText, first: int, n_words: int, n_sources: int) -> Attribution:
        """How often the n-gram occurs, and up to `n_sources` documents, from its first places."""
        ids = self._ids(text, first, n_words)
        if not ids:
            return Attribution(0, 0, True, ())
        found = _answer(self._engine.find(input_ids=ids))
        sources: dict[int, Occurrence] = {}
        ranks = ((s, k) for s, ends in enumerate(found["segment_by_shard"]) for k in range(*ends))
        for (shard, rank), _ in zip(ranks, range(3 * n_sources), strict=False):
            reply = self._engine.get_doc_by_rank(s=shard, rank=rank, max_disp_len=_SHOWN_TOKENS)
            shown = _answer(reply)
            number = int(shown["doc_ix"])
            document = Document(f"{self.name}:{number}", self._encoder.text(shown["token_ids"]))
            if occurrence := self._occurrence(text, first, n_words, number, document):
                sources.setdefault(number, occurrence)
            if len(sources) == n_sources:
                break
        return Attribution(int(found["cnt"]), 0, True, tuple(sources.values()))

    def _search(self, text: LocatedText) -> Matches:
        def occurs(i: int, j: int) -> bool:
            # For an empty query the engine would count every token of the corpus.
            ids = self._ids(text, i, j - i)
            return bool(ids) and _answer(self._engine.count(input_ids=ids))["count"] > 0

        try:
            return dj_search(len(text), 1, lambda i, j: occurs_in_tokens(text, i, j, occurs))
        except LookupFailed as error:
            return error

    def _ids(self, text: LocatedText, first: int, n_words: int) -> list[int]:
        """The n-gram's token ids; empty if the index cannot contain it."""
        start = int(text.words.starts[first])
        after_space = start == 0 or text.text[start - 1].isspace()
        ids = self._encoder.ids(n_gram_text(text, first, n_words), after_space=after_space)
        highest = 256 ** _TOKEN_BYTES[self.token_dtype] - 1
        if ids and max(ids) >= highest:
            raise CorpusError(
                f"{self._tokenizer_path} produces the token id {max(ids)}, which does not fit the "
                f"{self.token_dtype} ids of {self.path}; use the tokenizer that the index was "
                "built with"
            )
        return ids


class _Encoder:
    """Encodes text as the token ids that it has in the middle of a document.

    Byte-level tokenizers include the space before a word in its token, if there is one; those like
    Llama's always add one before a text.
    """

    def __init__(self, path: Path) -> None:
        tokenizers = needing(
            "tokenizers",
            "reading the tokenizer of an infini-gram index needs the tokenizers package, which is "
            "not installed; run `pip install 'fabula[nlp]'`",
        )
        try:
            written = path.read_text(encoding="utf-8")
            model = json.loads(written)["model"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorpusError(
                f"{path} is not a tokenizer ({error}); use the tokenizer.json that the index was "
                "built with"
            ) from error
        self._tokenizer = tokenizers.Tokenizer.from_str(written)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._unknown = model.get("unk_id")
        if (unknown := model.get("unk_token")) is not None:
            self._unknown = self._tokenizer.token_to_id(unknown)
        after_space = self._encode("b a")[-1:]
        self._takes_space = self._encode("a") != after_space and self._encode(" a") == after_space
        self._anchor = self._encode("\n")

    def ids(self, n_gram: str, *, after_space: bool) -> list[int]:
        """The ids of `n_gram`; empty if the tokenizer does not know all of it.

        The id for unknown text stands for many strings, and would match where another of them
        occurs.
        """
        if after_space:
            ids = self._encode(f" {n_gram}" if self._takes_space else n_gram)
        else:
            # No tokenizer adds a space after an anchor; the anchor is cut off.
            ids = self._encode(f"\n{n_gram}")
            n = len(self._anchor)
            ids = ids[n:] if ids[:n] == self._anchor else self._encode(n_gram)
        return [] if self._unknown in ids else ids

    def text(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def _files_of(path: Path) -> list[Path]:
    """The files of an index, in order; raises `CorpusError` if one is missing."""
    if not path.is_dir():
        raise CorpusError(f"{path} is not a folder with an infini-gram index")
    # The engine looks for these words in the whole path, and crashes if it finds them elsewhere.
    if any(kind in str(path) for kind in _KINDS):
        raise CorpusError(
            f"infini-gram cannot open {path}: a folder name must not contain {', '.join(_KINDS)}; "
            "rename it"
        )
    found = sorted(file for file in path.iterdir() if any(kind in file.name for kind in _KINDS))
    shards = sorted(
        file.name.partition(".")[2] for file in found if file.name.startswith(_KINDS[0])
    )
    expected = sorted(path / f"{kind}.{shard}" for kind in _KINDS for shard in shards)
    if not shards or found != expected:
        raise CorpusError(
            f"{path} is not a complete infini-gram index: each tokenized.N needs table.N and "
            "offset.N, and no other files may have such names"
        )
    return found


def _token_dtype(path: Path, files: Sequence[Path]) -> TokenDtype:
    """The width of the ids: the table has a pointer for each token, wide enough for the bytes.

    Interrupted indexing leaves files whose sizes fit no width; the engine would search them all the
    same, and miss matches. Raises `CorpusError`.
    """
    sizes = {file.name: file.stat().st_size for file in files}

    def fits(name: str, n_token_bytes: int) -> bool:
        n_bytes, n_table_bytes = sizes[name], sizes[f"table{name.removeprefix('tokenized')}"]
        if n_bytes == 0 or n_bytes % n_token_bytes or n_table_bytes == 0:
            return False
        # As computed in infini_gram/indexing.py.
        pointer_bytes = math.ceil(math.log2(n_bytes) / 8)
        return divmod(n_table_bytes, n_bytes // n_token_bytes) == (pointer_bytes, 0)

    for dtype, n_token_bytes in _TOKEN_BYTES.items():
        if all(fits(name, n_token_bytes) for name in sizes if name.startswith("tokenized")):
            return dtype
    raise CorpusError(
        f"the files in {path} do not fit each other: the index was not built to its end, or its "
        "tokens are not u16 or u32; build it again, without what is there"
    )


def _answer(reply: Any) -> Any:
    if "error" in reply:
        raise LookupFailed(f"infini-gram could not look up an n-gram: {reply['error']}")
    return reply

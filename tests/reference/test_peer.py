"""The published engine, infini-gram, finds the same matches in the same ids."""

from pathlib import Path

import numpy as np
import pytest

from fabula.kernels.packed import read_tokens
from fabula.reference.search import Reference
from fabula.text import read_documents

pytest.importorskip("infini_gram", reason="infini-gram has no wheel for this platform")
import peer


def test_longest_matches_equal_infini_gram(tmp_path: Path, shared_data: Path):
    source = [str(shared_data / "reference" / "gutenberg_poetry.jsonl.gz")]
    reference = Reference.build(read_documents(source), tmp_path / "ours")
    shard = reference.local.shards[0]
    tokens = read_tokens(shard.tokens, 0, shard.info.n_tokens)
    peer.write_tokens(tokens, tmp_path / "peer")
    peer.build_index(tmp_path / "peer")
    engine = peer.open_engine(tmp_path / "peer")
    found = []
    for document in read_documents([str(shared_data / "generated" / "gpt35_novel.jsonl")]):
        words = reference.locate(document.text).words
        ids = shard.vocabulary.find(words)
        # The peer has no id for a word that it never saw: the largest stands for it.
        theirs = peer.longest_matches(engine, np.where(ids == 0, 65_000, ids))
        ours = reference.longest_matches(words)
        # A query below all suffixes gets 0 from the peer, though its first word may be there.
        underflow = (theirs == 0) & (ours > 0)
        assert underflow.sum() <= 1
        assert np.array_equal(ours[~underflow], theirs[~underflow])
        found.append((words, ours))
    assert sum(len(words) for words, _ in found) > 13_000
    # As a corpus that is larger than memory is searched, the same.
    shard.expect_random()
    for words, ours in found:
        assert np.array_equal(reference.longest_matches(words), ours)

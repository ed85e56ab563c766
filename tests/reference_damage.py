"""A process that damages a small reference byte by byte and says what became of its answers.

    python reference_damage.py FOLDER N_PLACES FIRST [unseen]

FOLDER holds a reference `r` and word vectors `vectors.txt`. Every file gets `N_PLACES` damages, or
as many as it has bytes, the places `FIRST` bytes after multiples of a step. A line of JSON each:
file, place, and `same`, `other` or the error. With `unseen` no checksum is compared, as where a
disk loses bits of a file that was compared before.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

FLIPS = 0xFE, 0x01, 0xFF, 0x80, 0x10


def answers(folder: Path) -> Any:
    """All kinds of questions that a reference answers."""
    from fabula.models.vectors import open_vectors
    from fabula.novelty.near import NearSearch, NearSettings, PaperSearch, PaperSettings
    from fabula.reference.search import Reference
    from fabula.text.words import load_stop_words

    reference = Reference.open(folder / "r")
    held = reference.document(3).text.split()
    words = [*held[:9], "unheard", *held[3:7], "w1", "w2", "the", "w0", "w39"]
    lengths = [reference.longest_matches(words, exclude=out).tolist() for out in ((), (1, 3, 20))]
    for shard in reference.local.shards:
        # As one that is larger than memory: then its keys are used.
        shard.expect_random()
    lengths += [reference.longest_matches(words, exclude=out).tolist() for out in ((), (1, 3, 20))]
    grams = [words[:3], ["w0"], ["the", "w1"], words[4:9]]
    sources = [
        (one.count, one.n_documents, [(s.number, s.document.id, s.span) for s in one.sources])
        for out in ((), (2, 21))
        for one in reference.attribute_many(grams, 4, exclude=out)
    ]
    ids = reference.numbers_of(["d4", "d31"])
    texts = [reference.document(k).text for k in (0, 17, 33)]
    vectors, stop_words = open_vectors(str(folder / "vectors.txt")), load_stop_words()
    exact, alike = reference.longest_matches(words), []
    # Without the encoder of sentences, which takes longer to load than all else and reads no file
    # of a reference.
    for near in (
        NearSearch(reference, vectors, stop_words,
                   NearSettings(threshold=0.5, floor=2, bits=1, meaning=0)),
        PaperSearch(reference, vectors, stop_words,
                    PaperSettings(threshold=0.5, passage_words=8, overlap=2)),
    ):  # fmt: skip
        found, counterparts = near.search(words, exact, 3, exclude=[5])
        alike.append((found.tolist(), counterparts))
    about = reference.fingerprint, reference.n_words, reference.n_documents, reference.written_by
    return repr((lengths, sources, ids, texts, alike, about))


def damages(file: Path, n_places: int, first: int) -> Iterator[tuple[int, bytes]]:
    whole = file.read_bytes()
    step = max(1, -(-len(whole) // n_places))
    for k, place in enumerate(range(first % step, len(whole), step)):
        changed = bytearray(whole)
        changed[place] ^= FLIPS[k % len(FLIPS)]
        yield place, bytes(changed)
    if file.name.endswith(("tokens.npy", "suffixes.npy")):
        # Two bytes at once: large numbers.
        for place in range(128 + 2 * (first % 7), len(whole) - 1, max(2, 2 * (step // 2))):
            changed = bytearray(whole)
            changed[place : place + 2] = b"\xfe\xfe"
            yield place, bytes(changed)


def main() -> None:
    from fabula.core.errors import FabulaError

    folder, n_places, first = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    if "unseen" in sys.argv:
        from fabula.reference import files, parts

        parts.check_files = lambda *_: None
        files.seal = lambda _: ANY
    right = answers(folder)
    for file in sorted(file for file in (folder / "r").rglob("*") if file.is_file()):
        whole = file.read_bytes()
        for place, changed in damages(file, n_places, first):
            if changed == whole:
                continue
            # Whoever reads the output sees which damage the process did not outlive.
            name = str(file.relative_to(folder))
            print(json.dumps([name, place, "begun"]), flush=True)
            file.write_bytes(changed)
            try:
                found = "same" if answers(folder) == right else "other"
            except FabulaError as error:
                found = f"FabulaError: {error}"
            except Exception as error:  # noqa: BLE001
                found = f"{type(error).__name__}: {error}"
            file.write_bytes(whole)
            print(json.dumps([name, place, found]), flush=True)
    assert answers(folder) == right


if __name__ == "__main__":
    main()

"""How often is a wrong word suspected by the words around it, and what the weights are made from.

    python bench/contexts.py [--books FOLDER] [--read 0] [--write] [--smoke]

For each two words of a set in `confusions.txt`, a regression is fitted to how edited books write
them: the novels and the children's books of the shared data, and the `.txt` files of `--books`.
Each quarter of the books is scored by the others. A word is suspected where the odds of the other
are higher, or a nat lower at most, than in all but two in a million words of the books, which are
right but for the books' own errors; a wrong word is where a book writes the other one. Words of
which fewer than three in ten are suspected have no weights. `--read` has the embedded model read so
many of the right and the wrong ones that are suspected, for each word and other, and says how many
are noted of all. `--write` replaces `contexts.npz`. The one in the package was also fitted to 57
novels of Standard Ebooks, which are in the public domain.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from sklearn.linear_model import LogisticRegression

import corpora
from fabula.models.surprisal import SurprisalModel
from fabula.style import contexts, proofreading
from fabula.text import read_documents

FILES = "gutenberg_novels", "austen_novels", "moby_dick"
MADE = Path(contexts.__file__).with_name("contexts.npz")
N_PARTS, MAX_USES, MIN_USES, MIN_FOUND = 4, 15_000, 5 if corpora.SMOKE else 60, 0.3
WORDS_PER_FALSE = 1_000 if corpora.SMOKE else 500_000
MIN_COUNT, MIN_WEIGHT, PENALTY = 3, 0.25, 0.5

Array = NDArray[np.float64]


class Uses(NamedTuple):
    """Where books write a word: the book and the token, the features, and how many in all."""

    places: list[tuple[int, int]]
    keys: NDArray[np.uint32]
    n: int

    @property
    def parts(self) -> NDArray[np.int64]:
        return np.array([book for book, _ in self.places]) % N_PARTS


class Fitted(NamedTuple):
    """Weights for two words, and the log odds of the second where each is written."""

    pair: tuple[str, str]
    keys: NDArray[np.uint32]
    weights: Array
    constant: float
    odds: tuple[Array, Array]


def main() -> None:
    given = corpora.options(
        __doc__, books=("", "a folder of more books"), read=(0, "places to read"),
        write=(False, "replace contexts.npz"),
    )  # fmt: skip
    texts = [text.translate(proofreading._PLAIN) for text in books(given.books)]
    tokens = [contexts.TOKEN.findall(text) for text in texts]
    uses = uses_in(tokens)
    pairs = [pair for pair in of_sets() if all(uses[w].n >= MIN_USES for w in pair)]
    run = joblib.Parallel(n_jobs=-1)
    fitted = run(joblib.delayed(fit)(pair, *(uses[word] for word in pair)) for pair in pairs)
    n_words = sum(map(len, tokens))
    print(f"{n_words:,} words of {len(texts)} books, {len(pairs)} pairs")
    found, least = [], []
    for one in fitted:
        row = []
        for k, (word, other) in enumerate((one.pair, one.pair[::-1])):
            sign = 1 - 2 * k
            right, wrong = np.sort(sign * one.odds[k])[::-1], sign * one.odds[1 - k]
            n_false = n_words / WORDS_PER_FALSE * len(right) / uses[word].n
            row.append(max(0.0, float(right[min(int(n_false), len(right) - 1)])))
            found.append((float((wrong > row[k] - contexts.SLACK).mean()), word, other))
            if found[-1][0] < MIN_FOUND:
                row[k] = np.inf
        least.append(row)
    kept = [share for share, *_ in found if share >= MIN_FOUND]
    print(f"{len(kept)} words for others, of which {np.mean(kept or [0]):.0%} are suspected")
    for share, word, other in sorted(found, reverse=True):
        if share >= MIN_FOUND:
            print(f"  {word} for {other}: {share:.0%}")
    if given.write:
        write(fitted, least)
    if given.read:
        shares, n_false = read(texts, fitted, least, uses, given.read)
        n_in_book = n_false / n_words * 100_000
        print(
            f"{shares:.0%} of the wrong words are noted, and {n_in_book:.2f} right ones in 100,000"
        )


def books(folder: str) -> list[str]:
    by_book: dict[str, list[str]] = defaultdict(list)
    paths = [corpora.SHARED / "reference" / f"{name}.jsonl.gz" for name in FILES]
    for path in [*paths, corpora.CHILDREN]:
        for one in read_documents([str(path)]) if path.is_file() else ():
            by_book[str(one.meta.get("book", path.name))].append(one.text)
    more = sorted(Path(folder).glob("*.txt")) if folder else []
    return [*map("\n\n".join, by_book.values()), *(path.read_text("utf-8") for path in more)]


def of_sets() -> list[tuple[str, str]]:
    """Two words of a set, each once; those under [slip] suit each other's places too well."""
    sets = ((a, b) for a, others in proofreading.alternatives().items() for b in others
            if others[b] == "set" and " " not in a + b)  # fmt: skip
    return sorted({(min(pair), max(pair)) for pair in sets})


def uses_in(tokens: list[list[str]]) -> dict[str, Uses]:
    places: dict[str, list[tuple[int, int]]] = {word: [] for pair in of_sets() for word in pair}
    for book, row in enumerate(tokens):
        for k, token in enumerate(row):
            if (word := token.lower()) in places:
                places[word].append((book, k))
    rng = random.Random(0)
    uses = {}
    for word, all_of in places.items():
        some = rng.sample(all_of, MAX_USES) if len(all_of) > MAX_USES else all_of
        keys = [contexts.features(tokens[book], k) for book, k in some]
        uses[word] = Uses(some, np.array(keys, dtype=np.uint32), len(all_of))
    return uses


def fit(pair: tuple[str, str], first: Uses, second: Uses) -> Fitted:
    keys, counts = np.unique(np.concatenate([first.keys, second.keys]), return_counts=True)
    keys = keys[counts >= MIN_COUNT]
    # The sample of a frequent word says less than it is.
    prior = np.log(second.n / len(second.places)) - np.log(first.n / len(first.places))
    uses = [matrix(one.keys, keys) for one in (first, second)]
    odds = [np.zeros(len(one.places)) for one in (first, second)]
    for part in range(N_PARTS):
        own = [one.parts == part for one in (first, second)]
        rest = [~one for one in own]
        fitted = regression([one[some] for one, some in zip(uses, rest, strict=True)])
        for one, some, scored in zip(uses, own, odds, strict=True):
            if some.any():
                scored[some] = one[some] @ fitted[0] + fitted[1] + prior
    weights, constant = regression(uses)
    is_large = np.abs(weights) >= MIN_WEIGHT
    return Fitted(pair, keys[is_large], weights[is_large], constant + prior, (odds[0], odds[1]))


def matrix(keys: NDArray[np.uint32], known: NDArray[np.uint32]) -> csr_matrix:
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    rows, columns = np.nonzero(known[at] == keys)
    ones = np.ones(len(rows))
    return csr_matrix((ones, (rows, at[rows, columns])), shape=(len(keys), len(known)))


def regression(uses: list[csr_matrix]) -> tuple[Array, float]:
    """The weights, less those that are small, and the constant."""
    labels = np.repeat([0, 1], [one.shape[0] for one in uses])
    model = LogisticRegression(C=PENALTY, solver="liblinear").fit(vstack(uses), labels)
    weights = model.coef_[0]
    return np.where(np.abs(weights) < MIN_WEIGHT, 0.0, weights), float(model.intercept_[0])


def write(fitted: list[Fitted], least: list[list[float]]) -> None:
    kept = [k for k, row in enumerate(least) if np.isfinite(row).any()]
    chosen = [fitted[k] for k in kept]
    np.savez_compressed(
        MADE,
        pairs=np.array([one.pair for one in chosen]),
        least=np.array([least[k] for k in kept], dtype=np.float32),
        constants=np.array([one.constant for one in chosen], dtype=np.float32),
        ends=np.cumsum([len(one.keys) for one in chosen]),
        keys=np.concatenate([one.keys for one in chosen]),
        weights=np.concatenate([one.weights for one in chosen]).astype(np.float16),
    )
    print(f"{MADE.name}: {MADE.stat().st_size:,} bytes")


def read(
    texts: list[str], fitted: list[Fitted], least: list[list[float]], uses: dict[str, Uses], n: int
) -> tuple[float, float]:
    """The share of the wrong words that is noted, a mean over words, and how many right ones."""
    rng, shares = random.Random(0), list[float]()
    right: list[tuple[tuple[int, int], str, str, float]] = []
    weights: list[float] = []
    with SurprisalModel("local") as model:
        for one, row in zip(fitted, least, strict=True):
            for k, (word, other) in enumerate((one.pair, one.pair[::-1])):
                below = [row[k] - (1 - 2 * k) * one.odds[side] for side in (k, 1 - k)]
                suspected = [np.flatnonzero(some < contexts.SLACK).tolist() for some in below]
                places = uses[word].places
                right += ((places[at], word, other, below[0][at]) for at in suspected[0])
                # The sample of a frequent word stands for all of its uses.
                weights += [uses[word].n / len(places)] * len(suspected[0])
                if np.isfinite(row[k]):
                    noted = [
                        is_noted(model, texts, uses[other].places[at], word, other, below[1][at])
                        for at in rng.sample(suspected[1], min(n, len(suspected[1])))
                    ]
                    shares.append(
                        sum(noted) / max(1, len(noted)) * len(suspected[1]) / len(below[1])
                    )
        some = rng.choices(right, weights, k=n * len(shares)) if right else []
        noted = [is_noted(model, texts, *one) for one in some]
    return float(np.mean(shares)), sum(weights) * sum(noted) / max(1, len(noted))


def is_noted(
    model: SurprisalModel, texts: list[str], place: tuple[int, int], word: str, other: str,
    below: float,
) -> bool:  # fmt: skip
    """Whether a word is noted where that token of a book is."""
    text = texts[place[0]]
    start, end = next(itertools.islice(contexts.TOKEN.finditer(text), place[1], None)).span()
    word = word.capitalize() if text[start].isupper() else word
    begin = max(0, text.rfind("\n\n", 0, max(0, start - 1_000)))
    around = text[begin:start] + word + text[end : end + 200]
    at = start - begin
    suspect = contexts.Suspect(at, at + len(word), other, max(0.0, below))
    read = proofreading.suspected(around, [suspect])
    return any(proofreading._read(model, stretch, None) for stretch in read)


if __name__ == "__main__":
    main()

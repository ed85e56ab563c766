"""Slow and obvious versions of what the kernels do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def suffix_order(tokens: Sequence[int]) -> list[int]:
    """Suffixes sorted as lists."""
    return sorted(range(len(tokens)), key=lambda i: tuple(tokens[i:]))


def grams(documents: Sequence[Sequence[str]]) -> set[tuple[str, ...]]:
    """Every n-gram of every document."""
    return {
        tuple(words[i:j])
        for words in documents
        for i in range(len(words))
        for j in range(i + 1, len(words) + 1)
    }


def longest_matches(words: Sequence[str], documents: Sequence[Sequence[str]]) -> list[int]:
    """For each word, the longest n-gram from there on that some document holds."""
    known = grams(documents)
    lengths = []
    for i in range(len(words)):
        n = 0
        while i + n < len(words) and tuple(words[i : i + n + 1]) in known:
            n += 1
        lengths.append(n)
    return lengths


def count(words: Sequence[str], documents: Sequence[Sequence[str]]) -> int:
    """How often an n-gram stands in the documents."""
    n = len(words)
    return sum(
        list(other[i : i + n]) == list(words)
        for other in documents
        for i in range(len(other) - n + 1)
    )


def uniqueness(
    words: Sequence[str], documents: Sequence[Sequence[str]], level: int
) -> float | None:
    """L-uniqueness by its definition: words in no n-gram, n >= L, that a document holds."""
    if len(words) < level:
        return None
    known = grams(documents)
    covered = set()
    for i in range(len(words)):
        for j in range(i + level, len(words) + 1):
            if tuple(words[i:j]) in known:
                covered.update(range(i, j))
    return (len(words) - len(covered)) / len(words)


def longest_common_run(a: Sequence[str], b: Sequence[str]) -> int:
    """How many words in a row the two have in common, at most."""
    longest = 0
    for i in range(len(a)):
        for j in range(len(b)):
            n = 0
            while i + n < len(a) and j + n < len(b) and a[i + n] == b[j + n]:
                n += 1
            longest = max(longest, n)
    return longest


def components(n: int, joined: Sequence[tuple[int, int]]) -> list[set[int]]:
    """The connected components of n places, by spreading until nothing changes."""
    names = list(range(n))
    changed = True
    while changed:
        changed = False
        for a, b in joined:
            if names[a] != names[b]:
                names[a] = names[b] = min(names[a], names[b])
                changed = True
    return sorted(({k for k in range(n) if names[k] == name} for name in set(names)), key=min)


def counted_ngrams(
    texts: Sequence[Sequence[str]], prompts: Sequence[Sequence[str]], n: int, *, echo_from: int
) -> list[Counter[tuple[str, ...]]]:
    """The n-grams of each text, those of its prompt left out where they are long enough."""

    def within(words: Sequence[str]) -> Counter[tuple[str, ...]]:
        return Counter(tuple(words[k : k + n]) for k in range(len(words) - n + 1))

    found = []
    for words, prompt in zip(texts, prompts, strict=True):
        echoed = within(prompt) if n >= echo_from else Counter()
        own = within(words)
        found.append(Counter({gram: times for gram, times in own.items() if gram not in echoed}))
    return found


def counts_in_subset(
    holders: Sequence[dict[int, int]], chosen: Sequence[bool]
) -> tuple[int, list[int], list[int], list[int]]:
    """What `count_in_subsets` counts, of n-grams as mappings from text to occurrences."""
    n_different = 0
    n_shared, n_others, n_clipped = ([0] * len(chosen) for _ in range(3))
    for one in holders:
        held = {text: n for text, n in one.items() if chosen[text]}
        n_different += bool(held)
        for text, n in held.items():
            others = [m for other, m in held.items() if other != text]
            n_shared[text] += n if others else 0
            n_others[text] += len(others)
            n_clipped[text] += min(n, max(others, default=0))
    return n_different, n_shared, n_others, n_clipped


def common_runs(a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int, int]]:
    """From left to right the longest run of `a` that stands in `b`; negative numbers match none."""
    found = []
    i = 0
    while i < len(a):
        best = (0, 0)
        for j in range(len(b)):
            k = 0
            while i + k < len(a) and j + k < len(b) and a[i + k] == b[j + k] >= 0:
                k += 1
            best = max(best, (k, -j))
        if best[0]:
            found.append((i, -best[1], best[0]))
        i += max(1, best[0])
    return found

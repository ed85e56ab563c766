"""Slow and obvious versions of what the kernels do."""

from __future__ import annotations

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

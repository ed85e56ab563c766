"""Slow and obvious versions of what the kernels do."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


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


@dataclass(frozen=True)
class WalkCase:
    """A text and documents, as ids, with what words bring and cost; all in parts of a bit."""

    text: list[int]
    is_content: list[bool]
    documents: list[list[int]]
    gains: dict[tuple[int, int], int]
    """By (word of the text, word of a document), where they are alike."""
    rarities: dict[int, int]
    anchored: set[tuple[int, int]]
    """Which of the alike pairs may be in an anchor."""
    costs_here: list[int]
    costs_there: list[int]
    enough: int
    width: int
    drop: int
    exchange: int
    reach: int
    company: int
    least: int
    gap: int
    join: int
    need: int

    def is_anchor(self, words: Sequence[int], i: int) -> bool:
        """Whether a walk from the i-th word reads these words until they are rare enough."""
        if not self.is_content[self.text[i]]:
            return False

        def reads(at: int, k: int) -> bool:
            return (
                k < len(words)
                and at < len(self.text)
                and (self.text[at], words[k]) in self.anchored
            )

        def goes(k: int, at: int, rarity: int, is_changed: bool) -> bool:
            if rarity >= self.enough:
                return True
            if k >= 5:
                return False
            if reads(at, k) and goes(k + 1, at + 1, rarity + self.rarities[words[k]], is_changed):
                return True
            if is_changed or not reads(at + 1, k):
                return False
            left_out = rarity + self.rarities[words[k]]
            if goes(k + 1, at + 2, left_out, True):
                return True
            return (
                k + 1 < 5
                and reads(at, k + 1)
                and goes(k + 2, at + 2, left_out + self.rarities[words[k + 1]], True)
            )

        return reads(i, 0) and goes(1, i + 1, self.rarities[words[0]], False)

    def has_company(self, words: Sequence[int], p: int, i: int) -> bool:
        around = [q for q in range(max(0, p - 8), p + 9) if q != p and q < len(words)]
        near = [j for j in range(max(0, i - 16), i + 17) if j != i and j < len(self.text)]
        near = [j for j in near if self.is_content[self.text[j]]]
        return self.company <= sum(
            max((self.gains.get((self.text[j], words[q]), 0) for j in near), default=0)
            for q in around
        )

    def follow(self, words: Sequence[int], text: Sequence[int]) -> tuple[int, int, int]:
        """The best alignment of beginnings: (score, words of the text, words of the document)."""
        table = {(0, 0): 0}
        for here in range(1, min(self.width, self.reach, len(text)) + 1):
            score = table[here - 1, 0] - self.costs_here[text[here - 1]]
            if score < -self.drop:
                break
            table[here, 0] = score
        best = (0, 0, 0)
        for there in range(1, min(self.reach, len(words)) + 1):
            word = words[there - 1]
            for here in range(max(0, there - self.width), there + self.width + 1):
                if here > min(self.reach, len(text)):
                    break
                scores = []
                if (here, there - 1) in table:
                    scores.append(table[here, there - 1] - self.costs_there[word])
                if (here - 1, there) in table:
                    scores.append(table[here - 1, there] - self.costs_here[text[here - 1]])
                gain = self.gains.get((text[here - 1], word)) if here else None
                if gain and (here - 1, there - 1) in table:
                    scores.append(table[here - 1, there - 1] + gain)
                if here > 1 and there > 1 and (here - 2, there - 2) in table:
                    first = self.gains.get((text[here - 2], word))
                    second = self.gains.get((text[here - 1], words[there - 2]))
                    if first and second:
                        scores.append(table[here - 2, there - 2] + first + second - self.exchange)
                if scores and max(scores) >= best[0] - self.drop:
                    table[here, there] = max(scores)
                    if max(scores) > best[0]:
                        best = max(scores), here, there
        return best

    def pieces(self, words: Sequence[int]) -> set[tuple[int, int, int, int, int]]:
        """Every alignment with a document: bounds in the text, in the document, and the score."""
        found = set()
        for i in range(len(self.text)):
            for p in range(len(words)):
                if self.is_anchor(words[p:], i) and self.has_company(words, p, i):
                    score, here, there = self.follow(words[p:], self.text[i:])
                    more, before, there_before = self.follow(words[:p][::-1], self.text[:i][::-1])
                    if score + more >= self.least:
                        piece = (i - before, i + here, p - there_before, p + there, score + more)
                        found.add(piece)
        return found

    def chains(self, words: Sequence[int]) -> list[tuple[int, int, int, int, int]]:
        """Pieces beside each other as one, of each run of pieces of a document."""
        runs: list[list[tuple[int, int, int, int, int]]] = []
        for piece in sorted(self.pieces(words), key=lambda p: (*p[2:4], *p[:2], p[4])):
            if runs and piece[2] - max(other[3] for other in runs[-1]) <= self.gap:
                runs[-1].append(piece)
            else:
                runs.append([piece])
        found = []
        for run in runs:
            left = sorted(run, key=lambda piece: -piece[4])
            while left:
                taken, (a, b, c, d, score) = [left[0]], left[0]
                for piece in left[1:]:
                    e, f, g, h, more = piece
                    is_near = max(a, e) - min(b, f) <= self.gap >= max(c, g) - min(d, h)
                    is_apart = all(
                        (f <= one[0] or one[1] <= e) and (h <= one[2] or one[3] <= g)
                        for one in taken
                    )
                    if more > self.join and is_near and is_apart:
                        taken.append(piece)
                        a, b, c, d = min(a, e), max(b, f), min(c, g), max(d, h)
                        score += more - self.join
                left = [p for p in left if not (p[0] < b and a < p[1] and p[2] < d and c < p[3])]
                if score >= self.need:
                    found.append((a, b, c, d, score))
        return found

"""Phrases, and templates, that one group of texts uses more than another.

How much more is measured by log-odds with an informative Dirichlet prior (Monroe, Colaresi and
Quinn 2008). Whether more is tested by texts, not by words: the words of a text are not independent,
and a name that one text repeats forty times is not a habit of its group. So a phrase is tested by
which texts contain it, exactly and within prompts where groups share them (`stats/contrasts.py`),
and the p-values are corrected over all phrases that could pass (Holm; Tarone). That is a
permutation test of whole texts over all permutations: sampled ones could not reach the p-values
that thousands of phrases require.

Texts are cut to one length, since longer ones contain more phrases, and weighted to the same number
of texts per group and prompt: each with the probability that a draw would contain it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.core import __version__
from fabula.core.errors import InputError
from fabula.core.types import Document, Signature
from fabula.groups.diversity import IDENTICAL, NOT_ASKED, SHORT, Extra, Extras, remark_on
from fabula.groups.grouped_texts import CutTexts, GroupedTexts, Pool, Stages, cut_texts
from fabula.groups.shared_ngrams import Located, Ngrams
from fabula.reference.search import Reference
from fabula.stats.contrasts import can_pass, exact_p, holm, log_odds, smallest_p
from fabula.text import TextSettings

_EXPLAINED = 0.9
"""Share of a phrase's occurrences inside a longer one, from which it is folded into that one."""


@dataclass(frozen=True, slots=True)
class KeynessPlan:
    """What is compared, and what is listed."""

    prompt: str | None = None
    n_words: int | None = None
    shortest: int = 1
    longest: int = 5
    settings: TextSettings = TextSettings()
    extras: Sequence[Extra] = ()
    min_ratio: float = 3.0
    max_p: float = 0.05
    max_background: float = 3.0
    """Phrases more frequent than this, per million words of other texts, are not listed."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class GroupSize:
    """A group, and how much of it was compared."""

    name: str
    n_texts: int
    n_compared: int
    n_too_short: int


@dataclass(frozen=True, slots=True)
class KeyPhrase:
    """A phrase, or a template, that one group uses more than the other."""

    phrase: str
    kind: str
    """`words` or `template`."""
    n: int
    """Its words, or tags."""
    over: str
    """The group that uses it more."""
    rate_a: float
    """Occurrences per 1,000 words of A; `rate_b` likewise."""
    rate_b: float
    texts_a: int
    """Texts of A that contain it."""
    texts_b: int
    log_odds: float
    """A to B, shrunk by the prior."""
    z: float
    p: float
    p_holm: float
    folded: Sequence[str] = ()
    """Phrases that occur almost only within this one, and are not listed."""
    background: float | None = None
    """Occurrences per million words of other texts; None if not looked up."""
    example: str = ""
    """Examples of the words that a template stands for."""

    def to_json(self) -> dict[str, Any]:
        row = asdict(self)
        if not self.example:
            del row["example"]
        return row


@dataclass(frozen=True, slots=True)
class KeyPhrases:
    """What distinguishes two groups, the largest z first."""

    a: GroupSize
    b: GroupSize
    n_words: int
    n_seen: int
    """Phrases and templates that occur in several texts."""
    n_tested: int
    """Those in enough texts to pass, over which p is corrected."""
    phrases: Sequence[KeyPhrase]
    remarks: Sequence[str]
    signature: str
    n_drawn: int
    """Texts of each group that the rates are based on."""

    def over(self, group: GroupSize) -> list[KeyPhrase]:
        return [phrase for phrase in self.phrases if phrase.over == group.name]

    def to_json(self) -> dict[str, Any]:
        row = asdict(self) | {"phrases": [phrase.to_json() for phrase in self.phrases]}
        del row["n_drawn"]
        return row


def find_key_phrases(
    a: tuple[str, Sequence[Document]],
    b: tuple[str, Sequence[Document]],
    plan: KeynessPlan,
    stages: Stages | None = None,
    background: Reference | None = None,
) -> KeyPhrases:
    """What each of two named groups uses more than the other.

    Phrases common in the `background`, texts of neither group, are not tested: they are ordinary
    usage. Raises `InputError` if a text lacks its prompt, or a group lacks two texts of sufficient
    length, and `LookupFailed` if the background does not answer.
    """
    stages = stages or Stages()
    documents = [*a[1], *b[1]]
    names = [a[0]] * len(a[1]) + [b[0]] * len(b[1])
    texts = GroupedTexts.of(documents, names, plan.prompt, plan.settings, stages)
    cut = cut_texts(texts, plan.n_words, plan.seed)
    n_words = cut.n_words
    for name in (a[0], b[0]):
        if name not in cut.names:
            raise InputError(
                f"{name}: fewer than two texts of at least {n_words} words; add texts, or choose "
                "fewer words with `n_words`"
            )
    extras = Extras(plan.extras, cut, stages)
    stages.begin("counting phrases", None)
    groups = _Groups(cut.pool, cut.names.index(a[0]), cut.names.index(b[0]), plan.seed)
    located = cut.texts.in_order()
    kinds = [
        _Counted("words", ngrams, numbers, located, groups, plan)
        for ngrams, numbers in cut.texts.table(plan.settings).ngrams(plan.longest)
        if ngrams.n >= plan.shortest
    ]
    if extras.templates is not None and extras.tags is not None:
        kinds.append(_Counted("template", *extras.templates, extras.tags, groups, plan))
    tested, n_common = _tested(kinds, plan, background)
    sizes = [
        GroupSize(name, len(members), int(is_in.sum()), texts.counts(name, n_words)[1])
        for (name, members), is_in in ((a, groups.in_a), (b, groups.in_b))
    ]
    remarks, common = _remarks(texts, cut, sizes, extras), dict[str, str]()
    if background is not None:
        limit = f"{plan.max_background:g}"
        remarks.append(
            f"{n_common:,} phrases occur in {background.name} ({background.size}) more than "
            f"{limit} times per million words and were not tested"
        )
        common["background"] = f"{background.name}@{background.fingerprint},{limit}/1e6"
    signature = Signature.of(
        "phrases",
        words=str(n_words),
        texts=str(cut.pool.n_drawn),
        draws=f"{cut.pool.design},expected",
        **cut.texts.signature_parts(plan.settings),
        n=f"{plan.shortest}-{plan.longest}",
        prior="one-text",
        test="exact-by-text",
        p=f"{plan.max_p:g}",
        ratio=f"{plan.min_ratio:g}",
        **extras.signature_parts,
        **common,
        seed=str(plan.seed),
        v=__version__,
    )
    return KeyPhrases(
        a=sizes[0],
        b=sizes[1],
        n_words=n_words,
        n_seen=sum(len(kind.ngrams.ends) for kind in kinds),
        n_tested=len(tested),
        phrases=[c.key_phrase(groups, a[0], b[0], cut) for c in _passing(tested, groups, plan)],
        remarks=remarks,
        signature=str(signature),
        n_drawn=cut.pool.n_drawn,
    )


def _remarks(
    texts: GroupedTexts, cut: CutTexts, sizes: Sequence[GroupSize], extras: Extras
) -> list[str]:
    lines: list[str] = []
    for size in sizes:
        lines += remark_on(size.name, size.n_too_short, size.n_texts, SHORT.format(cut.n_words))
    for size in sizes:
        lines += remark_on(size.name, texts.counts(size.name)[2], size.n_texts, IDENTICAL)
    for size in sizes:
        n = size.n_texts - size.n_too_short - size.n_compared
        lacking = "are of prompts that the other group lacks, and were left out"
        lines += remark_on(size.name, n, size.n_texts, lacking)
    lines += [f"without {name}: {why}" for name, why in extras.left_out.items() if why != NOT_ASKED]
    if cut.pool.design == "own-prompts":
        lines.append("groups have prompts of their own: tests are of one text of each prompt")
    return lines


class _Groups:
    """The group of each text, and its weight. All shapes are (n_texts,)."""

    def __init__(self, pool: Pool, a: int, b: int, seed: int) -> None:
        self.in_a, self.in_b, self.weights = pool.labels == a, pool.labels == b, pool.weights()
        # One text per prompt is tested where groups have prompts of their own.
        self.is_tested = self.in_a | self.in_b
        self.strata = np.zeros(len(self.is_tested), np.int64)
        if pool.design == "prompts":
            self.strata = pool.units
        if pool.design == "own-prompts":
            order = np.random.default_rng([seed, 4]).permutation(len(self.is_tested))
            _, first = np.unique(pool.units[order], return_index=True)
            is_first = np.zeros(len(self.is_tested), bool)
            is_first[order[first]] = True
            self.is_tested &= is_first
        self.sizes = np.zeros((int(self.strata.max(initial=0)) + 1, 2), np.int64)
        """(n_strata, 2): the texts that are tested, and those of them in A."""
        np.add.at(self.sizes[:, 0], self.strata[self.is_tested], 1)
        np.add.at(self.sizes[:, 1], self.strata[self.is_tested & self.in_a], 1)


class _Counted:
    """The phrases of one length, or the templates, and their counts.

    numbers: (n_words,), the n-gram that begins at each word, -1 if it does not count. located: the
    words, or tags, of all texts. Counts are float64 or int64, (n_phrases,).
    """

    def __init__(
        self,
        kind: str,
        ngrams: Ngrams,
        numbers: NDArray[np.int32],
        located: Located,
        groups: _Groups,
        plan: KeynessPlan,
    ) -> None:
        self.kind, self.ngrams, self.numbers, self.located = kind, ngrams, numbers, located
        self.in_order = np.argsort(numbers, kind="stable")
        in_a, in_b = groups.in_a[ngrams.texts], groups.in_b[ngrams.texts]
        self.texts_a, self.texts_b = (ngrams.sums(is_in.astype(np.int64)) for is_in in (in_a, in_b))
        weighed = groups.weights[ngrams.texts] * ngrams.counts
        self.a, self.b = (ngrams.sums(np.where(is_in, weighed, 0.0)) for is_in in (in_a, in_b))
        totals = groups.weights * ngrams.totals
        n_a, n_b = (float(totals[is_in].sum()) for is_in in (groups.in_a, groups.in_b))
        size = n_a / float(groups.weights[groups.in_a].sum())
        with np.errstate(invalid="ignore", divide="ignore"):
            self.log_odds, self.z = log_odds(self.a, self.b, n_a, n_b, size)
        # The smallest p that the test of each n-gram could give, whichever texts were in A. A
        # stratum where no text has it has only one outcome.
        n_ngrams, n_strata = len(ngrams.ends), len(groups.sizes)
        which = np.repeat(np.arange(n_ngrams), np.diff(ngrams.ends, prepend=0))
        keys = which * n_strata + groups.strata[ngrams.texts]
        rows, n_holders = np.unique(keys[groups.is_tested[ngrams.texts]], return_counts=True)
        strata = np.column_stack([groups.sizes[rows % n_strata], n_holders])
        self.p_bound = smallest_p(rows // n_strata, strata, n_ngrams)


@dataclass(slots=True)
class _Candidate:
    """A phrase that could pass, and how its test ended."""

    of: _Counted
    t: int
    """Its number among the n-grams."""
    background: float | None = None
    """Its frequency per million words of the background."""
    p: float = 1.0
    p_holm: float = 1.0
    folded: list[str] = field(default_factory=list)

    @property
    def is_over_a(self) -> bool:
        return bool(self.of.log_odds[self.t] > 0)

    @property
    def texts(self) -> NDArray[np.int32]:
        return self.of.ngrams.texts[self.of.ngrams.entries(self.t)]

    def spelled(self) -> str:
        ngrams = self.of.ngrams
        first = int(ngrams.firsts[ngrams.entries(self.t).start])
        return " ".join(self.of.located.words(first, ngrams.n))

    def key_phrase(self, groups: _Groups, a: str, b: str, cut: CutTexts) -> KeyPhrase:
        counted, t = self.of, self.t
        example = ""
        if counted.kind == "template":
            # Preferably from a text of the group that uses it more.
            of_group = groups.in_a if self.is_over_a else groups.in_b
            place = int(np.flatnonzero(of_group[self.texts])[0])
            first = int(counted.ngrams.firsts[counted.ngrams.entries(t)][place])
            number, span = int(self.texts[place]), counted.located.span(first, counted.ngrams.n)
            example = " ".join(cut.texts.documents[number].text[span.start : span.end].split())
        n_thousands = cut.pool.n_drawn * cut.n_words / 1000
        rates = float(counted.a[t]) / n_thousands, float(counted.b[t]) / n_thousands
        texts = int(counted.texts_a[t]), int(counted.texts_b[t])
        odds = float(counted.log_odds[t]), float(counted.z[t])
        over, folded = a if self.is_over_a else b, sorted(self.folded)
        about = self.spelled(), counted.kind, counted.ngrams.n, over
        return KeyPhrase(
            *about, *rates, *texts, *odds, self.p, self.p_holm, folded, self.background, example
        )


def _tested(
    kinds: Sequence[_Counted], plan: KeynessPlan, background: Reference | None
) -> tuple[list[_Candidate], int]:
    """The phrases that could pass and are not common elsewhere, and how many are.

    Neither depends on which texts are in A, so a correction over these keeps its level.
    """
    could = can_pass(np.concatenate([kind.p_bound for kind in kinds]), plan.max_p)
    ends = np.cumsum([len(kind.p_bound) for kind in kinds])
    candidates = [
        _Candidate(kind, int(t))
        for kind, end in zip(kinds, ends, strict=True)
        for t in np.flatnonzero(could[end - len(kind.p_bound) : end])
    ]
    if background is None:
        return candidates, 0
    words = [phrase for phrase in candidates if phrase.of.kind == "words"]
    counts = background.counts([background.locate(phrase.spelled()).words for phrase in words])
    for phrase, n in zip(words, counts, strict=True):
        phrase.background = 1e6 * n / max(1, background.n_words)
    # Templates stand for any words, so the background cannot be consulted.
    kept = [phrase for phrase in candidates if (phrase.background or 0.0) <= plan.max_background]
    return kept, len(candidates) - len(kept)


def _passing(tested: Sequence[_Candidate], groups: _Groups, plan: KeynessPlan) -> list[_Candidate]:
    """The phrases that pass, without those whose occurrences nearly all lie in one that is kept.

    The longest come first. An occurrence lies in another if more than half of its words do, so that
    overlaps are folded too: a sentence of ten words contains six runs of five.
    """
    for phrase in tested:
        texts = phrase.texts[groups.is_tested[phrase.texts]]
        n_of = Counter(groups.strata[texts].tolist())
        strata = [(int(groups.sizes[k, 0]), int(groups.sizes[k, 1]), n) for k, n in n_of.items()]
        phrase.p = exact_p(strata, int(np.count_nonzero(groups.in_a[texts])))
    kept: dict[tuple[str, bool], list[_Candidate]] = {}
    over: dict[tuple[str, bool], dict[int, list[int]]] = {}
    passing = []
    for phrase, p_holm in zip(tested, holm([phrase.p for phrase in tested]), strict=True):
        difference, weights = float(phrase.of.log_odds[phrase.t]), groups.weights[phrase.texts]
        more = weights[groups.in_a[phrase.texts]].sum() - weights[groups.in_b[phrase.texts]].sum()
        # The group that uses it more often must also have more texts that do.
        if p_holm is not None and p_holm <= plan.max_p and float(more) * difference > 0:
            phrase.p_holm = p_holm
            if abs(difference) >= np.log(plan.min_ratio):
                passing.append(phrase)
    passing.sort(key=lambda c: (-c.of.ngrams.n, -abs(float(c.of.z[c.t])), c.spelled()))
    for phrase in passing:
        side = phrase.of.kind, phrase.is_over_a
        listed, covered = kept.setdefault(side, []), over.setdefault(side, {})
        ngrams, numbers, in_order = phrase.of.ngrams, phrase.of.numbers, phrase.of.in_order
        number = numbers[ngrams.firsts[ngrams.entries(phrase.t).start]]
        low, high = np.searchsorted(numbers, (number, number + 1), sorter=in_order)
        places: list[int] = in_order[low:high].tolist()
        explained: Counter[int] = Counter()
        for place in places:
            words = range(place, place + ngrams.n)
            inside = Counter(k for word in words for k in covered.get(word, ()))
            explained.update(k for k, n_inside in inside.items() if 2 * n_inside > ngrams.n)
        best = max(explained, key=lambda k: (explained[k], -k), default=None)
        if best is not None and explained[best] >= _EXPLAINED * len(places):
            listed[best].folded.append(phrase.spelled())
            continue
        for place in places:
            for word in range(place, place + ngrams.n):
                covered.setdefault(word, []).append(len(listed))
        listed.append(phrase)
    sides = product(("words", "template"), (False, True))
    folded = [phrase for side in sides for phrase in kept.get(side, ())]
    return sorted(folded, key=lambda phrase: (-abs(float(phrase.of.z[phrase.t])), phrase.spelled()))

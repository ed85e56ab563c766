"""The noun phrases of a sentence as mentions: what each may refer to, and who speaks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from fabula.measures.linguistic.lexicon import (
    ANIMALS,
    FEMALE,
    MALE,
    PERSONS,
    PRONOUNS,
    TIMES,
    TITLES,
)
from fabula.measures.linguistic.parsing import Parsed, Phrase, Token
from fabula.text.speech import SAYING, flags_within, speech_spans

_ARTICLES = frozenset(("the", "a", "an", "this", "that", "these", "those", "all", "both"))
_DEFINITE = frozenset(("the", "this", "that", "these", "those", "all", "both"))
_SUBJECTS = frozenset(("nsubj", "nsubjpass", "csubj"))
_BE = frozenset(("is", "was", "'s", "be", "were", "been", "are", "seemed", "seems", "’s"))
_CLAUSES = frozenset(("ccomp", "xcomp", "advcl", "csubj", "relcl", "acl"))


@dataclass(frozen=True, slots=True)
class Mention:
    """A noun phrase, and what its form reveals."""

    phrase: Phrase
    kind: str
    """`pronoun`, `relative`, `name`, `noun`, or `empty`, which refers to nothing ("it rained")."""
    head: str
    key: tuple[str, ...]
    """Its words without articles, lower-cased."""
    names: frozenset[str]
    modifiers: frozenset[str]
    is_definite: bool
    possessor: str
    """The owner: "his" in "his hat"; empty if none is given."""
    person: int
    number: str
    genders: frozenset[str]
    is_subject: bool
    verb: int
    """The verb that governs it, through a preposition too ("said to him"); or another token."""
    in_quote: bool
    beside: int
    """The token that it is in apposition to, or that it is a relative of; or -1."""


@dataclass(frozen=True, slots=True)
class Speech:
    """The speakers of a sentence."""

    in_quote: tuple[bool, ...]
    """For each token."""
    goes_on: bool
    """Whether it begins inside a quote that started in an earlier sentence."""
    speaker: int
    """The token that names the speaker, or -1."""
    addressee: int
    """The token that names the addressee, or -1."""


def read_speech(sentences: Sequence[Parsed]) -> list[Speech]:
    """Which tokens of consecutive sentences are in quoted speech, and who speaks in each."""
    starts = itertools.accumulate((len(one.text) + 1 for one in sentences), initial=0)
    text = " ".join(sentence.text for sentence in sentences)
    spans = speech_spans(text, has_paragraphs=False)
    found = []
    for start, sentence in zip(starts, sentences, strict=False):
        inside = flags_within((start + token.start for token in sentence.tokens), spans)
        goes_on = any(a < start < b for a, b in spans)
        speaker, addressee = _speaker(sentence.tokens, inside) if any(inside) else (-1, -1)
        found.append(Speech(tuple(inside), goes_on, speaker, addressee))
    return found


def _speaker(tokens: Sequence[Token], inside: Sequence[bool]) -> tuple[int, int]:
    """The subject of a speech verb outside the quotes, and the addressee."""
    for k, token in enumerate(tokens):
        if inside[k] or token.lower not in SAYING:
            continue
        below = [i for i, t in enumerate(tokens) if t.head == k and not inside[i] and i != k]
        subjects = [i for i in below if tokens[i].dep in _SUBJECTS]
        subjects += [
            i
            for i in range(k + 1, min(k + 5, len(tokens)))
            if not inside[i] and tokens[i].pos in ("NOUN", "PROPN", "PRON")
        ]
        if not subjects:
            continue
        to = {i for i in below if tokens[i].lower in ("to", "unto")}
        heard = [i for i, t in enumerate(tokens) if t.dep == "pobj" and t.head in to]
        heard += [i for i in below if tokens[i].dep in ("dobj", "dative") and i not in to]
        return subjects[0], heard[0] if heard else -1
    return -1, -1


def mentions_of(parsed: Parsed, speech: Speech) -> list[Mention]:
    """The noun phrases of a sentence, in order."""
    return [_mention(parsed.tokens, phrase, speech) for phrase in parsed.noun_phrases]


def _mention(tokens: Sequence[Token], phrase: Phrase, speech: Speech) -> Mention:
    inside = tokens[phrase.start : phrase.end]
    root = tokens[phrase.root]
    words = [token.lower for token in inside if token.is_word]
    key = tuple(word for word in words if word not in _ARTICLES)
    owners = [t for t in inside if t.dep == "poss"]
    kind = _kind(tokens, phrase)
    person, number, genders = _features(root, inside, kind)
    beside = tokens[phrase.root].head if root.dep == "appos" else -1
    if kind == "relative":
        verb = _clause(tokens, root.head)
        beside = tokens[verb].head if tokens[verb].dep == "relcl" else -1
    return Mention(
        phrase=phrase,
        kind=kind,
        head=root.lower,
        key=key,
        names=frozenset(
            t.lower
            for t in inside
            if t.pos == "PROPN" and t.is_word and t.dep != "poss" and t.lower not in TITLES
        ),
        modifiers=frozenset(
            t.lower
            for t in inside
            if t.head == phrase.root and t.pos in ("ADJ", "NUM", "NOUN", "VERB")
        ),
        # "The trees", "Anne"; not "trees" in general.
        is_definite=root.pos == "PROPN" or bool(owners) or (bool(words) and words[0] in _DEFINITE),
        possessor=owners[0].lower if owners else "",
        person=person,
        number=number,
        genders=frozenset(genders),
        is_subject=root.dep in _SUBJECTS,
        verb=tokens[root.head].head if tokens[root.head].pos == "ADP" else root.head,
        in_quote=speech.in_quote[phrase.root],
        beside=beside,
    )


def _clause(tokens: Sequence[Token], k: int) -> int:
    """The verb of the relative clause that contains a token, or its own governor."""
    for _ in range(3):
        if tokens[k].dep == "relcl" or tokens[k].head == k:
            return k
        k = tokens[k].head
    return k


def _kind(tokens: Sequence[Token], phrase: Phrase) -> str:
    root = tokens[phrase.root]
    if root.tag in ("WP", "WDT", "WP$") or (root.lower == "that" and root.tag == "WDT"):
        return "relative"
    if root.lower in PRONOUNS and phrase.end - phrase.start == 1:
        return "empty" if root.lower == "it" and _means_nothing(tokens, phrase.root) else "pronoun"
    if root.pos == "PRON" or root.dep == "expl":
        return "empty"
    return "name" if root.pos == "PROPN" else "noun"


def _means_nothing(tokens: Sequence[Token], k: int) -> bool:
    """Whether an `it` is expletive: "it was night", "it seemed that", "in spite of it"."""
    if tokens[k].dep == "expl":
        return True
    verb = tokens[k].head
    if tokens[k].dep not in _SUBJECTS or tokens[verb].lower not in _BE:
        return False
    below = [i for i in range(verb + 1, len(tokens)) if tokens[i].head == verb]
    return any(tokens[i].dep in _CLAUSES or tokens[i].lower in TIMES for i in below)


def _features(root: Token, inside: Sequence[Token], kind: str) -> tuple[int, str, str]:
    """Person, number and possible genders of a mention."""
    if kind == "pronoun":
        return PRONOUNS[root.lower]
    if root.tag in ("NNS", "NNPS"):
        return 3, "p", "mfn"
    words = {root.lower}
    if kind == "name":
        words |= {token.lower.rstrip(".") for token in inside if token.dep != "poss"}
    if words & FEMALE:
        return 3, "s", "f"
    if words & MALE:
        return 3, "s", "m"
    if kind == "name" or root.lower in PERSONS:
        return 3, "s", "mf"
    return 3, "s", "mfn" if root.lower in ANIMALS else "n"

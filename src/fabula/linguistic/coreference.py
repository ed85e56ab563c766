"""Which noun phrases corefer: a sieve of rules, the most reliable first.

Roemmele, Gordon and Swanson 2017, section 4.2, "Entity Coreference" (metric 15) needs to know which
entities of a continuation were in its context. The rules resemble those of Lee et al. 2013
("Deterministic coreference resolution"): apposition, equal words, names, heads, then pronouns by
person, number, gender and speaker. They depend only on the parse.
"""

from __future__ import annotations

import copy
import itertools
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files

from fabula.text.parsing import Parsed, Phrase, Token
from fabula.text.speech import READER, SAYING, flags_within, speech_spans
from fabula.text.words import word_set

_NOUNS = files("fabula.linguistic").joinpath("noun_words.toml").read_text(encoding="utf-8")
_WORDS = {name: word_set(words) for name, words in tomllib.loads(_NOUNS).items()}
_PRONOUNS: dict[str, tuple[int, str, str]] = {
    **dict.fromkeys(("i", "me", "myself", "mine"), (1, "s", "mf")),
    **dict.fromkeys(("we", "us", "ourselves", "ours", "'s"), (1, "p", "mfn")),
    **dict.fromkeys(("you", "yourself", "thou", "thee", "ye", "yours"), (2, "s", "mf")),
    **dict.fromkeys(("he", "him", "himself", "his"), (3, "s", "m")),
    **dict.fromkeys(("she", "her", "herself", "hers"), (3, "s", "f")),
    **dict.fromkeys(("it", "itself"), (3, "s", "n")),
    **dict.fromkeys(("they", "them", "themselves", "'em", "theirs"), (3, "p", "mfn")),
}
"""Person, number and genders of a pronoun."""

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
    starts = itertools.accumulate((len(sentence.text) + 1 for sentence in sentences), initial=0)
    spans = speech_spans(" ".join(sentence.text for sentence in sentences), has_paragraphs=False)
    speeches = []
    for start, sentence in zip(starts, sentences, strict=False):
        inside = flags_within((start + token.start for token in sentence.tokens), spans)
        goes_on = any(a < start < b for a, b in spans)
        # The subject of a speech verb outside the quotes, and the addressee.
        speaker = addressee = -1
        tokens = sentence.tokens
        for k, token in enumerate(tokens if any(inside) else ()):
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
            speaker, addressee = subjects[0], heard[0] if heard else -1
            break
        speeches.append(Speech(tuple(inside), goes_on, speaker, addressee))
    return speeches


def _mention(tokens: Sequence[Token], phrase: Phrase, speech: Speech) -> Mention:
    inside = tokens[phrase.start : phrase.end]
    root = tokens[phrase.root]
    words = [token.lower for token in inside if token.is_word]
    key = tuple(word for word in words if word not in _ARTICLES)
    owners = [t for t in inside if t.dep == "poss"]
    kind = "name" if root.pos == "PROPN" else "noun"
    if root.tag in ("WP", "WDT", "WP$"):
        kind = "relative"
    elif root.lower in _PRONOUNS and len(inside) == 1:
        kind = "empty" if root.lower == "it" and _means_nothing(tokens, phrase.root) else "pronoun"
    elif root.pos == "PRON" or root.dep == "expl":
        kind = "empty"
    person, number, genders = _features(root, inside, kind)
    names = {t.lower for t in inside if t.pos == "PROPN" and t.is_word and t.dep != "poss"}
    below = [t for t in inside if t.head == phrase.root]
    beside = root.head if root.dep == "appos" else -1
    if kind == "relative":
        # The verb of its clause is at most three tokens above.
        verb = root.head
        for _ in range(3):
            if tokens[verb].dep != "relcl":
                verb = tokens[verb].head
        beside = tokens[verb].head if tokens[verb].dep == "relcl" else -1
    return Mention(
        phrase=phrase,
        kind=kind,
        head=root.lower,
        key=key,
        names=frozenset(names - _WORDS["titles"]),
        modifiers=frozenset(t.lower for t in below if t.pos in ("ADJ", "NUM", "NOUN", "VERB")),
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


def _means_nothing(tokens: Sequence[Token], k: int) -> bool:
    """Whether an `it` is expletive: "it was night", "it seemed that", "in spite of it"."""
    if tokens[k].dep == "expl":
        return True
    verb = tokens[k].head
    if tokens[k].dep not in _SUBJECTS or tokens[verb].lower not in _BE:
        return False
    below = [i for i in range(verb + 1, len(tokens)) if tokens[i].head == verb]
    return any(tokens[i].dep in _CLAUSES or tokens[i].lower in _WORDS["times"] for i in below)


def _features(root: Token, inside: Sequence[Token], kind: str) -> tuple[int, str, str]:
    """Person, number and possible genders of a mention."""
    if kind == "pronoun":
        return _PRONOUNS[root.lower]
    if root.tag in ("NNS", "NNPS"):
        return 3, "p", "mfn"
    words = {root.lower}
    if kind == "name":
        words |= {token.lower.rstrip(".") for token in inside if token.dep != "poss"}
    if words & _WORDS["female"]:
        return 3, "s", "f"
    if words & _WORDS["male"]:
        return 3, "s", "m"
    if kind == "name" or root.lower in _WORDS["persons"]:
        return 3, "s", "mf"
    return 3, "s", "mfn" if root.lower in _WORDS["animals"] else "n"


RULES = f"sieve2,{READER}"
"""What determines which phrases corefer, for signatures."""
_REFLEXIVE = frozenset(("myself", "yourself", "himself", "herself", "itself", "themselves"))
_PRONOUN_REACH = 4
"""How many sentences back a pronoun may refer."""


@dataclass(slots=True)
class _Entity:
    number: str
    genders: frozenset[str]
    keys: set[tuple[str, ...]] = field(default_factory=set)
    heads: set[tuple[str, str]] = field(default_factory=set)
    names: frozenset[str] = frozenset()
    modifiers: frozenset[str] = frozenset()
    n_mentions: int = 0
    last_sentence: int = -1
    was_subject: bool = False
    last_place: int = -1


def _named_by(token: int, mentions: Sequence[Mention], entities: Sequence[int]) -> int:
    """The entity of the first mention that a token is in; -1 if there is none."""
    both = zip(mentions, entities, strict=True)
    return next((e for m, e in both if m.phrase.start <= token < m.phrase.end), -1)


class _State:
    """The entities so far, and the current speakers."""

    def __init__(self) -> None:
        self.entities: list[_Entity] = []
        self.n_sentences = 0
        self.speaker = self.last_speaker = self.addressee = self.subject = -1
        self.narrator = self.us = -1
        self.was_quote = False

    def copy(self) -> _State:
        copied = copy.copy(self)
        copied.entities = [replace(e, keys=set(e.keys), heads=set(e.heads)) for e in self.entities]
        return copied

    def read(self, parsed: Parsed, speech: Speech) -> list[int]:
        """The entity of each noun phrase of the next sentence; -1 if it refers to nothing."""
        mentions = [_mention(parsed.tokens, phrase, speech) for phrase in parsed.noun_phrases]
        entities = [-1] * len(mentions)
        # The speaker is named outside the quotes, often after them.
        order = sorted(range(len(mentions)), key=lambda k: mentions[k].in_quote)
        outside = sum(not mention.in_quote for mention in mentions)
        for k in order[:outside]:
            entities[k] = self._entity(mentions, k, entities)
        if any(speech.in_quote):
            # The speaker and the addressee of the quotes in this sentence.
            named = _named_by(speech.speaker, mentions, entities)
            heard = _named_by(speech.addressee, mentions, entities)
            speaker = self.subject
            if named >= 0:
                speaker = named
            elif speech.goes_on:
                speaker = self.speaker
            elif self.was_quote:
                speaker = self.last_speaker
            if speaker != self.speaker:
                self.last_speaker, self.speaker = self.speaker, speaker
            if heard >= 0:
                self.addressee = heard
            elif not speech.goes_on or named >= 0:
                candidates = (
                    (entity.last_sentence, entity.n_mentions, k)
                    for k, entity in enumerate(self.entities)
                    if k != speaker and entity.number == "s" and entity.genders <= frozenset("mf")
                )
                latest = max(candidates, default=(0, 0, -1))[2]
                self.addressee = self.last_speaker if self.last_speaker >= 0 else latest
        for k in order[outside:]:
            entities[k] = self._entity(mentions, k, entities)
        subjects = (
            e
            for m, e in zip(mentions, entities, strict=True)
            if m.is_subject
            and not m.in_quote
            and e >= 0
            and self.entities[e].number == "s"
            and self.entities[e].genders != frozenset("n")
        )
        self.subject = next(subjects, -1)
        self.was_quote = any(speech.in_quote)
        self.n_sentences += 1
        return entities

    def _entity(self, mentions: Sequence[Mention], k: int, entities: Sequence[int]) -> int:
        """The entity of a mention, a new one if no rule finds one."""
        mention = mentions[k]
        if mention.kind == "empty":
            return -1
        for other, entity in zip(mentions, entities, strict=True):
            # The parser also tags list items as apposition.
            is_alike = other.number == mention.number and other.genders & mention.genders
            is_other = not mention.names if other.names else mention.is_definite
            stands = other.phrase.start <= mention.beside < other.phrase.end
            if entity >= 0 and stands and (mention.kind == "relative" or (is_alike and is_other)):
                return self._join(entity, mention)
        if mention.kind == "relative":
            return -1
        if mention.kind == "pronoun":
            entity = self._pronoun(mentions, k, entities)
        else:
            entity = self._by_words(mention)
        return self._join(self._new(mention) if entity < 0 else entity, mention)

    def _by_words(self, mention: Mention) -> int:
        """By name, by equal words, by head."""
        if not mention.is_definite:
            return -1
        newest = sorted(enumerate(self.entities), key=lambda pair: -pair[1].last_sentence)
        fitting = [
            (k, entity)
            for k, entity in newest
            if entity.number == mention.number and entity.genders & mention.genders
        ]
        for k, entity in fitting:
            if entity.names & mention.names:
                return k
        for k, entity in fitting:
            if mention.key and mention.key in entity.keys:
                return k
        if mention.modifiers & _WORDS["distinguishing"] or mention.names:
            return -1
        for k, entity in fitting:
            has_head = (mention.head, mention.possessor) in entity.heads or (
                not mention.possessor and any(head == mention.head for head, _ in entity.heads)
            )
            if has_head and not (entity.modifiers & _WORDS["distinguishing"] and mention.modifiers):
                return k
        return -1

    def _pronoun(self, mentions: Sequence[Mention], k: int, entities: Sequence[int]) -> int:
        """By person; -1 for a new entity."""
        mention = mentions[k]
        if mention.head in _REFLEXIVE:
            for other, entity in zip(mentions, entities, strict=True):
                if entity >= 0 and other.verb == mention.verb and other.is_subject:
                    return entity
        if mention.person == 3:
            # The most salient compatible entity of the last few sentences, never a narrator. "He
            # saw him": two arguments of one verb are two entities.
            barred = {self.narrator, self.us}
            for other, entity in zip(mentions, entities, strict=True):
                is_either = other.is_subject or mention.is_subject
                if is_either and other.verb == mention.verb and other is not mention:
                    barred.add(entity)
            if mention.in_quote:
                barred |= {self.speaker, self.addressee}
            best, best_score = -1, -1e9
            for number, candidate in enumerate(self.entities):
                distance = self.n_sentences - candidate.last_sentence
                if (
                    number in barred
                    or distance > _PRONOUN_REACH
                    or candidate.number != mention.number
                    or not candidate.genders & mention.genders
                ):
                    continue
                score = (
                    -2.0 * distance
                    + 1.5 * candidate.was_subject
                    + 0.5 * min(candidate.n_mentions, 4)
                    + 1.0 * (mention.is_subject and candidate.was_subject)
                    + 0.01 * candidate.last_place
                    + 1.0 * (candidate.genders == mention.genders)
                )
                if score > best_score:
                    best, best_score = number, score
            return best
        if mention.person == 2 and not mention.in_quote:
            return -1
        role = "addressee"
        if mention.person == 1:
            role = "speaker" if mention.in_quote else "narrator"
            role = "us" if mention.number == "p" else role
        if getattr(self, role) < 0:
            # Who first speaks of themselves counts as mentioned twice.
            setattr(self, role, self._join(self._new(mention), mention))
        return int(getattr(self, role))

    def _new(self, mention: Mention) -> int:
        self.entities.append(_Entity(mention.number, mention.genders))
        return len(self.entities) - 1

    def _join(self, number: int, mention: Mention) -> int:
        entity = self.entities[number]
        if mention.kind != "relative":
            entity.genders = entity.genders & mention.genders or entity.genders
        if mention.kind in ("name", "noun"):
            entity.keys.add(mention.key)
            entity.heads.add((mention.head, mention.possessor))
            entity.names |= mention.names
            entity.modifiers |= mention.modifiers
        if entity.last_sentence != self.n_sentences:
            entity.was_subject = False
        entity.was_subject |= mention.is_subject
        entity.n_mentions += 1
        entity.last_sentence = self.n_sentences
        entity.last_place = -mention.phrase.start
        return number


def in_context(context: Sequence[Parsed], continuations: Sequence[Parsed]) -> list[list[bool]]:
    """For each continuation, a flag for each noun phrase: whether its entity is in the context."""
    state = _State()
    earlier = set(itertools.chain.from_iterable(entities_of(context, state))) - {-1}
    flags = []
    for continuation in continuations:
        # Quoted speech left open by the context may end here.
        speech = read_speech([*context, continuation])[-1]
        flags.append([entity in earlier for entity in state.copy().read(continuation, speech)])
    return flags


def entities_of(sentences: Sequence[Parsed], state: _State | None = None) -> list[list[int]]:
    """The entity number of each noun phrase, by sentence; -1 where it refers to nothing."""
    state = state or _State()
    return list(map(state.read, sentences, read_speech(sentences)))

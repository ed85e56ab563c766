"""Which noun phrases corefer: a sieve of rules, the most reliable first.

Roemmele, Gordon and Swanson 2017, section 4.2, "Entity Coreference" (metric 15) needs to know which
entities of a continuation were in its context. The rules resemble those of Lee et al. 2013
("Deterministic coreference resolution"): apposition, equal words, names, heads, then pronouns by
person, number, gender and speaker. They depend only on the parse.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fabula.measures.linguistic.lexicon import DISTINGUISHING
from fabula.measures.linguistic.mentions import Mention, Speech, mentions_of, read_speech
from fabula.measures.linguistic.parsing import Parsed
from fabula.text.speech import READER

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


class _State:
    """The entities so far, and the current speakers."""

    def __init__(self) -> None:
        self.entities: list[_Entity] = []
        self.n_sentences = 0
        self.speaker = self.last_speaker = self.addressee = self.subject = -1
        self.narrator = self.us = -1
        self.was_quote = False

    def copy(self) -> _State:
        other = copy.copy(self)
        other.entities = [
            replace(entity, keys=set(entity.keys), heads=set(entity.heads))
            for entity in self.entities
        ]
        return other

    def read(self, parsed: Parsed, speech: Speech) -> list[int]:
        """The entity of each noun phrase of the next sentence; -1 if it refers to nothing."""
        mentions = mentions_of(parsed, speech)
        found = [-1] * len(mentions)
        # The speaker is named outside the quotes, often after them.
        order = sorted(range(len(mentions)), key=lambda k: mentions[k].in_quote)
        outside = sum(not mention.in_quote for mention in mentions)
        for k in order[:outside]:
            found[k] = self._entity(mentions, k, found)
        if any(speech.in_quote):
            self._hear(speech, mentions, found)
        for k in order[outside:]:
            found[k] = self._entity(mentions, k, found)
        subjects = (
            e
            for m, e in zip(mentions, found, strict=True)
            if m.is_subject
            and not m.in_quote
            and e >= 0
            and self.entities[e].number == "s"
            and self.entities[e].genders != frozenset("n")
        )
        self.subject = next(subjects, -1)
        self.was_quote = any(speech.in_quote)
        self.n_sentences += 1
        return found

    def _hear(self, speech: Speech, mentions: Sequence[Mention], found: Sequence[int]) -> None:
        """Determine the speaker and the addressee of the quotes in this sentence."""

        def entity_at(token: int) -> int:
            pairs = zip(mentions, found, strict=True)
            return next((e for m, e in pairs if m.phrase.start <= token < m.phrase.end), -1)

        named, heard = entity_at(speech.speaker), entity_at(speech.addressee)
        if named >= 0:
            speaker = named
        elif speech.goes_on:
            speaker = self.speaker
        elif self.was_quote:
            speaker = self.last_speaker
        else:
            speaker = self.subject
        if speaker != self.speaker:
            self.last_speaker, self.speaker = self.speaker, speaker
        if heard >= 0:
            self.addressee = heard
        elif not speech.goes_on or named >= 0:
            self.addressee = (
                self.last_speaker if self.last_speaker >= 0 else self._other_person(speaker)
            )

    def _other_person(self, speaker: int) -> int:
        persons = (
            (entity.last_sentence, entity.n_mentions, k)
            for k, entity in enumerate(self.entities)
            if k != speaker and entity.number == "s" and entity.genders <= frozenset("mf")
        )
        return max(persons, default=(0, 0, -1))[2]

    def _entity(self, mentions: Sequence[Mention], k: int, found: Sequence[int]) -> int:
        """The entity of a mention, a new one if no rule finds one."""
        mention = mentions[k]
        if mention.kind == "empty":
            return -1
        for other, entity in zip(mentions, found, strict=True):
            stands = other.phrase.start <= mention.beside < other.phrase.end
            if entity >= 0 and stands and self._may_stand_beside(other, mention):
                return self._join(entity, mention)
        if mention.kind == "relative":
            return -1
        if mention.kind == "pronoun":
            return self._pronoun(mentions, k, found)
        entity = self._by_words(mention)
        return self._join(entity, mention) if entity >= 0 else self._new(mention)

    def _may_stand_beside(self, first: Mention, second: Mention) -> bool:
        """Whether both name one entity; the parser also tags list items as apposition."""
        if second.kind == "relative":
            return True
        if first.number != second.number or not first.genders & second.genders:
            return False
        return not second.names if first.names else second.is_definite

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
        if mention.modifiers & DISTINGUISHING or mention.names:
            return -1
        for k, entity in fitting:
            has_head = (mention.head, mention.possessor) in entity.heads or (
                not mention.possessor and any(head == mention.head for head, _ in entity.heads)
            )
            if has_head and not (entity.modifiers & DISTINGUISHING and mention.modifiers):
                return k
        return -1

    def _pronoun(self, mentions: Sequence[Mention], k: int, found: Sequence[int]) -> int:
        mention = mentions[k]
        if mention.head in _REFLEXIVE:
            for other, entity in zip(mentions, found, strict=True):
                if entity >= 0 and other.verb == mention.verb and other.is_subject:
                    return self._join(entity, mention)
        if mention.person == 1 and mention.number == "p":
            if self.us < 0:
                self.us = self._new(mention)
            return self._join(self.us, mention)
        if mention.person == 1 and not mention.in_quote:
            if self.narrator < 0:
                self.narrator = self._new(mention)
            return self._join(self.narrator, mention)
        if mention.person == 1:
            if self.speaker < 0:
                self.speaker = self._new(mention)
            return self._join(self.speaker, mention)
        if mention.person == 2:
            if not mention.in_quote:
                return self._new(mention)
            if self.addressee < 0:
                self.addressee = self._new(mention)
            return self._join(self.addressee, mention)
        entity = self._third_person(mentions, k, found)
        return self._join(entity, mention) if entity >= 0 else self._new(mention)

    def _third_person(self, mentions: Sequence[Mention], k: int, found: Sequence[int]) -> int:
        """The most salient compatible entity of the last few sentences."""
        mention = mentions[k]
        # "He saw him": two arguments of one verb are two entities.
        barred = {
            e
            for m, e in zip(mentions, found, strict=True)
            if m.verb == mention.verb
            and m is not mention
            and e >= 0
            and (m.is_subject or mention.is_subject)
        }
        if mention.in_quote:
            barred |= {self.speaker, self.addressee}
        best, best_score = -1, -1e9
        for number, entity in enumerate(self.entities):
            distance = self.n_sentences - entity.last_sentence
            if (
                number in barred
                or distance > _PRONOUN_REACH
                or entity.number != mention.number
                or not entity.genders & mention.genders
                or number in (self.narrator, self.us)
            ):
                continue
            score = (
                -2.0 * distance
                + 1.5 * entity.was_subject
                + 0.5 * min(entity.n_mentions, 4)
                + 1.0 * (mention.is_subject and entity.was_subject)
                + 0.01 * entity.last_place
                + 1.0 * (entity.genders == mention.genders)
            )
            if score > best_score:
                best, best_score = number, score
        return best

    def _new(self, mention: Mention) -> int:
        self.entities.append(_Entity(mention.number, mention.genders))
        return self._join(len(self.entities) - 1, mention)

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


class Sieve:
    """Coreference by the rules of this module."""

    name = f"sieve2,{READER}"

    def in_context(
        self, context: Sequence[Parsed], continuations: Sequence[Sequence[Parsed]]
    ) -> list[list[bool]]:
        """For each continuation, a flag for each noun phrase: whether its entity is in the context.

        Texts are lists of parsed sentences.
        """
        state = _State()
        known = set(itertools.chain.from_iterable(_read(state, context))) - {-1}
        flags = []
        for sentences in continuations:
            # Quoted speech left open by the context may end here.
            speech = read_speech([*context, *sentences])[len(context) :]
            after = state.copy()
            found = map(after.read, sentences, speech)
            flags.append([entity in known for part in found for entity in part])
        return flags


def entities_of(sentences: Sequence[Parsed]) -> list[list[int]]:
    """The entity number of each noun phrase, by sentence; -1 where it refers to nothing."""
    return _read(_State(), sentences)


def _read(state: _State, sentences: Sequence[Parsed]) -> list[list[int]]:
    return list(map(state.read, sentences, read_speech(sentences)))

"""A tense shift: a few sentences in the middle of a past-tense story are in the present."""

from __future__ import annotations

from typing import Any

import numpy as np

from fabula.tasks.feedback.inflecting import base_of_past, third_person
from fabula.tasks.feedback.narration import Narration, excerpt, word_set
from fabula.tasks.feedback.story_edits import Edit, Fault

__all__ = ["check_tense", "in_present", "shift_tense"]

_MIN_SENTENCES, _MAX_SENTENCES, _MIN_VERBS = 2, 4, 3
_PRESENT_TAGS = frozenset({"VBZ", "VBP"})
# These tie a sentence to the past, or are ambiguous: such a sentence is left alone.
_HINDRANCES = word_set(
    "ago yesterday formerly previously earlier before since once last used would might "
    "'d ’d 's ’s 're ’re 've ’ve 'm ’m d ought wish wished if though unless better"
)
_SINGULAR = word_set(
    "he she it this that one someone somebody something everyone everybody everything anyone "
    "anybody anything nobody nothing each who what another neither either"
)
_PLURAL = word_set(
    "i you we they these those both many few several people police men women "
    "children feet teeth mice geese folk gentlemen"
)
_UNSURE_HEADS = word_set(
    "couple number lot rest half majority pair group series plenty variety crowd team family "
    "handful dozen all some none most more any"
)


def shift_tense(story: Narration, rng: np.random.Generator) -> Fault | str:
    """Put two to four consecutive sentences of narration from the past into the present."""
    if story.tense != "past":
        return "it is not told in the past tense"
    n = len(story.sentences)
    changes = [_sentence_in_present(story, k) for k in range(n)]
    # The middle: neither the first quarter nor the last.
    middle = range(n // 4, n - n // 4)
    windows = [
        (k, length)
        for length in range(_MIN_SENTENCES, _MAX_SENTENCES + 1)
        for k in middle[: max(len(middle) - length + 1, 0)]
        if all(changes[k : k + length])
        and sum(len(found or []) for found in changes[k : k + length]) >= _MIN_VERBS
    ]
    if windows:
        k, length = windows[int(rng.integers(len(windows)))]
        return _shifted(story, k, [e for found in changes[k : k + length] for e in found or []])
    return "no sentences near its middle can safely be put into the present tense"


def _shifted(story: Narration, k: int, edits: list[Edit]) -> Fault:
    n_sentences = story.sentence_of(edits[-1].start) - k + 1
    number = {2: "two", 3: "three", 4: "four"}[n_sentences]
    shown = excerpt(story.text, story.sentences[k], edits)
    return Fault(
        "tense",
        tuple(edits),
        f"The {number} sentences from '{shown}' on are told in "
        f"the present tense; the rest of the story is told in the past.",
        {
            "verbs": [[story.text[e.start : e.end], e.text] for e in edits],
            "place": story.sentences[k][0],
            "n_sentences": n_sentences,
        },
    )


def _sentence_in_present(story: Narration, k: int) -> list[Edit] | None:
    """The edits that put a sentence into the present; None if that is not certain."""
    start, end = story.sentences[k]
    if story.is_quoted(start, end):
        return None
    words = [(at, token) for at, token in _words_between(story, start, end)]
    if any(
        (token.lower_ in _HINDRANCES and token.tag_ != "POS") or token.tag_ in _PRESENT_TAGS
        for _, token in words
    ):
        return None
    edits = []
    for at, token in words:
        if _is_doubtful(token):
            return None
        if token.tag_ == "VBD" or token.lower_ == "could":
            new = in_present(token)
            if new is None:
                return None
            if new != token.text:
                edits.append(Edit(at, at + len(token), new))
    return edits or None


def _words_between(story: Narration, start: int, end: int) -> list[tuple[int, Any]]:
    return [
        (begin + token.idx, token)
        for begin, doc in story.docs
        if begin < end and start < begin + len(doc.text)
        for token in doc
        if start <= begin + token.idx < end
    ]


def _is_doubtful(token: Any) -> bool:
    """Whether a word may be a finite past verb, or may not be one, contrary to its tag."""
    helpers = [c for c in token.lefts if c.dep_ in ("aux", "auxpass")]
    has_subject = any(c.dep_ in ("nsubj", "nsubjpass", "expl") for c in token.children)
    if token.tag_ == "VBD":
        if token.dep_ == "aux":
            # A past perfect would have to become a past tense.
            return bool(token.lower_ == "had")
        if token.dep_ == "ROOT" and any(c.dep_ == "mark" for c in token.lefts):
            # "As they sat, a sense of peace washed over them", whose main verb is not detected.
            return True
        # Often really a participle: anyone caught at it was punished; one life cut short, ...
        is_clause = token.dep_ in ("ROOT", "conj", "advcl", "auxpass", "parataxis")
        is_said = token.dep_ == "ccomp" and token.i > token.head.i
        return not (is_clause or is_said or (token.dep_ == "relcl" and has_subject))
    if token.tag_ == "VBN":
        # After `had` or `was`, or beside a noun, it is a participle; elsewhere it may be a past.
        joined = token.dep_ == "conj" and not any(
            c.dep_ in ("aux", "auxpass") for c in token.head.lefts
        )
        return (has_subject or joined or token.dep_ in ("ROOT", "ccomp", "relcl")) and not helpers
    if token.tag_ == "VB":
        # An infinitive follows `to`, an auxiliary, or a verb of seeing and letting.
        joined = token.dep_ == "conj" and token.head.tag_ != "VB"
        return (joined or token.dep_ in ("ROOT", "advcl", "relcl")) and not helpers
    return False


def in_present(token: Any) -> str | None:
    """The present form of a past one, in its case; None if it is not certain."""
    word = token.lower_
    if word == "could":
        # "Could have gone" and wishes are ambiguous.
        is_plain = token.head.tag_ == "VB" and not any(
            c.lower_ in ("have", "’ve", "'ve") for c in token.head.children
        )
        follows = token.doc[token.i + 1].lower_ if token.i + 1 < len(token.doc) else ""
        new: str | None = ("ca" if follows in ("n't", "n’t") else "can") if is_plain else None
    elif word in ("was", "were"):
        new = _be(token, word)
    else:
        base = base_of_past(word, token.lemma_.lower())
        is_third = _is_third(token)
        new = None if base is None or is_third is None else third_person(base) if is_third else base
    if new is None:
        return None
    return new.capitalize() if token.text[0].isupper() else new


def _be(token: Any, word: str) -> str | None:
    subject = _subject(token)
    if subject is not None and subject.lower_ == "i":
        follows = token.doc[token.i + 1].lower_ if token.i + 1 < len(token.doc) else ""
        return None if word == "were" or follows in ("n't", "n’t") else "am"
    if word == "were":
        # A subjunctive: as it were, were she here.
        return (
            None
            if subject is not None and subject.lower_ in _SINGULAR - {"who", "that", "what"}
            else "are"
        )
    return "is"


def _subject(verb: Any) -> Any | None:
    """The subject of a finite verb, its own or the one it shares."""
    seen = 0
    if verb.dep_ in ("aux", "auxpass"):
        verb = verb.head
    while seen < 6:
        own = [c for c in verb.children if c.dep_ in ("nsubj", "nsubjpass", "expl", "csubj")]
        if own:
            # "There is": the logical subject follows the verb.
            after = [c for c in verb.rights if c.dep_ in ("attr", "nsubj")]
            subject = after[0] if own[0].lower_ == "there" and after else own[0]
            is_relative = subject.lower_ in ("who", "which", "that") and verb.dep_ == "relcl"
            return verb.head if is_relative else subject
        if verb.dep_ != "conj":
            return None
        verb, seen = verb.head, seen + 1
    return None


def _is_third(verb: Any) -> bool | None:
    """Whether the verb's subject is a third person singular; None if that is not certain."""
    subject = _subject(verb)
    if subject is None:
        return None
    word = subject.lower_
    if any(c.dep_ == "conj" for c in subject.children):
        if verb.dep_ == "relcl":
            return None
        return False if any(c.lower_ == "and" for c in subject.children) else None
    if word in _PLURAL:
        return False
    if word in _SINGULAR:
        return True
    if word in _UNSURE_HEADS:
        return None
    if subject.tag_ in ("NN", "NNP", "VBG"):
        return True
    is_plural = subject.tag_ in ("NNS", "NNPS") and (word.endswith("s") or word in _PLURAL)
    return False if is_plural else None


def check_tense(story: Narration, fault: Fault, changed: Narration) -> str | None:
    """Why a story does not have the fault; None if it has."""
    tags = {at: token.tag_ for at, token in changed.words()}
    shift = 0
    for edit in fault.edits:
        tag = tags.get(edit.start + shift)
        if tag not in _PRESENT_TAGS and not (tag == "MD" and edit.text.lower() in ("can", "ca")):
            return f"a verb is not recognised as present ({edit.text})"
        shift += len(edit.text) - (edit.end - edit.start)
    start, end = fault.edits[0].start, fault.edits[-1].end + shift
    if any(tag == "VBD" and start <= at < end for at, tag in tags.items()):
        return "a verb is still in the past tense"
    return None if changed.tense != "present" else "most of the story is now in the present tense"

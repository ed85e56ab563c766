"""What can go wrong, and what the user should do about it.

FabulaError
  +-- InputError      a text, table or option cannot be used; names the file, the line, the fix
  +-- CorpusError     a reference corpus is missing, incomplete, damaged or does not fit
  +-- BusyError       another process is writing to the same place
  +-- LookupFailed    a reference could not answer; never to be taken for "not found"
  +-- ModelError      a language model is not available, or cannot be used in this way
  |     +-- CallFailed    one call failed after all retries; the next may succeed
  +-- WorkersEnded    a worker process was killed from outside
  +-- MixError        an attempt to compare numbers whose signatures differ

Each message is one sentence a user can act on. The command line prints it and exits with the code
of its class (docs/exit_codes.md). Below them: why a value is missing, as rows and pages say it.
"""

from __future__ import annotations

import re

DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OverflowError,
    RecursionError,
)
"""What reading the content of a damaged file raises: JSON may hold Infinity, and may be deep."""


class FabulaError(Exception):
    """Base class of all errors that Fabula raises on purpose."""


class InputError(FabulaError):
    """A text, table or option cannot be used as it is."""


class CorpusError(FabulaError):
    """A reference corpus is missing, incomplete, damaged, or does not fit the others."""


class BusyError(FabulaError):
    """Another process is writing to the same place."""


class LookupFailed(FabulaError):  # noqa: N818 (a failed look-up is an event, not a kind of Error)
    """A reference could not determine whether an n-gram occurs in it."""


class ModelError(FabulaError):
    """A language model is not installed, not reachable, lacks its key, or refuses the request."""


class CallFailed(ModelError):  # noqa: N818 (an event, as above)
    """One call of a model failed after all retries; never to be treated as an answer."""


class WorkersEnded(FabulaError):  # noqa: N818 (an event, as above)
    """A worker process was killed from outside."""


class MixError(FabulaError):
    """Two sets of numbers were measured in different ways."""


NEVER_CHECKED = "never checked against experts"
"""Said of a judge without trust."""
REASONS = {
    # A text cannot be measured.
    "no_text": "the system gave no text",
    "no_words": "no words in the text",
    "too_short": "the text is too short",
    "no_known_words": "none of its words is in the reference",
    "lookup_failed": "a look-up failed",
    "not_measured": "switched off",
    "one_sentence": "only one sentence",
    "no_noun_phrase": "no noun phrase in the text",
    "no_verb_phrase": "no verb phrase in the text",
    "no_content_word": "no content word in text and context",
    "no_vector": "no content word has a vector",
    "no_trigram": "fewer than three consecutive words",
    "no_context": "no words in the context",
    "no_headings": "no chapter headings in the text",
    "no_token": "no word of the vocabulary in the text",
    # Texts cannot be compared.
    "few_texts": "fewer than two texts to compare",
    "few_units": "no interval with fewer than 10 texts or prompts",
    "no_spread": "no interval, since the value is the same whichever texts are left out",
    # A model returned nothing usable.
    "no_answer": "the answer is empty",
    "refused": "the model refused; run the same command to ask again",
    "blocked": "withheld by the provider",
    "too_long": "longer than the model's context",
    "failed": "the call failed after all retries; run the same command to ask again",
    "no_point": "the answer makes no point and does not call the text perfect",
    "not_converged": "not close to the target length after all rounds",
    "no_similar_sentence": "no sentence of the training texts shares a word with the last one",
    # An answer contains no verdict.
    "no_verdict": "no verdict in the requested format",
    "contradictory": "a verdict that the answer contradicts or takes back",
    "refusal": "the model refused",
    "truncated": "cut off at the token limit before a verdict",
    "not_asked": "its condition does not hold",
    "gate_missing": "the answer that decides whether to ask it is missing",
    "out_of_scale": "a verdict outside the scale",
    "order": "the other story is preferred when the order is reversed",
    "not_decided": "nobody can say what is right",
    "no_preference": "neither of the two is preferred",
    "tie": "repeated answers are equally divided",
    # A page could not count what participants did.
    "no_script": "scripts are off in the browser, or its counts did not arrive",
    # A ranking could not be computed.
    "one_sided": "infinite: all informative comparisons went one way",
    "not_compared": "not compared with any other",
    "place_unknown": "the answers cannot separate it from the strengths",
}


def explain(reason: str | None) -> str:
    """The reason in words; anything that is not a code is returned unchanged."""
    return REASONS.get(reason or "", reason or "no reason given")


# C0 and C1 controls, which move a terminal's cursor or run its commands; line and paragraph
# separators; marks that change text direction, so that what follows reads as something else.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_BUT_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def without_controls(text: str, *, keep_lines: bool = False) -> str:
    """The text with each control character replaced by U+FFFD; its length does not change.

    With `keep_lines`, line feeds and tabs are kept.
    """
    return (_BUT_LINES if keep_lines else _CONTROLS).sub("\ufffd", text)


def as_text(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe goes before it."""
    if not cell or cell[0] not in "=+-@\t\r":
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell

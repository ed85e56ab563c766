"""What can go wrong, and what the user should do about it.

FabulaError
  +-- InputError      a text, table or option cannot be used; names the file, the line, the remedy
  +-- CorpusError     a reference corpus is missing, unfinished, damaged or does not fit
  +-- BusyError       another process writes where this one wants to
  +-- LookupFailed    a reference could not answer; never to be taken for "not found"
  +-- ModelError      a language model cannot be had, or cannot be used in this way
  |     +-- CallFailed    one call of it failed after all retries; the next may not
  +-- WorkersEnded    a process that did a part of the work was ended from outside
  +-- MixError        numbers whose signatures differ were about to be compared

Each message is one sentence a user can act on. The command line prints it and exits with the code
of its kind (docs/exit_codes.md).
"""

__all__ = [
    "DAMAGE",
    "BusyError",
    "CallFailed",
    "CorpusError",
    "FabulaError",
    "InputError",
    "LookupFailed",
    "MixError",
    "ModelError",
    "WorkersEnded",
]


DAMAGE = (
    ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError,
)  # fmt: skip
"""What reading the content of a damaged file raises: JSON may hold Infinity, and may be deep."""


class FabulaError(Exception):
    """Base of every error that Fabula raises on purpose."""


class InputError(FabulaError):
    """A text, a table or an option cannot be used as it is."""


class CorpusError(FabulaError):
    """A reference corpus is missing, unfinished, damaged, or does not fit the others."""


class BusyError(FabulaError):
    """Another process is writing to the same place."""


class LookupFailed(FabulaError):  # noqa: N818 (a failed look-up is an event, not a kind of Error)
    """A reference could not say whether an n-gram occurs in it."""


class ModelError(FabulaError):
    """A language model is not installed, not reachable, lacks its key, or refuses the request."""


class CallFailed(ModelError):  # noqa: N818 (an event, as above)
    """One call of a model failed after all retries: no answer, and never to be taken for one."""


class WorkersEnded(FabulaError):  # noqa: N818 (an event, as above)
    """A process that did a part of the work was ended from outside."""


class MixError(FabulaError):
    """Two sets of numbers were measured in different ways."""

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
of its class (docs/exit_codes.md).
"""

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

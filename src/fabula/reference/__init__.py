"""The reference corpus: build, add, remove, verify, search."""

from fabula.reference.backend import Attribution, Backend, LocatedText, Occurrence
from fabula.reference.search import Reference

__all__ = ["Attribution", "Backend", "LocatedText", "Occurrence", "Reference"]

"""The reference corpus: build, add, remove, verify, search."""

from fabula.reference.search import Attribution, Occurrence, Reference

__all__ = ["Attribution", "Occurrence", "Reference"]

"""The reference corpus: build, add, remove, verify, search."""

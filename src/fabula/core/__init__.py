"""What every room uses: types, errors, scales, settings, files, caches, processes, records."""

__version__ = "0.1.0"
N_UNSEARCHED = 50_000
"""New objects before a search for garbage: a book has millions that stay, and it is slow to search
among them again and again."""

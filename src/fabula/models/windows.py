"""Reading a text longer than a model's context in windows that overlap by half."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["windows"]


def windows(n_tokens: int, n_window: int) -> Iterator[tuple[int, int, int]]:
    """Start, first scored token and end of each window; from the second on, half is read again.

    Each token is scored once, after at least half a window.
    """
    n_again = (n_window + 1) // 2
    start, first = 0, 0
    while first < n_tokens:
        end = min(start + n_window, n_tokens)
        yield start, first, end
        start, first = end - n_again, end

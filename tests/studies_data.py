"""Documents for studies: stories by authors, and feedback on stories that were changed or not."""

from typing import Any

_AUTHORS = ("NewYorker", "GPT4", "Claude", "GPT3.5")


def story_rows(n_groups: int, n_stories: int) -> list[dict[str, Any]]:
    """Groups of stories with a common plot."""
    return [
        {"id": f"{g}_{a}", "author": a, "group": f"plot {g}",
         "text": f"Tale {g}{k}: <b>she</b> went away & came back.\n\nIt ended {k} times."}
        for g in range(n_groups)
        for k, a in enumerate(_AUTHORS[:n_stories])
    ]  # fmt: skip


def feedback_rows() -> list[dict[str, Any]]:
    """A piece of feedback on a story as it was, and one on a story that was changed."""
    return [
        {"id": f"s{k}_{method}_spot_0", "story_id": f"s{k}", "method": method, "prompt": "spot",
         "shots": 0, "model": "writer-model", "feedback": f"Point {k}.", "missing_reason": None,
         "story": text, "original": "The WHOLE story." if method == "swap" else text,
         "change": {"edits": []}, "signature": "x"}
        for k, (method, text) in enumerate(
            (("original", "A story as it was."), ("swap", "A CHANGED story.")))
    ]  # fmt: skip

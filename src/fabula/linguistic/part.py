"""The profile of texts: a part of the report, a table for the terminal, and a page of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fabula.core.errors import explain
from fabula.linguistic.profile import PROFILE_METRICS, Profile
from fabula.show.charts import COLOURS, INK, figure_of
from fabula.show.norms import comparable, strip
from fabula.show.page import write_page_file
from fabula.show.parts import NumbersPart, Review, TextReview, Values, papers
from fabula.show.sheet import Block, Column, Sheet, cell_shown
from fabula.text import count_words
from fabula.text.emphasis import unmarked

_MAX_TEXTS = 100
_MAX_COLUMNS = 6
_MAX_BARS = 240
_CHART_WIDTH, _CHART_HEIGHT = 960, 120
_ZIPF_STEPS = 8
_PLAIN_METRICS = (
    "n_sentences", "sentence_length", "sentence_length_sd", "dialogue_share", "rare_words",
    "repeated_share",
)  # fmt: skip
"""The part of the profile for writers; the rest is for researchers."""


def profile_tables(profiles: Sequence[Profile]) -> list[Block]:
    """Texts side by side, at most six; missing values with their reasons."""
    shown = profiles[:_MAX_COLUMNS]
    columns = [Column("", name="metric"), *(Column(profile.document.id, "g") for profile in shown)]
    rows = [[m.title, *(_cell(profile, m.item) for profile in shown)] for m in PROFILE_METRICS]
    sheet = Sheet("profile", columns, rows, forms=[metric.form for metric in PROFILE_METRICS])
    remarks = [
        f"{profile.document.id}: said again: "
        + "; ".join(f"“{r.phrase}” ({r.count})" for r in profile.repeated[:5])
        for profile in shown
        if profile.repeated
    ]
    if n_more := len(profiles) - len(shown):
        remarks.append(f"and {n_more:,} more texts; the page and the JSON output show all")
    return [sheet, "", *remarks, profiles[0].signature]


def _cell(profile: Profile, metric: str) -> float | str:
    value = profile.values[metric]
    return explain(profile.missing[metric]) if value is None else value


def write_profile_page(profiles: Sequence[Profile], path: Path) -> None:
    """Write a page of at most 100 texts."""
    shown = profiles[:_MAX_TEXTS]
    is_one = len(profiles) == 1
    page = {
        "title": profiles[0].document.title if is_one else f"{len(profiles):,} texts",
        "texts": [profile_view(profile) for profile in shown],
        "n_left_out": len(profiles) - len(shown),
        "signature": profiles[0].signature,
        "one": is_one,
    }
    write_page_file(path, "linguistic/page.html.j2", page)


def profile_view(profile: Profile) -> dict[str, Any]:
    """A profile as displayed on the page."""
    # A bar for each sentence, with quoted words separate; bars are merged if there are many.
    step = max(1, -(-len(profile.sentences) // _MAX_BARS))
    longest = max((s.n_words for s in profile.sentences), default=0)

    def height(n_words: float) -> float:
        return _CHART_HEIGHT * n_words / longest if longest else 0.0

    groups = [profile.sentences[k : k + step] for k in range(0, len(profile.sentences), step)]
    width = _CHART_WIDTH / max(1, len(groups))
    bars = []
    for k, group in enumerate(groups):
        n_words = sum(s.n_words for s in group) / len(group)
        bars.append(
            {
                "x": k * width,
                "width": max(0.8, width - 1),
                "height": height(n_words),
                "quoted": height(sum(s.n_quoted for s in group) / len(group)),
                "label": unmarked(group[0].text, 0, 160) if step == 1 else "",
                "n_words": round(n_words),
            }
        )
    # A histogram of word rarity, from one in a billion to one in ten.
    counts = [0] * _ZIPF_STEPS
    for value in profile.zipf:
        counts[min(_ZIPF_STEPS - 1, max(0, int(value)))] += 1
    largest, total = max(counts, default=0) or 1, max(1, len(profile.zipf))
    names = (
        "in a billion", "in 100 million", "in 10 million", "in a million", "in 100,000",
        "in 10,000", "in 1,000", "in 100 or more often",
    )  # fmt: skip
    return {
        "title": profile.document.title,
        "width": _CHART_WIDTH,
        "height": _CHART_HEIGHT,
        "metrics": [
            {
                "id": metric.item,
                "title": metric.title,
                "explained": metric.explained,
                "value": cell_shown(_cell(profile, metric.item), metric.form),
                "is_missing": profile.values[metric.item] is None,
            }
            for metric in PROFILE_METRICS
        ],
        "bars": bars,
        "n_each": step,
        "longest": longest,
        "mean": height(profile.values["sentence_length"] or 0),
        "zipf": [
            {"name": f"1 {name}", "share": n / total, "width": 100 * n / largest}
            for name, n in zip(names, counts, strict=True)
        ],
        "repeated": [(r.phrase, r.count) for r in profile.repeated],
        "rarest": list(profile.rarest),
    }


_MAX_PROFILES = 12


def save_profiles(profiles: Sequence[Profile], path: Path) -> None:
    """For each of up to 12 texts: sentence lengths in order, and the rarity of its words.

    The same profiles give the same bytes. Raises `InputError` for an unknown extension.
    """
    shown = [profile for profile in profiles if profile.sentences][:_MAX_PROFILES]
    size = (9.6, 0.9 + 1.7 * max(1, len(shown)))
    with figure_of(path, max(1, len(shown)), 2, figsize=size, width_ratios=(1.7, 1)) as (_, panels):
        for profile, rhythm, rarity in zip(shown, panels[::2], panels[1::2], strict=False):
            lengths = [sentence.n_words for sentence in profile.sentences]
            quoted = [sentence.n_quoted for sentence in profile.sentences]
            rhythm.bar(range(len(lengths)), lengths, width=0.9, color=COLOURS[7], label="told")
            rhythm.bar(range(len(lengths)), quoted, width=0.9, color=COLOURS[0], label="said")
            rhythm.axhline(np.mean(lengths), color=COLOURS[1], linestyle="--", linewidth=1)
            rhythm.set_title(profile.document.id, loc="left", fontsize=9.5, color=INK, pad=3)
            rhythm.set_ylabel("words")
            rarity.hist(profile.zipf, bins=np.arange(0, 8.5, 0.5), color=COLOURS[2])
            rarity.set_ylabel("words")
        if shown:
            panels[0].legend(frameon=False, fontsize=8)
        panels[-2].set_xlabel("sentence")
        panels[-1].set_xlabel("Zipf frequency (3: one in a million)")


class ProfilePart(NumbersPart):
    """The profile of each text, among those of groups."""

    id, title, order, page_order = "profile", "Linguistic profile", 30, 50
    template, style = "linguistic/part.html.j2", "linguistic/part.css.j2"
    metrics = tuple((metric.item, metric.title, metric.form) for metric in PROFILE_METRICS)

    def values(self, text: TextReview, review: Review) -> Values:
        profile = text.results.get(self.id)
        return {} if profile is None else dict(profile.values)

    def compared(self, text: TextReview) -> Mapping[str, tuple[str, float | None]]:
        return {}

    def view(self, number: int, text: TextReview, review: Review) -> Any:
        profile = text.results.get(self.id)
        if profile is None:
            return None
        view, groups = profile_view(profile), review.groups_of(self.id)
        for metric in view["metrics"]:
            value = profile.values[metric["id"]]
            like = comparable(groups, metric["id"], count_words(text.document.text))
            metric["strip"] = strip(like, metric["id"], value)
        # The lines of a strip, from above.
        view["legend"] = [{"kind": group.kind, "title": group.title} for group in groups]
        return view | {"plain_metrics": _PLAIN_METRICS}

    def methods_of(self, review: Review) -> str:
        parts = self.decided(review)
        return (
            f"The linguistic profile follows Roemmele, Gordon and Swanson (2017), with MTLD "
            f"(McCarthy and Jarvis 2010), parsed by {parts.get('pipe', 'spaCy')}; word frequencies "
            f"are those of {parts.get('freq', 'wordfreq').partition(',')[0]}."
        )

    def references_of(self, review: Review) -> Sequence[str]:
        return papers("roemmele2017evaluating", "mccarthy2010mtld")


PARTS = (ProfilePart(),)

"""Ten thousand events of a study on a crowd platform: is a place lost, or one given twice?

    python bench/places.py [--events 10000] [--seed 1] [--smoke]

People come, agree, read, vanish, return their places, come back too late; a server that answers as
Prolific does refuses and fails most requests. Ends with 1 where a unit was held by more than it
wants, somebody was turned away though a place was left, or a place was not filled in the end.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import corpora

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.studies.platform_simulation import simulate


def main() -> None:
    given = corpora.options(__doc__, events=corpora.sized(10_000, 300), seed=1)
    began = time.monotonic()
    with corpora.scratch() as folder:
        out = simulate(folder, given.events, given.seed)
    print(
        f"{out.events.total():,} events, {out.n_people:,} people in {time.monotonic() - began:.0f} "
        f"s; {out.n_told_full:,} times somebody was told that nothing is left"
    )
    print("events: " + ", ".join(f"{name} {n:,}" for name, n in out.events.most_common()))
    print(
        "the platform answered: " + ", ".join(f"{c} {n:,}" for c, n in out.answered.most_common())
    )
    print(f"{out.n_failed_fetches:,} fetches failed after all retries")
    print(
        f"places {out.n_places:,}, filled {out.n_filled:,}, over-filled {len(out.over_filled):,}, "
        f"lost {len(out.lost):,}, errors {len(out.errors):,}"
    )
    for what in (out.over_filled + out.lost + out.errors)[:10]:
        print(what)
    if out.over_filled or out.lost or out.errors or out.n_filled != out.n_places:
        sys.exit(1)


if __name__ == "__main__":
    main()

"""What other wordings of a question, and an example, do to a judge: kappa with experts, and Yes.

    python bench/wordings.py [--data FOLDER] [--model local] [--out wordings] [--smoke]

FOLDER is `Art_or_Artifice` of github.com/salesforce/creativity_eval: its texts, and the verdicts of
its experts. Of the stories by models the shortest are judged three times: in the rubric's words, in
other words too, and after an example. Each command is printed, and what `judge compare` says last.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import corpora
from fabula.cli.main import cli
from fabula.rubrics.released import EXPERTS_FILE, STORIES_FILE, read_released_stories

ITEMS = (
    "narrative_ending", "scene_vs_summary", "literary_devices", "originality_in_thought",
    "character_development",
)  # fmt: skip


def run(*words: object) -> None:
    """A command of Fabula, printed before it runs."""
    told = [str(word) for word in words]
    print(f"$ fabula {shlex.join(told)}", flush=True)
    cli(told, standalone_mode=False)


def main() -> None:
    given = corpora.options(
        __doc__, data=corpora.SHARED / "ttcw",
        model=("local", "local, a .gguf file, or another judge"), stories=corpora.sized(12, 3),
        paraphrases=corpora.sized(3, 1), out=Path("wordings"),
    )  # fmt: skip
    given.out.mkdir(exist_ok=True)
    stories = sorted(read_released_stories(given.data / STORIES_FILE), key=lambda d: len(d.text))
    texts, labels = given.out / "stories.jsonl", given.data / EXPERTS_FILE
    rows = [
        {"id": one.id, "text": one.text, "author": one.author, "prompt_id": one.prompt_id}
        for one in stories[: given.stories]
    ]
    texts.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    asked = (
        "--model", given.model, "--items", ",".join(ITEMS[: corpora.sized(5, 2)]), "--style",
        "verdict-first", "--set", "models.max-tokens=4", "--set", "models.max-unreadable=0",
        "--yes", "--quiet",
    )  # fmt: skip
    runs = [given.out / name for name in ("plain", "worded", "shown")]
    run("judge", texts, *asked, "--out", runs[0])
    run("judge", texts, *asked, "--paraphrases", given.paraphrases, "--out", runs[1])
    run("judge", texts, *asked, "--labels", labels, "--shots", "1", "--out", runs[2])
    run("judge", "agreement", *runs, "--labels", labels, "--stories", texts)


if __name__ == "__main__":
    main()

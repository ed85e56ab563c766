"""Chapters of public-domain books, found and counted by hand.

    python bench/chapters.py BOOKS
    python bench/chapters.py --smoke

BOOKS is a folder of plain texts of Project Gutenberg whose names end in their numbers
(`Middlemarch_145.txt`), as GITenberg's repositories hold them; what is not there is left out. The
counts are of divisions of the story: numbered or titled chapters, letters, prologues and epilogues;
no preface, no contents. Books below the line were not looked at while the finder was written; what
it said of them at first sight stands in the last column. `--smoke` is a book of its own making.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import corpora
from fabula.core.types import Document
from fabula.text.chapters import chapters_of

WRITTEN_WITH = {
    46: 5, 2641: 20, 98: 45, 76: 43, 11: 12, 45: 38, 1156: 34, 271: 49, 2554: 41, 345: 27, 4517: 9,
    107: 57, 778: 11, 84: 28, 1400: 59, 219: 3, 1260: 38, 421: 30, 514: 47, 5658: 45, 145: 88,
    2701: 136, 242: 45, 730: 53, 16: 17, 550: 22, 1661: 12, 74: 36, 541: 34, 215: 7, 316: 33,
    2852: 15, 140: 31, 174: 20, 33: 24, 113: 27, 558: 10, 35: 17, 209: 24, 36: 27, 289: 12, 55: 24,
    120: 34, 599: 67, 768: 34,
}  # fmt: skip
UNSEEN = {
    158: (55, 55), 103: (37, 37), 155: (55, 53), 1450: (32, 32), 543: (39, 39), 2500: (12, 14),
    1874: (14, 14), 910: (25, 25), 139: (16, 16), 236: (14, 13), 2891: (44, 44), 284: (29, 29),
    95: (22, 22), 786: (37, 37),
}  # fmt: skip
"""Counted, and found at first sight."""

_START = re.compile(r"\*\*\* ?START OF .*?\*\*\*\n|\*END\*? ?THE SMALL PRINT[^\n]*\n", re.DOTALL)
_END = re.compile(r"\n(?:\*\*\* ?END OF|End of (?:the )?Project Gutenberg)")


def story_of(text: str) -> str:
    """Without what Project Gutenberg says before and after."""
    start, end = _START.search(text), _END.search(text)
    return text[start.end() if start else 0 : end.start() if end else len(text)]


def smoke() -> None:
    """Three chapters below a table of contents."""
    contents = "\n\n".join(f"CHAPTER {k}" for k in range(1, 4))
    body = "It was late, and nobody came. She lit the lamp, and waited for the boat to turn. " * 4
    story = "\n\n".join(f"CHAPTER {k}\n\n{body}" for k in range(1, 4))
    found = chapters_of(Document("made", f"CONTENTS\n\n{contents}\n\n{story}"))
    print(f"made: counted 3, found {len(found)}")
    assert len(found) == 3


def main() -> None:
    given = corpora.options(__doc__, {"books": {"nargs": "?", "type": Path}})
    if corpora.SMOKE:
        smoke()
    elif given.books is None:
        sys.exit("name the folder of books")
    else:
        show(given.books)


def show(folder: Path) -> None:
    counted = WRITTEN_WITH | {number: n for number, (n, _) in UNSEEN.items()}
    paths = {int(p.stem.rpartition("_")[2]): p for p in sorted(folder.glob("*_*.txt"))}
    right = {True: [0, 0], False: [0, 0]}
    print(f"{'book':44} {'counted':>7} {'found':>6} {'scenes':>6} {'s':>5}")
    for number in [*WRITTEN_WITH, None, *UNSEEN]:
        if number is None:
            print("-" * 72)
            continue
        if number not in paths:
            continue
        path = paths[number]
        document = Document(path.stem, story_of(path.read_text(encoding="utf-8")))
        began = time.process_time()
        found = chapters_of(document)
        taken = time.process_time() - began
        is_right = len(found) == counted[number]
        right[number in UNSEEN][0] += is_right
        right[number in UNSEEN][1] += 1
        n_scenes = sum(len(one.scenes) for one in found)
        first = f"   at first {UNSEEN[number][1]}" if number in UNSEEN else ""
        wrong = "" if is_right else "   wrong"
        print(
            f"{path.stem[:44]:44} {counted[number]:7} {len(found):6} {n_scenes:6} {taken:5.2f}"
            f"{wrong}{first}"
        )
    for unseen, (n, of) in right.items():
        print(f"{'unseen' if unseen else 'written with'}: {n} of {of} right")


if __name__ == "__main__":
    main()

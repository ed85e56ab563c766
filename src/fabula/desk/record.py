"""A process record: how a piece was written, as a dated chain of hashes for its writer to show."""

from __future__ import annotations

import io
import zipfile
from dataclasses import asdict

from fabula import __version__
from fabula.desk.journal import Journal, KeptState, chained
from fabula.store import dump_json

__all__ = ["NOT_PROVEN", "broken_at", "record_archive"]

NOT_PROVEN = (
    "It does not prove who wrote the text. Anyone who sat at this computer, or copied words from "
    "elsewhere by hand, leaves the same record.",
    "It does not prove that no language model was used. A text can be typed from another screen.",
    "It does not prove when the text was written. The times are those of this computer's clock, "
    "which can be set, and a whole chain can be made at once. A hash proves a time only if "
    "somebody else received it then: send the last one to yourself or to a friend when it "
    "matters.",
    "It does not prove that nothing is missing before its first state, or between two states.",
    "Its absence proves nothing. Most people write where nothing is recorded.",
)
"""What a reader of the record must know."""
_HOLDS = (
    "Each row of record.json is a state of the text: the time in UTC, the SHA-256 of the text as "
    "UTF-8, the number of words that the desk showed, and the version number if it was "
    "measured. `chain` is the SHA-256 of the previous chain, the time, the hash, the words and "
    "the version, one per line; a missing value is an empty line. If a row is altered, removed or "
    "inserted later, every chain after it changes."
)
_DAY = (1980, 1, 1, 0, 0, 0)


def broken_at(states: list[KeptState]) -> int | None:
    """The first row, from 1, whose chain is broken; None if all are intact."""
    before = ""
    for number, state in enumerate(states, 1):
        if chained(before, state) != state.chain:
            return number
        before = state.chain
    return None


def record_archive(title: str, journal: Journal, *, with_texts: bool) -> bytes:
    """A zip archive of the record, what it does and does not prove, and optionally the texts.

    The same record gives the same bytes.
    """
    states = journal.states()
    rows = [asdict(state) for state in states]
    files = {
        "record.json": dump_json({"fabula": __version__, "title": title, "states": rows}) + "\n",
        "about.txt": "\n\n".join((_HOLDS, "What it does not prove", *NOT_PROVEN)) + "\n",
    }
    for state in states if with_texts else ():
        text = journal.text(state)
        if text is not None:
            files[f"texts/{state.text}.txt"] = text
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            info = zipfile.ZipInfo(name, _DAY)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, text.encode(errors="replace"))
    return data.getvalue()

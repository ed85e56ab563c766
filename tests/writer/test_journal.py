"""What is typed on the desk is kept, and what was kept can be checked."""

import hashlib
from pathlib import Path

from tests.commands import rows_of

from fabula.writer.drafts import Journal


def test_what_is_typed_is_there_again_and_what_is_wiped_out_was_kept_first(tmp_path: Path):
    journal = Journal(tmp_path / "new")
    story = "She counted nine, and one. " * 20
    journal.save(story, 0)
    assert journal.writing() == Journal(tmp_path / "new").writing()
    journal.save(story + "\U0001f3ee \ud800", 0)
    journal.save("x", 0)
    written = journal.writing()
    assert written.text == "x"
    texts = [journal.text(state) for state in journal.states()]
    assert texts == [story, story + "\U0001f3ee ?"]
    journal.put_aside()
    assert journal.writing() is None
    assert journal.text(journal.states()[-1]) == "x"


def test_what_was_overtaken_on_its_way_changes_nothing(tmp_path: Path):
    journal = Journal(tmp_path)
    now = 1_790_000_000_000
    for text, typed in (("One.", now), ("One. Two.", now + 9), ("One. T", now + 5)):
        written = journal.save(text, 1, typed)
    assert (written.text, journal.writing()) == ("One. Two.", written)
    assert journal.save("Put back.", 1, now - 10**9).text == "Put back.", "a clock was put back"


def test_states_are_a_chain_that_anybody_can_follow_with_sha256(tmp_path: Path):
    journal = Journal(tmp_path)
    journal.keep("One.")
    journal.keep("One.")
    journal.keep("One.", version=1)
    journal.keep("One two.", version=2)
    rows = rows_of(tmp_path / "states.jsonl")
    assert [row["version"] for row in rows] == [None, 1, 2], "the same state is not kept twice"
    before = ""
    for row in rows:
        version = "" if row["version"] is None else row["version"]
        line = f"{before}\n{row['at']}\n{row['text']}\n{row['n_words']}\n{version}"
        before = hashlib.sha256(line.encode()).hexdigest()
        assert row["chain"] == before
    assert rows[-1]["text"] == hashlib.sha256(b"One two.").hexdigest()


def test_broken_files_of_a_journal_lose_nothing_that_can_be_read(tmp_path: Path):
    journal = Journal(tmp_path)
    journal.keep("One.")
    journal.keep("Two.")
    path = tmp_path / "texts" / f"{hashlib.sha256(b'One.').hexdigest()}.zst"
    path.write_bytes(b"broken")
    with (tmp_path / "states.jsonl").open("ab") as file:
        file.write(b"[broken")
    (tmp_path / "writing.json").write_text('{"text": 1}')
    assert [journal.text(state) for state in journal.states()] == [None, "Two."]
    assert journal.writing() is None

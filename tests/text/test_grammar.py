"""LanguageTool by its HTTP interface, as a local server speaks it; checks beside the parser."""

import json
import threading
import time
import urllib.parse
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.http_serving import Handler, on_loopback

from fabula.core.errors import ModelError
from fabula.text.grammar import Fault, LanguageTool, Piece, parsed_and_checked
from fabula.text.parsing import Parsed


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def answer(text: str) -> dict[str, Any]:
    """As LanguageTool 6 answers, offsets in UTF-16; two blanks are a matter of typography."""
    matches = [
        {"offset": utf16(text[: text.index(wrong)]), "length": utf16(wrong),
         "rule": {"id": "X", "category": {"id": category}}}
        for wrong, category in (("Teh", "TYPOS"), ("teh", "TYPOS"), ("  ", "TYPOGRAPHY"),
                                ("he go", "GRAMMAR"))
        if wrong in text
    ]  # fmt: skip
    return {"software": {"name": "LanguageTool", "version": "6.4"}, "matches": matches}


@contextmanager
def languagetool(body: bytes | None = None) -> Iterator[str]:
    class Answering(Handler):
        def do_POST(self) -> None:  # noqa: N802
            form = urllib.parse.parse_qs(self.asked().decode())
            assert self.path == "/v2/check"
            assert form["language"] == ["en-US"]
            said = json.dumps(answer(form["text"][0])).encode() if body is None else body
            self.reply(200, said)

    with on_loopback(Answering) as url:
        yield url


def test_its_errors_are_found_where_they_stand_and_taste_is_left_out():
    with languagetool() as url:
        tool = LanguageTool(url)
        assert tool.name == "languagetool-6.4"
        text = "😀 see teh  dog, he go"
        faults, of_name = tool.faults([Piece(text), Piece("Teh ran.", names=[(0, 3)])])
        assert [text[slice(*fault.place)] for fault in faults] == ["teh", "he go"]
        assert of_name == []


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"matches": 3}'])
def test_an_answer_that_is_none_is_no_clean_text(body: bytes):
    with languagetool(body) as url, pytest.raises(ModelError, match="is not responding"):
        LanguageTool(url)
    with pytest.raises(ModelError, match="start its server"):
        LanguageTool("http://127.0.0.1:9")


class Slow:
    """Marks the last character of a text; counts the texts it was given."""

    def __init__(self) -> None:
        self.name, self.n = "slow", 0

    def faults(self, pieces: Iterable[Piece]) -> Iterator[list[Fault]]:
        for text, _, _ in pieces:
            self.n += 1
            time.sleep(0.001)
            if text == "away":
                raise ModelError("not responding")
            yield [Fault((len(text) - 1, len(text)), text, False)]


def parsed_as(text: str) -> Parsed:
    return Parsed(text, (), (), (), ())


def test_what_is_checked_beside_the_parser_is_in_its_order():
    n = 700
    texts = [f"text {k}" for k in range(n)]
    parsed, faults = parsed_and_checked(map(parsed_as, texts), Slow())
    assert [one.text for one in parsed] == texts
    assert [fault.message for [fault] in faults] == texts
    assert parsed_and_checked(map(parsed_as, texts[:2]), None)[1] == [(), ()]
    # An error of the checker is raised as it is.
    with pytest.raises(ModelError, match="not responding"):
        parsed_and_checked(map(parsed_as, ["first", "away", *map(str, range(200))]), Slow())


def test_an_interrupt_of_the_parser_waits_for_current_batches_only():
    def interrupted() -> Iterator[Parsed]:
        yield from (parsed_as(str(k)) for k in range(1000))
        raise KeyboardInterrupt

    checker, n_threads = Slow(), threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        parsed_and_checked(interrupted(), checker)
    assert checker.n < 500
    assert threading.active_count() == n_threads

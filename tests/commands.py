"""Commands run in this process, as somebody types them, and the rows that they read and write."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from fabula.cli.main import cli
from fabula.core.errors import FabulaError, InputError


def invoke(*words: object, code: int | None = 0) -> Result:
    """What the command says; how it ends is not asked where `code` is None."""
    done = CliRunner().invoke(cli, [*map(str, words)])
    assert code is None or done.exit_code == code, (done.output, done.exception)
    return done


def refused(*words: object, error: type[FabulaError] = InputError) -> str:
    """The sentence with which the command refuses, or what click shows of a wrong use."""
    done = invoke(*words, code=None)
    if done.exit_code == 2:
        return " ".join(done.stderr.split())
    assert isinstance(done.exception, error), (done.output, done.exception)
    return str(done.exception)


def write_rows(path: Path, rows: Iterable[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

"""Compiled templates in the cache folder: run if they are the user's own, else made again."""

from pathlib import Path

import pytest

from fabula.show.page import TEMPLATES
from fabula.web import page_environment


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FABULA_CACHE", str(tmp_path))


def compiled(folder: Path) -> list[Path]:
    page_environment(TEMPLATES).get_template("review/page.html.j2")
    return sorted((folder / "templates").iterdir())


def test_templates_are_compiled_once_into_a_folder_closed_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    files = compiled(tmp_path)
    assert files
    assert [oct(path.stat().st_mode) for path in files] == ["0o100600"] * len(files)
    assert oct((tmp_path / "templates").stat().st_mode) == "0o40700"
    monkeypatch.setattr("jinja2.Environment.compile", lambda *_: pytest.fail("compiled again"))
    assert compiled(tmp_path) == files


@pytest.mark.parametrize("keep", [0, 5, 40])
def test_damage_costs_time_only(keep: int, tmp_path: Path):
    whole = {path: path.read_bytes() for path in compiled(tmp_path)}
    for path, data in whole.items():
        path.write_bytes(data[:keep])
    assert compiled(tmp_path) == sorted(whole)
    assert {path: path.read_bytes() for path in whole} == whole


def test_code_that_others_may_have_written_is_not_run(tmp_path: Path):
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates").chmod(0o777)
    assert compiled(tmp_path) == []

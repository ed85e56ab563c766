"""Every command and Python block of the README runs as it is written."""

import pytest
from tests.docs.programme import NOT_RUN, STEPS, check_step, prints, steps_run
from tests.docs.reading_pages import ROOT, Step, expected_files, steps_of
from tests.docs.stage import Stage

pytest.importorskip("aiohttp", reason="the extra [remote] is not installed")


@pytest.mark.parametrize("step", steps_run(readme=True), ids=lambda step: step.name)
def test_it_runs_as_it_is_written(step: Step, stages: dict[tuple[str, int], Stage]) -> None:
    check_step(step, stages)


def test_what_is_not_run_is_on_a_page() -> None:
    for beginning in NOT_RUN:
        assert any(step.text.startswith(beginning) for step in STEPS), beginning


def test_every_page_with_commands_is_read() -> None:
    by_page = {page: [step for step in STEPS if step.page == page] for page in
               ("README.md", "docs/commands.md", "docs/study.md")}  # fmt: skip
    assert all(by_page.values())
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    n_lines = sum(line.startswith(("    fabula ", "    $ fabula ")) for line in readme.splitlines())
    assert sum(step.text.startswith("fabula ") for step in by_page["README.md"]) == n_lines


PAGE = """Text, `fabula inline`:

    fabula one --out a.txt   # why
    fabula two \\
        --html "b c.html" > d.txt

- a list
    with a line that hangs

```sh
fabula three
```

```python
import fabula

fabula
```

```json
{"no": "command"}
```

    $ fabula four
    so many

    ...
    $ fabula five
"""


def test_a_page_is_read_as_a_reader_would() -> None:
    steps = steps_of("docs/x.md", PAGE)
    assert [(step.kind, step.text) for step in steps] == [
        ("command", "fabula one --out a.txt   # why"),
        ("command", 'fabula two \\\n    --html "b c.html" > d.txt'),
        ("command", "fabula three"),
        ("python", "import fabula\n\nfabula\n"),
        ("command", "fabula four"),
        ("command", "fabula five"),
    ]
    assert [step.line for step in steps] == [3, 4, 11, 15, 24, 28]
    assert [step.shown for step in steps[4:]] == [("so many", "..."), ()]
    assert len({step.session for step in steps[:4]} | {steps[4].session}) == 2
    assert [expected_files(step.text) for step in steps[:2]] == [["a.txt"], ["b c.html", "d.txt"]]


def test_output_is_compared_line_by_line() -> None:
    assert prints("a\nb\nc\n", ("a", "...", "c"))
    assert prints("a\n", ())
    assert not prints("a\nb\nc\n", ("a", "c"))
    assert not prints("a\nb\n", ("a",))
    assert not prints("a 1\n", ("a", "..."))

"""The bytes of what commands print and write: a change that means to change none changes none.

Where one is meant to change, or to see how it differs, run `python -m tests.cli.test_outputs
FOLDER` on both states: it writes what each command printed and wrote into the folder, and the
digests of this state into the golden file.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.scenery import make_scenery, model_reply
from tests.forking import INSTALLED, fabula_command
from tests.serving import serving

import fabula

GOLDEN = Path(__file__).parents[1] / "golden" / "outputs.json"

COMMANDS = """
reference build books/ --out books.ref
reference info books.ref
reference info books.ref --json
originality labelled.jsonl --reference books.ref --out scores.jsonl
originality labelled.jsonl --reference books.ref --json
originality labelled.jsonl --reference books.ref --csv o.csv --latex o.tex --jsonl
originality story.txt --reference books.ref --match near --levels 4-6 --html near.html
originality story.txt --reference books.ref --spread 50 --exclude auto --json
report class/ --against-each-other --json --without fluency
reference group human.jsonl --name mine --kind people --reference books.ref --out mine.jsonl
profile labelled.jsonl --out profiles.jsonl --csv p.csv --latex p.tex
profile story.txt --json
profile story.txt --html profile.html
diversity labelled.jsonl --by label --csv diversity.csv --latex diversity.tex
diversity labelled.jsonl --by label --json
phrases labelled.jsonl --by label --of machine --prompt prompt_id --out machine.jsonl
phrases labelled.jsonl --by label --of machine --background books.ref --json
compare scores.jsonl --by label --csv c.csv --latex c.tex --plot c.svg
compare scores.jsonl profiles.jsonl --by label --json
detect calibrate scores.jsonl --label label=human --out detector.json
detect apply detector.json scores.jsonl --json
detect apply detector.json scores.jsonl --csv d.csv --latex d.tex
report draft.docx --reference books.ref --groups mine.jsonl --without fluency
report draft.docx --reference books.ref --json --without fluency
report draft.docx --only lines
report draft.docx --only lines --json
report draft.docx --only book --json
report labelled.jsonl --reference books.ref --by label --out set.html --csv set.csv --latex set.tex
judge labelled.jsonl --model openai/gpt-4o --yes --out run --html run.html
judge labelled.jsonl --model openai/gpt-4o --model openai/gpt-4o-mini --yes --out two --json
judge draft.docx --rubric ttcw --model openai/gpt-4o --style verdict-first --yes --csv v.csv
judge labelled.jsonl --pairwise --model openai/gpt-4o --yes --out pairs --latex pairs.tex
judge labelled.jsonl --model openai/gpt-4o --paraphrases 2 --yes --out worded
judge agreement run --labels labels.csv --csv a.csv --latex a.tex
judge agreement two worded --labels ttcw_annotations.json --stories labelled.jsonl --json
judge correct run --labels labels.csv --by author --json
judge correct run --labels labels.csv --csv cor.csv
judge calibrate labelled.jsonl --labels labels.csv --model openai/gpt-4o --yes
judge themes run --out themes.jsonl --json
rubric show
rubric show ttcw
rubric show marks.toml --check
rubric show ttcw --json
plan pilot.csv --stories 20,50 --mean-width 0.15 --kappa-width 0.2
plan pilot.csv --stories 20,50 --json
study new s.toml --design ttcw --documents stories.jsonl
stories draw labelled.jsonl --by label --each 1 --out drawn.jsonl
stories plot human.jsonl --model openai/gpt-4o --yes --out plots.jsonl
stories write plots.jsonl --model openai/gpt-4o --yes --human human.jsonl --out written.jsonl
stories openings human.jsonl --kind novel --sentences 1 --model openai/gpt-4o --yes --out op.jsonl
continuation passages books/ --sentences 5 --stride 3 --out passages.jsonl
continuation train books/ --kind random --kind unigram --kind case --min-count 2 --out generators
continuation generate --from generators --contexts passages.jsonl --out baselines.jsonl
continuation score baselines.jsonl --contexts passages.jsonl --out s.jsonl --html t.html --csv t.csv
continuation score baselines.jsonl --contexts passages.jsonl --json
feedback corrupt human.jsonl --methods original,swap,delete --out corrupted.jsonl
feedback elicit corrupted.jsonl --model openai/gpt-4o --yes --out feedback.jsonl
feedback find feedback.jsonl --details details.jsonl --csv found.csv --latex found.tex
feedback find feedback.jsonl --json
feedback score feedback.jsonl --by model,prompt,model*method --out measures.json --csv m.csv
feedback rate feedback.jsonl --model openai/gpt-4o --yes --out rated --json
feedback rate feedback.jsonl --rubric feedback_category --model openai/gpt-4o --yes --out lab
stories draw feedback.jsonl --pieces 4 --out pieces.jsonl
report draft.docx --only feedback --model openai/gpt-4o --yes --points-file points.jsonl
report second.docx --only feedback --model openai/gpt-4o --yes --since points.jsonl --json
report labelled.jsonl --model openai/gpt-4o --labels labels.csv --yes --only verdicts --json
rerun scores.jsonl
originality nowhere.txt --reference books.ref
judge labelled.jsonl --rubric none
originality story.txt --levels 0 --reference books.ref
"""
"""Run in this order in one folder."""


@pytest.mark.slow
def test_what_commands_print_and_write(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    golden = json.loads(GOLDEN.read_text())
    with serving(model_reply) as models:
        told = transcripts(folder, models.url, fabula_command())
    assert {command: digests(own) for command, own in told.items()} == golden


def transcripts(folder: Path, url: str, program: Path) -> dict[str, dict[str, bytes]]:
    """What each command printed, its exit code among it, and the files that it wrote."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(fabula.__file__).parents[1].resolve()), "FABULA_JOBS": "1",
        "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1",
        "FABULA_HOME": f"{folder}/home", "FABULA_CACHE": f"{folder}/home/cache",
        "COLUMNS": "100", "LINES": "40",
    }  # fmt: skip
    told: dict[str, dict[str, bytes]] = {}
    for command in filter(None, COMMANDS.splitlines()):
        make_scenery(f"fabula {command}", folder)
        before = _files(folder)
        done = subprocess.run(
            [program, *shlex.split(command)], cwd=folder, env=environment, capture_output=True,
            check=False,
        )  # fmt: skip
        printed = done.stdout + (b"" if done.returncode in (0, 1) else done.stderr)
        told[command] = {"stdout": b"%d\n%s" % (done.returncode, _same(printed, folder))}
        after = _files(folder)
        told[command] |= {
            name: _same(_in_order(name, data), folder)
            for name, data in after.items()
            if before.get(name) != data
        }
    return told


def digests(own: dict[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest()[:16] for name, data in own.items()}


def _files(folder: Path) -> dict[str, bytes]:
    """The files of a folder, but for records (times), studies (tokens) and what is kept at home."""
    return {
        name: path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and (name := path.relative_to(folder).as_posix())
        and not name.startswith("home/")
        and not name.endswith((".provenance.json", ".db", ".docx"))
    }


def _in_order(name: str, data: bytes) -> bytes:
    """Answers stand in the order in which they came."""
    return b"".join(sorted(data.splitlines(True))) if name.endswith("answers.jsonl") else data


def _same(data: bytes, folder: Path) -> bytes:
    """Without the folder, times, the day, and digits in which processors differ."""
    data = re.sub(rb"\b[\d.]+ s\b", b"N s", data.replace(bytes(folder), b"FOLDER"))
    data = re.sub(rb'"date": ?"[\d-]+"', b'"date":"DAY"', data)
    return re.sub(rb"\d+\.\d{10,}(?:e-?\d+)?", lambda number: b"%.9g" % float(number[0]), data)


if __name__ == "__main__":
    into = Path(sys.argv[1]).resolve()
    (into / "work").mkdir(parents=True)
    with serving(model_reply) as served:
        found = transcripts(into / "work", served.url, INSTALLED)
    for number, own in enumerate(found.values()):
        for name, data in own.items():
            shown = into / f"{number:02}" / name
            shown.parent.mkdir(parents=True, exist_ok=True)
            shown.write_bytes(data)
    golden = {command: digests(own) for command, own in found.items()}
    GOLDEN.write_text(json.dumps(golden, indent=0) + "\n")

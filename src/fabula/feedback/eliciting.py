"""Ask models for feedback: every story, corrupted and not, with every prompt.

Rashkin et al. 2025, sections 4 and 5 and appendices A and B: sampled at temperature 0.7, with four
prompts: a bulleted list with a taxonomy of issues, a bulleted list only, one sentence, and "spot
the problem"; each tells the model what to say if nothing is wrong, and is used without examples or
with two, the second of which has no fault. The wording here is ours; the published one is read from
the text of the paper, or from a file of one's own. The paper's grid is 1,304
stories, four prompts, with and without examples, eight models: 83,456 answers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product, starmap
from pathlib import Path
from typing import Any

from fabula.core import __version__
from fabula.core.errors import InputError
from fabula.core.resume import KeptRows, Row, RowKind
from fabula.core.store import read_rows
from fabula.core.types import Signature
from fabula.models.base import Model, Prompt, Sampling, Usage
from fabula.models.cost import Estimate, Price, estimate_tokens
from fabula.models.texts import Wanted, ask_for, read_prompts, why_no_text

PERFECT = "The text is perfect as-is."
"""The sentence to answer if nothing is wrong; the paper counts answers that contain it."""
_PERFECT_PHRASE = "is perfect as-is"
_HYPHENS = str.maketrans(dict.fromkeys("‐‑‒–", "-"))
_PERFECT_SENTENCE = re.compile(rf"[^.!?\n]*{_PERFECT_PHRASE}[^.!?\n]*[.!?]*", re.IGNORECASE)

_PUBLISHED = {
    "full": "Bulleted List", "list": "Bulleted List Only", "sentence": "One Sentence",
    "spot": "Spot the Problem",
}  # fmt: skip
"""The title in appendix B of each prompt, by its name here."""
_HEADING = re.compile(
    rf"(?i)B\.?\d\.?\s+({'|'.join([*_PUBLISHED.values(), 'Two-?shot Examples'])})$"
)
_NEXT_PART = re.compile(r"[A-Z](?:\.\d)?\.?\s+[A-Z][a-z]+(?: [A-Z][a-z]+)*$")
_EXAMPLE = re.compile(r"(?s)Story:\s*(\S.*?)\s*Feedback:[\d¹²³⁰-⁹]*\s*(\S.*?)\s*(?=\n\s*\n|\Z)")
_N_EXAMPLES = 2

_ISSUES = """- it does not read fluently: slips of spelling or grammar
- it does not hang together: it contradicts itself, or its order is wrong
- it is not clear: too many words, or words that could mean two things
- its style wants changing: how formal it is, its tone, what a writer would prefer
- something is missing: more should be told, or told anew
- something should go: it does not belong with the rest"""


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The prompts by name, and the examples. `{story}` and `{perfect}` are filled in."""

    prompts: Mapping[str, str]
    bulleted: frozenset[str] = frozenset()
    """Prompts whose answers are lists; the examples' answers begin with a dash for these."""
    examples: tuple[tuple[str, str], ...] = ()
    """(story, feedback), with `{perfect}` for the one that has no fault."""
    one_sentence: frozenset[str] = frozenset()
    """Prompts that ask for a single sentence."""
    label: str = "fabula"

    @property
    def name(self) -> str:
        """The name for signatures: `fabula@1a2b3c4d`."""
        content = repr((sorted(self.prompts.items()), sorted(self.bulleted), self.examples))
        return f"{self.label}@{hashlib.sha256(content.encode()).hexdigest()[:8]}"


PROMPTS = PromptSet(
    prompts={
        "full": "Read this text and give feedback on it as a list with a dash before each point:"
        "\n\n{story}\n\nSay of the text where one of these is so:\n" + _ISSUES + "\n\nIf the story "
        "has no problem, say only: {perfect}\n\nFeedback:",
        "list": "Read this text and give feedback on it as a list with a dash before each point:"
        "\n\n{story}\n\nIf the story has no problem, say only: {perfect}\n\nFeedback:",
        "sentence": "Read this text and say in one sentence how it could be made better:\n\n"
        "{story}\n\nBe brief, and name what matters most. If the story has no problem, say only: "
        "{perfect}\n\nFeedback:",
        "spot": "Something is wrong in this text, in one place. Can you tell what it is?\n\n"
        "{story}\n\nSay in one sentence what the problem is. If the story has no problem, say "
        "only: {perfect}\n\nFeedback:",
    },
    bulleted=frozenset({"full", "list"}),
    one_sentence=frozenset({"sentence", "spot"}),
    examples=(
        (
            "Ines had saved all summer for a bicycle. On Saturday she counted her coins. Then she "
            "painted them blue for the winter. The shopkeeper tied a ribbon to the bell. She rode "
            "home the long way.",
            "The third sentence has nothing to do with the others: nobody paints coins for the "
            "winter here; take it out, and let her go to the shop instead.",
        ),
        (
            "The baker's dog had not eaten for two days. The baker looked under the oven and found "
            "a whole tray of stolen rolls. He stopped worrying, and the dog stopped hiding.",
            "{perfect}",
        ),
    ),
)
"""The four prompts of the paper in our words."""


def feedback_prompt(prompts: PromptSet, name: str, story: str, n_shots: int) -> Prompt:
    """The question about a story; the examples precede it as earlier turns."""
    template = prompts.prompts[name]
    if n_shots not in (0, len(prompts.examples)):
        raise InputError(
            f"`shots` {n_shots}: there are {len(prompts.examples)} examples; use all of them "
            "or none"
        )
    dash = "- " if name in prompts.bulleted else ""
    parts = [
        f"{_filled(template, example)} {dash}{answer.replace('{perfect}', PERFECT)}\n\n"
        for example, answer in prompts.examples[:n_shots]
    ]
    return Prompt("".join(parts), _filled(template, story))


def _filled(template: str, story: str) -> str:
    # Not str.format: a story may contain braces.
    before, _, after = template.partition("{story}")
    return story.strip().join(part.replace("{perfect}", PERFECT) for part in (before, after))


def says_perfect(feedback: str) -> bool:
    """Whether feedback contains the sentence for a text without faults (section 5, equation 1)."""
    return _PERFECT_PHRASE in feedback.casefold().translate(_HYPHENS)


def without_perfect(feedback: str) -> tuple[str, bool]:
    """The rest of the feedback without that sentence, and whether it contains it."""
    rest, n = _PERFECT_SENTENCE.subn(" ", feedback.translate(_HYPHENS))
    return rest if n else feedback, bool(n)


def load_prompts(path: Path) -> PromptSet:
    """Load prompts from a TOML file, or those of appendix B, verbatim, from the paper's text.

    The file has a table `prompts` of templates with `{story}`, and optionally `bulleted`,
    `one_sentence` (lists of names) and `examples` (tables of `story`, `feedback`). The
    paper's text is a .txt or .md file. Raises `InputError` with what is wrong.
    """
    content, text = read_prompts(path, "{story}")
    if content is None:
        sections: dict[str, list[str]] = {}
        section: list[str] | None = None
        for line in text.splitlines():
            plain = line.strip().lstrip("#").strip()
            if (heading := _HEADING.match(plain)) is not None:
                section = sections.setdefault(heading[1].lower().replace("-", ""), [])
            elif _NEXT_PART.match(plain):
                section = None
            elif section is not None:
                section.append(line.rstrip())
        prompts = {}
        for name, title in _PUBLISHED.items():
            body = "\n".join(sections.get(title.lower(), []))
            whole = body[: body.rfind("Feedback:") + len("Feedback:")].strip()
            if whole.count("<STORY>") != 1 or not whole.endswith("Feedback:"):
                raise InputError(
                    f"{path}: does not contain the prompt {title!r} of appendix B with <STORY> and "
                    "Feedback:; use the paper's text as .txt or .md, or prompts as .toml"
                )
            # Text from a PDF has gaps between the items of a list.
            prompts[name] = re.sub(r"\n\s*\n(?=- )", "\n", whole).replace("<STORY>", "{story}")
        examples = _EXAMPLE.findall("\n".join(sections.get("twoshot examples", [])))
        if len(examples) != _N_EXAMPLES:
            raise InputError(f"{path}: does not contain the two examples of appendix B")
        pairs = tuple((" ".join(a.split()), " ".join(b.split())) for a, b in examples)
        return replace(PROMPTS, prompts=prompts, examples=pairs, label="published")
    prompts = content["prompts"]
    sets = {}
    for key in ("bulleted", "one_sentence"):
        names = content.get(key, [])
        if not isinstance(names, list) or not set(map(str, names)) <= set(prompts):
            raise InputError(f"{path}: {key} must be a list of names of [prompts]")
        sets[key] = frozenset(names)
    examples = content.get("examples", [])
    try:
        pairs = tuple((str(example["story"]), str(example["feedback"])) for example in examples)
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: each of [[examples]] needs a story and its feedback") from error
    return PromptSet(prompts, examples=pairs, label=path.stem, **sets)


ANSWERS = RowKind("the feedback", ("id", "model"), ("missing_reason", "feedback", "story"))
_EXPECTED_TOKENS = 120
"""Tokens per answer, for the estimate: the paper's mean is 74 (Table 1, 295 characters)."""


@dataclass(frozen=True, slots=True)
class ElicitPlan:
    """The prompts and settings for each story."""

    prompts: PromptSet
    names: tuple[str, ...]
    shots: tuple[int, ...]
    sampling: Sampling

    def signature(self, model: str) -> str:
        drawn = str(self.sampling).replace("|", ",").replace(":", "=")
        about = {"model": model, "prompts": self.prompts.name, "sampling": drawn}
        return str(Signature.of("feedback", **about, v=__version__))


def read_corrupted(path: Path) -> list[dict[str, Any]]:
    """Rows of `feedback corrupt`. Raises `InputError` with the line."""
    rows = []
    seen: set[str] = set()
    for number, row in enumerate(read_rows(path, is_edited=True), 1):
        for name in ("id", "story_id", "method", "text", "original"):
            if not isinstance(row.get(name), str):
                raise InputError(
                    f"{path}, line {number}: no text {name!r}; use the output of "
                    "`fabula feedback corrupt`"
                )
        if row["id"] in seen:
            raise InputError(f"{path}, line {number}: the id {row['id']!r} occurs twice")
        seen.add(row["id"])
        rows.append(row)
    if not rows:
        raise InputError(f"{path}: contains no stories")
    return rows


def estimate_grid(
    stories: Sequence[Mapping[str, Any]], plan: ElicitPlan, price: Price | None
) -> Estimate:
    """The estimated cost of the whole grid."""
    n_input = 0
    for name, n in product(plan.names, plan.shots):
        frame = len(feedback_prompt(plan.prompts, name, "", n).text)
        n_input += sum(estimate_tokens(" " * (frame + len(row["text"]))) for row in stories)
    n_calls = len(stories) * len(plan.names) * len(plan.shots)
    usage = Usage(n_input, 0, n_calls * min(_EXPECTED_TOKENS, plan.sampling.max_tokens))
    return Estimate.of(n_calls, usage, price)


async def elicit(
    stories: Sequence[Mapping[str, Any]],
    model: Model,
    plan: ElicitPlan,
    rows: KeptRows,
    *,
    meter: Callable[[int], None] = lambda _: None,
) -> list[Row]:
    """A row for each story, prompt and number of examples; a missing answer has its reason.

    Prompts of one kind are consecutive, so that the model can cache their common prefix.
    """
    signature = plan.signature(model.name)

    def wanted(n_shots: int, name: str, story: Mapping[str, Any]) -> Wanted:
        made_of = {
            "id": f"{story['id']}_{name}_{n_shots}",
            "model": model.name,
            "story": story["text"],
            "signature": signature,
        }

        async def make() -> Row:
            prompt = feedback_prompt(plan.prompts, name, story["text"], n_shots)
            answer = await model.ask(prompt, plan.sampling)
            reason = why_no_text(answer)
            return {
                "id": made_of["id"],
                "story_id": story["story_id"],
                "method": story["method"],
                "prompt": name,
                "shots": n_shots,
                "model": model.name,
                "feedback": None if reason else answer.text.strip(),
                "missing_reason": reason,
                "is_cut": answer.stop == "length",
                "story": story["text"],
                "original": story["original"],
                "change": story.get("change"),
                "signature": signature,
            }

        return made_of, make

    grid = product(plan.shots, plan.names, stories)
    return await ask_for(starmap(wanted, grid), rows, model.n_parallel, meter)

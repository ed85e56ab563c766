"""How models are asked for feedback on a story: four prompts, with and without examples.

Rashkin et al. 2025, section 4 and appendix B: a bulleted list with a taxonomy of issues, a bulleted
list only, one sentence, and "spot the problem"; each tells the model what to say when nothing is
wrong, and is asked without examples or with two, the second of which has no fault. The wording here
is ours; a file with the published one can be loaded instead.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fabula.errors import InputError
from fabula.models import Prompt
from fabula.models.prompting import fenced_if_needed

__all__ = [
    "PERFECT",
    "PROMPTS",
    "PromptSet",
    "feedback_prompt",
    "load_prompts",
    "says_perfect",
    "without_perfect",
]

PERFECT = "The text is perfect as-is."
"""What is to be said where nothing is wrong; the paper counts answers that hold it."""
_PERFECT_PHRASE = "is perfect as-is"
_HYPHENS = str.maketrans(dict.fromkeys("‐‑‒–", "-"))
_PERFECT_SENTENCE = re.compile(rf"[^.!?\n]*{_PERFECT_PHRASE}[^.!?\n]*[.!?]*", re.IGNORECASE)

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
    """Prompts whose answers are lists; the examples' answers begin with a dash there."""
    examples: tuple[tuple[str, str], ...] = ()
    """(story, feedback), with `{perfect}` for the one that has no fault."""
    one_sentence: frozenset[str] = frozenset()
    """Prompts that ask for a single sentence."""
    label: str = "fabula"
    digest: str = field(init=False, default="")

    def __post_init__(self) -> None:
        content = repr((sorted(self.prompts.items()), sorted(self.bulleted), self.examples))
        digest = hashlib.sha256(content.encode()).hexdigest()[:8]
        object.__setattr__(self, "digest", digest)

    @property
    def name(self) -> str:
        """For signatures: `fabula@1a2b3c4d`."""
        return f"{self.label}@{self.digest}"


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
    """The question about a story; the examples come first, as if they had been asked before."""
    template = prompts.prompts[name]
    if n_shots not in (0, len(prompts.examples)):
        raise InputError(
            f"`shots` {n_shots}: there are {len(prompts.examples)} examples; ask with all or none"
        )
    dash = "- " if name in prompts.bulleted else ""
    parts = [
        f"{_filled(template, example)} {dash}{answer.replace('{perfect}', PERFECT)}\n\n"
        for example, answer in prompts.examples[:n_shots]
    ]
    # Prompts of a file are sent as they stand there.
    shown = fenced_if_needed(story.strip()) if prompts is PROMPTS else story
    return Prompt("".join(parts), _filled(template, shown))


def _filled(template: str, story: str) -> str:
    # Not str.format: a story may hold braces.
    before, _, after = template.partition("{story}")
    return (
        before.replace("{perfect}", PERFECT) + story.strip() + after.replace("{perfect}", PERFECT)
    )


def says_perfect(feedback: str) -> bool:
    """Whether feedback holds the sentence for a text without fault (section 5, equation 1)."""
    return _PERFECT_PHRASE in feedback.casefold().translate(_HYPHENS)


def without_perfect(feedback: str) -> tuple[str, bool]:
    """What feedback says besides that sentence, and whether it holds it."""
    rest, n = _PERFECT_SENTENCE.subn(" ", feedback.translate(_HYPHENS))
    return rest if n else feedback, bool(n)


def load_prompts(path: Path) -> PromptSet:
    """Prompts from a TOML file: a table `prompts` of templates with `{story}`, and optionally
    `bulleted`, `one_sentence` (lists of names) and `examples` (tables of `story`, `feedback`).

    Raises `InputError` with what is wrong.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"`prompt_file` {path}: cannot be read as TOML ({error})") from error
    prompts = content.get("prompts")
    if not isinstance(prompts, dict) or not prompts:
        raise InputError(f"{path}: no table [prompts] with a template for each prompt")
    for name, template in prompts.items():
        if not isinstance(template, str) or template.count("{story}") != 1:
            raise InputError(f"{path}: the prompt {name!r} must be a text with one {{story}} in it")
    named = {key: content.get(key, []) for key in ("bulleted", "one_sentence")}
    for key, names in named.items():
        if not isinstance(names, list) or not set(map(str, names)) <= set(prompts):
            raise InputError(f"{path}: {key} must be a list of names of [prompts]")
    examples = content.get("examples", [])
    try:
        pairs = tuple((str(one["story"]), str(one["feedback"])) for one in examples)
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: each of [[examples]] needs a story and its feedback") from error
    return PromptSet(
        prompts=prompts,
        bulleted=frozenset(named["bulleted"]),
        one_sentence=frozenset(named["one_sentence"]),
        examples=pairs,
        label=path.stem,
    )

"""All jobs, by the words of their commands, in the sections of `fabula --help`.

Nothing here imports a job: a line has its place. `register` adds one of your own, and so does an
entry point of the group `fabula.jobs` in any installed package, whose name is the command's words
and whose value the place of its function:

    [project.entry-points."fabula.jobs"]
    rhymes = "my_package.jobs:rhymes"
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from fabula.core.packages import installed, load

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from fabula.jobs.job import Shape

F = TypeVar("F", bound=Callable[..., Any])

DEFAULTS = {"judge": "stories"}
"""The command of a group that need not be named: `fabula judge STORIES...`, `fabula.judge`."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job by the words of its command, and where its function is."""

    name: str
    """The words of its command: `judge correct`."""
    place: str
    """Its module and function: `fabula.judging.agreement:correct`."""
    short: str
    """What it does, in one line."""
    acts: bool = False
    """Whether it does more than make a result, so that no record may start it."""
    point: EntryPoint | None = None
    """Where another package says so."""

    @property
    def python(self) -> str:
        """Its name in Python."""
        words = self.name.split()
        if len(words) > 1 and DEFAULTS.get(words[0]) == words[1]:
            words = words[:1]
        return "_".join(words).replace("-", "_")

    def load(self) -> Shape:
        from fabula.jobs.job import Shape

        if self.point is not None:
            return Shape(load(self.point))
        module, _, function = self.place.partition(":")
        return Shape(getattr(import_module(module), function))


_BUILT_IN = """
One draft
  report = review.job | Run every instrument and write one page.
  desk = writer.start | Open a local page to drop drafts on and read reports.
  setup = writer.setup | Fetch the model files that instruments need, or list models.
Texts and groups of texts
  originality = novelty.job | Score texts against a reference corpus.
  profile = linguistic.job | Measure rhythm, dialogue, word rarity and more.
  diversity = groups.job | Measure how alike texts are that should differ.
  compare = groups.job | Compare groups of texts in any numbers.
  phrases = groups.job | List phrases that one group uses more than another.
  detect score = novelty.detection | Score texts by how probable a language model finds them.
  detect calibrate = novelty.detection | Calibrate a detector on labelled scores.
  detect apply = novelty.detection | Apply a calibrated detector to scores.
Judges and people
  judge stories = judging.job:judge | Judge stories with a rubric.
  judge calibrate = judging.agreement | Measure how far a judge agrees with experts.
  judge correct = judging.agreement | Correct a judge with labels from experts.
  judge agreement = judging.agreement | Compare judges with people and with each other.
  judge themes = judging.agreement | Group raters' reasons into themes.
  rubric show = judging.rubrics | List, show and check rubrics.
  rubric make = judging.rubrics | Draft, import or expand a rubric.
  study new = studies.job | Design a study and write its file.
  study invite = studies.job | Print invitation links.
  study people = studies.job | Look after participants: links, removals, statuses.
  study serve = studies.job | Serve a study's pages, or a preview of them.
  study export = studies.job | Export the answers as measurements.
  study backup = studies.job | Copy a study into one file, or back from it.
  study analyse = studies.job | Print the paper's tables from a study's answers.
  plan = judging.panel_size | Plan how large a study must be.
Experiments
  stories draw = stories.job | Draw some texts, or pieces of feedback, at random.
  stories plot = stories.job | Summarise the plot of each story in a sentence.
  stories write = stories.job | Write a story of a given length for each plot.
  stories openings = reference.job | Continue a first sentence, a headline or a theorem.
  continuation passages = continuation.job | Cut books into contexts and what follows them.
  continuation train = continuation.job | Train the baseline generators.
  continuation generate = continuation.job | Generate the next sentence of each passage.
  continuation score = continuation.job | Compare systems on fifteen metrics, with tests.
  feedback corrupt = feedback.job | Corrupt stories in known ways.
  feedback elicit = feedback.job | Ask models for feedback on corrupted stories.
  feedback find = feedback.job | Score which answers find the planted faults.
  feedback score = feedback.job | Measure length, repetition and precision of feedback.
  feedback rate = feedback.job | Have a model rate or label each piece of feedback.
  reference build = reference.job | Build a reference corpus, or add texts to one.
  reference remove = reference.job | Remove documents from a corpus.
  reference info = reference.job | List corpora, or show and check one.
  reference measure = novelty.held_out | Score a corpus's own documents against it.
  reference group = review.job | Measure texts as a reference group.
  reference serve = reference.job | Serve corpora over HTTP.
  replicate ttcw = replicate.job | Replicate Chakrabarty et al. 2024.
  replicate linguistic-metrics = replicate.job | Replicate Roemmele et al. 2017.
  replicate creativity-index = replicate.job | Replicate Lu et al. 2024.
  replicate story-feedback = replicate.job | Replicate Rashkin et al. 2025.
  rerun = cli.rerun | Make a result again, and check that it is the same.
"""
_ACTING = (
    "desk", "judge calibrate", "setup", "study new", "study invite", "study people", "study serve",
    "study export", "study backup", "rubric show",
    "reference info", "reference serve", "rerun",
)  # fmt: skip
"""Jobs that do more, or less, than make a result, which no record may start."""
OTHERS = "Of other packages"
_OWN: dict[str, Job] = {}


def register(words: str, short: str = "") -> Callable[[F], F]:
    """Make a function the job of these words. Raises `ValueError` if they are taken."""

    def add(function: F) -> F:
        place = f"{function.__module__}:{function.__name__}"
        if words in jobs() and words not in _OWN and jobs()[words].place != place:
            raise ValueError(f"the job {words!r} already exists")
        _OWN[words] = Job(words, place, short or (function.__doc__ or words).split("\n")[0])
        return function

    return add


@cache
def _built_in() -> dict[str, list[Job]]:
    sections: dict[str, list[Job]] = {}
    for line in filter(None, _BUILT_IN.splitlines()):
        if not line.startswith(" "):
            section = sections.setdefault(line, [])
            continue
        words, _, rest = line.strip().partition(" = ")
        place, _, short = rest.partition(" | ")
        module, _, function = place.partition(":")
        # A function has the last word of its command, unless the line names another.
        function = function or words.split()[-1].replace("-", "_")
        section.append(Job(words, f"fabula.{module}:{function}", short, words in _ACTING))
    return sections


def sections() -> dict[str, list[Job]]:
    """The jobs by section; those of other packages are the last section."""
    found = installed("jobs")
    others = [Job(p.name, p.value, f"From {p.value.partition(':')[0]}.", point=p) for p in found]
    others += _OWN.values()
    return {**_built_in(), **({OTHERS: others} if others else {})}


def jobs() -> dict[str, Job]:
    """All jobs, by the words of their commands."""
    return {job.name: job for section in sections().values() for job in section}

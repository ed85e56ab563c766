"""How reliable a judge is: its measured agreement with experts, and what it was measured on.

A figure belongs to a model (by its served name, not its URL), a wording of the rubric, a prompt
style and the data it was measured on. Unmeasured judges are reported as such; a figure of another
style is never used, and one of another mode (number of answers, temperature, structured output) is
marked as such. It is shown beside people's agreement among themselves on the same documents.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import date as day
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

from fabula.core.errors import DAMAGE, InputError
from fabula.core.store import read_rows, write_rows
from fabula.core.types import Document, Estimate, Measurement, Rubric, Signature, by_rater
from fabula.judging.plan import JudgePlan, is_identified
from fabula.raters.agreement import (
    GradedAgreement,
    JudgeAgreement,
    Panel,
    PeopleAgreement,
    judge_agreement,
    people_agreement,
    ratings_of,
)
from fabula.rubrics.released import EXPERTS_FILE, STORIES_FILE, read_released_stories

_SHIPPED = Path(__file__).parent / "trust.jsonl"
_FIGURES = (
    "kappa", "low", "high", "n", "samples", "temperature", "people", "people_fleiss",
    "people_fleiss_mean", "less", "less_low", "less_high",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mode:
    """How answers were drawn."""

    samples: int = 1
    temperature: float = 0.0
    structured: str = ""
    """`on` or `off` if a JSON schema was requested or disabled."""
    effort: str = ""
    """The reasoning effort requested; empty is the model's default."""
    paraphrases: str = ""
    """The number of additional wordings of each question, with their digest; empty is none."""

    @classmethod
    def of(cls, parts: Mapping[str, str]) -> Mode:
        """The mode, from the parts of a judge's signature."""
        kinds: dict[str, Any] = {"samples": int, "temperature": float}
        names = [entry.name for entry in fields(cls) if entry.name in parts]
        return cls(**{name: kinds.get(name, str)(parts[name]) for name in names})

    def __str__(self) -> str:
        answers = "1 answer" if self.samples == 1 else f"{self.samples:,} answers"
        held = {"on": ", held to a JSON schema", "off": ", not held to a JSON schema"}
        effort = f", reasoning effort {self.effort}" if self.effort else ""
        n_others = self.paraphrases.partition("@")[0]
        worded = f", in {int(n_others) + 1} wordings" if n_others else ""
        return (
            f"{answers} at temperature {self.temperature:g}{worded}"
            f"{held.get(self.structured, '')}{effort}"
        )


@dataclass(frozen=True, slots=True)
class Trust:
    """A judge's agreement with the experts' majority on an item (`all`: over all items)."""

    model: str
    rubric: str
    style: str
    prompt: str
    item: str
    kappa: float | None
    low: float | None
    high: float | None
    n: int
    n_missing: int
    balanced_accuracy: float | None
    data: str
    always: str = ""
    """Set if one side gives the same answer to everything, so that there is nothing to agree on."""
    samples: int = 1
    temperature: float = 0.0
    structured: str = ""
    n_documents: int | None = None
    people: float | None = None
    """Cohen's kappa of one person with the majority of the others, on the same documents."""
    people_fleiss: float | None = None
    people_fleiss_mean: float | None = None
    """Over all items: the mean of their Fleiss kappas; `people_fleiss` weights them by what chance
    leaves to agree on."""
    less: float | None = None
    """The judge in each person's place, before the majority of the others, minus that person's own
    kappa there; and the bounds of its interval."""
    less_low: float | None = None
    less_high: float | None = None
    effort: str = ""
    paraphrases: str = ""
    date: str = ""
    """The date it was measured, as 2026-05-31; empty if it is unknown."""
    is_other_mode: bool = False
    """It is shown beside results drawn in another mode. Not stored."""

    @property
    def mode(self) -> Mode:
        return Mode(self.samples, self.temperature, self.structured, self.effort, self.paraphrases)

    @property
    def origin(self) -> str:
        """What it was measured on, how and when."""
        when = f"measured on {self.date}" if self.date else ""
        return "; ".join(filter(None, (self.data, str(self.mode), when)))

    @property
    def shown(self) -> str:
        """For a table: `0.12 [-0.05, 0.31], n 36; people 0.20`."""
        mode = f"; measured in another mode ({self.mode})" if self.is_other_mode else ""
        people = "" if self.people is None else f"; people {self.people:.2f}"
        details = f", n {self.n}{people}{mode}"
        if self.kappa is None:
            return f"kappa undefined{details}"
        if self.always:
            return f"{self.kappa:.2f}: {self.always}{details}"
        interval = "" if self.low is None else f" [{self.low:.2f}, {self.high:.2f}]"
        return f"{self.kappa:.2f}{interval}{details}"

    @property
    def worth(self) -> str:
        """What the agreement means, compared with chance and with people, in a few sentences."""
        if self.kappa is None:
            says = "Agreement is undefined here."
        elif self.always.startswith(("always", "says")):
            says = "It says the same of every text, so it tells none from another."
        elif self.low is None or self.high is None:
            says = "There are too few documents to distinguish it from chance."
        elif self.low > 0:
            says = "That is above chance."
        elif self.high < 0:
            says = "That is below chance."
        else:
            says = (
                "It cannot be distinguished from chance: treat its verdicts as a demonstration, "
                "not a judgement."
            )
        if self.less_low is not None and self.less_high is not None:
            if self.less_high < 0:
                says += " It is less than one person reaches."
            elif self.less_low > 0:
                says += " It is more than one person reaches."
            else:
                says += " It cannot be distinguished from what one person reaches."
        if self.is_other_mode:
            says += " It was measured in another mode and may not hold for these verdicts."
        return f"{says} {self.yardstick}"

    @property
    def is_above_chance(self) -> bool:
        """Whether it was measured in this mode, and its interval lies above chance."""
        return not self.is_other_mode and self.low is not None and self.low > 0

    @property
    def yardstick(self) -> str:
        """People's agreement among themselves on the same documents."""
        if self.people is None:
            return "Agreement among people on those documents is unknown."
        measured_on = f"{self.n_documents} documents" if self.n_documents else "documents"
        fleiss = []
        if self.people_fleiss is not None:
            within = "" if self.people_fleiss_mean is None else " within items"
            fleiss.append(f"Fleiss {self.people_fleiss:.2f}{within}")
        if self.people_fleiss_mean is not None:
            fleiss.append(f"{self.people_fleiss_mean:.2f} as the mean of the items")
        more = f" ({', '.join(fleiss)})" if fleiss else ""
        return (
            f"People among themselves: on the same {measured_on} one of them reaches "
            f"{self.people:.2f} with the others where these agree{more}."
        )

    @property
    def n_dots(self) -> int:
        """1 to 4: under 0.2, from 0.2, 0.4, 0.6; 0 if undefined or of another mode.

        Fair agreement begins at 0.2, moderate at 0.4 (Landis and Koch 1977).
        """
        if self.kappa is None or self.is_other_mode:
            return 0
        return 1 + sum(self.kappa >= edge for edge in (0.2, 0.4, 0.6))


def trust_of(
    agreement: JudgeAgreement,
    rubric: Rubric,
    people: Mapping[str, PeopleAgreement] | None = None,
    date: str = "",
) -> list[Trust]:
    """The trust that results from an agreement (by item), measured on a date, and people's."""
    trusts = []
    for row in (*agreement.rows, agreement.overall):
        counts = row.confusion
        n_yes = {
            "always": counts.true_yes + counts.false_yes,
            "experts always": counts.true_yes + counts.false_no,
        }
        always = (f"{who} {'Yes' if n else 'No'}" for who, n in n_yes.items() if n in (0, counts.n))
        figures: dict[str, Any] = {"n": counts.n, "n_missing": row.n_missing, "date": date}
        figures |= {"balanced_accuracy": counts.balanced_accuracy, "always": next(always, "")}
        if (among := (people or {}).get(row.name)) is not None:
            less = among.judge_less or Estimate(None, None, None, 0, "", "")
            figures |= {"n_documents": among.n_documents, "people": among.one_with_rest}
            figures |= {"people_fleiss": among.fleiss, "people_fleiss_mean": among.fleiss_mean}
            figures |= {"less": less.value, "less_low": less.low, "less_high": less.high}
        trusts.append(_trust(agreement.signature, rubric, row.name, row.kappa, **figures))
    if all(trust.always.startswith("always") for trust in trusts[:-1]):
        trusts[-1] = replace(trusts[-1], always="says the same of every story")
    return trusts


def _trust(signature: str, rubric: Rubric, item: str, kappa: Estimate, **figures: Any) -> Trust:
    """The trust in the judge with a signature; `figures` are further fields, here rounded."""
    parts = dict(Signature.parse(signature).parts)
    mode = Mode.of(parts)
    figures |= {"kappa": kappa.value, "low": kappa.low, "high": kappa.high}
    rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in figures.items()}
    named = {name: parts[name] for name in ("model", "style", "prompt")}
    known = {"rubric": rubric.key, "item": item, "data": parts.get("experts")}
    return Trust(**named | known | asdict(mode) | rounded)


class TrustBook:
    """All known figures: those shipped with Fabula, then those measured by this user."""

    def __init__(self, path: Path | None = None) -> None:
        home = os.environ.get("FABULA_HOME")
        self.path = path or (Path(home) if home else user_data_path("fabula")) / "trust.jsonl"
        self._known: dict[tuple[str | Mode, ...], Trust] = {}
        for source in (_SHIPPED, self.path):
            if source.exists():
                self._known |= {_key(trust): trust for trust in _read(source)}

    def find(
        self, model: str, rubric: str, style: str, prompt: str, mode: Mode | None = None
    ) -> Mapping[str, Trust]:
        """The trust by item; empty if this judge was never checked.

        Figures measured in the same mode take precedence; those of another mode are marked as such.
        """
        trusts: dict[str, Trust] = {}
        for trust in self._known.values():
            asked = trust.rubric, trust.style, trust.prompt
            if asked != (rubric, style, prompt) or not _is_model(trust.model, model):
                continue
            is_other = mode is not None and trust.mode != mode
            if trust.item not in trusts or not is_other:
                trusts[trust.item] = replace(trust, is_other_mode=is_other)
        return trusts

    def of_judge(self, signature: str, rubric: str) -> Mapping[str, Trust]:
        """The trust by item in the judge with this signature, as `find` gives it."""
        parts = dict(Signature.parse(signature).parts)
        return self.find(parts["model"], rubric, parts["style"], parts["prompt"], Mode.of(parts))

    def best(self, model: str, rubric: str) -> Trust | None:
        """The figure of a model over all items of a rubric, in the style that was checked best.

        Best means most answers, then highest kappa; None if it was never checked.
        """
        whole = (t for t in self._known.values() if t.item == "all" and t.rubric == rubric)
        trusts = [trust for trust in whole if _is_model(trust.model, model)]
        return max(trusts, key=lambda t: (t.n, -1.0 if t.kappa is None else t.kappa), default=None)

    def add(self, trusts: Iterable[Trust]) -> None:
        """Store these, replacing earlier figures for the same."""
        figures = {_key(trust): trust for trust in (_read(self.path) if self.path.exists() else ())}
        new = {_key(trust): trust for trust in trusts}
        figures |= new
        self._known |= new
        rows = map(asdict, figures.values())
        stored = ({k: v for k, v in row.items() if k != "is_other_mode"} for row in rows)
        write_rows(self.path, stored, are_results=True)


def _key(trust: Trust) -> tuple[str | Mode, ...]:
    model = trust.model.rpartition("@")[2]
    return model, trust.rubric, trust.style, trust.prompt, trust.item, trust.mode


def _is_model(name: str, model: str) -> bool:
    """Whether a stored figure is for this model: the part before `@` is a label for people."""
    return name.rpartition("@")[2] == model.rpartition("@")[2]


def _read(path: Path) -> list[Trust]:
    trusts = []
    try:
        for row in read_rows(path):
            trust = Trust(**row)
            for name in _FIGURES:
                if not isinstance(figure := getattr(trust, name), int | float | None):
                    raise ValueError(f"{figure!r} is not a number")  # noqa: TRY004 (as DAMAGE)
            if trust.date:
                day.fromisoformat(trust.date)
            trusts.append(trust)
    except DAMAGE as error:
        raise InputError(f"{path}: not a file of trust ({error}); remove it") from error
    return trusts


def released_folder(folder: Path) -> tuple[list[Document], Path]:
    """The stories of the authors' release that include their text, and the file of verdicts."""
    for name in (STORIES_FILE, EXPERTS_FILE):
        if not (folder / name).exists():
            raise InputError(
                f"{folder}: lacks {name}; download the folder Art_or_Artifice from "
                "github.com/salesforce/creativity_eval"
            )
    return read_released_stories(folder / STORIES_FILE), folder / EXPERTS_FILE


def calibrate(
    measurements: Sequence[Measurement],
    panel: Panel,
    plan: JudgePlan,
    book: TrustBook,
    date: str = "",
) -> list[tuple[JudgeAgreement, list[Trust]]]:
    """Each judge's agreement with the experts, stored in the book with the date, as 2026-05-31.

    It is not stored for a URL whose server names no model: another could be there tomorrow.
    """
    results = []
    for verdicts in by_rater(measurements).values():
        agreement = judge_agreement(verdicts, panel, plan.rubric, "item", seed=plan.seed)
        people = people_agreement(panel, {v.document_id for v in verdicts}, ratings_of(verdicts))
        trusts = trust_of(agreement, plan.rubric, people, date)
        if plan.only:
            # What holds over some items does not hold over all of them.
            trusts = [trust for trust in trusts if trust.item != "all"]
        if is_identified(trusts[0].model):
            book.add(trusts)
        results.append((agreement, trusts))
    return results


def graded_trust(
    measurements: Sequence[Measurement],
    graded: GradedAgreement,
    plan: JudgePlan,
    book: TrustBook,
    source: str,
    date: str = "",
) -> list[Trust]:
    """The trust in items that are not yes-no, each by its kappa with one person, stored too.

    It is shown beside the kappa between people.
    """
    by_judge = by_rater(measurements)
    trusts = [
        _trust(
            by_judge[rater][0].signature,
            plan.rubric,
            item,
            row.kappa,
            n=row.n,
            n_missing=sum(m.item == item and m.value is None for m in by_judge[rater]),
            balanced_accuracy=None,
            data=source,
            n_documents=row.n,
            people=row.people.value,
            less=row.difference.value,
            less_low=row.difference.low,
            less_high=row.difference.high,
            date=date,
        )
        for rater, by_item in graded.judges.items()
        for item, row in by_item.items()
    ]
    book.add([trust for trust in trusts if is_identified(trust.model)])
    return trusts

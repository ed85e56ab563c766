"""A judge's run on disk: starting, resuming and finishing it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabula.core.errors import InputError
from fabula.core.resume import KeptRows, Row
from fabula.core.store import (
    RUN,
    RowWriter,
    measurement_row,
    read_measurements,
    write_rows,
    write_whole,
)
from fabula.core.types import Document, Measurement, Rubric, Signature
from fabula.judging.pairs import Pairs, judge_pairs
from fabula.judging.plan import ANSWERS, AnswerBook, JudgePlan
from fabula.judging.prompts import PAIR_SCALE
from fabula.judging.run import MAX_UNREADABLE, RETEST, judge_stories, to_measurements, with_retest
from fabula.models.base import FunctionModel, Model, Usage
from fabula.models.cost import Estimate, Price, SharedBudget, estimate_tokens
from fabula.models.model_spec import ModelOptions, open_model
from fabula.models.replay import recorded
from fabula.models.verdicts import read_verdict
from fabula.rubrics.load import load_rubric, rubric_toml
from fabula.text import check_ids

_TEXTS = ("id", "item", "model", "prompt_digest")
"""The fields of an answer that are texts."""


class RunFolder:
    """A folder with `run.json`, `rubric.toml`, `answers.jsonl` and, when done, measurements."""

    def __init__(self, path: Path, plan: JudgePlan, again: Collection[str] = ()) -> None:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: is a file; `out` must name a folder")
        self.path = path
        self._plan = plan
        self._again = again
        self._has_begun = False
        self._rows: KeptRows | None = None
        self._earlier: Path | None = None
        """The answers of an earlier run, which this one sets aside."""

    @contextmanager
    def open(self, *, restart: bool = False) -> Iterator[AnswerBook]:
        """Open the answers so far, as their only writer.

        The folder is not changed until the first answer is written or `begin` is called; a restart
        sets old answers aside then. Raises `InputError` if the folder holds another kind of run,
        `BusyError` if another process has it open.
        """
        is_new, had_answers = not self.path.exists(), (self.path / "answers.jsonl").exists()
        with RowWriter(self.path / "answers.jsonl", restart=restart) as file:
            for number, row in enumerate(file.kept, 1):
                try:
                    good = all(isinstance(row.get(name), str) for name in _TEXTS)
                    good &= all(isinstance(row.get(name), int) for name in ("sample", "seed"))
                    if good and not row.get("failed"):
                        recorded(row)
                except (TypeError, ValueError, AttributeError):
                    good = False
                if not good:
                    raise InputError(
                        f"{file.path}, line {number}: not an answer from a judge; choose another "
                        "`out`"
                    )
            if file.kept and not restart:
                self._check_same()
            self._earlier = file.path if file.kept and restart else None
            self._rows = KeptRows(ANSWERS, file, restart=restart)
            try:
                yield AnswerBook(self._rows, self._is_asked_again)
            finally:
                if not (self._has_begun or had_answers):
                    # A model that is not available leaves nothing behind.
                    file.path.unlink()
                    if is_new:
                        self.path.rmdir()

    def _is_asked_again(self, row: Row) -> bool:
        """Whether an answer lacks its verdict for one of the reasons in `again`."""
        if not self._again:
            return False
        plan = self._plan
        known = {item.id: item.scale for item in plan.rubric.items}
        scale = PAIR_SCALE if plan.kind == "pairs" else known.get(row["item"])
        if scale is None:
            return False
        return read_verdict(recorded(row), scale, plan.template.style).missing_reason in self._again

    def begin(self) -> None:
        """Start writing: the folder now belongs to this run."""
        if self._has_begun or self._rows is None:
            return
        self._has_begun = True
        if self._earlier is not None:
            number = 1 + len(list(self.path.glob("answers.before-restart-*.jsonl")))
            aside = self.path / f"answers.before-restart-{number}.jsonl"
            write_whole(aside, self._earlier.read_bytes())
        self._rows.begin()
        # Until this run is finished there are no measurements; those of the last run are removed.
        (self.path / "measurements.jsonl").unlink(missing_ok=True)
        write_whole(self.path / "rubric.toml", rubric_toml(self._plan.rubric).encode())
        settings = {**RUN.mark, "kind": "judge", "signature": str(self._plan.signature("*"))}
        write_rows(self.path / "run.json", [settings])

    def _check_same(self) -> None:
        """Samples and wordings may be added, and answers parsed again; all else must be unchanged.

        When truncated answers are asked again, the token limit may grow: complete ones stay valid.
        """
        try:
            row = json.loads((self.path / "run.json").read_bytes())
            signature = str(row["signature"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{self.path}: contains answers without a run.json that says how they were "
                "obtained; choose another `out`"
            ) from error
        RUN.check(row, self.path / "run.json")
        was, now = Signature.parse(signature), self._plan.signature("*")
        free = ["samples:", "paraphrases:", "reader:", "v:"]
        limit = dict(was.parts).get("tokens", "")
        if "truncated" in self._again and limit.isdecimal() and int(limit) < self._plan.max_tokens:
            free.append("tokens:")
        differences = [part for part in was.differences(now) if not part.startswith(tuple(free))]
        if differences:
            raise InputError(
                f"{self.path}: was judged with other settings ({'; '.join(differences)}); choose "
                "another `out`, or start over with `restart`"
            )


def read_run(path: Path) -> tuple[Rubric, list[Measurement]]:
    """The rubric and the measurements of a finished run. Raises `InputError`."""
    if not (path / "rubric.toml").exists():
        raise InputError(f"{path}: is not a run of `fabula judge`")
    if not (path / "measurements.jsonl").exists():
        raise InputError(f"{path}: is not finished; run the command that made it again")
    return load_rubric(path / "rubric.toml"), list(read_measurements(path / "measurements.jsonl"))


# The typical length of an answer, in tokens.
_LIKELY_OUTPUT = {"verdict-first": 60, "reason-first": 350}


@dataclass(frozen=True, slots=True)
class Spent:
    """What a model used and cost. `cost` in dollars, None if its price is unknown."""

    model: str
    n_calls: int
    usage: Usage
    cost: float | None
    is_free: bool = False
    """Its price is known to be zero."""


@dataclass(frozen=True, slots=True)
class Session:
    """What is judged, by which models, and with which settings."""

    documents: Sequence[Document]
    models: Sequence[str | FunctionModel]
    plan: JudgePlan
    out: Path | None = None
    pairs: Pairs | None = None
    """Judge these pairs instead of single stories."""
    n_retest: int = 0
    options: ModelOptions = field(default_factory=ModelOptions)
    max_cost: float | None = None
    restart: bool = False
    again: Collection[str] = ()
    """Ask again if a verdict is missing for one of these reasons."""
    max_unreadable: int = MAX_UNREADABLE
    """Stop after this many answers in a row without a readable verdict; 0 never stops."""


def run_session(
    session: Session,
    *,
    agree: Callable[[str, Estimate], None] = lambda _model, _estimate: None,
    begin: Callable[[str, int], None] = lambda _model, _n: None,
    meter: Callable[[int], None] = lambda _: None,
) -> tuple[list[Measurement], list[Spent]]:
    """Judge, model by model; returns measurements in the order of models, stories, items.

    `agree` is called with a model's estimated cost before its first call, and raises to stop.
    Raises `InputError`, `ModelError`, `BusyError`; answers so far stay in the session's folder.
    """
    check_ids(session.documents)
    for document in session.documents:
        if document.id.endswith(RETEST):
            raise InputError(f"{document.id}: an id must not end with {RETEST}; give it another")
    plan, prices = session.plan, session.options.prices
    most = session.max_unreadable
    documents = with_retest(session.documents, session.n_retest, plan.seed)
    folder = None if session.out is None else RunFolder(session.out, plan, session.again)

    async def judge(
        spec: str | FunctionModel, book: AnswerBook, shared_budget: SharedBudget
    ) -> tuple[list[Measurement], Spent]:
        name = spec if isinstance(spec, str) else spec.name
        price = prices.of(spec) if isinstance(spec, str) else prices.each
        async with open_model(spec, replace(session.options, shared_budget=shared_budget)) as model:
            n_before = book.n_new
            agree(name, estimate_calls(session, documents, model, book, price))
            if folder is not None:
                folder.begin()
            if session.pairs is not None:
                begin(name, 2 * len(plan.items) * len(session.pairs))
                answers = await judge_pairs(
                    session.pairs, model, plan, book, meter=meter, max_unreadable=most
                )
            else:
                begin(name, len(plan.items) * plan.n_answers * len(documents))
                judged = await judge_stories(
                    documents, model, plan, book, meter=meter, max_unreadable=most
                )
                answers = list(to_measurements(judged, documents, model.name, plan))
            budget, n_new = model.budget, book.n_new - n_before
            return answers, Spent(model.name, n_new, budget.usage, budget.cost, budget.is_free)

    measurements: list[Measurement] = []
    spent: list[Spent] = []
    with folder.open(restart=session.restart) if folder else nullcontext(AnswerBook()) as book:
        shared_budget = SharedBudget(session.max_cost, book.ledger)
        for spec in dict.fromkeys(session.models):
            judged, cost = asyncio.run(judge(spec, book, shared_budget))
            measurements += judged
            spent.append(cost)
        if folder is not None:
            rows = map(measurement_row, measurements)
            write_rows(folder.path / "measurements.jsonl", rows, are_results=True)
    return measurements, spent


def estimate_calls(
    session: Session,
    documents: Sequence[Document],
    model: Model,
    book: AnswerBook,
    price: Price | None,
) -> Estimate:
    """Estimate the remaining calls: a prefix is read once, then taken from the cache."""
    plan = session.plan
    items = plan.items
    texts = [plan.template.shown(document) for document in documents]
    if session.pairs is not None:
        texts = [a.text + b.text for a, b in session.pairs for _ in range(2)]
    n_asked = len(items) * (plan.n_answers if session.pairs is None else 1)
    blank = Document("", "")
    questions = sum(estimate_tokens(plan.template.prompt(blank, item).text) for item in items)
    questions -= len(items) * estimate_tokens(plan.template.shown(blank))
    n_left = max(0, len(texts) * n_asked - book.count(model.name))
    share = n_left / (len(texts) * n_asked) if texts else 0.0
    prefixes = sum(map(estimate_tokens, texts))
    n_input = n_asked * prefixes + len(texts) * questions * n_asked // len(items)
    output = min(plan.max_tokens, _LIKELY_OUTPUT[plan.template.style])
    n_cached = (n_asked - 1) * prefixes if plan.template.has_story_first else 0
    usage = Usage(round(share * n_input), round(share * n_cached), round(n_left * output))
    return Estimate.of(n_left, usage, price)

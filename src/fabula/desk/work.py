"""The desk's background work: one draft at a time is measured, and its report grows."""

from __future__ import annotations

import re
import shutil
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from fabula.desk.draft_settings import Asked, quick_settings
from fabula.desk.drafts import Drafts, Piece, Version, read_json
from fabula.desk.live_check import PARTS, WHOLE, Look, look_again, since
from fabula.desk.rendering import render_place, render_report
from fabula.errors import FabulaError
from fabula.jobs.progress import Declined, Progress
from fabula.jobs.report import ReportSettings
from fabula.jobs.reviewer import Reviewer
from fabula.jobs.setup import SetupSettings
from fabula.models.cost import Estimate
from fabula.reference import Reference
from fabula.reference.search import check_spec, is_elsewhere, open_backend
from fabula.review import Review, numbers_of_review
from fabula.review.finding_changes import Changes, compare_noted, noted_of, says_same
from fabula.store import dump_json, write_whole
from fabula.text import read_documents
from fabula.types import Document

_FAILED = "Something went wrong; see the terminal in which the desk runs."


@dataclass(slots=True)
class State:
    """The progress of a version's report."""

    stage: str = "waiting"
    n_done: int = 0
    n_total: int | None = None
    edition: int = 0
    """Increases with each finished part of the report."""
    question: str = ""
    """The cost of a model, while confirmation is pending."""
    error: str = ""
    is_over: bool = False
    answered: threading.Event = field(default_factory=threading.Event)
    is_agreed: bool = False
    is_unwanted: bool = False
    """No longer needed: the piece was removed, or the desk is closed."""

    def stop(self) -> None:
        self.is_unwanted = True
        self.question = ""
        self.answered.set()

    def to_json(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "done": self.n_done,
            "total": self.n_total,
            "edition": self.edition,
            "question": self.question,
            "error": self.error,
            "over": self.is_over,
        }


class Unwanted(FabulaError):  # noqa: N818 (a decision, not a fault)
    """A report is no longer needed."""


class Desk:
    """Drafts, and the worker that measures them: `with Desk(folder, references) as desk`."""

    def __init__(
        self,
        folder: Path,
        references: tuple[str, ...] = (),
        *,
        n_jobs: int = 1,
        setup: SetupSettings | None = None,
    ) -> None:
        self.drafts = Drafts(folder)
        self.folder = folder
        self._known = folder / "references.json"
        kept = read_json(self._known)
        known = map(str, kept) if isinstance(kept, list) else ()
        self.references = list(dict.fromkeys([*references, *known]))
        self.n_jobs = n_jobs
        self.setup = setup or SetupSettings()
        """Where models are fetched from."""
        self._others: dict[str, State] = {}
        self._states: dict[tuple[str, int], State] = {}
        self._looks: dict[tuple[str, int], Look] = {}
        self._reviewer: Reviewer | None = None
        self._is_closing = False
        # One at a time: two would only compete for the same processors.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="desk")

    def __enter__(self) -> Desk:
        # Resume interrupted work.
        for piece in reversed(self.drafts.pieces()):
            for version in piece.versions:
                if not version.found.get("is_whole"):
                    self.begin(version)
        return self

    def __exit__(self, *error: object) -> None:
        self._is_closing = True
        for state in self._states.values():
            state.stop()
        self._pool.shutdown(cancel_futures=True)
        if self._reviewer is not None:
            self._reviewer.__exit__(None, None, None)

    def remove(self, piece: Piece) -> None:
        """Delete a piece permanently; its measuring is stopped."""
        for version in piece.versions:
            self._running(version).stop()
        self.drafts.remove(piece)

    def begin(self, version: Version) -> None:
        """Measure a version after those queued before it; also measures it again."""
        state = self._states[version.piece, version.number] = State()
        future = self._pool.submit(self._measure, version, state)
        future.add_done_callback(partial(_end, state))

    def state(self, version: Version) -> State:
        """The current progress; a version finished earlier counts as done."""
        return replace(self._running(version))  # a snapshot, since work continues

    def _running(self, version: Version) -> State:
        known = self._states.get((version.piece, version.number))
        return known or State(stage="", edition=1, is_over=True)

    def begin_other(self, name: str, work: Callable[[Progress], None]) -> None:
        """Queue work other than a draft's report."""
        state = self._others[name] = State()
        future = self._pool.submit(work, _Watch(self, state))
        future.add_done_callback(partial(_end, state))

    def state_of(self, name: str) -> State | None:
        """The progress of other work; None if it was never started."""
        known = self._others.get(name)
        return None if known is None else replace(known)

    def stop_other(self, name: str) -> None:
        """Cancel work that is no longer needed."""
        if (state := self._others.pop(name, None)) is not None:
            state.stop()

    def answer(self, version: Version, *, agreed: bool) -> None:
        """The writer's decision on a model's cost and where the draft is sent."""
        state = self._running(version)
        # Gone at once, or the page would ask again until the report goes on.
        state.is_agreed, state.question = agreed, ""
        state.answered.set()

    def check(self, version: Version, text: str) -> tuple[Look, Changes] | None:
        """The findings in a text being written, and what changed since its version.

        None while a report is in progress. Raises `InputError`.
        """
        plan = quick_settings(Asked.read(version.asked), PARTS, WHOLE, self.n_jobs)
        first = Look(version.text, tuple(version.findings))
        before = self._looks.get((version.piece, version.number), first)

        def measure(document: Document) -> Review | None:
            if any(not state.is_over for state in self._states.values()):
                return None
            return self._pool.submit(lambda: self._opened(plan).run([document])).result()

        after = look_again(before, text, measure)
        if after is None:
            return None
        self._looks[version.piece, version.number] = after
        return after, since(first, after)

    def changes(self, before: Version, after: Version) -> Changes | None:
        """The status of a version's findings in a later one; None until both are complete."""
        if not (before.found.get("is_whole") and after.found.get("is_whole")):
            return None
        both = [(one.text, one.findings, one.signatures) for one in (before, after)]
        n_with_points = sum(any(n.kind == "point" for n in noted) for _, noted, _ in both)
        return compare_noted(both[0], both[1], says_same() if n_with_points == 2 else None)

    def add_reference(self, path: str) -> None:
        """Add a reference to compare drafts with. Raises `CorpusError`, `InputError`."""
        check_spec(path)
        if not is_elsewhere(path) and "://" not in path:
            path = str(Path(path).expanduser().resolve())
        with closing(open_backend([path])):
            self._remember(path)

    def build_reference(self, name: str, files: Sequence[Path]) -> None:
        """Build a corpus from uploaded texts. Raises `InputError`."""
        plain = "-".join(re.findall(r"\w+", name.lower()))[:40] or "my-texts"
        folder = self.folder / "references"
        folder.mkdir(mode=0o700, exist_ok=True)
        taken = {path.stem for path in folder.iterdir()}
        numbered = (plain, *(f"{plain}-{k}" for k in range(2, len(taken) + 3)))
        path = folder / f"{next(one for one in numbered if one not in taken)}.ref"
        documents = read_documents([str(file) for file in files])
        Reference.build(documents, path, n_jobs=self.n_jobs).close()
        self._remember(str(path))

    def is_made_here(self, path: str) -> bool:
        """Whether a reference was built on the desk, from uploaded files."""
        return Path(path).parent == (self.folder / "references")

    def remove_reference(self, path: str) -> None:
        """Remove a reference. One that was built on the desk is deleted permanently."""
        if path not in self.references:
            return
        self.references.remove(path)
        self._save_references()
        if self.is_made_here(path):
            shutil.rmtree(path, ignore_errors=True)

    def _remember(self, path: str) -> None:
        self.references = list(dict.fromkeys([path, *self.references]))
        self._save_references()

    def _save_references(self) -> None:
        # An address may contain a password.
        known = dump_json(self.references).encode(errors="replace")
        write_whole(self._known, known, is_private=True)

    def _measure(self, version: Version, state: State) -> None:
        piece = self.drafts.piece(version.piece)
        if piece is None:
            return
        # Answers about one version are not paid for again in the next.
        answers = version.folder.parent / "answers"
        plan = Asked.read(version.asked).settings(self.n_jobs, answers)
        document = Document(f"draft {version.number}", version.text, meta={"title": piece.title})
        review: Review | None = None
        try:
            watch = _Watch(self, state)
            for review in self._opened(plan).steps([document], watch, watch.confirm):
                self._keep(version, state, review)
                state.edition += 1
        except Unwanted:
            return
        if review is not None:
            self._keep(version, state, review, is_whole=True)
            broken = [entry.reason for entry in review.left_out if entry.is_failure]
            state.error = state.error or next(iter(broken), "")

    def _keep(
        self, version: Version, state: State, review: Review, *, is_whole: bool = False
    ) -> None:
        self.check_wanted(state)
        numbers, (row,) = numbers_of_review(review)
        found = {
            "is_whole": is_whole,
            "signatures": dict(review.signatures),
            "findings": [asdict(one) for one in noted_of(review.texts[0])],
            "numbers": [
                {
                    "key": n.key,
                    "title": n.title,
                    "form": n.form,
                    "value": row.get(n.key),
                    "signature": review.signatures.get(n.part, ""),
                }
                for n in numbers
            ],
        }
        version.keep("report.html", render_report(review).encode(errors="replace"))
        version.keep("place.html", render_place(review).encode(errors="replace"))
        version.keep("found.json", dump_json(found).encode(errors="replace"))

    def _opened(self, plan: ReportSettings) -> Reviewer:
        """The last draft's open instruments, reused if they are the same, since opening is slow."""
        if self._reviewer is None or not self._reviewer.can_do(plan):
            if self._reviewer is not None:
                self._reviewer.__exit__(None, None, None)
            self._reviewer = Reviewer(plan)
        self._reviewer.plan = plan
        return self._reviewer

    def check_wanted(self, state: State) -> None:
        """Raise `Unwanted` if a report is no longer needed."""
        if state.is_unwanted or self._is_closing:
            raise Unwanted("nobody waits for it")


@dataclass(frozen=True, slots=True)
class _Watch:
    """The progress of a report as shown on its page."""

    desk: Desk
    state: State

    def begin(self, stage: str, total: int | None) -> None:
        self.desk.check_wanted(self.state)
        self.state.stage, self.state.n_done, self.state.n_total = stage, 0, total

    def advance(self, n: int) -> None:
        self.desk.check_wanted(self.state)
        self.state.n_done += n

    def say(self, stage: str) -> None:
        self.desk.check_wanted(self.state)
        self.state.stage = stage

    def tell(self, sentence: str) -> None:
        """Does nothing: the page shows everything itself."""

    def confirm(self, model: str, estimate: Estimate) -> None:
        """Wait until the writer accepts or declines a model's cost."""
        state = self.state
        if not estimate.n_calls or estimate.cost == 0:
            return
        state.answered.clear()
        state.question = asked_for(model, estimate)
        self.desk.check_wanted(state)
        state.answered.wait()
        self.desk.check_wanted(state)
        if not state.is_agreed:
            state.error = f"{model} was not asked, at your request"
            raise Declined(model)


def asked_for(model: str, estimate: Estimate) -> str:
    """A model's cost, in a sentence."""
    dollars, usage = estimate.cost, estimate.usage
    cost = "at an unknown price" if dollars is None else f"for about {dollars:.2f} dollars"
    return (
        f"{model} will be asked {estimate.n_calls:,} times, {cost}: about {usage.n_input:,} input "
        f"and {usage.n_output:,} output tokens."
    )


def _end(state: State, future: Future[None]) -> None:
    error = None if future.cancelled() else future.exception()
    if isinstance(error, FabulaError):
        state.error = str(error)
    elif error is not None:
        traceback.print_exception(error)
        state.error = _FAILED
    state.stage, state.is_over = "", True

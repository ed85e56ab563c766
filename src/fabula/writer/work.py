"""The desk's background work: one draft at a time is measured, and its report grows.

How a draft is measured comes from the desk's form, and where its text is then sent. Of text being
written only changed paragraphs are measured, and no model is called.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fabula.core.errors import FabulaError, InputError
from fabula.core.instruments import names_of_parts
from fabula.core.store import dump_json, write_whole
from fabula.core.types import Document
from fabula.jobs.job import Declined, Progress
from fabula.jobs.models import NoModelSettings
from fabula.jobs.result import picked
from fabula.linguistic.profile import opened_tools
from fabula.models.cost import Estimate
from fabula.reference import search
from fabula.reference.search import Reference
from fabula.review import findings
from fabula.review.job import ReportSettings
from fabula.review.page import page_of
from fabula.review.reviewer import Reviewer
from fabula.show.page import TEMPLATES
from fabula.show.parts import Finding, Review, TextReview, numbers_of_review, part_of_finding
from fabula.style.dictionary import OwnWords, own_words, without_words
from fabula.style.lines import LINE_KINDS
from fabula.text import files_named, read_documents
from fabula.text.chapters import line_of, without_headings
from fabula.text.sentences import overlaps
from fabula.web import page_environment
from fabula.writer.choices import Choices, Told, told_key
from fabula.writer.drafts import Drafts, Piece, Version, piece_in, read_json, read_object
from fabula.writer.setup import SetupSettings
from fabula.writer.stored import load, store

_BOXES = ("near", "exclude_copies", "fluency", "verdicts", "feedback")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_OWN_MACHINE = {"ollama", "vllm", "sglang", "hf", "llama-cpp-python"}
OTHER = "other"
"""The form's value if the model is named in the adjacent field."""
_QUICK = ("originality", "lines")
"""The instruments that are fast enough to run in a typing pause."""
_OFF = tuple(kind.id for kind in LINE_KINDS.values() if not kind.is_on)
_WHOLE = ("name", "sentence")
"""Notes that need the whole text: they stay as long as their words do."""
_MAX_CHARS = 30_000
_MAX_COMPARED = 1_000_000
"""Maximum number of paragraph pairs to compare; beyond it, everything between has changed."""
_HERE = Path(__file__).parent
_BAR, _HEAD = "<!--bar-->", "<!--head-->"
_WORDS = "words.json"
_RENEW = '<noscript><meta http-equiv="refresh" content="3"></noscript>'
_REMEDIES = {
    "no reference": "add something to compare with, and choose it under “How it is measured”",
    "no language model": "choose a model under “How it is measured”",
    "left out on request": "tick it under “How it is measured”",
    "fabula setup": "fetch the models on the desk's first page, and measure the draft again",
    "cost was not confirmed": "measure the draft again, and confirm the cost",
}
"""Remedies on the desk, by a keyword of the reason, where the report names a command."""
_OTHER_REMEDY = (
    "install the extras of Fabula that it needs; the first page of the manual lists them"
)
STATIC = {
    "desk.css": (_HERE / "static" / "desk.css", "text/css"),
    "desk.js": (_HERE / "static" / "desk.js", "text/javascript"),
}
"""All static files that are served; no other files are accessible."""

_ENVIRONMENT = page_environment(_HERE / "templates", TEMPLATES, static=STATIC)
_FAILED = "Something went wrong; see the terminal in which the desk runs."


@dataclass(frozen=True, slots=True)
class Asked:
    """The contents of the form. `model` is empty if no model is to be used."""

    reference: str = ""
    model: str = ""
    near: bool = False
    exclude_copies: bool = False
    fluency: bool = False
    verdicts: bool = True
    feedback: bool = True
    readings: int = 3

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Asked:
        """From a form, in which unticked boxes are absent. Raises `InputError`."""
        readings = str(given.get("readings", "3"))
        if not (readings.isdecimal() and len(readings) < 3 and 1 <= int(readings) <= 20):
            raise InputError("readings: must be a number from 1 to 20")
        # The model is one of the form's list, or a name prefixed by its provider.
        model, name = (str(given.get(field, "")).strip() for field in ("model", "model_name"))
        if model == OTHER or model.endswith("/"):
            if not name:
                needed = "Enter the model's name, as its provider spells it, or choose none."
                raise InputError(needed)
            model = name if model == OTHER else model + name.removeprefix(model)
        return cls(
            reference=str(given.get("reference", "")).strip(),
            model=model,
            readings=int(readings),
            **{box: given.get(box) in ("on", True) for box in _BOXES},
        )

    def settings(self, n_jobs: int, keep: Path | None = None) -> ReportSettings:
        """The requested report; models' answers are cached in `keep`."""
        chosen = {"verdicts": self.verdicts, "feedback": self.feedback}
        return ReportSettings(
            references=(self.reference,) if self.reference else (),
            match="near" if self.near else "verbatim",
            exclude="auto" if self.exclude_copies else "none",
            models=NoModelSettings((self.model,) if self.model else ()),
            style="verdict-first" if self.model == "local" else "reason-first",
            n_samples=self.readings,
            without=tuple(part for part, is_wanted in chosen.items() if not is_wanted),
            # Every kind of note, so that each can be shown without measuring again.
            with_=(*_OFF, *(("fluency",) if self.fluency else ())),
            n_jobs=n_jobs,
            keep=keep,
        )


def chosen_model(model: str, listed: Sequence[str]) -> tuple[str, str]:
    """A model as the form shows it: the choice from its list, and the name next to it."""
    if not model or model in listed:
        return model, ""
    provider, slash, name = model.partition("/")
    return (provider + slash, name) if provider + slash in listed else (OTHER, model)


def where_to(asked: Asked) -> list[str]:
    """What leaves this machine and where it goes, one sentence each; empty if nothing does."""
    notices, reference = [], asked.reference
    if (
        search.is_looked_up(reference)
        and (host := _host(search.index_url(reference))) not in _LOOPBACK
    ):
        notices.append(f"runs of words from the draft are sent to {host}, to be looked up there")
    if search.is_served(reference) and (host := _host(reference)) not in _LOOPBACK:
        notices.append(f"all words of the draft are sent to {host}, to be looked up there")
    model, provider, host = asked.model, asked.model.partition("/")[0], ""
    is_here = model in ("", "local") or model.lower().endswith(".gguf")
    if not is_here and not model.startswith("replay:"):
        url = model
        if not model.startswith(("http://", "https://")):
            # The address that the user configured for the provider's client.
            url = os.environ.get(f"{provider.upper().replace('-', '_')}_BASE_URL", "")
        host = _host(url) if url else provider
        host = "" if host in (_LOOPBACK if url else _OWN_MACHINE) else host
    if host and (asked.verdicts or asked.feedback):
        notices.append(f"the whole draft is sent to {host}, with the questions about it")
    return notices


def _host(url: str) -> str:
    """The host of an address; the whole address if it cannot be parsed."""
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return url


def render(template: str, **values: Any) -> str:
    """A page, or a part of one."""
    return _ENVIRONMENT.get_template(template).render(**values)


def render_report(review: Review) -> str:
    return render("review/page.html.j2", page=page_of(review))


def render_place(review: Review, **more: Any) -> str:
    """The report for the desk, with room for the bar; remedies refer to the desk.

    more: for a draft also `told`, which says whether the writer found a finding useful.
    """
    left_out = []
    for part in review.left_out:
        known = (remedy for reason, remedy in _REMEDIES.items() if reason in part.reason)
        remedy = "press “Try again”" if part.is_failure else next(known, _OTHER_REMEDY)
        left_out.append(replace(part, remedy=remedy))
    page = page_of(replace(review, left_out=tuple(left_out)))
    return render("place.html.j2", page=page, bar=_BAR, head=_HEAD, on_desk=True, **more)


def render_waiting(title: str) -> str:
    """The page shown before the first part of the report is ready."""
    return render("waiting.html.j2", title=title, bar=_BAR, head=_HEAD)


def with_bar(place: str, bar: str, *, is_over: bool) -> str:
    """A report with the desk's bar in place; it reloads itself where scripts do not run.

    No text can contain the markers: `<` is escaped.
    """
    return place.replace(_HEAD, "" if is_over else _RENEW, 1).replace(_BAR, bar, 1)


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
        counts = {"stage": self.stage, "done": self.n_done, "total": self.n_total}
        return {**counts, **picked(self, "edition", "question", "error"), "over": self.is_over}


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
        # The text of a version as last checked, and its findings.
        self._looks: dict[tuple[str, int], tuple[str, list[Finding]]] = {}
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
        self._pool.submit(self._measure, version, state).add_done_callback(partial(_end, state))

    def state(self, version: Version) -> State:
        """The current progress; a version finished earlier counts as done."""
        return replace(self._running(version))  # a snapshot, since work continues

    def _running(self, version: Version) -> State:
        known = self._states.get((version.piece, version.number))
        return known or State(stage="", edition=1, is_over=True)

    def begin_other(self, name: str, work: Callable[[Progress], None]) -> None:
        """Queue work other than a draft's report."""
        state = self._others[name] = State()
        self._pool.submit(work, _Watch(self, state)).add_done_callback(partial(_end, state))

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

    def check(self, version: Version, text: str) -> findings.Changes | None:
        """What changed in a text being written since its version, as far as can be told so soon.

        None while a report is in progress. Raises `InputError`.
        """
        # `_QUICK` only, without `_WHOLE`; no text leaves this machine for them.
        asked = replace(Asked.read(version.asked), model="", fluency=False)
        if where_to(asked):
            asked = replace(asked, reference="")
        without = tuple(name for name in names_of_parts() if name not in _QUICK)
        choices = Choices(version.folder.parent)
        off, on = choices.line_kinds()
        plan = replace(
            asked.settings(self.n_jobs),
            without=(*without, *dict.fromkeys((*_WHOLE, *off))),
            with_=tuple(kind for kind in on if kind in _OFF),
            dictionary=choices.dictionary_file if choices.dictionary() else None,
        )
        first = version.text, version.findings
        before, known = self._looks.get((version.piece, version.number), first)
        spans = [match.span() for match in findings.PARAGRAPH.finditer(text)]
        # The ranges of new paragraphs that differ, by index.
        old, new = findings.PARAGRAPH.findall(before), [text[a:b] for a, b in spans]
        least = min(len(old), len(new))
        head = next((k for k in range(least) if old[k] != new[k]), least)
        tail = next((k for k in range(least - head) if old[-1 - k] != new[-1 - k]), least - head)
        ranges = [(head, len(new) - tail)]
        old, new = old[head : len(old) - tail], new[head : len(new) - tail]
        if len(old) * len(new) <= _MAX_COMPARED:
            steps = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
            ranges = [(head + c, head + d) for kind, *_, c, d in steps if kind != "equal" and d > c]
        changed = [(spans[c][0], spans[d - 1][1], c, d) for c, d in ranges]
        # With the neighbouring paragraphs: repetition crosses their boundaries.
        around = [
            (spans[max(0, c - 1)][0], spans[min(len(spans), d + 1) - 1][1]) for *_, c, d in changed
        ]
        if sum(len(text[a:b]) for a, b in around) > _MAX_CHARS:
            raise InputError("Much has changed since the last measurement: measure this version.")
        # The findings in unchanged paragraphs, at their current places.
        kept = []
        places = findings.followed([(f.start, f.end) for f in known], before, text)
        for finding, place in zip(known, places, strict=True):
            if place is None:
                continue
            is_changed = overlaps(place, ((a, b) for a, b, *_ in changed))
            stands = text[slice(*place)] == before[finding.start : finding.end]
            if not is_changed or (stands and finding.kind in _WHOLE):
                kept.append(_moved(finding, *place, text))
        for (start, end, *_), (begin, stop) in zip(changed, around, strict=True):
            if any(not state.is_over for state in self._states.values()):
                return None
            part = Document("changed", text[begin:stop])
            review = self._pool.submit(lambda doc: self._opened(plan).run([doc]), part).result()
            for finding in findings.noted_of(review.texts[0]):
                a, b = finding.start + begin, finding.end + begin
                if a < end and start < b:
                    kept.append(_moved(finding, a, b, text))
        kept.sort(key=lambda f: (f.start, f.end, f.kind))
        after = self._looks[version.piece, version.number] = text, list(dict.fromkeys(kept))
        signed = dict.fromkeys(_QUICK, "")
        if (piece := self.drafts.piece(version.piece)) is None:
            return None
        hidden = (
            choices.hidden(piece, version, first[1]),
            choices.hidden(piece, version, after[1], text),
        )
        earlier, later = (
            (
                whole,
                [f for f in noted if part_of_finding(f.kind).id in signed and f.key not in out],
                signed,
            )
            for (whole, noted), out in zip((first, after), hidden, strict=True)
        )
        return findings.compare_noted(earlier, later)

    def looked_at(self, version: Version, text: str) -> list[Finding]:
        """All findings in a text being written, dismissed ones too. Raises `InputError`."""
        if self._looks.get((version.piece, version.number), ("",))[0] != text:
            self.check(version, text)
        known = self._looks.get((version.piece, version.number))
        return known[1] if known is not None and known[0] == text else []

    def renew(self, version: Version) -> None:
        """Show a version's report by the writer's present choices."""
        found = version.found
        if not found or found.get("choices", "") == Choices(version.folder.parent).state:
            return
        made = None
        # Again if more was measured meanwhile.
        while (stored := load(version)) is not None and stored.made != made:
            show_review(version, stored.review, is_whole=stored.is_whole)
            made = stored.made
        if stored is None and self.state(version).is_over:
            self.begin(version)

    def changes(self, before: Version, after: Version) -> findings.Changes | None:
        """The status of a version's findings in a later one; None until both are complete."""
        if not (before.found.get("is_whole") and after.found.get("is_whole")):
            return None
        for version in (before, after):
            self.renew(version)
        both = [(side.text, side.findings, side.signatures) for side in (before, after)]
        n_with_points = sum(any(n.kind == "point" for n in noted) for _, noted, _ in both)
        says_same = findings.says_same() if n_with_points == 2 else None
        return findings.compare_noted(both[0], both[1], says_same)

    def add_reference(self, path: str) -> None:
        """Add a reference to compare drafts with. Raises `CorpusError`, `InputError`."""
        search.check_spec(path)
        if not search.is_elsewhere(path) and "://" not in path:
            path = str(Path(path).expanduser().resolve())
        with closing(search.open_backend([path])):
            self._keep_references([path, *self.references])

    def build_reference(self, name: str, files: Sequence[Path]) -> None:
        """Build a corpus from uploaded texts. Raises `InputError`."""
        plain = "-".join(re.findall(r"\w+", name.lower()))[:40] or "my-texts"
        folder = self.folder / "references"
        folder.mkdir(mode=0o700, exist_ok=True)
        taken = {path.stem for path in folder.iterdir()}
        numbered = (plain, *(f"{plain}-{k}" for k in range(2, len(taken) + 3)))
        path = folder / f"{next(stem for stem in numbered if stem not in taken)}.ref"
        Reference.build(read_documents(files_named(files)), path, n_jobs=self.n_jobs).close()
        self._keep_references([str(path), *self.references])

    def is_made_here(self, path: str) -> bool:
        """Whether a reference was built on the desk, from uploaded files."""
        return Path(path).parent == (self.folder / "references")

    def remove_reference(self, path: str) -> None:
        """Remove a reference. One that was built on the desk is deleted permanently."""
        if path not in self.references:
            return
        self._keep_references([known for known in self.references if known != path])
        if self.is_made_here(path):
            shutil.rmtree(path, ignore_errors=True)

    def _keep_references(self, paths: Sequence[str]) -> None:
        self.references = list(dict.fromkeys(paths))
        # An address may contain a password.
        known = dump_json(self.references).encode(errors="replace")
        write_whole(self._known, known, is_private=True)

    def _measure(self, version: Version, state: State) -> None:
        if (piece := self.drafts.piece(version.piece)) is None:
            return
        # Answers about one version are not paid for again in the next.
        plan = Asked.read(version.asked).settings(self.n_jobs, version.folder.parent / "answers")
        # The desk shows no lines; an uploaded file may mark headings and italics.
        form = version.form
        meta = {"title": piece.title, "headings": form.headings, "italic_places": form.italics}
        document = Document(f"draft {version.number}", version.text, meta=meta)
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
        store(version, review, is_whole=is_whole)
        keep_words(version, review.texts[0])
        show_review(version, review, is_whole=is_whole)

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


def show_review(version: Version, review: Review, *, is_whole: bool) -> None:
    """Keep a version's pages and its findings, without those that the writer does not want."""
    choices, piece = Choices(version.folder.parent), piece_in(version.folder.parent)
    if piece is None:
        return
    state, off_and_on, (text,) = choices.state, choices.line_kinds(), review.texts
    if (lines := text.results.get("lines")) is not None:
        lines = lines.without(*off_and_on)
        lines = without_words(lines, text.document.text, choices.folded_words())
        signatures = {**review.signatures, "lines": lines.signature}
        text = text.having("lines", lines)
        review = replace(review, texts=(text,), signatures=signatures)
    hidden = choices.hidden(piece, version, findings.noted_of(text))
    review = findings.without_findings(review, hidden)
    numbers, (row,) = numbers_of_review(review)
    noted = [asdict(f) for f in findings.noted_of(review.texts[0])]
    for finding in noted:
        del finding["number"]
    profile = review.texts[0].results.get("profile")
    content = {
        "is_whole": is_whole,
        "choices": state,
        "signatures": dict(review.signatures),
        "findings": noted,
        "sentences": sentence_rows(profile) if profile else [],
        "numbers": [
            picked(n, "key", "title", "form")
            | {"value": row.get(n.key), "signature": review.signatures.get(n.part, "")}
            for n in numbers
        ],
    }
    marks = Told(version.folder.parents[2]).of_piece(piece.id)
    place = render_place(
        review, told=lambda kind, words: marks.get(told_key(piece.id, kind, words))
    )
    pages = {"report.html": render_report(review), "place.html": place}
    for name, shown in {**pages, "found.json": dump_json(content)}.items():
        version.keep(name, shown.encode(errors="replace"))


def keep_words(version: Version, text: TextReview) -> None:
    """Keep the version's own words, once its lines were read."""
    lines = text.results.get("lines")
    if lines is None or lines.missing_reason or (version.folder / _WORDS).exists():
        return
    own = own_words(opened_tools("harper").read(without_headings(text.document)))
    version.keep(_WORDS, dump_json(asdict(own)).encode(errors="replace"))


def words_of(version: Version) -> OwnWords:
    """The version's own words; none until its lines were read."""
    content = read_object(version.folder / _WORDS)
    names, words = content.get("names"), content.get("words")
    if not (isinstance(names, list) and isinstance(words, list)):
        return OwnWords()
    return OwnWords(tuple(map(str, names)), tuple(map(str, words)))


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
        """Nothing: the page shows everything itself."""

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


def _moved(finding: Finding, start: int, end: int, text: str) -> Finding:
    """The finding at a place of a text being written, which the editor marks."""
    return replace(finding, start=start, end=end, line=line_of(text, start), where="")


def asked_for(model: str, estimate: Estimate) -> str:
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

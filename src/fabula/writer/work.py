"""The desk's work: drafts are measured in other processes, and their reports grow.

How a draft is measured comes from the desk's form, and where its text is then sent. Of text being
written only changed paragraphs are measured, and no model is called.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fabula.core.errors import FabulaError, InputError
from fabula.core.instruments import names_of_parts
from fabula.core.store import dump_json, write_whole
from fabula.core.types import Document
from fabula.core.workers import Child
from fabula.jobs.job import Progress
from fabula.jobs.models import NoModelSettings
from fabula.jobs.result import picked
from fabula.linguistic.profile import opened_tools
from fabula.models.cost import Estimate
from fabula.reference import search
from fabula.reference.search import Reference
from fabula.review import findings
from fabula.review.job import ReportSettings
from fabula.review.page import left_out_of, page_of
from fabula.review.reviewer import OPENING, Reviewer
from fabula.show.page import TEMPLATES
from fabula.show.parts import Finding, Review, TextReview, numbers_of_review, part_of_finding
from fabula.style.dictionary import OwnWords, own_words, without_words
from fabula.style.lines import CONFUSED, LINE_KINDS
from fabula.text import files_named, read_documents
from fabula.text.chapters import line_of, without_headings
from fabula.text.sentences import overlaps
from fabula.web import page_environment
from fabula.writer.background import FAILED, STOPPED, Queue, State, Watch, Work
from fabula.writer.changes import sentence_rows
from fabula.writer.choices import Choices, Told, told_key
from fabula.writer.drafts import Drafts, Piece, Version, piece_in, read_json, read_object
from fabula.writer.setup import SetupSettings
from fabula.writer.stored import load, store

_BOXES = ("near", "exclude_copies", "fluency", "proofreading", "verdicts", "feedback")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_OWN_MACHINE = {"ollama", "vllm", "sglang", "hf", "llama-cpp-python"}
OTHER = "other"
"""The form's value if the model is named in the adjacent field."""
_QUICK = ("originality", "lines")
"""The instruments that are fast enough to run in a typing pause."""
_OFF = tuple(kind.id for kind in LINE_KINDS.values() if not kind.is_on)
_WHOLE = ("name", "sentence", CONFUSED)
"""Notes that need the whole text, or the model: they stay as long as their words do."""
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
_PAGES_S = 1.5
"""Minimum time between two pages of a report that grows."""
_PAGES_S_A_CHAR = 3e-6
"""What making them takes, until it is known."""
_STOPPED_FILE = "stopped"
"""In a version's folder: the writer stopped its measuring."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The contents of the form. `model` is empty if no model is to be used."""

    reference: str = ""
    model: str = ""
    near: bool = False
    exclude_copies: bool = False
    fluency: bool = False
    proofreading: bool = False
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
        slow = {"fluency": self.fluency, "proofreading": self.proofreading}
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
            with_=(*_OFF, *(name for name, is_wanted in slow.items() if is_wanted)),
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


def render_report(page: Mapping[str, Any]) -> str:
    """The report as a file, of what `page_of` returned."""
    return render("review/page.html.j2", page=page)


def render_place(review: Review, page: Mapping[str, Any], **more: Any) -> str:
    """The report for the desk, with room for the bar; remedies refer to the desk.

    page: what `page_of` returned. more: for a draft also `told`, which says whether the writer
    found a finding useful.
    """
    left_out = []
    for part in review.left_out:
        known = (remedy for reason, remedy in _REMEDIES.items() if reason in part.reason)
        remedy = "press “Try again”" if part.is_failure else next(known, _OTHER_REMEDY)
        left_out.append(replace(part, remedy=remedy))
    page = {**page, "left_out": left_out_of(replace(review, left_out=tuple(left_out)))}
    return render("place.html.j2", page=page, bar=_BAR, head=_HEAD, on_desk=True, **more)


def render_waiting(title: str) -> str:
    """The page shown before the first part of the report is ready."""
    return render("waiting.html.j2", title=title, bar=_BAR, head=_HEAD)


def with_bar(place: str, bar: str, *, is_over: bool) -> str:
    """A report with the desk's bar in place; it reloads itself where scripts do not run.

    No text can contain the markers: `<` is escaped.
    """
    return place.replace(_HEAD, "" if is_over else _RENEW, 1).replace(_BAR, bar, 1)


class Desk:
    """Drafts, and the worker that measures them: `with Desk(folder, references) as desk`."""

    def __init__(
        self,
        folder: Path,
        references: tuple[str, ...] = (),
        *,
        n_jobs: int = 1,
        setup: SetupSettings | None = None,
        spares: list[Child] | None = None,
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
        self._queue = Queue(spares)
        self._states: dict[Hashable, State] = {}
        """Of each job: a version of a piece, or other work by name."""
        # The text of a version as last checked, its findings, and the edition of its report then.
        self._looks: dict[tuple[str, int], tuple[str, list[Finding], int]] = {}
        self._fetching = threading.Thread()

    def __enter__(self) -> Desk:
        # Resume interrupted work.
        for piece in reversed(self.drafts.pieces()):
            for version in piece.versions:
                is_stopped = (version.folder / _STOPPED_FILE).exists()
                if not (is_stopped or version.found.get("is_whole")):
                    self.begin(version)
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all work at once. What is not over is resumed by the next desk."""
        self._queue.close()

    def prepare(self) -> None:
        """Start a process that the first draft will need."""
        self._queue.prepare()

    def remove(self, piece: Piece) -> None:
        """Delete a piece permanently; its measuring is stopped."""
        for version in piece.versions:
            self._queue.end(_key(version))
        self.drafts.remove(piece)

    def begin(self, version: Version) -> None:
        """Measure a version when its turn comes; also measures it again."""
        (version.folder / _STOPPED_FILE).unlink(missing_ok=True)
        self._states[_key(version)] = self._queue.submit(
            _key(version), partial(measure, version, self.n_jobs)
        )

    def stop(self, version: Version) -> None:
        """Stop measuring a version. What is finished is kept, and the next desk does not resume."""
        if not self._running(version).is_over:
            version.keep(_STOPPED_FILE, b"")
            self._queue.end(_key(version), STOPPED)

    def look(self, version: Version) -> None:
        """The writer looks at this version: its turn is next."""
        self._queue.look(_key(version))

    def state(self, version: Version) -> State:
        """The current progress; a version finished earlier counts as done."""
        return replace(self._running(version))  # a snapshot, since work continues

    def _running(self, version: Version) -> State:
        known = self._states.get(_key(version))
        error = STOPPED if (version.folder / _STOPPED_FILE).exists() else ""
        return known or State(stage="", edition=1, is_over=True, error=error)

    def begin_other(self, name: str, work: Work) -> None:
        """Queue work other than a draft's report."""
        self._states[name] = self._queue.submit(name, work)

    def begin_fetching(self, name: str, work: Callable[[Progress], object]) -> None:
        """Fetch something in a thread; after what is still being fetched, which was stopped."""
        state, before = State(), self._fetching
        self._states[name] = state

        def fetch() -> None:
            if before.ident is not None:
                before.join()
            try:
                work(_Fetching(state))
                state.finish()
            except FabulaError as error:
                state.finish(str(error))
            except Exception:
                state.finish(FAILED)
                raise

        self._fetching = threading.Thread(target=fetch, daemon=True)
        self._fetching.start()

    def state_of(self, name: str) -> State | None:
        """The progress of other work, which is looked at; None if it was never started."""
        self._queue.look(name)
        known = self._states.get(name)
        return None if known is None else replace(known)

    def stop_other(self, name: str) -> None:
        """Cancel work that is no longer needed."""
        self._queue.end(name)
        if (state := self._states.pop(name, None)) is not None:
            state.finish()

    def answer(self, version: Version, *, agreed: bool) -> None:
        """The writer's decision on a model's cost and where the draft is sent."""
        state = self._running(version)
        if state.question:
            # Gone at once, or the page would ask again until the report goes on.
            state.is_agreed, state.question = agreed, ""
            state.answered.set()

    def check(self, version: Version, text: str) -> findings.Changes:
        """What changed in a text being written since its version, as far as can be told so soon.

        Raises `InputError`.
        """
        # `_QUICK` only, without `_WHOLE`; no text leaves this machine for them.
        asked = replace(Asked.read(version.asked), model="", fluency=False, proofreading=False)
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
        edition = self._running(version).edition
        first = version.text, version.findings
        before, known, seen = self._looks.get(_key(version), (*first, edition))
        if seen != edition:
            before, known = first
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
        parts = [text[begin:stop] for begin, stop in around]
        noted = self._queue.ask(partial(check_parts, plan, parts)) if parts else []
        for (start, end, *_), (begin, _), found in zip(changed, around, noted, strict=True):
            for finding in found:
                a, b = finding.start + begin, finding.end + begin
                if a < end and start < b:
                    kept.append(_moved(finding, a, b, text))
        kept.sort(key=lambda f: (f.start, f.end, f.kind))
        after = text, list(dict.fromkeys(kept))
        self._looks[_key(version)] = *after, edition
        signed = dict.fromkeys(_QUICK, "")
        if (piece := self.drafts.piece(version.piece)) is None:
            raise InputError("This piece was removed.")
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

    def report(self, version: Version) -> str | None:
        """A version's report as a file; None until there is one."""
        stored = load(version)
        review = None if stored is None else _as_chosen(version, stored.review)
        return None if review is None else render_report(page_of(review))

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
        self._queue.ask(partial(build, list(map(str, files)), path, self.n_jobs))
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


def _key(version: Version) -> tuple[str, int]:
    return version.piece, version.number


def _as_chosen(version: Version, review: Review) -> Review | None:
    """A version's review without what the writer does not want; None if its piece was removed."""
    choices, piece = Choices(version.folder.parent), piece_in(version.folder.parent)
    if piece is None:
        return None
    off_and_on, (text,) = choices.line_kinds(), review.texts
    if (lines := text.results.get("lines")) is not None:
        lines = lines.without(*off_and_on)
        lines = without_words(lines, text.document.text, choices.folded_words())
        signatures = {**review.signatures, "lines": lines.signature}
        text = text.having("lines", lines)
        review = replace(review, texts=(text,), signatures=signatures)
    hidden = choices.hidden(piece, version, findings.marked_findings(text))
    return findings.without_findings(review, hidden)


def show_review(version: Version, review: Review, *, is_whole: bool) -> None:
    """Keep a version's page and its findings, without those that the writer does not want."""
    state = Choices(version.folder.parent).state
    chosen = _as_chosen(version, review)
    if chosen is None:
        return
    review = chosen
    numbers, (row,) = numbers_of_review(review)
    noted = [asdict(f) for f in findings.marked_findings(review.texts[0])]
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
    marks = Told(version.folder.parents[2]).of_piece(version.piece)
    place = render_place(
        review,
        page_of(review),
        told=lambda kind, words: marks.get(told_key(version.piece, kind, words)),
    )
    for name, shown in {"place.html": place, "found.json": dump_json(content)}.items():
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
class _Fetching:
    """The progress of fetching as shown on its page; ends it when nobody waits for it."""

    state: State

    def begin(self, stage: str, total: int | None) -> None:
        self._check()
        self.state.begin(stage, total)

    def advance(self, n: int) -> None:
        self._check()
        self.state.n_done += n

    def say(self, stage: str) -> None:
        self._check()
        self.state.stage = stage

    def tell(self, sentence: str) -> None:
        """Nothing: the page shows everything itself."""

    def _check(self) -> None:
        if self.state.is_over:
            raise FabulaError("stopped")


def measure(version: Version, n_jobs: int, watch: Watch) -> None:
    """In a process of the desk: measure a version, and keep its report as it grows."""
    asked = Asked.read(version.asked)
    off, _ = Choices(version.folder.parent).line_kinds()
    # Last of all, unless the writer hides these notes.
    if CONFUSED not in off:
        asked = replace(asked, proofreading=True)
    # Answers about one version are not paid for again in the next.
    plan = asked.settings(n_jobs, version.folder.parent / "answers")
    title = str(read_object(version.folder.parent / "piece.json").get("title", ""))
    # The desk shows no lines; an uploaded file may mark headings and italics.
    form = version.form
    meta = {"title": title, "headings": form.headings, "italic_places": form.italics}
    document = Document(f"draft {version.number}", version.text, meta=meta)
    pages = _GrowingReport(version, watch)
    for review in _opened(plan).steps([document], pages, pages.confirm, ahead=False):
        pages.add(review)
    pages.finish()


class _GrowingReport:
    """Keeps the parts of a report as they are ready, and passes on the progress.

    Making the pages of a novel takes seconds: a tenth of the time at most, but before a question,
    and once the opening was read.
    """

    def __init__(self, version: Version, watch: Watch) -> None:
        self._version, self._watch = version, watch
        self._review: Review | None = None
        self._kept: Mapping[str, str] = {}
        self._kept_s = time.monotonic()
        self._every_s = max(_PAGES_S, 9 * _PAGES_S_A_CHAR * len(version.text))

    def add(self, review: Review) -> None:
        self._review = review
        self._keep_if_due(now=_has_opening_only(review))

    def begin(self, stage: str, total: int | None) -> None:
        self._keep_if_due()
        self._watch.begin(stage, total)

    def advance(self, n: int) -> None:
        self._keep_if_due()
        self._watch.advance(n)

    def say(self, stage: str) -> None:
        self._watch.say(stage)

    def tell(self, sentence: str) -> None:
        self._watch.tell(sentence)

    def confirm(self, model: str, estimate: Estimate) -> None:
        self._keep_if_due(now=True)
        self._watch.confirm(model, estimate)

    def finish(self) -> None:
        if self._review is not None:
            _keep(self._version, self._review, is_whole=True)
            self._watch.show()
            for entry in self._review.left_out:
                if entry.is_failure:
                    self._watch.lack(entry.reason)

    def _keep_if_due(self, *, now: bool = False) -> None:
        review, began = self._review, time.monotonic()
        if review is None or review.signatures == self._kept:
            return
        if now or began - self._kept_s >= self._every_s:
            _keep(self._version, review)
            self._watch.show()
            self._kept, self._kept_s = review.signatures, time.monotonic()
            self._every_s = max(_PAGES_S, 9 * (self._kept_s - began))


def _moved(finding: Finding, start: int, end: int, text: str) -> Finding:
    """The finding at a place of a text being written, which the editor marks."""
    return replace(finding, start=start, end=end, line=line_of(text, start), where="")


def _keep(version: Version, review: Review, *, is_whole: bool = False) -> None:
    store(version, review, is_whole=is_whole)
    if not _has_opening_only(review):
        keep_words(version, review.texts[0])
    show_review(version, review, is_whole=is_whole)


def _has_opening_only(review: Review) -> bool:
    """Whether its notes on lines are on the opening of a text, which is still being read."""
    return review.signatures.get("lines", "").endswith(OPENING)


_open: list[Reviewer] = []


def _opened(plan: ReportSettings) -> Reviewer:
    """The last draft's open instruments, reused if they are the same, since opening is slow."""
    if not (_open and _open[0].can_do(plan)):
        if _open:
            _open.pop().__exit__(None, None, None)
        _open.append(Reviewer(plan))
    _open[0].plan = plan
    return _open[0]


def check_parts(plan: ReportSettings, parts: Sequence[str], _: Watch) -> list[list[Finding]]:
    """In a process of the desk: the findings of each part of a text being written."""
    texts = (_opened(plan).run([Document("changed", part)]).texts[0] for part in parts)
    return list(map(findings.marked_findings, texts))


def build(files: Sequence[str], path: Path, n_jobs: int, _: Watch) -> None:
    """In a process of the desk: build a reference from uploaded texts."""
    documents = read_documents(files_named(list(map(Path, files))))
    Reference.build(documents, path, n_jobs=n_jobs).close()

"""The desk's pages: all drafts, one draft with its report, two side by side, references, models."""

from __future__ import annotations

import base64
import difflib
import io
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from fabula.core.errors import InputError, ModelError
from fabula.core.instruments import own_parts
from fabula.core.types import Document
from fabula.models.available import check_key, find_models
from fabula.review.reviewer import estimate_review
from fabula.text import count_words, files_named, read_documents
from fabula.text.readers import READERS, TABLES
from fabula.web.guard import is_secret
from fabula.writer import work
from fabula.writer.background import State, asked_for
from fabula.writer.changes import COUNTS, moved_numbers
from fabula.writer.choices import Choices
from fabula.writer.drafts import Form, Piece, Version, place_in, shown_time
from fabula.writer.setup import Step, setup, usable_sets

router = APIRouter()
_MAX_FIELDS, _MAX_FILES, _MAX_PART_BYTES = 200, 400, 64 * 1024 * 1024
MAX_TEXT_CHARS = 5_000_000
_MAX_OPENING_CHARS = 60
ENDINGS = ",".join(f".{kind}" for kind in READERS if kind not in {*TABLES, "wet", "scriv"})
"""The files that contain a draft, as the page names them; folders cannot be dropped."""
# A word with the following space, so that a changed phrase is one change.
_TOKEN = re.compile(r"\w+\s*|[^\w\s]+\s*|\s+")
_MAX_TOKENS = 6_000
"""Longer stretches would take long, and nobody reads them word by word."""
_MODELS = "models"


@dataclass(frozen=True, slots=True)
class Visit:
    """A request from the desk's owner."""

    desk: work.Desk
    csrf: str

    def page(self, template: str, **values: Any) -> HTMLResponse:
        return HTMLResponse(work.render(template, csrf=self.csrf, **values))

    def piece(self, id_: str) -> Piece:
        if (piece := self.desk.drafts.piece(id_)) is None:
            raise HTTPException(404)
        return piece

    def unmeasured(self, piece: Piece) -> str:
        """When the unmeasured text was last edited; empty if there is none."""
        writing = self.desk.drafts.unmeasured(piece.last)
        return "" if writing is None else shown_time(writing.saved)

    def how(self, asked: work.Asked) -> dict[str, Any]:
        """What the fields of how a draft is measured show: references, models, as requested."""
        local: list[dict[str, str]] = []
        remote: list[dict[str, str]] = []
        for model in find_models():
            value = model.name.removesuffix("...")
            is_provider = model.kind == "provider"
            title = f"{value.rstrip('/') if is_provider else value}: {model.where}"
            (remote if is_provider else local).append({"value": value, "title": title})
        chosen, name = work.chosen_model(asked.model, [row["value"] for row in (*local, *remote)])
        groups = [
            {"title": "On this computer", "models": local},
            {"title": "With a key: the draft leaves this computer", "models": remote},
        ]
        requested = [asked.reference] if asked.reference else []
        return {
            "asked": asked,
            "references": list(dict.fromkeys([*self.desk.references, *requested])),
            "models": {"groups": groups, "chosen": chosen, "name": name},
            "endings": ENDINGS,
        }


def text_in(form: FormData) -> str:
    return str(form.get("text", "")).replace("\r\n", "\n")


def files_in(form: FormData) -> list[UploadFile]:
    return [f for f in form.getlist("files") if isinstance(f, UploadFile) and f.filename]


def report_file(report: str | None, name: str) -> Response:
    """A report, to download under this name. Raises 404 if there is none."""
    if report is None:
        raise HTTPException(404)
    headers = {"content-disposition": f'attachment; filename="{name}.html"'}
    return Response(report.encode(errors="replace"), media_type="text/html", headers=headers)


def visit(request: Request) -> Visit:
    return Visit(request.app.state.desk, request.app.state.csrf)


async def posted(request: Request) -> AsyncIterator[FormData]:
    """The form submitted from a page of the desk."""
    async with request.form(
        max_fields=_MAX_FIELDS, max_files=_MAX_FILES, max_part_size=_MAX_PART_BYTES
    ) as form:
        if not is_secret(form.get("csrf"), request.app.state.csrf):
            raise HTTPException(403)
        yield form


Owner = Annotated[Visit, Depends(visit)]
Posted = Annotated[FormData, Depends(posted)]


def piece_and_version(owner: Owner, id_: str, number: int) -> tuple[Piece, Version]:
    """Those that an address names. Raises 404."""
    piece = owner.piece(id_)
    if (version := next((v for v in piece.versions if v.number == number), None)) is None:
        raise HTTPException(404)
    return piece, version


Named = Annotated[tuple[Piece, Version], Depends(piece_and_version)]


@router.get("/")
def home(owner: Owner) -> Response:
    """All drafts, and a form for another."""
    desk = owner.desk
    writing = desk.drafts.new.writing()
    pieces = desk.drafts.pieces()
    shown = []
    for piece in pieces:
        numbers = {row["key"]: row for row in piece.last.found.get("numbers", ())}
        view = {
            "id": piece.id,
            "title": piece.title,
            "n_versions": len(piece.versions),
            "last": piece.last.number,
            "numbers": [
                f"{shown} words" if key == "n_words" else f"{figure['title']} {shown}"
                for key in ("n_words", "creativity_index", "bits_per_word")
                if (figure := numbers.get(key))
                for shown in [_shown(figure["value"], figure)]
            ],
            "is_over": desk.state(piece.last).is_over,
            "made": shown_time(str(piece.last.asked.get("made", ""))),
            "writing": owner.unmeasured(piece),
        }
        shown.append(view)
    last = pieces[0].last.asked if pieces else {}
    asked = work.Asked.read(last) if last else work.Asked(reference=next(iter(desk.references), ""))
    return owner.page(
        "home.html.j2",
        pieces=shown,
        needs=missing_models(desk),
        writing=writing,
        saved="" if writing is None else shown_time(writing.saved),
        **owner.how(asked),
    )


@router.post("/drafts")
async def add(owner: Owner, form: Posted) -> Response:
    return await _measure(owner, form, None)


@router.post("/piece/{id_}/versions")
async def add_version(owner: Owner, form: Posted, id_: str) -> Response:
    return await _measure(owner, form, owner.piece(id_))


async def _measure(owner: Visit, form: FormData, piece: Piece | None) -> Response:
    asked = work.Asked.read({key: value for key, value in form.items() if isinstance(value, str)})
    text, name, content, shape = text_in(form), "", b"", None
    if (file := _file_in(form)) is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = await _stored(file, Path(folder), 0)
            text, shape = await run_in_threadpool(_read, path)
            name, content = str(file.filename), path.read_bytes()
    if not text.strip():
        raise InputError("No text: paste a draft, or choose a file that contains one.")
    if len(text) > MAX_TEXT_CHARS:
        raise InputError("This is longer than any novel; submit the draft in parts.")
    title = piece.title if piece else str(form.get("title") or Path(name).stem or _opening(text))
    notices = work.where_to(asked)
    if notices and form.get("agreed") != "yes":
        action = "/drafts" if piece is None else f"/piece/{piece.id}/versions"
        known, can_send = await run_in_threadpool(_known_before, asked, text)
        draft = {"asked": asked, "text": text, "title": title, "action": action, "file_name": name}
        draft["file_data"] = base64.b64encode(content).decode()
        return owner.page("sending.html.j2", told=notices, known=known, can_send=can_send, **draft)
    drafts = owner.desk.drafts
    if piece is None:
        # Whether it was typed on the desk, not uploaded as a file.
        writing = drafts.new.writing()
        is_written = writing is not None and writing.text.strip() == text.strip()
        version = drafts.add(title, text, asdict(asked), shape or Form(), is_written=is_written)
    else:
        version = drafts.add_version(piece, text, asdict(asked), shape)
    owner.desk.begin(version)
    return RedirectResponse(f"/piece/{version.piece}/{version.number}", 303)


def _file_in(form: FormData) -> UploadFile | None:
    """The draft's file, also as the page that asks before it is sent repeats it."""
    if isinstance(file := form.get("file"), UploadFile) and file.filename:
        return file
    if not (name := str(form.get("file_name", ""))):
        return None
    try:
        data = base64.b64decode(str(form.get("file_data", "")))
    except ValueError as error:
        raise HTTPException(400) from error
    return UploadFile(io.BytesIO(data), filename=name)


def _read(path: Path) -> tuple[str, Form]:
    """The text of a draft's file, and what the file has besides. Raises `InputError`."""
    documents = list(read_documents(files_named([path])))
    text = "\n\n".join(part.text for part in documents)
    meta = documents[0].meta if len(documents) == 1 else {}
    word = path.read_bytes() if path.suffix.lower() == ".docx" else None
    return text, Form(meta.get("headings", ()), meta.get("italic_places", ()), word)


def _known_before(asked: work.Asked, text: str) -> tuple[list[str], bool]:
    """What a writer should know before a model is called, and whether it is likely to work.

    Checks whether the provider accepts the key, and estimates the cost.
    """
    if not asked.model or not (asked.verdicts or asked.feedback):
        return [], True
    check = check_key(asked.model)
    known = [] if check is None else [check.said]
    try:
        estimate = estimate_review(asked.model, [Document("draft", text)], asked.settings(1))
        known.append(asked_for(asked.model, estimate).rstrip("."))
    except (InputError, ModelError) as error:
        return [*known, str(error)], False
    return known, check is None or check.is_good is not False


@router.get("/piece/{id_}/{number}")
def show(owner: Owner, named: Named) -> Response:
    """A version with its report so far."""
    piece, version = named
    owner.desk.renew(version)
    owner.desk.look(version)
    state = owner.desk.state(version)
    earlier = (v for v in reversed(piece.versions) if v.number < version.number)
    title, notices = piece.title, work.where_to(work.Asked.read(version.asked))
    shown = {"state": state, "told": notices, "title": title, "before": next(earlier, None)}
    shown |= {"piece": piece, "version": version, "writing": owner.unmeasured(piece)}
    choices = Choices(version.folder.parent)
    shown |= {"kinds": choices.kinds(), "n_dismissed": len(choices.dismissed())}
    shown["own"] = choices.offered(work.words_of(version))
    bar = work.render("bar.html.j2", csrf=owner.csrf, **shown)
    place = place_in(version.folder) or work.render_waiting(title)
    return HTMLResponse(work.with_bar(place, bar, is_over=state.is_over))


@router.get("/piece/{id_}/{number}/state")
def state(owner: Owner, named: Named) -> Response:
    """The progress of the report, which a page asks for while it is looked at."""
    owner.desk.look(named[1])
    return JSONResponse(owner.desk.state(named[1]).to_json())


@router.get("/piece/{id_}/{number}/report.html")
def download(owner: Owner, named: Named) -> Response:
    """The report as a file to download or send."""
    piece, version = named
    report = owner.desk.report(version)
    if report is None and version.found and owner.desk.state(version).is_over:
        # Its results were of another version of Fabula, or were deleted.
        owner.desk.begin(version)
        return RedirectResponse(f"/piece/{piece.id}/{version.number}", 303)
    return report_file(report, f"report-{piece.id}-{version.number}")


@router.post("/piece/{id_}/{number}/answer")
def answer(owner: Owner, form: Posted, named: Named) -> Response:
    """The answer, yes or no, to a model's cost."""
    piece, version = named
    owner.desk.answer(version, agreed=form.get("agreed") == "yes")
    return RedirectResponse(f"/piece/{piece.id}/{version.number}", 303)


@router.post("/piece/{id_}/{number}/again")
def again(owner: Owner, form: Posted, named: Named) -> Response:
    """Measure a version again; a model's cached answers are reused."""
    piece, version = named
    if owner.desk.state(version).is_over:
        owner.desk.begin(version)
    return RedirectResponse(f"/piece/{piece.id}/{version.number}", 303)


@router.post("/piece/{id_}/{number}/stop")
def stop(owner: Owner, form: Posted, named: Named) -> Response:
    """Stop measuring a version; what is finished is kept."""
    piece, version = named
    owner.desk.stop(version)
    return RedirectResponse(f"/piece/{piece.id}/{version.number}", 303)


@router.get("/piece/{id_}/{number}/remove")
def ask_to_remove(owner: Owner, named: Named) -> Response:
    piece, _ = named
    return owner.page("remove.html.j2", piece=piece, title=piece.title)


@router.post("/piece/{id_}/remove")
def remove(owner: Owner, form: Posted, id_: str) -> Response:
    if (piece := owner.desk.drafts.piece(id_)) is not None:
        owner.desk.remove(piece)
    return RedirectResponse("/", 303)


@router.get("/beside")
def beside(owner: Owner, left: str = "", right: str = "") -> Response:
    """Two drafts, or two versions of one, side by side: `0001-2` is piece 0001, version 2."""
    pairs = [side.partition("-") for side in (left, right)]
    if not all(number.isdecimal() and len(number) < 9 for _, _, number in pairs):
        raise HTTPException(404)
    (a, before), (b, after) = (piece_and_version(owner, id_, int(n)) for id_, _, n in pairs)
    old, new = changed_words(before.text, after.text)
    is_one = a.id == b.id
    if not is_one:
        # Between two pieces every word differs; marking them all would be useless.
        old, new = ([Changed("same", run.text) for run in side] for side in (old, new))
    # The numbers of both as displayed, in the order of the later one; of one piece those that a
    # writer sees in its report, where they moved by more than chance.
    found, later = before.found, after.found
    moved = moved_numbers(found.get("sentences"), later.get("sentences"))
    words: dict[str, Any] = {"key": "n_words", "title": "Words", "form": ",.0f", "signature": ""}
    earlier = {row["key"]: row for row in found.get("numbers", ())}
    numbers = []
    for figure in later.get("numbers", ()):
        if (other := earlier.get(figure["key"])) is None:
            continue
        if figure["key"] == "n_words":
            # As every page counts them.
            other, figure = (words | {"value": count_words(v.text)} for v in (before, after))
        elif is_one and figure["key"] not in (*COUNTS, *(moved or ())):
            continue
        x, y = other["value"], figure["value"]
        change, note = "", ""
        if other["signature"] != figure["signature"]:
            note = "measured differently, so they cannot be compared"
        elif _shown(x, figure) == _shown(y, figure):
            change = "same"
        elif x is not None and y is not None:
            change = ("+" if y > x else "−") + format(abs(y - x), figure["form"])
        values = {"before": _shown(x, figure), "after": _shown(y, figure)}
        numbers.append({"title": figure["title"], **values, "change": change, "note": note})
    is_known = bool(numbers)
    if is_one:
        numbers = [row for row in numbers if row["change"] != "same"]
    sides = {"old": old, "new": new, "a": a, "b": b, "before": before, "after": after}
    return owner.page(
        "beside.html.j2",
        numbers=numbers,
        is_known=is_known,
        is_short=moved is None,
        changes=owner.desk.changes(before, after) if is_one else None,
        parts={part.id: part.title for part in own_parts()},
        titles=(a.title, b.title),
        is_one=is_one,
        **sides,
    )


@router.post("/references")
async def add_reference(owner: Owner, form: Posted) -> Response:
    """A reference to compare with: an existing corpus, or texts to build one from."""
    path = str(form.get("path", "")).strip()
    if files := files_in(form):
        with tempfile.TemporaryDirectory() as folder:
            names = [await _stored(file, Path(folder), k) for k, file in enumerate(files)]
            await run_in_threadpool(owner.desk.build_reference, str(form.get("name", "")), names)
    elif path:
        await run_in_threadpool(owner.desk.add_reference, path)
    else:
        raise InputError("enter a corpus or choose files to compare with")
    return RedirectResponse("/", 303)


@router.get("/references/remove")
def ask_to_remove_reference(owner: Owner, path: str = "") -> Response:
    if path not in owner.desk.references:
        raise HTTPException(404)
    is_made_here = owner.desk.is_made_here(path)
    return owner.page("remove_reference.html.j2", path=path, is_made_here=is_made_here)


@router.post("/references/remove")
def remove_reference(owner: Owner, form: Posted) -> Response:
    owner.desk.remove_reference(str(form.get("path", "")))
    return RedirectResponse("/", 303)


async def _stored(file: UploadFile, folder: Path, number: int) -> Path:
    """An uploaded file under a name of our own, with its extension."""
    name = Path(str(file.filename).replace("\\", "/")).name.lstrip(".") or "draft.txt"
    stem, dot, ending = name.rpartition(".")
    path = folder / f"{number:04d}" / f"{stem[:60]}{dot}{ending[:20]}"
    path.parent.mkdir()
    path.write_bytes(await file.read())
    return path


def _opening(text: str) -> str:
    """A title for a draft without one: its first line or sentence, or whole phrases of it."""
    line = next(filter(None, (line.strip(" \t#*_") for line in text.splitlines())), "")
    ended = re.match(r".*?[.!?…][\"'”’»)]*(?=\s|$)", line)
    sentence = ended[0] if ended else line
    for whole in (line, sentence):
        if len(whole) <= _MAX_OPENING_CHARS:
            return whole.rstrip(" .,;:")
    start = sentence[: _MAX_OPENING_CHARS + 1]
    phrases = [mark.start() for mark in re.finditer(r"[,;:—–](?=\s)|\s[—–]", start)]
    ends = [end for end in phrases if end >= _MAX_OPENING_CHARS // 3] or [start.rfind(" ")]
    return (start[: ends[-1]] if ends[-1] > 0 else start[:-1]).rstrip(" .,;:—–") + "…"


@dataclass(frozen=True, slots=True)
class MissingModels:
    """What to download, and the progress of that."""

    steps: tuple[Step, ...]
    folder: Path
    state: State | None

    @property
    def is_under_way(self) -> bool:
        return self.state is not None and not self.state.is_over

    @property
    def sentence(self) -> str:
        """What the desk needs, and its size."""
        n = len(self.steps)
        models = "a model that is" if n == 1 else f"{n} models that are"
        return (
            f"For rhythm, notes on lines and fluency, reports need {models} not on this computer "
            f"yet: {self.size}, downloaded once."
        )

    @property
    def size(self) -> str:
        return f"{sum(step.n_bytes for step in self.steps) / 1e6:,.0f} MB"


def missing_models(desk: work.Desk) -> MissingModels | None:
    """None if every model whose runtime is installed is here."""
    sets = usable_sets()
    steps = setup(replace(desk.setup, dry_run=True), sets).missing if sets else ()
    return MissingModels(steps, steps[0].folder.parent, desk.state_of(_MODELS)) if steps else None


@router.get("/models")
def show_models(owner: Owner) -> Response:
    """The models, and the progress of downloading them."""
    desk = owner.desk
    needs, state = missing_models(desk), desk.state_of(_MODELS)
    lacking = [] if needs else _lacking(desk)
    return owner.page("models.html.j2", needs=needs, state=state, n_lacking=len(lacking))


@router.post("/models")
def fetch_missing(owner: Owner, form: Posted) -> Response:
    """Download what is missing; the writer agrees by sending this form."""
    desk = owner.desk
    needs = missing_models(desk)
    if needs is not None and not needs.is_under_way:
        desk.begin_fetching(
            _MODELS, lambda progress: setup(desk.setup, usable_sets(), progress=progress)
        )
    return RedirectResponse("/models", 303)


@router.post("/models/stop")
def stop_fetching(owner: Owner, form: Posted) -> Response:
    """Stop downloading; models that are complete are kept."""
    owner.desk.stop_other(_MODELS)
    return RedirectResponse("/models", 303)


@router.post("/models/again")
def measure_again(owner: Owner, form: Posted) -> Response:
    """Measure the drafts that were measured without these models."""
    for version in _lacking(owner.desk):
        owner.desk.begin(version)
    return RedirectResponse("/", 303)


def _lacking(desk: work.Desk) -> list[Version]:
    """The last version of each piece whose finished report lacks a part that a model makes."""

    def lacks(version: Version) -> bool:
        measured = version.found
        wanted = {"profile", "fluency"} if work.Asked.read(version.asked).fluency else {"profile"}
        return bool(measured.get("is_whole")) and not wanted <= {*measured.get("signatures", {})}

    return [piece.last for piece in desk.drafts.pieces() if lacks(piece.last)]


class Changed(NamedTuple):
    """A stretch of a version. `kind` is `same`, `gone` (in the earlier) or `new` (in the later)."""

    kind: str
    text: str


def changed_words(before: str, after: str) -> tuple[list[Changed], list[Changed]]:
    """Both versions split where they differ: by lines, and within changed lines by words."""
    old: list[Changed] = []
    new: list[Changed] = []
    a, b = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for is_same, left, right in _compared(a, b):
        words = _TOKEN.findall(left), _TOKEN.findall(right)
        is_whole = is_same or not left or not right or sum(map(len, words)) > _MAX_TOKENS
        for same, x, y in [(is_same, left, right)] if is_whole else _compared(*words):
            if x:
                old.append(Changed("same" if same else "gone", x))
            if y:
                new.append(Changed("same" if same else "new", y))
    return old, new


def _compared(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[bool, str, str]]:
    for what, a1, a2, b1, b2 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        yield what == "equal", "".join(a[a1:a2]), "".join(b[b1:b2])


def _shown(value: float | None, number: dict[str, Any]) -> str:
    return "missing" if value is None else format(value, number["form"])

"""Several texts on the desk, each compared with the others: a class, a group.

classes/0001/texts/...      the files as they were given
classes/0001/assignment.txt the wording that all were given, if it is known
classes/0001/asked.json     how they were to be compared
classes/0001/report.html    the report, once it exists; place.html with room for the desk's bar
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from fabula.core.errors import InputError
from fabula.core.store import dump_json, write_whole
from fabula.jobs.job import Progress
from fabula.review.job import ReportSettings
from fabula.review.page import page_of
from fabula.review.reviewer import Reviewer
from fabula.text import files_named, read_documents
from fabula.text.readers import READERS
from fabula.text.wording import check_wording
from fabula.web import visible
from fabula.writer.desk_pages import Owner, Posted, files_in, report_file
from fabula.writer.drafts import place_in, read_object
from fabula.writer.work import Desk, render, render_place, render_report, with_bar

router = APIRouter()
_WITHOUT = ("profile", "lines", "book", "verdicts", "feedback")
"""Parts that do not concern what texts share, and take long for many of them."""
_ENDINGS = ",".join(f".{kind}" for kind in READERS if kind not in ("wet", "scriv"))
"""The files that contain texts, as the page names them; folders cannot be chosen."""


@dataclass(frozen=True, slots=True)
class Group:
    """Texts that are compared with each other, in a folder."""

    folder: Path

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def files(self) -> list[Path]:
        return sorted((self.folder / "texts").iterdir())

    @property
    def title(self) -> str:
        names = [visible(path.stem) for path in self.files]
        return f"{len(names)} texts: {', '.join(names[:3])}{', …' if len(names) > 3 else ''}"

    def settings(self, n_jobs: int) -> ReportSettings:
        asked = read_object(self.folder / "asked.json")
        reference = str(asked.get("reference", ""))
        return ReportSettings(
            references=(reference,) if reference else (),
            match="near" if asked.get("near") is True else "verbatim",
            against_each_other=True,
            assignment=path if (path := self.folder / "assignment.txt").exists() else None,
            without=_WITHOUT,
            n_jobs=n_jobs,
        )

    def measure(self, n_jobs: int, progress: Progress) -> None:
        """Compare the texts and save the report. Raises `FabulaError`."""
        documents = [
            replace(document, id=path.name if len(parts) == 1 else f"{path.name} {document.id}")
            for path in self.files
            for parts in [list(read_documents(files_named([path])))]
            for document in parts
        ]
        with Reviewer(self.settings(n_jobs)) as reviewer:
            review = reviewer.run(documents, progress)
        page = page_of(review)
        for name, shown in (("report", render_report(page)), ("place", render_place(review, page))):
            write_whole(self.folder / f"{name}.html", shown.encode(errors="replace"))


def _groups(desk: Desk) -> list[Group]:
    """Newest first."""
    folder = desk.folder / "classes"
    paths = [path for path in folder.glob("*") if path.name.isdecimal()] if folder.is_dir() else []
    return [Group(path) for path in sorted(paths, reverse=True) if (path / "asked.json").exists()]


def group_named(owner: Owner, id_: str) -> Group:
    """The class that an address names. Raises 404."""
    if (group := next((g for g in _groups(owner.desk) if g.id == id_), None)) is None:
        raise HTTPException(404)
    return group


Named = Annotated[Group, Depends(group_named)]


@router.get("/classes")
def classes(owner: Owner) -> Response:
    """All classes, and a form for another."""
    desk = owner.desk
    shown = {"groups": _groups(desk), "references": desk.references, "endings": _ENDINGS}
    return owner.page("classes.html.j2", **shown)


@router.post("/classes")
async def add(owner: Owner, form: Posted) -> Response:
    """Several files to be compared with each other."""
    files = files_in(form)
    if len(files) < 2:
        raise InputError("choose at least two files: a single text cannot be compared")
    wording = str(form.get("assignment", ""))
    if wording.strip():
        check_wording(wording, "The assignment's wording")
    asked = {"reference": str(form.get("reference", "")).strip(), "near": form.get("near") == "on"}
    folder = owner.desk.folder / "classes"
    folder.mkdir(mode=0o700, exist_ok=True)
    numbers = [int(path.name) for path in folder.iterdir() if path.name.isdecimal()]
    group = Group(folder / f"{max(numbers, default=0) + 1:04d}")
    (group.folder / "texts").mkdir(parents=True)
    for k, file in enumerate(files, 1):
        # A safe file name: without folders, and unique. File systems count bytes.
        name = Path(str(file.filename).replace("\\", "/")).name.lstrip(".")
        name = name.encode(errors="replace")[-200:].decode(errors="ignore") or f"{k}.txt"
        is_taken = (group.folder / "texts" / name).exists()
        path = group.folder / "texts" / (f"{k}-{name}" if is_taken else name)
        path.write_bytes(await file.read())
    if wording.strip():
        write_whole(group.folder / "assignment.txt", wording.encode(errors="replace"))
    write_whole(group.folder / "asked.json", dump_json(asked).encode())
    try:
        group.settings(1)
    except InputError:
        shutil.rmtree(group.folder)
        raise
    _begin(owner.desk, group)
    return RedirectResponse(f"/classes/{group.id}", 303)


def _begin(desk: Desk, group: Group) -> None:
    desk.begin_other(f"class {group.id}", partial(group.measure, desk.n_jobs))


@router.get("/classes/{id_}")
def show(owner: Owner, group: Named) -> Response:
    """What the texts share; until that is known, the progress."""
    if place := place_in(group.folder):
        bar = render("class_bar.html.j2", group=group, csrf=owner.csrf)
        return HTMLResponse(with_bar(place, bar, is_over=True))
    state = owner.desk.state_of(f"class {group.id}")
    if state is None:
        # Resume after an interruption, as for drafts.
        _begin(owner.desk, group)
    return owner.page("class_waiting.html.j2", group=group, state=state)


@router.get("/classes/{id_}/report.html")
def download(group: Named) -> Response:
    path = group.folder / "report.html"
    report = path.read_text(encoding="utf-8") if path.exists() else None
    return report_file(report, f"class-{group.id}")


@router.post("/classes/{id_}/remove")
async def remove(owner: Owner, form: Posted, group: Named) -> Response:
    """Delete the texts and their report permanently."""
    owner.desk.stop_other(f"class {group.id}")
    await run_in_threadpool(shutil.rmtree, group.folder, ignore_errors=True)
    return RedirectResponse("/classes", 303)

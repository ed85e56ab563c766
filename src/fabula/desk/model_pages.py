"""Models that reports need and this machine lacks: listing and downloading them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response

from fabula.desk.draft_settings import Asked
from fabula.desk.drafts import Version
from fabula.desk.visits import Owner, Posted
from fabula.desk.work import Desk, State
from fabula.jobs.progress import Progress
from fabula.jobs.setup import Step, setup, usable_sets

router = APIRouter()
_WORK = "models"


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


def missing_models(desk: Desk) -> MissingModels | None:
    """None if every model whose runtime is installed is here."""
    sets = usable_sets()
    dry = replace(desk.setup, dry_run=True)
    steps = setup(dry, sets).missing if sets else ()
    return MissingModels(steps, steps[0].folder.parent, desk.state_of(_WORK)) if steps else None


@router.get("/models")
def show(owner: Owner) -> Response:
    """The models, and the progress of downloading them."""
    desk = owner.desk
    needs, state = missing_models(desk), desk.state_of(_WORK)
    lacking = [] if needs else _lacking(desk)
    return owner.page("models.html.j2", needs=needs, state=state, n_lacking=len(lacking))


@router.post("/models")
def fetch(owner: Owner, form: Posted) -> Response:
    """Download what is missing; the writer agrees by sending this form."""
    desk = owner.desk
    needs = missing_models(desk)
    if needs is not None and not needs.is_under_way:

        def fetch_models(progress: Progress) -> None:
            setup(desk.setup, usable_sets(), progress=progress)

        desk.begin_other(_WORK, fetch_models)
    return RedirectResponse("/models", 303)


@router.post("/models/stop")
def stop(owner: Owner, form: Posted) -> Response:
    """Stop downloading; models that are complete are kept."""
    owner.desk.stop_other(_WORK)
    return RedirectResponse("/models", 303)


@router.post("/models/again")
def measure_again(owner: Owner, form: Posted) -> Response:
    """Measure the drafts that were measured without these models."""
    for version in _lacking(owner.desk):
        owner.desk.begin(version)
    return RedirectResponse("/", 303)


def _lacking(desk: Desk) -> list[Version]:
    """The last version of each piece whose finished report lacks a part that a model makes."""

    def lacks(version: Version) -> bool:
        found = version.found
        wanted = {"profile", "fluency"} if Asked.read(version.asked).fluency else {"profile"}
        return bool(found.get("is_whole")) and not wanted <= {*found.get("signatures", {})}

    return [piece.last for piece in desk.drafts.pieces() if lacks(piece.last)]

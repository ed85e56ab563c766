"""Where the desk keeps drafts, and the references it offers for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fabula.jobs.engine import Processes
from fabula.settings import Between, setting


@dataclass(frozen=True)
class DeskSettings(Processes):
    """How the desk is opened."""

    references: tuple[str, ...] = setting(
        (),
        help="Corpus offered for comparison.",
        unit="PATH",
        option="reference",
        env="FABULA_REFERENCE",
    )
    folder: Path | None = setting(
        None,
        help="Folder where drafts are kept.",
        unit="DIR",
        option="dir",
        default_text="a folder of the current user",
    )
    port: int = setting(8765, help="Port to listen on.", check=Between(0, 65535))
    opens: bool = setting(True, help="Open the page in the browser.", option="open")

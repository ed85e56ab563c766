"""The desk: a local page where a writer drops a draft, reads its report, revises and compares."""

from __future__ import annotations

from fabula.desk.app import create_app, desk_name
from fabula.desk.work import Desk

__all__ = ["Desk", "create_app", "desk_name"]

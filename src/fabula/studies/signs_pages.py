"""Endpoint to which the page of a unit sends its counts."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response
from sqlalchemy import select

from fabula.studies.database import assignments
from fabula.studies.forms import pages_of
from fabula.studies.participant_pages import Posted, Visitor
from fabula.studies.signs import keep_signs

router = APIRouter()


@router.post("/signs")
def count(visitor: Visitor, form: Posted) -> Response:
    """Store counts, which may arrive after the unit was submitted; ignore units of others."""
    study = visitor.study
    number = form.get("unit", "")
    if number.isdecimal() and 0 < len(number) < 7 and int(number):
        with study.store.writing() as connection:
            row = connection.execute(
                select(assignments)
                .where(assignments.c.participant_id == visitor.participant.id)
                .order_by(assignments.c.id)
                .limit(1)
                .offset(int(number) - 1)
            ).first()
            if row is not None and row.unit in study.units:
                n = len(study.units[row.unit].documents)
                questions = [q for p in pages_of(study.design, n) for q in p.questions]
                keys = [key for q in questions for key in (q.key, q.why)]
                keep_signs(connection, row.id, keys, form)
    return Response(status_code=204)

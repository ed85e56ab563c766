"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "participants",
        sa.Column("id", _Id, primary_key=True, autoincrement=True),
        sa.Column("token_hash", sa.Text, nullable=False, unique=True),
        sa.Column("platform_id", sa.Text, unique=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("made_ms", sa.BigInteger, nullable=False),
        sa.Column("consented_ms", sa.BigInteger),
        sa.Column("quiz_ms", sa.BigInteger),
        sa.Column("n_right", sa.Integer),
    )
    op.create_table(
        "tokens",
        sa.Column("token_hash", sa.Text, primary_key=True),
        sa.Column("participant_id", _Id, sa.ForeignKey("participants.id"), nullable=False),
    )
    op.create_table(
        "assignments",
        sa.Column("id", _Id, primary_key=True, autoincrement=True),
        sa.Column("participant_id", _Id, sa.ForeignKey("participants.id"), nullable=False),
        sa.Column("unit", sa.Text, nullable=False),
        sa.Column("order", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("page", sa.Text, nullable=False),
        sa.Column("given_ms", sa.BigInteger, nullable=False),
        sa.Column("seen_ms", sa.BigInteger, nullable=False),
        sa.Column("done_ms", sa.BigInteger),
        sa.UniqueConstraint("participant_id", "unit"),
    )
    op.create_index("assignments_by_unit", "assignments", ["unit", "state"])
    op.create_table(
        "answers",
        sa.Column("id", _Id, primary_key=True, autoincrement=True),
        sa.Column("assignment_id", _Id, sa.ForeignKey("assignments.id"), nullable=False),
        sa.Column("part", sa.Text, nullable=False),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("value", sa.Text),
        sa.Column("saved_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("answers_by_assignment", "answers", ["assignment_id", "id"])
    op.create_table(
        "sessions",
        sa.Column("token_hash", sa.Text, primary_key=True),
        sa.Column("ends_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("id", _Id, primary_key=True, autoincrement=True),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_table(
        "settings",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )


def downgrade() -> None:
    for table in (
        "settings",
        "audit",
        "sessions",
        "answers",
        "assignments",
        "tokens",
        "participants",
    ):
        op.drop_table(table)

"""What was done in the fields of answers, in numbers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "p_0003"
down_revision = "s_0002"
branch_labels = None
depends_on = None

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "signs",
        sa.Column("assignment_id", _Id, sa.ForeignKey("assignments.id"), primary_key=True),
        sa.Column("part", sa.Text, primary_key=True),
        sa.Column("item", sa.Text, primary_key=True),
        sa.Column("load", sa.Text, primary_key=True),
        sa.Column("n_pastes", sa.Integer, nullable=False),
        sa.Column("n_leaves", sa.Integer, nullable=False),
        sa.Column("n_keys", sa.Integer, nullable=False),
        sa.Column("saved_ms", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("signs")

"""Who came from a platform, and how their submissions stand there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "p_0002"
down_revision = "p_0001"
branch_labels = None
depends_on = None

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "visits",
        sa.Column("id", _Id, primary_key=True, autoincrement=True),
        sa.Column("participant_id", _Id, sa.ForeignKey("participants.id"), nullable=False),
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("study", sa.Text, nullable=False),
        sa.Column("session", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("status", sa.Text),
        sa.Column("status_ms", sa.BigInteger),
        sa.Column("state_before", sa.Text),
        sa.UniqueConstraint("participant_id", "session"),
    )
    op.create_index("visits_by_address", "visits", ["address", "at_ms"])


def downgrade() -> None:
    op.drop_table("visits")

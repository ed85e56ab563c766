"""Which page was opened when."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "s_0002"
down_revision = "s_0001"
branch_labels = None
depends_on = None

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "page_views",
        sa.Column("id", _Id, primary_key=True, autoincrement=True),
        sa.Column("assignment_id", _Id, sa.ForeignKey("assignments.id"), nullable=False),
        sa.Column("page", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("page_views_by_assignment", "page_views", ["assignment_id", "id"])


def downgrade() -> None:
    op.drop_table("page_views")

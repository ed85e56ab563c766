"""What organisers decide where people disagree."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "s_0001"
down_revision = "p_0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "resolutions",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            primary_key=True,
            autoincrement=True,
        ),
        sa.Column("document_id", sa.Text, nullable=False),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("value", sa.Text),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("resolutions_by_question", "resolutions", ["document_id", "item"])


def downgrade() -> None:
    op.drop_table("resolutions")

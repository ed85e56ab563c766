"""What was shown, version by version."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "s_0003"
down_revision = "p_0003"
branch_labels = None
depends_on = None

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "versions",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
    )
    op.create_table(
        "contents",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("words", sa.Text, nullable=False),
    )
    op.create_table(
        "texts_shown",
        sa.Column("participant_id", _Id, sa.ForeignKey("participants.id"), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
    )
    op.add_column("page_views", sa.Column("version", sa.Integer))


def downgrade() -> None:
    op.drop_column("page_views", "version")
    op.drop_table("texts_shown")
    op.drop_table("contents")
    op.drop_table("versions")

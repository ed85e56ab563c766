"""What people agreed to, their tries at the quiz, and what they said about themselves."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "p_0001"
down_revision = "0001"
branch_labels = None
depends_on = None

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _of_participant(*, is_key: bool = False) -> sa.Column[int]:
    return sa.Column(
        "participant_id", _Id, sa.ForeignKey("participants.id"), nullable=False, primary_key=is_key
    )


def upgrade() -> None:
    op.create_table(
        "consents",
        sa.Column("id", _Id, primary_key=True, autoincrement=True),
        _of_participant(),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "consent_texts",
        sa.Column("version", sa.Text, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_table(
        "quiz_tries",
        sa.Column("id", _Id, primary_key=True, autoincrement=True),
        _of_participant(),
        sa.Column("n_right", sa.Integer, nullable=False),
        sa.Column("given", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "steps",
        _of_participant(is_key=True),
        sa.Column("step", sa.Text, primary_key=True),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "about_answers",
        _of_participant(is_key=True),
        sa.Column("item", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("saved_ms", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    for table in ("about_answers", "steps", "quiz_tries", "consent_texts", "consents"):
        op.drop_table(table)

"""How Alembic reaches the database: through the connection that the study opened."""

from __future__ import annotations

from alembic import context
from sqlalchemy import text

from fabula.studies.database import metadata

connection = context.config.attributes["connection"]
if connection.dialect.name == "postgresql":
    # Two servers that start at once take turns.
    connection.execute(text("SELECT pg_advisory_lock(4702111)"))
try:
    context.configure(connection=connection, target_metadata=metadata)
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
finally:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_unlock(4702111)"))
        connection.commit()

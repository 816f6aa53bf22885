"""Run the migrations on the connection that the caller hands over, or on the URL of alembic.ini."""

from alembic import context
from sqlalchemy import Connection, engine_from_config, pool

from ruledb.store.models import Base

config = context.config


def _migrate(connection: Connection) -> None:
    # SQLite cannot alter a table in place: batch mode copies it.
    context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


given = config.attributes.get("connection")
if given is not None:
    _migrate(given)
else:
    engine = engine_from_config(config.get_section(config.config_ini_section, {}), prefix="sqlalchemy.", poolclass=pool.NullPool)
    with engine.connect() as connection:
        _migrate(connection)

"""The migrations go up, down and up again, on SQLite and on PostgreSQL, and lead to what the models say."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from ruledb.store.database import DatabaseError, downgrade, migrations, open_engine, upgrade
from ruledb.store.models import Base

OURS = set(Base.metadata.tables)


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request, tmp_path):
    """An engine on an empty database whose schema was just created; afterwards nothing of ours is left in it."""
    url = f"sqlite:///{tmp_path / 'empty.sqlite'}" if request.param == "sqlite" else request.getfixturevalue("postgresql_url")
    engine = open_engine(url)
    yield engine
    upgrade(engine)
    downgrade(engine, "base")
    engine.dispose()


def tables(engine) -> set[str]:
    """Tables of the database, the one that alembic keeps apart."""
    return set(inspect(engine).get_table_names()) - {"alembic_version"}


def test_up_down_up(engine):
    """Up makes every table, down removes every one, and up makes them again."""
    assert tables(engine) == OURS
    downgrade(engine, "base")
    assert tables(engine) == set()
    upgrade(engine)
    assert tables(engine) == OURS


def test_step_by_step(engine):
    """Each migration alone goes down and up again."""
    revisions = [s.revision for s in ScriptDirectory(str(migrations())).walk_revisions()]
    for _ in revisions:
        downgrade(engine, "-1")
    assert tables(engine) == set()
    for revision in reversed(revisions):
        upgrade(engine, revision)
    assert tables(engine) == OURS


def test_up_leads_to_the_models(engine):
    """Alembic finds no difference between the migrated schema and the models."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_a_difference_would_be_found(engine):
    """A table that no model has is a difference."""
    with engine.begin() as connection:
        connection.execute(text("create table stranger (id integer primary key)"))
    try:
        with engine.connect() as connection:
            (difference,) = compare_metadata(MigrationContext.configure(connection), Base.metadata)
        assert difference[0] == "remove_table"
    finally:
        with engine.begin() as connection:
            connection.execute(text("drop table stranger"))


def test_a_newer_schema_is_refused(engine):
    """A schema that this version does not know is refused and left as it is."""
    with engine.begin() as connection:
        known = connection.execute(text("select version_num from alembic_version")).scalar_one()
        connection.execute(text("update alembic_version set version_num = '9999'"))
    try:
        with pytest.raises(DatabaseError, match="9999 is newer"):
            upgrade(engine)
    finally:
        with engine.begin() as connection:
            connection.execute(text(f"update alembic_version set version_num = '{known}'"))


def test_every_constraint_has_a_name():
    """Every constraint and index of the models has a name that migrations can use."""
    for table in Base.metadata.tables.values():
        assert all(constraint.name for constraint in table.constraints)
        assert all(index.name for index in table.indexes)

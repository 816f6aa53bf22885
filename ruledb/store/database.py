"""Open a database: find it, create it, bring its schema up to date."""

import os
import re
from importlib.util import find_spec
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from ruledb.machine.places import data_folder

__all__ = ["DatabaseError", "DatabaseFailure", "default_url", "downgrade", "migrations", "open_engine", "rules_path", "upgrade"]


DatabaseFailure = DBAPIError
"""What a method of the store raises where the database fails in the middle: the disk is full, the server is gone."""


class DatabaseError(ValueError):
    """A database cannot be used: the message names it, says why and what to do."""


def default_url() -> str:
    """``$RULEDB_URL``, else a SQLite file in the user's data directory."""
    return os.environ.get("RULEDB_URL") or f"sqlite:///{data_folder() / 'ruledb.sqlite'}"


def rules_path(url: str) -> Path:
    """Where training exports its rule file: beside a SQLite file, else in the user's data directory."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database and parsed.database != ":memory:":
        return Path(parsed.database).with_suffix(".rules")
    return data_folder() / "ruledb.rules"


def migrations() -> Path:
    """The migrations: inside the installed package, or at the top of a checkout."""
    spec = find_spec("ruledb.store")
    assert spec is not None
    assert spec.origin is not None
    inside = Path(spec.origin).parent / "migrations"
    return inside if inside.is_dir() else Path(spec.origin).parents[2] / "alembic"


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrations()))
    return config


def upgrade(engine: Engine, revision: str = "head") -> None:
    """
    Bring the schema to *revision*.

    Raises:
        DatabaseError: The schema is newer than this version knows.

    """
    config = _config()
    scripts = ScriptDirectory.from_config(config)
    with engine.begin() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
        known = {script.revision for script in scripts.walk_revisions()}
        if current is not None and current not in known:
            raise DatabaseError(f"{_shown(engine)}: its schema {current} is newer than this version of ruledb knows; upgrade ruledb")
        if current != scripts.get_current_head() or revision != "head":
            config.attributes["connection"] = connection
            command.upgrade(config, revision)


def downgrade(engine: Engine, revision: str) -> None:
    """Take the schema back to *revision* (``base``: nothing left)."""
    config = _config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)


def _shown(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=True)


_EXPECTED = "not a URL of a database; expected for example sqlite:///rules.sqlite or postgresql://host/name"


def _hidden(url: str) -> str:
    """*url* without user and password, also where it is no URL."""
    return re.sub(r"//[^@/]*@", "//***@", url)


def _parsed(url: str) -> URL:
    """The URL of a database that we can use."""
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise DatabaseError(f"database {_hidden(url)}: {_EXPECTED}") from None
    if backend not in ("sqlite", "postgresql"):
        raise DatabaseError(f"database {_hidden(url)}: expected a URL that starts with sqlite:/// or postgresql://")
    return parsed.set(drivername="postgresql+psycopg") if parsed.drivername == "postgresql" else parsed


def open_engine(url: str | None = None) -> Engine:
    """
    An engine on the database at *url* (default: `default_url`), with its schema created or upgraded.

    Raises:
        DatabaseError: The URL is no database of ours, it cannot be reached, or its schema is newer.

    """
    parsed = _parsed(url or default_url())
    shown = parsed.render_as_string(hide_password=True)
    try:
        if parsed.get_backend_name() == "sqlite" and parsed.database and parsed.database != ":memory:":
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(parsed)
    except NoSuchModuleError:
        raise DatabaseError(f"database {shown}: {_EXPECTED}") from None
    except ModuleNotFoundError:
        raise DatabaseError(f"database {shown}: the PostgreSQL driver is missing; install ruledb[postgresql]") from None
    except OSError as problem:
        raise DatabaseError(f"database {shown}: cannot create its folder ({problem.strerror}); give another with --db") from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure_sqlite)
    try:
        upgrade(engine)
    except DBAPIError as problem:
        raise DatabaseError(
            f"database {_shown(engine)}: {str(problem.orig).strip().splitlines()[0]}; check the URL given with --db"
        ) from None
    return engine


def _configure_sqlite(connection: object, _record: object) -> None:
    cursor = connection.cursor()  # type: ignore[attr-defined]  # a DBAPI connection
    for pragma in ("foreign_keys=ON", "journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()

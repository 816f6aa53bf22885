"""Opening a database: where it is, and one line where it cannot be used."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text

from ruledb.store.database import DatabaseError, default_url, open_engine, rules_path


def refusal(url):
    """The one line that refuses *url*."""
    with pytest.raises(DatabaseError) as refused:
        open_engine(url)
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "expected for example sqlite:///"),
        ("mysql://host/name", "expected a URL that starts with sqlite:/// or postgresql://"),
        ("oracle://host/name", "expected a URL that starts with sqlite:/// or postgresql://"),
        ("nosuch://host/name", "expected"),
        ("postgresql://localhost:1/none", "check the URL given with --db"),
        ("postgresql://user:secret@localhost:1/none", "check the URL given with --db"),
        ("sqlite:////proc/nowhere/x.sqlite", "cannot"),
        ("postgresql://user:secret@localhost:port/none", "expected"),
        ("postgresql+nosuch://host/name", "expected"),
        ("postgresql://localhost:port/none", "expected"),
        ("://", "expected"),
    ],
)
def test_what_is_no_database_is_refused(url, says):
    """The message names what was given, without its password, and what is expected."""
    message = refusal(url)
    assert says in message
    assert "secret" not in message


def test_a_file_that_is_no_database_is_refused(tmp_path):
    """A text file, a folder and a file that may not be written are refused."""
    file = tmp_path / "text.sqlite"
    file.write_text("just some words, many of them, so that it is no empty file" * 20)
    assert "not a database" in refusal(f"sqlite:///{file}")
    assert "unable to open" in refusal(f"sqlite:///{tmp_path}")


def test_a_strange_database_is_left_alone(tmp_path):
    """Tables of somebody else that have our names are not taken for ours."""
    with sqlite3.connect(tmp_path / "other.sqlite") as connection:
        connection.execute("create table rules (name text)")
    refusal(f"sqlite:///{tmp_path / 'other.sqlite'}")


def test_a_newer_schema_is_refused(tmp_path):
    """The message names both the database and the way out."""
    url = f"sqlite:///{tmp_path / 'new.sqlite'}"
    engine = open_engine(url)
    with engine.begin() as connection:
        connection.execute(text("update alembic_version set version_num = '9999'"))
    engine.dispose()
    message = refusal(url)
    assert "9999 is newer" in message
    assert "upgrade ruledb" in message


def test_a_folder_is_made_for_a_file(tmp_path):
    """The folder of a SQLite file need not exist."""
    path = tmp_path / "a" / "b" / "rules.sqlite"
    open_engine(f"sqlite:///{path}").dispose()
    assert path.exists()


def test_the_environment_says_where(monkeypatch, tmp_path):
    """`$RULEDB_URL` goes before the user's data directory."""
    monkeypatch.setenv("RULEDB_URL", "sqlite:///x.sqlite")
    assert default_url() == "sqlite:///x.sqlite"
    monkeypatch.delenv("RULEDB_URL")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_url() == f"sqlite:///{tmp_path / 'ruledb' / 'ruledb.sqlite'}"


@pytest.mark.parametrize(
    ("url", "name"),
    [("sqlite:////a/b/mine.sqlite", "/a/b/mine.rules"), ("postgresql://h/n", "ruledb.rules"), ("sqlite://", "ruledb.rules")],
)
def test_the_rule_file_lies_beside_the_database(url, name):
    """Beside a SQLite file, else in the data directory."""
    assert str(rules_path(url)).endswith(name)
    assert isinstance(rules_path(url), Path)


def test_a_second_opening_changes_nothing(tmp_path):
    """A schema that is up to date is left as it is."""
    url = f"sqlite:///{tmp_path / 'same.sqlite'}"
    open_engine(url).dispose()
    before = (tmp_path / "same.sqlite").stat().st_mtime_ns
    open_engine(url).dispose()
    assert (tmp_path / "same.sqlite").stat().st_mtime_ns == before

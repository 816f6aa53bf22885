"""What tests of small trainings share."""

from ruledb.semantics.digest import semantics_digest
from ruledb.store.database import open_engine
from ruledb.store.store import Store

FILES = ("vm-O0", "bcd-O0")
"""Two small programs, not optimised."""

SHAPE = {"window": 3, "length": 1, "registers": 2, "jobs": 2, "quiet": True}
"""Options of a training of seconds."""


def url_of(folder):
    """The URL of the database in *folder*."""
    return f"sqlite:///{folder / 'training.sqlite'}"


def open_store(folder):
    """The store in *folder*."""
    return Store(open_engine(url_of(folder)), semantics_digest())


def claims(store):
    """What the rules of a store claim."""
    return {(r.digest, r.preserves) for r in store.rules()}

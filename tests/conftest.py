"""What most tests share: one library of kernels, one emulator, one prover."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

from trainings import FILES, SHAPE, open_store

from ruledb.proof.oracle import Oracle
from ruledb.proof.prover import Prover
from ruledb.search.kernels import KernelLibrary
from ruledb.training import Options, train

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def kernel_cache(request, tmp_path_factory):
    """A folder of compiled kernels that outlives the run."""
    cache = getattr(request.config, "cache", None)
    return cache.mkdir("kernels") if cache is not None else tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="session")
def library(kernel_cache):
    """The kernels of the run."""
    return KernelLibrary(kernel_cache)


@pytest.fixture(scope="session")
def oracle():
    """The emulator of the run."""
    return Oracle()


@pytest.fixture(scope="session")
def prover():
    """A prover with both solvers."""
    return Prover()


@pytest.fixture(scope="session")
def corpus():
    """The folder of prebuilt binaries."""
    return Path(__file__).resolve().parents[1] / "corpora" / "bin"


@pytest.fixture(scope="session")
def repository_on_path():
    """The environment of subprocesses that import the packages from here."""
    root = str(Path(__file__).resolve().parents[1])
    return os.environ | {"PYTHONPATH": os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH")) if p)}


@pytest.fixture(scope="session")
def options(kernel_cache):
    """Options of a training of seconds, some of them changed."""
    return lambda **changed: Options(**SHAPE | {"cache": kernel_cache} | changed)


@pytest.fixture(scope="session")
def files(corpus):
    """Two small programs to learn from."""
    return [corpus / name for name in FILES]


@pytest.fixture
def fresh(tmp_path):
    """A store on an empty database."""
    return open_store(tmp_path)


@pytest.fixture(scope="session")
def trained(tmp_path_factory, files, options):
    """A store after an undisturbed training, and the report."""
    store = open_store(tmp_path_factory.mktemp("trained"))
    return store, train(store, files, options())

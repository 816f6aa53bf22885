"""What is installed is whole."""

import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
METADATA = f"ruledb-{PROJECT['version']}.dist-info"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, capture_output=True, check=True)
    (path,) = folder.glob("*.whl")
    with ZipFile(path) as archive:
        yield archive


def test_the_wheel_holds_every_module(wheel):
    """The wheel has each module of both packages, and their markers of being typed."""
    ours = {str(p.relative_to(ROOT)) for package in ("ruledb", "rewriter") for p in (ROOT / package).rglob("*.py")}
    assert ours | {"ruledb/py.typed", "rewriter/py.typed"} <= set(wheel.namelist())


def test_the_wheel_holds_the_migrations(wheel):
    """The wheel has each migration, and what runs them, inside the package."""
    ours = {f"ruledb/store/migrations/{p.relative_to(ROOT / 'alembic')}" for p in (ROOT / "alembic").rglob("*.py")}
    held = {name for name in wheel.namelist() if name.startswith("ruledb/store/migrations/") and name.endswith(".py")}
    assert len(ours) >= 2
    assert held == ours


def test_the_wheel_holds_nothing_else(wheel):
    """The wheel installs the two packages and nothing beside them."""
    assert {name.partition("/")[0] for name in wheel.namelist()} == {"ruledb", "rewriter", METADATA}


def test_the_wheel_names_both_commands(wheel):
    """The commands `ruledb` and `peephole-rewrite` are entry points."""
    text = wheel.read(f"{METADATA}/entry_points.txt").decode()
    assert "ruledb = ruledb.cli:main" in text
    assert "peephole-rewrite = rewriter.cli:main" in text


def test_every_requirement_is_used():
    """Each package that the project requires is imported by it somewhere."""
    modules = {"iced-x86": "iced_x86", "z3-solver": "z3"}
    names = [requirement.partition("=")[0].partition(">")[0] for requirement in PROJECT["dependencies"]]
    sources = "\n".join(p.read_text(encoding="utf-8") for package in ("ruledb", "rewriter") for p in (ROOT / package).rglob("*.py"))
    unused = [n for n in names if f"import {modules.get(n, n)}" not in sources and f"from {modules.get(n, n)}" not in sources]
    assert unused == []

"""Imports run the way that `.importlinter` says, and the contracts notice when they do not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    """What lint-imports says of *tree*."""
    return subprocess.run(LINT, cwd=tree, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of both packages and their contracts."""
    tree = tmp_path_factory.mktemp("tree")
    for package in ("ruledb", "rewriter"):
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".importlinter", tree)
    return tree


def test_all_contracts_hold():
    """No contract is broken."""
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout
    assert " 0 broken" in result.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("rewriter/patcher.py", "import sqlalchemy", "need no solver, compiler, emulator or database BROKEN"),
        ("ruledb/machine/rule.py", "import ruledb.semantics.terms", "need no solver, compiler, emulator or database BROKEN"),
        ("rewriter/patcher.py", "import ruledb.semantics.terms", "knows the machine and the costs only BROKEN"),
        ("ruledb/search/level.py", "import ruledb.store.models", "run downwards, and every module has its place BROKEN"),
        ("ruledb/newcomer.py", "", "run downwards, and every module has its place BROKEN"),
        ("ruledb/proof/oracle.py", "import ruledb.semantics.forms", "independent witness: it never sees what instructions mean BROKEN"),
        ("ruledb/machine/elf.py", "import iced_x86", "Only the codec knows the decoders BROKEN"),
        ("ruledb/proof/prover.py", "import z3", "Only the modules of solvers know a solver BROKEN"),
        ("ruledb/training.py", "import sqlalchemy", "Only the store knows the database BROKEN"),
    ],
)
def test_a_forbidden_import_is_noticed(copy, module, line, contract):
    """A forbidden import, or a module without a place, breaks the contract that forbids it."""
    path = copy / module
    before = path.read_text(encoding="utf-8") if path.exists() else None
    path.write_text(f"{before or ''}\n{line}\n", encoding="utf-8")
    try:
        result = lint(copy)
    finally:
        path.unlink() if before is None else path.write_text(before, encoding="utf-8")
    assert result.returncode == 1
    assert contract in " ".join(result.stdout.split())

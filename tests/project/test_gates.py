"""The gates of the project hold for the whole tree."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "gate", [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)], ids=["ruff check", "ruff format", "mypy"]
)
def test_gate(gate):
    """The linter, the formatter and the type checker have nothing to say."""
    result = subprocess.run([sys.executable, "-m", *gate], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr

"""Make the modules beside the tests importable, and what several of them share."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from rewriter import cli
from ruledb.machine.rulefile import rule_file_text


@pytest.fixture(scope="session")
def corpus():
    """The prebuilt binaries and what they print."""
    return Path(__file__).resolve().parents[2] / "corpora"


@pytest.fixture(scope="session")
def rule_file(tmp_path_factory):
    """A rule file with the sample rules."""
    from sample_rules import RULES

    path = tmp_path_factory.mktemp("rules") / "sample.rules"
    path.write_text(rule_file_text(RULES, "hand-written"))
    return path


@pytest.fixture
def program(corpus, tmp_path):
    """A copy of a small binary that the sample rules rewrite."""
    return Path(shutil.copy(corpus / "bin" / "vm-O0", tmp_path / "program"))


@pytest.fixture
def peephole(rule_file, monkeypatch, capsys):
    """The command with the sample rules: arguments → (exit code, standard output, standard error)."""
    monkeypatch.setenv("RULEDB_RULES", str(rule_file))

    def run(*arguments):
        code = cli._exit_code([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """gcc: source text and options → path of the program. Skips where there is no gcc."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")

    def compiled(source, *options, suffix=".c"):
        folder = tmp_path_factory.mktemp("build")
        (folder / f"p{suffix}").write_text(source)
        subprocess.run(["gcc", *options, "-o", folder / "p", folder / f"p{suffix}"], check=True, capture_output=True)
        return folder / "p"

    return compiled


def output_of(path):
    """Exit code and standard output of the program at *path*."""
    done = subprocess.run([path], capture_output=True, timeout=10, check=False)
    return done.returncode, done.stdout


@pytest.fixture(scope="session")
def run():
    """Runs a program: path → (exit code, standard output)."""
    return output_of

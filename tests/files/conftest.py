"""What the tests of whole files share: building, rewriting by the command, and what must hold of every output."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from whole_files import needs

sys.path.insert(0, str(Path(__file__).parents[1] / "rewriter"))

from rewriter import cli
from ruledb.machine.rulefile import rule_file_text


@pytest.fixture(scope="session")
def rule_file(tmp_path_factory):
    """The rule file that RULEDB_RULES names, or one of the sample rules."""
    from sample_rules import RULES

    if given := os.environ.get("RULEDB_RULES"):
        return Path(given)
    path = tmp_path_factory.mktemp("rules") / "sample.rules"
    path.write_text(rule_file_text(RULES, "hand-written"))
    return path


@pytest.fixture
def rewrite(rule_file, capsys):
    """The command: input and options → (exit code, what it said)."""

    def run(path, *options):
        code = cli._exit_code([str(a) for a in (path, "--rules", rule_file, "-q", *options)])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return run


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """A compiler's output: name of the program, sources by file name, and the command line in which {out} is the program."""

    def compiled(sources, command):
        needs(command.split()[0])
        folder = tmp_path_factory.mktemp("files")
        for name, text in sources.items():
            (folder / name).write_text(text)
        done = subprocess.run(command.format(out="p").split(), cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot be built here: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else command}")
        return folder / "p"

    return compiled

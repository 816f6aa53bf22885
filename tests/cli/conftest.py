"""The command `ruledb`, called in this process, with folders of its own."""

import json
from typing import Any, NamedTuple

import pytest
from trainings import url_of

from ruledb import cli, commands


class Result(NamedTuple):
    """What a call came to."""

    code: Any
    out: str
    err: str


@pytest.fixture
def ruledb(monkeypatch, capsys, tmp_path, kernel_cache):
    """Runs the command: arguments → exit code, standard output, standard error."""
    monkeypatch.setenv("RULEDB_URL", url_of(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(commands, "kernel_cache", lambda: kernel_cache)

    def run(*arguments, stdin=None):
        monkeypatch.setattr("sys.argv", ["ruledb", *map(str, arguments)])
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(SystemExit) as left:
            cli.main()
        captured = capsys.readouterr()
        return Result(left.value.code or 0, captured.out, captured.err)

    return run


@pytest.fixture
def ruledb_json(ruledb):
    """Runs the command with --json: arguments → exit code and the object printed."""

    def run(*arguments):
        result = ruledb(*arguments, "--json")
        return result.code, json.loads(result.out)

    return run

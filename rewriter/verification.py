"""Translation validation: each site is proved again, from the bytes before and after, by a process that knows the solvers."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ruledb
from rewriter.driver import Result
from rewriter.report import report_json

__all__ = ["VerificationError", "verify"]

_ANSWERED, _WRONG = (0, 1, 3), 1
_SHOWN = 3


class VerificationError(ValueError):
    """A site is wrong, or nothing could be proved; the message says which, and what to do."""


def verify(data: bytes, result: Result, name: str) -> Mapping[str, Any]:
    """
    Prove all that *result* did to the bytes *data* of the program that messages call *name*.

    Returns the counts by name, and as "undecided" the ranges of the sites that were neither proved nor refuted.

    Raises:
        VerificationError: A site is refuted, a byte differs that no site covers, or the prover cannot run.

    """
    with TemporaryDirectory(prefix="peephole-rewrite.") as folder:
        before, after, report = (Path(folder) / part for part in ("before", "after", "report.json"))
        before.write_bytes(data)
        after.write_bytes(result.data)
        report.write_text(report_json(result, str(before), str(after)))
        done = subprocess.run(
            [sys.executable, "-P", "-m", "ruledb", "verify", "--sites", str(report), "--json"],
            check=False,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": _search_path()},
        )
    if done.returncode not in _ANSWERED or not done.stdout:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise VerificationError(f"{name}: cannot be verified: {last}; expected a working 'ruledb verify --sites'")
    answer: dict[str, Any] = json.loads(done.stdout)
    if done.returncode == _WRONG:
        failures = answer["failures"]
        shown = "; ".join(failures[:_SHOWN]) + (f"; and {len(failures) - _SHOWN} more" if len(failures) > _SHOWN else "")
        raise VerificationError(f"{name}: wrong: {shown}; nothing was written: the rules are not to be trusted")
    return {key: value for key, value in answer.items() if key != "failures"}


def _search_path() -> str:
    """Where the child finds the package that this process runs, whatever lies in the working directory."""
    places = [str(Path(place).resolve().parent) for place in ruledb.__path__]
    return os.pathsep.join(filter(None, [*places, os.environ.get("PYTHONPATH")]))

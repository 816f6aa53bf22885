"""Measure the rewriter as its users run it: a process of its own, timed from its start to its end."""

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from typing import Any

from ruledb.machine.elf import ElfError

__all__ = ["measure_rewriting"]


def measure_rewriting(path: Path, rules: Path | None) -> dict[str, Any]:
    """
    Rewrite the program at *path* without writing it, by the rule file *rules* (None: the rewriter's default).

    Returns the figures by name: megabytes (10**6 bytes) of code per second of processor time, children included, and the
    seconds of each stage.

    Raises:
        ElfError: The rewriter refuses the file; the message is its line.

    """
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ["--dry-run", "--quiet", "--report", str(report), *(["--rules", str(rules)] if rules else [])]
        before = getrusage(RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-m", "rewriter.cli", *options, str(path)], check=False, capture_output=True, text=True)
        after = getrusage(RUSAGE_CHILDREN)
        if done.returncode:
            raise ElfError(done.stderr.strip().removeprefix("peephole-rewrite: ") or f"{path}: the rewriter was ended by a signal")
        told = json.loads(report.read_text())
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": f"Python {platform.python_version()}, iced-x86 {version('iced-x86')}, NumPy {version('numpy')}",
        "text_bytes": told["text_bytes"],
        "instructions": told["instructions"],
        "rewrites": len(told["rewrites"]),
        "passes": told["passes"],
        "cpu_seconds": round(cpu_s, 3),
        "text_mb_per_cpu_second": round(told["text_bytes"] / 1e6 / cpu_s, 3),
        "microseconds_per_instruction": round(1e6 * cpu_s / max(told["instructions"], 1), 2),
        "peak_memory_mb": after.ru_maxrss // 1024,
        "seconds": told["seconds"],
    }

"""What must hold of rewritten files."""

import re
import shutil
import subprocess

import pytest

from ruledb.machine.elf import load


def needs(*tools):
    """Skip where one of *tools* is missing."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}")


def require_sound(path, out):
    """*out* is as long as *path*, differs from it in executable sections only, and has no instruction that is none."""
    old, new = path.read_bytes(), out.read_bytes()
    assert len(old) == len(new)
    covered = bytearray(new)
    image = load(path)
    for section in image.code_sections:
        covered[section.offset : section.offset + section.size] = old[section.offset : section.offset + section.size]
    if not image.sections:
        for segment in image.segments:
            if segment.executable:
                span = slice(segment.offset, segment.offset + segment.file_size)
                covered[span] = old[span]
    assert covered == old
    if shutil.which("objdump"):
        assert n_bad(out) <= n_bad(path)


def n_bad(path):
    """How often objdump finds no instruction in the program at *path*."""
    text = subprocess.run(["objdump", "-d", path], capture_output=True, text=True, check=False).stdout
    return len(re.findall(r"\(bad\)", text))


def told(command, **options):
    """Exit code and output of *command*."""
    done = subprocess.run(command, capture_output=True, check=False, timeout=60, **options)
    return done.returncode, done.stdout, done.stderr

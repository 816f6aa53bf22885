"""Damaged files: one line and no output, or an output in step with the input; never a traceback, never a hang."""

import resource
import signal
from random import Random

import pytest

from ruledb.machine.elf import load

_SECONDS = 20
_FIELDS = {"header": (0, 64), "program headers": (64, 64 + 56 * 13)}


def spans_of(path):
    """Offsets of the parts that readers trust most: headers, tables of sections, frames, relocations and exceptions."""
    image = load(path)
    sections = [(s.offset, s.offset + s.size) for s in image.sections if s.size and not s.is_code]
    table = int.from_bytes(image.data[40:48], "little")
    return [*_FIELDS.values(), (table, len(image.data)), *sections]


def damaged(data, spans, random):
    """*data* with one to four fields of odd widths set to odd values."""
    changed = bytearray(data)
    for _ in range(random.randrange(1, 5)):
        start, end = random.choice(spans)
        width = random.choice([1, 2, 4, 8])
        at = random.randrange(start, max(start + 1, min(end, len(data)) - width))
        value = random.choice([0, 1, 0x7F, 0xFF, (1 << 8 * width) - 1, 1 << (8 * width - 1), random.randrange(1 << 8 * width)])
        changed[at : at + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")
    return bytes(changed[: random.randrange(len(data))] if random.random() < 0.05 else changed)


def survive(peephole, path, n, seed, name):
    """Rewrite *n* damaged copies of the file at *path*."""
    data, spans, random = path.read_bytes(), spans_of(path), Random(seed)
    victim, output = path.with_name("victim"), path.with_name("victim.opt")
    outcomes = [0, 0, 0]
    for i in range(n):
        output.unlink(missing_ok=True)
        victim.write_bytes(damaged(data, spans, random))
        signal.alarm(_SECONDS)
        code, _, err = peephole(victim, "-q")
        signal.alarm(0)
        outcomes[code] += 1
        assert (code, err.count("\n"), output.exists()) in ((0, 0, True), (2, 1, False)), f"{name}: mutation {i} of seed {seed}: {err}"
        assert code or output.stat().st_size == victim.stat().st_size
    assert outcomes[0], outcomes
    assert outcomes[2], outcomes


@pytest.mark.parametrize("name", ["vm-O0", "machine-O2"])
def test_damaged_headers_and_tables_are_survived(peephole, corpus, tmp_path, name):
    """A quick run over seeded mutations: exit 0 with an output of the same length, or exit 2, one line and none."""
    path = tmp_path / name
    path.write_bytes((corpus / "bin" / name).read_bytes())
    survive(peephole, path, 120, 1, name)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
@pytest.mark.parametrize("name", ["vm-O0", "machine-O2"])
def test_many_damaged_headers_and_tables_are_survived(peephole, corpus, tmp_path, name, seed):
    """The same over thousands of mutations, with little memory to waste."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, limits[1]))
    try:
        path = tmp_path / name
        path.write_bytes((corpus / "bin" / name).read_bytes())
        survive(peephole, path, 200, seed, name)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)

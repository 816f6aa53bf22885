"""
The entries of tables of jumps, as the linker's relocations prove them, are all found without those.

A word of read-only data with a relocation to the middle of a function is an entry. A relative one counts from its table, which
is the last known one before it.
"""

import struct
import subprocess
from bisect import bisect_right
from itertools import product
from pathlib import Path

import pytest
from whole_files import needs

from ruledb.machine import fans
from ruledb.machine.blocks import read_program
from ruledb.machine.elf import load
from ruledb.machine.functions import function_at

SOURCES = [p for p in sorted((Path(__file__).parents[2] / "corpora" / "src").glob("*.c")) if "switch" in p.read_text()]
KINDS = {"fixed": ("-no-pie", "-fno-pie"), "independent": ("-fPIE", "-pie")}
_R_64, _R_PC32 = 1, 2


def built(source, folder, *command):
    """The program with its relocations kept, and the same stripped of them."""
    whole, bare = folder / "whole", folder / "bare"
    subprocess.run([*command, "-w", "-Wl,-q", "-o", whole, source, "-lm"], check=True, capture_output=True)
    subprocess.run(["strip", "-s", "-o", bare, whole], check=True)
    return load(whole), load(bare)


def relocated(image):
    """Place → kind and value of the relocations of read-only data."""
    found = {}
    for table in image.sections:
        if table.kind == 4 and table.name.startswith((".rela.rodata", ".rela.data.rel.ro")):
            symbols = image.sections[table.link].offset
            for place, info, addend in struct.iter_unpack("<QQq", image.data[table.offset : table.offset + table.size]):
                (value,) = struct.unpack_from("<Q", image.data, symbols + 24 * (info >> 32) + 8)
                found[place] = info & 0xFFFFFFFF, value + addend
    return found


def entries(image, relocations, tables):
    """What the tables hold, by the relocations; *tables* are the starts of relative ones, ascending."""
    for place, (kind, value) in relocations.items():
        if kind == _R_64:
            yield value
        elif kind == _R_PC32 and (index := bisect_right(tables, place) - 1) >= 0:
            yield tables[index] + int.from_bytes(image.read(place, 4), "little", signed=True)


def require_all_found(monkeypatch, folder, compilers, levels):
    """All entries of all programs are found, or their functions are left alone; returns how many there are, and how many of the latter."""
    n_entries = n_closed = 0
    tables = []
    whole_entries = fans.entries_of

    def noted(image, listing, table, end=None):
        tables.append(table)
        return whole_entries(image, listing, table, end)

    monkeypatch.setattr(fans, "entries_of", noted)
    for source, compiler, level, kind in product(SOURCES, compilers, levels, KINDS.values()):
        tables.clear()
        whole, bare = built(source, folder, compiler, level, *kind)
        program = read_program(bare)
        led_to = set(program.fans.target.tolist())
        for entry in entries(whole, relocated(whole), sorted({t.address for t in tables if t.is_relative})):
            function = function_at(program.functions, entry)
            if function is None or function.start == entry:
                continue
            n_entries += 1
            n_closed += function.start in program.opaque
            assert entry in led_to or function.start in program.opaque, (source.name, compiler, level, kind, hex(entry))
    return n_entries, n_closed


def test_all_entries_of_tables_are_found(monkeypatch, tmp_path):
    """In the corpus at two levels, every entry that a relocation proves is found, and most functions with any are open."""
    needs("gcc", "strip")
    n_entries, n_closed = require_all_found(monkeypatch, tmp_path, ["gcc"], ["-O0", "-O2"])
    assert n_entries > max(300, 100 * n_closed)


@pytest.mark.long
def test_all_entries_of_tables_of_other_compilers_are_found(monkeypatch, tmp_path):
    """So it is at all levels, and with clang."""
    needs("gcc", "clang", "strip")
    n_entries, n_closed = require_all_found(monkeypatch, tmp_path, ["gcc", "clang"], ["-O0", "-O1", "-O2", "-O3", "-Os"])
    assert n_entries > 10 * n_closed

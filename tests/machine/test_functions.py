"""Functions by frame tables and symbols."""

import random
import shutil
import struct
import subprocess

import pytest

from ruledb.machine.ehframe import frames
from ruledb.machine.elf import load
from ruledb.machine.functions import function_at, functions

SOURCE = """
.text
.globl _start
.type _start, @function
_start: .cfi_startproc
 call named
 ret
.cfi_endproc
.size _start, .-_start
.type named, @function
named: xor eax, eax
 ret
.size named, .-named
signal: .cfi_startproc
.cfi_signal_frame
 nop
.cfi_endproc
pads: .cfi_startproc
.cfi_lsda 0x1b, table
 nop
 ret
.cfi_endproc
.section .gcc_except_table, "a"
table: .byte 255, 255, 1, 0
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A program of four functions: one with a frame and a symbol, one with a symbol only, two with frames only."""
    if shutil.which("as") is None or shutil.which("ld") is None:
        pytest.skip("GNU as and ld are not installed")
    folder = tmp_path_factory.mktemp("functions")
    (folder / "a.s").write_text(".intel_syntax noprefix\n" + SOURCE)
    subprocess.run(["as", "-o", folder / "a.o", folder / "a.s"], check=True)
    subprocess.run(["ld", "--eh-frame-hdr", "-o", folder / "a", folder / "a.o"], check=True)
    return load(folder / "a")


def test_finds_all_functions(image):
    """Frames and sized symbols give disjoint, ascending functions, with the marks that frames carry."""
    found = functions(image)
    assert [(f.start - image.entry, f.end - image.entry) for f in found] == [(0, 6), (6, 9), (9, 10), (10, 12)]
    assert [f.is_signal_frame for f in found] == [False, False, True, False]
    assert [f.has_lsda for f in found] == [False, False, False, True]
    assert not any(f.is_overlapping for f in found)
    assert function_at(found, image.entry + 7) == found[1]
    assert function_at(found, image.entry - 1) is None


def entry(common, start, size):
    """A frame entry with absolute pointers, *common* bytes behind its CIE."""
    body = struct.pack("<IQQ", common, start, size)
    return struct.pack("<I", len(body)) + body


COMMON = struct.pack("<I", 13) + b"\0\0\0\0" + b"\1" + b"\0" + b"\1\x78\x10" + b"\0" * 4
"""A CIE without augmentation."""


def test_reads_absolute_pointers():
    """Without an augmentation pointers are absolute; entries of no bytes are left out."""
    table = COMMON + entry(len(COMMON) + 4, 0x1000, 16)
    table += entry(len(table) + 4, 0x2000, 0)
    assert [(f.start, f.end) for f in frames(table, 0)[0]] == [(0x1000, 0x1010)]


def test_a_zero_length_ends_only_a_table_of_unknown_size():
    """A terminator in the middle, as of joined tables, is passed over where the size is known."""
    table = COMMON + b"\0\0\0\0"
    table += entry(len(table) + 4, 0x1000, 16)
    assert len(frames(table, 0, is_bounded=True)[0]) == 1
    assert len(frames(table, 0, is_bounded=False)[0]) == 0


def test_garbage_is_survived(image):
    """Any bytes give a finite answer, and damage in one entry is told while the others are read."""
    address, table, _ = image.eh_frame
    whole, is_damaged = frames(table, address)
    assert len(whole) == 3
    assert not is_damaged
    generator = random.Random(3)
    for _ in range(3000):
        data = bytearray(table)
        for _ in range(generator.randrange(1, 4)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        frames(bytes(data), address)
    for _ in range(300):
        frames(generator.randbytes(200), address)
    cut, is_damaged = frames(table[:-10], address)
    assert set(cut) <= set(whole)
    assert is_damaged


def test_overlapping_descriptions_are_one_marked_function(image):
    """Two ranges that contradict each other become one function that says so."""
    address, table, _ = image.eh_frame
    (first, *_), _ = frames(table, address)
    size_at = table.index(struct.pack("<I", first.end - first.start), 24)
    changed = image.data.replace(table, table[:size_at] + struct.pack("<I", 10) + table[size_at + 4 :])
    found = functions(type(image)(image.name, changed, image.kind, image.entry, image.segments, image.sections, image.ranges))
    assert found[0].is_overlapping
    assert found[0].start == image.entry

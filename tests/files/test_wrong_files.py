"""Files with parts missing or wrong, and files that are no programs: treated as they deserve, in one line where refused."""

import os
import shutil
import subprocess

import pytest
from whole_files import needs, require_sound, told

from ruledb.machine.elf import load

C = r"""
#include <stdio.h>
static int steps(unsigned long n) { int s = 0; while (n != 1) { n = n % 2 ? n * 3 + 1 : n / 2; s++; } return s; }
int main(int argc, char **argv) { int best = 0; for (int i = 1; i < 200; i++) { int s = steps(i); if (s > best) { best = s; printf("%d %d\n", i, s); } }
    return best & 63; }
"""


@pytest.fixture(scope="module")
def program(build):
    """A program with symbols and sections."""
    return build({"p.c": C}, "gcc -O0 -o {out} p.c")


@pytest.fixture
def copy(program, tmp_path):
    """A copy of it to be spoiled."""
    return shutil.copy(program, tmp_path / "p")


def poke(path, offset, new):
    """Put the bytes *new* at *offset* of the file at *path*."""
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(new)


def section_headers(path):
    """The offsets of the file's section headers."""
    data = path.read_bytes()
    table, count = int.from_bytes(data[40:48], "little"), int.from_bytes(data[60:62], "little")
    return [table + 64 * i for i in range(count)]


def tool(*command):
    """Run a tool of the GNU binutils, or skip."""
    needs(command[0])
    subprocess.run([str(part) for part in command], check=True, capture_output=True)


def strip_all(path):
    """Without symbols."""
    tool("strip", path)


def drop_section_table(path):
    """Without section headers."""
    poke(path, 0x28, bytes(8))
    poke(path, 0x3C, bytes(4))


def zero_entry_size(path):
    """Section headers of no bytes."""
    poke(path, 0x3A, bytes(2))


def name_out_of_range(path):
    """A section whose name is nowhere."""
    poke(path, section_headers(path)[5], b"\xfe\xff\xff\xff")


def drop_frame_table(path):
    """Without `.eh_frame`."""
    tool("objcopy", "--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr", path)


def compress_debug(path):
    """With compressed debug sections."""
    tool("objcopy", "--compress-debug-sections", path)


@pytest.mark.parametrize(
    "spoil",
    [
        [strip_all], [drop_section_table], [strip_all, drop_section_table], [zero_entry_size], [name_out_of_range], [drop_frame_table],
        [compress_debug],
    ],
    ids=lambda steps: " ".join(step.__name__ for step in steps),
)  # fmt: skip
def test_what_still_runs_runs_as_before(copy, rewrite, tmp_path, spoil):
    """A program that runs without the missing part is rewritten or refused in a line; rewritten, it runs as before."""
    for step in spoil:
        step(copy)
    out = tmp_path / "out"
    code, said = rewrite(copy, "-o", out)
    assert code in (0, 2)
    if code:
        assert (said.count("\n"), out.exists()) == (1, False)
    else:
        require_sound(copy, out)
        assert told([out]) == told([copy])


def test_a_stripped_program_needs_no_symbols(copy, rewrite, tmp_path, program):
    """Stripping changes nothing of what is done to code."""
    strip_all(copy)
    codes = []
    for path, name in ((program, "whole"), (copy, "stripped")):
        assert rewrite(path, "-o", tmp_path / name)[0] == 0
        image = load(tmp_path / name)
        codes.append([image.read(s.address, s.size) for s in image.code_sections])
    assert codes[0] == codes[1]


@pytest.mark.parametrize("n_bytes", [0, 1, 4, 40, 63, 64, 100, 1000, 5000])
def test_what_is_cut_short_is_refused(copy, rewrite, tmp_path, n_bytes):
    """A file without its end is refused in a line."""
    os.truncate(copy, n_bytes)
    require_refused(rewrite, copy, tmp_path / "out")


def require_refused(rewrite, path, out, *words):
    """Refused in one line that has *words*, with nothing left behind."""
    code, said = rewrite(path, "-o", out)
    assert (code, said.count("\n"), out.exists()) == (2, 1, False)
    assert all(word in said for word in words), said


def test_the_debug_half_has_no_code(copy, rewrite, tmp_path):
    """What is left for a debugger has nothing to rewrite."""
    half = tmp_path / "half"
    tool("objcopy", "--only-keep-debug", copy, half)
    code, said = rewrite(half, "-o", tmp_path / "out")
    if code == 0:
        assert (tmp_path / "out").read_bytes() == half.read_bytes()
    else:
        assert (code, said.count("\n")) == (2, 1)


def test_packed_code_is_left_alone(copy, rewrite, tmp_path):
    """Where code is noise and no section tells of it, nothing is changed."""
    data = bytearray(copy.read_bytes())
    header = next(h for h in section_headers(copy) if data[h + 8] & 4 and int.from_bytes(data[h + 32 : h + 40], "little") > 100)
    start, size = (int.from_bytes(data[header + at : header + at + 8], "little") for at in (24, 32))
    data[start : start + size] = bytes((i * i * 31 + i * 7 + 3) & 0xFF for i in range(size))
    copy.write_bytes(data)
    drop_section_table(copy)
    assert rewrite(copy, "-o", tmp_path / "out") == (0, "")
    assert (tmp_path / "out").read_bytes() == copy.read_bytes()


def test_object_files_are_refused(build, rewrite, tmp_path):
    """An object file is to be linked first."""
    path = build({"p.c": C}, "gcc -O1 -c -o {out} p.c")
    require_refused(rewrite, path, tmp_path / "out", "object file")


@pytest.mark.parametrize(
    ("offset", "new", "word"),
    [
        (0x12, b"\xb7\0", "AArch64"),
        (0x12, b"\x03\0", "x86"),
        (4, b"\1", "32-bit"),
        (5, b"\2", "big-endian"),
        (0x10, b"\4\0", "core dump"),
        (0x10, b"\x09\0", "type 9"),
        (0, b"\x7fELG", "not an ELF"),
    ],
)
def test_other_files_name_their_reason(copy, rewrite, tmp_path, offset, new, word):
    """A file for another machine, or of another kind, is refused with what it is."""
    poke(copy, offset, new)
    require_refused(rewrite, copy, tmp_path / "out", word)


def test_a_program_of_32_bits_is_refused(rewrite, tmp_path):
    """One that the assembler and linker make, too."""
    (tmp_path / "a.s").write_text(".globl _start\n_start: mov $1, %eax\n int $0x80\n")
    tool("as", "--32", "-o", tmp_path / "a.o", tmp_path / "a.s")
    tool("ld", "-m", "elf_i386", "-o", tmp_path / "a", tmp_path / "a.o")
    require_refused(rewrite, tmp_path / "a", tmp_path / "out", "32-bit")


@pytest.mark.parametrize("kind", ["empty", "text", "script", "folder", "pipe", "missing", "device"])
def test_what_is_no_program_is_refused_at_once(rewrite, tmp_path, kind):
    """Nothing is waited for, and one line tells the reason."""
    path = tmp_path / "it"
    match kind:
        case "empty":
            path.touch()
        case "text":
            path.write_text("hello\n")
        case "script":
            path.write_text("#!/bin/sh\nexit 0\n")
            path.chmod(0o755)
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "device":
            path = type(path)("/dev/zero")
        case _:
            pass
    require_refused(rewrite, path, tmp_path / "out")


@pytest.mark.parametrize("mode", [0o444, 0o750, 0o555, 0o700])
def test_modes_are_copied(copy, rewrite, tmp_path, mode):
    """The output has the input's mode, whatever the mask for new files."""
    copy.chmod(mode)
    old = os.umask(0o077)
    try:
        assert rewrite(copy, "-o", tmp_path / "out")[0] == 0
    finally:
        os.umask(old)
    assert (tmp_path / "out").stat().st_mode & 0o7777 == mode


def test_names_and_links(copy, rewrite, tmp_path):
    """Letters of any alphabet are fine; what is read through a link is written as a file of its own, and the link stays."""
    odd, link = tmp_path / "prögram ✓", tmp_path / "link"
    shutil.copy(copy, odd)
    link.symlink_to(odd)
    assert rewrite(link) == (0, "")
    assert link.is_symlink()
    assert not (tmp_path / "link.opt").is_symlink()
    assert told([tmp_path / "link.opt"]) == told([copy])


def test_the_same_twice(copy, rewrite, tmp_path):
    """Two runs give the same bytes."""
    outputs = []
    for name in ("one", "two"):
        assert rewrite(copy, "-o", tmp_path / name)[0] == 0
        outputs.append((tmp_path / name).read_bytes())
    assert outputs[0] == outputs[1] != copy.read_bytes()

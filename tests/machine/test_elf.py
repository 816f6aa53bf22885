"""Reading ELF files: what is refused, and what is found in those that are read."""

import os
import shutil
import struct
import subprocess

import pytest

from ruledb.machine.elf import ElfError, load, parse

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

SOURCE = r"""
#include <stdio.h>
__attribute__((noinline)) int twice(int x) { return 2 * x; }
int (*pointer)(int) = twice;
int main(int argc, char **argv) { printf("%d\n", pointer(argc)); return twice(argc) - 2 * argc; }
"""


def build(path, *flags, source=SOURCE):
    """Compile *source* to *path*."""
    code = path.with_suffix(".c")
    code.write_text(source)
    subprocess.run(["gcc", "-O2", *flags, "-o", path, code], check=True)
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A position-independent program."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    return build(tmp_path_factory.mktemp("elf") / "p")


def refused(data):
    """The one line with which *data* is refused."""
    with pytest.raises(ElfError) as caught:
        parse(data, "the-file")
    message = str(caught.value)
    assert message.startswith("the-file: ")
    assert "expected" in message
    assert "\n" not in message
    return message


def poked(data, offset, new):
    """*data* with *new* at *offset*."""
    return data[:offset] + new + data[offset + len(new) :]


@pytest.mark.parametrize(
    ("offset", "new", "words"),
    [
        (4, b"\1", "32-bit"),
        (5, b"\2", "big-endian"),
        (0x12, b"\xb7\0", "AArch64"),
        (0x12, b"\x28\0", "ARM"),
        (0x10, b"\4\0", "core dump"),
        (0x10, b"\x77\0", "type 119"),
        (0x36, b"\x20\0", "program headers of 32 bytes"),
        (0x20, b"\xff\xff\xff\0", "cut short"),
        (0x38, b"\0\0", "no loadable segment"),
        (0, b"#!/b", "not an ELF file"),
    ],
)
def test_refuses_other_kinds(program, offset, new, words):
    """A file of another kind is refused in one line that says which."""
    assert words in refused(poked(program.read_bytes(), offset, new))


@pytest.mark.parametrize(("size", "words"), [(0, "empty"), (5, "cut short"), (40, "cut short"), (100, "cut short"), (1000, "cut short")])
def test_refuses_what_is_cut_short(program, size, words):
    """A file that ends before its headers or segments do is refused."""
    assert words in refused(program.read_bytes()[:size])


def test_refuses_what_is_no_file(tmp_path):
    """Directories, pipes without a writer, and missing files are refused at once."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, words in (
        (tmp_path, "a directory"),
        (pipe, "a named pipe"),
        ("/dev/null", "a device"),
        (tmp_path / "none", "cannot be read"),
    ):
        with pytest.raises(ElfError, match=words):
            load(path)


def test_maps_addresses_to_the_file(program):
    """Bytes read by address are those at the mapped offset; unmapped addresses give none."""
    image = load(program)
    text = image.section(".text")
    assert image.kind == "executable"
    assert image.is_position_independent
    assert image.file_offset(text.address) == text.offset
    assert image.read(text.address, 4) == image.data[text.offset : text.offset + 4]
    assert image.is_code(image.entry)
    assert not image.is_code(image.section(".rodata").address)
    assert image.read(1 << 60, 4) == b""
    assert image.file_offset(1 << 60) is None


def test_finds_symbols_slots_and_taken_addresses(program):
    """Functions have names, a pointer in data makes its function an entry, and linkage slots know their names."""
    image = load(program)
    names = {s.name: s.address for s in image.symbols if s.is_function and s.address}
    assert {names["main"], names["twice"], image.entry} <= image.taken_addresses
    assert any(name.startswith(("printf", "__printf")) for name in image.slots.values())
    assert image.plt_ranges
    assert image.convention == "sysv"


@pytest.mark.parametrize(
    "flags",
    [("-no-pie", "-fno-pie"), ("-static",), ("-shared", "-fPIC"), ("-static-pie",), ("-Wl,-z,pack-relative-relocs",), ("-s",)],
    ids=" ".join,
)
@needs_gcc
def test_finds_pointers_in_data_of_every_kind(tmp_path, flags):
    """A function whose address stands in data is found as an entry, however that address is relocated."""
    image = load(build(tmp_path / "p", *flags, source=SOURCE.replace("__attribute__((noinline))", "static __attribute__((noinline))")))
    assert image.kind == ("shared" if "-shared" in flags else "executable")
    assert any(image.read(a, 16).startswith((b"\x8d\x04\x3f\xc3", b"\xf3\x0f\x1e\xfa\x8d\x04\x3f\xc3")) for a in image.taken_addresses)


@pytest.mark.parametrize(
    ("offset", "new"),
    [(0x28, b"\0" * 8), (0x28, b"\xff" * 8), (0x3A, b"\0\0"), (0x3C, b"\xff\xff"), (0x3E, b"\xff\xff")],
    ids=["no table", "table outside", "entry size 0", "too many", "no names"],
)
def test_works_without_a_section_table(program, offset, new):
    """A damaged section table counts as absent, or its names do; the frame table is found by its program header."""
    image = parse(poked(program.read_bytes(), offset, new))
    address, table, _ = image.eh_frame
    assert (address, table[:4]) == (load(program).eh_frame[0], load(program).eh_frame[1][:4])
    assert image.is_code(image.entry)
    assert image.entry in image.taken_addresses


def test_does_not_trust_names_out_of_range(program):
    """A section whose name lies outside the table has none."""
    data = program.read_bytes()
    (table,) = struct.unpack_from("<Q", data, 0x28)
    image = parse(poked(data, table + 64, b"\xfe\xff\xff\xff"))
    assert image.sections[1].name == ""


def test_survives_random_damage(program):
    """Any byte of the headers may be wrong: an image is read or refused, and what it offers can be asked for."""
    data = program.read_bytes()
    (table,) = struct.unpack_from("<Q", data, 0x28)
    for offset in [*range(0x600), *range(table, len(data), 3)]:
        try:
            image = parse(poked(data, offset, b"\xff"))
        except ElfError:
            continue
        assert isinstance(image.taken_addresses, frozenset)
        assert isinstance(image.slots, dict)
        assert image.eh_frame[0] >= 0


@needs_gcc
def test_reads_object_files(tmp_path):
    """In an object file, addresses are offsets, and fields under a relocation are known."""
    image = load(build(tmp_path / "p.o", "-c"))
    assert image.kind == "relocatable"
    assert image.relocated
    names = {s.name: s.address for s in image.symbols if s.is_function}
    assert image.is_code(names["twice"])
    assert image.read(names["twice"], 3) == image.data[names["twice"] : names["twice"] + 3]


@needs_gcc
def test_knows_other_conventions(tmp_path):
    """Traces of a runtime with its own calling convention make the convention unknown."""
    path = build(tmp_path / "p", source=SOURCE + 'const char *trace = "OCAMLRUNPARAM";\n')
    assert load(path).convention == "unknown"


@needs_gcc
def test_finds_probes(tmp_path):
    """A probe's address is that of its NOP, and it counts as an entry."""
    note = r"""
int main(void) {
  __asm__ volatile("990: nop\n"
    ".pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n.4byte 992f-991f,994f-993f,3\n"
    "991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b,0,0\n.asciz \"a\"\n.asciz \"b\"\n.asciz \"\"\n994: .balign 4\n.popsection");
  return 0; }
"""
    image = load(build(tmp_path / "p", "-no-pie", source=note))
    assert len(image.probes) == 1
    assert all(image.read(address, 1) == b"\x90" for address in image.probes)
    assert image.probes <= image.taken_addresses

"""
ELF files as images: what is mapped where, what is code, and which addresses of code lie in data.

Only x86-64, little-endian, 64-bit files are read; anything else is an `ElfError` of one line. Tables that a running
program does not need (section headers, symbols, notes) may be damaged: what is out of bounds counts as absent.
A relocatable object has no addresses: there, the address of a byte is its offset in the file.

Source: System V ABI, generic (gabi) and AMD64 supplement.
"""

import os
import stat
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

__all__ = ["ElfError", "Image", "Section", "Segment", "Symbol", "load", "parse"]


class ElfError(ValueError):
    """A file is not what we can read; the message names it, what it is and what is expected."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the file that is mapped: `file_size` bytes at *offset* appear at *address*."""

    address: int
    offset: int
    file_size: int
    memory_size: int
    executable: bool
    writable: bool


@dataclass(frozen=True, slots=True)
class Section:
    """A section whose bytes lie within the file (or that has none)."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int

    @property
    def end(self) -> int:
        """Address behind the last byte."""
        return self.address + self.size

    @property
    def is_code(self) -> bool:
        """Whether the section is loaded, executable and has bytes in the file."""
        return self.kind == _PROGBITS and self.flags & _ALLOC_EXEC == _ALLOC_EXEC and self.size > 0


@dataclass(frozen=True, slots=True)
class Symbol:
    """A defined or undefined (address 0) symbol. *size* is in bytes."""

    name: str
    address: int
    size: int
    is_function: bool


_EXPECTED = "expected a 64-bit little-endian x86-64 ELF program, shared library or object file"
_MACHINES = {2: "SPARC", 3: "x86", 8: "MIPS", 20: "PowerPC", 21: "PowerPC64", 22: "S390", 40: "ARM", 43: "SPARC V9", 50: "IA-64",
             183: "AArch64", 243: "RISC-V", 247: "BPF", 258: "LoongArch"}  # fmt: skip
_X86_64 = 62
_RELOCATABLE, _EXECUTABLE, _DYNAMIC, _CORE = 1, 2, 3, 4

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP, _PT_EH_FRAME_HDR, _PT_GNU_RELRO = 1, 2, 3, 0x6474E550, 0x6474E552
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _DYNSYM = 1, 2, 4, 8, 11
_UNWIND = 0x70000001
"""Section type that some linkers give `.eh_frame`."""
_ALLOC_EXEC = 0x2 | 0x4
_FUNCTION_KINDS = (2, 10)
"""STT_FUNC and STT_GNU_IFUNC."""

_DT_STRTAB, _DT_SYMTAB, _DT_RELA, _DT_RELASZ, _DT_STRSZ, _DT_JMPREL, _DT_PLTRELSZ = 5, 6, 7, 8, 10, 23, 2
_DT_INIT, _DT_FINI, _DT_RELR, _DT_RELRSZ, _DT_FLAGS_1 = 12, 13, 36, 35, 0x6FFFFFFB
_DF_1_PIE = 0x08000000
_R_64, _R_PC32, _R_PLT32, _R_GLOB_DAT, _R_JUMP_SLOT, _R_RELATIVE, _R_IRELATIVE = 1, 2, 4, 6, 7, 8, 37

_FOREIGN_BYTES = (b"\xff Go buildinf:", b"OCAMLRUNPARAM", b"GHCRTS", b"swift_retain")
"""Traces of runtimes whose code does not follow the System V convention everywhere."""
_FOREIGN_SECTIONS = (".note.go.buildid", ".gopclntab", "swift5_")
_FOREIGN_SYMBOLS = ("caml_", "stg_", "runtime.morestack", "swift_")


def load(path: str | os.PathLike[str]) -> "Image":
    """
    The image in the file at *path*.

    Raises:
        ElfError: It is not a regular file, cannot be read, or `parse` refuses it.

    """
    name = os.fspath(path)
    try:
        _require_regular(name, Path(name).stat().st_mode)
        # Between the two checks the file may have become a pipe: never wait for a writer.
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            _require_regular(name, os.fstat(descriptor).st_mode)
            data = file.read()
    except OSError as problem:
        raise ElfError(f"{name}: cannot be read: {problem.strerror}; {_EXPECTED}") from None
    return parse(data, name)


_KINDS = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}


def _require_regular(name: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise ElfError(f"{name}: is {_KINDS.get(stat.S_IFMT(mode), 'a device')}; {_EXPECTED}")


def parse(data: bytes, name: str = "image") -> "Image":
    """
    The image in *data*, which messages call *name*.

    Raises:
        ElfError: It is empty, no ELF file, for another machine, a core dump, or shorter than its headers say.

    """
    kind = _check_header(data, name)
    if kind == _RELOCATABLE:
        sections = _sections(data, by_offset=True)
        segments = [Segment(s.offset, s.offset, s.size, s.size, True, False) for s in sections if s.is_code]
        return Image(name, data, "relocatable", 0, tuple(segments), sections)
    headers = _program_headers(data, name)
    segments = [
        Segment(address, offset, file_size, memory_size, bool(flags & 1), bool(flags & 2))
        for type_, flags, offset, address, _, file_size, memory_size, _ in headers
        if type_ == _PT_LOAD
    ]
    if not segments:
        raise ElfError(f"{name}: has no loadable segment; {_EXPECTED}")
    (entry,) = struct.unpack_from("<Q", data, 24)
    ranges = {type_: (address, offset, file_size) for type_, _, offset, address, _, file_size, *_ in headers}
    image = Image(name, data, "executable", entry, tuple(segments), _sections(data, by_offset=False), ranges)
    is_program = kind == _EXECUTABLE or _PT_INTERP in ranges or image.dynamic.get(_DT_FLAGS_1, 0) & _DF_1_PIE
    return image if is_program else Image(name, data, "shared", entry, image.segments, image.sections, ranges)


def _check_header(data: bytes, name: str) -> int:
    """The file's type, once everything that does not depend on it holds."""
    if not data:
        raise ElfError(f"{name}: is empty; {_EXPECTED}")
    if data[:4] != b"\x7fELF":
        raise ElfError(f"{name}: is not an ELF file; {_EXPECTED}")
    if data[4:5] not in (b"", b"\2"):
        raise ElfError(f"{name}: is a 32-bit ELF file; {_EXPECTED}")
    if data[5:6] not in (b"", b"\1"):
        raise ElfError(f"{name}: is a big-endian ELF file; {_EXPECTED}")
    if len(data) < 64:
        raise ElfError(f"{name}: is cut short within its ELF header ({len(data)} of 64 bytes); {_EXPECTED}")
    kind, machine = struct.unpack_from("<HH", data, 16)
    if machine != _X86_64:
        raise ElfError(f"{name}: is for machine {machine} ({_MACHINES.get(machine, 'unknown')}); {_EXPECTED}")
    if kind == _CORE:
        raise ElfError(f"{name}: is a core dump; {_EXPECTED}")
    if kind not in (_RELOCATABLE, _EXECUTABLE, _DYNAMIC):
        raise ElfError(f"{name}: is an ELF file of type {kind}; {_EXPECTED}")
    return int(kind)


def _program_headers(data: bytes, name: str) -> list[tuple[int, ...]]:
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    if count and size != 56:
        raise ElfError(f"{name}: has program headers of {size} bytes instead of 56; {_EXPECTED}")
    if table + 56 * count > len(data):
        raise ElfError(f"{name}: is cut short within its program headers; {_EXPECTED}")
    headers = [struct.unpack_from("<IIQQQQQQ", data, table + 56 * i) for i in range(count)]
    for type_, _, offset, _, _, file_size, *_ in headers:
        if type_ == _PT_LOAD and offset + file_size > len(data):
            raise ElfError(f"{name}: is cut short: a segment ends at byte {offset + file_size} of {len(data)}; {_EXPECTED}")
    return headers


def _sections(data: bytes, *, by_offset: bool) -> tuple[Section, ...]:
    """Sections in table order, so that links are indices; one out of bounds stays as an empty one."""
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count, names_index = struct.unpack_from("<HHH", data, 58)
    if size != 64 or table == 0 or table + 64 * count > len(data):
        return ()
    raw = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
    names = b""
    if names_index < count:
        names = data[raw[names_index][4] : raw[names_index][4] + raw[names_index][5]]
    found: list[Section] = []
    for name, kind, flags, address, offset, length, link, info, *_ in raw:
        in_file = kind == _NOBITS or offset + length <= len(data)
        found.append(
            Section(_text(names, name), kind, flags, offset if by_offset else address, offset, length if in_file else 0, link, info)
        )
    return tuple(found)


def _text(table: bytes, start: int) -> str:
    if start >= len(table):
        return ""
    end = table.find(b"\0", start)
    return table[start : end if end >= 0 else len(table)].decode("utf-8", "replace")


@dataclass(frozen=True)
class Image:
    """
    A readable ELF file. *kind* is "executable", "shared" or "relocatable"; *ranges* maps a program header's type to
    its (address, offset, size in the file).
    """

    name: str
    data: bytes
    kind: str
    entry: int
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    ranges: dict[int, tuple[int, int, int]] | None = None

    def file_offset(self, address: int) -> int | None:
        """Offset in the file of the byte mapped at *address*, or None where no byte of the file is."""
        for segment in self.segments:
            if segment.address <= address < segment.address + segment.file_size:
                return address - segment.address + segment.offset
        return None

    def read(self, address: int, n_bytes: int) -> bytes:
        """The bytes mapped from the file at *address*: fewer than *n_bytes* where a segment ends, none where nothing is."""
        for segment in self.segments:
            if segment.address <= address < segment.address + segment.file_size:
                start = address - segment.address + segment.offset
                return self.data[start : min(start + max(n_bytes, 0), segment.offset + segment.file_size)]
        return b""

    def patched(self, data: bytes) -> "Image":
        """The image with *data*, which differs in the code of functions only: what is known from elsewhere stays known."""
        image = replace(self, data=data)
        lost = {field.name for field in fields(self)}
        if not self.is_position_independent:
            lost.add("taken_addresses")  # looks at all words, those of code as well
        # There `cached_property` keeps what it has found.
        image.__dict__.update({name: value for name, value in self.__dict__.items() if name not in lost})
        return image

    @cached_property
    def executable_ranges(self) -> tuple[tuple[int, int], ...]:
        """(start, end) of what is mapped executable and in the file, ascending: sections of code, or else segments."""
        mapped = sorted((s.address, s.address + s.file_size) for s in self.segments if s.executable and s.file_size)
        return tuple(sorted((s.address, s.end) for s in self.code_sections)) or tuple(mapped)

    @cached_property
    def code_sections(self) -> tuple[Section, ...]:
        """Sections of code that lie where their segment says."""
        return tuple(
            s
            for s in self.sections
            if s.is_code and self.file_offset(s.address) == s.offset and len(self.read(s.address, s.size)) == s.size
        )

    def is_code(self, address: int) -> bool:
        """Whether *address* is in an executable range."""
        index = bisect_right(self.executable_ranges, (address, 1 << 65)) - 1
        return index >= 0 and address < self.executable_ranges[index][1]

    def section(self, name: str) -> Section | None:
        """The first section called *name* with bytes in the file."""
        return next((s for s in self.sections if s.name == name and s.kind != _NOBITS and s.size), None)

    @property
    def is_position_independent(self) -> bool:
        """Whether code addresses in data and code are relocated rather than plain numbers."""
        return self.data[16:18] != _EXECUTABLE.to_bytes(2, "little")

    @cached_property
    def plt_ranges(self) -> tuple[tuple[int, int], ...]:
        """(start, end) of the sections of linkage stubs."""
        return tuple((s.address, s.end) for s in self.code_sections if s.name.startswith((".plt", ".iplt")))

    @cached_property
    def dynamic(self) -> dict[int, int]:
        """Tag → value of the dynamic table; the first of equal tags counts."""
        address, _, size = (self.ranges or {}).get(_PT_DYNAMIC, (0, 0, 0))
        found: dict[int, int] = {}
        for tag, value in struct.iter_unpack("<qQ", _whole(self.read(address, size), 16)):
            if tag == 0:
                break
            found.setdefault(tag, value)
        return found

    @cached_property
    def eh_frame(self) -> tuple[int, bytes, bool]:
        """
        Address and bytes of the frame table, and whether its end is known: found by section or by
        PT_GNU_EH_FRAME; then a zero length ends it. Empty where there is none.
        """
        section = self.section(".eh_frame")
        if section is not None and section.kind in (_PROGBITS, _UNWIND):
            return section.address, self.data[section.offset : section.offset + section.size], True
        address, _, size = (self.ranges or {}).get(_PT_EH_FRAME_HDR, (0, 0, 0))
        header = self.read(address, min(size, 8))
        # Version 1; the pointer is pc-relative sdata4 in every known linker's output.
        if len(header) < 8 or header[:2] != b"\x01\x1b":
            return 0, b"", True
        start = address + 4 + int.from_bytes(header[4:8], "little", signed=True)
        return start, self.read(start, len(self.data)), False

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """Named symbols of the static and the dynamic table."""
        return tuple(symbol for s in self.sections if s.kind in (_SYMTAB, _DYNSYM) for symbol in self._symbols(s) if symbol.name)

    def _symbols(self, table: Section) -> Iterator[Symbol]:
        names = b""
        if table.link < len(self.sections):
            strings = self.sections[table.link]
            names = self.data[strings.offset : strings.offset + strings.size]
        for name, info, _, index, value, size in struct.iter_unpack(
            "<IBBHQQ", _whole(self.data[table.offset : table.offset + table.size], 24)
        ):
            base = 0
            if self.kind == "relocatable" and index < len(self.sections):
                base = self.sections[index].address
            yield Symbol(_text(names, name), base + value if index else 0, size, info & 15 in _FUNCTION_KINDS)

    @cached_property
    def slots(self) -> dict[int, str]:
        """Address of a table slot that the loader fills with a function's address → the function's name ("" for a resolver)."""
        slots: dict[int, str] = {}
        strings = self.read(self.dynamic.get(_DT_STRTAB, 0), self.dynamic.get(_DT_STRSZ, 0))
        for address, kind, symbol, _ in self._relocations:
            if kind in (_R_JUMP_SLOT, _R_GLOB_DAT):
                entry = self.read(self.dynamic.get(_DT_SYMTAB, 0) + 24 * symbol, 4)
                slots[address] = _text(strings, int.from_bytes(entry, "little")) if len(entry) == 4 else ""
            elif kind == _R_IRELATIVE:
                slots[address] = ""
        return slots

    @cached_property
    def _relocations(self) -> tuple[tuple[int, int, int, int], ...]:
        """(address, type, symbol number, addend) of what the loader relocates."""
        found: list[tuple[int, int, int, int]] = []
        tables = [(self.dynamic.get(at, 0), self.dynamic.get(size, 0)) for at, size in ((_DT_RELA, _DT_RELASZ), (_DT_JMPREL, _DT_PLTRELSZ))]
        if not self.dynamic:
            # A static program has no dynamic table; its start-up code reads these by symbols.
            tables = [(s.address, s.size) for s in self.sections if s.kind == _RELA and s.flags & 2 and self.kind != "relocatable"]
        for address, size in tables:
            for where, info, addend in struct.iter_unpack("<QQq", _whole(self.read(address, size), 24)):
                found.append((where, info & 0xFFFFFFFF, info >> 32, addend))
        return tuple(found)

    @cached_property
    def pointers(self) -> dict[int, int]:
        """In a position-independent file: place of a word → the address that the loader puts there; symbols' addresses aside."""
        packed = {place: int.from_bytes(self.read(place, 8), "little") for place in self._packed_places()}
        return packed | {where: addend & (1 << 64) - 1 for where, kind, _, addend in self._relocations if kind == _R_RELATIVE}

    def is_constant(self, address: int) -> bool:
        """Whether the program cannot change what is mapped at *address* once it is loaded."""
        relro, _, size = (self.ranges or {}).get(_PT_GNU_RELRO, (0, 0, 0))
        holder = next((s for s in self.segments if s.address <= address < s.address + s.file_size), None)
        return holder is not None and (not holder.writable or relro <= address < relro + size)

    @cached_property
    def taken_addresses(self) -> frozenset[int]:
        """
        Addresses of code that data, headers or notes hold: the entry, initialisers, relocated words, symbols (labels are
        some, too), probes, and in a fixed-address program every aligned word that looks like one.
        """
        found = {self.entry, self.dynamic.get(_DT_INIT, 0), self.dynamic.get(_DT_FINI, 0)}
        found.update(s.address for s in self.symbols)
        found.update(self.probes)
        symtab = self.dynamic.get(_DT_SYMTAB, 0)
        for _, kind, symbol, addend in self._relocations:
            if kind in (_R_RELATIVE, _R_IRELATIVE):
                found.add(addend)
            elif kind in (_R_64, _R_GLOB_DAT, _R_JUMP_SLOT):
                value = int.from_bytes(self.read(symtab + 24 * symbol + 8, 8), "little")
                found.update({value, value + addend})
        found.update(self._packed_words())
        found.update(target for target in self.relocated.values() if target is not None)
        if not self.is_position_independent:
            found.update(self._plain_words())
        return frozenset(address for address in found if self.is_code(address))

    def _packed_words(self) -> Iterator[int]:
        """Words that DT_RELR relocates."""
        return (int.from_bytes(self.read(place, 8), "little") for place in self._packed_places())

    def _packed_places(self) -> Iterator[int]:
        """Where they are. Source: gabi, "Relative relocation table"."""
        where = 0
        for (entry,) in struct.iter_unpack("<Q", _whole(self.read(self.dynamic.get(_DT_RELR, 0), self.dynamic.get(_DT_RELRSZ, 0)), 8)):
            yield from [entry] if entry & 1 == 0 else [where + 8 * i for i in range(63) if entry >> (i + 1) & 1]
            where = entry + 8 if entry & 1 == 0 else where + 8 * 63

    def _plain_words(self) -> Iterator[int]:
        import numpy as np  # noqa: PLC0415  # dear to import, and needed for programs at fixed addresses only

        for segment in self.segments:
            start = segment.offset + -segment.address % 8
            words = np.frombuffer(_whole(self.data[start : segment.offset + segment.file_size], 8), dtype="<u8")
            for low, high in self.executable_ranges:
                yield from np.unique(words[(words >= low) & (words < high)]).tolist()

    @cached_property
    def probes(self) -> frozenset[int]:
        """Addresses of SystemTap probes: NOPs that a tracer overwrites."""
        section = self.section(".note.stapsdt")
        if section is None:
            return frozenset()
        found: set[int] = set()
        base = self.section(".stapsdt.base")
        notes, position = self.data[section.offset : section.offset + section.size], 0
        while position + 12 <= len(notes):
            name_size, size, kind = struct.unpack_from("<III", notes, position)
            start = position + 12 + (name_size + 3 & ~3)
            if kind == 3 and size >= 16 and start + 16 <= len(notes):
                address, noted_base = struct.unpack_from("<QQ", notes, start)
                # A prelinker moves sections without touching the notes; the base section tells by how much.
                found.add(address + (base.address - noted_base if base else 0))
            position = start + (size + 3 & ~3)
        return frozenset(found)

    @cached_property
    def relocated(self) -> dict[int, int | None]:
        """
        In an object file: address of a field that the linker fills → the address of code in this file that it will
        refer to, or None where that is elsewhere or data.
        """
        if self.kind != "relocatable":
            return {}
        found: dict[int, int | None] = {}
        for table in self.sections:
            if table.kind != _RELA or max(table.info, table.link) >= len(self.sections):
                continue
            base = self.sections[table.info].address
            symbols = list(self._symbols(self.sections[table.link]))
            for where, info, addend in struct.iter_unpack("<QQq", _whole(self.data[table.offset : table.offset + table.size], 24)):
                kind, number = info & 0xFFFFFFFF, info >> 32
                # A pc-relative field is the last four bytes of its instruction: its target is relative to the end.
                target = (symbols[number].address if number < len(symbols) else 0) + addend + (4 if kind in (_R_PC32, _R_PLT32) else 0)
                is_known = number < len(symbols) and symbols[number].address and self.is_code(target)
                found[base + where] = target if is_known else None
        return found

    @cached_property
    def convention(self) -> str:
        """The calling convention: "sysv", or "unknown" where traces of another one are found."""
        is_foreign = (
            any(trace in self.data for trace in _FOREIGN_BYTES)
            or any(s.name.startswith(_FOREIGN_SECTIONS) for s in self.sections)
            or any(s.name.startswith(_FOREIGN_SYMBOLS) for s in self.symbols)
        )
        return "unknown" if is_foreign else "sysv"


def _whole(table: bytes, entry_size: int) -> bytes:
    """*table* without an incomplete last entry."""
    return table[: len(table) - len(table) % entry_size]

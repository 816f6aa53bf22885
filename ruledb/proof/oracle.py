"""
The independent witness: bytes and machine states in, machine states out, run by unicorn.

A state is a row of 17 uint64: the sixteen hardware registers by family number, then rflags. Of rflags the six
status flags count, at their architectural positions; all other bits are ignored on the way in and 0 on the way out.

`Oracle.run_in_memory` runs one state in memory that the caller describes page by page; what is touched comes back with every
access in order. Addresses have 47 bits there.

This module knows bytes only, never what an instruction means. Where the manual leaves a value undefined the emulator
still returns one: the caller must ignore it.
"""

import ctypes
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from unicorn import (
    UC_ARCH_X86,
    UC_HOOK_MEM_READ,
    UC_HOOK_MEM_READ_UNMAPPED,
    UC_HOOK_MEM_WRITE,
    UC_HOOK_MEM_WRITE_UNMAPPED,
    UC_MEM_WRITE,
    UC_MODE_64,
    UC_PROT_ALL,
    UC_PROT_READ,
    UC_PROT_WRITE,
    Uc,
    UcError,
    x86_const,
)
from unicorn.unicorn_py3 import unicorn as bindings  # pinned 2.1.4: the batch calls there have no fast public face

from ruledb.machine.registers import FLAGS

__all__ = [
    "N_COLUMNS", "PAGE_BYTES", "RFLAGS", "STATUS_BITS", "STATUS_MASK", "TAKEN_OFFSET", "Content", "Oracle", "OracleFault", "Run", "States",
    "flag_column", "rflags_column",
]  # fmt: skip

States = npt.NDArray[np.uint64]

N_COLUMNS = 17
RFLAGS = 16
"""The column of rflags."""

STATUS_BITS = dict(zip(FLAGS, (0, 2, 4, 6, 7, 11), strict=True))
"""Flag name → its bit in rflags. SDM vol. 1, 3.4.3."""
STATUS_MASK = sum(1 << bit for bit in STATUS_BITS.values())
_ALWAYS_ONE = 2

_REGISTER_IDS = [
    getattr(x86_const, f"UC_X86_REG_{name}")
    for name in [
        "RAX",
        "RCX",
        "RDX",
        "RBX",
        "RSP",
        "RBP",
        "RSI",
        "RDI",
        "R8",
        "R9",
        "R10",
        "R11",
        "R12",
        "R13",
        "R14",
        "R15",
        "RFLAGS",
        "RIP",
    ]
]
_CODE, _CODE_SIZE = 0x10000000, 1 << 20
_TABLE, _TABLE_ROWS = 0x20000000, 1 << 15
_ROW = 8 * N_COLUMNS
_ALIGN = 16
_TRAP = b"\xcc"
_POINTERS = (8, 9, 10, 11, 14, 15)


PAGE_BYTES = 4096
_LAST_ADDRESS = 1 << 47

TAKEN_OFFSET = 1
"""A closing jump that is taken goes this many bytes behind the end of the code."""
_EXITS = _TRAP + b"\xf4"  # hlt ends a run without an error

Content = Callable[[int], bytes]
"""From a page's number to its `PAGE_BYTES` bytes."""


@dataclass(slots=True)
class Run:
    """
    One run in memory.

    Attributes:
        state: The row behind the code, uint64, shape (17,).
        pages: Page number → content behind the code, of every page that was touched.
        accesses: (is a store, address, bytes, stored value) in order.
        is_taken: Whether the closing jump was taken.
        fault: Why the run did not come to its end; empty if it did.

    """

    state: States
    pages: dict[int, bytes] = field(default_factory=dict)
    accesses: list[tuple[bool, int, int, int]] = field(default_factory=list)
    is_taken: bool = False
    fault: str = ""


class OracleFault(RuntimeError):
    """The bytes did not run to their end; the message says where and why."""


def flag_column(states: States, flag: str) -> States:
    """The value 0 or 1 of *flag* in each row."""
    return states[:, RFLAGS] >> np.uint64(STATUS_BITS[flag]) & np.uint64(1)


def rflags_column(flags: dict[str, npt.ArrayLike], n: int) -> States:
    """The rflags of *n* rows in which each named flag has the given values 0 or 1, and the others 0."""
    column = np.zeros(n, dtype=np.uint64)
    for name, values in flags.items():
        column |= np.asarray(values, dtype=np.uint64) << np.uint64(STATUS_BITS[name])
    return column


class Oracle:
    """
    One emulator. Code goes to fresh addresses, and the translation cache is flushed when they run out, since
    unicorn drops only the block at the start address when code is overwritten.
    """

    def __init__(self) -> None:
        self._uc = Uc(UC_ARCH_X86, UC_MODE_64)
        self._uc.ctl_set_cpu_model(x86_const.UC_CPU_X86_ICELAKE_CLIENT)
        self._uc.mem_map(_CODE, _CODE_SIZE, UC_PROT_ALL)
        self._uc.mem_map(_TABLE, -(-_TABLE_ROWS * _ROW // 4096) * 4096, UC_PROT_READ | UC_PROT_WRITE)
        self._next = _CODE_SIZE
        self._content: Content | None = None
        self._only: Collection[int] | None = None
        self._run = Run(np.zeros(N_COLUMNS, np.uint64))
        self._uc.hook_add(UC_HOOK_MEM_READ_UNMAPPED | UC_HOOK_MEM_WRITE_UNMAPPED, self._map_page)
        n = len(_REGISTER_IDS)
        self._ids = (ctypes.c_int * n)(*_REGISTER_IDS)
        self._values = np.zeros(n, dtype=np.uint64)
        start = self._values.ctypes.data
        self._pointers = (ctypes.c_void_p * n)(*(start + 8 * i for i in range(n)))

    def _place(self, code: bytes) -> int:
        """Write *code* to a fresh address, with a trap behind it, and return the address."""
        size = -(-(len(code) + 1) // _ALIGN) * _ALIGN
        if size > _CODE_SIZE:
            raise OracleFault(f"code of {len(code)} bytes: at most {_CODE_SIZE - _ALIGN}")
        if self._next + size > _CODE_SIZE:
            self._uc.mem_write(_CODE, _TRAP * _CODE_SIZE)
            self._uc.ctl_flush_tb()
            self._next = 0
        address = _CODE + self._next
        self._next += size
        self._uc.mem_write(address, code)
        return address

    def run(self, code: bytes, states: States) -> States:
        """
        The states after *code* ran once from each of *states*: uint64, shape (n, 17).

        Raises:
            OracleFault: A run faulted or left the code elsewhere than at its end.

        """
        return self._run_at(self._place(code), code, states)

    def run_many(self, codes: list[bytes] | tuple[bytes, ...], states: States) -> States:
        """
        The states after each of *codes* from each of *states*: uint64, shape (len(codes), n, 17).

        Raises:
            OracleFault: As for `run`.

        """
        results = np.empty((len(codes), *states.shape), dtype=np.uint64)
        for i, code in enumerate(codes):
            results[i] = self._run_at(self._place(code), code, states)
        return results

    def _run_at(self, address: int, code: bytes, states: States) -> States:
        rows = _checked(states)
        until = address + len(code)
        library, uc = bindings.uclib, self._uc._uch  # noqa: SLF001 - the public batch calls are ten times slower
        write, emulate, read = library.uc_reg_write_batch, library.uc_emu_start, library.uc_reg_read_batch
        values, ids, pointers, n = self._values, self._ids, self._pointers, N_COLUMNS
        registers, rip = values[:N_COLUMNS], N_COLUMNS
        for row in rows:
            registers[:] = row
            write(uc, ids, pointers, n)
            error = emulate(uc, address, until, 0, 0) if code else 0
            read(uc, ids, pointers, n + 1)
            if error or (code and values[rip] != until):
                raise OracleFault(self._reason(error, int(values[rip]) - address, code))
            row[:] = registers
        rows[:, RFLAGS] &= np.uint64(STATUS_MASK)
        return rows

    def run_in_memory(self, code: bytes, state: States, content: Content, only: Collection[int] | None = None) -> Run:
        """
        One run of *code* from *state*, a row, in memory that holds *content*.

        A closing jump must go `TAKEN_OFFSET` bytes behind the end. A fault is part of the result.

        Args:
            only: Numbers of the pages that exist; without it all do.

        """
        address = self._place(code + _EXITS)
        until, taken = address + len(code), address + len(code) + TAKEN_OFFSET
        row = _checked(state.reshape(1, N_COLUMNS))[0]
        self._run, self._content, self._only = Run(row), content, only
        self._values[:N_COLUMNS] = row
        n, library, uc = N_COLUMNS, bindings.uclib, self._uc._uch  # noqa: SLF001 - as in `_run_at`
        trace = self._uc.hook_add(UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, self._note)
        try:
            library.uc_reg_write_batch(uc, self._ids, self._pointers, n)
            error = library.uc_emu_start(uc, address, until, 0, 0) if code else 0
            library.uc_reg_read_batch(uc, self._ids, self._pointers, n + 1)
        finally:
            self._uc.hook_del(trace)
            self._content = None
            self._unmap()
        stop = int(self._values[n])
        self._run.is_taken = stop in (taken, taken + 1)
        if error or (code and stop != until and not self._run.is_taken):
            self._run.fault = self._reason(error, stop - address, code)
        row[:] = self._values[:N_COLUMNS]
        row[RFLAGS] &= np.uint64(STATUS_MASK)
        return self._run

    def _map_page(self, uc: Uc, _kind: int, address: int, n_bytes: int, _value: int, _data: object) -> bool:
        """Bring the pages of an access into being, where a run in memory has them."""
        first, last = address // PAGE_BYTES, (address + n_bytes - 1) // PAGE_BYTES
        if self._content is None or address + n_bytes > _LAST_ADDRESS:
            return False
        for page in range(first, last + 1):
            if page not in self._run.pages:
                if self._only is not None and page not in self._only:
                    return False
                try:
                    uc.mem_map(page * PAGE_BYTES, PAGE_BYTES, UC_PROT_READ | UC_PROT_WRITE)
                except UcError:
                    return False
                uc.mem_write(page * PAGE_BYTES, self._content(page))
                self._run.pages[page] = b""
        return True

    def _note(self, _uc: Uc, kind: int, address: int, n_bytes: int, value: int, _data: object) -> None:
        is_store = kind == UC_MEM_WRITE
        self._run.accesses.append((is_store, address, n_bytes, value & ((1 << 8 * n_bytes) - 1) if is_store else 0))

    def _unmap(self) -> None:
        for page in self._run.pages:
            self._run.pages[page] = bytes(self._uc.mem_read(page * PAGE_BYTES, PAGE_BYTES))
            self._uc.mem_unmap(page * PAGE_BYTES, PAGE_BYTES)

    def run_table(self, code: bytes, states: States, pointer: int = 15) -> States:
        """
        As `run`, for many states of one straight-line code: one emulation loops over a table of states in its memory.

        Args:
            code: It must not use the register of family *pointer*, which walks the table; that column stays.
            states: uint64, shape (n, 17).
            pointer: One of r8 to r11, r14, r15.

        Raises:
            OracleFault: A run faulted, or the code changed the pointer.

        """
        rows = _checked(states)
        loop = _table_loop(code, pointer)
        address = self._place(loop)
        pointer_id, end_id = _REGISTER_IDS[pointer], address + len(loop)
        for start in range(0, len(rows), _TABLE_ROWS):
            chunk = rows[start : start + _TABLE_ROWS]
            self._uc.mem_write(_TABLE, chunk.tobytes())
            end = _TABLE + len(chunk) * _ROW
            self._uc.reg_write(pointer_id, _TABLE)
            self._uc.mem_write(end_id - 8, end.to_bytes(8, "little"))
            error = bindings.uclib.uc_emu_start(self._uc._uch, address, end_id - 8, 0, 0)  # noqa: SLF001 - as above
            stop = self._uc.reg_read(x86_const.UC_X86_REG_RIP)
            if error or stop != end_id - 8:
                raise OracleFault(self._reason(error, stop - address, loop))
            if self._uc.reg_read(pointer_id) != end:
                raise OracleFault(f"{code.hex(' ')}: changed the pointer register of family {pointer}")
            chunk[:] = np.frombuffer(self._uc.mem_read(_TABLE, len(chunk) * _ROW), dtype=np.uint64).reshape(chunk.shape)
        rows[:, RFLAGS] &= np.uint64(STATUS_MASK)
        return rows

    def _reason(self, error: int, offset: int, code: bytes) -> str:
        why = bindings.uclib.uc_strerror(error).decode() if error else "left the code elsewhere than at its end"
        return f"{code.hex(' ')}: {why}, at offset {offset} of {len(code)}"


def _checked(states: States) -> States:
    """A fresh contiguous copy of *states* whose rflags hold the status flags and the bit that is always 1."""
    if states.ndim != 2 or states.shape[1] != N_COLUMNS or states.dtype != np.uint64:
        raise ValueError(f"states of shape {states.shape} and type {states.dtype}: expected (n, {N_COLUMNS}) of uint64")
    rows = np.array(states, order="C")
    rows[:, RFLAGS] &= np.uint64(STATUS_MASK)
    rows[:, RFLAGS] |= np.uint64(_ALWAYS_ONE)
    return rows


def _table_loop(code: bytes, pointer: int) -> bytes:
    """
    Machine code that runs *code* on each row of the table at *pointer*, up to the address in its own last 8 bytes.

    rsp is a stack only for popfq and pushfq, which take and leave rflags in the row; between them it is a plain register.
    """
    if pointer not in _POINTERS:
        raise ValueError(f"pointer family {pointer}: expected one of {_POINTERS}")

    def access(opcode: int, register: int, column: int) -> bytes:
        """REX.W *opcode* register, [pointer + 8 * column]."""
        modrm = 0x80 | (register & 7) << 3 | pointer & 7
        return bytes((0x48 | register >> 3 << 2 | pointer >> 3, opcode, modrm)) + (8 * column).to_bytes(4, "little")

    stack = 4
    registers = [r for r in range(16) if r not in (pointer, stack)]
    load, store, lea = 0x8B, 0x89, 0x8D
    before = access(lea, stack, RFLAGS) + b"\x9d"  # popfq
    before += b"".join(access(load, r, r) for r in (*registers, stack))
    after = b"".join(access(store, r, r) for r in (stack, *registers))
    after += access(lea, stack, RFLAGS + 1) + b"\x9c"  # pushfq
    after += access(lea, pointer, N_COLUMNS)
    after += bytes((0x48 | pointer >> 3 << 2, 0x3B, 0x05 | (pointer & 7) << 3)) + (6).to_bytes(4, "little")  # cmp pointer, [rip+6]
    body = before + code + after
    return body + b"\x0f\x82" + (-(len(body) + 6)).to_bytes(4, "little", signed=True) + bytes(8)  # jb start; the end address

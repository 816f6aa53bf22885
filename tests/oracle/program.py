"""
A loop in machine code that runs given bytes on every row of a table, for the processor and the emulator alike.

A row holds the sixteen registers by family number, rflags, and where memory takes part the 128 bytes of the window, as 16
words. The window lies across the border of two pages; what surrounds both is not mapped. All addresses are fixed and lie below
2 GiB, so that the same bytes run in either engine and no register is needed to find the row: not even rsp is special.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from ruledb.machine.codec import encode
from ruledb.machine.instruction import parse_sequence
from ruledb.machine.registers import Register
from ruledb.proof.oracle import N_COLUMNS, RFLAGS, STATUS_MASK

PAGE_BYTES = 4096
CODE, CODE_BYTES = 0x50000000, 1 << 16
CONTROL = 0x50010000
CURSOR, END, SPILL, STACK = (CONTROL + 8 * i for i in range(4))
DATA, DATA_BYTES = 0x50020000, 2 * PAGE_BYTES
WINDOW_BYTES = 128
BORDER = DATA + PAGE_BYTES
WINDOW = BORDER - WINDOW_BYTES // 2
TABLE, TABLE_BYTES = 0x50100000, 1 << 25
N_WORDS = WINDOW_BYTES // 8
AREAS = ((CODE, CODE_BYTES), (CONTROL, PAGE_BYTES), (DATA, DATA_BYTES), (TABLE, TABLE_BYTES))
"""What an engine maps: address and bytes."""

_SAVED = ("rbx", "rbp", "r12", "r13", "r14", "r15")
_OTHERS = [Register(f, 64) for f in range(15)]


@dataclass(frozen=True)
class Program:
    """Bytes to be put at `CODE`: a C function without arguments; *loop* and *done* are addresses for an engine that needs no function."""

    code: bytes
    loop: int
    done: int


@dataclass(frozen=True)
class Outcome:
    """
    The rows after a run.

    Attributes:
        states: uint64, shape (n, 17).
        memory: The window, uint8, shape (n, 128); None where the run had none.
        faults: Row → why the bytes did not run to their end there; the values of such a row mean nothing.

    """

    states: np.ndarray
    memory: np.ndarray | None
    faults: dict[int, str]


def _bytes(text: str) -> bytes:
    return b"".join(map(encode, parse_sequence(text)))


@cache
def _frame(n_words: int) -> tuple[bytes, bytes, bytes, bytes]:
    """What stands before the loop, before the code, behind the code, and behind the loop."""
    row = 8 * (N_COLUMNS + n_words)
    window = [(WINDOW + 8 * i, 8 * (N_COLUMNS + i)) for i in range(n_words)]
    enter = [f"push {r}" for r in _SAVED] + [f"mov [{STACK}], rsp"]
    before = [f"mov r15, [{CURSOR}]"]
    before += [line for address, offset in window for line in (f"mov rax, [r15+{offset}]", f"mov [{address}], rax")]
    before += [f"lea rsp, [r15+{8 * RFLAGS}]", "popfq", *(f"mov {r}, [r15+{8 * r.family}]" for r in _OTHERS), "mov r15, [r15+120]"]
    after = [f"mov [{SPILL}], r15", f"mov r15, [{CURSOR}]", *(f"mov [r15+{8 * r.family}], {r}" for r in _OTHERS)]
    after += [f"mov rax, [{SPILL}]", "mov [r15+120], rax", f"lea rsp, [r15+{8 * N_COLUMNS}]", "pushfq"]
    after += [line for address, offset in window for line in (f"mov rax, [{address}]", f"mov [r15+{offset}], rax")]
    after += [f"add r15, {row}", f"mov [{CURSOR}], r15", f"cmp r15, [{END}]"]
    leave = [f"mov rsp, [{STACK}]", *(f"pop {r}" for r in reversed(_SAVED)), "cld", "ret"]
    enter, before, after, leave = (_bytes("; ".join(lines)) for lines in (enter, before, after, leave))
    return enter, before, after, leave


def program(code: bytes, *, has_memory: bool) -> Program:
    """The program that runs *code* on the rows from [CURSOR] up to [END]."""
    enter, before, after, leave = _frame(N_WORDS if has_memory else 0)
    body = before + code + after
    body += b"\x0f\x82" + (-(len(body) + 6)).to_bytes(4, "little", signed=True)  # jb: to the next row
    whole = enter + body + leave
    if len(whole) > CODE_BYTES:
        raise ValueError(f"code of {len(code)} bytes: the program has room for {CODE_BYTES} with its frame")
    return Program(whole, CODE + len(enter), CODE + len(enter) + len(body))


def code_address(*, has_memory: bool) -> int:
    """Where `program` puts the code, for rip-relative operands."""
    enter, before, *_ = _frame(N_WORDS if has_memory else 0)
    return CODE + len(enter) + len(before)


def packed(states: np.ndarray, memory: np.ndarray | None) -> np.ndarray:
    """The table's rows: uint64, shape (n, 17) or (n, 33); of rflags only the status flags."""
    if states.ndim != 2 or states.shape[1] != N_COLUMNS or states.dtype != np.uint64:
        raise ValueError(f"states of shape {states.shape} and type {states.dtype}: expected (n, {N_COLUMNS}) of uint64")
    if memory is not None and (memory.shape != (len(states), WINDOW_BYTES) or memory.dtype != np.uint8):
        raise ValueError(f"memory of shape {memory.shape} and type {memory.dtype}: expected ({len(states)}, {WINDOW_BYTES}) of uint8")
    words = [] if memory is None else [np.ascontiguousarray(memory).view(np.uint64)]
    rows = np.concatenate([states, *words], axis=1)
    rows[:, RFLAGS] = rows[:, RFLAGS] & np.uint64(STATUS_MASK) | np.uint64(2)
    return rows


def unpacked(rows: np.ndarray, faults: dict[int, str]) -> Outcome:
    """The inverse of `packed`."""
    states = rows[:, :N_COLUMNS].copy()
    states[:, RFLAGS] &= np.uint64(STATUS_MASK)
    memory = np.ascontiguousarray(rows[:, N_COLUMNS:]).view(np.uint8) if rows.shape[1] > N_COLUMNS else None
    return Outcome(states, memory, faults)

"""
Two engines for one program: the host processor, in child processes, and the emulator.

Each takes bytes and arrays of states and returns the rows after them, and which rows faulted. Faulting rows do not end a run.
"""

import ctypes
import mmap
import os
import platform
import resource
import signal
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
from program import (
    AREAS,
    BORDER,
    CODE,
    CURSOR,
    DATA,
    DATA_BYTES,
    END,
    TABLE,
    TABLE_BYTES,
    WINDOW,
    WINDOW_BYTES,
    Outcome,
    Program,
    packed,
    program,
    unpacked,
)
from unicorn import UC_ARCH_X86, UC_HOOK_INTR, UC_MODE_64, UC_PROT_ALL, Uc, UcError, x86_const

from ruledb.proof.oracle import OracleFault

MAX_FAULTS = 2_000
"""Faulting rows after which a run is given up: each costs the processor a child process."""
LIMIT_S = 60
_FAULTS = {
    signal.SIGFPE: "#DE",
    signal.SIGILL: "#UD",
    signal.SIGSEGV: "#PF or #GP",
    signal.SIGBUS: "#AC or #SS",
    signal.SIGTRAP: "#BP or #DB",
    signal.SIGALRM: f"no end within {LIMIT_S} s",
}
_VECTORS = {0: "#DE", 6: "#UD", 3: "#BP or #DB", 1: "#BP or #DB"}


class _Memory(Protocol):
    """How an engine reaches its areas and runs what is in them."""

    def write(self, address: int, data: bytes) -> None: ...
    def read(self, address: int, n_bytes: int) -> bytes: ...
    def execute(self, whole: Program) -> str: ...


class Engine:
    """Runs bytes on tables of states, in areas that a subclass maps and executes."""

    def run(self: "_Engine", code: bytes, states: np.ndarray, memory: np.ndarray | None = None) -> Outcome:
        """
        The rows after *code* from each of *states*, with *memory* in the window.

        Raises:
            OracleFault: Too many rows faulted, or a store went beside the window.

        """
        rows, faults = packed(states, memory), {}
        whole = program(code, has_memory=memory is not None)
        self.write(CODE, whole.code)
        row_bytes = rows.shape[1] * 8
        n_chunk = TABLE_BYTES // row_bytes
        for start in range(0, len(rows), n_chunk):
            chunk = rows[start : start + n_chunk]
            self.write(TABLE, chunk.tobytes())
            self.write(END, (TABLE + chunk.nbytes).to_bytes(8, "little"))
            first = 0
            while first < len(chunk):
                self.write(CURSOR, (TABLE + first * row_bytes).to_bytes(8, "little"))
                fault = self.execute(whole)
                if not fault:
                    break
                stopped = (int.from_bytes(self.read(CURSOR, 8), "little") - TABLE) // row_bytes
                faults[start + stopped] = fault
                if len(faults) > MAX_FAULTS:
                    raise OracleFault(f"{code.hex(' ')}: more than {MAX_FAULTS} rows fault, the last by {fault}")
                first = stopped + 1
            chunk[:] = np.frombuffer(self.read(TABLE, chunk.nbytes), dtype=np.uint64).reshape(chunk.shape)
        self._require_clean(code)
        return unpacked(rows, faults)

    def run_table(self: "_Engine", code: bytes, states: np.ndarray) -> np.ndarray:
        """
        As `ruledb.proof.oracle.Oracle.run_table`, without its bound on the registers that *code* uses.

        Raises:
            OracleFault: A row faulted.

        """
        outcome = self.run(code, states)
        if outcome.faults:
            row, fault = min(outcome.faults.items())
            raise OracleFault(f"{code.hex(' ')}: {fault} in row {row} ({len(outcome.faults)} rows in all)")
        return outcome.states

    def _require_clean(self: "_Engine", code: bytes) -> None:
        """The data pages are 0 outside the window: a store beside it would otherwise pass unseen."""
        data = bytearray(self.read(DATA, DATA_BYTES))
        data[WINDOW - DATA : WINDOW - DATA + WINDOW_BYTES] = bytes(WINDOW_BYTES)
        if any(data):
            self.write(DATA, bytes(DATA_BYTES))
            raise OracleFault(f"{code.hex(' ')}: stored outside the window of {WINDOW_BYTES} bytes around {BORDER:#x}")


class _Engine(Engine, _Memory):
    """An engine with its memory."""


class Emulator(Engine):
    """The program in unicorn, on a processor model with BMI."""

    def __init__(self) -> None:
        self._uc = Uc(UC_ARCH_X86, UC_MODE_64)
        self._uc.ctl_set_cpu_model(x86_const.UC_CPU_X86_ICELAKE_CLIENT)
        self._vector = -1
        for address, n_bytes in AREAS:
            self._uc.mem_map(address, n_bytes, UC_PROT_ALL)
        self._uc.hook_add(UC_HOOK_INTR, self._interrupted)
        self._fresh = self._uc.context_save()

    def _interrupted(self, uc: Uc, vector: int, _data: object) -> None:
        self._vector = vector
        uc.emu_stop()

    def write(self, address: int, data: bytes) -> None:
        """Put *data* at *address*."""
        self._uc.mem_write(address, data)

    def read(self, address: int, n_bytes: int) -> bytes:
        """The bytes at *address*."""
        return bytes(self._uc.mem_read(address, n_bytes))

    def execute(self, whole: Program) -> str:
        """Run the rows; why the one at the cursor faulted, or nothing."""
        self._uc.ctl_flush_tb()
        self._uc.context_restore(self._fresh)  # else a second #DE would be a double fault
        self._vector = -1
        try:
            self._uc.emu_start(whole.loop, whole.done)
        except UcError as problem:
            return str(problem)
        if self._vector >= 0:
            return _VECTORS.get(self._vector, f"vector {self._vector}")
        return "" if self._uc.reg_read(x86_const.UC_X86_REG_RIP) == whole.done else "left the code"


_FEATURES = frozenset({"popcnt", "abm", "movbe", "bmi1", "bmi2", "adx"})
"""What the processor must have, by the names of Linux."""


def native_reason() -> str:
    """Why the host cannot run the bytes; empty where it can."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return f"runs x86-64 code on Linux, and this is {platform.machine()} with {platform.system()}"
    flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("flags")[2].partition("\n")[0].split())
    if missing := sorted(_FEATURES - flags):
        return f"runs instructions that this processor lacks: {' '.join(missing)}"
    try:
        processor()
    except OSError as problem:
        return f"cannot map {AREAS[0][0]:#x}: {problem.strerror}"
    return ""


@cache
def processor() -> "Processor":
    """The one engine of this process for the host processor; its areas stay mapped."""
    return Processor()


class Processor(Engine):
    """
    The program on the host, in a child process for each stretch of rows without a fault.

    Raises:
        OSError: The areas' addresses are taken.

    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        library.mmap.restype = ctypes.c_void_p
        library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
        protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        fixed = 0x100000  # MAP_FIXED_NOREPLACE, Linux 4.17
        for address, n_bytes in AREAS:
            got = library.mmap(address, n_bytes, protection, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | fixed, -1, 0)
            if got != address:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._function = ctypes.CFUNCTYPE(None)(CODE)

    def write(self, address: int, data: bytes) -> None:
        """Put *data* at *address*; the areas are shared with the children."""
        ctypes.memmove(address, data, len(data))

    def read(self, address: int, n_bytes: int) -> bytes:
        """The bytes at *address*."""
        return ctypes.string_at(address, n_bytes)

    def execute(self, _whole: Program) -> str:
        """Run the rows in a child; why the one at the cursor faulted, or nothing."""
        child = os.fork()
        if child == 0:
            self._run_and_exit()
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            return _FAULTS.get(number, f"signal {number}")
        return "" if os.WEXITSTATUS(status) == 0 else f"exit code {os.WEXITSTATUS(status)}"

    def _run_and_exit(self) -> None:
        """In the child: nothing may return from here, and no handler may run on the stack that the bytes left."""
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for number in _FAULTS:
                signal.signal(number, signal.SIG_DFL)
            signal.alarm(LIMIT_S)
            self._function()
            os._exit(0)
        finally:
            os._exit(1)

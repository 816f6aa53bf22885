"""The comparison of terms with the emulator or the processor, for the conformance tests and the mutants that they must catch."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import numpy as np
from evaluator import Evaluator
from form_list import Case
from pysmt.environment import Environment

from ruledb.machine.registers import FLAGS, RAX, Register
from ruledb.proof.oracle import RFLAGS, STATUS_BITS, Oracle, flag_column
from ruledb.semantics.forms import bind
from ruledb.semantics.symbolic import initial_state, run
from ruledb.semantics.terms import Terms

_U = np.uint64
N_RANDOM = 2_000
_ALL_FLAGS = tuple(product((0, 1), repeat=len(FLAGS)))


class Runner(Protocol):
    """What runs bytes on many states: the emulator, the processor, or a record of either."""

    def run_table(self, code: bytes, states: np.ndarray) -> np.ndarray:
        """The rows after *code* from each of *states*."""
        ...


@dataclass(frozen=True)
class Recorded:
    """A run that was made before: the rows after one code on one array of states."""

    after: np.ndarray

    def run_table(self, _code: bytes, _states: np.ndarray) -> np.ndarray:
        """The record."""
        return self.after


@dataclass(frozen=True)
class Mismatch:
    """A location where term and machine differ, in how many states, and the first of them."""

    text: str
    location: str
    n_states: int
    state: str
    by_terms: int
    by_oracle: int


def random_states(n: int, seed: int = 1) -> np.ndarray:
    """*n* states of uniformly random bits."""
    return np.random.default_rng(seed).integers(0, 1 << 64, (n, 17), dtype=_U)


def edge_values(width: int) -> np.ndarray:
    """0, 1, -1, the extremes, their neighbours, powers of two, shift counts around the width, bytes and patterns."""
    top = 1 << (width - 1)
    values = {
        0,
        1,
        2,
        3,
        5,
        -1,
        -2,
        -3,
        top,
        top - 1,
        top + 1,
        top - 2,
        width - 1,
        width,
        width + 1,
        31,
        33,
        0x0F,
        0x10,
        0x7F,
        0x80,
        0xFF,
        0x100,
    }
    values |= {1 << i for i in range(width)} | {(1 << (width // 2)) - 1, 0xAAAAAAAAAAAAAAAA, 0x5555555555555555}
    return np.array(sorted({v & ((1 << width) - 1) for v in values}), dtype=_U)


def place(states: np.ndarray, register: Register, values: np.ndarray) -> None:
    """Put *values* into the bits that *register* names."""
    low = 8 if register.high else 0
    mask = ((1 << register.width) - 1) << low
    column = states[:, register.family]
    states[:, register.family] = column & _U(~mask & (1 << 64) - 1) | values << _U(low)


def directed_states(case: Case) -> np.ndarray:
    """
    States with all pairs of edge values in the first two inputs, with equal inputs, and all flags.

    8-bit inputs take all 256 values, so that two of them make all 65,536 pairs, times both carries where the form
    reads CF.
    """
    inputs = case.inputs
    values = [np.arange(256, dtype=_U) if r.width == 8 else edge_values(r.width) for r in inputs[:2]]
    if len(values) == 2:
        first, second = (a.ravel() for a in np.meshgrid(*values, indexing="ij"))
        columns = [first, second]
    else:
        columns = [np.repeat(v, 16) for v in values]
    n = len(columns[0]) if columns else 64
    reads = bind(case.instruction).form.reads
    copies = 2 if reads == ("CF",) and n > 64 else 1
    states = random_states(n * copies, seed=2)
    for register, column in zip(inputs, columns, strict=False):
        place(states, register, np.tile(column, copies))
    for register in inputs[2:]:
        edges = np.arange(256, dtype=_U) if register.width == 8 else edge_values(register.width)
        place(states, register, np.resize(edges, n * copies))
    flags = np.resize(np.array(_ALL_FLAGS, dtype=_U), (n, len(FLAGS)))
    states[:, RFLAGS] = 0
    for i, name in enumerate(FLAGS):
        bits = np.repeat(np.arange(copies, dtype=_U), n) if name == "CF" and copies == 2 else np.tile(flags[:, i], copies)
        states[:, RFLAGS] |= bits << _U(STATUS_BITS[name])
    return states


def states_of(case: Case, n_random: int = N_RANDOM) -> np.ndarray:
    """The states on which a case is compared."""
    return np.concatenate([directed_states(case), random_states(n_random)])


def inputs_of(states: np.ndarray) -> dict[str, np.ndarray]:
    """The values of the input symbols: ``r<family>`` and the flags."""
    return {f"r{i}": states[:, i] for i in range(16)} | {name: flag_column(states, name) for name in FLAGS}


def compare(oracle: Runner, case: Case, states: np.ndarray, *, use_table: bool = True) -> list[Mismatch]:
    """Every location where the terms of *case* and the machine differ on *states*, undefined bits left out."""
    return compare_sequence(oracle, case.text, [case], states, use_table=use_table)


def compare_sequence(oracle: Runner, text: str, sequence: Sequence[Case], states: np.ndarray, *, use_table: bool = True) -> list[Mismatch]:
    """As `compare`, for a sequence."""
    code = b"".join(case.code for case in sequence)
    after = oracle.run_table(code, states) if use_table else oracle.run(code, states)
    t = Terms(Environment())
    final = run(t, [case.instruction for case in sequence], initial_state(t))
    n, inputs = len(states), inputs_of(states)
    low, high = (Evaluator(_Undefined(inputs, n, fill), n) for fill in (0, 1))
    ignored = _emulator_differences(sequence, states) if isinstance(oracle, Oracle) else {}
    found: list[Mismatch] = []
    for key in (*range(16), *FLAGS):
        is_flag = isinstance(key, str)
        actual = flag_column(after, key) if is_flag else after[:, key]
        term = (final.flags if is_flag else final.registers).get(key)
        before = inputs[key if is_flag else f"r{key}"]
        if term is None:
            values, unknown = before, np.zeros(n, dtype=_U)
        elif len(sequence) > 1 and any("!" in name for name in t.names(term)):
            continue  # two values of the undefined symbols do not show every dependence on several of them
        else:
            values = low(term)
            unknown = values ^ high(term)
        if len(sequence) == 1:
            found += _wrong_definedness(text, key, final.defined.get(key), unknown, low)
            unknown |= ignored.get(key, _U(0))
        wrong = np.flatnonzero((values ^ actual) & ~unknown)
        if wrong.size:
            row = int(wrong[0])
            shown = " ".join(f"{x:x}" for x in states[row])
            found.append(Mismatch(text, str(key), wrong.size, shown, int(values[row]), int(actual[row])))
    return found


def defined_bits(case: Case, states: np.ndarray) -> dict[int | str, np.ndarray]:
    """Of each location that *case* writes, the bits that do not depend on an undefined value: a mask per state."""
    t, n = Terms(Environment()), len(states)
    final = run(t, [case.instruction], initial_state(t))
    low, high = (Evaluator(_Undefined(inputs_of(states), n, fill), n) for fill in (0, 1))
    return {key: ~(low(term) ^ high(term)) for key, term in (*final.registers.items(), *final.flags.items())}


def _wrong_definedness(text, key, condition, unknown, evaluate) -> list[Mismatch]:
    """Where a value depends on an undefined symbol although it is said to be defined, or (flags) the reverse."""
    defined = np.ones(len(unknown), dtype=_U) if condition is None else evaluate(condition)
    wrong = (unknown != 0) & (defined == 1) if condition is not None or isinstance(key, str) else np.zeros(len(unknown), dtype=bool)
    if isinstance(key, str):
        wrong |= (unknown == 0) & (defined == 0)
    rows = np.flatnonzero(wrong)
    return [Mismatch(text, f"definedness of {key}", rows.size, f"row {rows[0]}", 0, 0)] if rows.size else []


WRONG_IN_THE_EMULATOR = {"bzhi": "result flags", "bextr": "result flags", "blsi": "CF", "pdep": "upper half"}
"""
What unicorn 2.1.4 computes otherwise than the manual and the processor do: bzhi and bextr mask one bit too few, blsi inverts CF,
and pdep leaves bits above a 32-bit result. The processor alone can tell whether the terms are right. (A 32-bit cmpxchg that exchanges
memory clears the upper half of rax besides.)
"""


def _emulator_differences(sequence: Sequence[Case], states: np.ndarray) -> dict[int | str, np.ndarray]:
    """
    Bits where the emulator is known to differ from the processors: family or flag → mask per state.

    A 32-bit scan of 0 keeps the whole 64-bit register on AMD's and on current Intel processors (`test_native.py`);
    unicorn 2.1.4 clears the upper half, as the SDM says that some older processors do.
    """
    instruction = sequence[0].instruction
    ones = np.full(len(states), (1 << 64) - 1, dtype=_U)
    if instruction.mnemonic in WRONG_IN_THE_EMULATOR:
        what = WRONG_IN_THE_EMULATOR[instruction.mnemonic]
        target = instruction.operands[0]
        found: dict[int | str, np.ndarray] = dict.fromkeys([f for f in FLAGS if "flags" in what or f == what], ones)
        found |= {target.family: ones} if "result" in what else {}
        return found | ({target.family: ones << _U(32)} if "half" in what and target.width == 32 else {})
    if instruction.mnemonic == "cmpxchg" and instruction.operands[0].width == 32:
        return {RAX: ones << _U(32)}
    if instruction.mnemonic not in ("bsf", "bsr") or instruction.operands[0].width != 32:
        return {}
    dst, src = instruction.operands
    if not isinstance(src, Register):
        return {dst.family: ones << _U(32)}
    is_zero = states[:, src.family] & _U(0xFFFFFFFF) == 0
    return {dst.family: np.where(is_zero, _U(0xFFFFFFFF00000000), _U(0))}


def zero_where_undefined(inputs: dict[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
    """*inputs*, and 0 for every undefined symbol that is asked for."""
    return _Undefined(inputs, n, 0)


class _Undefined(dict):
    """Inputs, and for undefined symbols all zeros or all ones."""

    def __init__(self, inputs: dict[str, np.ndarray], n: int, fill: int) -> None:
        super().__init__(inputs)
        self.n, self.fill = n, fill

    def __missing__(self, name: str) -> np.ndarray:
        width = int(name.rpartition("_")[2])
        self[name] = np.full(self.n, ((1 << width) - 1) * self.fill, dtype=_U)
        return self[name]

"""The comparison of terms with the emulator for forms that access memory, trap or jump: one run a state."""

from dataclasses import dataclass

import numpy as np
from conformance import _emulator_differences, _Undefined, directed_states, random_states
from evaluator import Evaluator
from form_list import Case
from pysmt.environment import Environment

from ruledb.machine.instruction import registers_of
from ruledb.machine.registers import FLAGS, RAX
from ruledb.proof.memory_states import content, pointer_rows
from ruledb.proof.oracle import PAGE_BYTES, Oracle, flag_column
from ruledb.semantics.memory import Kind, free_loads
from ruledb.semantics.symbolic import State, run
from ruledb.semantics.terms import Terms

_U = np.uint64


@dataclass(frozen=True)
class Difference:
    """Where term and emulator differ, on one state."""

    text: str
    what: str
    by_terms: object
    by_oracle: object
    state: str


def states_in_memory(case: Case, n: int, seed: int = 1) -> np.ndarray:
    """Edge values and random ones, with pointers that overlap, cross pages, or lie far apart."""
    edges = directed_states(case)
    picked = edges[np.random.default_rng(seed).integers(0, len(edges), n // 2)]
    rows = pointer_rows(np.concatenate([picked, random_states(n - n // 2, seed)]), [case.instruction])
    if case.instruction.mnemonic == "cmpxchg":
        _let_half_exchange(case, rows)
    return rows


def _let_half_exchange(case: Case, rows: np.ndarray) -> None:
    """In every other row the accumulator is what memory holds."""
    meaning = _Meaning(case, rows, content(1, {}))
    target = case.instruction.operands[0]
    loaded = meaning.inputs[f"load0_{target.width}"]
    keep = _U((1 << 64) - (1 << target.width))
    if RAX not in (r.family for r in registers_of(target)):
        rows[::2, RAX] = rows[::2, RAX] & keep | loaded[::2]


def _bytes(page, address: int, n: int) -> bytes:
    return bytes(page((address + i) // PAGE_BYTES)[(address + i) % PAGE_BYTES] for i in range(n))


class _Meaning:
    """The terms of one instruction, evaluated on all states; loads read the initial memory."""

    def __init__(self, case: Case, states: np.ndarray, memory) -> None:
        self.t = Terms(Environment())
        self.final = run(self.t, [case.instruction], State(), memory=free_loads)
        self.inputs = {f"r{i}": states[:, i] for i in range(16)} | {name: flag_column(states, name) for name in FLAGS}
        n = len(states)
        early = Evaluator(self.inputs, n)
        for number, access in enumerate(self.final.accesses):
            if access.kind is Kind.LOAD:
                addresses = early(access.address)
                loaded = [int.from_bytes(_bytes(memory, int(a), access.n_bytes), "little") for a in addresses]
                self.inputs[f"load{number}_{8 * access.n_bytes}"] = np.array(loaded, _U)
        self.low, self.high = (Evaluator(_Undefined(self.inputs, n, fill), n) for fill in (0, 1))

    def value(self, term) -> tuple[list[int], list[int]]:
        """Values, and bits that are undefined."""
        one, other = self.low(term), self.high(term)
        return [int(v) for v in one], [int(a ^ b) for a, b in zip(one, other, strict=True)]


def _traps(case: Case, division: int, n_bits: int) -> bool:
    """Whether dividing traps: *division* holds dividend and divisor side by side. SDM vol. 2A, DIV and IDIV."""
    width = n_bits // 3
    dividend, divisor = division >> width, division & (1 << width) - 1
    if case.instruction.mnemonic == "div":
        return divisor == 0 or dividend // divisor >> width != 0
    dividend -= dividend >> (2 * width - 1) << (2 * width)
    divisor -= divisor >> (width - 1) << width
    if divisor == 0:
        return True
    quotient = abs(dividend) // abs(divisor) * (1 if (dividend < 0) == (divisor < 0) else -1)
    return not -(1 << (width - 1)) <= quotient < 1 << (width - 1)


def compare_in_memory(oracle: Oracle, case: Case, states: np.ndarray) -> list[Difference]:
    """Every location, byte and access in which the terms of *case* and the emulator differ on *states*."""
    memory = content(1, {})
    meaning = _Meaning(case, states, memory)
    final = meaning.final
    registers = {f: meaning.value(v) for f, v in final.registers.items()}
    flags = {f: meaning.value(v) for f, v in final.flags.items()}
    trace = [(a, meaning.value(a.address)[0] if a.address is not None else [], meaning.value(a.value)) for a in final.accesses]
    taken = meaning.value(final.taken)[0] if final.taken is not None else [0] * len(states)
    ignored = _emulator_differences([case], states)
    found: list[Difference] = []
    for row, state in enumerate(states):
        if any(a.address is not None and addresses[row] + a.n_bytes > _LAST_ADDRESS for a, addresses, _ in trace):
            continue
        actual = oracle.run_in_memory(case.code, state, memory)

        def note(what, by_terms, by_oracle, ignored=0, state=state):
            if isinstance(by_terms, int) and isinstance(by_oracle, int):
                by_terms, by_oracle = by_terms & ~ignored, by_oracle & ~ignored
            if by_terms != by_oracle:
                found.append(Difference(case.text, what, by_terms, by_oracle, " ".join(f"{int(x):x}" for x in state)))

        divisions = [values[row] for a, _, (values, _) in trace if a.address is None]
        bits = [a.value.bv_width() for a, _, _ in trace if a.address is None]
        traps = any(_traps(case, d, n) for d, n in zip(divisions, bits, strict=True))
        note("trap", traps, bool(actual.fault))
        if actual.fault or traps:
            continue
        for family in range(16):
            value, undefined = (v[row] for v in registers.get(family, ([int(state[family])] * len(states), [0] * len(states))))
            note(f"register {family}", value, int(actual.state[family]), undefined | _mask(ignored, family, row))
        for name in FLAGS:
            value, undefined = (v[row] for v in flags.get(name, (meaning.inputs[name].tolist(), [0] * len(states))))
            note(name, value, int(flag_column(actual.state[None], name)[0]), undefined | _mask(ignored, name, row))
        note("taken", bool(taken[row]), actual.is_taken)
        _compare_trace(note, trace, row, actual, memory)
    return found


def _mask(ignored: dict, key: int | str, row: int) -> int:
    return int(ignored[key][row]) if key in ignored else 0


_LAST_ADDRESS = 1 << 47
"""Of the addresses above, the emulator sees the low bits alone."""


def _compare_trace(note, trace, row, actual, memory) -> None:
    accesses, cells, open_bits = [], {}, {}
    for access, addresses, (values, undefined) in trace:
        if access.address is None:
            continue
        address, value = addresses[row], values[row] & ~undefined[row]
        is_store = access.kind is Kind.STORE
        accesses.append((is_store, address, access.n_bytes))
        for i in range(access.n_bytes if is_store else 0):
            cells[address + i], open_bits[address + i] = value >> 8 * i & 0xFF, undefined[row] >> 8 * i & 0xFF
    note("accesses", accesses, [a[:3] for a in actual.accesses])
    pages = {p: bytearray(memory(p)) for p in actual.pages}
    for address, value in cells.items():
        page, offset = divmod(address, PAGE_BYTES)
        if page in pages:
            pages[page][offset] = value | actual.pages[page][offset] & open_bits[address]
    note("memory", {p: bytes(b) for p, b in pages.items()} == actual.pages, True)

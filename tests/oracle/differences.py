"""
Where the emulator computes otherwise than the processor, in what the manual defines, and the page that records it.

Every form is run on both over the same states. Undefined outputs are left out; where the terms rely on what hardware does
without a promise (a scan of 0 keeps its destination), the difference is listed.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from conformance import defined_bits, directed_states, random_states
from engines import Emulator, processor
from form_list import Case, cases, shape
from program import Outcome

from ruledb.machine.registers import FLAGS
from ruledb.proof.oracle import flag_column

_U = np.uint64
_EDGES, _RANDOM = 3_000, 1_000

HEAD = """\
# Where the emulator differs from the processor

The oracle of the proofs is unicorn, an emulator. Every form in the table is run on it and on an x86-64 processor over the same
states, edge values and random ones, and compared wherever the manual defines the outcome or the terms rely on what hardware does. The
processor decides what the terms say. Each line below is a difference that this comparison found; there is no other.
`BLESS=1 pytest tests/oracle/test_differences.py` makes the page anew, and a test fails when it is stale.

A width is that of the first operand. Of a register the bits are given that differ in some state.

"""


@dataclass(frozen=True)
class Difference:
    """One location in which the engines differ after a form, and the bits that do in some state; of a flag, bit 0."""

    mnemonic: str
    width: int
    location: str
    bits: int


def first_cases() -> list[Case]:
    """One case for each mnemonic, operand kinds and widths."""
    return list({(c.instruction.mnemonic, shape(c)): c for c in reversed(cases())}.values())[::-1]


def _states(case: Case) -> np.ndarray:
    edges = directed_states(case)
    picked = np.random.default_rng(13).choice(len(edges), min(len(edges), _EDGES), replace=False)
    return np.concatenate([edges[picked], random_states(_RANDOM, seed=14)])


def _column(outcome: Outcome, key: int | str) -> np.ndarray:
    return flag_column(outcome.states, key) if isinstance(key, str) else outcome.states[:, key]


def differences() -> Iterator[Difference]:
    """Every difference, in the order of the table."""
    emulator = Emulator()
    for case in first_cases():
        states = _states(case)
        ours, theirs = emulator.run(case.code, states), processor().run(case.code, states)
        defined = defined_bits(case, states)
        registers = [o for o in case.instruction.operands if hasattr(o, "family")]
        for key in (*range(16), *FLAGS):
            bits = int(np.bitwise_or.reduce((_column(ours, key) ^ _column(theirs, key)) & defined.get(key, ~_U(0))))
            if bits:
                is_first = registers and registers[0].family == key
                location = key if isinstance(key, str) else "the destination" if is_first else f"register {key}"
                yield Difference(case.instruction.mnemonic, registers[0].width if registers else 0, location, bits)


def _span(difference: Difference) -> str:
    if difference.location in FLAGS:
        return "-"
    high, low = difference.bits.bit_length() - 1, (difference.bits & -difference.bits).bit_length() - 1
    return f"{high}..{low}"


def page() -> str:
    """The text of the page."""
    found: dict[tuple[str, int, str], int] = defaultdict(int)
    for d in differences():
        found[d.mnemonic, d.width, d.location] |= d.bits
    lines = [f"| {m} | {width} | {where} | {_span(Difference(m, width, where, bits))} |" for (m, width, where), bits in found.items()]
    return HEAD + "\n".join(["| mnemonic | width | differs in | bits |", "| --- | ---: | --- | --- |", *lines, ""])

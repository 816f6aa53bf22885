"""
May one window replace another? The answer of the prover, and where that is no, a state that shows it, seen in the emulator.

Where an instruction has no semantics the emulator alone can still show a difference; it can never show equivalence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ruledb.machine.codec import CodecError, encode
from ruledb.machine.instruction import Instruction, constants_of
from ruledb.machine.registers import FLAG_BIT, FLAGS, N_HARDWARE, RSP, Register, families_of, flags_of, mask_text
from ruledb.machine.states import Words, directed_states
from ruledb.proof.oracle import STATUS_BITS, Oracle, OracleFault
from ruledb.proof.prover import Counterexample, Proved, Prover, Refuted, Undecided
from ruledb.proof.replay import differing, rflags_of
from ruledb.request import runs_alone, unmodelled
from ruledb.search.targets import live_bits

__all__ = ["Answer", "check", "state_json"]

_STATES = 4096


@dataclass(frozen=True, slots=True)
class Answer:
    """
    *verdict* is ``equivalent``, ``different``, ``unknown`` or ``unsupported``.

    Attributes:
        state: The inputs that tell the two apart, as one row of the oracle; None where there is none.
        left, right: The rows after each side.
        confirmed: Whether the emulator saw the difference.

    """

    verdict: str
    reason: str = ""
    state: tuple[int, ...] | None = None
    left: tuple[int, ...] = ()
    right: tuple[int, ...] = ()
    confirmed: bool = False
    proof: Proved | None = None


def check(left: tuple[Instruction, ...], right: tuple[Instruction, ...], live: int, scratch: int, prover: Prover) -> Answer:
    """Whether *right* may replace *left* where *live* is live and *scratch* is dead."""
    if reason := unmodelled(left) or unmodelled(right):
        seen = _search(left, right, live, _rows(left, right)) if runs_alone(left) and runs_alone(right) else None
        return seen or Answer("unsupported", reason)
    match prover.prove(left, right, live, plausible=0, scratch=scratch):
        case Proved() as proof:
            return Answer("equivalent", proof=proof)
        case Undecided(reason, _):
            return Answer("unknown", reason)
        case Refuted(None, reason, _):
            return Answer("different", reason)
        case Refuted(Counterexample() as example, reason, _):
            row = _row(example)
            # A difference that lies in an undefined value shows in some other state, if at all.
            seen = _search(left, right, live, row) or _search(left, right, live, _rows(left, right, row))
            return seen or Answer("different", f"{reason}, where a value is undefined", tuple(row[0].tolist()))
    raise AssertionError


def _row(example: Counterexample) -> Words:
    row = np.zeros((1, N_HARDWARE + 1), np.uint64)
    for name, value in example.inputs.items():
        if name in FLAGS:
            row[0, N_HARDWARE] |= np.uint64(value << STATUS_BITS[name])
        elif name[0] == "r":
            row[0, int(name[1:])] = value
    return row


def _rows(left: Sequence[Instruction], right: Sequence[Instruction], near: Words | None = None) -> Words:
    """Directed states; half of them with the registers of *near* where the two sides read them."""
    special = [c for c in constants_of((*left, *right)) if isinstance(c, int)]
    states = directed_states(N_HARDWARE, (), _STATES, special)
    rows = np.zeros((_STATES, N_HARDWARE + 1), np.uint64)
    rows[:, :N_HARDWARE] = states.registers.T
    rows[:, N_HARDWARE] = rflags_of(states.flags)
    if near is not None:
        rng = np.random.default_rng(3)
        keep = rng.random((_STATES, N_HARDWARE)) < 0.7
        rows[:, :N_HARDWARE] = np.where(keep, near[0, :N_HARDWARE], rows[:, :N_HARDWARE])
    return rows


def _search(left: Sequence[Instruction], right: Sequence[Instruction], live: int, rows: Words) -> Answer | None:
    """The first of *rows* on which the emulator sees a live location differ."""
    oracle = Oracle()
    try:
        one, other = (oracle.run(b"".join(map(encode, side)), rows) for side in (left, right))
    except (CodecError, OracleFault):
        return None
    found, first = differing(one, other, live)
    if not found:
        return None
    return Answer(
        "different",
        f"differs in {mask_text(found)}",
        tuple(rows[first].tolist()),
        tuple(one[first].tolist()),
        tuple(other[first].tolist()),
        confirmed=True,
    )


def state_json(row: Sequence[int], mask: int | None = None) -> dict[str, Any]:
    """A row by names: registers in hexadecimal, flags as 0 and 1; with *mask* only its live parts."""
    registers: dict[str, str] = {}
    for family in range(N_HARDWARE) if mask is None else families_of(mask):
        if family < N_HARDWARE and (mask is not None or row[family] or family == RSP):
            bits = (1 << 64) - 1 if mask is None else live_bits(mask, family)
            registers[str(Register(family, 64))] = hex(row[family] & bits)
    names = FLAGS if mask is None else flags_of(mask)
    return {
        "regs": registers,
        "flags": {f: row[N_HARDWARE] >> STATUS_BITS[f] & 1 for f in names if mask is None or mask & FLAG_BIT[f]},
        "memory": {},
    }

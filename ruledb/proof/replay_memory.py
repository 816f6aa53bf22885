"""
Both sides in the emulator with memory: the window first, in memory without end, then its replacement with only the pages that the window
touched. What differs is a mask of locations, effects included.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ruledb.machine.codec import encode, encode_at
from ruledb.machine.instruction import Instruction, Label, Mem, Operand
from ruledb.machine.policy import STRICT, Conditions
from ruledb.machine.registers import ACCESSES, FAULTS, MEMORY, RSP, TAKEN
from ruledb.machine.states import Words
from ruledb.proof.differing import differing
from ruledb.proof.oracle import PAGE_BYTES, TAKEN_OFFSET, Content, Oracle, Run

__all__ = ["Pair", "needs_memory", "run_pair", "window_code"]

Access = tuple[bool, int, int, int]


def needs_memory(*sides: Sequence[Instruction]) -> bool:
    """Whether the bytes of any side access memory, jump, or name their own address: whether it takes `Oracle.run_in_memory` to run them."""
    operands = [o for side in sides for i in side for o in i.operands if i.mnemonic != "nop"]
    implicit = any(i.mnemonic in _IMPLICIT for side in sides for i in side)
    return implicit or any(isinstance(o, Label) or (isinstance(o, Mem) and (o.width > 0 or o.rip)) for o in operands)


_IMPLICIT = frozenset({"push", "pop", "leave", "div", "idiv"})
"""Mnemonics that access memory without an operand that says so, or trap."""


def window_code(instructions: Sequence[Instruction], image: int = 0) -> bytes:
    """
    The bytes of concrete *instructions*; a closing jump goes `TAKEN_OFFSET` behind the end, jumps before it by offsets in the window.

    Rip-relative operands become absolute ones at *image* plus their address: the emulator's code is elsewhere.

    Raises:
        CodecError: An instruction has no encoding, or an address does not fit.

    """
    code = b""
    for number, instruction in enumerate(instructions):
        placed = Instruction(instruction.mnemonic, tuple(_placed(o, image) for o in instruction.operands))
        if not any(isinstance(o, Label) for o in placed.operands):
            code += encode(placed)
        elif number < len(instructions) - 1:
            code += encode_at(placed, len(code))
        else:
            code += encode_at(Instruction(placed.mnemonic, (Label(hex(len(code) + _SHORT_JUMP + TAKEN_OFFSET)),)), len(code))
    return code


_SHORT_JUMP = 2
"""Bytes of a conditional jump over a short distance."""


def _placed(operand: Operand, image: int) -> Operand:
    if isinstance(operand, Mem) and operand.rip and isinstance(operand.displacement, int):
        return replace(operand, rip=False, displacement=operand.displacement + image)
    return operand


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs from one state, the locations in which they differ, and the bytes that do, by address: before, left, right."""

    left: Run
    right: Run
    differing: int
    bytes_differing: dict[int, tuple[int, int, int]] = field(default_factory=dict)


def run_pair(
    oracle: Oracle, codes: tuple[bytes, bytes], row: Words, content: Content, mask: int, conditions: Conditions | None = STRICT
) -> Pair | None:
    """
    Both codes from *row*, and in what they differ; None where the first one faults, so that nothing can be said.

    Args:
        mask: Locations over hardware families that count; effects do if they are in it.
        conditions: Which bytes below rsp do not count, and whether both must perform the same accesses. None: whatever they access.

    """
    left = oracle.run_in_memory(codes[0], row, content)
    if left.fault:
        return None
    right = oracle.run_in_memory(codes[1], row, content, left.pages.keys())
    if right.fault:
        return Pair(left, right, FAULTS & mask)
    found, _ = differing(left.state[None], right.state[None], mask)
    top = int(row[RSP])
    changed = _changed(left, right, content) if mask & MEMORY else {}
    if conditions is not None:
        changed = {a: v for a, v in changed.items() if not top - conditions.dead_bytes <= a < top}
        is_strict = conditions.policy == "strict"
        one, other = (_outside(run.accesses, top - conditions.private_bytes, top) for run in (left, right))
        found |= ACCESSES & mask if is_strict and one != other else 0
    found |= MEMORY & mask if changed else 0
    found |= TAKEN & mask if left.is_taken != right.is_taken else 0
    return Pair(left, right, found, changed)


def _outside(accesses: Sequence[Access], start: int, end: int) -> list[Access]:
    """The accesses that do not lie in [start, end)."""
    return [a for a in accesses if not start <= a[1] < end]


def _changed(left: Run, right: Run, content: Content) -> dict[int, tuple[int, int, int]]:
    """Bytes that hold another value in the end: what they held before, and on either side."""
    changed: dict[int, tuple[int, int, int]] = {}
    for page, data in left.pages.items():
        before = content(page)
        other = right.pages.get(page, before)
        if data != other:
            one, two = np.frombuffer(data, np.uint8), np.frombuffer(other, np.uint8)
            changed |= {page * PAGE_BYTES + int(i): (before[int(i)], int(one[i]), int(two[i])) for i in np.flatnonzero(one != two)}
    return changed

"""
What blocks do to liveness as a whole: what they read before they overwrite it, and what they leave as it was.

Each instruction has a *role*: its form as it is, or what the convention makes of it. Effects go by role, so that they take no
room for each instruction.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ruledb.machine.codec import decode
from ruledb.machine.encodings import Numbers, Tables
from ruledb.machine.flowgraph import Values
from ruledb.machine.instruction import Mem
from ruledb.machine.listing import Indices, Listing, Marks, Masks
from ruledb.machine.registers import ALL_FLAGS, ALL_REGISTERS, FLAG_SHIFT, RBP, RSP, Register, family_mask

__all__ = ["CALL", "FAULT", "KNOWN_CALL", "LOST_CALL", "Roles", "backwards", "returns_elsewhere", "roles_of", "transfers"]

_STACK = family_mask(RSP)
_RSP, _WHOLE = np.uint64(_STACK), np.uint64(ALL_REGISTERS)
_FLAGS = np.uint8(ALL_FLAGS >> FLAG_SHIFT)

FAULT, CALL, LOST_CALL, KNOWN_CALL, N_KINDS = 1, 2, 3, 4, 5
"""
Kinds of roles: the instruction may raise an exception; it is a call; it is a call of which nothing is known; it is one of
which all is known, so that it reads what its callee's code does.
"""


@dataclass(frozen=True)
class Roles:
    """
    *role*: each instruction's. By role: what it *reads*, and *assumed* to be read by convention, and what it *keeps*; the
    same for flags.
    """

    role: Numbers
    reads: Masks
    assumed: Masks
    keeps: Masks
    reads_flags: NDArray[np.uint8]
    keeps_flags: NDArray[np.uint8]

    def before(self, index: Indices, live: Masks, flags: NDArray[np.uint8]) -> tuple[Masks, NDArray[np.uint8]]:
        """What is live before the instructions *index*, where *live* and *flags* are so behind them."""
        role = self.role[index]
        return self.reads[role] | live & self.keeps[role], self.reads_flags[role] | flags & self.keeps_flags[role]

    def with_assumed(self) -> "Roles":
        """The same, where what is assumed to be read counts as read."""
        return replace(self, reads=self.reads | self.assumed)


def roles_of(tables: Tables, form: Numbers, kinds: list[tuple[int, Indices]], call_reads: int) -> Roles:
    """
    The roles of instructions of the forms *form*. *kinds* are pairs of a kind and the indices of its instructions, of which
    the last one counts; calls are assumed to read *call_reads*.
    """
    n = len(tables.reads)
    role = form.copy()
    for kind, index in kinds:
        role[index] = form[index] + kind * n
    reads, keeps = np.tile(tables.reads, N_KINDS), np.tile(~tables.kills, N_KINDS)
    reads_flags, keeps_flags = np.tile(tables.reads_flags, N_KINDS), np.tile(~tables.kills_flags & _FLAGS, N_KINDS)
    of_faults, of_calls, of_lost_calls, of_known = (slice(kind * n, kind * n + n) for kind in (FAULT, CALL, LOST_CALL, KNOWN_CALL))
    reads[of_faults] = reads[of_lost_calls] = _WHOLE
    reads_flags[of_lost_calls] = _FLAGS
    assumed = np.zeros(N_KINDS * n, dtype=np.uint64)
    for calls, by_convention in ((of_calls, call_reads), (of_lost_calls, call_reads), (of_known, 0)):
        keeps[calls], keeps_flags[calls], assumed[calls] = _WHOLE, 0, by_convention
    return Roles(role, reads, assumed, keeps, reads_flags, keeps_flags)


def transfers(roles: Roles, first: Indices, stop: Indices) -> tuple[Values, Masks, NDArray[np.uint8]]:
    """
    Of each block from *first* to *stop*, what it reads before it overwrites it, the registers that it keeps, and the flags
    that it keeps but for a call at its end.
    """
    n = len(first)
    made = Values(np.zeros(n, np.uint64), np.zeros(n, np.uint64), np.zeros(n, np.uint8))
    through, ahead = np.full(n, _WHOLE), np.full(n, _FLAGS)
    passes = roles.keeps_flags.copy()
    passes[CALL * (len(passes) // N_KINDS) :] = _FLAGS
    for block, index in backwards(first, stop):
        role = roles.role[index]
        keeps, keeps_flags = roles.keeps[role], roles.keeps_flags[role]
        made.seen[block] = roles.reads[role] | (made.seen[block] & keeps)
        made.assumed[block] = roles.assumed[role] | (made.assumed[block] & keeps)
        made.flags[block] = roles.reads_flags[role] | (made.flags[block] & keeps_flags)
        through[block] &= keeps
        ahead[block] &= passes[role]
    made.seen[:] |= _RSP
    return made, through, ahead


def backwards(first: Indices, stop: Indices) -> Iterator[tuple[Indices, Indices]]:
    """
    The instructions of all blocks, from the last to the first: at each step, one of each block that has so many. Yields the
    numbers of the blocks and the indices of the instructions.
    """
    order = np.argsort(first - stop, kind="stable")  # the longest block first
    shortness = (first - stop)[order]
    for step in range(int(-shortness[0]) if len(order) else 0):
        block = order[: np.searchsorted(shortness, -step)]
        yield block, stop[block] - 1 - step


_POINTER = (Register(RSP, 64), Register(RBP, 64))


def returns_elsewhere(listing: Listing, first: Indices, stop: Indices, is_return: Marks) -> Marks:
    """
    Which blocks return to an address that their own code may put there: they push more than they pop, take rsp from
    somewhere else than rbp, or store to [rsp].
    """
    traits = {number: _stack_trait(listing.encodings.codes[number]) for number in _in_blocks(listing, first[is_return], stop[is_return])}
    pushes, moves = np.zeros(len(listing.encodings.codes), dtype=np.int64), np.zeros(len(listing.encodings.codes), dtype=np.bool_)
    for number, (push, move) in traits.items():
        pushes[number], moves[number] = push, move
    found = np.zeros(len(first), dtype=np.bool_)
    if is_return.any():
        bounds = np.stack([first[is_return], stop[is_return]], axis=1).ravel()
        n_pushed = np.add.reduceat(np.append(pushes[listing.encoding], 0), bounds)[::2]
        has_moves = np.logical_or.reduceat(np.append(moves[listing.encoding], False), bounds)[::2]
        found[is_return] = (n_pushed > 0) | has_moves
    return found


def _in_blocks(listing: Listing, first: Indices, stop: Indices) -> list[int]:
    """Numbers of the encodings within these blocks that may change the stack pointer or store."""
    tables = listing.encodings.tables
    marks = np.zeros(len(listing) + 1, dtype=np.int64)
    np.add.at(marks, first, 1)
    np.add.at(marks, stop, -1)
    numbers = np.unique(listing.encoding[np.cumsum(marks)[:-1] > 0])
    matters = tables.touches_memory | (tables.reads & _RSP != 0) | (tables.kills & _RSP != 0)
    return numbers[matters[tables.form[numbers]]].tolist()  # type: ignore[no-any-return]  # integers


def _stack_trait(code: bytes) -> tuple[int, bool]:
    """How many words an instruction pushes, and whether it may put another return address in place."""
    decoded = next(decode(code))
    if not decoded.writes & _STACK and not decoded.stores:
        return 0, False
    value = decoded.instruction
    operands = value.operands
    moves = value.mnemonic in ("mov", "xchg") and _POINTER[0] in operands and operands[1] not in _POINTER
    to_top = decoded.stores and bool(operands) and isinstance(operands[0], Mem) and operands[0].base == _POINTER[0]
    stores = to_top and isinstance(operands[0], Mem) and operands[0].displacement == 0
    return (value.mnemonic == "push") - (value.mnemonic == "pop"), moves or stores

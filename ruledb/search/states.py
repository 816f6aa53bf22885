"""
Test states: concrete machine states on which sequences are run.

`Universe` says which registers a search may use; its families are *slots* 0, 1, …. States are columns: slot i
of state k is ``registers[i, k]``. The first two states make fingerprints. They are random, with every condition
but overflow true in one and false in the other. The next eight are *directed*: equal registers, zero, small values, sign and
carry both ways; a candidate may be dropped as a copy of another only if they agree on all ten.

Constants are inputs that no candidate can overwrite. Their values here fit eight signed bits, so that every domain holds them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ruledb.machine.constant import Constant, evaluate
from ruledb.machine.registers import RAX, RBX, RCX, RDX, RSI

__all__ = ["N_FINGERPRINT", "N_STATES", "UNIVERSES", "Flags", "States", "Words", "directed_states", "poison", "search_states"]

Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.uint8]

N_FINGERPRINT = 2
N_STATES = 10
N_CONSTANTS = 4

UNIVERSES = {1: (RAX,), 2: (RAX, RCX), 3: (RAX, RDX, RCX), 4: (RAX, RDX, RBX, RCX), 5: (RAX, RDX, RBX, RSI, RCX)}
"""Families of a search by number of registers: rax and rdx first and rcx last, where implicit operands want them."""

_SEED = 20060


@dataclass(frozen=True, slots=True)
class States:
    """
    *n* states as columns: *registers* ``uint64[slots, n]``, *flags* ``uint8[n]``, *constants* ``uint64[symbols, n]``.

    *poison* ``uint64[n]`` is what undefined outputs read as.
    """

    registers: Words
    flags: Flags
    constants: Words
    poison: Words

    @property
    def n(self) -> int:
        """Number of states."""
        return int(self.flags.shape[0])

    def constant(self, constant: Constant) -> Words:
        """Value of *constant* in each state, as 64-bit words."""
        if isinstance(constant, int):
            return np.full(self.n, constant & (1 << 64) - 1, np.uint64)
        columns = self.constants.astype(np.int64).T.tolist()
        return np.array([_total(constant, column) & (1 << 64) - 1 for column in columns], np.uint64)


def _total(constant: Constant, values: Sequence[int]) -> int:
    """The constant's value, 0 where it has none: such a state tells nothing, and the proof guards it."""
    try:
        return evaluate(constant, values)
    except ValueError:
        return 0


def poison(n: int) -> Words:
    """Fixed pseudo-random words for undefined outputs in *n* states."""
    return np.random.default_rng(_SEED + 1).integers(0, 1 << 64, n, np.uint64, endpoint=False)


def search_states(n_slots: int) -> States:
    """The `N_STATES` states of every search over *n_slots* registers: the first `N_FINGERPRINT` make fingerprints."""
    rng = np.random.default_rng(_SEED)
    registers = rng.integers(0, 1 << 64, (8, N_STATES), np.uint64, endpoint=False)
    small = rng.integers(0, 40, (8, N_STATES), np.uint64)
    top = np.uint64(1 << 63)
    registers[:, 2] = registers[0, 2]  # all equal
    registers[:, 3] = 0
    registers[:, 4] = small[:, 4]
    registers[0::2, 5], registers[1::2, 5] = top, 1
    registers[:, 6] = small[:, 6] - np.uint64(20)  # small, of both signs
    registers[:, 7] = registers[:, 7] >> np.uint64(32)  # upper halves zero
    registers[1::2, 8] = registers[0, 8] + np.uint64(1)
    registers[:, 9] |= np.uint64(0x80000080)
    registers[0, 9] ^= np.uint64(0xFFFFFFFF00000000)
    flags = np.array([0b011111, 0b000000, 0b100011, 0b001000, 0b110000, 0b010110, 0b101001, 0b000000, 0b011100, 0b111111], np.uint8)
    constants = rng.integers(-128, 128, (N_CONSTANTS, N_STATES))
    constants[:2, :6] = [[29, -77, 5, 2, 31, -3], [83, -102, 5, 17, -128, 7]]
    constants[:, 6] = 64
    return States(registers[:n_slots].copy(), flags, constants.astype(np.uint64), poison(N_STATES))


_EDGES = (
    0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000,
    0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF, 1 << 63, (1 << 64) - 1, (1 << 64) - 2,
    0x00FF00FF00FF00FF, 0xFFFFFF80, 0xFFFF8000, 0xFFFFFFFFFFFFFF80, 0xFFFFFFFF80000000, 0x5555555555555555, 0xAAAAAAAA,
)  # fmt: skip


def directed_states(n_slots: int, bits: Sequence[int], n: int = 320) -> States:
    """
    *n* states for testing a match before the solver sees it: edge values, equal and neighbouring registers, random ones.

    Args:
        bits: Domain of each constant symbol, in bits.
    """
    rng = np.random.default_rng(_SEED + 2)
    edges = np.array(_EDGES, np.uint64)
    registers = rng.integers(0, 1 << 64, (n_slots, n), np.uint64, endpoint=False)
    kind = rng.integers(0, 8, (n_slots, n))
    registers = np.where(kind < 3, edges[rng.integers(0, len(edges), (n_slots, n))], registers)
    registers = np.where(kind == 3, registers >> rng.integers(0, 64, (n_slots, n), np.uint64), registers)
    for slot in range(1, n_slots):  # equal to, or next to, an earlier register
        other = registers[rng.integers(0, slot, n), np.arange(n)]
        registers[slot] = np.where(kind[slot] == 4, other, np.where(kind[slot] == 5, other + rng.integers(-2, 3, n).astype(np.uint64), registers[slot]))
    registers[:, 0] = 0
    constants = np.zeros((len(bits), n), np.int64)
    for i, width in enumerate(bits):
        low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
        wild = rng.integers(low, high, n, endpoint=True)
        tame = rng.integers(-16, 65, n)
        extreme = np.array([low, high, low + 1, -1, 0, 1, 2, high >> 1])[rng.integers(0, 8, n)]
        power = np.left_shift(np.int64(1), rng.integers(0, width - 1, n))
        constants[i] = np.choose(rng.integers(0, 4, n), [wild, np.clip(tame, low, high), extreme, power])
        if i:
            constants[i] = np.where(rng.integers(0, 6, n) == 0, np.clip(constants[0], low, high), constants[i])
    flags = rng.integers(0, 64, n, np.uint8)
    return States(registers, flags, constants.astype(np.uint64), poison(n))

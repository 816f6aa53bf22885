"""
The states of the search.

`UNIVERSES` says which registers a search may use; its families are *slots* 0, 1, …. The first two states make
fingerprints, the next two the *sign*, which tells apart what has the same fingerprint. They are random, with conditions that
are true in some and false in others, and with some zeros in the fourth. The other six are *directed*: equal registers, zero,
small values, sign and carry both ways; a candidate may be dropped as a copy of another only if they agree on all.

Constants are inputs that no candidate can overwrite. Their values here fit eight signed bits, so that every domain holds them.
"""

import numpy as np

from ruledb.machine.registers import RAX, RBX, RCX, RDX, RSI
from ruledb.machine.states import SEED, States, poison

__all__ = ["N_CONSTANTS", "N_FINGERPRINT", "N_SIGN", "N_STATES", "UNIVERSES", "search_states"]

N_FINGERPRINT, N_SIGN = 2, 2
"""States that make a fingerprint; the next two make the sign."""

N_STATES = 10
N_CONSTANTS = 4
"""Constant symbols that have values here: a window with more is not searched."""

UNIVERSES = {1: (RAX,), 2: (RAX, RCX), 3: (RAX, RDX, RCX), 4: (RAX, RDX, RBX, RCX), 5: (RAX, RDX, RBX, RSI, RCX)}
"""Families of a search by number of registers: rax and rdx first and rcx last, where implicit operands want them."""


def search_states(n_slots: int) -> States:
    """The `N_STATES` states of every search over *n_slots* registers: the first `N_FINGERPRINT` make fingerprints."""
    rng = np.random.default_rng(SEED)
    registers = rng.integers(0, 1 << 64, (8, N_STATES), np.uint64, endpoint=False)
    small = rng.integers(0, 40, (8, N_STATES), np.uint64)
    top = np.uint64(1 << 63)
    registers[0::2, 2] |= np.uint64(0x80000080)  # signs both ways
    registers[1::2, 2] &= ~np.uint64(0x80000080)
    registers[0, 2] ^= np.uint64(0xFFFFFFFF00000000)
    registers[:, 3] = registers[:, 3] >> np.uint64(32)  # upper halves zero
    registers[:, 2] ^= ~(registers[:, 2] ^ registers[:, 3]) & np.uint64(1)  # odd in one, even in the other
    registers[:, 4] = registers[0, 4]  # all equal
    registers[:, 5] = 0
    registers[:, 6] = small[:, 6]
    registers[0::2, 7], registers[1::2, 7] = top, 1
    registers[:, 8] = small[:, 8] - np.uint64(20)  # small, of both signs
    registers[1::2, 9] = registers[0, 9] + np.uint64(1)
    flags = np.array([0b011111, 0b000000, 0b100101, 0b010110, 0b100011, 0b001000, 0b110000, 0b000000, 0b111111, 0b011100], np.uint8)
    constants = rng.integers(-128, 128, (N_CONSTANTS, N_STATES))
    constants[:2, :2] = [[29, -77], [83, -102]]
    constants[:2, 4:8] = [[5, 2, 31, -3], [5, 17, -128, 7]]
    constants[:, 8] = 64
    return States(registers[:n_slots].copy(), flags, constants.astype(np.uint64), poison(N_STATES))

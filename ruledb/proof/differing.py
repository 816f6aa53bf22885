"""Rows of the emulator compared by location masks, and masks and flags carried over between it and the rest."""

from collections.abc import Sequence

import numpy as np

from ruledb.machine.registers import FLAG_BIT, FLAGS, N_HARDWARE, N_LANES, VIRTUAL, lane_bits
from ruledb.machine.states import Flags, Words
from ruledb.proof.oracle import STATUS_BITS, flag_column, rflags_column

__all__ = ["differing", "hardware_mask", "packed_flags", "rflags_of"]


def hardware_mask(mask: int, families: Sequence[int]) -> int:
    """*mask* with the canonical registers renamed to their hardware *families*."""
    plain = mask & ~(((1 << N_LANES * len(families)) - 1) << (N_LANES * VIRTUAL))
    for k, family in enumerate(families):
        plain |= (mask >> (N_LANES * (VIRTUAL + k)) & 0b1111) << (N_LANES * family)
    return plain


def rflags_of(flags: Flags) -> Words:
    """The oracle's rflags column of packed flags (bit i is flag i of `FLAGS`)."""
    return rflags_column({name: flags >> np.uint8(i) & np.uint8(1) for i, name in enumerate(FLAGS)}, flags.shape[0])


def packed_flags(rows: Words) -> Flags:
    """Packed flags of the oracle's rows."""
    packed = sum(flag_column(rows, name) << np.uint64(i) for i, name in enumerate(FLAGS))
    return np.asarray(packed, np.uint8)


def differing(left: Words, right: Words, mask: int) -> tuple[int, int]:
    """Locations of *mask* (hardware families) in which any row of the oracle differs, and the first such row."""
    found, first = 0, left.shape[0]
    for family in range(N_HARDWARE):
        for lane, (low, n) in enumerate(lane_bits):
            bit = 1 << (N_LANES * family + lane)
            if mask & bit:
                rows = np.flatnonzero((left[:, family] ^ right[:, family]) >> np.uint64(low) & np.uint64((1 << n) - 1))
                if rows.size:
                    found, first = found | bit, min(first, int(rows[0]))
    for name in FLAGS:
        if mask & FLAG_BIT[name]:
            rows = np.flatnonzero((left[:, 16] ^ right[:, 16]) >> np.uint64(STATUS_BITS[name]) & np.uint64(1))
            if rows.size:
                found, first = found | FLAG_BIT[name], min(first, int(rows[0]))
    return found, first

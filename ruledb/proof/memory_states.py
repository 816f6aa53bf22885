"""
States for runs in memory: pointers that are equal, overlap by some bytes, or lie far apart, and what memory holds.

Memory is a mixing function of page and seed: any address can be read. Every other word of it is itself a pointer.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from ruledb.machine.canonical import IMPLICIT
from ruledb.machine.instruction import Instruction, Mem
from ruledb.machine.registers import N_HARDWARE, RBP, RSP
from ruledb.machine.states import SEED, Words
from ruledb.proof.oracle import PAGE_BYTES, Content

__all__ = ["content", "pointer_rows"]

_ANCHORS = np.array([0x2000_0000_0800, 0x2000_0000_0FFC, 0x2100_0000_0800, 0x2200_0000_0800], np.uint64)
"""Where pointers point: the second one to the end of the first one's page."""

_OVERLAPS = (0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 24, 64)


@lru_cache(maxsize=4096)
def _page(number: int, seed: int) -> bytes:
    rng = np.random.default_rng((SEED, seed, number))
    words = rng.integers(0, 1 << 64, PAGE_BYTES // 8, np.uint64, endpoint=False)
    words[::2] = _ANCHORS[rng.integers(0, len(_ANCHORS), words.size // 2)] + rng.integers(0, 64, words.size // 2, np.uint64)
    return words.tobytes()


def content(seed: int, cells: Mapping[int, int]) -> Content:
    """Memory of mixed bytes; *cells* says what single bytes hold, by address."""

    def page(number: int) -> bytes:
        data = bytearray(_page(number, seed))
        for address, value in cells.items():
            if address // PAGE_BYTES == number:
                data[address % PAGE_BYTES] = value
        return bytes(data)

    return page


def _addressing(instructions: Sequence[Instruction]) -> tuple[set[int], set[int], set[int]]:
    """Families that are bases, families that are indexes, and the displacements."""
    memories = [o for i in instructions for o in i.operands if isinstance(o, Mem)]
    bases = {m.base.family for m in memories if m.base is not None}
    bases |= {f for i in instructions for f in IMPLICIT.get(i.mnemonic, ()) if f in (RSP, RBP)}
    indexes = {m.index.family for m in memories if m.index is not None}
    return bases, indexes, {m.displacement for m in memories if isinstance(m.displacement, int)}


def pointer_rows(rows: Words, instructions: Sequence[Instruction], apart: Callable[[int], bool] = lambda _: False) -> Words:
    """
    *rows* with pointers in the registers that concrete *instructions* address memory with, and in some others.

    Args:
        apart: Whether a family must point to where no other does.

    """
    rng = np.random.default_rng(SEED + 3)
    result, n = rows.copy(), rows.shape[0]
    bases, indexes, displacements = _addressing(instructions)
    gaps = [a - b for a in sorted(displacements)[:8] for b in sorted(displacements)[:8]]
    offsets = np.array([*_OVERLAPS, *(-o for o in _OVERLAPS), *gaps, *gaps], np.int64).astype(np.uint64)
    together = rng.integers(0, 3, n) > 0
    first = rng.integers(0, 2, n)
    for family in range(N_HARDWARE):
        anchors = np.where(together, first, rng.integers(0, len(_ANCHORS), n))
        pointers = _ANCHORS[anchors] + offsets[rng.integers(0, len(offsets), n)]
        if apart(family):
            pointers = np.uint64(0x2300_0000_0800) + offsets[rng.integers(0, 3, n)]
        small = rng.integers(-8, 64, n).astype(np.uint64)
        kind = rng.integers(0, 8, n)
        if family in indexes:
            result[:, family] = np.where(kind > 0, small, pointers)
        elif family in bases or family == RSP:
            result[:, family] = pointers
        else:
            result[:, family] = np.where(kind == 0, pointers, rows[:, family])
    return result

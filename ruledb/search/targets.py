"""
Targets of a search as arrays, and the tables by which candidates find them.

A target probes for its live registers: for one, its fingerprint alone; for several, a pair; with only the
low 8 bits live, a bitmap. What a probe leaves out (further registers, upper halves, flags) is checked on all
ten states by `Targets.agreeing`: a probe may find too much, never too little.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ruledb.machine.instruction import Instruction
from ruledb.machine.registers import FLAG_SHIFT, N_LANES, lane_bits
from ruledb.machine.states import Flags, Words
from ruledb.search.level import mix
from ruledb.search.scan import ALONE, LOW8

__all__ = ["Table", "Target", "Targets", "live_bits", "low_bytes"]

Index = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Target:
    """
    A sequence to improve, over a search's families and with constant symbols.

    Attributes:
        live: Lanes (hardware families) and flags that must agree.
        writes: Families that a replacement may write.
        fixed: Families that the canonical form names.
        n_symbols: Number of constant symbols.
        cost: (bytes, cycles as a plain sum, µops), to be beaten in one of them.
        name: The caller's key.

    """

    instructions: tuple[Instruction, ...]
    live: int
    writes: frozenset[int]
    fixed: frozenset[int]
    n_symbols: int
    cost: tuple[int, int, int]
    name: str


def live_bits(live: int, family: int) -> int:
    """The 64-bit mask of the live bits of *family* in the location mask *live*."""
    lanes = live >> (N_LANES * family) & 0b1111
    return sum(((1 << n) - 1) << low for lane, (low, n) in enumerate(lane_bits) if lanes >> lane & 1)


def low_bytes(packed: Words) -> Words:
    """The low 8 bits of both halves of packed values, side by side: 16 bits."""
    return (packed & np.uint64(0xFF)) | ((packed >> np.uint64(24)) & np.uint64(0xFF00))


@dataclass(frozen=True, slots=True)
class Table:
    """
    The look-up tables of one level's search.

    Attributes:
        keys, targets: Fingerprints, sorted, and the target of each.
        words, table_shift: Open-addressed hash table. *filter*, *filter_shift*: its bit filter.
        low8: ``uint64[slots, 1024]``, bit v of row s: some target has the packed low bytes v in slot s.
        probes: For each slot, which probes some target asks of a result in it.

    """

    keys: Words
    targets: Index
    words: Words
    table_shift: int
    filter: Words
    filter_shift: int
    low8: Words
    probes: tuple[int, ...]


class Targets:
    """*T* targets on the search states: *values* ``uint64[slots, states, T]``, *flags* ``uint8[states, T]``, and masks of what is live."""

    def __init__(self, targets: Sequence[Target], families: Sequence[int], values: Words, flags: Flags, keys: Sequence[int]) -> None:
        """*keys*: the fingerprint key of each slot."""
        slots = {f: s for s, f in enumerate(families)}
        self.targets, self.values, self.flags, self.keys = tuple(targets), values, flags, tuple(keys)
        # A register that the pattern leaves alone is never written by a candidate: nothing to compare.
        self.live = np.array([[live_bits(t.live, f) if f in t.writes else 0 for t in targets] for f in families], np.uint64)
        self.live_flags = np.array([t.live >> FLAG_SHIFT & 0b111111 for t in targets], np.uint8)
        self.writes = np.array([sum(1 << slots[f] for f in t.writes) for t in targets], np.uint8)
        self.fixed = np.array([sum(1 << slots[f] for f in t.fixed if f in slots) for t in targets], np.uint8)
        self.symbols = np.array([(1 << t.n_symbols) - 1 for t in targets], np.uint8)
        self.costs = np.array([t.cost for t in targets], np.int32).reshape(len(targets), 3)

    def _packed(self, slot: int) -> Words:
        low = self.values[slot, 0] & np.uint64(0xFFFFFFFF)
        packed: Words = low | (self.values[slot, 1] << np.uint64(32))
        return packed

    @cached_property
    def is_wide(self) -> npt.NDArray[np.bool_]:
        """``[slots, T]``: all of the low 32 bits are live, so that the packed value can be probed."""
        low = np.uint64(0xFFFFFFFF)
        return np.asarray((self.live & low) == low)

    @cached_property
    def is_narrow(self) -> npt.NDArray[np.bool_]:
        """``[slots, T]``: the low 8 bits are live, not all of the low 32."""
        low = np.uint64(0xFF)
        return np.asarray(((self.live & low) == low) & ~self.is_wide)

    def table(self, active: npt.NDArray[np.bool_]) -> Table:
        """The tables of the *active* targets."""
        n_slots = len(self.keys)
        prints = [mix(self._packed(s), self.keys[s]) for s in range(n_slots)]
        count = self.is_wide.sum(axis=0)
        first = np.argmax(self.is_wide, axis=0)
        keys, owners, probes = [], [], [0] * n_slots
        low8 = np.zeros((n_slots, 1024), np.uint64)
        for slot in range(n_slots):
            alone = np.flatnonzero(active & self.is_wide[slot] & (count == 1))
            if alone.size:
                keys.append(prints[slot][alone])
                owners.append(alone)
                probes[slot] |= ALONE
            for other in range(slot):
                # Every live register has a probe that holds it: with the first, or, for the first, with the next.
                pair = np.flatnonzero(active & self.is_wide[slot] & self.is_wide[other] & (first == other))
                if pair.size:
                    keys.append(prints[slot][pair] + prints[other][pair])
                    owners.append(pair)
                    probes[slot] |= ALONE << (1 + other)
                    probes[other] |= ALONE << (1 + slot)
            narrow = np.flatnonzero(active & self.is_narrow[slot])
            if narrow.size:
                small = low_bytes(self._packed(slot)[narrow])
                np.bitwise_or.at(low8[slot], (small >> np.uint64(6)).astype(np.intp), np.uint64(1) << (small & np.uint64(63)))
                keys.append(small | np.uint64(slot << 16))
                owners.append(narrow)
                probes[slot] |= LOW8
        all_keys = np.concatenate([np.zeros(0, np.uint64), *keys])
        all_owners = np.concatenate([np.zeros(0, np.intp), *owners])
        order = np.argsort(all_keys, kind="stable")
        return _table(all_keys[order], all_owners[order], low8, tuple(probes))

    def agreeing(self, values: Words, flags: Flags, pairs: tuple[Index, Index]) -> npt.NDArray[np.bool_]:
        """
        Which *pairs* (result, target) agree in all live locations.

        Args:
            values: ``uint64[slots, states, results]``; *flags* ``uint8[states, results]``.

        """
        result, target = pairs
        alive = np.arange(result.shape[0])
        for k in range(flags.shape[0]):
            i, t = result[alive], target[alive]
            same = ((flags[k, i] ^ self.flags[k, t]) & self.live_flags[t]) == 0
            for slot in range(len(self.keys)):
                same &= ((values[slot, k, i] ^ self.values[slot, k, t]) & self.live[slot, t]) == 0
            alive = alive[same]
        agreed = np.zeros(result.shape[0], bool)
        agreed[alive] = True
        return agreed


def _table(keys: Words, owners: Index, low8: Words, probes: tuple[int, ...]) -> Table:
    """Build hash table and filter over the distinct *keys* (the small ones, of 8-bit probes, are in *low8* already)."""
    distinct = np.unique(keys[keys >= np.uint64(1 << 32)])
    bits = max(10, int(distinct.size * 4).bit_length())
    filter_bits = min(23, max(16, int(distinct.size * 32).bit_length()))
    words = np.zeros((1 << bits) + 64, np.uint64)
    # Keys ascend, and so do their home places: each goes to its own or the next free one behind the last.
    home = (distinct >> np.uint64(64 - bits)).astype(np.int64)
    ordinal = np.arange(distinct.size)
    words[np.maximum.accumulate(home - ordinal) + ordinal] = distinct
    bit = distinct >> np.uint64(64 - filter_bits)
    filter_words = np.zeros(1 << (filter_bits - 6), np.uint64)
    np.bitwise_or.at(filter_words, (bit >> np.uint64(6)).astype(np.intp), np.uint64(1) << (bit & np.uint64(63)))
    return Table(keys, owners, words, 64 - bits, filter_words, 64 - filter_bits, low8, probes)

"""
Targets of a search as arrays, and the tables by which candidates find them.

Targets that want the same values of the same locations, and allow the same, are one *class*: what replaces one replaces
all. A class probes for its live registers: for one, its fingerprint alone; for several, a pair; with only the low 8 bits
live, a bitmap. What a probe leaves out (further registers, upper halves, flags) is checked on all states, by the compiled
`verdict` or by `Targets.agreeing`: a probe may find too much, never too little.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ruledb.machine.instruction import Instruction
from ruledb.machine.registers import FLAG_SHIFT, N_LANES, lane_bits
from ruledb.machine.states import Flags, Words
from ruledb.search.layout import ALONE, CACHE_LINE, COST_GUARD, LOW8, N_FILTER_BIT, cost_word, mask_word
from ruledb.search.level import mix
from ruledb.search.states import N_FINGERPRINT

__all__ = ["LESS_ONE", "Table", "Target", "Targets", "live_bits", "low_bytes"]

Index = npt.NDArray[np.intp]
LESS_ONE = cost_word(1, 1, 1)
_N_SMALL = 1 << 16


@dataclass(frozen=True, slots=True)
class Target:
    """
    A sequence to improve, over a search's families and with constant symbols.

    Attributes:
        live: Lanes (hardware families) and flags that must agree.
        writes: Families that a replacement may write.
        fixed: Families that the canonical form names.
        n_symbols: Number of constant symbols.
        cost: (bytes, cycles as a plain sum, µops), to be beaten in one of them; each below 2²⁰.
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
        keys, owners: Fingerprints, sorted, and the class of each; a probe for low bytes has the key ``slot << 16 | bytes``.
        pairs, shift: Open-addressed hash table of pairs (fingerprint, list). *filter*, *filter_shift*: its bit filter.
        low8: ``uint64[slots, 1024]``, bit v of row s: some class has the packed low bytes v in slot s.
        low8_lists: ``uint64[slots, 65536]``: their lists.
        lists: For each list, at the place that names it, its length and then its classes; 0 names the empty list.
        probes: For each slot, which probes some class asks of a result in it.

    """

    keys: Words
    owners: Index
    pairs: Words
    shift: int
    filter: Words
    filter_shift: int
    low8: Words
    low8_lists: Words
    lists: Words
    probes: tuple[int, ...]


class Targets:
    """
    Classes of *targets* on the search states.

    Attributes:
        of: ``intp[T]``, the class of each target.
        values: ``uint64[slots, states, C]``, zero where nothing is live. *flags*: ``uint8[states, C]``, likewise.
        live: ``uint64[slots, C]``. *live_flags*: ``uint8[C]``.
        forbidden: ``uint64[C]``, what a candidate must not need (`layout.mask_word`).
        costs: ``uint64[C]``, to be beaten in one field: the greatest of each field among the class's targets.

    """

    def __init__(self, targets: Sequence[Target], families: Sequence[int], values: Words, flags: Flags, keys: Sequence[int]) -> None:
        """*values* ``uint64[slots, states, T]``, *flags* ``uint8[states, T]`` of each target; *keys*: the fingerprint key of each slot."""
        self.targets, self.keys = tuple(targets), tuple(keys)
        self.target_costs = np.array([t.cost for t in targets], np.uint64).reshape(len(targets), 3)
        slots = {f: s for s, f in enumerate(families)}
        # A register that the pattern leaves alone is never written by a candidate: nothing to compare.
        live = np.array([[live_bits(t.live, f) if f in t.writes else 0 for t in targets] for f in families], np.uint64)
        live_flags = np.array([t.live >> FLAG_SHIFT & 0b111111 for t in targets], np.uint8)
        forbidden = np.array([_forbidden(t, slots) for t in targets], np.uint64)
        values, flags = values & live[:, None], flags & live_flags
        n_rows = values.shape[0] * values.shape[1]
        described = np.concatenate(
            [live, live_flags[None], forbidden[None], values.reshape(n_rows, len(targets)), flags.astype(np.uint64)], axis=0
        ).astype(np.uint64)
        first, self.of = _distinct(described)
        self.values, self.flags = np.ascontiguousarray(values[:, :, first]), np.ascontiguousarray(flags[:, first])
        self.live, self.live_flags, self.forbidden = live[:, first], live_flags[first], forbidden[first]
        dearest = np.zeros((self.n, 3), np.uint64)
        np.maximum.at(dearest, self.of, self.target_costs)
        self.costs = np.array([cost_word(*c) for c in dearest.tolist()], np.uint64)

    @property
    def n(self) -> int:
        """Number of classes."""
        return int(self.live_flags.shape[0])

    @cached_property
    def records(self) -> Words:
        """``uint64[C, words]``: the classes as the compiled `verdict` reads them."""
        n_slots, n_states, n = self.values.shape
        head = [self.forbidden, self.costs + np.uint64(COST_GUARD - LESS_ONE), self.live_flags.astype(np.uint64)]
        wanted = np.concatenate([self.values, self.flags[None].astype(np.uint64)], axis=0).transpose(2, 1, 0)
        # The fingerprint states come last: there, what is looked at mostly agrees.
        columns = [np.stack(head, axis=1), self.live.T, np.roll(wanted, -N_FINGERPRINT, axis=1).reshape(n, n_states * (n_slots + 1))]
        n_words = sum(c.shape[1] for c in columns)
        return np.concatenate([*columns, np.zeros((n, -n_words % CACHE_LINE), np.uint64)], axis=1)

    def _packed(self, slot: int) -> Words:
        low = self.values[slot, 0] & np.uint64(0xFFFFFFFF)
        packed: Words = low | (self.values[slot, 1] << np.uint64(32))
        return packed

    @cached_property
    def is_wide(self) -> npt.NDArray[np.bool_]:
        """``[slots, C]``: all of the low 32 bits are live, so that the packed value can be probed."""
        low = np.uint64(0xFFFFFFFF)
        return np.asarray((self.live & low) == low)

    @cached_property
    def is_narrow(self) -> npt.NDArray[np.bool_]:
        """``[slots, C]``: the low 8 bits are live, not all of the low 32."""
        low = np.uint64(0xFF)
        return np.asarray(((self.live & low) == low) & ~self.is_wide)

    def table(self, active: npt.NDArray[np.bool_]) -> Table:
        """The tables of the *active* classes."""
        n_slots = len(self.keys)
        prints = [mix(self._packed(s), self.keys[s]) for s in range(n_slots)]
        count = self.is_wide.sum(axis=0)
        first = np.argmax(self.is_wide, axis=0)
        keys, owners, probes = [np.zeros(0, np.uint64)], [np.zeros(0, np.intp)], [0] * n_slots
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
                keys.append(low_bytes(self._packed(slot)[narrow]) | np.uint64(slot << 16))
                owners.append(narrow)
                probes[slot] |= LOW8
        all_keys, all_owners = np.concatenate(keys), np.concatenate(owners)
        order = np.argsort(all_keys, kind="stable")
        return _table(all_keys[order], all_owners[order], tuple(probes))

    def agreeing(self, values: Words, flags: Flags, pairs: tuple[Index, Index], *, with_flags: bool = True) -> npt.NDArray[np.bool_]:
        """
        Which *pairs* (result, class) agree in all live locations.

        Args:
            values: ``uint64[slots, states, results]``; *flags* ``uint8[states, results]``.
            with_flags: Compare the flags, too.

        """
        result, chosen = pairs
        alive = np.arange(result.shape[0])
        for k in range(flags.shape[0]):
            i, c = result[alive], chosen[alive]
            same = ((flags[k, i] ^ self.flags[k, c]) & self.live_flags[c]) == 0 if with_flags else np.ones(i.shape, bool)
            for slot in range(len(self.keys)):
                same &= ((values[slot, k, i] ^ self.values[slot, k, c]) & self.live[slot, c]) == 0
            alive = alive[same]
        agreed = np.zeros(result.shape[0], bool)
        agreed[alive] = True
        return agreed


def _forbidden(target: Target, slots: dict[int, int]) -> int:
    writes, fixed = (sum(1 << slots[f] for f in families if f in slots) for families in (target.writes, target.fixed))
    return mask_word(0xFF, 0xFF, 0xFF) & ~mask_word(writes, fixed, (1 << target.n_symbols) - 1)


def _distinct(columns: Words) -> tuple[Index, Index]:
    """The first of each kind of column of a matrix, and for each column its kind."""
    rows = np.ascontiguousarray(columns.T)
    if not rows.shape[0]:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    whole = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()
    _, first, kinds = np.unique(whole, return_index=True, return_inverse=True)
    return first.astype(np.intp), kinds.ravel().astype(np.intp)


def _lists(keys: Words, owners: Index) -> tuple[Words, Words, Words]:
    """The distinct *keys*, the place of each one's list, and the lists one behind the other."""
    distinct, start, amount = np.unique(keys, return_index=True, return_counts=True)
    places = 1 + start + np.arange(distinct.size)
    lists = np.zeros(1 + keys.size + distinct.size, np.uint64)
    lists[places] = amount
    lists[1 + np.arange(keys.size) + np.repeat(np.arange(1, distinct.size + 1), amount)] = owners
    return distinct, places.astype(np.uint64), lists


def _table(keys: Words, owners: Index, probes: tuple[int, ...]) -> Table:
    """Build hash table, filter and bitmap over the sorted *keys*."""
    distinct, places, lists = _lists(keys, owners)
    n_slots = len(probes)
    n_small = int(np.searchsorted(distinct, np.uint64(n_slots << 16)))
    small, large = distinct[:n_small], distinct[n_small:]
    low8_lists = np.zeros(n_slots * _N_SMALL, np.uint64)
    low8_lists[small] = places[:n_small]
    low8 = np.packbits(low8_lists != 0, bitorder="little").view(np.uint64)
    bits = max(10, int(large.size * 2).bit_length())
    pairs = np.zeros(((1 << bits) + large.size + 1, 2), np.uint64)
    # Keys ascend, and so do their home places: each goes to its own or the next free one behind the last.
    home = (large >> np.uint64(64 - bits)).astype(np.int64)
    ordinal = np.arange(large.size)
    at = np.maximum.accumulate(home - ordinal) + ordinal
    pairs[at, 0], pairs[at, 1] = large, places[n_small:]
    filter_bits = min(17, max(10, int(large.size // 4).bit_length()))
    filter_words = np.zeros(1 << filter_bits, np.uint64)
    marks = [np.uint64(1) << (large >> np.uint64(n) & np.uint64(63)) for n in N_FILTER_BIT]
    np.bitwise_or.at(filter_words, (large >> np.uint64(64 - filter_bits)).astype(np.intp), marks[0] | marks[1])
    return Table(
        keys, owners, pairs.ravel(), 64 - bits, filter_words, 64 - filter_bits, low8.reshape(n_slots, 1024),
        low8_lists.reshape(n_slots, _N_SMALL), lists, probes,
    )  # fmt: skip

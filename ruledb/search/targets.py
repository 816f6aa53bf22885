"""
Targets of a search as arrays, and the tables by which candidates find them.

Targets that want the same values of the same locations, and allow the same, are one *class*: what replaces one replaces
all. A class probes for its live registers: for one, its fingerprint alone; for several, a pair; with only the low 8 bits
live, a bitmap. What a probe leaves out (further registers, upper halves, flags) is checked on all states, by the compiled
`verdict` or by `Targets.agreeing`: a probe may find too much, never too little.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ruledb.machine.instruction import Instruction
from ruledb.machine.registers import FLAG_SHIFT, N_LANES, lane_bits
from ruledb.machine.states import Flags, Words
from ruledb.search.layout import ALONE, COST_GUARD, ENTRY, HEAD, LOW8, N_FILTER_BIT, cost_word, mask_word
from ruledb.search.level import mix
from ruledb.search.loops import ROW
from ruledb.search.states import N_FINGERPRINT, N_SIGN

__all__ = ["LESS_ONE", "Table", "Target", "Targets", "live_bits", "low_bytes"]

Index = npt.NDArray[np.intp]
LESS_ONE = cost_word(1, 1, 1)
_N_SMALL = 1 << 16
_FILTER_BITS = 17
"""At most so many bits number the filter's words: half a megabyte stays in the second-level cache."""


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
        low8: ``uint32[slots, 2048]``, bit v of row s: some class has the packed low bytes v in slot s.
        low8_lists: ``uint64[slots, 65536]``: their lists.
        lists: Lists as `layout.PARAMETERS` has them, each at the place that names it; 0 names the empty list.
        probes: For each slot, which probes some class asks of a result in it.

    """

    keys: Words
    owners: Index
    pairs: Words
    shift: int
    filter: npt.NDArray[np.uint32]
    filter_shift: int
    low8: npt.NDArray[np.uint32]
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

    def __init__(self, targets: Sequence[Target], families: Sequence[int], values: Words, flags: Flags, keys: Words) -> None:
        """*values* ``uint64[slots, states, T]``, *flags* ``uint8[states, T]`` of each target; *keys*: see `layout.PARAMETERS`."""
        self.targets, self.keys = tuple(targets), keys
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
        """``uint64[C, states, 8]``: the classes as the compiled `verdict` reads them."""
        rows = _rows(self.values, self.flags)
        # The fingerprint states come last: there, what is looked at mostly agrees.
        return np.ascontiguousarray(np.roll(rows.transpose(2, 1, 0), -N_FINGERPRINT, axis=1))

    @cached_property
    def dearest(self) -> Words:
        """``uint64[C]``: the costs as the compiled `verdict` compares them."""
        return self.costs + np.uint64(COST_GUARD - LESS_ONE)

    @cached_property
    def kinds(self) -> tuple[Words, Words, Index]:
        """``uint64[kinds, 8]``, a row of live bits of each; ``uint64[kinds]``, what it forbids; and for each class its kind."""
        live = _rows(self.live, self.live_flags)
        described = np.concatenate([live, self.forbidden[None]])
        first, kinds = _distinct(described)
        return np.ascontiguousarray(live[:, first].T), self.forbidden[first], kinds

    @cached_property
    def signed(self) -> Words:
        """``uint64[kinds, 4]``: where the live lanes of each kind are in a sign."""
        return _halves(self.kinds[0], _whole)

    @cached_property
    def entries(self) -> Words:
        """``uint64[C, 5]``: what a list says of each class (`layout.ENTRY`)."""
        numbers = np.arange(self.n, dtype=np.uint64) | self.kinds[2].astype(np.uint64) << np.uint64(32)
        first, second = (_rows(self.values[:, k], self.flags[k]).T for k in range(N_FINGERPRINT, N_FINGERPRINT + N_SIGN))
        return np.concatenate([numbers[:, None], _signs(first, second)], axis=1)

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
        n_slots = self.live.shape[0]
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
        order = np.lexsort((self.kinds[2][all_owners], all_keys))
        return self._table(all_keys[order], all_owners[order], tuple(probes))

    def _table(self, keys: Words, owners: Index, probes: tuple[int, ...]) -> Table:
        """Hash table, filter, bitmap and lists over the sorted *keys*."""
        distinct, start, amount = np.unique(keys, return_index=True, return_counts=True)
        places, lists = _lists(self.entries[owners], self.forbidden[owners], start, amount)
        n_slots = len(probes)
        n_small = int(np.searchsorted(distinct, np.uint64(n_slots << 16)))
        low8_lists = np.zeros(n_slots * _N_SMALL, np.uint64)
        low8_lists[distinct[:n_small]] = places[:n_small]
        low8 = np.packbits(low8_lists != 0, bitorder="little").view(np.uint32)
        large = distinct[n_small:]
        return Table(
            keys, owners, *_pairs(large, places[n_small:]), *_filter(large), low8.reshape(n_slots, _N_SMALL // 32),
            low8_lists.reshape(n_slots, _N_SMALL), lists, probes,
        )  # fmt: skip

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
            for slot in range(self.live.shape[0]):
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


def _rows(values: Words, flags: Flags) -> Words:
    """``uint64[8, …]`` of values ``[slots, …]`` and flags ``[…]``."""
    rows = np.zeros((ROW, *flags.shape), np.uint64)
    rows[: values.shape[0]], rows[-1] = values, flags
    return rows


def _signs(first: Words, second: Words) -> Words:
    """``uint64[n, 4]``: of rows ``uint64[n, 8]`` on the states of the sign, what `loops.Code.digest` makes of them."""

    def folded(lane: Words) -> Words:
        """Eight bits of a lane of sixteen or thirty-two."""
        lane = lane ^ lane >> np.uint64(16)
        byte: Words = (lane ^ lane >> np.uint64(8)) & np.uint64(0xFF)
        return byte

    other = _halves(second, folded)
    turned = (other << np.uint64(4)) & np.uint64(0xF0F0F0F0F0F0F0F0) | (other >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    # A mask of live flags holds for flags that stay where they are.
    turned[:, -1] = turned[:, -1] & np.uint64(0xFFFFFFFF) | other[:, -1] & np.uint64(0xFFFFFFFF00000000)
    return _halves(first, folded) ^ turned


def _whole(lane: Words) -> Words:
    """Eight bits where a lane's bits are live, all or none."""
    return np.where(lane != 0, np.uint64(0xFF), np.uint64(0))


def _halves(rows: Words, fold: Callable[[Words], Words]) -> Words:
    """``uint64[n, 4]``: of rows ``uint64[n, 8]`` 32 bits a word, eight of each lane; the two upper ones go through *fold*."""
    low, middle, high = rows & np.uint64(0xFFFF), rows >> np.uint64(16) & np.uint64(0xFFFF), rows >> np.uint64(32)
    words = low | fold(middle) << np.uint64(16) | fold(high) << np.uint64(24)
    halves: Words = np.ascontiguousarray(words.astype(np.uint32)).view(np.uint64)
    return halves


def _lists(entries: Words, forbidden: Words, start: Index, amount: Index) -> tuple[Words, Words]:
    """Lists of *amount* entries each, from *start* on, one behind the other: the place of each, and all of them."""
    ordinal = np.arange(start.size)
    places = 1 + ENTRY * start + len(HEAD) * ordinal
    lists = np.zeros(1 + entries.size + len(HEAD) * start.size, np.uint64)
    at = 1 + ENTRY * np.arange(entries.shape[0]) + np.repeat(len(HEAD) * (ordinal + 1), amount)
    lists[at[:, None] + np.arange(ENTRY)] = entries
    if start.size:
        lists[places] = amount
        lists[places + 1] = np.bitwise_and.reduceat(forbidden, start)
    return places.astype(np.uint64), lists


def _pairs(keys: Words, places: Words) -> tuple[Words, int]:
    """The hash table of the distinct, sorted *keys*, and its shift."""
    bits = max(10, int(keys.size * 2).bit_length())
    pairs = np.zeros(((1 << bits) + keys.size + 1, 2), np.uint64)
    # Keys ascend, and so do their home places: each goes to its own or the next free one behind the last.
    home = (keys >> np.uint64(64 - bits)).astype(np.int64)
    ordinal = np.arange(keys.size)
    at = np.maximum.accumulate(home - ordinal) + ordinal
    pairs[at, 0], pairs[at, 1] = keys, places
    return pairs.ravel(), 64 - bits


def _filter(keys: Words) -> tuple[npt.NDArray[np.uint32], int]:
    """Two bits for each of *keys* in one 32-bit word; and the shift of a key's upper half to the word's number."""
    bits = min(_FILTER_BITS, max(10, int(keys.size).bit_length()))
    words, upper = np.zeros(1 << bits, np.uint32), (keys >> np.uint64(32)).astype(np.uint32)
    marks = [np.uint32(1) << (upper >> np.uint32(n) & np.uint32(31)) for n in N_FILTER_BIT]
    np.bitwise_or.at(words, upper >> np.uint32(32 - bits), marks[0] | marks[1])
    return words, 32 - bits

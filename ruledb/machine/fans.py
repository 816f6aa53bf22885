"""
The indirect jumps of a program, understood or not: which blocks they lead to, and which functions must be left alone.

A jump is understood from the straight code ahead of it: its block, and the blocks before for as long as each is entered from
one place only.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ruledb.machine.codec import Flow
from ruledb.machine.cuts import Cuts
from ruledb.machine.dispatch import Jump, Step, Table, entries_of, jump_of, next_table
from ruledb.machine.elf import Image
from ruledb.machine.functions import Function
from ruledb.machine.listing import FLOWS, Addresses, Indices, Listing, Marks, find

__all__ = ["Fans", "find_fans"]


@dataclass(frozen=True)
class Fans:
    """
    Where tables of jumps lead: *block* is the number of the one that the jump ends, ascending, *target* an address. *reasons*:
    index of a function → why a jump in it is not understood.
    """

    block: Indices
    target: Addresses
    reasons: Mapping[int, str]

    def of(self, block: int) -> tuple[int, ...]:
        """The targets of this block's table."""
        low, high = np.searchsorted(self.block, [block, block + 1])
        return tuple(self.target[low:high].tolist())


def find_fans(
    image: Image, found: Sequence[Function], listing: Listing, cuts: Cuts, entered: Addresses, unreadable: Collection[int]
) -> Fans:
    """
    The tables of the indirect jumps in the functions *found*.

    Args:
        image: The program.
        found: Its functions.
        listing: Its code.
        cuts: The blocks of its code.
        entered: Addresses where control may come from somewhere else than a direct jump or the instruction ahead.
        unreadable: The indices of functions whose instructions are uncertain.

    """
    last, named = cuts.stop - 1, np.array(sorted(image.slots), dtype=np.uint64)
    certain = _Certain(image, found, listing, unreadable)
    numbers = np.flatnonzero(listing.flow[last] == FLOWS[Flow.INDIRECT_JUMP])
    is_named = listing.has_reference[last[numbers]] & np.isin(listing.other(last[numbers]), named)
    ways = _Ways(listing, cuts, entered)
    jumps = {number: jump_of(ways.stretch(number)) for number in numbers[~is_named].tolist()}
    tables = [jump for jump in jumps.values() if isinstance(jump, Table)]
    blocks, targets = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.uint64)]
    reasons: dict[int, str] = {}
    for number, jump in jumps.items():
        function = int(cuts.function[number])
        match _led_to(certain, found[function], jump, tables):
            case str(reason):
                reasons[function] = reason
            case led_to:
                blocks.append(np.full(len(led_to), number))
                targets.append(led_to)
    return Fans(np.concatenate(blocks), np.concatenate(targets), reasons)


@dataclass(frozen=True)
class _Certain:
    """What is certain about the code that tables lead to."""

    image: Image
    found: Sequence[Function]
    listing: Listing
    unreadable: Collection[int]

    @cached_property
    def _ranges(self) -> tuple[Addresses, Addresses, Marks]:
        readable = [i not in self.unreadable for i in range(len(self.found))]
        bounds = np.array([(f.start, f.end) for f in self.found], dtype=np.uint64).reshape(-1, 2)
        return bounds[:, 0], bounds[:, 1], np.array(readable, dtype=np.bool_)

    def is_doubtful(self, targets: Addresses) -> Marks:
        """Which of *targets* lie in code of which nobody can say where its instructions start."""
        starts, ends, readable = self._ranges
        index = np.searchsorted(starts, targets, side="right") - 1
        is_known = (index >= 0) & (targets < ends[index]) & readable[index] if len(starts) else np.zeros(len(targets), dtype=np.bool_)
        is_code = np.zeros(len(targets), dtype=np.bool_)
        for low, high in self.image.executable_ranges:
            is_code |= (targets >= low) & (targets < high)
        return is_code & ~is_known


def _led_to(certain: _Certain, function: Function, jump: Table | Jump, tables: Sequence[Table]) -> Addresses | str:
    """Where a *jump* in *function* leads; nowhere, if that is known to be entered anyway; the reason, where it is not known."""
    if isinstance(jump, Table):
        if certain.image.is_code(jump.address):
            return "table in code"
        targets = _targets(certain, function, jump, next_table(jump, tables))
        if targets is not None:
            return targets
        if jump.is_relative:
            return "jump table"
    if jump is Jump.UNKNOWN or _makes_addresses(certain.listing, function):
        return "indirect jump"
    return np.empty(0, dtype=np.uint64)


def _targets(certain: _Certain, function: Function, table: Table, end: int | None) -> Addresses | None:
    """What *table*, of a jump in *function*, leads to; None where that is not certain."""
    if not certain.image.is_constant(table.address):
        return None
    entries = entries_of(certain.image, certain.listing, table, end)
    if entries is None or certain.is_doubtful(entries.all).any() or len(entries.targets) < table.bound:
        return None
    is_own = (entries.targets > function.start) & (entries.targets < function.end)
    return np.unique(entries.targets) if is_own.any() else None


def _makes_addresses(listing: Listing, function: Function) -> bool:
    """Whether *function* holds a constant of 64 bits: code for large programs makes addresses from those, which then stand nowhere else."""
    low, high = np.searchsorted(listing.address, np.array([function.start, function.end], dtype=np.uint64)).tolist()
    codes, numbers = listing.encodings.codes, np.unique(listing.encoding[low:high]).tolist()
    return any(len(codes[number]) == _LONG_MOVE and codes[number][1] & 0xF8 == _MOVE for number in numbers)


_LONG_MOVE, _MOVE = 10, 0xB8
"""Bytes of `mov` with a constant of 64 bits, and its opcode, behind the prefix, without the register."""

_LONGEST_WAY = 6
"""Blocks of a stretch: more than compilers put between a comparison and its jump."""


class _Ways:
    """The ways that lead to blocks."""

    def __init__(self, listing: Listing, cuts: Cuts, entered: Addresses) -> None:
        self._listing, self._cuts = listing, cuts
        starts, last = listing.address[cuts.first], cuts.stop - 1
        n_ways = np.zeros(len(starts), dtype=np.int64)
        self._before, self._is_taken = np.full(len(starts), -1), np.zeros(len(starts), dtype=np.bool_)
        flow = listing.flow[last]
        is_way = np.isin(flow, [FLOWS[f] for f in (Flow.NEXT, Flow.JUMP, Flow.CONDITIONAL)])
        for goes, where, is_taken in ((cuts.goes_on, listing.end_of(last), False), (cuts.jumps, listing.other(last), True)):
            index, is_block = find(starts, where)
            source = np.flatnonzero(goes & is_block)
            self._before[index[source]] = np.where(is_way[source], source, -1)
            self._is_taken[index[source]] = is_taken
            if not is_taken:
                np.add.at(n_ways, index[source], 1)
        # Whatever jumps or calls, in functions or elsewhere, counts as a way.
        index, is_block = find(starts, listing.other(listing.has_target))
        np.add.at(n_ways, index[is_block], 1)
        index, is_block = find(starts, entered)
        n_ways[index[is_block]] += 2
        self._before[n_ways != 1] = -1

    def stretch(self, number: int) -> list[Step]:
        """The code that has run when control is at the end of block *number*, as far back as there is one way only."""
        steps: list[Step] = []
        is_taken = False
        for _ in range(_LONGEST_WAY):
            body = self._listing.decoded(int(self._cuts.first[number]), int(self._cuts.stop[number]))
            steps = [*map(Step, body[:-1]), Step(body[-1], is_taken), *steps]
            is_taken, number = bool(self._is_taken[number]), int(self._before[number])
            if number < 0:
                break
        return steps

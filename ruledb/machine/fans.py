"""
The indirect jumps of a program, understood or not: which blocks they lead to, and which functions must be left alone.

A jump is understood from the straight code ahead of it: its block, and the blocks before for as long as each is entered from
one place only.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ruledb.machine.codec import Flow, decode
from ruledb.machine.cuts import Cuts
from ruledb.machine.dispatch import Jump, Step, Table, Way, entries_of, jump_of, next_table
from ruledb.machine.elf import Image
from ruledb.machine.functions import Function
from ruledb.machine.listing import FLOWS, Addresses, Indices, Listing, Marks, find
from ruledb.machine.registers import Register, family_mask

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
    ways = _Ways(found, listing, cuts, entered)
    jumps = {number: ways.jump(number) for number in numbers[~is_named].tolist()}
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

    def is_within(self, addresses: Addresses, function: Function) -> bool:
        """Whether one of *addresses* lies behind the start of a function, or at the start of *function*."""
        starts, ends, _ = self._ranges
        index = np.searchsorted(starts, addresses, side="right") - 1
        is_inside = (index >= 0) & (addresses < ends[index])
        return bool((is_inside & ((addresses != starts[index]) | (addresses == function.start))).any())


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
    if jump is Jump.UNKNOWN or _makes_addresses(certain, function):
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


def _makes_addresses(certain: _Certain, function: Function) -> bool:
    """
    Whether *function* may work out an address of code from a part of one, so that the whole stands nowhere: it names a place
    within a function, or itself, or holds a constant of 64 bits, as code for large programs does.
    """
    listing = certain.listing
    low, high = np.searchsorted(listing.address, np.array([function.start, function.end], dtype=np.uint64)).tolist()
    codes = [listing.encodings.codes[number] for number in np.unique(listing.encoding[low:high]).tolist()]
    if any(len(code) == _LONG_MOVE and code[1] & 0xF8 == _MOVE for code in codes):
        return True
    referring = np.arange(low, high)[listing.has_reference[low:high]]
    named = [listing.other(referring)]
    if not certain.image.is_position_independent:
        named.append(np.array([int.from_bytes(code[-4:], "little") for code in codes if len(code) > 4], dtype=np.uint64))
    return certain.is_within(np.concatenate(named), function)


_LONG_MOVE, _MOVE = 10, 0xB8
"""Bytes of `mov` with a constant of 64 bits, and its opcode, behind the prefix, without the register."""

_LONGEST_WAY = 6
"""Blocks of a stretch: more than compilers put between a comparison and its jump."""


class _Ways:
    """The ways that lead to blocks."""

    def __init__(self, found: Sequence[Function], listing: Listing, cuts: Cuts, entered: Addresses) -> None:
        self._found, self._listing, self._cuts = found, listing, cuts
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

    def jump(self, number: int) -> Table | Jump:
        """What the jump at the end of block *number* goes by."""
        # Most pointers are loaded in the very block.
        alone = jump_of(self._way(number, 1))
        return alone if alone is Jump.POINTER else jump_of(self._way(number, _LONGEST_WAY))

    def _way(self, number: int, most: int) -> Way:
        """The code that has run when control is at the end of block *number*, up to *most* blocks back while there is one way only."""
        function = self._found[self._cuts.function[number]]
        steps: list[Step] = []
        is_taken = False
        for _ in range(most):
            body = self._listing.decoded(int(self._cuts.first[number]), int(self._cuts.stop[number]))
            steps = [*map(Step, body[:-1]), Step(body[-1], is_taken), *steps]
            is_taken, number = bool(self._is_taken[number]), int(self._before[number])
            if number < 0:
                break
        return Way(steps, steps[0].decoded.address == function.start, lambda family: self._base(function, family))

    def _base(self, function: Function, family: int) -> int | None:
        """
        The only constant that *function* ever puts into the register of *family*: `lea` takes it from the instruction's own
        address, and all else that is put there is what `pop` restores. No other code jumps into the function's middle.
        """
        listing, mask = self._listing, family_mask(family)
        low, high = np.searchsorted(listing.address, np.array([function.start, function.end], dtype=np.uint64)).tolist()
        inside = listing.encoding[low:high]
        if self._is_entered_within(low, high):
            return None
        bases: set[int] = set()
        for number in np.unique(inside).tolist():
            effects = listing.encodings.effects[listing.encodings.form[number]]
            if effects.writes & mask and effects.flow is Flow.NEXT:
                places = np.flatnonzero(inside == number) + low
                value = next(decode(listing.encodings.codes[number])).instruction
                if value.mnemonic == "lea" and listing.has_reference[places[0]] and value.operands[0] == Register(family, 64):
                    bases.update(listing.other(places).tolist())
                elif value.mnemonic != "pop":
                    return None
        return bases.pop() if len(bases) == 1 else None

    def _is_entered_within(self, low: int, high: int) -> bool:
        """Whether a branch from elsewhere leads behind the first of the instructions of index *low* to *high*."""
        sources, targets = self._branches
        first, last = self._listing.address[low], self._listing.address[high - 1]
        into = sources[np.searchsorted(targets, first, side="right") : np.searchsorted(targets, last, side="right")]
        return bool(((into < low) | (into >= high)).any())

    @cached_property
    def _branches(self) -> tuple[Indices, Addresses]:
        """The indices of all direct branches and calls, and their targets, in the order of these."""
        sources = np.flatnonzero(self._listing.has_target)
        targets = self._listing.other(sources)
        order = np.argsort(targets, kind="stable")
        return sources[order], targets[order]

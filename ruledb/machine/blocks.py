"""
Programs as basic blocks: where control may enter, where it goes on, and which functions may not be touched.

A block is entered only at its first instruction, from known places or unknown ones. It ends at a jump, a call, a
return, or before the next entry. A function is *opaque* where that cannot be known; the reason is a word for reports.
Opaque functions whose instructions are certain still have blocks, so that liveness sees through them.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ruledb.machine.codec import Decoded, Flow
from ruledb.machine.cuts import Cuts, cut
from ruledb.machine.elf import Image
from ruledb.machine.entries import Ranges, find_entries
from ruledb.machine.fans import Fans, find_fans
from ruledb.machine.functions import Function, function_at, functions
from ruledb.machine.listing import FLOWS, Addresses, Encodings, Listing, Marks, joined
from ruledb.machine.lsda import CallSite

__all__ = ["Block", "Program", "read_program"]


@dataclass(frozen=True, slots=True)
class Block:
    """
    Instructions that run one after the other. *function* is the start of the function that holds it. *successors*
    are the addresses where control goes next by what the last instruction says, the place behind a call included.
    """

    start: int
    function: int
    instructions: tuple[Decoded, ...]
    successors: tuple[int, ...]

    @property
    def last(self) -> Decoded:
        """The last instruction."""
        return self.instructions[-1]

    @property
    def end(self) -> int:
        """Address behind the last instruction."""
        return self.instructions[-1].end


@dataclass(frozen=True)
class Program:
    """
    An image with its functions and blocks.

    *cuts* are the blocks of *listing*. *opaque*: start of a function → why it may not be touched. *unreadable*: those whose
    instructions are not even certain; they have no blocks. *externals*: address of a linkage stub → the function's name.
    *taken*: addresses of code that something but jumps and calls leads to. *entered_by_call*: functions with a call to somewhere
    behind their start. *called_from_outside*: targets of calls in code that belongs to no readable function. *may_raise* marks
    the instructions, other than calls, whose faults a runtime may turn into exceptions that this very function handles: they
    access memory or divide where a landing pad is in charge.
    """

    image: Image
    functions: tuple[Function, ...]
    listing: Listing
    cuts: Cuts
    opaque: Mapping[int, str]
    unreadable: frozenset[int]
    externals: Mapping[int, str]
    taken: Addresses
    entered_by_call: frozenset[int]
    called_from_outside: frozenset[int]
    may_raise: Marks
    fans: Fans

    def function_at(self, address: int) -> Function | None:
        """The function that holds *address*."""
        return function_at(self.functions, address)

    @cached_property
    def block_starts(self) -> tuple[int, ...]:
        """Starts of all blocks, ascending."""
        return tuple(self.listing.address[self.cuts.first].tolist())

    @cached_property
    def blocks(self) -> Mapping[int, Block]:
        """The blocks by start. They are made when asked for."""
        return _Blocks(self)

    def block(self, number: int) -> Block:
        """The block of this number in *cuts*."""
        cuts, listing = self.cuts, self.listing
        body = listing.decoded(int(cuts.first[number]), int(cuts.stop[number]))
        last = body[-1]
        behind = (last.end,) if cuts.goes_on[number] else ()
        target = (last.target,) if cuts.jumps[number] and last.target is not None else ()
        fan = self.fans.of(number) if last.flow is Flow.INDIRECT_JUMP else ()
        return Block(body[0].address, self.functions[cuts.function[number]].start, body, (*behind, *target, *fan))

    def block_at(self, address: int) -> Block | None:
        """The block that holds *address*."""
        index = bisect_right(self.block_starts, address) - 1
        block = self.block(index) if index >= 0 else None
        return block if block is not None and address < block.end else None

    @cached_property
    def is_open(self) -> Marks:
        """Per block, whether its function is not opaque."""
        closed = np.array([f.start in self.opaque for f in self.functions], dtype=np.bool_)
        return ~closed[self.cuts.function]

    def open_blocks(self) -> Iterator[Block]:
        """The blocks of functions that are not opaque, ascending."""
        return map(self.block, np.flatnonzero(self.is_open).tolist())

    def opaque_counts(self) -> Counter[str]:
        """Number of opaque functions by reason."""
        return Counter(self.opaque.values())

    def external_name(self, instruction: Decoded) -> str | None:
        """
        The name of the outside function that *instruction* calls or jumps to, through a linkage stub or a slot that
        the loader fills; "" for a resolver's choice, None for no such thing.
        """
        if instruction.target is not None:
            return self.externals.get(instruction.target)
        is_indirect = instruction.flow in (Flow.INDIRECT_JUMP, Flow.INDIRECT_CALL)
        return self.image.slots.get(instruction.reference) if is_indirect and instruction.reference is not None else None


class _Blocks(Mapping[int, Block]):
    """A program's blocks by start."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._numbers = {start: number for number, start in enumerate(program.block_starts)}

    def __getitem__(self, start: int) -> Block:
        return self._program.block(self._numbers[start])

    def __contains__(self, start: object) -> bool:
        return start in self._numbers

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def read_program(image: Image, encodings: Encodings | None = None, found: Sequence[Function] | None = None) -> Program:
    """
    The blocks of *image*: every function is decoded from its start to its end, and code outside functions is scanned for
    targets. Entries are direct targets from anywhere, addresses that data or instructions take, `endbr64` and probes.
    Reading goes faster with the *encodings* of an earlier reading, and with the functions *found* there.
    """
    found = functions(image) if found is None else tuple(found)
    listing = _listing(image, found, encodings or Encodings())
    entries = find_entries(image, found, listing)
    ranges = Ranges(found)
    home = ranges.index_of(listing.address)
    is_readable = np.ones(len(found) + 1, dtype=np.bool_)
    is_readable[[*entries.unreadable, len(found)]] = False  # the last stands for no function
    leaders, taken = entries.leaders, np.union1d(entries.taken, ranges.starts)
    while True:
        cuts = cut(listing, home, is_readable[home], leaders)
        fans = find_fans(image, found, listing, cuts, taken, entries.unreadable)
        if np.isin(fans.target, taken).all():
            break
        # What a table leads to is an entry, too, and may cut the straight code in front of another jump.
        leaders, taken = np.union1d(leaders, fans.target), np.union1d(taken, fans.target)
    reasons = entries.pointed | entries.strange_sites | dict(fans.reasons)
    reasons |= {i: "signal frame" for i, function in enumerate(found) if function.is_signal_frame} | entries.unreadable
    clusters = _clusters(found, listing, cuts, ranges, entries.externals, fans)
    is_call = listing.has_target & (listing.flow == FLOWS[Flow.CALL])
    called = np.setdiff1d(listing.other(is_call), np.array(sorted(entries.externals), dtype=np.uint64))
    callees = ranges.index_of(called)
    behind = (callees >= 0) & (called != ranges.starts[callees]) if len(found) else np.zeros(0, dtype=np.bool_)
    return Program(
        image,
        found,
        listing,
        cuts,
        _spread({found[i].start: reason for i, reason in reasons.items()}, clusters),
        frozenset(found[i].start for i in entries.unreadable),
        entries.externals,
        taken,
        entered_by_call=frozenset(ranges.starts[callees[behind]].tolist()),
        called_from_outside=frozenset(listing.other(is_call & ~is_readable[home]).tolist()),
        may_raise=_may_raise(listing, entries.sites),
        fans=fans,
    )


def _may_raise(listing: Listing, sites: Sequence[CallSite]) -> Marks:
    """Which instructions in *sites*, calls aside, access memory or divide."""
    steps = np.zeros(len(listing) + 1, dtype=np.int64)
    for bounds, step in (([s.start for s in sites], 1), ([s.end for s in sites], -1)):
        np.add.at(steps, np.searchsorted(listing.address, np.array(bounds, dtype=np.uint64)), step)
    tables = listing.encodings.tables
    faults = tables.touches_memory[listing.form] | tables.divides[listing.form]
    return (np.cumsum(steps)[:-1] > 0) & faults & ~listing.has_flow(Flow.CALL, Flow.INDIRECT_CALL)


def _listing(image: Image, found: Sequence[Function], encodings: Encodings) -> Listing:
    """The code of the functions *found* and of what is between them."""
    parts = sorted([*((f.start, f.end) for f in found), *_gaps(image.executable_ranges, found)])
    listing = joined(encodings, ((start, image.read(start, end - start)) for start, end in parts))
    return _without_relocated(image, listing) if image.relocated else listing


def _without_relocated(image: Image, listing: Listing) -> Listing:
    """*listing* of an object file: what a linker fills in later is no target and no reference yet, but where it is known."""
    fields = sorted(image.relocated)
    holders = np.searchsorted(listing.address, np.array(fields, dtype=np.uint64), side="right") - 1
    linked, has_target, has_reference = listing.other(slice(None)), listing.has_target.copy(), listing.has_reference.copy()
    was_target, ends = listing.has_target.tolist(), listing.end_of(np.arange(len(listing)))
    for field, holder in zip(fields, holders.tolist(), strict=True):
        if holder < 0 or field >= int(ends[holder]):
            continue
        known = image.relocated[field]
        has_reference[holder] = False
        has_target[holder] = was_target[holder] and known is not None
        linked[holder] = known or 0
    return replace(listing, linked=linked, has_target=has_target, has_reference=has_reference)


def _gaps(ranges: Iterable[tuple[int, int]], found: Iterable[Function]) -> Iterator[tuple[int, int]]:
    """The parts of *ranges* that no function covers, ascending and disjoint."""
    taken = list(found)
    position = 0
    for start, end in ranges:
        position = max(position, start)  # ranges of a damaged file may overlap
        low = bisect_right(taken, position, key=lambda f: f.end)
        for function in taken[low : bisect_left(taken, end, key=lambda f: f.start)]:
            if function.start > position:
                yield position, function.start
            position = max(position, function.end)
        if position < end:
            yield position, end
            position = end


def _clusters(
    found: Sequence[Function], listing: Listing, cuts: Cuts, ranges: Ranges, externals: Mapping[int, str], fans: Fans
) -> dict[int, int]:
    """
    Function → the representative of its cluster: functions that are parts of one, because a conditional jump, a jump
    to a middle, a table of jumps or falling through leads from one into the other.
    """
    parent = {f.start: f.start for f in found}

    def root(start: int) -> int:
        while parent[start] != start:
            parent[start] = start = parent[parent[start]]
        return start

    last, blocks = cuts.stop - 1, np.arange(len(cuts.stop))
    falls, jumps = blocks[cuts.goes_on], blocks[cuts.jumps]
    is_plain = listing.flow[last[jumps]] == FLOWS[Flow.JUMP]
    ways = (
        (falls, listing.end_of(last[falls]), np.zeros(len(falls), dtype=np.bool_)),
        (jumps, listing.other(last[jumps]), is_plain),
        (fans.block, fans.target, np.zeros(len(fans.block), dtype=np.bool_)),
    )
    for source, where, may_call in ways:
        others = ranges.index_of(where)
        joins = (others >= 0) & (others != cuts.function[source])
        joins &= ~(may_call & (where == ranges.starts[np.maximum(others, 0)])) if len(found) else joins
        for k in np.flatnonzero(joins).tolist():
            if int(where[k]) not in externals:
                parent[root(found[cuts.function[source[k]]].start)] = root(found[others[k]].start)
    return {start: root(start) for start in parent}


def _spread(reasons: Mapping[int, str], clusters: Mapping[int, int]) -> dict[int, str]:
    """*reasons*, extended to all functions of a cluster: the hidden targets of one part may lie in another."""
    by_cluster = {clusters[start]: reason for start, reason in reasons.items()}
    return {start: reasons.get(start) or by_cluster[cluster] for start, cluster in clusters.items() if cluster in by_cluster}

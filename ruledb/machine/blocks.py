"""
Programs as basic blocks: where control may enter, where it goes on, and which functions may not be touched.

A block is entered only at its first instruction, from known places or unknown ones. It ends at a jump, a call, a
return, or before the next entry. A function is *opaque* where that cannot be known; the reason is a word for reports.
Opaque functions whose instructions are certain still have blocks, so that liveness sees through them.
"""

import struct
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ruledb.machine.codec import Decoded, Flow, decode
from ruledb.machine.elf import Image
from ruledb.machine.functions import Function, function_at, functions

__all__ = ["Block", "Program", "read_program"]

_ENDS = (Flow.JUMP, Flow.CONDITIONAL, Flow.INDIRECT_JUMP, Flow.CALL, Flow.INDIRECT_CALL, Flow.RETURN, Flow.STOP, Flow.INTERRUPT)
_ENDBR64 = b"\xf3\x0f\x1e\xfa"


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

    *opaque*: start of a function → why it may not be touched. *unreadable*: those whose instructions are not even
    certain; they have no blocks. *externals*: address of a linkage stub → the function's name. *entered_by_call*:
    functions with a call to somewhere behind their start. *called_from_outside*: targets of calls in code that
    belongs to no readable function.
    """

    image: Image
    functions: tuple[Function, ...]
    blocks: Mapping[int, Block]
    opaque: Mapping[int, str]
    unreadable: frozenset[int]
    externals: Mapping[int, str]
    entered_by_call: frozenset[int]
    called_from_outside: frozenset[int]

    def function_at(self, address: int) -> Function | None:
        """The function that holds *address*."""
        return function_at(self.functions, address)

    @cached_property
    def block_starts(self) -> tuple[int, ...]:
        """Starts of all blocks, ascending."""
        return tuple(sorted(self.blocks))

    def block_at(self, address: int) -> Block | None:
        """The block that holds *address*."""
        index = bisect_right(self.block_starts, address) - 1
        block = self.blocks[self.block_starts[index]] if index >= 0 else None
        return block if block is not None and address < block.end else None

    def open_blocks(self) -> Iterator[Block]:
        """The blocks of functions that are not opaque, ascending."""
        return (block for start in self.block_starts if (block := self.blocks[start]).function not in self.opaque)

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


def read_program(image: Image) -> Program:
    """
    The blocks of *image*: every function is decoded from its start to its end, and code outside functions is scanned for
    targets. Entries are direct targets from anywhere, addresses that data or instructions take, `endbr64` and probes.
    """
    found = functions(image)
    code = {f.start: tuple(_decode(image, f.start, f.end)) for f in found}
    outside = tuple(d for start, end in _gaps(image.executable_ranges, found) for d in _decode(image, start, end))
    everything = [outside, *code.values()]
    targets = {d.target for part in everything for d in part if d.target is not None}
    externals = dict(_externals(image, targets))
    taken, with_data, pointed = _references(image, found, everything)
    taken |= _table_targets(image, everything)
    unreadable = _unreadable(found, code, targets - externals.keys() | taken, with_data)
    leaders = targets | taken | image.taken_addresses
    blocks = {b.start: b for f in found if f.start not in unreadable for b in _cut(f, code[f.start], leaders)}
    reasons = {f.start: reason for f in found if (reason := unreadable.get(f.start) or _reason(f, code[f.start], image))}
    reasons = dict.fromkeys(pointed, "pointed into") | reasons
    called = {d.target for part in everything for d in part if d.flow is Flow.CALL and d.target is not None} - externals.keys()
    uncertain = [outside, *(code[start] for start in unreadable)]
    return Program(
        image,
        found,
        blocks,
        _spread(reasons, _clusters(found, blocks.values(), externals)),
        frozenset(unreadable),
        externals,
        entered_by_call=frozenset(f.start for t in called if (f := function_at(found, t)) is not None and f.start != t),
        called_from_outside=frozenset(d.target for part in uncertain for d in part if d.flow is Flow.CALL and d.target is not None),
    )


def _decode(image: Image, start: int, end: int) -> Iterator[Decoded]:
    for instruction in decode(image.read(start, end - start), start):
        fields = [a for a in range(instruction.address, instruction.end) if a in image.relocated] if image.relocated else []
        # What a linker fills in later is no target yet.
        yield (
            replace(instruction, target=image.relocated[fields[-1]] if instruction.target else None, reference=None)
            if fields
            else instruction
        )


def _gaps(ranges: Iterable[tuple[int, int]], found: Iterable[Function]) -> Iterator[tuple[int, int]]:
    """The parts of *ranges* that no function covers."""
    taken = list(found)
    for start, end in ranges:
        position = start
        low = bisect_right(taken, start, key=lambda f: f.end)
        for function in taken[low : bisect_left(taken, end, key=lambda f: f.start)]:
            if function.start > position:
                yield position, function.start
            position = max(position, function.end)
        if position < end:
            yield position, end


def _externals(image: Image, targets: Iterable[int]) -> Iterator[tuple[int, str]]:
    """Linkage stubs among *targets*: `jmp [slot]`, perhaps behind `endbr64`."""
    for target in targets if image.slots else ():
        stub = image.read(target, 16)
        if b"\xff\x25" not in stub[:7]:
            continue
        first = next((d for d in decode(stub, target) if d.code != _ENDBR64), None)
        if first is not None and first.flow is Flow.INDIRECT_JUMP and first.reference in image.slots:
            yield target, image.slots[first.reference]


def _references(image: Image, found: tuple[Function, ...], parts: Iterable[tuple[Decoded, ...]]) -> tuple[set[int], set[int], set[int]]:
    """
    Addresses of code that instructions take; the starts of functions that hold data (something in them is read), and of
    those that may hold some (something in their middle is pointed at).
    In a fixed-address program any immediate at an instruction's end may be an address.
    """
    low, high = (image.executable_ranges[0][0], image.executable_ranges[-1][1]) if image.executable_ranges else (0, 0)
    taken: set[int] = set(image.probes)
    with_data: set[int] = set()
    pointed: set[int] = set()
    for part in parts:
        for instruction in part:
            if instruction.code == _ENDBR64:
                taken.add(instruction.address)
            elif (reference := instruction.reference) is not None and low <= reference < high:
                function = function_at(found, reference)
                if instruction.loads or instruction.stores:
                    with_data.update({function.start} if function is not None else ())
                    continue
                taken.add(reference)
                # A pointer to the middle of a function may lead to data, too, that only looks like code.
                if function is not None and reference != function.start:
                    pointed.add(function.start)
    if not image.is_position_independent:
        taken |= {
            t for part in parts for d in part if (t := int.from_bytes(d.code[-4:], "little")) and low <= t < high and len(d.code) > 4
        } & {d.address for part in parts for d in part}
    return taken, with_data, pointed


def _table_targets(image: Image, parts: Iterable[tuple[Decoded, ...]]) -> set[int]:
    """
    What tables of relative jumps point at: 32-bit offsets from the table's own start, which some `lea` takes.

    The jump may be in one function, and its targets in another that nothing else leads to, such as a cold part. A table is
    read as far as its words lead to instructions: too many entries are harmless, too few are not.
    """
    starts = {d.address for part in parts for d in part}
    tables = {d.reference for part in parts for d in part if d.reference is not None and not (d.loads or d.stores)}
    targets: set[int] = set()
    for table in tables:
        data = image.read(table, _LONGEST_TABLE)
        for (offset,) in struct.iter_unpack("<i", data[: len(data) // 4 * 4]):
            if table + offset not in starts:
                break
            targets.add(table + offset)
    return targets


_LONGEST_TABLE = 4 * 4096
"""Bytes of a table of jumps: more cases than any compiler puts into one."""


def _unreadable(
    found: tuple[Function, ...], code: Mapping[int, tuple[Decoded, ...]], entries: Iterable[int], with_data: set[int]
) -> dict[int, str]:
    """Functions whose instructions are uncertain, with the reason. *entries* are addresses where instructions must start."""
    entered: dict[int, list[int]] = {}
    for entry in entries:
        if (function := function_at(found, entry)) is not None and entry != function.start:
            entered.setdefault(function.start, []).append(entry)
    reasons: dict[int, str] = {}
    for function in found:
        body = code[function.start]
        if function.is_overlapping:
            reasons[function.start] = "overlap"
        elif any(d.flow is Flow.INVALID for d in body):
            reasons[function.start] = "undecodable"
        elif function.start in with_data:
            reasons[function.start] = "data in code"
        elif function.start in entered and not {d.address for d in body}.issuperset(entered[function.start]):
            reasons[function.start] = "branch into instruction"
    return reasons


def _reason(function: Function, body: tuple[Decoded, ...], image: Image) -> str:
    """Why a readable function is opaque; "" when it is not. A jump through a loader's slot is a call of an outside function."""
    if function.is_signal_frame:
        return "signal frame"
    if any(d.flow is Flow.INDIRECT_JUMP and d.reference not in image.slots for d in body):
        return "indirect jump"
    return "lsda" if function.has_lsda else ""


def _cut(function: Function, body: tuple[Decoded, ...], leaders: set[int]) -> Iterator[Block]:
    start = 0
    for i, instruction in enumerate(body, 1):
        if instruction.flow in _ENDS or i == len(body) or body[i].address in leaders:
            yield Block(body[start].address, function.start, body[start:i], _successors(function, instruction))
            start = i


def _successors(function: Function, last: Decoded) -> tuple[int, ...]:
    target = () if last.target is None else (last.target,)
    match last.flow:
        case Flow.JUMP:
            return target
        case Flow.CONDITIONAL:
            return (last.end, *target)
        case Flow.CALL | Flow.INDIRECT_CALL:
            # A call at a function's very end does not return: what stands behind is another function.
            return (last.end,) if last.end < function.end else ()
        case Flow.INDIRECT_JUMP | Flow.RETURN | Flow.STOP:
            return ()
        case _:
            return (last.end,)


def _clusters(found: tuple[Function, ...], blocks: Iterable[Block], externals: Mapping[int, str]) -> dict[int, int]:
    """
    Function → the representative of its cluster: functions that are parts of one, because a conditional jump, a jump
    to a middle or falling through leads from one into the other.
    """
    parent = {f.start: f.start for f in found}

    def root(start: int) -> int:
        while parent[start] != start:
            parent[start] = start = parent[parent[start]]
        return start

    for block in blocks:
        for successor in block.successors:
            other = function_at(found, successor)
            if other is None or other.start == block.function or successor in externals:
                continue
            if block.last.flow is not Flow.JUMP or successor != other.start:
                parent[root(block.function)] = root(other.start)
    return {start: root(start) for start in parent}


def _spread(reasons: Mapping[int, str], clusters: Mapping[int, int]) -> dict[int, str]:
    """*reasons*, extended to all functions of a cluster: the hidden targets of one part may lie in another."""
    by_cluster = {clusters[start]: reason for start, reason in reasons.items()}
    return {start: reasons.get(start) or by_cluster[cluster] for start, cluster in clusters.items() if cluster in by_cluster}

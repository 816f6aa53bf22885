"""
Liveness over a whole binary: which register lanes and flags may still be read behind each instruction.

A backward fixpoint over all blocks at once, since jumps cross functions. What is unknown makes everything live. What
calls and returns mean under the System V convention:

* A call reads what its callee, where known, is found to read, or else the argument registers, rax, r10, r11 and rsp. It
  overwrites no register for certain. (So callers that rely on a callee's registers, descriptor calls and profiling hooks
  need no care.)
* A return reads rax, rdx, the callee-saved registers, rsp, and whatever is live behind a known call of the function.
* Where a call, or a faulting instruction, may raise an exception, its function's landing pads read the callee-saved
  registers, or all of them. What else a pad reads, rax and rdx, the runtime puts there.
* Flags are not handed over, unless the code of a callee, or the code behind a call, reads them.

Under "strict", and where the convention is unknown, everything is live at calls and returns.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ruledb.machine.blocks import Block, Program
from ruledb.machine.codec import Decoded, Flow
from ruledb.machine.flowgraph import Edges, Values, edges_from, solve
from ruledb.machine.listing import FLOWS, Indices, Listing, Marks, Masks, find
from ruledb.machine.registers import ALL_FLAGS, ALL_REGISTERS, FLAG_SHIFT, RSP, family_mask, parse_mask
from ruledb.machine.transfer import CALL, FAULT, KNOWN_CALL, LOST_CALL, Roles, backwards, returns_elsewhere, roles_of, transfers

__all__ = ["CALL_READS", "EVERYTHING", "RETURN_READS", "Liveness", "before", "live_out"]

EVERYTHING = ALL_REGISTERS | ALL_FLAGS
CALL_READS = parse_mask("rdi rsi rdx rcx r8 r9 rax r10 r11 rsp")
"""Arguments, the number of vector arguments, the static chain, and what linkage stubs and thunks use: all caller-saved ones."""
RETURN_READS = parse_mask("rax rdx rbx rbp r12 r13 r14 r15 rsp")
_STACK = family_mask(RSP)

_WHOLE, _NONE = np.uint64(ALL_REGISTERS), np.uint64(0)
_RSP = np.uint64(_STACK)
_FLAGS, _NO_FLAGS = np.uint8(ALL_FLAGS >> FLAG_SHIFT), np.uint8(0)
_JUMPS = (Flow.JUMP, Flow.CONDITIONAL, Flow.INDIRECT_JUMP)
_CALLS = (Flow.CALL, Flow.INDIRECT_CALL)


@dataclass(frozen=True)
class Liveness:
    """
    The result of `live_out`: per instruction of the program's listing, the register lanes and flags that may be read behind
    it, and the same before each block, by its number. rsp is always live.
    """

    program: Program
    registers: Masks
    flags: NDArray[np.uint8]
    entry_registers: Masks
    entry_flags: NDArray[np.uint8]

    def at(self, index: Indices) -> tuple[Masks, NDArray[np.uint8]]:
        """The register lanes and the flags that may be read behind the instructions of these indices."""
        return self.registers[index], self.flags[index]

    def mask(self, index: int) -> int:
        """What may be read behind the instruction of this index."""
        return int(self.registers[index]) | int(self.flags[index]) << FLAG_SHIFT

    def after(self, block: Block) -> tuple[int, ...]:
        """For each instruction of *block*, what may be read behind it."""
        number = self._numbers[block.start]
        return tuple(map(self.mask, range(int(self.program.cuts.first[number]), int(self.program.cuts.stop[number]))))

    def live_after(self, address: int) -> int:
        """What may be read behind the instruction at *address*; everything, where it is in no block."""
        block = self.program.block_at(address)
        if block is None:
            return EVERYTHING
        return self.after(block)[bisect_right(block.instructions, address, key=lambda d: d.address) - 1]

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {start: number for number, start in enumerate(self.program.block_starts)}

    @cached_property
    def entry(self) -> Mapping[int, int]:
        """By the start of a block, what may be read before its first instruction."""
        masks = zip(self.entry_registers.tolist(), self.entry_flags.tolist(), strict=True)
        return {start: lanes | flags << FLAG_SHIFT for start, (lanes, flags) in zip(self.program.block_starts, masks, strict=True)}

    @cached_property
    def exit(self) -> Mapping[int, int]:
        """By the start of a block, what may be read behind its last instruction."""
        last = (self.program.cuts.stop - 1).tolist()
        return {start: self.mask(index) for start, index in zip(self.program.block_starts, last, strict=True)}


def before(instruction: Decoded, live: int) -> int:
    """What is live before *instruction*, where *live* is so behind it. Convention plays no part here."""
    effects = instruction.effects
    return effects.reads | (live & ~effects.kills) | _STACK


def live_out(program: Program, abi: str = "auto") -> Liveness:
    """
    The liveness of *program* under the convention *abi*: "auto" takes the image's, "sysv" insists, "strict" assumes none.

    Raises:
        ValueError: There is no such convention.

    """
    if abi not in ("auto", "sysv", "strict"):
        raise ValueError(f"convention {abi!r}: expected auto, sysv or strict")
    follows = abi == "sysv" or (abi == "auto" and program.image.convention == "sysv")
    return _Problem(program, follows).solution()


class _Problem:
    """
    The equations, as a graph. Its nodes are the blocks (what is live before them) and behind these the functions (what is
    live behind known calls of them). Along an edge, a part of what is live at its source is live at its destination.

    A node's value has two parts: what some instruction is *seen* to read, and what is only *assumed* to be read, by
    convention. A function's callers hand down to its returns what they are seen to read: they cannot expect arguments of
    a later call to survive, or to be made, in it.
    """

    def __init__(self, program: Program, follows: bool) -> None:
        self.program, self.follows = program, follows
        listing, cuts = program.listing, program.cuts
        self.n_blocks, self.n_functions = len(cuts.first), len(program.functions)
        self.last = cuts.stop - 1
        flow = listing.flow[self.last]
        self.is_return = flow == FLOWS[Flow.RETURN]
        self.is_call = np.isin(flow, [FLOWS[f] for f in _CALLS])
        self.is_jump = np.isin(flow, [FLOWS[f] for f in _JUMPS])
        self.is_named = _named(program, listing, self.last)
        starts = listing.address[cuts.first]
        self.behind, self.falls = self._successors(starts, listing.end_of(self.last), cuts.goes_on)
        self.target, self.goes = self._successors(starts, listing.other(self.last), cuts.jumps)
        self.fan, is_block = find(starts, program.fans.target)
        assert is_block.all(), "a table leads to no block"
        self.calls = self.is_call & listing.has_target[self.last] & ~self.is_named
        self.callee, is_block = find(starts, listing.other(self.last))
        self.enters = self.calls & is_block
        self.roles = self._roles(is_block)
        self.generated, self.through, self.ahead_flags = transfers(self.roles, cuts.first, cuts.stop)
        self.through_flags = np.where(self.is_call, _NO_FLAGS, self.ahead_flags)
        self._set_floors()

    @staticmethod
    def _successors(starts: Masks, where: Masks, goes: Marks) -> tuple[Indices, Marks]:
        index, is_block = find(starts, where)
        return index, goes & is_block

    def _roles(self, is_block: Marks) -> Roles:
        """What each instruction reads and overwrites, calls by convention."""
        listing = self.program.listing
        calls = self.last[self.is_call]
        kinds = [
            # A handler of this very function may see the registers as they are where an instruction faults.
            (FAULT, np.flatnonzero(self.program.may_raise)),
            (CALL, calls),
            (LOST_CALL, self.last[self.calls & ~is_block] if self.follows else calls),
            (KNOWN_CALL, self.last[self.enters & self.follows]),
        ]
        return roles_of(listing.encodings.tables, listing.form, kinds, CALL_READS if self.follows else 0)

    def _set_floors(self) -> None:
        """What is live behind each block by what is known beforehand: everything, where control goes to unknown places."""
        program, listing, cuts = self.program, self.program.listing, self.program.cuts
        n = self.n_blocks
        outward = self.is_jump & self.is_named
        unknown = self.is_return & (True if not self.follows else returns_elsewhere(listing, cuts.first, cuts.stop, self.is_return))
        rest = ~self.is_return
        unknown |= rest & ((cuts.goes_on & ~self.falls) | (cuts.jumps & ~self.goes & ~self.is_named))
        unknown |= rest & outward & (not self.follows)
        is_fan = np.zeros(n, dtype=np.bool_)
        is_fan[program.fans.block] = True
        unknown |= rest & ~outward & self.is_jump & ~listing.has_target[self.last] & ~is_fan
        has_pads = np.array([f.has_lsda for f in program.functions], dtype=np.bool_)
        # An unwinder may go on at any landing pad, with the callee-saved registers as they are at the call.
        returning = self.is_return | outward | (self.is_call & has_pads[cuts.function] if n else self.is_call)
        assumed = np.where(returning & ~unknown, np.uint64(RETURN_READS), _NONE)
        assumed |= np.where(outward & ~unknown, np.uint64(CALL_READS), _NONE)
        plain = np.where(returning, _NONE, _RSP)
        self.floor = Values(np.where(unknown, _WHOLE, plain), assumed, np.where(unknown, _FLAGS, _NO_FLAGS))

    def _edges(self) -> Edges:
        blocks, function = np.arange(self.n_blocks), self.program.cuts.function + self.n_blocks
        flags, no_flags = np.full(self.n_blocks, _FLAGS), np.full(self.n_blocks, _NO_FLAGS)
        called = self._called_function()
        returns = self.is_return | (self.is_jump & self.is_named)
        enters = self.enters if self.follows else self.enters & False
        parts = [
            (self.falls, self.behind, blocks, True, self.through_flags),
            (self.goes, self.target, blocks, True, self.through_flags),
            (enters, self.callee, blocks, True, self.ahead_flags),
            # An outside function that returns there hands on no flags.
            (returns, function, blocks, False, np.where(self.is_named, no_flags, self.through_flags)),
            (self.falls & (called >= 0), self.behind, called + self.n_blocks, False, flags),
        ]
        source, fan = self.program.fans.block, self.fan
        parts.append((np.ones(len(source), dtype=np.bool_), fan, source, True, self.through_flags[source]))
        for number, other in ((blocks[self.falls], self.behind[self.falls]), (blocks[self.goes], self.target[self.goes]), (source, fan)):
            heir = function[other]
            parts.append((heir != function[number], function[number], heir, False, flags[number]))
        return edges_from(self.n_blocks + self.n_functions, parts)

    def _called_function(self) -> Indices:
        """Per block, the index of the function that its known call goes into, or -1."""
        starts = np.array([f.start for f in self.program.functions], dtype=np.uint64)
        ends = np.array([f.end for f in self.program.functions], dtype=np.uint64)
        if len(starts) == 0:
            return np.full(self.n_blocks, -1)
        target = self.program.listing.other(self.last)
        index = np.searchsorted(starts, target, side="right") - 1
        return np.where(self.calls & (index >= 0) & (target < ends[np.maximum(index, 0)]), index, -1)

    def solution(self) -> Liveness:
        """Let everything flow along the edges, then fill in the insides of blocks."""
        n = self.n_blocks
        through, through_flags = self.through, self.through_flags
        values = Values(*(np.concatenate([part, np.zeros(self.n_functions, part.dtype)]) for part in self.generated))
        values.seen[:n] |= self.floor.seen & through
        values.assumed[:n] |= self.floor.assumed & through
        values.flags[:n] |= self.floor.flags & through_flags
        called = self._called_function()
        known = called >= 0
        # What a call's block is seen to need behind it without any successor: everything, or the stack pointer.
        np.bitwise_or.at(values.seen, called[known] + n, self.floor.seen[known])
        np.bitwise_or.at(values.flags, called[known] + n, self.floor.flags[known])
        for number in self._entered_otherwise():
            values.seen[n + number], values.flags[n + number] = _WHOLE, _FLAGS
        solve(values, np.concatenate([through, np.full(self.n_functions, _WHOLE)]), self._edges())
        return self._filled(values)

    def _entered_otherwise(self) -> Iterator[int]:
        """Functions with callers of which nothing is known."""
        numbers = {f.start: i for i, f in enumerate(self.program.functions)}
        outside = (self.program.function_at(target) for target in self.program.called_from_outside)
        for start in self.program.entered_by_call.union(f.start for f in outside if f is not None):
            yield numbers[start]

    def _filled(self, values: Values) -> Liveness:
        n, cuts = self.n_blocks, self.program.cuts
        both = values.seen | values.assumed
        live, live_flags = self.floor.seen | self.floor.assumed, self.floor.flags.copy()
        for goes, other in ((self.falls, self.behind), (self.goes, self.target)):
            live |= np.where(goes, both[other], _NONE) if n else live
            live_flags |= np.where(goes, values.flags[other], _NO_FLAGS) if n else live_flags
        np.bitwise_or.at(live, self.program.fans.block, both[self.fan])
        np.bitwise_or.at(live_flags, self.program.fans.block, values.flags[self.fan])
        returns = self.is_return | (self.is_jump & self.is_named)
        function = cuts.function + n
        live |= np.where(returns, values.seen[function], _NONE)
        live_flags |= np.where(returns & ~self.is_named, values.flags[function], _NO_FLAGS)
        registers = np.full(len(self.program.listing), _WHOLE)
        flags = np.full(len(self.program.listing), _FLAGS)
        roles = self.roles.with_assumed()
        entered = self.enters & self.follows
        for step, (block, index) in enumerate(backwards(cuts.first, cuts.stop)):
            registers[index], flags[index] = live[block], live_flags[block]
            live[block], live_flags[block] = roles.before(index, live[block], live_flags[block])
            if step == 0:  # where calls stand
                live[entered] |= both[self.callee[entered]]
                live_flags[entered] |= values.flags[self.callee[entered]]
            live[block] |= _RSP
        return Liveness(self.program, registers, flags, live, live_flags)


def _named(program: Program, listing: Listing, last: Indices) -> Marks:
    """Which of these instructions go to an outside function by a linkage stub or a slot that the loader fills."""
    externals = np.array(sorted(program.externals), dtype=np.uint64)
    slots = np.array(sorted(program.image.slots), dtype=np.uint64)
    is_indirect = listing.has_flow(Flow.INDIRECT_JUMP, Flow.INDIRECT_CALL)[last]
    by_stub = listing.has_target[last] & np.isin(listing.other(last), externals)
    return by_stub | (~listing.has_target[last] & is_indirect & listing.has_reference[last] & np.isin(listing.other(last), slots))

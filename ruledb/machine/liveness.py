"""
Liveness over a whole binary: which register lanes and flags may still be read behind each instruction.

A backward fixpoint over all blocks at once, since jumps cross functions. What is unknown makes everything live. What
calls and returns mean under the System V convention:

* A call reads the argument registers, rax, r10, r11, rsp, and what its callee, where known, is found to read. It
  overwrites no register for certain. (Which caller-saved ones a callee loses makes no difference, since each of them may
  carry an argument: so callers that rely on a callee's registers, descriptor calls and profiling hooks need no care.)
* A return reads rax, rdx, the callee-saved registers, rsp, and whatever is live behind a known call of the function.
* Flags are not handed over, unless the code of a callee, or the code behind a call, reads them.

Under "strict", and where the convention is unknown, everything is live at calls and returns.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ruledb.machine.blocks import Block, Program
from ruledb.machine.codec import Decoded, Flow
from ruledb.machine.instruction import Mem
from ruledb.machine.registers import ALL_FLAGS, ALL_REGISTERS, RBP, RSP, Register, family_mask, parse_mask

__all__ = ["CALL_READS", "EVERYTHING", "RETURN_READS", "Liveness", "before", "live_out"]

EVERYTHING = ALL_REGISTERS | ALL_FLAGS
CALL_READS = parse_mask("rdi rsi rdx rcx r8 r9 rax r10 r11 rsp")
"""Arguments, the number of vector arguments, the static chain, and what linkage stubs and thunks use: all caller-saved ones."""
RETURN_READS = parse_mask("rax rdx rbx rbp r12 r13 r14 r15 rsp")
_STACK = family_mask(RSP)

_ASSUMED = 128
"""
While solving, a mask's low part holds what some instruction is seen to read, and *this* many bits higher stands what is
only assumed to be read, by convention. A function's callers hand down to its returns what they are seen to read: they
cannot expect arguments of a later call to survive, or to be made, in it.
"""
_JUMPS = (Flow.JUMP, Flow.CONDITIONAL, Flow.INDIRECT_JUMP)
_CALLS = (Flow.CALL, Flow.INDIRECT_CALL)


@dataclass(frozen=True)
class Liveness:
    """The result of `live_out`, as masks by the start of a block. rsp is always live."""

    program: Program
    entry: Mapping[int, int]
    """Before the first instruction."""
    before_last: Mapping[int, int]
    """Before the last instruction."""
    exit: Mapping[int, int]
    """Behind the last instruction."""

    def after(self, block: Block) -> tuple[int, ...]:
        """For each instruction of *block*, what may be read behind it."""
        found = [self.exit[block.start], self.before_last[block.start]]
        for instruction in reversed(block.instructions[1:-1]):
            found.append(before(instruction, found[-1]))
        return tuple(reversed(found[: len(block.instructions)]))

    def live_after(self, address: int) -> int:
        """What may be read behind the instruction at *address*; everything, where it is in no block."""
        block = self.program.block_at(address)
        if block is None:
            return EVERYTHING
        index = bisect_right(block.instructions, address, key=lambda d: d.address) - 1
        return self.after(block)[index]


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
    return _Solver(program, follows).solve()


class _Solver:
    """The fixpoint. Lists have one element per block, in the order of addresses; masks only grow."""

    def __init__(self, program: Program, follows: bool) -> None:
        self.program = program
        self.follows = follows
        self.blocks = [program.blocks[start] for start in program.block_starts]
        self.index = {start: i for i, start in enumerate(program.block_starts)}
        self.targets = [[self.index[s] for s in block.successors if s in self.index] for block in self.blocks]
        self.names = [program.external_name(block.last) for block in self.blocks]
        self.callees = [program.function_at(b.last.target) if b.last.flow is Flow.CALL and b.last.target else None for b in self.blocks]
        self.floors = [self._floor(block, name) for block, name in zip(self.blocks, self.names, strict=True)]
        self.transfers = [_transfer(block) for block in self.blocks]
        self.dependents = self._dependents()
        self.heirs = self._heirs()
        self.returns = self._returns()
        self.behind = {function.start: 0 for function in program.functions}
        self.entry = [0] * len(self.blocks)
        self.before_last = [0] * len(self.blocks)
        self.exit = [0] * len(self.blocks)

    def _floor(self, block: Block, name: str | None) -> int:
        """What is live behind *block* by what is known beforehand: everything, where control goes to unknown places."""
        last = block.last
        if last.flow is Flow.RETURN:
            return EVERYTHING if not self.follows or _returns_elsewhere(block) else RETURN_READS << _ASSUMED
        if any(s not in self.index and (name is None or s != last.target) for s in block.successors):
            return EVERYTHING
        if last.flow in _JUMPS and name is not None:
            # A tail call; a conditional one goes on here, too, which its successor tells.
            return (CALL_READS | RETURN_READS) << _ASSUMED if self.follows else EVERYTHING
        if last.flow is Flow.INDIRECT_JUMP or (last.flow in _JUMPS and last.target is None):
            return EVERYTHING
        # An unwinder may go on at any landing pad, with the callee-saved registers as they are at the call.
        function = self.program.function_at(block.start)
        return RETURN_READS << _ASSUMED if last.flow in _CALLS and function is not None and function.has_lsda else _STACK

    def _dependents(self) -> list[list[int]]:
        """For each block, those whose liveness depends on its entry: predecessors and calls of it."""
        dependents: list[list[int]] = [[] for _ in self.blocks]
        for i, (block, targets) in enumerate(zip(self.blocks, self.targets, strict=True)):
            called = self.index.get(block.last.target) if block.last.flow is Flow.CALL and block.last.target else None
            for target in targets if called is None else [*targets, called]:
                dependents[target].append(i)
        return dependents

    def _heirs(self) -> dict[int, set[int]]:
        """Function → those that it jumps into: their returns go to its callers."""
        heirs: dict[int, set[int]] = {}
        for block, targets in zip(self.blocks, self.targets, strict=True):
            others = {self.blocks[t].function for t in targets} - {block.function}
            heirs.setdefault(block.function, set()).update(others)
        return heirs

    def _returns(self) -> dict[int, list[int]]:
        """Function → its blocks from which control goes to its callers: returns, and tail calls to the outside."""
        returns: dict[int, list[int]] = {}
        for i, (block, name) in enumerate(zip(self.blocks, self.names, strict=True)):
            if block.last.flow is Flow.RETURN or (block.last.flow in _JUMPS and name is not None):
                returns.setdefault(block.function, []).append(i)
        return returns

    def solve(self) -> Liveness:
        """Iterate until nothing grows."""
        outside = (self.program.function_at(target) for target in self.program.called_from_outside)
        for start in self.program.entered_by_call.union(f.start for f in outside if f is not None):
            for _ in self._hand_down(start, EVERYTHING):
                pass
        queue = list(range(len(self.blocks)))  # taken from the end: successors mostly come first
        is_queued = bytearray(b"\1" * len(self.blocks))
        while queue:
            i = queue.pop()
            is_queued[i] = 0
            for j in self._update(i):
                if not is_queued[j]:
                    is_queued[j] = 1
                    queue.append(j)
        starts, parts = self.program.block_starts, (self.entry, self.before_last, self.exit)
        return Liveness(self.program, *(dict(zip(starts, map(_joined, part), strict=True)) for part in parts))

    def _update(self, i: int) -> Iterable[int]:
        """Compute block *i* anew. Returns the blocks that this concerns."""
        block = self.blocks[i]
        woken: list[int] = []
        live = self.floors[i]
        for target in self.targets[i]:
            live |= self.entry[target]
        if block.last.flow is Flow.RETURN or self.names[i] is not None:
            live |= self._behind(i)
        self.exit[i] = live
        if block.last.flow in _CALLS:
            if (callee := self.callees[i]) is not None and self.names[i] is None:
                woken.extend(self._hand_down(callee.start, live & EVERYTHING))
            live = block.last.effects.reads | self._call(i, live)
        else:
            live = block.last.effects.reads | (live & ~_both(block.last.effects.kills))
        self.before_last[i] = live
        reads, keeps = self.transfers[i]
        live = reads | (live & keeps) | _STACK
        if live != self.entry[i]:
            self.entry[i] = live
            woken.extend(self.dependents[i])
        return woken

    def _behind(self, i: int) -> int:
        """What the callers of block *i*'s function read; an outside function that returns there hands on no flags."""
        if self.blocks[i].last.flow in _CALLS:
            return 0
        behind = self.behind[self.blocks[i].function]
        return behind if self.names[i] is None else behind & ALL_REGISTERS

    def _call(self, i: int, live: int) -> int:
        """What is live before the call that ends block *i*, where *live* is so behind it."""
        target = self.blocks[i].last.target
        if not self.follows:
            return EVERYTHING
        if target is None or self.names[i] is not None:
            return CALL_READS << _ASSUMED | (live & ~_both(ALL_FLAGS))
        entry = self.index.get(target)
        return CALL_READS << _ASSUMED | (live & ~_both(ALL_FLAGS)) | (EVERYTHING if entry is None else self.entry[entry])

    def _hand_down(self, function: int, live: int) -> Iterator[int]:
        """Note that *live* is so behind a call of *function*, and of those that it jumps into. Returns their returning blocks."""
        stack = [function]
        while stack:
            start = stack.pop()
            if live & ~self.behind[start]:
                self.behind[start] |= live
                yield from self.returns.get(start, ())
                stack.extend(self.heirs.get(start, ()))


def _transfer(block: Block) -> tuple[int, int]:
    """What *block* reads before it overwrites it, and the complement of what it overwrites, but for its last instruction."""
    reads, kills = 0, 0
    for instruction in reversed(block.instructions[:-1]):
        effects = instruction.effects
        reads = effects.reads | (reads & ~effects.kills)
        kills |= effects.kills
    return reads, ~_both(kills)


def _both(mask: int) -> int:
    """*mask* in both parts."""
    return mask | mask << _ASSUMED


def _joined(mask: int) -> int:
    """What is live in either part."""
    return (mask | mask >> _ASSUMED) & EVERYTHING


_POINTER = (Register(RSP, 64), Register(RBP, 64))


def _returns_elsewhere(block: Block) -> bool:
    """
    Whether the return of *block* may go to an address that its own code puts there: it pushes more than it pops,
    takes rsp from somewhere else than rbp, or stores to [rsp].
    """
    n_pushed = 0
    for instruction in block.instructions:
        if not instruction.effects.writes & _STACK and not instruction.effects.stores:
            continue
        value = instruction.instruction
        operands = value.operands
        n_pushed += (value.mnemonic == "push") - (value.mnemonic == "pop")
        if value.mnemonic in ("mov", "xchg") and _POINTER[0] in operands and operands[1] not in _POINTER:
            return True
        if (
            instruction.effects.stores
            and operands
            and isinstance(operands[0], Mem)
            and operands[0].base == _POINTER[0]
            and operands[0].displacement == 0
        ):
            return True
    return n_pushed > 0

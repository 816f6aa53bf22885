"""Liveness by plain loops over blocks and instructions: what the array code must equal."""

from ruledb.machine.codec import Flow
from ruledb.machine.instruction import Mem
from ruledb.machine.liveness import CALL_READS, EVERYTHING, RETURN_READS, before
from ruledb.machine.registers import ALL_FLAGS, ALL_REGISTERS, RBP, RSP, Register, family_mask

_STACK = family_mask(RSP)
_ASSUMED = 128
"""How many bits higher stands what is only assumed to be read, by convention."""
_JUMPS = (Flow.JUMP, Flow.CONDITIONAL, Flow.INDIRECT_JUMP)
_CALLS = (Flow.CALL, Flow.INDIRECT_CALL)


class Reference:
    """The fixpoint. Lists have one element per block, in the order of addresses; masks only grow."""

    def __init__(self, program, follows):
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

    def _floor(self, block, name):
        """What is live behind *block* by what is known beforehand: everything, where control goes to unknown places."""
        last = block.last
        if last.flow is Flow.RETURN:
            return EVERYTHING if not self.follows or _returns_elsewhere(block) else RETURN_READS << _ASSUMED
        if any(s not in self.index and (name is None or s != last.target) for s in block.successors):
            return EVERYTHING
        if last.flow in _JUMPS and name is not None:
            # A tail call; a conditional one goes on here, too, which its successor tells.
            return (CALL_READS | RETURN_READS) << _ASSUMED if self.follows else EVERYTHING
        if (last.flow is Flow.INDIRECT_JUMP and not block.successors) or (
            last.flow in _JUMPS and last.target is None and not block.successors
        ):
            return EVERYTHING
        # An unwinder may go on at any landing pad, with the callee-saved registers as they are at the call.
        function = self.program.function_at(block.start)
        return RETURN_READS << _ASSUMED if last.flow in _CALLS and function is not None and function.has_lsda else _STACK

    def _dependents(self):
        """For each block, those whose liveness depends on its entry: predecessors and calls of it."""
        dependents = [[] for _ in self.blocks]
        for i, (block, targets) in enumerate(zip(self.blocks, self.targets, strict=True)):
            called = self.index.get(block.last.target) if block.last.flow is Flow.CALL and block.last.target else None
            for target in targets if called is None else [*targets, called]:
                dependents[target].append(i)
        return dependents

    def _heirs(self):
        """Function → those that it jumps into: their returns go to its callers."""
        heirs = {}
        for block, targets in zip(self.blocks, self.targets, strict=True):
            others = {self.blocks[t].function for t in targets} - {block.function}
            heirs.setdefault(block.function, set()).update(others)
        return heirs

    def _returns(self):
        """Function → its blocks from which control goes to its callers: returns, and tail calls to the outside."""
        returns = {}
        for i, (block, name) in enumerate(zip(self.blocks, self.names, strict=True)):
            if block.last.flow is Flow.RETURN or (block.last.flow in _JUMPS and name is not None):
                returns.setdefault(block.function, []).append(i)
        return returns

    def solve(self):
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
        return {block.start: (_joined(self.entry[i]), self._after(i)) for i, block in enumerate(self.blocks)}

    def _after(self, i):
        """For each instruction of block *i*, what may be read behind it."""
        found = [_joined(self.exit[i]), _joined(self.before_last[i])]
        for instruction in reversed(self.blocks[i].instructions[1:-1]):
            found.append(before(instruction, found[-1]))
        return [mask | _STACK for mask in reversed(found[: len(self.blocks[i].instructions)])]

    def _update(self, i):
        """Compute block *i* anew. Returns the blocks that this concerns."""
        block = self.blocks[i]
        woken = []
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

    def _behind(self, i):
        """What the callers of block *i*'s function read; an outside function that returns there hands on no flags."""
        if self.blocks[i].last.flow in _CALLS:
            return 0
        behind = self.behind[self.blocks[i].function]
        return behind if self.names[i] is None else behind & ALL_REGISTERS

    def _call(self, i, live):
        """What is live before the call that ends block *i*, where *live* is so behind it."""
        target = self.blocks[i].last.target
        if not self.follows:
            return EVERYTHING
        if target is None or self.names[i] is not None:
            return CALL_READS << _ASSUMED | (live & ~_both(ALL_FLAGS))
        entry = self.index.get(target)
        if entry is None:
            return EVERYTHING | CALL_READS << _ASSUMED
        return live & ~_both(ALL_FLAGS) | self.entry[entry]

    def _hand_down(self, function, live):
        """Note that *live* is so behind a call of *function*, and of those that it jumps into. Returns their returning blocks."""
        stack = [function]
        while stack:
            start = stack.pop()
            if live & ~self.behind[start]:
                self.behind[start] |= live
                yield from self.returns.get(start, ())
                stack.extend(self.heirs.get(start, ()))


def _transfer(block):
    """What *block* reads before it overwrites it, and the complement of what it overwrites, but for its last instruction."""
    reads, kills = 0, 0
    for instruction in reversed(block.instructions[:-1]):
        effects = instruction.effects
        reads = effects.reads | (reads & ~effects.kills)
        kills |= effects.kills
    return reads, ~_both(kills)


def _both(mask):
    """*mask* in both parts."""
    return mask | mask << _ASSUMED


def _joined(mask):
    """What is live in either part."""
    return (mask | mask >> _ASSUMED) & EVERYTHING


_POINTER = (Register(RSP, 64), Register(RBP, 64))


def _returns_elsewhere(block):
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

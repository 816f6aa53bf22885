"""Whether a block with some of its instructions replaced is to the rest of its program what it was."""

from collections.abc import Iterator

from ruledb.machine.blocks import Block
from ruledb.machine.codec import Flow
from ruledb.machine.frame import leaves
from ruledb.machine.registers import RSP, family_mask

__all__ = ["looks_alike"]

_STACK = family_mask(RSP)


def looks_alike(old: Block, new: Block) -> bool:
    """
    Whether reading the program with *new* in the place of *old* gives the same entries, and the same liveness and frames of all
    other blocks. "No" is a safe answer.
    """
    is_same = old.end == new.end and _transfer(old) == _transfer(new) and leaves(old) == leaves(new)
    return is_same and list(_exposed(old)) == list(_exposed(new))


def _transfer(block: Block) -> tuple[int, int]:
    """What is read before it is overwritten, and what is overwritten, ahead of a transfer of control at the end."""
    reads = kills = 0
    for instruction in reversed(block.instructions):
        effects = instruction.effects
        if effects.flow is Flow.NEXT:
            reads = effects.reads | reads & ~effects.kills
            kills |= effects.kills
    return reads, kills


def _exposed(block: Block) -> Iterator[tuple[object, ...]]:
    """
    The instructions whose operands matter elsewhere: where they lead, what address they refer to or may hold (in a program at
    fixed addresses, an immediate may be one), and what they do to the stack, where a return address stands.
    """
    for d in block.instructions:
        is_stack = bool(d.effects.writes & _STACK) or d.effects.stores
        if d.target is not None or d.reference is not None or d.effects.flow is not Flow.NEXT or is_stack or len(d.code) > 4:
            yield d.target, d.reference, d.effects.flow, d.code if is_stack else d.code[4:] and d.code[-4:]

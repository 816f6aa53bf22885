"""
Windows: the runs of instructions that rules are learned from and applied to. This is their only definition.

A window lies in one block, so it is entered only at its top. It holds no transfer of control but a conditional jump that
closes it, and nothing whose effects go beyond registers, flags and plain memory. NOPs between its instructions are *filler*:
part of its bytes, never of its key.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from ruledb.machine.blocks import Block
from ruledb.machine.codec import Decoded, Flow
from ruledb.machine.instruction import Instruction
from ruledb.machine.keep import SSC_MARK, kept

__all__ = ["Window", "is_barrier", "is_filler", "runs", "windows"]


@dataclass(frozen=True, slots=True)
class Window:
    """
    Some consecutive instructions of a block.

    Attributes:
        start: Address of the first byte.
        end: Address behind the last byte; filler between the instructions is included.
        positions: Indices of the instructions in the block; those of filler are missing.
        decoded: The instructions, filler left out.
        live_out: Location mask over hardware families and flags: what may be read behind the last instruction.

    """

    start: int
    end: int
    positions: tuple[int, ...]
    decoded: tuple[Decoded, ...]
    live_out: int

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """The instructions as values."""
        return tuple(d.instruction for d in self.decoded)

    @property
    def n_bytes(self) -> int:
        """Bytes of the instructions, without filler."""
        return sum(len(d.code) for d in self.decoded)


def is_filler(decoded: Decoded) -> bool:
    """Whether *decoded* is a NOP that only fills space."""
    return decoded.effects.is_nop and decoded.code != SSC_MARK


_ENDBR64 = b"\xf3\x0f\x1e\xfa"


def is_barrier(decoded: Decoded) -> bool:
    """Whether *decoded* may be in no window, wherever it stands: control flow, locks, repetition, segments, landing marks."""
    effects = decoded.effects
    if effects.flow is not Flow.NEXT or effects.has_lock or effects.has_rep or effects.segment or decoded.code == _ENDBR64:
        return True
    # With memory, `xchg` locks the bus even without a prefix.
    return effects.loads and effects.stores and decoded.instruction.mnemonic == "xchg"


def runs(block: Block, usable: Callable[[Decoded], bool] | None = None) -> tuple[tuple[int, ...], ...]:
    """
    The longest runs of positions that windows of *block* may use, ascending. With *usable*, the instructions that it
    declines are barriers, too, and the conditional jump that closes the block is none if *usable* takes it.
    """
    closing = len(block.instructions) - 1 if usable is not None and block.last.flow is Flow.CONDITIONAL else -1
    found: list[tuple[int, ...]] = []
    run: list[int] = []
    for i, decoded in enumerate(block.instructions):
        if is_filler(decoded):
            continue
        if (usable is None or usable(decoded)) and (i == closing or not is_barrier(decoded)):
            run.append(i)
        elif run:
            found.append(tuple(run))
            run = []
    if run:
        found.append(tuple(run))
    if not found or not (keep := kept(block)):
        return tuple(found)
    return tuple(tuple(piece) for whole in found for is_kept, piece in groupby(whole, keep.__contains__) if not is_kept)


def windows(
    block: Block,
    live_after: Sequence[int],
    longest: int,
    usable: Callable[[Decoded], bool] | None = None,
    wanted: Callable[[Sequence[Decoded]], object] | None = None,
) -> Iterator[Window]:
    """
    All windows of 1 to *longest* instructions of *block*, by first instruction, then by length.

    Args:
        block: The block.
        live_after: For each instruction of the block, what may be read behind it.
        longest: The most instructions of a window.
        usable: Declines instructions that the caller has no use for.
        wanted: Declines whole sequences of instructions.

    """
    instructions = block.instructions
    for run in runs(block, usable):
        decoded = tuple(instructions[p] for p in run)
        for i, first in enumerate(decoded):
            for end in range(i + 1, min(i + longest, len(run)) + 1):
                piece = decoded[i:end]
                if wanted is None or wanted(piece):
                    yield Window(first.address, piece[-1].end, run[i:end], piece, live_after[run[end - 1]])

"""Compare two sequences on given states: a cheap test before the solver, and the start of what a rule preserves."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ruledb.machine.instruction import Instruction
from ruledb.machine.registers import FLAG_BIT, FLAGS, N_LANES, lane_bits
from ruledb.machine.states import Flags, States, Words
from ruledb.search.evaluate import Evaluator

__all__ = ["agreeing", "undefined_flags"]

_ONES = np.uint64((1 << 64) - 1)


def _both(evaluator: Evaluator, side: Sequence[Instruction], states: States) -> list[tuple[Words, Flags]]:
    """Results where undefined values read as zeros, and as ones."""
    return [evaluator.run(side, replace(states, poison=np.full(states.n, undefined, np.uint64))) for undefined in (0, _ONES)]


def undefined_flags(evaluator: Evaluator, side: Sequence[Instruction], states: States) -> Flags:
    """``uint8[n]``: the flags that *side* leaves undefined on each state."""
    (_, zeros), (_, ones) = _both(evaluator, side, states)
    return zeros ^ ones


def agreeing(evaluator: Evaluator, left: Sequence[Instruction], right: Sequence[Instruction], states: States) -> int:
    """
    Mask of the locations of the evaluator's families, and flags, in which *right* never differs from *left* on *states*.

    What *left* leaves undefined may take any value; what *right* leaves undefined agrees with nothing that *left* defines.
    """
    (zeros, flags_zeros), (ones, flags_ones) = _both(evaluator, left, states)
    others = _both(evaluator, right, states)
    mask = 0
    for family, slot in evaluator.slots.items():
        defined = ~(zeros[slot] ^ ones[slot])
        wrong = np.bitwise_or.reduce(np.bitwise_or.reduce([(zeros[slot] ^ other[slot]) & defined for other, _ in others]))
        for lane, (low, n) in enumerate(lane_bits):
            if not int(wrong) >> low & (1 << n) - 1:
                mask |= 1 << (N_LANES * family + lane)
    wrong_flags = int(
        np.bitwise_or.reduce(np.bitwise_or.reduce([(flags_zeros ^ other) & ~(flags_zeros ^ flags_ones) for _, other in others]))
    )
    return mask | sum(FLAG_BIT[name] for i, name in enumerate(FLAGS) if not wrong_flags >> i & 1)

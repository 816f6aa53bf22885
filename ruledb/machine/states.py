"""
Concrete machine states as columns, and directed ones for tests: edge values, equal and neighbouring registers.

Slot i of state k is ``registers[i, k]``; which register a slot is, is the caller's choice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ruledb.machine.constant import Constant, evaluate
from ruledb.machine.registers import FLAGS

__all__ = ["SEED", "Flags", "States", "Words", "directed_states", "extended", "poison"]

Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.uint8]

SEED = 20060
"""Seed of every generator of states: the same states every time."""


@dataclass(frozen=True, slots=True)
class States:
    """
    *n* states as columns: *registers* ``uint64[slots, n]``, *flags* ``uint8[n]``, *constants* ``uint64[symbols, n]``.

    *poison* ``uint64[n]`` is what undefined outputs read as.
    """

    registers: Words
    flags: Flags
    constants: Words
    poison: Words

    @property
    def n(self) -> int:
        """Number of states."""
        return int(self.flags.shape[0])

    def constant(self, constant: Constant) -> Words:
        """Value of *constant* in each state, as 64-bit words."""
        if isinstance(constant, int):
            return np.full(self.n, constant & (1 << 64) - 1, np.uint64)
        columns = self.constants.astype(np.int64).T.tolist()
        return np.array([_total(constant, column) & (1 << 64) - 1 for column in columns], np.uint64)


def _total(constant: Constant, values: Sequence[int]) -> int:
    """The constant's value, 0 where it has none: such a state tells nothing, and the proof guards it."""
    try:
        return evaluate(constant, values)
    except ValueError:
        return 0


def poison(n: int) -> Words:
    """Fixed pseudo-random words for undefined outputs in *n* states."""
    return np.random.default_rng(SEED + 1).integers(0, 1 << 64, n, np.uint64, endpoint=False)


def extended(states: States, families: Sequence[int], inputs: Mapping[str, int]) -> States:
    """*states* and one more: *inputs* by name (``r<family>``, flag, ``c<i>``), 0 where a name is missing; slot i is ``families[i]``."""
    row = np.array([[inputs.get(f"r{f}", 0)] for f in families], np.uint64).reshape(len(families), 1)
    flags = np.array([sum(inputs.get(name, 0) << i for i, name in enumerate(FLAGS))], np.uint8)
    constants = np.array([[inputs.get(f"c{i}", 0)] for i in range(states.constants.shape[0])], np.uint64).reshape(-1, 1)
    return States(
        np.concatenate([states.registers, row], axis=1),
        np.concatenate([states.flags, flags]),
        np.concatenate([states.constants, constants], axis=1),
        np.concatenate([states.poison, states.poison[:1]]),
    )


_EDGES = (
    0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000,
    0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF, 1 << 63, (1 << 64) - 1, (1 << 64) - 2,
    0x00FF00FF00FF00FF, 0xFFFFFF80, 0xFFFF8000, 0xFFFFFFFFFFFFFF80, 0xFFFFFFFF80000000, 0x5555555555555555, 0xAAAAAAAA,
)  # fmt: skip


def directed_states(n_slots: int, bits: Sequence[int], n: int = 320, values: Sequence[int] = ()) -> States:
    """
    *n* states for testing a match before the solver sees it: edge values, equal and neighbouring registers, random ones.

    Args:
        bits: Domain of each constant symbol, in bits.

    """
    rng = np.random.default_rng(SEED + 2)
    special = [v & (1 << 64) - 1 for v in values]
    edges = np.array([*_EDGES, *special * max(1, len(_EDGES) // max(1, 2 * len(special)))], np.uint64)
    registers = rng.integers(0, 1 << 64, (n_slots, n), np.uint64, endpoint=False)
    kind = rng.integers(0, 8, (n_slots, n))
    registers = np.where(kind < 3, edges[rng.integers(0, len(edges), (n_slots, n))], registers)
    registers = np.where(kind == 3, registers >> rng.integers(0, 64, (n_slots, n), np.uint64), registers)
    for slot in range(1, n_slots):  # equal to, or next to, an earlier register
        other = registers[rng.integers(0, slot, n), np.arange(n)]
        registers[slot] = np.where(
            kind[slot] == 4, other, np.where(kind[slot] == 5, other + rng.integers(-2, 3, n).astype(np.uint64), registers[slot])
        )
    registers[:, 0] = 0
    constants = np.zeros((len(bits), n), np.int64)
    for i, width in enumerate(bits):
        low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
        wild = rng.integers(low, high, n, endpoint=True)
        tame = rng.integers(-16, 65, n)
        extreme = np.array([low, high, low + 1, -1, 0, 1, 2, high >> 1])[rng.integers(0, 8, n)]
        power = np.left_shift(np.int64(1), rng.integers(0, width - 1, n))
        constants[i] = np.choose(rng.integers(0, 4, n), [wild, np.clip(tame, low, high), extreme, power])
        if i:
            constants[i] = np.where(rng.integers(0, 6, n) == 0, np.clip(constants[0], low, high), constants[i])
    flags = rng.integers(0, 64, n, np.uint8)
    return States(registers, flags, constants.astype(np.uint64), poison(n))

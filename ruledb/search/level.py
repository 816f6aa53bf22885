"""
Levels: all distinct states that sequences of one length reach from the test states.

Level n holds, for every kept sequence of n letters, its registers and flags on the ten search states. A new state is
dropped if it equals a cheaper one of this or a lower level in all locations on all ten; AF does not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ruledb.machine.instruction import Instruction
from ruledb.machine.registers import FLAGS
from ruledb.machine.states import Flags, States, Words
from ruledb.search.alphabet import Letter
from ruledb.search.evaluate import Bound, Evaluator
from ruledb.search.layout import cost_word, mask_word
from ruledb.search.loops import MIX
from ruledb.search.states import search_states

__all__ = ["Level", "Search", "mix"]

Ints = npt.NDArray[np.int32]
Index = npt.NDArray[np.integer[Any]]
_FLAT = 1 << 14
"""Words up to which all states go through a kernel in one call."""

_COMPARED = np.uint8(0b111111 & ~(1 << FLAGS.index("AF")))


def mix(values: Words, keys: Words | int) -> Words:
    """The 64-bit mixer of `ruledb.search.loops`, on arrays; *keys* is one key, or an array that broadcasts."""
    x = (values ^ np.asarray(keys, np.uint64)) * np.uint64(MIX[0])
    mixed: Words = (x ^ (x >> np.uint64(32))) * np.uint64(MIX[1])
    return mixed


@dataclass(frozen=True, slots=True)
class Level:
    """
    *n* states as columns.

    Attributes:
        values: ``uint64[slots, states, n]``. *flags*: ``uint8[states, n]``.
        parent, letter: How each was reached: the state of the level below, and the letter. Empty at level 0.
        costs: ``uint64[n]``, of the sequence, the cycles as a plain sum; *masks* ``uint64[n]``, what it needs: see `layout`.
        hashes: ``uint64[n]`` of all compared locations, sorted.

    """

    values: Words
    flags: Flags
    parent: Ints
    letter: Ints
    costs: Words
    masks: Words
    hashes: Words

    @property
    def n(self) -> int:
        """Number of states."""
        return int(self.flags.shape[1])


class Search:
    """Letters over the slots of *families*, bound to kernels, and the levels that they reach."""

    def __init__(
        self,
        evaluator: Evaluator,
        families: Sequence[int],
        letters: Sequence[Letter],
        symbols: Sequence[int],
        states: States | None = None,
    ) -> None:
        """*symbols*: for each letter, the bit mask of the constant symbols that it uses."""
        self.evaluator, self.families, self.letters = evaluator, tuple(families), tuple(letters)
        self.states = states if states is not None else search_states(len(families))
        self.bounds: list[Bound] = evaluator.bind([letter.instruction for letter in letters])
        self.costs = np.array([cost_word(x.n_bytes, *x.time) for x in letters], np.uint64)
        self.masks = np.array(
            [
                mask_word(b.writes, sum(1 << evaluator.slots[f] for f in x.fixed), s)
                for x, b, s in zip(letters, self.bounds, symbols, strict=True)
            ],
            np.uint64,
        )
        self.constants = [np.ascontiguousarray(self.states.constant(b.constant)) for b in self.bounds]
        rng = np.random.default_rng(7)
        self._keys = rng.integers(1, 1 << 63, (len(families) + 1, self.states.n), np.uint64)
        self.levels = [self._start()]

    def _start(self) -> Level:
        s = self.states
        values, flags = np.ascontiguousarray(s.registers[:, :, None]), np.ascontiguousarray(s.flags[:, None])
        nothing, zero = np.zeros(0, np.int32), np.zeros(1, np.uint64)
        level = Level(values, flags, nothing, nothing, zero, zero, zero)
        return replace(level, hashes=self._location_hashes(level).sum(axis=0))

    def _location_hashes(self, level: Level) -> Words:
        """``uint64[slots + 1, n]``: what each location adds to the hash of a state; flags last."""
        rows = [self._hashed(slot, keys) for slot, keys in zip(level.values, self._keys, strict=False)]
        return np.stack([*rows, self._hashed_flags(level.flags)])

    @staticmethod
    def _hashed(values: Words, keys: Words) -> Words:
        """What values ``[states, n]`` of one location add to a hash."""
        return np.asarray(mix(values, keys[:, None]).sum(axis=0, dtype=np.uint64))

    def _hashed_flags(self, flags: Flags) -> Words:
        return self._hashed((flags & _COMPARED).astype(np.uint64), self._keys[-1])

    def apply(self, number: int, level: Level, chosen: Index | slice = slice(None), n_states: int | None = None) -> tuple[Words, Flags]:
        """
        Letter *number* on the *chosen* states of *level*: new values ``uint64[outputs, states, n]`` and flags
        ``uint8[states, n]``, on the first *n_states* search states (default: all).
        """
        bound = self.bounds[number]
        old = level.flags[:n_states, chosen]
        k, n = old.shape
        if k * n > _FLAT:  # long rows: one call a state
            parts = [self._row(number, level, chosen, i) for i in range(k)]
            return np.array([p[0] for p in parts], np.uint64).transpose(1, 0, 2), np.stack([p[1] for p in parts])
        inputs = [np.ascontiguousarray(level.values[s][:k, chosen]).ravel() for s in bound.inputs]
        each = [np.repeat(a[:k], n) for a in (self.constants[number], self.states.poison)]
        outputs, flags = self.evaluator.step(bound, inputs, np.ascontiguousarray(old).ravel(), *each)
        return np.array(outputs, np.uint64).reshape(len(outputs), k, n), flags.reshape(k, n)

    def _row(self, number: int, level: Level, chosen: Index | slice, k: int) -> tuple[Words, Flags]:
        bound = self.bounds[number]
        inputs = [np.ascontiguousarray(level.values[s, k, chosen]) for s in bound.inputs]
        each = (self.constants[number][k : k + 1], self.states.poison[k : k + 1])
        outputs, flags = self.evaluator.step(bound, inputs, np.ascontiguousarray(level.flags[k, chosen]), *each)
        return np.array(outputs, np.uint64).reshape(len(outputs), flags.shape[0]), flags

    def expand(self) -> Level:
        """Add the next level, from every state of the last by every letter, and return it."""
        old = self.levels[-1]
        located = self._location_hashes(old)
        total = located.sum(axis=0)
        hashes = np.empty((len(self.letters), old.n), np.uint64)
        for number, bound in enumerate(self.bounds):
            values, flags = self.apply(number, old)
            row = total.copy()
            for slot, new in zip(bound.outputs, values, strict=True):
                row += self._hashed(new, self._keys[slot]) - located[slot]
            if bound.kernel.writes_flags:
                row += self._hashed_flags(flags) - located[-1]
            hashes[number] = row
        level = self._keep(old, hashes)
        self.levels.append(level)
        return level

    def _keep(self, old: Level, hashes: Words) -> Level:
        """The new states among *hashes* ``[letters, n]``, cheapest first where equal, in order of letter and parent."""
        order = np.argsort((self.costs[:, None] + old.costs).ravel(), kind="stable")
        unique, first = np.unique(hashes.ravel()[order], return_index=True)
        fresh = np.ones(unique.shape, bool)
        for level in self.levels:
            at = np.minimum(np.searchsorted(level.hashes, unique), level.n - 1)
            fresh &= level.hashes[at] != unique
        chosen = np.sort(order[first[fresh]])
        letter, parent = (a.astype(np.int32) for a in np.divmod(chosen, old.n))
        n, n_states = chosen.shape[0], self.states.n
        values, flags = np.empty((len(self.families), n_states, n), np.uint64), np.empty((n_states, n), np.uint8)
        starts = np.searchsorted(letter, np.arange(len(self.letters) + 1))
        for number, (start, end) in enumerate(pairwise(starts)):
            if start == end:
                continue
            parents = parent[start:end]
            new, new_flags = self.apply(number, old, parents)
            values[:, :, start:end] = old.values[:, :, parents]
            for slot, row in zip(self.bounds[number].outputs, new, strict=True):
                values[slot, :, start:end] = row
            flags[:, start:end] = new_flags
        costs, masks = self.costs[letter] + old.costs[parent], self.masks[letter] | old.masks[parent]
        return Level(values, flags, parent, letter, costs, masks, np.sort(unique[fresh]))

    def sequence(self, depth: int, state: int) -> tuple[Instruction, ...]:
        """The letters that reach *state* of level *depth*."""
        letters: list[Instruction] = []
        for level in reversed(self.levels[1 : depth + 1]):
            letters.append(self.letters[level.letter[state]].instruction)
            state = int(level.parent[state])
        return tuple(reversed(letters))

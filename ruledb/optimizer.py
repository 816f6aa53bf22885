"""
The search for one concrete window: a rich alphabet with constants derived from the window's own, then proof, cheapest first.

Length 1 and 2 are searched with everything; length 3 with what fits a number of candidates.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from time import monotonic

import numpy as np

from ruledb.cost import latency_of, size_of, time_of
from ruledb.machine.canonical import bind, families_in, fixed_families, rename
from ruledb.machine.codec import CodecError, normalise
from ruledb.machine.constant import Constant, signed
from ruledb.machine.instruction import Instruction, Label, constants_of
from ruledb.machine.registers import (
    ALL_FLAGS,
    FLAG_SHIFT,
    N_HARDWARE,
    N_LANES,
    RCX,
    RSP,
    VIRTUAL,
    Register,
    families_of,
    family_mask,
)  # fmt: skip
from ruledb.machine.states import SEED, States, directed_states, extended, poison
from ruledb.proof.prover import Counterexample, Proved, Prover, Refuted, Undecided, written_families
from ruledb.search.agreement import agreeing
from ruledb.search.alphabet import DEEP_ROWS, ROWS, Letter, alphabet
from ruledb.search.cells import Celled, celled
from ruledb.search.enumerator import Enumeration, Match
from ruledb.search.evaluate import Evaluator
from ruledb.search.kernels import KernelLibrary
from ruledb.search.states import search_states
from ruledb.search.targets import Target, live_bits
from ruledb.semantics.forms import features

__all__ = ["COSTS", "Goal", "Improvement", "Seen", "improve"]

_MAX_CONSTANTS = 24
_CANDIDATES = 4_000_000_000
"""Candidates of length 3 that a search may look at: some twenty seconds."""

_PROOFS = 48
"""Candidates that are given to the prover before the search is given up."""

_USUAL = 4
"""States of every search that the search for one goal keeps."""

Cost = tuple[int, ...]
COSTS: dict[str, Callable[[Sequence[Instruction]], Cost]] = {
    "size": size_of,
    "time": lambda instructions: time_of(instructions, size_of(instructions)[0]),
}
"""Cost model → cost of a concrete sequence."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A concrete window to improve: what is *live* behind it, and which dead registers may be overwritten (*scratch*)."""

    instructions: tuple[Instruction, ...]
    live: int
    scratch: int = 0

    @property
    def writes(self) -> frozenset[int]:
        """Families that a replacement may write."""
        return written_families(self.instructions) | frozenset(families_of(self.scratch))

    @property
    def families(self) -> tuple[int, ...]:
        """Families that a replacement may name, rcx last."""
        named = families_in(self.instructions) | frozenset(families_of(self.scratch))
        return tuple(sorted(named - {RSP}, key=lambda f: (f == RCX, f)))


@dataclass(frozen=True, slots=True)
class Improvement:
    """
    What a search found: *replacement* (None: nothing cheaper), its proof, and how far it looked.

    *complete* is False where time ran out or a cheaper candidate stayed undecided; *reason* says so.
    """

    replacement: tuple[Instruction, ...] | None
    proof: Proved | None
    length: int
    candidates: int
    complete: bool
    reason: str = ""


def improve(library: KernelLibrary, goal: Goal, cost: str, *, length: int, timeout_s: float, jobs: int = 1) -> Improvement:
    """
    The cheapest proved replacement of *goal* under the cost model *cost*, of at most *length* instructions.

    A longer length is searched only where no shorter one was proved. Two thirds of the time are the search's, the rest is
    the prover's.
    """
    start = monotonic()
    task = _Task(library, goal, COSTS[cost], start + timeout_s)
    goal = task.seen.goal
    candidates = reached = 0
    for depths, enumeration in _stages(library, goal, length, jobs):
        for depth in depths:
            if monotonic() > start + timeout_s * 2 / 3:
                return task.best(reached, candidates) or Improvement(None, None, reached, candidates, complete=False, reason=_LATE)
            stopped = _Stop(start + timeout_s * 2 / 3)
            matches = enumeration.empty() if depth == 0 else list(enumeration.run(depth, narrow=depth < 3, stop=stopped))
            candidates += enumeration.counters.by_length.get(depth, 0)
            task.take(enumeration, matches)
            task.reason = _LATE if stopped.hit else task.reason
            reached = depth
        found = task.best(reached, candidates)
        if found is not None:
            return found
    return Improvement(None, None, reached, candidates, complete=not task.reason, reason=task.reason)


@dataclass(frozen=True, slots=True)
class Seen:
    """A goal as the search sees it, on registers alone, and what its sequences stand for (`ruledb.search.cells`)."""

    goal: Goal
    cells: Celled | None = None
    names: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, goal: Goal) -> "Seen | None":
        """The *goal* with registers that it does not use for memory and a jump; None where they cannot be written so."""
        if not any(features(i) & {"memory", "branch"} for i in goal.instructions):
            return cls(goal) if not any(map(features, goal.instructions)) else None
        cells = celled(goal.instructions)
        free = [f for f in reversed(range(N_HARDWARE)) if f not in families_in(goal.instructions) | set(families_of(goal.scratch)) | {RSP}]
        if cells is None or len(free) < len(cells.cells) + 1:
            return None
        form = cells.canonical
        places = iter(free)
        families = [next(places) if f >= VIRTUAL else f for f in form.families]
        live = goal.live & ~sum(family_mask(f) for f in range(N_HARDWARE) if f not in families)
        live |= sum((cells.live(0) >> N_LANES * (VIRTUAL + k) & 0b1111) << N_LANES * f for k, f in enumerate(families))
        inner = bind(form.instructions, families, [c for c in form.constants if isinstance(c, int)])
        return cls(Goal(inner, live, goal.scratch), cells, {f: VIRTUAL + k for k, f in enumerate(families)})

    def back(self, sequence: tuple[Instruction, ...], target: Label | None) -> Iterator[tuple[Instruction, ...]]:
        """What *sequence* stands for; a closing jump goes to *target*."""
        if self.cells is None:
            yield sequence
            return
        named = rename(sequence, lambda r: Register(self.names.get(r.family, r.family), r.width, r.high), lambda c: c)
        for found in self.cells.back(named):
            yield rename(found, lambda r: r, lambda c: c, target=target)


_LATE = "the time limit ended the search"


class _Stop:
    """Becomes true at *deadline*, and remembers that it did."""

    def __init__(self, deadline: float) -> None:
        self._deadline, self.hit = deadline, False

    def __call__(self) -> bool:
        self.hit = self.hit or monotonic() > self._deadline
        return self.hit


class _Task:
    """Candidates of one goal, and their proofs, cheapest first."""

    def __init__(self, library: KernelLibrary, goal: Goal, model: Callable[[Sequence[Instruction]], Cost], deadline: float) -> None:
        self.goal, self.model, self.deadline = goal, model, deadline
        self.reason = ""
        self._before = model(goal.instructions)
        self._found: dict[tuple[Instruction, ...], tuple[Cost, tuple[Instruction, ...]]] = {}
        seen = Seen.of(goal)
        assert seen is not None, "the command has asked"
        self.seen, inner = seen, seen.goal
        self._evaluator = Evaluator(library, inner.families)
        self._states = directed_states(len(inner.families), (), 1024, _constants(self._evaluator, inner))
        self._named = sum(map(family_mask, inner.families)) | ALL_FLAGS
        self._prover, self._left = Prover(), _PROOFS

    def take(self, enumeration: Enumeration, matches: Sequence[Match]) -> None:
        """Keep what is cheaper than the goal and has an encoding."""
        target = next((o for i in self.goal.instructions for o in i.operands if isinstance(o, Label)), None)
        for match in matches:
            inner = enumeration.sequence(match)
            for found in self.seen.back(inner, target):
                try:
                    sequence = tuple(i if target in i.operands else normalise(i) for i in found)
                    cost = self.model(sequence)
                except CodecError:
                    continue
                if cost < self._before:
                    self._found[sequence] = cost, inner

    def best(self, length: int, candidates: int) -> Improvement | None:
        """The cheapest candidate that is proved; those that are refuted are forgotten, and their states kept."""
        for sequence in sorted(self._found, key=lambda s: (self._found[s][0], len(s), str(s))):
            if self._left <= 0 or monotonic() > self.deadline:
                self.reason = self.reason or "no candidate was proved within the limits"
                return None
            _, inner = self._found.pop(sequence)
            aim = self.seen.goal
            if aim.live & self._named & ~agreeing(self._evaluator, aim.instructions, inner, self._states):
                continue
            self._left -= 1
            match self._prover.prove(self.goal.instructions, sequence, self.goal.live, plausible=0, scratch=self.goal.scratch):
                case Proved() as proof:
                    return Improvement(sequence, proof, length, candidates, complete=not self.reason, reason=self.reason)
                case Refuted(Counterexample() as example) if self.seen.cells is None:
                    self._states = extended(self._states, self.goal.families, example.inputs)
                case Undecided(why, _):
                    self.reason = self.reason or f"a cheaper candidate stayed undecided ({why})"
                case _:
                    pass
        return None


def _stages(library: KernelLibrary, goal: Goal, length: int, jobs: int) -> Iterator[tuple[tuple[int, ...], Enumeration]]:
    """Lengths to search, and the search for each: everything up to 2, then what fits."""
    families = goal.families
    evaluator = Evaluator(library, families)
    pool = _constants(evaluator, goal)
    longest = min(length, max(2, len(goal.instructions)))
    target = _target(goal)
    # Level 2 is only scanned, never stored: its cost is the square of the letters.
    wide = alphabet(families, pool, (*ROWS, *DEEP_ROWS))
    states = _revealing(evaluator, goal, pool, 64)
    enumeration = Enumeration(evaluator, families, wide, [target], states=states, kept=200, jobs=jobs)
    yield tuple(range(min(longest, 2) + 1)), enumeration
    if longest >= 3:
        letters = _fitting(evaluator, pool, goal)
        yield (3,), Enumeration(evaluator, families, letters, [target], states=_revealing(evaluator, goal, pool, 16), kept=200, jobs=jobs)


def _fitting(evaluator: Evaluator, pool: Sequence[Constant], goal: Goal) -> tuple[Letter, ...]:
    """The largest alphabet whose sequences of length 3 stay within `_CANDIDATES`: fewer constants, then only related letters."""
    families, may = goal.families, sum(1 << evaluator.slots[f] for f in goal.writes if f in evaluator.slots)
    widths = {getattr(o, "width", 0) for i in goal.instructions for o in i.operands}
    plain = [c for c in pool if c in set(constants_of(goal.instructions)) or c in (0, 1, -1)]
    own = {i.mnemonic for i in goal.instructions}
    choices = [
        alphabet(families, pool, (*ROWS, *DEEP_ROWS)),
        alphabet(families, pool),
        alphabet(families, plain),
        tuple(x for x in alphabet(families, plain) if _related(x.instruction, own, widths)),
        tuple(
            x
            for x in alphabet(families, plain)
            if _related(x.instruction, own, widths) and not evaluator.bind([x.instruction])[0].writes & ~may
        ),
        tuple(
            x
            for x in alphabet(families, plain, (*ROWS, *DEEP_ROWS))
            if x.instruction.mnemonic in own and not evaluator.bind([x.instruction])[0].writes & ~may
        ),
    ]
    # Two thirds of the states of level 2 are copies of cheaper ones.
    return next((c for c in choices if len(c) ** 3 * 0.55 < _CANDIDATES), choices[-1])


def _related(instruction: Instruction, own: set[str], widths: set[int]) -> bool:
    width = getattr(instruction.operands[0], "width", 64) if instruction.operands else 64
    simple = ("mov", "add", "sub", "and", "or", "xor", "lea", "neg", "not", "sbb", "cmp", "test", "inc", "dec", "shl", "shr", "sar")
    same_kind = any(instruction.mnemonic[:3] == m[:3] for m in own)
    return (instruction.mnemonic in simple or same_kind) and (width in widths or same_kind)


def _revealing(evaluator: Evaluator, goal: Goal, pool: Sequence[int], n: int) -> States:
    """
    *n* states: a few of every search, and others that say more about the goal: those whose live results are rare.

    Without them a comparison with a constant looks like a constant itself.
    """
    usual = search_states(len(goal.families))
    sample = directed_states(len(goal.families), (), 2048, pool)
    registers, flags = evaluator.run(goal.instructions, sample)
    live = [registers[slot] & np.uint64(live_bits(goal.live, f)) for f, slot in evaluator.slots.items()]
    results = np.stack([*live, (flags & np.uint8(goal.live >> FLAG_SHIFT & 0b111111)).astype(np.uint64)], axis=1)
    _, inverse, counts = np.unique(results, axis=0, return_inverse=True, return_counts=True)
    # Rare among few results (0 and 1) come up as often as common ones.
    weights = (1.0 / counts)[inverse.ravel()]
    rng = np.random.default_rng(SEED)
    chosen = rng.choice(sample.n, n - _USUAL, p=weights / weights.sum())
    return States(
        np.concatenate([usual.registers[:, :_USUAL], sample.registers[:, chosen]], axis=1),
        np.concatenate([usual.flags[:_USUAL], sample.flags[chosen]]),
        np.zeros((0, n), np.uint64),
        poison(n),
    )


def _target(goal: Goal) -> Target:
    """The goal on the search's own terms; every candidate that is cheaper in some way is wanted."""
    times = [latency_of(i) for i in goal.instructions]
    n_bytes = size_of(goal.instructions)[0]
    writes = goal.writes
    live = goal.live | sum(family_mask(f) for f in (RSP,) if f in writes)
    cost = (n_bytes, sum(t[0] for t in times), sum(t[1] for t in times) + 1)
    return Target(
        goal.instructions, live, writes, fixed_families(goal.instructions) | families_in(goal.instructions) | writes, 0, cost, "goal"
    )


def _constants(evaluator: Evaluator, goal: Goal) -> tuple[int, ...]:
    """Constants worth trying: the window's own, what arithmetic makes of them, and what the window does to 0 and to 1."""
    own = [c for c in dict.fromkeys(constants_of(goal.instructions)) if isinstance(c, int)]
    wanted = [0, 1, -1, *own]
    wanted += [a + b for a, b in permutations(own, 2)] + [a - b for a, b in permutations(own, 2)] + [2 * c for c in own]
    wanted += [v for c in own for v in (-c, ~c, c + 1, c - 1)]
    wanted += _responses(evaluator, goal)
    for c in own:
        positive = c & (1 << 64) - 1
        if c % 2 == 0:
            wanted.append(c // 2)
        if positive & (positive - 1) == 0 and positive:
            wanted.append(positive.bit_length() - 1)
        if positive & (positive + 1) == 0 and positive:
            wanted.append(positive.bit_length())
        if 0 < c < 64:
            wanted += [1 << c, (1 << c) - 1, 32 - c, 64 - c]
    wanted += [31, 63, 8, 16, 24]
    return tuple(dict.fromkeys(signed(c, 64) for c in wanted))[:_MAX_CONSTANTS]


def _responses(evaluator: Evaluator, goal: Goal) -> list[int]:
    """Live results where all inputs are 0, and how they change where one of them is 1: offsets and multipliers."""
    n = len(goal.families)
    registers = np.concatenate([np.zeros((n, 1), np.uint64), np.eye(n, dtype=np.uint64)], axis=1)
    states = States(registers, np.zeros(n + 1, np.uint8), np.zeros((0, n + 1), np.uint64), np.zeros(n + 1, np.uint64))
    results, _ = evaluator.run(goal.instructions, states)
    values = []
    for family in goal.families:
        bits = live_bits(goal.live, family)
        if bits:
            row = [signed(int(v & np.uint64(bits)), 32 if bits < 1 << 32 else 64) for v in results[evaluator.slots[family]]]
            values += [row[0], *(v - row[0] for v in row[1:])]
    return values

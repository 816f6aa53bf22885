"""
The search: level by level, all candidates against all targets at once.

`Enumeration.run` yields, for each target, the sequences that agree with it on all search states and are cheaper
in bytes, cycles or µops. They are candidates: directed tests and the prover decide.

Source: Bansal & Aiken 2006, sections 4.1-4.3; the probing by partial sums is ours.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations
from time import perf_counter

import numpy as np
import numpy.typing as npt

from ruledb.machine.constant import symbols_in
from ruledb.machine.instruction import Instruction
from ruledb.machine.states import Flags, States, Words
from ruledb.search.alphabet import Letter
from ruledb.search.best import Best
from ruledb.search.evaluate import Evaluator, constant_of
from ruledb.search.layout import COST_GUARD, DESCRIPTOR, FIND_BITS, LOW8, PARAMETERS, by_cycles, costs_of
from ruledb.search.level import Level, Search, mix
from ruledb.search.loops import ROW
from ruledb.search.scan import compile_scan
from ruledb.search.targets import LESS_ONE, Index, Table, Target, Targets, low_bytes

__all__ = ["KEPT", "Enumeration", "Match"]

_BLOCK_BITS, _LETTER_BITS = 10, 16
BLOCK = 1 << _BLOCK_BITS
"""States a block: registers, fingerprints and filter together stay in the second-level cache."""

_ROUND = 8
"""Blocks a thread between two looks at what was found."""

_HITS = 1 << 16
"""Room for matches in one call of the scan, at first."""

_PAIRS = 1 << 22
"""Pairs of a state and a class that are looked at together where flags alone are looked for."""

_SAMPLE, _TOO_OFTEN = 200_000, 200_000
"""States that `Enumeration.plain` looks at, and finds of one target that are not worth checking."""

_FLAG_STATES = 10
"""Search states on which flags are compared before all are."""

_SCAN = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
KEPT = 6
"""Candidates kept for a target, level and cost model, unless the caller wants more."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Match:
    """A candidate for target number *target*: level and parent state, and the last letter; *cost* (bytes, cycles, µops)."""

    target: int
    depth: int
    parent: int
    letter: int
    cost: tuple[int, int, int]


@dataclass(slots=True)
class Counters:
    """
    What a search has done so far.

    *hits* are the fingerprints found in a table; *scan_s* the seconds that all threads spent in the compiled scan.
    """

    candidates: int = 0
    hits: int = 0
    matches: int = 0
    scan_s: float = 0.0
    by_length: dict[int, int] = field(default_factory=dict)


class Enumeration:
    """One search over *families* with *letters* for *targets*."""

    def __init__(
        self,
        evaluator: Evaluator,
        families: Sequence[int],
        letters: Sequence[Letter],
        targets: Sequence[Target],
        *,
        states: States | None = None,
        kept: int = KEPT,
        jobs: int = 1,
    ) -> None:
        assert len(letters) < 1 << _LETTER_BITS
        assert _BLOCK_BITS <= FIND_BITS
        self.search = Search(evaluator, families, letters, [_symbol_mask(x.instruction) for x in letters], states)
        self.counters = Counters()
        rng = np.random.default_rng(11)
        self.keys = rng.integers(1, 1 << 63, len(families), np.uint64)
        self.targets = _evaluated(targets, self.search, self.keys)
        self.active = np.ones(len(targets), bool)
        self._scan = _SCAN(compile_scan(evaluator.library))
        self._kept, self._jobs = kept, jobs

    def sequence(self, match: Match) -> tuple[Instruction, ...]:
        """The instructions of *match*'s candidate."""
        if match.depth == 0:
            return ()
        return (*self.search.sequence(match.depth - 1, match.parent), self.search.letters[match.letter].instruction)

    def empty(self) -> list[Match]:
        """Targets that do nothing at all: the empty sequence replaces them."""
        start = self.search.levels[0]
        everyone = np.arange(self.targets.n)
        agreed = self.targets.agreeing(start.values, start.flags, (np.zeros_like(everyone), everyone))
        return [Match(int(t), 0, 0, 0, (0, 0, 0)) for t in np.flatnonzero(agreed[self.targets.of] & self.active)]

    def run(self, depth: int, *, narrow: bool = True, flags: bool = True, stop: Callable[[], bool] = lambda: False) -> Iterator[Match]:
        """
        Matches of length *depth*; the levels below are expanded as needed.

        Args:
            narrow: Look for 8-bit results behind every letter, not only behind those that write eight bits.
            flags: Look for live flags behind letters that write no live register.
            stop: Asked now and then; the search ends early where it answers yes.

        """
        while len(self.search.levels) < depth:
            self.search.expand()
        level = self.search.levels[depth - 1]
        best = Best(self.targets.n, self._kept)
        looked_at = self._scan_level(level, best, stop, narrow=narrow)
        if flags and looked_at == level.n:
            for number, states, classes in self._flag_hits(level, depth):
                if stop():
                    break
                self._verify(level, number, states, classes, best)
        # Of a search that was stopped, only what surely was looked at counts.
        self.counters.by_length[depth] = looked_at * len(self.search.letters)
        self.counters.candidates += looked_at * len(self.search.letters)
        for match in self._matches(best.rows(), depth):
            self.counters.matches += 1
            yield match

    def retire(self, targets: Sequence[int]) -> None:
        """Stop looking for the given targets."""
        self.active[list(targets)] = False

    def plain(self) -> list[int]:
        """
        Active targets that the next level would find too often, by what a sample of the last level's states holds.

        The two fingerprint states tell little of them: a bit, say, that is 0 in one and 1 in the other. Behind every state
        some letter makes such a result, and a long search drowns in finds that the other states refuse.
        """
        table, level = self.targets.table(self._active_classes()), self.search.levels[-1]
        keys = np.unique(table.keys)
        if not keys.size:
            return []
        counts = np.zeros(keys.size, np.int64)
        step = max(1, level.n // _SAMPLE)
        for prints in self._probed(level, step):
            at = np.minimum(np.searchsorted(keys, prints), keys.size - 1)
            counts += np.bincount(at[keys[at] == prints], minlength=keys.size)
        expected = counts * step * len(self.search.letters)
        return self._targets_of(np.unique(table.owners[np.isin(table.keys, keys[expected > _TOO_OFTEN])]))

    def untelling(self) -> list[int]:
        """Active targets without live registers whose live flags are the same in all states: every other letter sets them so."""
        t = self.targets
        same = (t.flags == t.flags[0]).all(axis=0)
        return self._targets_of(np.flatnonzero(same & (t.live == 0).all(axis=0)))

    def _active_classes(self) -> Mask:
        return np.bincount(self.targets.of, self.active, self.targets.n) > 0

    def _targets_of(self, classes: Index) -> list[int]:
        found: list[int] = np.flatnonzero(self.active & np.isin(self.targets.of, classes)).tolist()
        return found

    def _matches(self, rows: Words, depth: int) -> Iterator[Match]:
        """What was kept, by target, cheapest first."""
        states, letters = _decoded(rows[:, 1])
        starts = np.searchsorted(rows[:, 0], np.arange(self.targets.n + 1, dtype=np.uint64))
        for target in np.flatnonzero(self.active).tolist():
            start, end = starts[self.targets.of[target] : self.targets.of[target] + 2].tolist()
            have = self.targets.target_costs[target].tolist()
            for state, letter, word in zip(
                states[start:end].tolist(), letters[start:end].tolist(), rows[start:end, 2].tolist(), strict=True
            ):
                cost = costs_of(word)
                if any(a < b for a, b in zip(cost, have, strict=True)):
                    yield Match(target, depth, state, letter, cost)

    def _probed(self, level: Level, step: int) -> Iterator[Words]:
        """The keys under which registers of every *step*-th state are found: alone, in pairs, by their low bytes."""
        packed = [(v[0, ::step] & np.uint64(0xFFFFFFFF)) | (v[1, ::step] << np.uint64(32)) for v in level.values]
        prints = [mix(p, int(k)) for p, k in zip(packed, self.keys, strict=True)]
        yield from prints
        yield from (a + b for a, b in combinations(prints, 2))
        yield from (low_bytes(p) | np.uint64(slot << 16) for slot, p in enumerate(packed))

    def _scan_level(self, level: Level, best: Best, stop: Callable[[], bool], *, narrow: bool) -> int:
        """Put what agrees into *best*; the number of states looked at."""
        table = self.targets.table(self._active_classes())
        rows, letters = self._descriptors(table, narrow=narrow)
        step = BLOCK * _ROUND * self._jobs
        if not rows.size:
            return level.n
        with ThreadPoolExecutor(self._jobs) as pool:
            for start in range(0, level.n, step):
                if stop():
                    return start
                blocks = range(start, min(start + step, level.n), BLOCK)
                # The limits change between rounds alone, so that what is found does not depend on who comes first.
                for found in list(pool.map(lambda offset: self._block(level, table, rows, letters, best, offset), blocks)):
                    best.add(found)
        return level.n

    def _descriptors(self, table: Table, *, narrow: bool) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """One row a letter and output with something to probe; and the letter of each row."""
        rows, letters = [], []
        for number, (bound, letter) in enumerate(zip(self.search.bounds, self.search.letters, strict=True)):
            eight = getattr(letter.instruction.operands[0], "width", 64) == 8 if letter.instruction.operands else False
            for output, slot in enumerate(bound.outputs):
                probes = table.probes[slot] if narrow or eight else table.probes[slot] & ~LOW8
                if not probes:
                    continue
                inputs = dict(zip(("in0", "in1", "in2", "in3"), bound.inputs, strict=False))
                given = {
                    **inputs, "pack": bound.kernel.pack, "step": bound.kernel.step, "slot": slot, "probes": probes, "output": output,
                    "constants": self.search.constants[number].ctypes.data,
                    "partner": 1 + bound.outputs[1 - output] if len(bound.outputs) > 1 else -1,
                    "out0": bound.outputs[0], "out1": bound.outputs[1] if len(bound.outputs) > 1 else -1,
                    "mask": int(self.search.masks[number]), "cost": int(self.search.costs[number]),
                }  # fmt: skip
                rows.append([given.get(name, 0) for name in DESCRIPTOR])
                letters.append(number)
        return np.array(rows, np.int64).reshape(len(rows), len(DESCRIPTOR)), np.array(letters, np.uint64)

    def _block(self, level: Level, table: Table, rows: npt.NDArray[np.int64], letters: Words, best: Best, offset: int) -> Words:
        """What agrees, of one block of states: rows for `Best`."""
        begun = perf_counter()
        n, slots, states = min(BLOCK, level.n - offset), len(self.search.families), self.search.states
        targets, limits = self.targets, best.limits
        work, scratch = np.empty((6 + slots) * BLOCK + 64, np.uint64), np.zeros((states.n + 1, ROW), np.uint64)
        hits = np.empty((_HITS, 2), np.uint64)
        found = np.zeros((0, 3), np.uint64)
        given = {
            "n": n, "offset": offset, "stride": level.n, "states": states.n, "slots": slots, "values": level.values.ctypes.data,
            "flags": level.flags.ctypes.data, "masks": level.masks.ctypes.data, "costs": level.costs.ctypes.data,
            "descriptors": rows.ctypes.data, "count": rows.shape[0], "work": work.ctypes.data, "keys": self.keys.ctypes.data,
            "filter": table.filter.ctypes.data, "filter_shift": table.filter_shift, "table": table.pairs.ctypes.data,
            "table_shift": table.shift, "low8": table.low8.ctypes.data, "low8_lists": table.low8_lists.ctypes.data,
            "lists": table.lists.ctypes.data, "kinds": targets.kinds[0].ctypes.data,
            "signed": targets.signed.ctypes.data, "forbidden": targets.kinds[1].ctypes.data,
            "classes": targets.records.ctypes.data, "dearest": targets.dearest.ctypes.data, "poison": states.poison.ctypes.data,
            "rows": scratch.ctypes.data,
        }  # fmt: skip
        parameters = np.array([given.get(name, 0) for name in PARAMETERS], np.int64)
        first, n_hits = PARAMETERS.index("first"), PARAMETERS.index("n_hits")
        while parameters[first] < rows.shape[0]:
            before = parameters[first]
            parameters[[PARAMETERS.index(name) for name in ("limits", "hits", "capacity", "n_hits")]] = (
                limits.ctypes.data, hits.ctypes.data, hits.shape[0], 0,
            )  # fmt: skip
            self._scan(parameters.ctypes.data)
            found = np.concatenate([found, self._rows(level, letters, hits[: parameters[n_hits]])])
            if parameters[first] < rows.shape[0]:
                limits = best.limits_with(found)
                if parameters[first] == before:  # no room even for one instruction's
                    hits = np.empty((2 * hits.shape[0], 2), np.uint64)
        self.counters.hits += int(parameters[PARAMETERS.index("n_finds")])
        self.counters.scan_s += perf_counter() - begun
        return found

    def _rows(self, level: Level, letters: Words, hits: Words) -> Words:
        """Hits (class, row << 32 | state) as rows (class, arrival, cost)."""
        states, numbers = hits[:, 1] & np.uint64(0xFFFFFFFF), letters[(hits[:, 1] >> np.uint64(32)).astype(np.intp)]
        return self._as_rows(level, hits[:, 0], states, numbers)

    def _as_rows(self, level: Level, classes: Words | Index, states: Words | Index, letters: Words) -> Words:
        costs = level.costs[states.astype(np.intp)] + self.search.costs[letters.astype(np.intp)]
        return np.stack([classes.astype(np.uint64), _arrivals(states.astype(np.uint64), letters), costs], axis=1)

    def _flag_hits(self, level: Level, depth: int) -> Iterator[tuple[int, Index, Index]]:
        """
        Letters that set the live flags of a class and write none of its live registers, on states that hold the
        registers already: those are known before any letter is tried. Where no register is live, flags on some states are
        mixed into one word, and looked up.
        """
        targets = self.targets
        flagged = self._active_classes() & (targets.live_flags != 0)
        has_register = (targets.live != 0).any(axis=0)
        states, owners = self._holding(level, flagged & has_register)
        unique, inverse = np.unique(states, return_inverse=True)
        wanted = targets.flags[:_FLAG_STATES, owners]
        kinds = self._flag_kinds(flagged & ~has_register)
        for number, bound in enumerate(self.search.bounds):
            # Behind many states only letters that do nothing but set flags: what else they write would be dead.
            if not bound.kernel.writes_flags or (depth > 2 and bound.outputs):
                continue
            if unique.size:
                _, flags = self.search.apply(number, level, unique, _FLAG_STATES)
                same = np.flatnonzero((((flags[:, inverse] ^ wanted) & targets.live_flags[owners]) == 0).all(axis=0))
                yield number, states[same], owners[same]
            if kinds:
                _, flags = self.search.apply(number, level, slice(None), _FLAG_STATES)
                for mask, keys, found in kinds:
                    for pair in _joined(_flag_words(flags & mask), keys, found):
                        yield number, *pair

    def _holding(self, level: Level, chosen: Mask) -> tuple[Index, Index]:
        """Pairs of a state of *level* and a *chosen* class whose live registers it holds."""
        table = self.targets.table(chosen)
        held = [
            (states[agreed], classes[agreed])
            for prints in self._probed(level, 1)
            for states, classes in _joined(prints, table.keys, table.owners)
            if (agreed := self.targets.agreeing(level.values, level.flags, (states, classes), with_flags=False)).any()
        ]
        if not held:
            return np.zeros(0, np.intp), np.zeros(0, np.intp)
        both = np.unique(np.stack([np.concatenate(side) for side in zip(*held, strict=True)]), axis=1)
        return both[0], both[1]

    def _flag_kinds(self, chosen: Mask) -> list[tuple[np.uint8, Words, Index]]:
        """The *chosen* classes by their mask of live flags: the words to look for, sorted, and whose they are."""
        targets, kinds = self.targets, []
        for mask in np.unique(targets.live_flags[chosen]):
            owners = np.flatnonzero(chosen & (targets.live_flags == mask))
            keys = _flag_words(targets.flags[:_FLAG_STATES, owners])
            order = np.argsort(keys, kind="stable")
            kinds.append((mask, keys[order], owners[order]))
        return kinds

    def _verify(self, level: Level, number: int, states: Index, classes: Index, best: Best) -> None:
        """Put what is allowed, is cheaper in some way and agrees on all states into *best*."""
        t = self.targets
        costs = level.costs[states] + self.search.costs[number]
        allowed = ((level.masks[states] | self.search.masks[number]) & t.forbidden[classes]) == 0
        allowed &= ((t.costs[classes] + np.uint64(COST_GUARD - LESS_ONE) - costs) & np.uint64(COST_GUARD)) != 0
        allowed &= (costs < best.limits[classes, 0]) | (by_cycles(costs) < best.limits[classes, 1])
        states, classes = states[allowed], classes[allowed]
        if not states.size:
            return
        unique, inverse = np.unique(states, return_inverse=True)
        new, flags = self.search.apply(number, level, unique)
        values = level.values[:, :, unique]
        for slot, row in zip(self.search.bounds[number].outputs, new, strict=True):
            values[slot] = row
        agreed = t.agreeing(values, flags, (inverse, classes))
        states, classes = states[agreed], classes[agreed]
        best.add(self._as_rows(level, classes, states, np.full(states.shape, number, np.uint64)))


def _arrivals(states: Words, letters: Words) -> Words:
    """In which order a search meets candidates: by block of states, letter, state."""
    block, within = states >> np.uint64(_BLOCK_BITS), states & np.uint64(BLOCK - 1)
    arrivals: Words = block << np.uint64(_BLOCK_BITS + _LETTER_BITS) | letters << np.uint64(_BLOCK_BITS) | within
    return arrivals


def _decoded(arrivals: Words) -> tuple[Words, Words]:
    """States and letters of arrivals."""
    block, within = arrivals >> np.uint64(_BLOCK_BITS + _LETTER_BITS), arrivals & np.uint64(BLOCK - 1)
    return block << np.uint64(_BLOCK_BITS) | within, arrivals >> np.uint64(_BLOCK_BITS) & np.uint64((1 << _LETTER_BITS) - 1)


def _symbol_mask(instruction: Instruction) -> int:
    return sum(1 << i for i in symbols_in(constant_of(instruction)))


def _evaluated(targets: Sequence[Target], search: Search, keys: Words) -> Targets:
    """Run every target by its kernels on the search states."""
    n_slots, states = len(search.families), search.states
    values, flags = np.empty((n_slots, states.n, len(targets)), np.uint64), np.empty((states.n, len(targets)), np.uint8)
    for i, target in enumerate(targets):
        values[:, :, i], flags[:, i] = search.evaluator.run(target.instructions, states)
    return Targets(targets, search.families, values, flags, keys)


def _flag_words(flags: Flags) -> Words:
    """Flags ``[states, n]`` as one word each."""
    keys = np.arange(1, 2 * flags.shape[0], 2, dtype=np.uint64)
    return np.asarray(mix(flags.astype(np.uint64), keys[:, None]).sum(axis=0, dtype=np.uint64))


def _joined(results: Words, keys: Words, owners: Index) -> Iterator[tuple[Index, Index]]:
    """Pairs of a result and an owner whose key, of the sorted *keys*, it is; some `_PAIRS` at a time."""
    low, high = np.searchsorted(keys, results, "left"), np.searchsorted(keys, results, "right")
    found = np.flatnonzero(high > low)
    low, amount = low[found], high[found] - low[found]
    ends = np.cumsum(amount)
    for start in _cuts(ends):
        part = slice(*start)
        which = np.repeat(found[part], amount[part])
        within = np.arange(which.shape[0]) - np.repeat(ends[part] - amount[part] - (ends[part.start] - amount[part.start]), amount[part])
        yield which, owners[np.repeat(low[part], amount[part]) + within]


def _cuts(ends: Index) -> Iterator[tuple[int, int]]:
    """Cut running sums into pieces of about `_PAIRS`."""
    start = 0
    while start < ends.shape[0]:
        before = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + _PAIRS, "right")))
        yield start, end
        start = end

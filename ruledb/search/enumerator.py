"""
The search: level by level, all candidates against all targets at once.

`enumerate_candidates` yields, for each target, the sequences that agree with it on all search states and are cheaper
in bytes, cycles or µops. They are candidates: directed tests and the prover decide.

Source: Bansal & Aiken 2006, sections 4.1-4.3; the probing by partial sums is ours.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from time import perf_counter

import numpy as np
import numpy.typing as npt

from ruledb.machine.constant import symbols_in
from ruledb.machine.instruction import Instruction
from ruledb.machine.states import Flags, States, Words
from ruledb.search.alphabet import Letter
from ruledb.search.evaluate import Evaluator, constant_of
from ruledb.search.level import Level, Search, mix
from ruledb.search.scan import DESCRIPTOR, LOW8, PARAMETERS, compile_scan
from ruledb.search.targets import Index, Table, Target, Targets, low_bytes

__all__ = ["Enumeration", "Match"]

BLOCK = 1024
"""States a block: registers, fingerprints and filter together stay in the second-level cache."""

_HITS = 1 << 18
_SAMPLE, _TOO_OFTEN = 200_000, 200_000
"""States that `Enumeration.plain` looks at, and finds of one target that are not worth checking."""

_FLAG_STATES = 10
"""Search states on which flags are compared before all are."""

_NOTHING = np.zeros(0, np.intp)
_SCAN = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
KEPT = 6
"""Candidates kept for a target, level and cost model, unless the caller wants more."""


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
    """What a search has done so far; *scan_s* are the seconds that all threads spent in the scan, probes included."""

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
        self.search = Search(evaluator, families, letters, [_symbol_mask(x.instruction) for x in letters], states)
        self.counters = Counters()
        rng = np.random.default_rng(11)
        self.keys = rng.integers(1, 1 << 63, len(families), np.uint64)
        self.targets = _evaluated(targets, self.search, [int(k) for k in self.keys])
        self.active = np.ones(len(targets), bool)
        self._scan = _SCAN(compile_scan(evaluator.library))
        self._kept, self._jobs, self._n_scanned = kept, jobs, 0

    def sequence(self, match: Match) -> tuple[Instruction, ...]:
        """The instructions of *match*'s candidate."""
        if match.depth == 0:
            return ()
        return (*self.search.sequence(match.depth - 1, match.parent), self.search.letters[match.letter].instruction)

    def empty(self) -> list[Match]:
        """Targets that do nothing at all: the empty sequence replaces them."""
        start = self.search.levels[0]
        everyone = np.arange(len(self.targets.targets))
        agreed = self.targets.agreeing(start.values, start.flags, (np.zeros_like(everyone), everyone))
        return [Match(int(t), 0, 0, 0, (0, 0, 0)) for t in np.flatnonzero(agreed & self.active)]

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
        table = self.targets.table(self.active)
        best = _Best(len(self.targets.targets), self._kept)
        stopped = False
        for number, states, targets in self._hits(level, table, narrow=narrow):
            if stop():
                stopped = True
                break
            self._verify(level, number, states, targets, best)
        if flags and not stopped:
            for number, states, targets in self._flag_hits(level, depth):
                if stop():
                    break
                self._verify(level, number, states, targets, best)
        # Of a search that was stopped, only what surely was looked at counts.
        looked_at = self._n_scanned if stopped else level.n
        self.counters.by_length[depth] = looked_at * len(self.search.letters)
        self.counters.candidates += looked_at * len(self.search.letters)
        for match in best.matches(depth):
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
        table, level = self.targets.table(self.active), self.search.levels[-1]
        keys = np.unique(table.keys)
        if not keys.size:
            return []
        counts = np.zeros(keys.size, np.int64)
        step = max(1, level.n // _SAMPLE)
        for prints in self._probed(level, step):
            at = np.minimum(np.searchsorted(keys, prints), keys.size - 1)
            counts += np.bincount(at[keys[at] == prints], minlength=keys.size)
        expected = counts * step * len(self.search.letters)
        found: list[int] = np.unique(table.targets[np.isin(table.keys, keys[expected > _TOO_OFTEN])]).tolist()
        return found

    def untelling(self) -> list[int]:
        """Active targets without live registers whose live flags are the same in all states: every other letter sets them so."""
        t = self.targets
        same = (((t.flags ^ t.flags[0]) & t.live_flags) == 0).all(axis=0)
        found: list[int] = np.flatnonzero(self.active & same & (t.live == 0).all(axis=0)).tolist()
        return found

    def _probed(self, level: Level, step: int) -> Iterator[Words]:
        """The keys under which registers of every *step*-th state are found: alone, in pairs, by their low bytes."""
        packed = [(v[0, ::step] & np.uint64(0xFFFFFFFF)) | (v[1, ::step] << np.uint64(32)) for v in level.values]
        prints = [mix(p, int(k)) for p, k in zip(packed, self.keys, strict=True)]
        yield from prints
        yield from (a + b for a, b in combinations(prints, 2))
        yield from (low_bytes(p) | np.uint64(slot << 16) for slot, p in enumerate(packed))

    def _hits(self, level: Level, table: Table, *, narrow: bool) -> Iterator[tuple[int, Index, Index]]:
        """Letter, states and targets of everything that a probe found; a letter may come several times."""
        rows, numbers = self._descriptors(table, narrow=narrow)
        if not rows.size:
            return
        gathered: list[Words] = []
        amount = self._n_scanned = 0
        blocks = range(0, level.n, BLOCK)
        with ThreadPoolExecutor(self._jobs) as pool:
            for hits in pool.map(lambda offset: self._block(level, table, rows, offset), blocks):
                self._n_scanned += BLOCK
                if not hits.size:
                    yield 0, _NOTHING, _NOTHING
                    continue
                self.counters.hits += hits.shape[0]
                gathered.append(hits)
                amount += hits.shape[0]
                if amount > 1 << 22:
                    yield from _resolved(np.concatenate(gathered), table, rows, numbers)
                    gathered, amount = [], 0
        if amount:
            yield from _resolved(np.concatenate(gathered), table, rows, numbers)

    def _descriptors(self, table: Table, *, narrow: bool) -> tuple[npt.NDArray[np.int64], list[int]]:
        """One row a letter and output with something to probe; and the letter of each row."""
        rows, numbers = [], []
        for number, (bound, letter) in enumerate(zip(self.search.bounds, self.search.letters, strict=True)):
            eight = getattr(letter.instruction.operands[0], "width", 64) == 8 if letter.instruction.operands else False
            for output, slot in enumerate(bound.outputs):
                probes = table.probes[slot] if narrow or eight else table.probes[slot] & ~LOW8
                if not probes:
                    continue
                inputs = [*bound.inputs, 0, 0, 0, 0][:4]
                constants = [int(c) for c in self.search.constants[number][:2].astype(np.int64)]
                partner = 1 + bound.outputs[1 - output] if len(bound.outputs) > 1 else -1
                rows.append([bound.kernel.pack, *inputs, *constants, slot, probes, output, partner])
                numbers.append(number)
        return np.array(rows, np.int64).reshape(len(rows), len(DESCRIPTOR)), numbers

    def _block(self, level: Level, table: Table, rows: npt.NDArray[np.int64], offset: int) -> Words:
        start = perf_counter()
        n, slots = min(BLOCK, level.n - offset), len(self.keys)
        work = np.empty((4 + slots) * n, np.uint64)
        hits = np.empty((_HITS, 4), np.uint64)
        poison = self.search.states.poison.astype(np.int64)
        given = {
            "n": n, "offset": offset, "stride": level.n, "states": self.search.states.n, "values": level.values.ctypes.data,
            "flags": level.flags.ctypes.data, "descriptors": rows.ctypes.data, "first": 0, "count": rows.shape[0], "slots": slots,
            "work": work.ctypes.data, "keys": self.keys.ctypes.data, "filter": table.filter.ctypes.data, "filter_shift": table.filter_shift,
            "table": table.words.ctypes.data, "table_shift": table.table_shift, "low8": table.low8.ctypes.data, "hits": hits.ctypes.data,
            "capacity": _HITS, "poison0": int(poison[0]), "poison1": int(poison[1]),
        }  # fmt: skip
        parameters = np.array([given[name] for name in PARAMETERS], np.int64)
        found = []
        while parameters[PARAMETERS.index("first")] < rows.shape[0]:
            count = self._scan(parameters.ctypes.data)
            found.append(hits[:count].copy())
        everything = np.concatenate(found)
        everything[:, 1] += np.uint64(offset)
        self.counters.scan_s += perf_counter() - start
        return everything

    def _flag_hits(self, level: Level, depth: int) -> Iterator[tuple[int, Index, Index]]:
        """
        Letters that set the live flags of a target and write none of its live registers, on states that hold the
        registers already: those are known before any letter is tried. Where no register is live, flags on some states are
        mixed into one word, and looked up.
        """
        targets = self.targets
        flagged = self.active & (targets.live_flags != 0)
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
                    yield from _joined(number, _flag_words(flags & mask), np.arange(level.n), keys, found)

    def _holding(self, level: Level, chosen: npt.NDArray[np.bool_]) -> tuple[Index, Index]:
        """Pairs of a state of *level* and a *chosen* target whose live registers the state may hold."""
        table = self.targets.table(chosen)
        everyone = np.arange(level.n)
        pairs = [pair[1:] for prints in self._probed(level, 1) for pair in _joined(0, prints, everyone, table.keys, table.targets)]
        if not pairs:
            return _NOTHING, _NOTHING
        both = np.unique(np.stack([np.concatenate(side) for side in zip(*pairs, strict=True)]), axis=1)
        return both[0], both[1]

    def _flag_kinds(self, chosen: npt.NDArray[np.bool_]) -> list[tuple[np.uint8, Words, Index]]:
        """The *chosen* targets by their mask of live flags: the words to look for, sorted, and whose they are."""
        targets, kinds = self.targets, []
        for mask in np.unique(targets.live_flags[chosen]):
            owners = np.flatnonzero(chosen & (targets.live_flags == mask))
            keys = _flag_words(targets.flags[:_FLAG_STATES, owners] & mask)
            order = np.argsort(keys, kind="stable")
            kinds.append((mask, keys[order], owners[order]))
        return kinds

    def _verify(self, level: Level, number: int, states: Index, targets: Index, best: "_Best") -> None:
        """Put what agrees on all states, is allowed and is cheaper in some way into *best*."""
        trait, t = self.search.traits[number], self.targets
        costs = np.stack(
            [level.n_bytes[states] + trait.n_bytes, level.cycles[states] + trait.cycles, level.uops[states] + trait.uops], axis=1
        )
        allowed = (costs < t.costs[targets]).any(axis=1)
        for have, add, may in (
            (level.writes, trait.writes, t.writes),
            (level.fixed, trait.fixed, t.fixed),
            (level.symbols, trait.symbols, t.symbols),
        ):
            allowed &= ((have[states] | np.uint8(add)) & ~may[targets]) == 0
        allowed &= best.would_keep(targets, costs)
        states, targets, costs = states[allowed], targets[allowed], costs[allowed]
        if not states.size:
            return
        unique, inverse = np.unique(states, return_inverse=True)
        new, flags = self.search.apply(number, level, unique)
        values = level.values[:, :, unique]
        for slot, row in zip(self.search.bounds[number].outputs, new, strict=True):
            values[slot] = row
        agreed = t.agreeing(values, flags, (inverse, targets))
        best.add(targets[agreed], states[agreed], number, costs[agreed])


class _Best:
    """The cheapest few matches of every target under each of two orders: bytes first, and cycles first."""

    def __init__(self, n: int, kept: int) -> None:
        self._kept = kept
        self._found: dict[int, dict[tuple[int, int], tuple[int, int, int]]] = {}
        self._limit = np.full((n, 2), np.iinfo(np.int64).max, np.int64)

    @staticmethod
    def _ranks(costs: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        n_bytes, cycles, uops = costs.T.astype(np.int64)
        return np.stack([(n_bytes * 1000 + cycles) * 1000 + uops, (cycles * 1000 + uops) * 1000 + n_bytes], axis=1)

    def would_keep(self, targets: Index, costs: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Which matches are not worse than what each target holds enough of already."""
        better: npt.NDArray[np.bool_] = self._ranks(costs) < self._limit[targets]
        return np.asarray(better.any(axis=1), bool)

    def add(self, targets: Index, states: Index, number: int, costs: npt.NDArray[np.int32]) -> None:
        """Keep matches, and forget those that fall behind the best few."""
        ranks = self._ranks(costs)
        for target, state, cost, rank in zip(targets.tolist(), states.tolist(), costs.tolist(), ranks, strict=True):
            if not (rank < self._limit[target]).any():
                continue
            found = self._found.setdefault(target, {})
            found[state, number] = tuple(cost)
            if len(found) > 4 * self._kept:
                self._trim(target)

    def _trim(self, target: int) -> None:
        found = self._found[target]
        ranks = self._ranks(np.array(list(found.values()), np.int32))
        keys, kept = list(found), set()
        for order in (0, 1):
            ordered = sorted(range(len(keys)), key=lambda i: (ranks[i, order], keys[i]))[: self._kept]
            kept |= {keys[i] for i in ordered}
            if len(ordered) == self._kept:
                self._limit[target, order] = ranks[ordered[-1], order]
        self._found[target] = {key: found[key] for key in keys if key in kept}

    def matches(self, depth: int) -> Iterator[Match]:
        """All that was kept, by target, cheapest first."""
        for target in sorted(self._found):
            self._trim(target)
            for (state, number), cost in sorted(self._found[target].items(), key=lambda item: (item[1], item[0])):
                yield Match(target, depth, state, number, cost)


def _symbol_mask(instruction: Instruction) -> int:
    return sum(1 << i for i in symbols_in(constant_of(instruction)))


def _evaluated(targets: Sequence[Target], search: Search, keys: Sequence[int]) -> Targets:
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


def _joined(number: int, results: Words, states: Index, keys: Words, owners: Index) -> Iterator[tuple[int, Index, Index]]:
    """Pairs of states and targets whose result is one of the sorted *keys*."""
    low, high = np.searchsorted(keys, results, "left"), np.searchsorted(keys, results, "right")
    amount = high - low
    if not amount.any():
        return
    which = np.repeat(np.arange(results.shape[0]), amount)
    within = np.arange(which.shape[0]) - np.repeat(np.cumsum(amount) - amount, amount)
    yield number, states[which], owners[low[which] + within]


def _resolved(hits: Words, table: Table, rows: npt.NDArray[np.int64], numbers: Sequence[int]) -> Iterator[tuple[int, Index, Index]]:
    """Hits ``(row, state, fingerprint, probe)`` grouped by letter, with their targets."""
    order = np.argsort(hits[:, 0], kind="stable")
    hits = hits[order]
    bounds = np.searchsorted(hits[:, 0], np.arange(len(numbers) + 1, dtype=np.uint64))
    for row, (start, end) in enumerate(pairwise(bounds.tolist())):
        if start == end:
            continue
        part = hits[start:end]
        small = part[:, 3] == np.uint64(LOW8)
        keys = np.where(small, part[:, 2] | np.uint64(int(rows[row, DESCRIPTOR.index("slot")]) << 16), part[:, 2])
        yield from _joined(numbers[row], keys, part[:, 1].astype(np.intp), table.keys, table.targets)

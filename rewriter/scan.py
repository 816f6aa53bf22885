"""
Where in a binary rules may match: a look at every window at the speed of array operations.

Each instruction is reduced to its *shape*: mnemonic and kinds of operands, whatever the registers are. Windows whose
outline no pattern has (the sequence of shapes, and which registers are equal) are passed over; what is left is looked up,
once for each sequence of encodings.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rewriter.matcher import RuleIndex
from rewriter.option import LIVE_FLAGS, LIVE_REGISTER, UNFRAMED, Option, Refusal
from rewriter.outline import Part, equalities
from ruledb.machine.blocks import Program
from ruledb.machine.codec import Flow
from ruledb.machine.encodings import Numbers
from ruledb.machine.listing import FLOWS, Indices, Listing, Marks, spans
from ruledb.machine.liveness import EVERYTHING, Liveness
from ruledb.machine.registers import ALL_REGISTERS, FLAG_SHIFT
from ruledb.machine.window import is_barrier, is_filler

__all__ = ["Found", "Scanner"]

_Families = NDArray[np.uint8]


@dataclass(frozen=True)
class Found:
    """
    What a scan found: *blocks* are the numbers of those with a place where a rule may be applied, ascending; *refused*
    counts the (reason, rule's digest) of the places in all others.
    """

    blocks: tuple[int, ...]
    refused: Counter[tuple[str, str]]


_REASONS = (LIVE_FLAGS, LIVE_REGISTER, UNFRAMED)


@dataclass(frozen=True)
class _Places:
    """
    Windows that rules match: each one's *block*, the index of its *options*, whether one of them *may_apply*, and the number in
    `_REASONS` of why the first may not.
    """

    block: Numbers
    kind: Indices
    may_apply: Marks
    reason: Indices
    options: Sequence[Sequence[Option | Refusal]]

    def refusals(self, wanted: Marks) -> Counter[tuple[str, str]]:
        """The reasons, and the rules' digests, of those *wanted* to which no rule may be applied."""
        told = len(_REASONS) * self.kind[wanted & ~self.may_apply] + self.reason[wanted & ~self.may_apply]
        counts = np.bincount(told, minlength=0)
        found: Counter[tuple[str, str]] = Counter()
        for number in np.flatnonzero(counts).tolist():
            kind, reason_number = divmod(number, len(_REASONS))
            best = self.options[kind][0]
            reason = best.reason if isinstance(best, Refusal) else _REASONS[reason_number]
            found[reason, best.digest] += int(counts[number])
        return found


class Scanner:
    """The scan for the rules of *index*. What it learns about encodings serves all passes of a run."""

    def __init__(self, index: RuleIndex) -> None:
        self._index = index
        # A trie of the patterns' shapes: (node, shape) → node; node 0 is the root, and shape 0 that of no pattern.
        steps: dict[tuple[int, int], int] = {}
        ends: list[tuple[int, _Families]] = []
        for pattern in index.patterns:
            node = 0
            for shape, _ in pattern:
                node = steps.setdefault((node, shape), len(steps) + 1)
            ends.append((node, np.array([[family for part in pattern for family in _named(part)]], dtype=np.uint8)))
        self._base = max((shape for _, shape in steps), default=0) + 1
        self._keys = np.array(sorted(node * self._base + shape for node, shape in steps), dtype=np.int64)
        self._nodes = np.array([steps[divmod(key, self._base)] for key in self._keys.tolist()], dtype=np.int64)
        self._outlines = np.array([_outlines(np.array([node]), families)[0] for node, families in ends], dtype=np.uint64)
        self._shapes: list[int] = []
        self._families: list[tuple[int, ...]] = []
        self._is_filler: list[bool] = []
        self._options: dict[tuple[int, ...], tuple[Option | Refusal, ...]] = {}

    def find(self, program: Program, live: Liveness, framed: Marks, wanted: Marks) -> Found:
        """
        What is to be found in the blocks of *program* that are *wanted*, a mark per block. *framed*: per instruction, whether rbp
        holds an address of the stack before it.
        """
        cuts = program.cuts
        block = np.full(len(program.listing), -1, dtype=np.int32)
        lengths = np.where(wanted, cuts.stop - cuts.first, 0)
        index = spans(cuts.first, lengths)
        block[index] = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        self._learn(program.listing, np.unique(program.listing.encoding[index]))
        is_candidate = np.zeros(len(lengths), dtype=np.bool_)
        places = [self._places(program.listing, block, columns, live, framed) for columns in self._windows(program.listing, block, index)]
        for found in places:
            is_candidate[found.block[found.may_apply]] = True
        refused: Counter[tuple[str, str]] = Counter()
        for found in places:
            refused.update(found.refusals(~is_candidate[found.block]))
        return Found(tuple(np.flatnonzero(is_candidate).tolist()), refused)

    def _learn(self, listing: Listing, numbers: Indices) -> None:
        """Find out the shapes of the encodings *numbers* that are still unknown."""
        tables, codes = listing.encodings.tables, listing.encodings.codes
        self._shapes += [-1] * (len(codes) - len(self._shapes))
        self._families += [_named(None)] * (len(codes) - len(self._families))
        self._is_filler += [False] * (len(codes) - len(self._is_filler))
        # Of jumps, only one that closes a window is in a rule.
        is_closing = tables.flow[tables.form] == FLOWS[Flow.CONDITIONAL]
        is_plain = ~tables.has_target | is_closing
        for number in numbers.tolist():
            if self._shapes[number] >= 0:
                continue
            self._shapes[number] = 0
            decoded = listing.encodings.decoded(number) if is_plain[number] or tables.is_nop[tables.form[number]] else None
            if decoded is not None:
                self._is_filler[number] = is_filler(decoded)
                may_stand = bool(is_closing[number]) or not is_barrier(decoded)
                part = self._index.part(decoded) if may_stand and self._index.usable(decoded) else None
                if part is not None:
                    self._shapes[number] = part[0]
                    self._families[number] = _named(part)

    def _windows(self, listing: Listing, block: Numbers, index: Indices) -> Iterator[list[Indices]]:
        """By length, the windows whose outline some pattern has: the indices of their first instructions, second ones, …"""
        index = index[~np.array(self._is_filler, dtype=np.bool_)[listing.encoding[index]]]
        shapes = np.array(self._shapes, dtype=np.int64)[listing.encoding[index]]
        families = np.array(self._families, dtype=np.uint8)[listing.encoding[index]]
        home = block[index]
        at, node = np.flatnonzero(shapes), np.zeros(int(np.count_nonzero(shapes)), dtype=np.int64)
        for length in range(self._index.longest if len(self._keys) else 0):
            is_inside = at + length < len(index)
            at, node = at[is_inside], node[is_inside]
            is_inside = home[at + length] == home[at]
            at, node = at[is_inside], node[is_inside]
            key = node * self._base + shapes[at + length]
            place = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
            is_known = self._keys[place] == key
            at, node = at[is_known], self._nodes[place[is_known]]
            named = families[at[:, None] + np.arange(length + 1)].reshape(len(at), _N_NAMED * (length + 1))
            fits = at[np.isin(_outlines(node, named), self._outlines)]
            yield [index[fits + k] for k in range(length + 1)]

    def _places(self, listing: Listing, block: Numbers, columns: Sequence[Indices], live: Liveness, framed: Marks) -> _Places:
        """The windows of one length, their first instructions in the first of *columns*, and so on, with what the rules say to them."""
        n_encodings = len(listing.encodings.codes)
        kind = np.zeros(len(columns[0]), dtype=np.int64)
        for column in columns:
            _, first, kind = np.unique(kind * n_encodings + listing.encoding[column], return_index=True, return_inverse=True)
        encodings = zip(*(listing.encoding[column[first]].tolist() for column in columns), strict=True)
        options = [self._options_of(listing, numbers) for numbers in encodings]
        is_match = np.array([len(found) > 0 for found in options], dtype=np.bool_)[kind]
        kind, last = kind[is_match], columns[-1][is_match]
        lanes, flags = live.at(last)
        choices = [[option for option in found if isinstance(option, Option)] for found in options]
        unframed = ~framed[columns[0][is_match]]
        may_apply, reason = np.zeros(len(last), dtype=np.bool_), np.zeros(len(last), dtype=np.int64)
        for k in range(max(map(len, choices), default=0)):
            # Where there is no such option, nothing may be live, but rsp always is.
            dead = [choice[k].dead if k < len(choice) else EVERYTHING for choice in choices]
            in_registers = lanes & np.array([mask & ALL_REGISTERS for mask in dead], dtype=np.uint64)[kind] != 0
            in_flags = flags & np.array([mask >> FLAG_SHIFT for mask in dead], dtype=np.uint8)[kind] != 0
            fails = unframed & np.array([k < len(choice) and choice[k].wants_frame for choice in choices], dtype=np.bool_)[kind]
            may_apply |= ~(in_registers | in_flags | fails)
            if k == 0:
                reason = np.where(fails, _REASONS.index(UNFRAMED), np.where(in_registers, _REASONS.index(LIVE_REGISTER), 0))
        return _Places(block[last], kind, may_apply, reason, options)

    def _options_of(self, listing: Listing, numbers: tuple[int, ...]) -> Sequence[Option | Refusal]:
        found = self._options.get(numbers)
        if found is None:
            decoded = [listing.encodings.decoded(n) for n in numbers]
            found = self._options[numbers] = self._index.options(decoded)
        return found


_N_NAMED, _NO_FAMILY = 4, 0xFF


def _named(part: Part | None) -> tuple[int, ...]:
    """The families that an instruction names, filled up or cut off; of those cut off, outlines tell less than they might."""
    families = part[1] if part is not None else ()
    return (*families, *[_NO_FAMILY] * _N_NAMED)[:_N_NAMED]


def _outlines(nodes: Indices, families: _Families) -> NDArray[np.uint64]:
    """A hash of each sequence's outline: its node in the trie, and which of the *families* that it names are equal."""
    return equalities(families) * np.uint64(0xC2B2AE3D27D4EB4F) + nodes.astype(np.uint64)

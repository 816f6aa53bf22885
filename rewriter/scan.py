"""
Where in a binary rules may match: a look at every window at the speed of array operations.

Each instruction is reduced to its *shape*: mnemonic and kinds of operands, whatever the registers are. Windows whose
sequence of shapes no pattern has are passed over; what is left is looked up, once for each sequence of encodings.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rewriter.matcher import Option, Refusal, RuleIndex
from ruledb.machine.blocks import Program
from ruledb.machine.canonical import LITERALS
from ruledb.machine.codec import decode
from ruledb.machine.instruction import Imm, Instruction, Mem, Operand
from ruledb.machine.listing import Indices, Listing, Marks
from ruledb.machine.liveness import Liveness
from ruledb.machine.registers import FLAG_SHIFT, Register
from ruledb.machine.window import is_barrier, is_filler

__all__ = ["Found", "Scanner", "shape_of"]

_Shape = tuple[object, ...]


def shape_of(instruction: Instruction) -> _Shape:
    """What of *instruction* its canonical forms share, symbolic and literal: all but registers and most constants."""
    return (instruction.mnemonic, *map(_operand_shape, instruction.operands))


def _operand_shape(operand: Operand) -> object:
    match operand:
        case Register(width=width, high=high):
            return width, high
        case Imm(value):
            return "imm", value if value in LITERALS else None
        case Mem(base, index, scale, displacement, width, rip, segment):
            known = displacement if displacement in LITERALS else None
            return base is not None, index is not None, scale, known, width, rip, segment
        case _:
            return operand


@dataclass(frozen=True)
class Found:
    """
    What a scan found: *blocks* are the numbers of those with a place where a rule may be applied, ascending; *refused*
    counts the (reason, rule's digest) of the places in all others.
    """

    blocks: tuple[int, ...]
    refused: Counter[tuple[str, str]]


class Scanner:
    """The scan for the rules of *index*. What it learns about encodings serves all passes of a run."""

    def __init__(self, index: RuleIndex) -> None:
        self._index = index
        self._numbers: dict[_Shape, int] = {}
        # A trie of the patterns' shapes: (node, shape) → node; node 0 is the root, and shape 0 that of no pattern.
        self._steps: dict[tuple[int, int], int] = {}
        self._ends: set[int] = set()
        for pattern in index.patterns:
            node = 0
            for instruction in pattern:
                shape = self._numbers.setdefault(shape_of(instruction), len(self._numbers) + 1)
                node = self._steps.setdefault((node, shape), len(self._steps) + 1)
            self._ends.add(node)
        self._base = len(self._numbers) + 1
        steps = sorted((node * self._base + shape, after) for (node, shape), after in self._steps.items())
        self._keys = np.array([key for key, _ in steps], dtype=np.int64)
        self._nodes = np.array([after for _, after in steps], dtype=np.int64)
        self._is_end = np.isin(np.arange(len(steps) + 1), sorted(self._ends))
        self._shapes: list[int] = []
        self._is_filler: list[bool] = []
        self._options: dict[tuple[int, ...], tuple[Option | Refusal, ...]] = {}

    def find(self, program: Program, live: Liveness, wanted: Marks) -> Found:
        """What is to be found in the blocks of *program* that are *wanted*, a mark per block."""
        cuts = program.cuts
        block = np.full(len(program.listing), -1, dtype=np.int64)
        lengths = np.where(wanted, cuts.stop - cuts.first, 0)
        index = np.repeat(cuts.first - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
        block[index] = np.repeat(np.arange(len(lengths)), lengths)
        self._learn(program.listing, np.unique(program.listing.encoding[index]))
        candidates: set[int] = set()
        refused: list[tuple[int, tuple[str, str]]] = []
        for number, option in self._places(program.listing, block, index, live):
            if option is None:
                candidates.add(number)
            else:
                refused.append((number, option))
        return Found(tuple(sorted(candidates)), Counter(reason for number, reason in refused if number not in candidates))

    def _learn(self, listing: Listing, numbers: Indices) -> None:
        """Find out the shapes of the encodings *numbers* that are still unknown."""
        tables, codes = listing.encodings.tables, listing.encodings.codes
        self._shapes += [-1] * (len(codes) - len(self._shapes))
        self._is_filler += [False] * (len(codes) - len(self._is_filler))
        # What names an address of the program is in no rule.
        is_plain = ~(tables.has_target | tables.has_reference)
        for number in numbers.tolist():
            if self._shapes[number] >= 0:
                continue
            self._shapes[number] = 0
            decoded = next(decode(codes[number])) if is_plain[number] or tables.is_nop[tables.form[number]] else None
            if decoded is not None:
                self._is_filler[number] = is_filler(decoded)
                if not is_barrier(decoded) and self._index.usable(decoded):
                    self._shapes[number] = self._numbers.get(shape_of(decoded.instruction), 0)

    def _windows(self, listing: Listing, block: Indices, index: Indices) -> Iterator[list[Indices]]:
        """By length, the windows whose shapes some pattern has: the indices of their first instructions, second ones, …"""
        index = index[~np.array(self._is_filler, dtype=np.bool_)[listing.encoding[index]]]
        shapes = np.array(self._shapes, dtype=np.int64)[listing.encoding[index]]
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
            is_end = self._is_end[node]
            yield [index[at[is_end] + k] for k in range(length + 1)]

    def _places(self, listing: Listing, block: Indices, index: Indices, live: Liveness) -> Iterator[tuple[int, tuple[str, str] | None]]:
        """For each place where a rule matches, the block's number, and why none may be applied there, if so."""
        for columns in self._windows(listing, block, index):
            last = columns[-1]
            encodings = [listing.encoding[column].tolist() for column in columns]
            lanes, flags = live.registers[last].tolist(), live.flags[last].tolist()
            for number, lane, flag, *numbers in zip(block[last].tolist(), lanes, flags, *encodings, strict=True):
                options = self._options_of(listing, tuple(numbers))
                if options:
                    yield number, self._index.refusal(options, lane | flag << FLAG_SHIFT)

    def _options_of(self, listing: Listing, numbers: tuple[int, ...]) -> Sequence[Option | Refusal]:
        found = self._options.get(numbers)
        if found is None:
            decoded = [next(decode(listing.encodings.codes[n])) for n in numbers]
            found = self._options[numbers] = self._index.options(decoded)
        return found

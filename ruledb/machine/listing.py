"""
The instructions of a binary as arrays, one element per instruction, ascending by address.

What an instruction does is worked out once for each *encoding* (its bytes), and effects are shared by all encodings that
differ in displacements only: a *form*. The arrays hold numbers into those tables, so that whole binaries are treated at
the speed of array operations. Addresses are uint64 and wrap around, as the processor's do.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ruledb.machine.codec import Decoded, Effects, Flow, encoding_of, split
from ruledb.machine.registers import FLAG_SHIFT

__all__ = ["FLOWS", "Addresses", "Encodings", "Indices", "Listing", "Marks", "Masks", "Tables", "find", "joined", "spans"]

Addresses = NDArray[np.uint64]
Masks = NDArray[np.uint64]
"""Register lanes of location masks: bit 4 * family + lane."""
Indices = NDArray[np.int64]
Marks = NDArray[np.bool_]

FLOWS = {flow: number for number, flow in enumerate(Flow)}
"""The number that stands for a flow in arrays."""

_WORD = (1 << 64) - 1


class _Numbers(dict[bytes, int]):
    """Numbers for whatever is asked for, in the order of asking."""

    def __missing__(self, code: bytes) -> int:
        number = self[code] = len(self)
        return number


@dataclass(frozen=True)
class Tables:
    """
    What all encodings do: *form* has one element per encoding, as have *length* (bytes), *target* and *reference* (relative
    to the instruction's own address, where there are any). The others have one element per form.
    """

    form: Indices
    length: Indices
    target: Addresses
    has_target: Marks
    reference: Addresses
    has_reference: Marks
    flow: NDArray[np.uint8]
    reads: Masks
    kills: Masks
    reads_flags: NDArray[np.uint8]
    kills_flags: NDArray[np.uint8]
    touches_memory: Marks
    divides: Marks
    is_nop: Marks


class Encodings:
    """
    The encodings seen so far, by number. Code that was read before is not decoded again: a run has several passes, and few
    functions change between them.
    """

    def __init__(self) -> None:
        self._numbers = _Numbers()
        self._read: dict[bytes, Indices] = {}
        self._forms: dict[int, int] = {}
        self.codes: list[bytes] = []
        self.effects: list[Effects] = []
        self.form: list[int] = []
        self._target: list[int | None] = []
        self._reference: list[int | None] = []
        self._tables: Tables | None = None

    def read(self, code: bytes) -> Indices:
        """The numbers of the instructions of *code*, one behind the other; together they are all of *code*."""
        found = self._read.get(code)
        if found is None:
            found = self._read[code] = np.array([self._numbers[piece] for piece in split(code)], dtype=np.int64)
        return found

    def encoding(self, number: int) -> tuple[bytes, Effects]:
        """Bytes and effects of an encoding."""
        return self.codes[number], self.effects[self.form[number]]

    def _complete(self) -> None:
        for code in islice(self._numbers, len(self.codes), None):
            effects, target, reference = encoding_of(code)
            number = self._forms.setdefault(id(effects), len(self.effects))
            if number == len(self.effects):
                self.effects.append(effects)
            self.codes.append(code)
            self.form.append(number)
            self._target.append(target)
            self._reference.append(reference)

    @property
    def tables(self) -> Tables:
        """What the encodings seen so far do, as arrays."""
        if self._tables is None or len(self._tables.form) != len(self._numbers):
            self._complete()
            self._tables = self._arrays()
        return self._tables

    def _arrays(self) -> Tables:
        effects = self.effects
        target, has_target = _optional(self._target)
        reference, has_reference = _optional(self._reference)
        return Tables(
            np.array(self.form, dtype=np.int64),
            np.array([len(code) for code in self.codes], dtype=np.int64),
            target,
            has_target,
            reference,
            has_reference,
            np.array([FLOWS[e.flow] for e in effects], dtype=np.uint8),
            _lanes([e.reads for e in effects]),
            _lanes([e.kills for e in effects]),
            _flags([e.reads for e in effects]),
            _flags([e.kills for e in effects]),
            np.array([e.loads or e.stores for e in effects], dtype=np.bool_),
            np.array([e.divides for e in effects], dtype=np.bool_),
            np.array([e.is_nop for e in effects], dtype=np.bool_),
        )


def _lanes(masks: Sequence[int]) -> Masks:
    return np.array([mask & _WORD for mask in masks], dtype=np.uint64)


def _flags(masks: Sequence[int]) -> NDArray[np.uint8]:
    return np.array([mask >> FLAG_SHIFT for mask in masks], dtype=np.uint8)


def _optional(values: Sequence[int | None]) -> tuple[Addresses, Marks]:
    return np.array([v or 0 for v in values], dtype=np.uint64), np.array([v is not None for v in values], dtype=np.bool_)


@dataclass(frozen=True)
class Listing:
    """
    Instructions by index. *encoding* is a number of *encodings*; *region* the index of the range of code that holds the
    instruction. *target* and *reference* count where *has_target* and *has_reference* say so.
    """

    encodings: Encodings
    address: Addresses
    encoding: Indices
    region: Indices
    target: Addresses
    has_target: Marks
    reference: Addresses
    has_reference: Marks

    def __len__(self) -> int:
        return len(self.address)

    @cached_property
    def form(self) -> Indices:
        """Per instruction, the number of its form."""
        return self.encodings.tables.form[self.encoding]

    @cached_property
    def flow(self) -> NDArray[np.uint8]:
        """Per instruction, the number of its flow."""
        return self.encodings.tables.flow[self.form]

    @cached_property
    def end(self) -> Addresses:
        """Per instruction, the address of the byte behind."""
        return self.address + self.encodings.tables.length[self.encoding].astype(np.uint64)

    def has_flow(self, *flows: Flow) -> Marks:
        """Which instructions have one of *flows*."""
        return np.isin(self.flow, [FLOWS[flow] for flow in flows])

    def decoded(self, start: int, stop: int) -> tuple[Decoded, ...]:
        """The instructions of index *start* to *stop* as values."""
        part = slice(start, stop)
        return tuple(
            Decoded(address, *self.encodings.encoding(number), target if has_target else None, reference if has_reference else None)
            for address, number, target, has_target, reference, has_reference in zip(
                self.address[part].tolist(),
                self.encoding[part].tolist(),
                self.target[part].tolist(),
                self.has_target[part].tolist(),
                self.reference[part].tolist(),
                self.has_reference[part].tolist(),
                strict=True,
            )
        )


def joined(encodings: Encodings, regions: Iterable[tuple[int, bytes]]) -> Listing:
    """The listing of *regions*: (address, code), ascending and disjoint."""
    starts: list[int] = []
    numbers: list[Indices] = []
    for start, code in regions:
        starts.append(start)
        numbers.append(encodings.read(code))
    counts = np.array([len(part) for part in numbers], dtype=np.int64)
    encoding = np.concatenate([np.empty(0, dtype=np.int64), *numbers])
    region = np.repeat(np.arange(len(counts)), counts)
    tables = encodings.tables
    length = tables.length[encoding]
    # Within a region, an instruction stands behind all that come before it there.
    behind = np.cumsum(length) - length
    first = np.concatenate([behind, [0]])[np.minimum(np.cumsum(counts) - counts, len(behind))]
    address = np.array(starts, dtype=np.uint64)[region] + (behind - first[region]).astype(np.uint64)
    return Listing(
        encodings,
        address,
        encoding,
        region,
        address + tables.target[encoding],
        tables.has_target[encoding],
        address + tables.reference[encoding],
        tables.has_reference[encoding],
    )


def find(ascending: Addresses, wanted: Addresses) -> tuple[Indices, Marks]:
    """Where each of *wanted* stands in *ascending*, and whether it does; where not, the index is of no use."""
    if len(ascending) == 0:
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.bool_)
    index = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return index, ascending[index] == wanted


def spans(first: Indices, count: Indices) -> Indices:
    """All of ``first[k], first[k] + 1, …``, *count*[k] of them, for each k in order."""
    ends = np.cumsum(count)
    found: Indices = np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - (ends - count), count)
    return found

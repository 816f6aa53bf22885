"""
The instructions of a binary as arrays, one element per instruction, ascending by address.

What an instruction does stands in the tables of its encoding, so that whole binaries are treated at the speed of array
operations. Addresses are uint64 and wrap around, as the processor's do.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ruledb.machine.codec import Decoded, Flow, lengths
from ruledb.machine.encodings import FLOWS, Addresses, Distances, Encodings, Indices, Marks, Masks, Numbers

__all__ = ["FLOWS", "Addresses", "Encodings", "Indices", "Listing", "Marks", "Masks", "find", "joined", "spans"]


@dataclass(frozen=True)
class Listing:
    """
    Instructions by index. *encoding* is a number of *encodings*, *distance* that to the *other* address: the target, or
    that of a rip-relative operand, where *has_target* or *has_reference*; no instruction has both. *linked*, in an object file:
    what the other addresses will be, so far as they are known.
    """

    encodings: Encodings
    address: Addresses
    encoding: Numbers
    distance: Distances
    has_target: Marks
    has_reference: Marks
    linked: Addresses | None = None

    def __len__(self) -> int:
        return len(self.address)

    def other(self, index: Indices | Marks | slice) -> Addresses:
        """The other addresses of the instructions *index*."""
        if self.linked is not None:
            return self.linked[index]
        found = self.encodings.tables.other[self.encoding[index]]
        found += self.address[index]
        found += self.distance[index].astype(np.uint64)  # modulo 2**64
        return found

    @cached_property
    def form(self) -> Numbers:
        """Per instruction, the number of its form."""
        return self.encodings.tables.form[self.encoding]

    @cached_property
    def flow(self) -> NDArray[np.uint8]:
        """Per instruction, the number of its flow."""
        return self.encodings.tables.flow[self.form]

    def end_of(self, index: Indices) -> Addresses:
        """The addresses of the bytes behind the instructions *index*."""
        return self.address[index] + self.encodings.tables.length[self.encoding[index]].astype(np.uint64)

    def has_flow(self, *flows: Flow) -> Marks:
        """Which instructions have one of *flows*."""
        return np.isin(self.flow, [FLOWS[flow] for flow in flows])

    def decoded(self, start: int, stop: int) -> tuple[Decoded, ...]:
        """The instructions of index *start* to *stop* as values."""
        part = slice(start, stop)
        encodings = self.encodings
        return tuple(
            Decoded(
                address,
                encodings.whole(number, distance),
                encodings.effects[encodings.form[number]],
                target if has_target else None,
                target if has_reference else None,
            )
            for address, number, distance, target, has_target, has_reference in zip(
                self.address[part].tolist(),
                self.encoding[part].tolist(),
                self.distance[part].tolist(),
                self.other(part).tolist(),
                self.has_target[part].tolist(),
                self.has_reference[part].tolist(),
                strict=True,
            )
        )


def joined(encodings: Encodings, regions: Iterable[tuple[int, bytes]]) -> Listing:
    """The listing of *regions*: (address, code), ascending and disjoint."""
    parts = list(regions)
    cut = [lengths(code) for _, code in parts]
    length = np.frombuffer(b"".join(cut), dtype=np.uint8)
    encoding, distance = encodings.read(b"".join(code for _, code in parts), length)
    # Within a region, an instruction stands behind all that come before it there.
    sizes = np.cumsum([0, *(len(code) for _, code in parts)])[:-1].astype(np.uint64)
    shift = np.array([start for start, _ in parts], dtype=np.uint64) - sizes
    address = np.repeat(shift, [len(piece) for piece in cut])
    address += np.cumsum(length, dtype=np.uint64) - length
    tables = encodings.tables
    return Listing(encodings, address, encoding, distance, tables.has_target[encoding], tables.has_reference[encoding])


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

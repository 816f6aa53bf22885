"""
Where control may enter: targets from anywhere, addresses that instructions and data take, and what tables of jumps hold.

Where an address is taken of something that is no certain instruction, or data is read among instructions, the function
there is not understood; the reasons are words for reports.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ruledb.machine.codec import Flow, decode
from ruledb.machine.elf import Image
from ruledb.machine.functions import Function
from ruledb.machine.listing import FLOWS, Addresses, Indices, Listing, Marks, find
from ruledb.machine.lsda import CallSite, call_sites
from ruledb.machine.words import bytes_at, words_at

__all__ = ["ENDBR64", "Entries", "Ranges", "find_entries"]

ENDBR64 = b"\xf3\x0f\x1e\xfa"


class Ranges:
    """The ranges of ascending, disjoint functions as arrays."""

    def __init__(self, found: Sequence[Function]) -> None:
        self.starts: Addresses = np.array([f.start for f in found], dtype=np.uint64)
        self._ends: Addresses = np.array([f.end for f in found], dtype=np.uint64)

    def index_of(self, addresses: Addresses) -> Indices:
        """For each address, the index of the function that holds it, or -1."""
        index = np.searchsorted(self.starts, addresses, side="right") - 1
        if len(self.starts) == 0:
            return index
        return np.where((index >= 0) & (addresses < self._ends[np.maximum(index, 0)]), index, -1)


@dataclass(frozen=True)
class Entries:
    """
    What is known before blocks are cut.

    *leaders*: addresses where a block starts, if an instruction does, ascending; *taken*: those that are so not only because a
    branch leads there. *externals*: address of a linkage stub →
    the outside function's name. *unreadable* and *pointed*: index of a function → why its instructions are uncertain, or
    why it is not touched though they are certain. *sites*: the calls (and whatever else may raise) with landing pads.
    *strange_sites*: functions whose landing pads are unknown.
    """

    leaders: Addresses
    taken: Addresses
    externals: dict[int, str]
    unreadable: dict[int, str]
    pointed: dict[int, str]
    sites: tuple[CallSite, ...]
    strange_sites: dict[int, str]


def find_entries(image: Image, found: Sequence[Function], listing: Listing) -> Entries:
    """The entries of the functions *found* in *image*, whose code is *listing*."""
    ranges = Ranges(found)
    targets = np.unique(listing.other(listing.has_target))
    externals = dict(_externals(image, targets))
    outside = np.array(sorted(externals), dtype=np.uint64)
    pointers, accessed = _references(image, listing)
    sites, strange = _sites(image, found, listing)
    pads = np.array([site.pad for site in sites], dtype=np.uint64)
    marked = (_marks(image, listing), _immediates(image, listing), _table_targets(image, listing), pads)
    taken = np.unique(np.concatenate([pointers, *marked]))
    homes = ranges.index_of(pointers)
    is_inside = (homes >= 0) & (pointers != ranges.starts[np.maximum(homes, 0)]) if len(found) else np.zeros(len(pointers), dtype=np.bool_)
    entered = np.union1d(np.setdiff1d(targets, outside), taken)
    with_data = ranges.index_of(accessed)
    everywhere = np.union1d(taken, np.array(sorted(image.taken_addresses), dtype=np.uint64))
    return Entries(
        np.union1d(targets, everywhere),
        everywhere,
        externals,
        _unreadable(found, ranges, listing, entered, with_data[with_data >= 0]),
        # A pointer to the middle of a function may lead to data, too, that only looks like code.
        dict.fromkeys(np.unique(homes[is_inside]).tolist(), "pointed into"),
        tuple(sites),
        dict.fromkeys(strange, "lsda"),
    )


_LONGEST_AREA = 1 << 20
"""Bytes of a function's language-specific data: more than any compiler needs."""


def _sites(image: Image, found: Sequence[Function], listing: Listing) -> tuple[list[CallSite], list[int]]:
    """The call sites with landing pads, and the indices of functions where they are unknown: a pad must be an instruction."""
    sites: list[CallSite] = []
    strange: list[int] = []
    for number, function in enumerate(found):
        if not function.has_lsda:
            continue
        known = call_sites(image.read(function.lsda, _LONGEST_AREA), function.start, function.end) if function.lsda > 0 else None
        if known is None or not find(listing.address, np.array([site.pad for site in known], dtype=np.uint64))[1].all():
            strange.append(number)
        else:
            sites += known
    return sites, strange


_STUB = 7
"""Bytes within which a linkage stub's jump starts."""


def _externals(image: Image, targets: Addresses) -> Iterator[tuple[int, str]]:
    """Linkage stubs among *targets*: `jmp [slot]`, perhaps behind `endbr64`."""
    if not image.slots:
        return
    starts = bytes_at(image, targets, _STUB)
    is_jump = np.zeros(len(targets), dtype=np.bool_)
    for at in range(_STUB - 1):
        is_jump |= (starts[:, at] == 0xFF) & (starts[:, at + 1] == 0x25)
    for target in targets[is_jump].tolist():
        stub = image.read(target, 16)
        first = next((d for d in decode(stub, target) if d.code != ENDBR64), None)
        if first is not None and first.flow is Flow.INDIRECT_JUMP and first.reference in image.slots:
            yield target, image.slots[first.reference]


def _references(image: Image, listing: Listing) -> tuple[Addresses, Addresses]:
    """The addresses of code that instructions take, and those that they read or write."""
    index = np.flatnonzero(listing.has_reference & ~_starts_with(listing, ENDBR64))
    other, touches = listing.other(index), listing.encodings.tables.touches_memory[listing.form[index]]
    low, high = (image.executable_ranges[0][0], image.executable_ranges[-1][1]) if image.executable_ranges else (0, 0)
    is_code = (other >= low) & (other < high)
    return np.unique(other[is_code & ~touches]), np.unique(other[is_code & touches])


def _starts_with(listing: Listing, code: bytes) -> Marks:
    """Which instructions have exactly the bytes *code*."""
    matching = [number for number, known in enumerate(listing.encodings.codes) if known == code]
    return listing.encoding == matching[0] if matching else np.zeros(len(listing), dtype=np.bool_)


def _marks(image: Image, listing: Listing) -> Addresses:
    """The addresses of `endbr64`, of probes and of sleds."""
    places = np.array(sorted({*image.probes, *_sleds(image)}), dtype=np.uint64)
    return np.concatenate([listing.address[_starts_with(listing, ENDBR64)], places])


_SLED = struct.Struct("<qQBBB13x")
"""A sled's address, its function's, kind, whether it is always traced, and the version. Source: LLVM, "XRay Instrumentation"."""


def _sleds(image: Image) -> Iterator[int]:
    """
    The addresses of XRay's sleds, which a tracer overwrites. Up to version 1 the loader relocates them, as it does the areas
    of `__patchable_function_entries`: then they are known from that.
    """
    section = image.section("xray_instr_map")
    table = image.read(section.address, section.size) if section is not None else b""
    for place, (distance, *_, version) in enumerate(_SLED.iter_unpack(table[: len(table) // _SLED.size * _SLED.size])):
        if section is not None and version >= _FIRST_RELATIVE:
            yield section.address + place * _SLED.size + distance & _WORD


_FIRST_RELATIVE = 2
_WORD = (1 << 64) - 1


def _immediates(image: Image, listing: Listing) -> Addresses:
    """In a fixed-address program, any immediate at an instruction's end may be an address."""
    if image.is_position_independent or not image.executable_ranges:
        return listing.address[:0]
    low, high = image.executable_ranges[0][0], image.executable_ranges[-1][1]
    codes = listing.encodings.codes
    last = [[int.from_bytes(code[-size:], "little") if len(code) > size else 0 for code in codes] for size in (4, 8)]
    values = np.unique(np.array(last, dtype=np.uint64)[:, np.unique(listing.encoding)])
    values = values[(values >= max(low, 1)) & (values < high)]
    return values[find(listing.address, values)[1]]


_LONGEST_TABLE = 4 * 4096
"""Bytes of a table of jumps: more cases than any compiler puts into one."""
_FIRST_LOOK = 4 * 32


def _table_targets(image: Image, listing: Listing) -> Addresses:
    """
    What tables of relative jumps point at: 32-bit offsets from the table's own start, which some `lea` takes.

    The jump may be in one function, and its targets in another that nothing else leads to, such as a cold part. A table is
    read as far as its words lead to instructions: too many entries are harmless, too few are not.
    """
    is_base = listing.has_reference & ~listing.encodings.tables.touches_memory[listing.form]
    found = [np.empty(0, dtype=np.uint64)]
    bases = np.unique(listing.other(is_base))
    # Most of what a `lea` points at is no table: not even its first word leads anywhere.
    is_table = find(listing.address, bases + words_at(image, bases).astype(np.uint64))[1]
    for table in bases[is_table].tolist():
        targets = _relative_targets(image, listing, table, _FIRST_LOOK)
        is_longer = 4 * len(targets) == _FIRST_LOOK
        found.append(_relative_targets(image, listing, table, _LONGEST_TABLE) if is_longer else targets)
    return np.unique(np.concatenate(found))


def _relative_targets(image: Image, listing: Listing, table: int, n_bytes: int) -> Addresses:
    data = image.read(table, n_bytes)
    offsets = np.frombuffer(data[: len(data) // 4 * 4], dtype="<i4").astype(np.int64).view(np.uint64)
    targets: Addresses = np.array(table, dtype=np.uint64) + offsets
    is_start = find(listing.address, targets)[1]
    return targets if is_start.all() else targets[: int(np.argmin(is_start))]


def _unreadable(found: Sequence[Function], ranges: Ranges, listing: Listing, entered: Addresses, with_data: Indices) -> dict[int, str]:
    """Functions whose instructions are uncertain, with the reason. *entered* are addresses where instructions must start."""
    homes = ranges.index_of(entered)
    astray = homes[(homes >= 0) & ~find(listing.address, entered)[1]]
    invalid = ranges.index_of(listing.address[listing.flow == FLOWS[Flow.INVALID]])
    # The first reason that holds is told.
    return (
        dict.fromkeys(astray.tolist(), "branch into instruction")
        | dict.fromkeys(with_data.tolist(), "data in code")
        | dict.fromkeys(invalid[invalid >= 0].tolist(), "undecodable")
        | {i: "overlap" for i, function in enumerate(found) if function.is_overlapping}
    )

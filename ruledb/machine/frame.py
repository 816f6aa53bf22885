"""
Where rbp holds an address of the stack: it was set from rsp on every path, and nothing has written it since.

Only then are slots addressed from rbp plain memory, as those addressed from rsp are. Where control may come from a place that
is not known, nothing is: the caller's rbp may be anything.
"""

import numpy as np

from ruledb.machine.blocks import Block, Program
from ruledb.machine.codec import Decoded, Flow
from ruledb.machine.encodings import Encodings
from ruledb.machine.listing import Indices, Marks, find, spans
from ruledb.machine.registers import RBP, family_mask

__all__ = ["framed", "framed_in", "leaves"]

_NEITHER, _SETS, _SPOILS = 0, 1, 2

_SETTING = (b"\x48\x89\xe5", b"\x48\x8b\xec")
"""`mov rbp, rsp`, both ways."""

_SETTING_BY_LEA = (b"\x48\x8d\x6c\x24", b"\x48\x8d\xac\x24")
"""How `lea rbp, [rsp+…]` begins."""


def _kind(code: bytes, writes: int) -> int:
    """What an instruction does to rbp."""
    if code in _SETTING or code.startswith(_SETTING_BY_LEA):
        return _SETS
    return _SPOILS if writes & family_mask(RBP) else _NEITHER


def framed(program: Program) -> Marks:
    """Per instruction of the program's listing, whether rbp surely holds an address of the stack before it."""
    listing, cuts = program.listing, program.cuts
    found = np.zeros(len(listing), dtype=np.bool_)
    if not len(cuts.first):
        return found
    kinds = _kinds(listing.encodings)[listing.encoding]
    # The last instruction up to each that has to do with rbp.
    latest = np.maximum.accumulate(np.where(kinds != _NEITHER, np.arange(len(kinds)), -1))
    ends = latest[cuts.stop - 1]
    enters = _solved(program, np.where(ends >= cuts.first, kinds[ends], _NEITHER))
    sizes = cuts.stop - cuts.first
    index, block = spans(cuts.first, sizes), np.repeat(np.arange(len(sizes)), sizes)
    before = np.where(index > 0, latest[index - 1], -1)
    found[index] = np.where(before >= cuts.first[block], kinds[before] == _SETS, enters[block])
    return found


def framed_in(block: Block, enters: bool) -> tuple[bool, ...]:  # what holds where the block is entered
    """The same for the instructions of one block, which may have changed since; *enters*: whether it holds before the first."""
    found = [enters]
    for decoded in block.instructions[:-1]:
        found.append(_behind(decoded, found[-1]))
    return tuple(found)


def leaves(block: Block) -> tuple[bool, bool]:
    """Whether it holds behind *block*, entered where it does not, and where it does."""
    without, within = (_behind(block.last, framed_in(block, enters)[-1]) for enters in (False, True))
    return without, within


def _behind(decoded: Decoded, before: bool) -> bool:
    kind = _kind(decoded.code, decoded.effects.writes)
    return before if kind == _NEITHER else kind == _SETS


def _kinds(encodings: Encodings) -> Indices:
    effects = encodings.effects
    return np.array([_kind(code, effects[form].writes) for code, form in zip(encodings.codes, encodings.form, strict=True)], dtype=np.int64)


def _solved(program: Program, leaves: Indices) -> Marks:
    """Per block, whether rbp holds an address of the stack where it is entered: the greatest solution, from all blocks that may be."""
    listing, cuts = program.listing, program.cuts
    n, last = len(cuts.first), cuts.stop - 1
    starts = listing.address[cuts.first]
    sources, destinations = [], []
    for where, goes in ((listing.end_of(last), cuts.goes_on), (listing.other(last), cuts.jumps)):
        to, is_block = find(starts, where)
        chosen = np.flatnonzero(goes & is_block)
        sources.append(chosen)
        destinations.append(to[chosen])
    source, destination = np.concatenate(sources), np.concatenate(destinations)
    order = np.argsort(source, kind="stable")
    destination, begins = destination[order], np.searchsorted(source[order], np.arange(n + 1))
    holds = np.zeros(n, dtype=np.bool_)
    holds[destination] = True
    holds &= ~_entered_from_elsewhere(program)
    fails = np.flatnonzero((leaves == _SPOILS) | (leaves == _NEITHER) & ~holds)
    while len(fails):
        reached = np.unique(destination[spans(begins[fails], begins[fails + 1] - begins[fails])])
        reached = reached[holds[reached]]
        holds[reached] = False
        fails = reached[leaves[reached] == _NEITHER]
    return holds


def _entered_from_elsewhere(program: Program) -> Marks:
    """Which blocks control may enter otherwise than from a block that is known: by a call, a pointer, a table, a landing."""
    listing, cuts = program.listing, program.cuts
    starts = listing.address[cuts.first]
    is_edge = np.zeros(len(listing), dtype=np.bool_)
    is_edge[(cuts.stop - 1)[cuts.jumps]] = True
    is_edge &= ~listing.has_flow(Flow.CALL)
    hidden = (
        listing.other(listing.has_target & ~is_edge),
        program.taken,
        np.array([f.start for f in program.functions], dtype=np.uint64),
    )
    return np.isin(starts, np.concatenate(hidden))

"""Where code is cut into basic blocks."""

from dataclasses import dataclass

import numpy as np

from ruledb.machine.codec import Flow
from ruledb.machine.listing import FLOWS, Addresses, Indices, Listing, Marks, find

__all__ = ["Cuts", "cut"]

_ENDS = (Flow.JUMP, Flow.CONDITIONAL, Flow.INDIRECT_JUMP, Flow.CALL, Flow.INDIRECT_CALL, Flow.RETURN, Flow.STOP, Flow.INTERRUPT)


@dataclass(frozen=True)
class Cuts:
    """
    Blocks as arrays, ascending: *first* and *stop* are indices of instructions, *function* is that of the function. Where
    *goes_on*, control may reach the place behind the block; where *jumps*, the last instruction's target.
    """

    first: Indices
    stop: Indices
    function: Indices
    goes_on: Marks
    jumps: Marks


_GOES_ON = tuple(flow for flow in Flow if flow not in (Flow.JUMP, Flow.INDIRECT_JUMP, Flow.RETURN, Flow.STOP))


def cut(listing: Listing, home: Indices, is_readable: Marks, leaders: Addresses) -> Cuts:
    """The blocks of the instructions that are readable; *home* is the function of each instruction."""
    n = len(listing)
    ends = listing.has_flow(*_ENDS)
    starts = np.ones(n, dtype=np.bool_)
    if n:
        starts[1:] = ends[:-1] | (home[1:] != home[:-1])
        index, is_found = find(listing.address, leaders)
        starts[index[is_found]] = True
    first = np.flatnonzero(starts)
    stop = np.append(first[1:], n)[: len(first)]
    first, stop = first[is_readable[first]], stop[is_readable[first]]
    last = stop - 1
    function = home[first]
    # A call at a function's very end does not return: what stands behind is another function.
    is_call = listing.has_flow(Flow.CALL, Flow.INDIRECT_CALL)
    is_final = np.append(home[1:] != home[:-1], True)[last] if n else is_call[last]
    goes_on = np.isin(listing.flow[last], [FLOWS[flow] for flow in _GOES_ON]) & ~(is_call[last] & is_final)
    jumps = listing.has_target[last] & ~is_call[last]
    return Cuts(first, stop, function, goes_on, jumps)

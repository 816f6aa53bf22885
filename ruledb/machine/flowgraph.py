"""Masks that flow along the edges of a graph until nothing grows."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruledb.machine.listing import Indices, Masks, spans

__all__ = ["Edges", "Values", "solve"]


class Values(NamedTuple):
    """Per node: register lanes that are seen to be read, those that are assumed to be, and flags."""

    seen: Masks
    assumed: Masks
    flags: NDArray[np.uint8]


class Edges(NamedTuple):
    """Per edge, its nodes and what it lets through of each part of the source's value."""

    source: Indices
    destination: Indices
    seen: Masks
    assumed: Masks
    flags: NDArray[np.uint8]


def solve(values: Values, edges: Edges) -> None:
    """
    Make *values* the least ones that hold what they held, and at each edge's destination what it lets through.

    In each round, only the edges are looked at whose source has grown in the last one.
    """
    order = np.argsort(edges.source, kind="stable")
    sources, destinations = edges.source[order], edges.destination[order]
    masks: tuple[NDArray[Any], ...] = (edges.seen[order], edges.assumed[order], edges.flags[order])
    first = np.searchsorted(sources, np.arange(len(values.seen) + 1))
    grown = np.arange(len(values.seen))
    is_grown = np.zeros(len(grown), dtype=np.bool_)
    while len(grown):
        edge = spans(first[grown], first[grown + 1] - first[grown])
        source, destination = sources[edge], destinations[edge]
        parts: tuple[NDArray[Any], ...] = values
        news = [part[source] & mask[edge] & ~part[destination] for part, mask in zip(parts, masks, strict=True)]
        is_new = (news[0] | news[1] | news[2]) != 0
        destination = destination[is_new]
        for part, new in zip(parts, news, strict=True):
            np.bitwise_or.at(part, destination, new[is_new])
        is_grown[destination] = True
        grown = np.flatnonzero(is_grown)
        is_grown[grown] = False

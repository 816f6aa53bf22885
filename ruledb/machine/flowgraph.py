"""Masks that flow along the edges of a graph until nothing grows."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruledb.machine.encodings import Numbers
from ruledb.machine.listing import Indices, Marks, Masks, spans

__all__ = ["Edges", "Part", "Values", "edges_from", "solve"]


class Values(NamedTuple):
    """Per node: register lanes that are seen to be read, those that are assumed to be, and flags."""

    seen: Masks
    assumed: Masks
    flags: NDArray[np.uint8]


class Edges(NamedTuple):
    """
    Edges by the number of their source, ascending: *first*[n] is the first one of node n, and *first*[n + 1] the one behind
    its last. Per edge, its *destination*, whether it lets through what is assumed, and which *flags*.
    """

    first: Indices
    destination: Numbers
    has_assumed: Marks
    flags: NDArray[np.uint8]


Part = tuple[Marks, Indices, Indices, bool, NDArray[np.uint8]]
"""Some edges: which of the elements are any, their sources and destinations, whether all let assumed lanes through, and flags."""


def edges_from(n_nodes: int, parts: Iterable[Part]) -> Edges:
    """The edges of a graph of *n_nodes*."""
    chosen = [(np.flatnonzero(goes), sources, destinations, has, flags) for goes, sources, destinations, has, flags in parts]
    source = np.concatenate([sources[index].astype(np.int32) for index, sources, *_ in chosen])
    order = np.argsort(source, kind="stable").astype(np.int32)
    return Edges(
        np.searchsorted(source[order], np.arange(n_nodes + 1)),
        np.concatenate([destinations[index].astype(np.int32) for index, _, destinations, *_ in chosen])[order],
        np.concatenate([np.full(len(index), has) for index, _, _, has, _ in chosen])[order],
        np.concatenate([flags[index] for index, *_, flags in chosen])[order],
    )


_CHUNK = 1 << 15
"""Nodes treated together: few enough for the processor's cache."""


def solve(values: Values, through: Masks, edges: Edges) -> None:
    """
    Make *values* the least ones that hold what they held, and at each edge's destination what the edge lets through of its
    source: of registers, what *through* of the destination does.

    In each round, only the edges are looked at whose source has grown since they were looked at last. Nodes of high numbers
    come first, since control flows mostly upwards.
    """
    first, *_ = edges
    n_nodes = len(values.seen)
    is_grown = np.ones(n_nodes, dtype=np.bool_)
    while is_grown.any():
        for low in reversed(range(0, n_nodes, _CHUNK)):
            grown = np.flatnonzero(is_grown[low : low + _CHUNK]) + low
            if not len(grown):
                continue
            is_grown[grown] = False
            count = first[grown + 1] - first[grown]
            destination = _flow(values, through, edges, np.repeat(grown, count), spans(first[grown], count))
            is_grown[destination] = True


def _flow(values: Values, through: Masks, edges: Edges, source: Indices, edge: Indices) -> Indices:
    """Let the values flow along *edge*, from *source*; returns the nodes that have grown."""
    destination = edges.destination[edge]
    passed = through[destination]
    news: tuple[NDArray[Any], ...] = (
        values.seen[source] & passed & ~values.seen[destination],
        np.where(edges.has_assumed[edge], values.assumed[source] & passed & ~values.assumed[destination], np.uint64(0)),
        values.flags[source] & edges.flags[edge] & ~values.flags[destination],
    )
    is_new = (news[0] | news[1] | news[2]) != 0
    grown: Indices = destination[is_new]
    parts: tuple[NDArray[Any], ...] = values
    for part, new in zip(parts, news, strict=True):
        np.bitwise_or.at(part, grown, new[is_new])
    return grown

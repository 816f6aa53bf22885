"""Which of the overlapping candidates of a block to take: those that save most together."""

from bisect import bisect_right
from collections.abc import Sequence

from rewriter.option import Candidate

__all__ = ["choose"]


def choose(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """
    The disjoint ones of *candidates* with the greatest sum of savings, ascending by address. Sums are compared like the
    savings, element by element; of equal choices the one whose windows end earlier is taken, then that of the lower digest.
    """
    ordered = sorted(candidates, key=lambda c: (c.window.end, c.window.start, c.option.digest))
    ends = [c.window.end for c in ordered]
    # best[n]: the best choice among the first n candidates, and what it saves.
    best: list[tuple[tuple[int, ...], tuple[Candidate, ...]]] = [((), ())]
    for n, candidate in enumerate(ordered):
        saved, chosen = best[bisect_right(ends, candidate.window.start, 0, n)]
        total = tuple(map(sum, zip(saved, candidate.option.saved, strict=True))) if saved else candidate.option.saved
        best.append(max(best[n], (total, (*chosen, candidate)), key=lambda choice: choice[0]))
    return best[-1][1]

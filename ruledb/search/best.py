"""The cheapest few matches of every class of targets."""

import numpy as np
import numpy.typing as npt

from ruledb.machine.states import Words
from ruledb.search.layout import by_cycles

__all__ = ["Best"]

_AT_ONCE = 1 << 17
"""Matches that are gathered before they are sorted in."""

_UNLIMITED = np.uint64((1 << 64) - 1)


class Best:
    """
    The *kept* cheapest matches of each class under each of two orders: bytes first, and cycles first.

    A match is a row (class, order of arrival, cost word). Of equally cheap ones the first to arrive stays, whatever the
    order in which they are added.

    Attributes:
        limits: ``uint64[C, 2]``: what costs as much or more is no longer wanted.

    """

    def __init__(self, n: int, kept: int) -> None:
        self._kept = kept
        self._rows = np.zeros((0, 3), np.uint64)
        self._new: list[Words] = []
        self._n_new = 0
        self.limits = np.full((n, 2), _UNLIMITED)

    def add(self, rows: Words) -> None:
        """Take matches ``uint64[n, 3]``; they count for `limits` now and then."""
        self._new.append(rows)
        self._n_new += rows.shape[0]
        if self._n_new > max(_AT_ONCE, self._rows.shape[0]):
            self._sort_in()

    def limits_with(self, rows: Words) -> Words:
        """The limits as they would be with *rows* added, which the keeper does not take."""
        classes = np.unique(rows[:, 0])
        known = self._rows[np.isin(self._rows[:, 0], classes)]
        limits = self.limits.copy()
        self._chosen(np.concatenate([known, rows]), limits)
        return limits

    def rows(self) -> Words:
        """All that is kept, by class, cheapest first."""
        self._sort_in()
        return self._rows

    def _sort_in(self) -> None:
        if self._new:
            self._rows = self._chosen(np.concatenate([self._rows, *self._new]), self.limits)
            self._new, self._n_new = [], 0

    def _chosen(self, rows: Words, limits: Words) -> Words:
        """The best of *rows*, sorted; *limits* of their classes are brought up to date."""
        keep = np.zeros(rows.shape[0], bool)
        for column, costs in enumerate((rows[:, 2], by_cycles(rows[:, 2]))):
            order = np.lexsort((rows[:, 1], costs, rows[:, 0]))
            classes, arrivals = rows[order, 0], rows[order, 1]
            again = np.zeros(order.shape, bool)
            again[1:] = (classes[1:] == classes[:-1]) & (arrivals[1:] == arrivals[:-1])
            order = order[~again]
            place = _places(rows[order, 0])
            keep[order[place < self._kept]] = True
            last = order[place == self._kept - 1]
            limits[rows[last, 0].astype(np.intp), column] = costs[last]
        kept = rows[keep]
        return kept[np.lexsort((kept[:, 1], kept[:, 2], kept[:, 0]))]


def _places(classes: Words) -> npt.NDArray[np.intp]:
    """The place of each row within its class, of rows sorted by class."""
    place = np.arange(classes.shape[0])
    begins = np.ones(classes.shape, bool)
    begins[1:] = classes[1:] != classes[:-1]
    return place - np.maximum.accumulate(np.where(begins, place, 0))

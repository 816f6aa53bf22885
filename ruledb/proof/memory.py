"""
What memory holds before a window, and what a load sees after the window's stores: two encodings.

* `Rows`: read-over-write by hand. Newest store first, ``ite(a - s < n, byte, older)``; equal base terms with constant offsets decide
  without the solver. The initial memory is a fresh byte for each address term, equal where the addresses are equal (Ackermann).
* `Arrays`: the theory of arrays, a chain of stores over one free array.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, Protocol

from pysmt.fnode import FNode
from pysmt.typing import ArrayType, BVType

from ruledb.semantics.memory import Access, displaced, distance
from ruledb.semantics.terms import Terms

__all__ = ["Arrays", "Memory", "Rows", "byte_at", "load"]


class Memory(Protocol):
    """The initial content of one address space, as bytes by address, under some stores."""

    def byte(self, stores: Sequence[Access], address: FNode) -> FNode:
        """The byte at *address* after *stores*, oldest first."""

    def constraints(self) -> list[FNode]:
        """What holds of the initial content."""

    def cells(self) -> Iterable[tuple[FNode, FNode]]:
        """Address and initial byte of what was looked at."""


def byte_at(t: Terms, address: FNode, i: int) -> FNode:
    """The address *i* bytes on."""
    return t.add(address, t.const(i, 64))


def load(t: Terms, memory: Memory, stores: Sequence[Access], address: FNode, n_bytes: int) -> FNode:
    """The *n_bytes* at *address* after *stores*, lowest byte first."""
    return t.concat(*(memory.byte(stores, byte_at(t, address, i)) for i in reversed(range(n_bytes))))


class Rows:
    """Read-over-write by hand."""

    def __init__(self, t: Terms, name: str) -> None:
        self._t, self._name = t, name
        self._cells: dict[tuple[FNode | None, int], tuple[FNode, FNode]] = {}

    def byte(self, stores: Sequence[Access], address: FNode) -> FNode:
        """The byte of the newest store that covers *address*, else the initial one."""
        t, undecided = self._t, []
        value = None
        for store in reversed(stores):
            assert store.address is not None
            offset = distance(address, store.address)
            if offset is None:
                undecided.append(store)
            elif offset < store.n_bytes:
                value = t.extract(store.value, 8 * offset + 7, 8 * offset)
                break
        value = self._cell(address) if value is None else value
        for store in reversed(undecided):
            assert store.address is not None
            offset_term = t.sub(address, store.address)
            inside = t.ult(offset_term, t.const(store.n_bytes, 64))
            value = t.ite(inside, self._picked(store.value, offset_term), value)
        return value

    def _picked(self, value: FNode, offset: FNode) -> FNode:
        """The byte of *value* at *offset*, which is below its size."""
        t, width = self._t, value.bv_width()
        if width == 8:
            return value
        bits = t.concat(t.extract(offset, 2, 0), t.const(0, 3))
        return t.extract(t.lshr(value, t.zext(bits, width)), 7, 0)

    def _cell(self, address: FNode) -> FNode:
        key = displaced(address)
        if key not in self._cells:
            self._cells[key] = address, self._t.symbol(f"{self._name}!{len(self._cells)}", 8)
        return self._cells[key][1]

    def constraints(self) -> list[FNode]:
        """Equal addresses hold equal bytes."""
        m = self._t.manager
        return [
            m.Implies(m.Equals(a, b), m.Equals(x, y))
            for (key, (a, x)), (other, (b, y)) in combinations(self._cells.items(), 2)
            if key[0] is not other[0]  # else the offsets differ, and so do the addresses
        ]

    def cells(self) -> Iterable[tuple[FNode, FNode]]:
        """Address and variable of every cell."""
        return self._cells.values()


class Arrays:
    """The theory of arrays."""

    def __init__(self, t: Terms, name: str) -> None:
        self._t = t
        self._initial = t.manager.Symbol(f"{name}!", ArrayType(BVType(64), BVType(8)))
        self._cells: dict[FNode, FNode] = {}

    def byte(self, stores: Sequence[Access], address: FNode) -> FNode:
        """The element of the array at *address* after all stores."""
        m = self._t.manager
        self._cells[address] = m.Select(self._initial, address)
        return m.Select(self._stored(stores), address)

    def _stored(self, stores: Sequence[Access]) -> Any:
        t, array = self._t, self._initial
        for store in stores:
            assert store.address is not None
            for i in range(store.n_bytes):
                array = t.manager.Store(array, byte_at(t, store.address, i), t.extract(store.value, 8 * i + 7, 8 * i))
        return array

    def constraints(self) -> list[FNode]:
        """None: the theory has them."""
        return []

    def cells(self) -> Iterable[tuple[FNode, FNode]]:
        """Address and initial element of what was looked at."""
        return self._cells.items()

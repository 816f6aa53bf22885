"""
What a window does to memory, in order: loads, stores, and divisions, which can trap as an access can fault.

What memory holds is not said here: whoever runs a window gives a `LoadModel`, from which every load takes its value.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from pysmt.fnode import FNode

from ruledb.semantics.terms import Terms

__all__ = ["Access", "Kind", "LoadModel", "displaced", "distance", "free_loads", "summands"]


class Kind(Enum):
    """What an access is. Divisions are none, but have their place among them: they may trap, signed ones in other cases."""

    LOAD = "load"
    STORE = "store"
    DIVISION = "division"
    SIGNED_DIVISION = "signed division"


@dataclass(frozen=True, slots=True)
class Access:
    """
    One access: *address* (BV64) and *value*, lowest byte first in memory, of what is loaded or stored.

    Of a division, *value* is dividend and divisor side by side, and *address* is None. *sp* is rsp at that time: before a load, behind
    a store.
    """

    kind: Kind
    address: FNode | None
    value: FNode
    sp: FNode | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes that are accessed."""
        return int(self.value.bv_width()) // 8

    @property
    def shape(self) -> tuple[Kind, int]:
        """What of an access does not depend on values."""
        return self.kind, self.n_bytes

    def __str__(self) -> str:
        return f"{self.kind.value} {8 * self.n_bytes}"


LoadModel = Callable[[Terms, tuple[Access, ...], FNode, int], FNode]
"""From the accesses so far, an address and a number of bytes to the value that is loaded."""


def free_loads(t: Terms, before: tuple[Access, ...], _address: FNode, n_bytes: int) -> FNode:
    """A load model that knows nothing: every load is a fresh variable."""
    return t.symbol(f"load{len(before)}_{8 * n_bytes}", 8 * n_bytes)


def displaced(address: FNode) -> tuple[FNode | None, int]:
    """*address* as a term (None: nothing) and a constant to be added to it, modulo 2**64."""
    offset = 0
    while address.is_bv_add() or address.is_bv_sub():
        first, second = address.args()
        if second.is_bv_constant():
            offset += second.constant_value() if address.is_bv_add() else -second.constant_value()
            address = first
        elif address.is_bv_add() and first.is_bv_constant():
            offset += first.constant_value()
            address = second
        else:
            break
    if address.is_bv_constant():
        return None, (address.constant_value() + offset) % (1 << 64)
    return address, offset % (1 << 64)


def distance(a: FNode, b: FNode) -> int | None:
    """The difference a - b modulo 2**64, where the terms alone decide it."""
    (base, one), (other, two) = displaced(a), displaced(b)
    return (one - two) % (1 << 64) if base is other else None


def summands(address: FNode) -> list[FNode]:
    """The terms whose sum *address* is; a difference is one of them."""
    if not address.is_bv_add():
        return [address]
    first, second = address.args()
    return [*summands(first), *summands(second)]

"""Counterexamples that an emulator can run: formulas that keep their addresses apart from its own, and faults at page ends."""

from pysmt.fnode import FNode

from ruledb.proof.memory import byte_at
from ruledb.proof.query import Query
from ruledb.semantics.memory import Access
from ruledb.semantics.symbolic import IMAGE
from ruledb.semantics.terms import Terms

__all__ = ["FIRST_ADDRESS", "LAST_ADDRESS", "PAGE_BITS", "crosses_page", "is_tame"]

PAGE_BITS = 12
FIRST_ADDRESS, LAST_ADDRESS = 1 << 32, (1 << 47) - (1 << 16)
"""Where a counterexample's accesses lie: user space, above the emulator's own pages."""

_LOW = (1 << 16, (1 << 28) - (1 << 16))
"""Where else they may lie: absolute addresses have 31 bits."""


_HIGHEST_IMAGE = 1 << 24


def is_tame(t: Terms, query: Query) -> FNode:
    """The formula: every access lies in user space, away from the emulator's own pages, and the program in what 31 bits address."""
    m = t.manager
    image = [s for s in query.symbols if s.symbol_name() == IMAGE]

    def between(address: FNode, first: int, last: int) -> FNode:
        return m.BVULT(t.sub(address, t.const(first, 64)), t.const(last - first, 64))

    return m.And(
        *(m.BVULT(s, t.const(_HIGHEST_IMAGE, 64)) for s in image),
        *(
            m.Or(between(a.address, FIRST_ADDRESS, LAST_ADDRESS), between(a.address, *_LOW))
            for a in (*query.left, *query.right)
            if a.address is not None
        ),
    )


def _pages(t: Terms, access: Access) -> list[FNode]:
    """The page numbers of the first and the last byte."""
    assert access.address is not None
    return [t.extract(byte_at(t, access.address, i), 63, PAGE_BITS) for i in {0, access.n_bytes - 1}]


def crosses_page(t: Terms, query: Query) -> FNode:
    """The formula: the replacement accesses a page that the pattern does not access."""
    m = t.manager
    known = [page for a in query.left if a.address is not None for page in _pages(t, a)]
    new = [page for a in query.right if a.address is not None for page in _pages(t, a)]
    return m.Or([m.And([m.Not(m.Equals(page, other)) for other in known]) for page in new])

"""
Which accesses of a replacement stand for which of its pattern, under a memory policy.

Accesses fall into *spaces*. Those of the common trace (``shared``, and divisions) must be the same on both sides: each load
of it is an input of its own, since the location may change at any time. Under the policy ``stack`` slots may drop out of it, for a
reason (`Elided`). In the ``own`` and ``below`` spaces only the content in the end counts; ``below`` is what lies below rsp.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product

from pysmt.fnode import FNode

from ruledb.machine.policy import Conditions
from ruledb.machine.registers import RSP
from ruledb.semantics.memory import Access, Kind, displaced, distance, summands
from ruledb.semantics.terms import Terms

__all__ = ["Elided", "Own", "Plan", "Role", "Shared", "below_stack", "covers", "describe", "plans"]


@dataclass(frozen=True, slots=True)
class Shared:
    """The access is the *number*-th of both sides."""

    number: int


@dataclass(frozen=True, slots=True)
class Elided:
    """The pattern's access has no counterpart: access *source* of the pattern gives what it loads, repeats it, or covers what it stores."""

    source: int


@dataclass(frozen=True, slots=True)
class Own:
    """The access belongs to a space of its own, ``own`` or ``below``."""

    space: str


Role = Shared | Elided | Own


@dataclass(frozen=True, slots=True)
class Plan:
    """
    The roles of all accesses of pattern and replacement, in order.

    *doubtful*: numbers of the replacement's accesses of which the solver must say that they lie below rsp only where the pattern's do.
    """

    left: tuple[Role, ...] = ()
    right: tuple[Role, ...] = ()
    doubtful: tuple[int, ...] = ()


_MOST = 16
"""Plans that are tried for one pair."""


def describe(accesses: Sequence[Access]) -> str:
    """What a side accesses, for messages."""
    return ", ".join(map(str, accesses)) or "nothing"


def plans(t: Terms, left: Sequence[Access], right: Sequence[Access], conditions: Conditions) -> tuple[Plan, ...]:
    """The ways in which the accesses *right* may stand for *left*; none where the policy admits none."""
    spaces = _Spaces(t, conditions, left, right)
    one, other = ([spaces.of(a) for a in side] for side in (left, right))
    common = [i for i, space in enumerate(one) if space in _COMMON]
    counterparts = [i for i, space in enumerate(other) if space in _COMMON]
    right_roles = _numbered(other, counterparts)
    doubtful = tuple(i for i, a in enumerate(right) if _is_doubtful(t, a))
    found = (
        Plan(tuple(elided.get(i, role) for i, role in enumerate(_numbered(one, kept))), right_roles, doubtful)
        for kept in combinations(common, len(counterparts))
        if [left[i].shape for i in kept] == [right[i].shape for i in counterparts]
        for elided in _elisions(left, one, common, kept)
    )
    return tuple(islice(found, _MOST))


def below_stack(left: Sequence[Access], right: Sequence[Access]) -> bool:
    """
    Whether *right* accesses memory below rsp, as rsp is at that time, where *left* does not.

    What is there a signal's handler, or in a kernel an interrupt, may overwrite at any time.
    """
    known = _below_ranges(left)
    return any(not any(base is b and s <= start and end <= e for b, s, e in known) for base, start, end in _below_ranges(right))


def _below_ranges(accesses: Sequence[Access]) -> list[tuple[FNode | None, int, int]]:
    """Base term, first and last offset of each access that starts below rsp."""
    found = []
    for access in accesses:
        if access.address is not None and access.sp is not None:
            ahead = distance(access.address, access.sp)
            if ahead is not None and ahead >> 63:
                base, offset = displaced(access.address)
                start = offset - (offset >> 63 << 64)
                found.append((base, start, start + access.n_bytes))
    return found


def _is_doubtful(t: Terms, access: Access) -> bool:
    """Whether an address depends on rsp, and its terms do not tell on which side of rsp it lies."""
    if access.address is None or access.sp is None or f"r{RSP}" not in t.names(access.address):
        return False
    return distance(access.address, access.sp) is None


_COMMON = ("shared", "slot")


def _numbered(spaces: Sequence[str], kept: Sequence[int]) -> tuple[Role, ...]:
    return tuple(Shared(kept.index(i)) if i in kept else Own(space) for i, space in enumerate(spaces))


class _Spaces:
    """The space of each access: ``shared``, ``slot`` (of the frame, under the policy ``stack``), ``own`` or ``below``."""

    def __init__(self, t: Terms, conditions: Conditions, *sides: Sequence[Access]) -> None:
        self._t, self._conditions = t, conditions
        every = [a for side in sides for a in side]
        # A division may trap between two accesses: then their order shows.
        self._is_strict = any(a.address is None for a in every)
        from_rsp = [a for a in every if a.address is not None and f"r{RSP}" in t.names(a.address)]
        self._has_below = all(self._is_fixed(a) and not self._straddles(a) for a in from_rsp)
        self._has_own = not any(self._is_unclear(a, conditions.frame) for a in every)

    def of(self, access: Access) -> str:
        if access.address is None:
            return "shared"
        if self._has_below and self._below(access) == access.n_bytes:
            return "below"
        if self._is_strict:
            return "shared"
        match self._conditions.policy:
            case "plain":
                return "own"
            case "stack" if self._base(access) in self._conditions.frame:
                return "slot"
            case "private" if self._has_own and self._base(access) in self._conditions.frame:
                return "own"
        return "shared"

    def _base(self, access: Access) -> int | None:
        """The family whose value at the start, plus constants, is the address."""
        assert access.address is not None
        varying = [s for s in summands(access.address) if not s.is_bv_constant() and any(n[0] != "c" for n in self._t.names(s))]
        base = varying[0] if len(varying) == 1 else None
        while base is not None and base.is_bv_sub() and base.arg(1).is_bv_constant():
            base = base.arg(0)
        name = base.symbol_name() if base is not None and base.is_symbol() else ""
        return int(name[1:]) if name[:1] == "r" and name[1:].isdigit() else None

    def _below(self, access: Access) -> int:
        """Bytes of the access that lie in the private ones below rsp."""
        if access.address is None or self._base(access) != RSP or not self._is_fixed(access):
            return 0
        _, offset = displaced(access.address)
        start = offset - (1 << 64) if offset >> 63 else offset
        return max(0, min(start + access.n_bytes, 0) - max(start, -self._conditions.private_bytes))

    @staticmethod
    def _is_fixed(access: Access) -> bool:
        """Whether the address is a term plus a number, without symbolic constants."""
        assert access.address is not None
        base, _ = displaced(access.address)
        return base is None or base.is_symbol()

    def _straddles(self, access: Access) -> bool:
        return self._below(access) not in (0, access.n_bytes)

    def _is_unclear(self, access: Access, families: frozenset[int]) -> bool:
        """Whether an address depends on one of *families* otherwise than by a constant: it may lie in any of their slots."""
        if access.address is None or self._base(access) in families:
            return False
        return any(f"r{f}" in self._t.names(access.address) for f in families)


def _elisions(accesses: Sequence[Access], spaces: Sequence[str], common: Sequence[int], kept: Sequence[int]) -> Iterator[dict[int, Role]]:
    """Reasons for all accesses of the common trace that are not *kept*."""
    dropped = [i for i in common if i not in kept]
    sources = [list(_sources(accesses, spaces, common, kept, i)) for i in dropped]
    for chosen in product(*sources):
        yield {i: Elided(source) for i, source in zip(dropped, chosen, strict=True)}


def _sources(accesses: Sequence[Access], spaces: Sequence[str], common: Sequence[int], kept: Sequence[int], i: int) -> Iterator[int]:
    """Accesses that may make access *i* needless, nearest first."""
    access = accesses[i]
    match access.kind:
        case Kind.DIVISION | Kind.SIGNED_DIVISION:
            yield from (j for j in reversed(common) if j < i and accesses[j].shape == access.shape)
        case Kind.LOAD if spaces[i] == "slot":
            for j in reversed([j for j in common if j < i]):
                is_load = accesses[j].kind is Kind.LOAD
                if spaces[j] == "slot" and accesses[j].n_bytes >= access.n_bytes and (is_load or accesses[j].kind is Kind.STORE):
                    yield j
                if is_load and j in kept:
                    return  # a load between two accesses orders them for other threads
        case Kind.STORE if spaces[i] == "slot":
            for j in (j for j in common if j > i):
                if accesses[j].kind is Kind.STORE:
                    if spaces[j] == "slot" and accesses[j].n_bytes >= access.n_bytes:
                        yield j
                    return
                if j in kept:
                    return  # may fault, and then the stored value shows


def covers(t: Terms, outer: Access, inner: Access) -> FNode:
    """Whether every byte of *inner* is one of *outer*, which is at least as wide (BV1)."""
    assert outer.address is not None
    assert inner.address is not None
    offset = t.sub(inner.address, outer.address)
    return t.ult(offset, t.const(outer.n_bytes - inner.n_bytes + 1, 64))

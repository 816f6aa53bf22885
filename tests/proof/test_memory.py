"""Read-over-write and arrays: both say what a memory of bytes says, and the same as each other."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pysmt.environment import Environment

from ruledb.proof import memory as memory_module
from ruledb.proof.memory import Arrays, Rows, load
from ruledb.proof.solvers import Sat, Unsat, ask, new_environment
from ruledb.semantics.memory import Access, Kind, displaced, distance
from ruledb.semantics.terms import Terms

_SIZES = (1, 2, 4, 8)
_BASES = st.sampled_from("ab")
_OFFSETS = st.integers(-9, 9)
_STORES = st.lists(st.tuples(_BASES, _OFFSETS, st.sampled_from(_SIZES)), max_size=3)


def _address(t, base, offset):
    return t.add(t.symbol(base, 64), t.const(offset, 64))


def _stores(t, stores):
    return [Access(Kind.STORE, _address(t, b, o), t.symbol(f"v{i}_{n}", 8 * n)) for i, (b, o, n) in enumerate(stores)]


def _value(t, term, values):
    environment = t.manager.env
    return environment.simplifier.simplify(environment.substituter.substitute(term, values)).constant_value()


@settings(max_examples=150)
@given(_STORES, _BASES, _OFFSETS, st.sampled_from(_SIZES), st.integers(-10, 10), st.randoms(use_true_random=False))
def test_rows_are_a_memory_of_bytes(stores, base, offset, n_bytes, gap, random):
    """For all ways in which pointers overlap a load has the bytes that a dictionary of bytes holds, lowest first."""
    t = Terms(Environment())
    rows = Rows(t, "memory")
    term = load(t, rows, _stores(t, stores), _address(t, base, offset), n_bytes)
    start = {"a": 1 << 40, "b": (1 << 40) + gap}
    data = {"cell": lambda a: a * 37 % 251}
    values = {t.symbol(name, 64): t.const(v, 64) for name, v in start.items()}
    held = {}
    for i, (b, o, n) in enumerate(stores):
        number = random.getrandbits(8 * n)
        values[t.symbol(f"v{i}_{n}", 8 * n)] = t.const(number, 8 * n)
        held |= {start[b] + o + k: number >> 8 * k & 0xFF for k in range(n)}
    for address, byte in rows.cells():
        values[byte] = t.const(data["cell"](_value(t, address, values)), 8)
    wanted = [held.get(a, data["cell"](a)) for a in range(start[base] + offset, start[base] + offset + n_bytes)]
    assert _value(t, term, values) == int.from_bytes(bytes(wanted), "little")


def _differ(environment, stores, base, offset, n_bytes):
    """The formula: over one initial memory, the two encodings load different values."""
    t, m = Terms(environment), environment.formula_manager
    rows, arrays = Rows(t, "rows"), Arrays(t, "arrays")
    log, address = _stores(t, stores), _address(t, base, offset)
    one, other = (load(t, memory, log, address, n_bytes) for memory in (rows, arrays))
    same = [m.Equals(byte, arrays.byte((), a)) for a, byte in rows.cells()]
    return m.And(m.Not(m.Equals(one, other)), *same)


@pytest.mark.parametrize(
    ("stores", "read"),
    [
        ((), ("a", 0, 8)),
        ((("a", 0, 8),), ("a", 0, 8)),
        ((("a", 0, 8),), ("a", 4, 8)),
        ((("a", 3, 4),), ("b", 0, 4)),
        ((("a", 0, 8), ("b", 0, 4)), ("a", 0, 4)),
        ((("a", 0, 2), ("b", 1, 1)), ("a", -1, 4)),
        ((("b", 0, 4), ("a", 2, 4)), ("b", 0, 4)),
    ],
)
def test_both_encodings_load_the_same(stores, read):
    """A solver finds no initial memory, addresses and values for which read-over-write and arrays differ."""
    environment = new_environment()
    assert isinstance(ask(environment, _differ(environment, stores, *read), [], "bitwuzla", 60_000), Unsat)


def _byte_order(monkeypatch):
    """The bytes of a load in the wrong order, in one encoding."""
    ordered = memory_module.load

    def swapped(t, memory, stores, address, n_bytes):
        if isinstance(memory, Arrays):
            return ordered(t, memory, stores, address, n_bytes)
        return t.concat(*(memory.byte(stores, memory_module.byte_at(t, address, i)) for i in range(n_bytes)))

    monkeypatch.setattr(f"{__name__}.load", swapped)


def _lost_aliasing(monkeypatch):
    """Stores through another pointer are never seen."""
    real = memory_module.distance
    monkeypatch.setattr(memory_module, "distance", lambda a, b: (1 << 63) if real(a, b) is None else real(a, b))


def _store_order(monkeypatch):
    """The oldest store wins."""
    real = Rows.byte
    monkeypatch.setattr(Rows, "byte", lambda self, stores, address: real(self, list(reversed(stores)), address))


def _long_store(monkeypatch):
    """A store covers one byte too many where the solver decides."""
    real = Terms.ult
    monkeypatch.setattr(Terms, "ult", lambda t, a, b: t.or_(real(t, a, b), t.eq(a, b)))


@pytest.mark.parametrize(
    ("mistake", "stores", "read"),
    [
        (_byte_order, (("a", 0, 8),), ("a", 0, 8)),
        (_lost_aliasing, (("b", 0, 4),), ("a", 0, 8)),
        (_store_order, (("a", 0, 4), ("a", 2, 4)), ("a", 0, 8)),
        (_long_store, (("b", 0, 1),), ("a", 0, 8)),
    ],
)
def test_a_mistake_in_one_encoding_shows(monkeypatch, mistake, stores, read):
    """For every part of read-over-write there is a load on which the other encoding contradicts a mistake in it."""
    mistake(monkeypatch)
    environment = new_environment()
    assert isinstance(ask(environment, _differ(environment, stores, *read), [], "z3", 60_000), Sat)


def test_cells_at_equal_addresses_are_equal():
    """Two pointers that are equal see the same initial byte; without the constraints they need not."""
    environment = new_environment()
    t, m = Terms(environment), environment.formula_manager
    rows = Rows(t, "memory")
    a, b = t.symbol("a", 64), t.symbol("b", 64)
    x, y = rows.byte((), a), rows.byte((), b)
    unequal = m.And(m.Equals(a, b), m.Not(m.Equals(x, y)))
    assert isinstance(ask(environment, m.And(unequal, *rows.constraints()), [], "bitwuzla", 5000), Unsat)
    assert isinstance(ask(environment, unequal, [], "bitwuzla", 5000), Sat)


def test_distances_that_terms_decide():
    """Addresses with one base differ by their offsets modulo 2**64; others by nothing that the terms know."""
    t = Terms(Environment())
    a, b = t.symbol("a", 64), t.symbol("b", 64)
    assert displaced(t.sub(t.add(a, t.const(8, 64)), t.const(24, 64))) == (a, (1 << 64) - 16)
    assert displaced(t.const(5, 64)) == (None, 5)
    assert distance(t.sub(a, t.const(8, 64)), a) == (1 << 64) - 8
    assert distance(t.add(t.const(3, 64), a), a) == 3
    assert distance(a, b) is None
    assert distance(t.add(a, b), t.add(b, a)) is None

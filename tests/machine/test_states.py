"""Concrete states: the same every time, within their domains, and full of edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruledb.machine.constant import Expression, Symbol
from ruledb.machine.states import directed_states, poison

DOMAINS = st.lists(st.sampled_from((8, 16, 32, 64)), max_size=3)


@given(st.integers(1, 6), DOMAINS)
def test_states_are_the_same_every_time(n_slots, bits):
    """No state depends on anything but the arguments."""
    one, other = directed_states(n_slots, bits, 64), directed_states(n_slots, bits, 64)
    for name in ("registers", "flags", "constants", "poison"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


@given(st.integers(1, 6), DOMAINS)
def test_constants_stay_within_their_domains(n_slots, bits):
    """Every constant is a signed value of its number of bits."""
    states = directed_states(n_slots, bits)
    for width, column in zip(bits, states.constants.astype(np.int64), strict=True):
        assert column.min() >= -(1 << (width - 1))
        assert column.max() < 1 << (width - 1)
        assert len(np.unique(column)) > 50


def test_states_hold_what_tells_mistakes():
    """Equal registers, neighbours, zero, the extremes, both values of every flag, and given values occur."""
    states = directed_states(3, (), 320, values=(0x1234567,))
    a, b, _ = states.registers
    assert (a == b).sum() > 5
    assert (a + np.uint64(1) == b).any()
    assert (states.registers[:, 0] == 0).all()
    for edge in (0, 1 << 63, (1 << 64) - 1, 0x7FFFFFFF, 0x80000000, 0x1234567):
        assert (states.registers == np.uint64(edge)).any()
    assert {int(f) >> i & 1 for f in states.flags for i in range(6)} == {0, 1}


@pytest.mark.parametrize("bits", [(8, 8), (32, 8)])
def test_constants_are_equal_now_and_then(bits):
    """Two symbols share a value in some states and not in others."""
    first, second = directed_states(1, bits).constants.astype(np.int64)
    assert 0 < (first == second).sum() < len(first)


def test_the_value_of_an_expression_is_computed_by_state():
    """A number is the same everywhere, an expression follows its symbols, what has no value counts as 0."""
    states = directed_states(1, (32, 8), 40)
    total = states.constant(Expression("+", (Symbol(0), Symbol(1))))
    assert np.array_equal(total, states.constants[0] + states.constants[1])
    assert set(states.constant(-1).tolist()) == {(1 << 64) - 1}
    log = states.constant(Expression("log2", (Symbol(0),))).tolist()
    powers = [int(v).bit_length() - 1 if int(v).bit_count() == 1 else 0 for v in states.constants[0]]
    assert log == powers


def test_poison_is_fixed_and_has_both_bits():
    """Undefined bits read as fixed noise."""
    assert np.array_equal(poison(10), poison(10))
    assert {int(p) & 1 for p in poison(10)} == {0, 1}

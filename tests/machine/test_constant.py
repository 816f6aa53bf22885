"""Constants: numbers, symbols and expressions."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ruledb.machine.constant import OPERATIONS, Expression, Symbol, constant_text, evaluate, parse_constant, signed, symbols_in

M = (1 << 64) - 1
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
LEAVES = NUMBERS | st.builds(Symbol, st.integers(0, 3))
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.sampled_from(sorted(OPERATIONS)).flatmap(
        lambda name: st.builds(lambda *args: Expression(name, args), *[inner] * OPERATIONS[name][0])
    ),
    max_leaves=6,
)
VALUES = st.lists(NUMBERS, min_size=4, max_size=4)


def in_python(constant, values):
    """The value by Python's own operators; None where it has none."""
    if isinstance(constant, int):
        return constant & M
    if isinstance(constant, Symbol):
        return values[constant.index] & M
    args = [in_python(a, values) for a in constant.args]
    if None in args:
        return None
    a, b = args[0], args[-1]
    if constant.name == "log2":
        return a.bit_length() - 1 if a.bit_count() == 1 else None
    by_name = {"-": -a, "~": ~a, "+": a + b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b, "<<": a << (b % 64)}
    return by_name[constant.name] & M


def value_of(constant, values):
    """The value by `evaluate`, unsigned; None where it has none."""
    try:
        return evaluate(constant, values) & M
    except ValueError:
        return None


@given(EXPRESSIONS, VALUES)
def test_constants_are_computed_modulo_two_to_the_64(constant, values):
    """`evaluate` agrees with Python's integers, and is undefined where they are."""
    assert value_of(constant, values) == in_python(constant, values)


def has_log2_of_a_number(constant):
    """Whether folding may meet log2 of what is no power of two."""
    if not isinstance(constant, Expression):
        return False
    return (constant.name == "log2" and not symbols_in(constant)) or any(map(has_log2_of_a_number, constant.args))


@given(EXPRESSIONS, VALUES)
def test_the_text_of_a_constant_means_the_same(constant, values):
    """A text reads back to a constant with the same value, symbols and text."""
    assume(not has_log2_of_a_number(constant))
    again = parse_constant(constant_text(constant))
    assert value_of(again, values) == value_of(constant, values)
    assert symbols_in(again) == symbols_in(constant)
    assert parse_constant(constant_text(again)) == again


@given(LEAVES)
def test_numbers_and_symbols_read_back_as_they_are(constant):
    """A leaf's text is the leaf's."""
    assert parse_constant(constant_text(constant)) == constant


@given(NUMBERS, st.sampled_from((8, 16, 32, 64)))
def test_signed_keeps_the_low_bits(value, width):
    """The result is congruent and within the width."""
    result = signed(value, width)
    assert (result - value) % (1 << width) == 0
    assert -(1 << (width - 1)) <= result < 1 << (width - 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("c0+1", "(c0 + 1)"), ("c0 - c1", "(c0 + -c1)"), ("~(c0)", "~c0"), ("log2(c1)", "log2(c1)"), ("(1 << 5) + 3", "35"), ("+7", "7")],
)
def test_the_grammar_has_shorthands(text, expected):
    """Differences are sums of negations, numbers are folded, redundant signs go."""
    assert constant_text(parse_constant(text)) == expected


@pytest.mark.parametrize("text", ["", "x", "c", "0x", "(c0", "c0)", "1 2", "c0 +", "log2", "1.5", "log2(3)"])
def test_what_is_no_constant_is_refused(text):
    """A broken text raises, with a message that says something."""
    with pytest.raises(ValueError, match=r"\S"):
        parse_constant(text)


def test_an_expression_has_its_number_of_operands():
    """A wrong number of operands cannot be built."""
    with pytest.raises(ValueError, match="expected 2"):
        Expression("+", (1,))

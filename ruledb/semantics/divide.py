"""
Division. It traps where the divisor is 0 or the quotient does not fit; the effect names the operands, from which that follows.

All flags are undefined. Values are those of the case without a trap. SDM vol. 2A, DIV and IDIV.
"""

from collections.abc import Callable

from pysmt.fnode import FNode

from ruledb.semantics.terms import Division, Effect, Output, Terms

__all__ = ["div", "div_byte", "idiv", "idiv_byte"]

Divide = Callable[[FNode, FNode], FNode]


def _undefined(t: Terms) -> dict[str, Output]:
    return dict.fromkeys(("OF", "SF", "ZF", "AF", "PF", "CF"), Output(t.const(0, 1), defined=t.const(0, 1)))


def _halves(t: Terms, dividend: FNode, divisor: FNode, quotient: Divide, remainder: Divide) -> tuple[FNode, FNode]:
    """Remainder and quotient, both as wide as the divisor before it was extended to the dividend."""
    width = dividend.bv_width() // 2
    return t.extract(remainder(dividend, divisor), width - 1, 0), t.extract(quotient(dividend, divisor), width - 1, 0)


def _unsigned(t: Terms, dividend: FNode, divisor: FNode) -> tuple[FNode, FNode]:
    return _halves(t, dividend, t.zext(divisor, dividend.bv_width()), t.udiv, t.urem)


def _signed(t: Terms, dividend: FNode, divisor: FNode) -> tuple[FNode, FNode]:
    return _halves(t, dividend, t.sext(divisor, dividend.bv_width()), t.sdiv, t.srem)


def div(t: Terms, divisor: FNode, high: FNode, low: FNode) -> Effect:
    """The data register ← remainder and the accumulator ← quotient of high:low by the divisor, unsigned. SDM vol. 2A, DIV."""
    dividend = t.concat(high, low)
    results = tuple(map(Output, _unsigned(t, dividend, divisor)))
    return Effect(results, _undefined(t), division=Division(t.concat(dividend, divisor), is_signed=False))


def idiv(t: Terms, divisor: FNode, high: FNode, low: FNode) -> Effect:
    """As `div`, signed; the quotient is truncated towards 0. SDM vol. 2A, IDIV."""
    dividend = t.concat(high, low)
    results = tuple(map(Output, _signed(t, dividend, divisor)))
    return Effect(results, _undefined(t), division=Division(t.concat(dividend, divisor), is_signed=True))


def div_byte(t: Terms, divisor: FNode, dividend: FNode) -> Effect:
    """AH ← remainder and al ← quotient of ax by the divisor, unsigned. SDM vol. 2A, DIV."""
    result = Output(t.concat(*_unsigned(t, dividend, divisor)))
    return Effect((result,), _undefined(t), division=Division(t.concat(dividend, divisor), is_signed=False))


def idiv_byte(t: Terms, divisor: FNode, dividend: FNode) -> Effect:
    """As `div_byte`, signed. SDM vol. 2A, IDIV."""
    result = Output(t.concat(*_signed(t, dividend, divisor)))
    return Effect((result,), _undefined(t), division=Division(t.concat(dividend, divisor), is_signed=True))

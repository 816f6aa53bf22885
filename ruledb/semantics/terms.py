"""
Bit-vector terms: a builder over one pySMT formula manager, and what an instruction's semantics returns.

Conditions are 1-bit vectors, never Booleans. The builder folds constants, neutral elements and nested
extractions as it builds, so that composed windows stay small; every fold is an identity of bit-vectors.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pysmt.fnode import FNode
from pysmt.operators import BV_COMP
from pysmt.typing import BVType

__all__ = ["Division", "Effect", "Output", "Terms"]


@dataclass(frozen=True, slots=True)
class Output:
    """
    One value that an instruction writes. Conditions are BV1 terms; None stands for "always".

    Where *written* is 0 the old value (of a register: all 64 bits) stays. Where *defined* is 0 the manual leaves
    the new value open. Where *specified* is 0 hardware keeps the old value although the manual does not promise
    it: a pattern may rely on that, a replacement may not.
    """

    value: FNode
    defined: FNode | None = None
    written: FNode | None = None
    specified: FNode | None = None


@dataclass(frozen=True, slots=True)
class Division:
    """What decides whether a division traps: dividend and divisor side by side, and how they are read."""

    operands: FNode
    is_signed: bool


@dataclass(frozen=True, slots=True)
class Effect:
    """
    What one instruction does: an output per written operand, in operand order, and per written flag (``CF`` …).

    *division* is what may trap; *taken* (BV1) is whether a jump goes to its target.
    """

    results: tuple[Output, ...] = ()
    flags: Mapping[str, Output] = field(default_factory=dict)
    division: Division | None = None
    taken: FNode | None = None


class Terms:
    """A builder of bit-vector terms in one pySMT environment (or its formula manager). It keeps no state of its own."""

    __slots__ = ("manager",)

    def __init__(self, environment: Any) -> None:
        self.manager = getattr(environment, "formula_manager", environment)

    # leaves

    def const(self, value: int, width: int) -> FNode:
        """The constant *value* modulo 2**width."""
        return self.manager.BV(value & ((1 << width) - 1), width)

    def symbol(self, name: str, width: int) -> FNode:
        """The free variable *name* of *width* bits."""
        return self.manager.Symbol(name, BVType(width))

    def undefined(self, prefix: str, number: int, width: int) -> FNode:
        """The free variable for the *number*-th undefined value of the side called *prefix*."""
        return self.symbol(f"{prefix}!undef{number}_{width}", width)

    def names(self, term: FNode) -> frozenset[str]:
        """The names of the free variables of *term*. (The node's own methods would ask pySMT's global environment.)"""
        return frozenset(symbol.symbol_name() for symbol in self.manager.env.fvo.get_free_variables(term))

    # arithmetic modulo 2**width

    def add(self, a: FNode, b: FNode) -> FNode:
        """The sum of a and b."""
        if _is(a, 0):
            return b
        return a if _is(b, 0) else self._fold(self.manager.BVAdd, lambda x, y: x + y, a, b)

    def sub(self, a: FNode, b: FNode) -> FNode:
        """The difference of a and b."""
        if a is b:
            return self.const(0, a.bv_width())
        return a if _is(b, 0) else self._fold(self.manager.BVSub, lambda x, y: x - y, a, b)

    def neg(self, a: FNode) -> FNode:
        """The negation of a."""
        return self.const(-a.constant_value(), a.bv_width()) if a.is_bv_constant() else self.manager.BVNeg(a)

    def mul(self, a: FNode, b: FNode) -> FNode:
        """The low half of a · b."""
        if _is(a, 1) or _is(b, 0):
            return b
        if _is(b, 1) or _is(a, 0):
            return a
        return self._fold(self.manager.BVMul, lambda x, y: x * y, a, b)

    def udiv(self, a: FNode, b: FNode) -> FNode:
        """The quotient of a by b, unsigned; of b = 0: all ones, as in SMT-LIB."""
        return self.manager.BVUDiv(a, b)

    def urem(self, a: FNode, b: FNode) -> FNode:
        """The remainder of a by b, unsigned; of b = 0: a."""
        return self.manager.BVURem(a, b)

    def sdiv(self, a: FNode, b: FNode) -> FNode:
        """The quotient of a by b, signed, truncated towards 0."""
        return self.manager.BVSDiv(a, b)

    def srem(self, a: FNode, b: FNode) -> FNode:
        """The remainder of a by b, signed, with the sign of a."""
        return self.manager.BVSRem(a, b)

    # bitwise

    def not_(self, a: FNode) -> FNode:
        """Every bit of a inverted."""
        if a.is_bv_not():
            return a.arg(0)
        return self.const(~a.constant_value(), a.bv_width()) if a.is_bv_constant() else self.manager.BVNot(a)

    def and_(self, a: FNode, b: FNode) -> FNode:
        """The conjunction of a and b, bit by bit."""
        ones = (1 << a.bv_width()) - 1
        if a is b or _is(a, 0) or _is(b, ones):
            return a
        if _is(b, 0) or _is(a, ones):
            return b
        return self._fold(self.manager.BVAnd, lambda x, y: x & y, a, b)

    def or_(self, a: FNode, b: FNode) -> FNode:
        """The disjunction of a and b, bit by bit."""
        ones = (1 << a.bv_width()) - 1
        if a is b or _is(b, 0) or _is(a, ones):
            return a
        if _is(a, 0) or _is(b, ones):
            return b
        return self._fold(self.manager.BVOr, lambda x, y: x | y, a, b)

    def xor(self, a: FNode, b: FNode) -> FNode:
        """The exclusive disjunction of a and b, bit by bit."""
        ones = (1 << a.bv_width()) - 1
        if a is b:
            return self.const(0, a.bv_width())
        if _is(b, 0):
            return a
        if _is(a, 0):
            return b
        if _is(b, ones):
            return self.not_(a)
        if _is(a, ones):
            return self.not_(b)
        return self._fold(self.manager.BVXor, lambda x, y: x ^ y, a, b)

    # shifts: a count of the width or more shifts everything out

    def shl(self, a: FNode, count: FNode) -> FNode:
        """The value a shifted left by *count*, a term of the same width."""
        width = a.bv_width()
        if _is(count, 0):
            return a
        if count.is_bv_constant() and count.constant_value() >= width:
            return self.const(0, width)
        return self._fold(self.manager.BVLShl, lambda x, n: x << n, a, count)

    def lshr(self, a: FNode, count: FNode) -> FNode:
        """The value a shifted right by *count*, zeros shifted in."""
        width = a.bv_width()
        if _is(count, 0):
            return a
        if count.is_bv_constant() and count.constant_value() >= width:
            return self.const(0, width)
        return self._fold(self.manager.BVLShr, lambda x, n: x >> n, a, count)

    def ashr(self, a: FNode, count: FNode) -> FNode:
        """The value a shifted right by *count*, copies of the sign shifted in."""
        return a if _is(count, 0) else self.manager.BVAShr(a, count)

    # width

    def extract(self, a: FNode, high: int, low: int) -> FNode:
        """Bits high..low of a, both included."""
        width = a.bv_width()
        if low == 0 and high == width - 1:
            return a
        if a.is_bv_constant():
            return self.const(a.constant_value() >> low, high - low + 1)
        if a.is_bv_extract():
            start = a.bv_extract_start()
            return self.extract(a.arg(0), start + high, start + low)
        if a.is_bv_concat():
            split = a.arg(1).bv_width()
            if low >= split:
                return self.extract(a.arg(0), high - split, low - split)
            if high < split:
                return self.extract(a.arg(1), high, low)
            return self.concat(self.extract(a.arg(0), high - split, 0), self.extract(a.arg(1), split - 1, low))
        if a.is_bv_zext() or a.is_bv_sext():
            inner = a.arg(0).bv_width()
            if high < inner:
                return self.extract(a.arg(0), high, low)
            if a.is_bv_zext():
                return self.const(0, high - low + 1) if low >= inner else self.zext(self.extract(a.arg(0), inner - 1, low), high - low + 1)
        return self.manager.BVExtract(a, low, high)

    def bit(self, a: FNode, index: int) -> FNode:
        """Bit *index* of a."""
        return self.extract(a, index, index)

    def sign(self, a: FNode) -> FNode:
        """The highest bit of a."""
        return self.bit(a, a.bv_width() - 1)

    def concat(self, *parts: FNode) -> FNode:
        """The parts side by side, highest first."""
        whole = parts[0]
        for part in parts[1:]:
            whole = self._concat(whole, part)
        return whole

    def _concat(self, high: FNode, low: FNode) -> FNode:
        if high.is_bv_constant() and low.is_bv_constant():
            width = low.bv_width()
            return self.const(high.constant_value() << width | low.constant_value(), high.bv_width() + width)
        if high.is_bv_extract():
            source, start = high.arg(0), high.bv_extract_start()
            if low.is_bv_extract() and low.arg(0) is source and low.bv_extract_end() + 1 == start:
                return self.extract(source, high.bv_extract_end(), low.bv_extract_start())
        return self.manager.BVConcat(high, low)

    def zext(self, a: FNode, width: int) -> FNode:
        """The value a with zeros in front, *width* bits in all."""
        if a.bv_width() == width:
            return a
        if a.is_bv_constant():
            return self.const(a.constant_value(), width)
        inner = a.arg(0) if a.is_bv_zext() else a
        return self.manager.BVZExt(inner, width - inner.bv_width())

    def sext(self, a: FNode, width: int) -> FNode:
        """The value a with copies of its sign in front, *width* bits in all."""
        old = a.bv_width()
        if old == width:
            return a
        if a.is_bv_constant():
            value = a.constant_value()
            return self.const(value - (value >> (old - 1) << old), width)
        inner = a.arg(0) if a.is_bv_sext() else a
        return self.manager.BVSExt(inner, width - inner.bv_width())

    # conditions

    def eq(self, a: FNode, b: FNode) -> FNode:
        """Whether a = b."""
        if a is b:
            return self.const(1, 1)
        if a.is_bv_constant() and b.is_bv_constant():
            return self.const(0, 1)
        if a.bv_width() == 1 and b.is_bv_constant():
            return a if b.constant_value() else self.not_(a)
        return self.manager.BVComp(a, b)

    def is_zero(self, a: FNode) -> FNode:
        """Whether a = 0."""
        return self.eq(a, self.const(0, a.bv_width()))

    def ult(self, a: FNode, b: FNode) -> FNode:
        """Whether a < b, unsigned."""
        if a is b or _is(b, 0):
            return self.const(0, 1)
        if a.is_bv_constant() and b.is_bv_constant():
            return self.const(int(a.constant_value() < b.constant_value()), 1)
        if _is(a, 0):
            return self.not_(self.is_zero(b))
        return self._truth(self.manager.BVULT(a, b))

    def slt(self, a: FNode, b: FNode) -> FNode:
        """Whether a < b, signed."""
        return self.const(0, 1) if a is b else self._truth(self.manager.BVSLT(a, b))

    def parity(self, a: FNode) -> FNode:
        """Whether the low eight bits of a hold an even number of ones."""
        folded = self.extract(a, 7, 0)
        for distance in (4, 2, 1):
            folded = self.xor(folded, self.lshr(folded, self.const(distance, 8)))
        return self.not_(self.bit(folded, 0))

    def ite(self, condition: FNode, then: FNode, otherwise: FNode) -> FNode:
        """*then* where the BV1 *condition* is 1, else *otherwise*."""
        if then is otherwise or _is(condition, 1):
            return then
        if _is(condition, 0):
            return otherwise
        if condition.is_bv_not():
            return self.ite(condition.arg(0), otherwise, then)
        if then.bv_width() == 1:
            if _is(then, 1) and _is(otherwise, 0):
                return condition
            if _is(then, 0) and _is(otherwise, 1):
                return self.not_(condition)
        return self.manager.Ite(self._boolean(condition), then, otherwise)

    def _truth(self, boolean: FNode) -> FNode:
        return self.manager.Ite(boolean, self.const(1, 1), self.const(0, 1))

    def _boolean(self, condition: FNode) -> FNode:
        """The Boolean that a BV1 condition was made from, where it shows."""
        if condition.is_ite() and _is(condition.arg(1), 1) and _is(condition.arg(2), 0):
            return condition.arg(0)
        if condition.node_type() == BV_COMP:
            return self.manager.Equals(condition.arg(0), condition.arg(1))
        return self.manager.Equals(condition, self.const(1, 1))

    def _fold(self, build: Callable[[FNode, FNode], FNode], compute: Callable[[int, int], int], a: FNode, b: FNode) -> FNode:
        if a.is_bv_constant() and b.is_bv_constant():
            return self.const(compute(a.constant_value(), b.constant_value()), a.bv_width())
        return build(a, b)


def _is(a: FNode, value: int) -> bool:
    """Whether a is the constant *value*."""
    return bool(a.is_bv_constant() and a.constant_value() == value)

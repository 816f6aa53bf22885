"""
Shifts, rotates and double shifts, width-generic.

The count is masked to 5 bits, to 6 for 64-bit operands. A masked count of 0 leaves every flag as it was; a
32-bit destination is written, hence its upper half cleared, even then.
"""

from pysmt.fnode import FNode

from ruledb.semantics.arith import result_flags
from ruledb.semantics.terms import Effect, Output, Terms

__all__ = ["rol", "ror", "rorx", "sar", "sarx", "shl", "shld", "shlx", "shr", "shrd", "shrx"]


def _masked(t: Terms, width: int, count: FNode) -> FNode:
    """The masked 8-bit count, as a term of *width* bits."""
    return t.zext(t.and_(count, t.const(63 if width == 64 else 31, 8)), width)


def _shift_flags(t: Terms, result: FNode, n: FNode, *, carry: Output, overflow: FNode, defined: FNode | None = None) -> dict[str, Output]:
    """The flags of a shift by n: none is written for n = 0, OF is defined for n = 1 only, AF never."""
    width = result.bv_width()
    written = t.not_(t.is_zero(n))
    flags = {"CF": carry, "OF": Output(overflow, t.eq(n, t.const(1, width))), "AF": Output(t.const(0, 1), t.const(0, 1))}
    flags |= {name: Output(output.value, defined) for name, output in result_flags(t, result).items()}
    return {name: Output(output.value, output.defined, written) for name, output in flags.items()}


def _carry(t: Terms, bit: FNode, n: FNode) -> Output:
    """The last bit out, undefined for a count of the operand's width or more (which only 8 and 16 bits can see)."""
    width = n.bv_width()
    return Output(bit, t.ult(n, t.const(width, width)) if width < 32 else None)


def _less_one(t: Terms, n: FNode) -> FNode:
    return t.sub(n, t.const(1, n.bv_width()))


def shl(t: Terms, dst: FNode, count: FNode) -> Effect:
    """The destination ← dst << n. SDM vol. 2B, SAL/SAR/SHL/SHR."""
    n = _masked(t, dst.bv_width(), count)
    result = t.shl(dst, n)
    carry = _carry(t, t.sign(t.shl(dst, _less_one(t, n))), n)
    return Effect((Output(result),), _shift_flags(t, result, n, carry=carry, overflow=t.sign(t.xor(dst, result))))


def shr(t: Terms, dst: FNode, count: FNode) -> Effect:
    """The destination ← dst >> n, zeros in. SDM vol. 2B, SAL/SAR/SHL/SHR."""
    n = _masked(t, dst.bv_width(), count)
    result = t.lshr(dst, n)
    carry = _carry(t, t.bit(t.lshr(dst, _less_one(t, n)), 0), n)
    return Effect((Output(result),), _shift_flags(t, result, n, carry=carry, overflow=t.sign(dst)))


def sar(t: Terms, dst: FNode, count: FNode) -> Effect:
    """The destination ← dst >> n, signs in; CF is defined for every count. SDM vol. 2B, SAL/SAR/SHL/SHR."""
    n = _masked(t, dst.bv_width(), count)
    result = t.ashr(dst, n)
    carry = Output(t.bit(t.ashr(dst, _less_one(t, n)), 0))
    return Effect((Output(result),), _shift_flags(t, result, n, carry=carry, overflow=t.const(0, 1)))


def _rotate_flags(t: Terms, n: FNode, carry: FNode, overflow: FNode) -> dict[str, Output]:
    """CF and OF change where the masked count, not yet taken modulo the width, is not 0; OF is defined for 1 only."""
    written = t.not_(t.is_zero(n))
    one = t.eq(n, t.const(1, n.bv_width()))
    return {"CF": Output(carry, written=written), "OF": Output(overflow, one, written)}


def _rotated_left(t: Terms, dst: FNode, n: FNode) -> FNode:
    """Both shift counts stay below the width, so that a compiler sees a rotate."""
    mask = t.const(dst.bv_width() - 1, dst.bv_width())
    return t.or_(t.shl(dst, t.and_(n, mask)), t.lshr(dst, t.and_(t.neg(n), mask)))


def rol(t: Terms, dst: FNode, count: FNode) -> Effect:
    """The destination ← dst rotated left; SF, ZF, AF and PF stay. SDM vol. 2B, RCL/RCR/ROL/ROR."""
    n = _masked(t, dst.bv_width(), count)
    result = _rotated_left(t, dst, n)
    carry = t.bit(result, 0)
    return Effect((Output(result),), _rotate_flags(t, n, carry, t.xor(t.sign(result), carry)))


def ror(t: Terms, dst: FNode, count: FNode) -> Effect:
    """The destination ← dst rotated right; SF, ZF, AF and PF stay. SDM vol. 2B, RCL/RCR/ROL/ROR."""
    width = dst.bv_width()
    n = _masked(t, width, count)
    result = _rotated_left(t, dst, t.neg(n))
    carry = t.sign(result)
    return Effect((Output(result),), _rotate_flags(t, n, carry, t.xor(carry, t.bit(result, width - 2))))


def _double_shift(t: Terms, dst: FNode, result: FNode, n: FNode, carry: FNode) -> Effect:
    """Result and flags of a double shift; of 16 bits, everything is undefined for a masked count above 16."""
    width = dst.bv_width()
    defined = t.ult(n, t.const(17, 16)) if width == 16 else None
    overflow = t.sign(t.xor(dst, result))
    flags = _shift_flags(t, result, n, carry=Output(carry, defined), overflow=overflow, defined=defined)
    return Effect((Output(result, defined),), flags)


def shld(t: Terms, dst: FNode, src: FNode, count: FNode) -> Effect:
    """The destination ← dst << n, the high bits of src in. SDM vol. 2B, SHLD."""
    width = dst.bv_width()
    n = _masked(t, width, count)
    result = t.or_(t.shl(dst, n), t.lshr(src, t.sub(t.const(width, width), n)))
    return _double_shift(t, dst, result, n, t.sign(t.shl(dst, _less_one(t, n))))


def shrd(t: Terms, dst: FNode, src: FNode, count: FNode) -> Effect:
    """The destination ← dst >> n, the low bits of src in. SDM vol. 2B, SHRD."""
    width = dst.bv_width()
    n = _masked(t, width, count)
    result = t.or_(t.lshr(dst, n), t.shl(src, t.sub(t.const(width, width), n)))
    return _double_shift(t, dst, result, n, t.bit(t.lshr(dst, _less_one(t, n)), 0))


def _turns(t: Terms, src: FNode, count: FNode) -> FNode:
    """The count modulo the width, as a term of that width."""
    width = src.bv_width()
    return t.and_(t.zext(count, width), t.const(width - 1, width))


def shlx(t: Terms, src: FNode, count: FNode) -> Effect:
    """The destination ← src << n; no flag changes. SDM vol. 2B, SARX/SHLX/SHRX."""
    return Effect((Output(t.shl(src, _turns(t, src, count))),))


def shrx(t: Terms, src: FNode, count: FNode) -> Effect:
    """The destination ← src >> n, zeros in; no flag changes. SDM vol. 2B, SARX/SHLX/SHRX."""
    return Effect((Output(t.lshr(src, _turns(t, src, count))),))


def sarx(t: Terms, src: FNode, count: FNode) -> Effect:
    """The destination ← src >> n, signs in; no flag changes. SDM vol. 2B, SARX/SHLX/SHRX."""
    return Effect((Output(t.ashr(src, _turns(t, src, count))),))


def rorx(t: Terms, src: FNode, count: FNode) -> Effect:
    """The destination ← src rotated right; no flag changes. SDM vol. 2B, RORX."""
    return Effect((Output(_rotated_left(t, src, t.neg(_turns(t, src, count)))),))

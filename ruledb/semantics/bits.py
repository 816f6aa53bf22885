"""Counting, selecting and depositing bits: the instructions that not every processor has."""

from pysmt.fnode import FNode

from ruledb.semantics.bitwise import highest_bit, lowest_bit
from ruledb.semantics.terms import Effect, Output, Terms

__all__ = ["andn", "bextr", "blsi", "blsmsk", "blsr", "bzhi", "lzcnt", "pdep", "pext", "popcnt", "tzcnt"]


def _flags(t: Terms, undefined: str, **values: FNode) -> dict[str, Output]:
    """The flags *values*; 0 where one is not named, except for the *undefined* ones."""
    zero = t.const(0, 1)
    flags = {name: Output(values.get(name, zero)) for name in ("OF", "SF", "ZF", "AF", "PF", "CF")}
    return flags | dict.fromkeys(undefined.split(), Output(zero, defined=zero))


def popcnt(t: Terms, src: FNode) -> Effect:
    """The destination ← the number of ones; ZF tells whether src is 0, the other flags are 0. SDM vol. 2B, POPCNT."""
    width = src.bv_width()
    parts = [t.zext(t.bit(src, i), width) for i in range(width)]
    while len(parts) > 1:
        parts = [t.add(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return Effect((Output(parts[0]),), _flags(t, "", ZF=t.is_zero(src)))


def _count(t: Terms, src: FNode, index: FNode) -> Effect:
    """The index, or the width for 0, which CF tells; ZF of the result."""
    width = src.bv_width()
    zero = t.is_zero(src)
    result = t.ite(zero, t.const(width, width), index)
    return Effect((Output(result),), _flags(t, "OF SF AF PF", CF=zero, ZF=t.is_zero(result)))


def lzcnt(t: Terms, src: FNode) -> Effect:
    """The destination ← the number of zeros above the highest 1. SDM vol. 2A, LZCNT."""
    width = src.bv_width()
    return _count(t, src, t.sub(t.const(width - 1, width), highest_bit(t, src)))


def tzcnt(t: Terms, src: FNode) -> Effect:
    """The destination ← the number of zeros below the lowest 1. SDM vol. 2B, TZCNT."""
    return _count(t, src, lowest_bit(t, src))


def _selected(t: Terms, result: FNode, undefined: str, carry: FNode | None = None) -> Effect:
    carry = t.const(0, 1) if carry is None else carry
    return Effect((Output(result),), _flags(t, undefined, CF=carry, ZF=t.is_zero(result), SF=t.sign(result)))


def andn(t: Terms, first: FNode, second: FNode) -> Effect:
    """The destination ← ~first & second. SDM vol. 2A, ANDN."""
    return _selected(t, t.and_(t.not_(first), second), "AF PF")


def blsi(t: Terms, src: FNode) -> Effect:
    """The destination ← the lowest 1 alone; CF tells whether there is one. SDM vol. 2A, BLSI."""
    return _selected(t, t.and_(t.neg(src), src), "AF PF", t.not_(t.is_zero(src)))


def blsr(t: Terms, src: FNode) -> Effect:
    """The destination ← src without its lowest 1; CF tells whether there is none. SDM vol. 2A, BLSR."""
    return _selected(t, t.and_(t.sub(src, t.const(1, src.bv_width())), src), "AF PF", t.is_zero(src))


def blsmsk(t: Terms, src: FNode) -> Effect:
    """The destination ← ones up to the lowest 1; CF tells whether there is none, ZF is 0. SDM vol. 2A, BLSMSK."""
    result = t.xor(t.sub(src, t.const(1, src.bv_width())), src)
    flags = _flags(t, "AF PF", CF=t.is_zero(src), SF=t.sign(result))
    return Effect((Output(result),), flags)


def _below(t: Terms, n: FNode, width: int) -> FNode:
    """Ones in the low n bits; n has 8 bits and may exceed the width."""
    ones = t.const(-1, width)
    return t.not_(t.shl(ones, t.zext(n, width)))


def bextr(t: Terms, src: FNode, control: FNode) -> Effect:
    """The destination ← the *length* (control 15..8) bits of src from *start* (control 7..0). SDM vol. 2A, BEXTR."""
    width = src.bv_width()
    start, length = t.extract(control, 7, 0), t.extract(control, 15, 8)
    result = t.and_(t.lshr(src, t.zext(start, width)), _below(t, length, width))
    return Effect((Output(result),), _flags(t, "SF AF PF", ZF=t.is_zero(result)))


def bzhi(t: Terms, src: FNode, index: FNode) -> Effect:
    """The destination ← src below bit n (index 7..0); CF tells whether n is at least the width. SDM vol. 2A, BZHI."""
    width = src.bv_width()
    n = t.extract(index, 7, 0)
    return _selected(t, t.and_(src, _below(t, n, width)), "AF PF", t.not_(t.ult(n, t.const(width, 8))))


def pdep(t: Terms, src: FNode, mask: FNode) -> Effect:
    """The destination ← the low bits of src, one at each 1 of the mask. SDM vol. 2B, PDEP."""
    width = src.bv_width()
    left, placed = src, []
    for i in range(width):
        chosen = t.bit(mask, i)
        placed.append(t.and_(chosen, t.bit(left, 0)))
        left = t.ite(chosen, t.lshr(left, t.const(1, width)), left)
    return Effect((Output(t.concat(*reversed(placed))),))


def pext(t: Terms, src: FNode, mask: FNode) -> Effect:
    """The destination ← the bits of src at the ones of the mask, side by side from bit 0. SDM vol. 2B, PEXT."""
    width = src.bv_width()
    result = t.const(0, width)
    for i in reversed(range(width)):
        with_bit = t.or_(t.shl(result, t.const(1, width)), t.zext(t.bit(src, i), width))
        result = t.ite(t.bit(mask, i), with_bit, result)
    return Effect((Output(result),))

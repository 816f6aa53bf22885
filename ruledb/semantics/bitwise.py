"""Logic, bit tests and bit scans, width-generic."""

from pysmt.fnode import FNode

from ruledb.semantics.arith import result_flags
from ruledb.semantics.terms import Effect, Output, Terms

__all__ = ["and_", "bsf", "bsr", "bswap", "bt", "btc", "btr", "bts", "highest_bit", "lowest_bit", "not_", "or_", "test", "xor"]


def _logic_flags(t: Terms, result: FNode) -> dict[str, Output]:
    """CF and OF are cleared, AF is undefined, the others follow the result."""
    zero = t.const(0, 1)
    return {"CF": Output(zero), "OF": Output(zero), "AF": Output(zero, defined=zero), **result_flags(t, result)}


def and_(t: Terms, dst: FNode, src: FNode) -> Effect:
    """The destination ← dst & src. SDM vol. 2A, AND."""
    result = t.and_(dst, src)
    return Effect((Output(result),), _logic_flags(t, result))


def or_(t: Terms, dst: FNode, src: FNode) -> Effect:
    """The destination ← dst | src. SDM vol. 2B, OR."""
    result = t.or_(dst, src)
    return Effect((Output(result),), _logic_flags(t, result))


def xor(t: Terms, dst: FNode, src: FNode) -> Effect:
    """The destination ← dst ^ src. SDM vol. 2D, XOR."""
    result = t.xor(dst, src)
    return Effect((Output(result),), _logic_flags(t, result))


def test(t: Terms, dst: FNode, src: FNode) -> Effect:
    """The flags of dst & src, the result dropped. SDM vol. 2B, TEST."""
    return Effect((), and_(t, dst, src).flags)


def not_(t: Terms, dst: FNode) -> Effect:
    """The destination ← ~dst; no flag changes. SDM vol. 2B, NOT."""
    return Effect((Output(t.not_(dst)),))


def _index(t: Terms, width: int, offset: FNode) -> FNode:
    """The bit offset modulo the width, as a shift count of *width* bits."""
    offset = t.zext(offset, width) if offset.bv_width() < width else offset
    return t.and_(offset, t.const(width - 1, width))


def _bit_test_flags(t: Terms, base: FNode, index: FNode) -> dict[str, Output]:
    """CF is the old bit, ZF stays, OF, SF, AF and PF are undefined."""
    undefined = Output(t.const(0, 1), defined=t.const(0, 1))
    return {"CF": Output(t.bit(t.lshr(base, index), 0))} | dict.fromkeys(("OF", "SF", "AF", "PF"), undefined)


def bt(t: Terms, base: FNode, offset: FNode) -> Effect:
    """CF ← bit *offset* modulo the width. SDM vol. 2A, BT."""
    return Effect((), _bit_test_flags(t, base, _index(t, base.bv_width(), offset)))


def bts(t: Terms, base: FNode, offset: FNode) -> Effect:
    """CF ← the selected bit, which is then set. SDM vol. 2A, BTS."""
    width = base.bv_width()
    index = _index(t, width, offset)
    return Effect((Output(t.or_(base, t.shl(t.const(1, width), index))),), _bit_test_flags(t, base, index))


def btr(t: Terms, base: FNode, offset: FNode) -> Effect:
    """CF ← the selected bit, which is then cleared. SDM vol. 2A, BTR."""
    width = base.bv_width()
    index = _index(t, width, offset)
    return Effect((Output(t.and_(base, t.not_(t.shl(t.const(1, width), index)))),), _bit_test_flags(t, base, index))


def btc(t: Terms, base: FNode, offset: FNode) -> Effect:
    """CF ← the selected bit, which is then inverted. SDM vol. 2A, BTC."""
    width = base.bv_width()
    index = _index(t, width, offset)
    return Effect((Output(t.xor(base, t.shl(t.const(1, width), index))),), _bit_test_flags(t, base, index))


def lowest_bit(t: Terms, value: FNode) -> FNode:
    """
    The index of the lowest 1 in *value*, at its width; of 0: the highest index.

    One comparison per bit of the index: is the lower half zero, then go on in the upper one.
    """
    width = value.bv_width()
    bits, half = [], width // 2
    while half:
        low, high = t.extract(value, half - 1, 0), t.extract(value, 2 * half - 1, half)
        bits.append(t.is_zero(low))
        value = t.ite(bits[-1], high, low)
        half //= 2
    return t.zext(t.concat(*bits), width)


def highest_bit(t: Terms, value: FNode) -> FNode:
    """The index of the highest 1 in *value*, at its width; of 0: 0."""
    width = value.bv_width()
    bits, half = [], width // 2
    while half:
        low, high = t.extract(value, half - 1, 0), t.extract(value, 2 * half - 1, half)
        bits.append(t.not_(t.is_zero(high)))
        value = t.ite(bits[-1], high, low)
        half //= 2
    return t.zext(t.concat(*bits), width)


def _scan(t: Terms, src: FNode, index: FNode) -> Effect:
    """
    ZF tells whether src is 0, the other flags are undefined.

    Of 0, Intel's manual leaves the destination undefined; AMD's promises, and Intel's processors do, that the whole
    64-bit register stays, for a 32-bit destination too.
    """
    zero = t.is_zero(src)
    undefined = Output(t.const(0, 1), defined=t.const(0, 1))
    flags = {"ZF": Output(zero)} | dict.fromkeys(("CF", "OF", "SF", "AF", "PF"), undefined)
    return Effect((Output(index, specified=t.not_(zero)),), flags)


def bsf(t: Terms, src: FNode) -> Effect:
    """The destination ← the index of the lowest 1 of src. SDM vol. 2A, BSF; AMD APM vol. 3, BSF."""
    return _scan(t, src, lowest_bit(t, src))


def bsr(t: Terms, src: FNode) -> Effect:
    """The destination ← the index of the highest 1 of src. SDM vol. 2A, BSR; AMD APM vol. 3, BSR."""
    return _scan(t, src, highest_bit(t, src))


def bswap(t: Terms, dst: FNode) -> Effect:
    """The destination ← its bytes in reverse order (32 and 64 bits; of 16 the manual leaves it undefined). SDM vol. 2A, BSWAP."""
    return Effect((Output(t.concat(*(t.extract(dst, low + 7, low) for low in range(0, dst.bv_width(), 8)))),))

"""Addition, subtraction and multiplication, width-generic, with the six status flags (SDM vol. 1, 3.4.3.1)."""

from pysmt.fnode import FNode

from ruledb.semantics.terms import Effect, Output, Terms

__all__ = [
    "adc", "adcx", "add", "adox", "cmp", "cmpxchg", "dec", "imul", "imul_byte", "imul_wide", "inc", "mul", "mul_byte", "mulx", "neg",
    "result_flags", "sbb", "sub", "xadd",
]  # fmt: skip


def result_flags(t: Terms, result: FNode) -> dict[str, Output]:
    """SF, ZF and PF of *result*. SDM vol. 1, 3.4.3.1."""
    return {"SF": Output(t.sign(result)), "ZF": Output(t.is_zero(result)), "PF": Output(t.parity(result))}


def _sum_flags(t: Terms, dst: FNode, src: FNode, result: FNode, carry: FNode) -> dict[str, Output]:
    overflow = t.and_(t.xor(dst, result), t.xor(src, result))
    return _flags(t, result, carries=t.xor(t.xor(dst, src), result), carry=carry, overflow=overflow)


def _difference_flags(t: Terms, dst: FNode, src: FNode, result: FNode, borrow: FNode) -> dict[str, Output]:
    overflow = t.and_(t.xor(dst, src), t.xor(dst, result))
    return _flags(t, result, carries=t.xor(t.xor(dst, src), result), carry=borrow, overflow=overflow)


def _flags(t: Terms, result: FNode, *, carries: FNode, carry: FNode, overflow: FNode) -> dict[str, Output]:
    """The six flags; bit i of *carries* is the carry or borrow into bit i."""
    return {"CF": Output(carry), "OF": Output(t.sign(overflow)), "AF": Output(t.bit(carries, 4)), **result_flags(t, result)}


def add(t: Terms, dst: FNode, src: FNode) -> Effect:
    """The destination ← dst + src. SDM vol. 2A, ADD."""
    result = t.add(dst, src)
    return Effect((Output(result),), _sum_flags(t, dst, src, result, t.ult(result, dst)))


def adc(t: Terms, dst: FNode, src: FNode, cf: FNode) -> Effect:
    """The destination ← dst + src + CF. SDM vol. 2A, ADC."""
    result = t.add(t.add(dst, src), t.zext(cf, dst.bv_width()))
    carry = t.or_(t.ult(result, dst), t.and_(cf, t.eq(result, dst)))
    return Effect((Output(result),), _sum_flags(t, dst, src, result, carry))


def adcx(t: Terms, dst: FNode, src: FNode, cf: FNode) -> Effect:
    """The destination ← dst + src + CF; of the flags only CF changes. SDM vol. 2A, ADCX."""
    whole = adc(t, dst, src, cf)
    return Effect(whole.results, {"CF": whole.flags["CF"]})


def adox(t: Terms, dst: FNode, src: FNode, of: FNode) -> Effect:
    """The destination ← dst + src + OF; of the flags only OF changes, to the carry. SDM vol. 2A, ADOX."""
    whole = adc(t, dst, src, of)
    return Effect(whole.results, {"OF": whole.flags["CF"]})


def xadd(t: Terms, dst: FNode, src: FNode) -> Effect:
    """The destination ← dst + src, the source ← the old destination. SDM vol. 2D, XADD."""
    whole = add(t, dst, src)
    return Effect((*whole.results, Output(dst)), whole.flags)


def sub(t: Terms, dst: FNode, src: FNode) -> Effect:
    """The destination ← dst - src. SDM vol. 2B, SUB."""
    result = t.sub(dst, src)
    return Effect((Output(result),), _difference_flags(t, dst, src, result, t.ult(dst, src)))


def sbb(t: Terms, dst: FNode, src: FNode, cf: FNode) -> Effect:
    """The destination ← dst - (src + CF). SDM vol. 2B, SBB."""
    result = t.sub(t.sub(dst, src), t.zext(cf, dst.bv_width()))
    borrow = t.or_(t.ult(dst, src), t.and_(cf, t.eq(dst, src)))
    return Effect((Output(result),), _difference_flags(t, dst, src, result, borrow))


def cmp(t: Terms, dst: FNode, src: FNode) -> Effect:
    """The flags of dst - src, the result dropped. SDM vol. 2A, CMP."""
    return Effect((), sub(t, dst, src).flags)


def cmpxchg(t: Terms, dst: FNode, src: FNode, acc: FNode) -> Effect:
    """
    The destination ← src where it equals the accumulator; else it is written back, and the accumulator ← the destination.

    The flags are those of acc - dst. SDM vol. 2A, CMPXCHG.
    """
    equal = t.eq(acc, dst)
    return Effect((Output(t.ite(equal, src, dst)), Output(dst, written=t.not_(equal))), cmp(t, acc, dst).flags)


def inc(t: Terms, dst: FNode) -> Effect:
    """The destination ← dst + 1; CF stays. SDM vol. 2A, INC."""
    whole = add(t, dst, t.const(1, dst.bv_width()))
    return Effect(whole.results, _without_carry(whole))


def dec(t: Terms, dst: FNode) -> Effect:
    """The destination ← dst - 1; CF stays. SDM vol. 2A, DEC."""
    whole = sub(t, dst, t.const(1, dst.bv_width()))
    return Effect(whole.results, _without_carry(whole))


def _without_carry(effect: Effect) -> dict[str, Output]:
    return {name: output for name, output in effect.flags.items() if name != "CF"}


def neg(t: Terms, dst: FNode) -> Effect:
    """The destination ← 0 - dst; CF tells whether dst was not 0. SDM vol. 2B, NEG."""
    zero = t.const(0, dst.bv_width())
    result = t.neg(dst)
    return Effect((Output(result),), _difference_flags(t, zero, dst, result, t.ult(zero, dst)))


def _product_flags(t: Terms, overflow: FNode) -> dict[str, Output]:
    """CF and OF tell whether the low half lost something; SF, ZF, AF and PF are undefined."""
    undefined = Output(t.const(0, 1), defined=t.const(0, 1))
    return {"CF": Output(overflow), "OF": Output(overflow)} | dict.fromkeys(("SF", "ZF", "AF", "PF"), undefined)


def _unsigned_halves(t: Terms, a: FNode, b: FNode) -> tuple[FNode, FNode]:
    width = a.bv_width()
    product = t.mul(t.zext(a, 2 * width), t.zext(b, 2 * width))
    return t.extract(product, 2 * width - 1, width), t.mul(a, b)


def _signed_halves(t: Terms, a: FNode, b: FNode) -> tuple[FNode, FNode, FNode]:
    """High half, low half, and whether the low half alone is not the product."""
    width = a.bv_width()
    product = t.mul(t.sext(a, 2 * width), t.sext(b, 2 * width))
    high, low = t.extract(product, 2 * width - 1, width), t.mul(a, b)
    return high, low, t.not_(t.eq(high, t.sext(t.sign(low), width)))


def mul(t: Terms, src: FNode, acc: FNode) -> Effect:
    """rdx:rax ← rax · src, unsigned, at the operand's width. SDM vol. 2B, MUL."""
    high, low = _unsigned_halves(t, acc, src)
    return Effect((Output(high), Output(low)), _product_flags(t, t.not_(t.is_zero(high))))


def mul_byte(t: Terms, src: FNode, acc: FNode) -> Effect:
    """The register ax ← al · src, unsigned. SDM vol. 2B, MUL."""
    high, low = _unsigned_halves(t, acc, src)
    return Effect((Output(t.concat(high, low)),), _product_flags(t, t.not_(t.is_zero(high))))


def imul_wide(t: Terms, src: FNode, acc: FNode) -> Effect:
    """rdx:rax ← rax · src, signed, at the operand's width. SDM vol. 2A, IMUL (one operand)."""
    high, low, overflow = _signed_halves(t, acc, src)
    return Effect((Output(high), Output(low)), _product_flags(t, overflow))


def imul_byte(t: Terms, src: FNode, acc: FNode) -> Effect:
    """The register ax ← al · src, signed. SDM vol. 2A, IMUL (one operand)."""
    high, low, overflow = _signed_halves(t, acc, src)
    return Effect((Output(t.concat(high, low)),), _product_flags(t, overflow))


def imul(t: Terms, a: FNode, b: FNode) -> Effect:
    """The destination ← the low half of a · b, signed. SDM vol. 2A, IMUL (two and three operands)."""
    _, low, overflow = _signed_halves(t, a, b)
    return Effect((Output(low),), _product_flags(t, overflow))


def mulx(t: Terms, src: FNode, data: FNode) -> Effect:
    """The two destinations ← high and low half of rdx · src, unsigned; no flag changes. SDM vol. 2B, MULX."""
    high, low = _unsigned_halves(t, data, src)
    return Effect((Output(high), Output(low)))

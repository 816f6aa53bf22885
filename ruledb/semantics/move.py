"""Moves, extensions, exchanges, conditional moves and address computation."""

from collections.abc import Callable

from pysmt.fnode import FNode

from ruledb.semantics.bitwise import bswap
from ruledb.semantics.control import Condition
from ruledb.semantics.terms import Effect, Output, Terms

__all__ = ["cmov", "lea", "mov", "movbe", "sign_extend", "sign_spread", "xchg", "zero_extend"]


def mov(_t: Terms, src: FNode) -> Effect:
    """The destination ← src. SDM vol. 2B, MOV."""
    return Effect((Output(src),))


def movbe(t: Terms, src: FNode) -> Effect:
    """The destination ← the bytes of src in reverse order. SDM vol. 2B, MOVBE."""
    return bswap(t, src)


def zero_extend(width: int) -> Callable[[Terms, FNode], Effect]:
    """Semantics of dst ← src with zeros in front, *width* bits in all. SDM vol. 2B, MOVZX."""

    def semantics(t: Terms, src: FNode) -> Effect:
        return Effect((Output(t.zext(src, width)),))

    return semantics


def sign_extend(width: int) -> Callable[[Terms, FNode], Effect]:
    """Semantics of dst ← src with signs in front, *width* bits in all. SDM vol. 2B, MOVSX/MOVSXD; vol. 2A, CBW/CWDE/CDQE."""

    def semantics(t: Terms, src: FNode) -> Effect:
        return Effect((Output(t.sext(src, width)),))

    return semantics


def sign_spread(t: Terms, acc: FNode) -> Effect:
    """The data register ← copies of the accumulator's sign. SDM vol. 2A, CWD/CDQ/CQO."""
    return Effect((Output(t.sext(t.sign(acc), acc.bv_width())),))


def xchg(_t: Terms, a: FNode, b: FNode) -> Effect:
    """
    A ↔ b. SDM vol. 2D, XCHG.

    As a value, ``xchg eax, eax`` clears the upper half of rax. Its short encoding 90 is NOP and does not: bytes
    need the long encoding (87 C0).
    """
    return Effect((Output(b), Output(a)))


def cmov(condition: Condition) -> Callable[..., Effect]:
    """Semantics of dst ← src where *condition* holds; a 32-bit dst is written, its upper half cleared, either way. SDM vol. 2A, CMOVcc."""

    def semantics(t: Terms, dst: FNode, src: FNode, *flags: FNode) -> Effect:
        return Effect((Output(t.ite(condition(t, *flags), src, dst)),))

    return semantics


def lea(width: int) -> Callable[[Terms, FNode], Effect]:
    """Semantics of dst ← the low *width* bits of the 64-bit address. SDM vol. 2A, LEA."""

    def semantics(t: Terms, address: FNode) -> Effect:
        return Effect((Output(t.extract(address, width - 1, 0)),))

    return semantics

"""Condition codes, their readers `setcc` and `jcc`, and the instructions on CF alone."""

from collections.abc import Callable

from pysmt.fnode import FNode

from ruledb.semantics.terms import Effect, Output, Terms

__all__ = ["CONDITIONS", "Condition", "clc", "cmc", "jump", "nop", "setcc", "stc"]

Condition = Callable[..., FNode]


def _overflow(_t: Terms, of: FNode) -> FNode:
    return of


def _below(_t: Terms, cf: FNode) -> FNode:
    return cf


def _equal(_t: Terms, zf: FNode) -> FNode:
    return zf


def _below_or_equal(t: Terms, cf: FNode, zf: FNode) -> FNode:
    return t.or_(cf, zf)


def _sign(_t: Terms, sf: FNode) -> FNode:
    return sf


def _parity(_t: Terms, pf: FNode) -> FNode:
    return pf


def _less(t: Terms, sf: FNode, of: FNode) -> FNode:
    return t.xor(sf, of)


def _less_or_equal(t: Terms, zf: FNode, sf: FNode, of: FNode) -> FNode:
    return t.or_(zf, t.xor(sf, of))


def _negated(condition: Condition) -> Condition:
    def negation(t: Terms, *flags: FNode) -> FNode:
        return t.not_(condition(t, *flags))

    return negation


CONDITIONS: dict[str, tuple[str, Condition]] = {
    "o": ("O", _overflow),
    "no": ("O", _negated(_overflow)),
    "b": ("C", _below),
    "ae": ("C", _negated(_below)),
    "e": ("Z", _equal),
    "ne": ("Z", _negated(_equal)),
    "be": ("CZ", _below_or_equal),
    "a": ("CZ", _negated(_below_or_equal)),
    "s": ("S", _sign),
    "ns": ("S", _negated(_sign)),
    "p": ("P", _parity),
    "np": ("P", _negated(_parity)),
    "l": ("SO", _less),
    "ge": ("SO", _negated(_less)),
    "le": ("ZSO", _less_or_equal),
    "g": ("ZSO", _negated(_less_or_equal)),
}
"""Condition code → the flags it reads, and its term of them in that order. SDM vol. 1, appendix B."""


def setcc(condition: Condition) -> Callable[..., Effect]:
    """Semantics of dst ← 1 where *condition* holds, else 0. SDM vol. 2B, SETcc."""

    def semantics(t: Terms, *flags: FNode) -> Effect:
        return Effect((Output(t.zext(condition(t, *flags), 8)),))

    return semantics


def jump(condition: Condition) -> Callable[..., Effect]:
    """Semantics of a conditional jump: whether it is taken. SDM vol. 2A, Jcc."""

    def semantics(t: Terms, *flags: FNode) -> Effect:
        return Effect(taken=condition(t, *flags))

    return semantics


def clc(t: Terms) -> Effect:
    """CF ← 0. SDM vol. 2A, CLC."""
    return Effect((), {"CF": Output(t.const(0, 1))})


def stc(t: Terms) -> Effect:
    """CF ← 1. SDM vol. 2B, STC."""
    return Effect((), {"CF": Output(t.const(1, 1))})


def cmc(t: Terms, cf: FNode) -> Effect:
    """CF ← ~CF. SDM vol. 2A, CMC."""
    return Effect((), {"CF": Output(t.not_(cf))})


def nop(_t: Terms) -> Effect:
    """Nothing, whatever the operand. SDM vol. 2B, NOP."""
    return Effect()

"""Walk a bit-vector term into LLVM IR: one value for one machine state."""

from collections.abc import Callable, Mapping
from typing import Any

import pysmt.operators as op
from llvmlite import ir

__all__ = ["Lowering", "UnsupportedTerm"]


class UnsupportedTerm(ValueError):
    """A term has an operator that no kernel knows; the message names it."""


Value = Any
"""An llvmlite value; the library has no types."""

_BINARY = {
    op.BV_ADD: "add",
    op.BV_SUB: "sub",
    op.BV_MUL: "mul",
    op.BV_AND: "and_",
    op.BV_OR: "or_",
    op.BV_XOR: "xor",
    op.AND: "and_",
    op.OR: "or_",
}
_SHIFTS = {op.BV_LSHL: "shl", op.BV_LSHR: "lshr", op.BV_ASHR: "ashr"}
_COMPARE = {
    op.BV_ULT: ("icmp_unsigned", "<"),
    op.BV_ULE: ("icmp_unsigned", "<="),
    op.BV_SLT: ("icmp_signed", "<"),
    op.BV_SLE: ("icmp_signed", "<="),
    op.EQUALS: ("icmp_unsigned", "=="),
    op.IFF: ("icmp_unsigned", "=="),
    op.BV_COMP: ("icmp_unsigned", "=="),
}
_EXTEND = {op.BV_ZEXT: "zext", op.BV_SEXT: "sext"}


class Lowering:
    """Lowers terms at the builder's position; equal subterms become one value."""

    def __init__(self, builder: ir.IRBuilder, symbols: Callable[[str, int], Value]) -> None:
        """*symbols* gives the value of an input by name and width in bits."""
        self._builder = builder
        self._symbols = symbols
        self._values: dict[int, Value] = {}

    def lower(self, term: Any) -> Value:
        """
        The LLVM value of *term*; booleans and 1-bit vectors are both ``i1``.

        Raises:
            UnsupportedTerm: An operator has no lowering.

        """
        stack = [term]
        while stack:
            node = stack[-1]
            if node.node_id() in self._values:
                stack.pop()
                continue
            pending = [a for a in node.args() if a.node_id() not in self._values]
            if pending:
                stack.extend(pending)
                continue
            self._values[node.node_id()] = self._node(node, [self._values[a.node_id()] for a in node.args()])
            stack.pop()
        return self._values[term.node_id()]

    def _node(self, node: Any, args: list[Value]) -> Value:
        b, kind = self._builder, node.node_type()
        if kind in _BINARY:
            value = args[0]
            for other in args[1:]:
                value = getattr(b, _BINARY[kind])(value, other)
            return value
        if kind in _SHIFTS:
            return self._shift(_SHIFTS[kind], *args)
        if kind in _COMPARE:
            method, sign = _COMPARE[kind]
            return getattr(b, method)(sign, *args)
        if kind in _EXTEND:
            width = ir.IntType(node.bv_width())
            return args[0] if args[0].type == width else getattr(b, _EXTEND[kind])(args[0], width)
        handler = _OTHERS.get(kind)
        if handler is None:
            raise UnsupportedTerm(f"term operator {op.op_to_str(kind)} in {node}: expected one that kernels can compile")
        return handler(self, node, args)

    def _shift(self, name: str, value: Value, count: Value) -> Value:
        """A shift whose count may reach the width, where LLVM's own shifts mean nothing."""
        b, width = self._builder, value.type.width
        fits = b.icmp_unsigned("<", count, value.type(width))
        if name == "ashr":
            return b.ashr(value, b.select(fits, count, value.type(width - 1)))
        return b.select(fits, getattr(b, name)(value, b.select(fits, count, value.type(0))), value.type(0))

    def _constant(self, node: Any, _args: list[Value]) -> Value:
        if node.is_bool_constant():
            return ir.IntType(1)(int(node.constant_value()))
        return ir.IntType(node.bv_width())(node.constant_value())

    def _symbol(self, node: Any, _args: list[Value]) -> Value:
        return self._symbols(node.symbol_name(), node.bv_width())

    def _extract(self, node: Any, args: list[Value]) -> Value:
        low, b = node.bv_extract_start(), self._builder
        shifted = b.lshr(args[0], args[0].type(low)) if low else args[0]
        width = ir.IntType(node.bv_width())
        return shifted if shifted.type == width else b.trunc(shifted, width)

    def _concat(self, node: Any, args: list[Value]) -> Value:
        b, width = self._builder, ir.IntType(node.bv_width())
        high, low = args
        return b.or_(b.shl(b.zext(high, width), width(low.type.width)), b.zext(low, width))

    def _ite(self, _node: Any, args: list[Value]) -> Value:
        return self._builder.select(*args)

    def _not(self, _node: Any, args: list[Value]) -> Value:
        return self._builder.not_(args[0])

    def _neg(self, _node: Any, args: list[Value]) -> Value:
        return self._builder.neg(args[0])


_OTHERS: Mapping[int, Callable[[Lowering, Any, list[Value]], Value]] = {
    op.BV_CONSTANT: Lowering._constant,  # noqa: SLF001  # the class's own table
    op.BOOL_CONSTANT: Lowering._constant,  # noqa: SLF001  # as above
    op.SYMBOL: Lowering._symbol,  # noqa: SLF001  # as above
    op.BV_EXTRACT: Lowering._extract,  # noqa: SLF001  # as above
    op.BV_CONCAT: Lowering._concat,  # noqa: SLF001  # as above
    op.ITE: Lowering._ite,  # noqa: SLF001  # as above
    op.BV_NOT: Lowering._not,  # noqa: SLF001  # as above
    op.NOT: Lowering._not,  # noqa: SLF001  # as above
    op.BV_NEG: Lowering._neg,  # noqa: SLF001  # as above
}

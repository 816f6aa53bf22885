"""
A reader of terms over NumPy: every node on all states at once.

It shares no code with the builder of the terms. Up to 64 bits a value is a uint64 array, above (products of
64-bit operands) an array of Python ints.
"""

from collections.abc import Callable, Mapping

import numpy as np
from pysmt import operators as op
from pysmt.fnode import FNode

_U = np.uint64


def _mask(width: int):
    return _U((1 << width) - 1) if width <= 64 else (1 << width) - 1


def _signed(a: np.ndarray, width: int) -> np.ndarray:
    shift = _U(64 - width)
    return (a << shift).view(np.int64) >> np.int64(64 - width)


def _shift_left(a, count, width):
    return np.where(count < _U(width), a << np.minimum(count, _U(width - 1)), _U(0))


def _shift_right(a, count, width):
    return np.where(count < _U(width), a >> np.minimum(count, _U(width - 1)), _U(0))


def _shift_right_signed(a, count, width):
    return (_signed(a, width) >> np.minimum(count, _U(63)).astype(np.int64)).view(_U)


_BINARY: dict[int, Callable] = {
    op.BV_ADD: lambda a, b, _w: a + b,
    op.BV_SUB: lambda a, b, _w: a - b,
    op.BV_MUL: lambda a, b, _w: a * b,
    op.BV_AND: lambda a, b, _w: a & b,
    op.BV_OR: lambda a, b, _w: a | b,
    op.BV_XOR: lambda a, b, _w: a ^ b,
    op.BV_LSHL: _shift_left,
    op.BV_LSHR: _shift_right,
    op.BV_ASHR: _shift_right_signed,
}


def _number(a: int, width: int) -> int:
    return a - (a >> (width - 1) << width)


def _quotient(a: int, b: int, width: int) -> int:
    a, b = _number(a, width), _number(b, width)
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int, width: int) -> int:
    return _number(a, width) - _quotient(a, b, width) * _number(b, width)


_DIVISIONS: dict[int, Callable] = {
    op.BV_UDIV: lambda a, b, _w: 0 if b == 0 else a // b,
    op.BV_UREM: lambda a, b, _w: a if b == 0 else a % b,
    op.BV_SDIV: _quotient,
    op.BV_SREM: _remainder,
}
"""Values for a divisor of 0 do not matter: such a division traps."""


class Evaluator:
    """Values of terms where symbols have the given values, one per state; shared nodes are computed once."""

    def __init__(self, inputs: Mapping[str, np.ndarray], n: int) -> None:
        self.inputs, self.n, self.values = inputs, n, {}

    def __call__(self, term: FNode) -> np.ndarray:
        """The values of *term*: uint64, one per state."""
        stack = [term]
        while stack:
            node = stack[-1]
            if node in self.values:
                stack.pop()
                continue
            missing = [a for a in node.args() if a not in self.values]
            if missing:
                stack += missing
                continue
            self.values[node] = self._node(node, [self.values[a] for a in node.args()])
        return np.broadcast_to(self.values[term], (self.n,))

    def _node(self, node: FNode, args: list[np.ndarray]) -> np.ndarray:
        kind = node.node_type()
        if kind == op.SYMBOL:
            return self.inputs[node.symbol_name()]
        if kind == op.BV_CONSTANT:
            return np.array([node.constant_value()], dtype=_U if node.bv_width() <= 64 else object)
        if kind == op.ITE:
            return np.where(args[0], args[1], args[2])
        if kind == op.EQUALS:
            return args[0] == args[1]
        if kind == op.BV_COMP:
            return (args[0] == args[1]).astype(_U)
        if kind == op.BV_ULT:
            return args[0] < args[1]
        if kind == op.BV_SLT:
            width = node.arg(0).bv_width()
            return _signed(args[0], width) < _signed(args[1], width)
        width = node.bv_width()
        is_wide = width > 64 or node.arg(0).bv_width() > 64 or kind in _DIVISIONS
        value = self._wide(node, kind, args, width) if is_wide else self._narrow(node, kind, args, width)
        value = value & _mask(width)
        return value.astype(_U) if width <= 64 else value

    def _narrow(self, node: FNode, kind: int, args: list[np.ndarray], width: int) -> np.ndarray:
        if kind in _BINARY:
            return _BINARY[kind](args[0], args[1], width)
        if kind == op.BV_NOT:
            return ~args[0]
        if kind == op.BV_NEG:
            return _U(0) - args[0]
        if kind == op.BV_CONCAT:
            return args[0] << _U(node.arg(1).bv_width()) | args[1]
        if kind == op.BV_EXTRACT:
            return args[0] >> _U(node.bv_extract_start())
        if kind == op.BV_ZEXT:
            return args[0]
        if kind == op.BV_SEXT:
            return _signed(args[0], node.arg(0).bv_width()).view(_U)
        raise NotImplementedError(op.op_to_str(kind))

    def _wide(self, node: FNode, kind: int, args: list[np.ndarray], width: int) -> np.ndarray:
        args = [a.astype(object) for a in args]
        if kind in _DIVISIONS:
            return np.vectorize(lambda a, b: _DIVISIONS[kind](int(a), int(b), width), otypes=[object])(*args)
        if kind == op.BV_MUL:
            return args[0] * args[1]
        if kind == op.BV_CONCAT:
            return args[0] << node.arg(1).bv_width() | args[1]
        if kind == op.BV_EXTRACT:
            return args[0] >> node.bv_extract_start()
        if kind == op.BV_ZEXT:
            return args[0]
        if kind == op.BV_SEXT:
            old = node.arg(0).bv_width()
            return args[0] - (args[0] >> (old - 1) << old)
        raise NotImplementedError(f"{op.op_to_str(kind)} at {width} bits")

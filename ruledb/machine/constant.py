"""
Constants of instructions: numbers, the symbols c0, c1, … of canonical forms, and expressions over them.

A symbol stands for a signed 64-bit value. A pattern that uses it in an immediate of *n* bits limits it to
the signed *n*-bit values (its *domain*). An operand of width *w* sees the low *w* bits. Expressions are
evaluated on 64 bits, modulo 2**64; all operations but ``log2`` commute with taking low bits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Constant", "Expression", "Symbol", "constant_text", "evaluate", "parse_constant", "signed", "symbols_in"]


@dataclass(frozen=True, slots=True, order=True)
class Symbol:
    """The canonical constant c<index>."""

    index: int


@dataclass(frozen=True, slots=True)
class Expression:
    """An operation of the closed grammar over constants: *name* is a key of `OPERATIONS`."""

    name: str
    args: tuple["Constant", ...]

    def __post_init__(self) -> None:
        if len(self.args) != OPERATIONS[self.name][0]:
            raise ValueError(f"constant operation {self.name}: {len(self.args)} operands, expected {OPERATIONS[self.name][0]}")


Constant = int | Symbol | Expression

_MASK = (1 << 64) - 1


def _log2(value: int) -> int:
    value &= _MASK
    if value == 0 or value & (value - 1):
        raise ValueError(f"log2 of {value:#x}: expected a power of two")
    return value.bit_length() - 1


OPERATIONS: dict[str, tuple[int, Callable[..., int]]] = {
    "-": (1, lambda a: -a),
    "~": (1, lambda a: ~a),
    "log2": (1, _log2),
    "+": (2, lambda a, b: a + b),
    "*": (2, lambda a, b: a * b),
    "&": (2, lambda a, b: a & b),
    "|": (2, lambda a, b: a | b),
    "^": (2, lambda a, b: a ^ b),
    "<<": (2, lambda a, b: a << (b & 63)),
}
"""Name → (number of operands, function on Python ints)."""


def signed(value: int, width: int) -> int:
    """The low *width* bits of *value*, read as two's complement."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def evaluate(constant: Constant, values: Sequence[int]) -> int:
    """
    The signed 64-bit value of *constant* where symbol i is ``values[i]``.

    Raises:
        ValueError: An operation is undefined there (``log2`` of no power of two).

    """
    match constant:
        case int():
            return signed(constant, 64)
        case Symbol(index):
            return signed(values[index], 64)
        case Expression(name, args):
            return signed(OPERATIONS[name][1](*(evaluate(a, values) for a in args)), 64)


def symbols_in(constant: Constant) -> frozenset[int]:
    """Indices of the symbols in *constant*."""
    match constant:
        case int():
            return frozenset()
        case Symbol(index):
            return frozenset({index})
        case Expression(_, args):
            return frozenset().union(*(symbols_in(a) for a in args))


def constant_text(constant: Constant) -> str:
    """Text that `parse_constant` reads back: ``-8``, ``0x1000``, ``c0``, ``(c0 + c1)``, ``log2(c0)``."""
    match constant:
        case int():
            return str(constant) if -1024 < constant < 1024 else f"{'-' if constant < 0 else ''}{abs(constant):#x}"
        case Symbol(index):
            return f"c{index}"
        case Expression("log2", (a,)):
            return f"log2({constant_text(a)})"
        case Expression(name, (a,)):
            return f"{name}{constant_text(a)}" if isinstance(a, Symbol) else f"{name}({constant_text(a)})"
        case Expression(name, (a, b)):
            return f"({constant_text(a)} {name} {constant_text(b)})"
    raise AssertionError(constant)


_LONGEST = 200
"""Characters of a constant's text, which bounds how deep it nests."""


def parse_constant(text: str) -> Constant:
    """
    The constant written as *text*.

    Raises:
        ValueError: The text is not a number, symbol or expression of the grammar.

    """
    if len(text) > _LONGEST:
        raise ValueError(f"constant {text[:20]!r}…: {len(text)} characters; expected at most {_LONGEST}")
    constant, rest = _parse_sum(text.strip())
    if rest:
        raise ValueError(f"constant {text!r}: unexpected {rest!r}")
    return constant


_BINARY = ("+", "-", "*", "&", "|", "^", "<<")


def _parse_sum(text: str) -> tuple[Constant, str]:
    left, text = _parse_atom(text)
    while (name := next((n for n in _BINARY if text.startswith(n)), None)) is not None:
        right, text = _parse_atom(text[len(name) :].lstrip())
        if name == "-":
            name, right = "+", -right if isinstance(right, int) else Expression("-", (right,))
        left = (
            evaluate(Expression(name, (left, right)), ())
            if isinstance(left, int) and isinstance(right, int)
            else Expression(name, (left, right))
        )
    return left, text


def _parse_atom(text: str) -> tuple[Constant, str]:
    for name in ("log2", "-", "~", "+"):
        if text.startswith(name):
            arg, rest = _parse_atom(text[len(name) :].lstrip())
            if name == "+":
                return arg, rest
            whole = Expression(name, (arg,))
            return (evaluate(whole, ()), rest) if isinstance(arg, int) else (whole, rest)
    if text.startswith("("):
        inner, rest = _parse_sum(text[1:].lstrip())
        if not rest.startswith(")"):
            raise ValueError(f"constant: expected ')' before {rest!r}")
        return inner, rest[1:].lstrip()
    length = next((i for i, ch in enumerate(text) if not ch.isalnum()), len(text))
    word, rest = text[:length], text[length:].lstrip()
    if word[:1] == "c" and word[1:].isdigit():
        return Symbol(int(word[1:])), rest
    try:
        return int(word, 0), rest
    except ValueError:
        raise ValueError(f"{word or text!r} is not a number: expected decimal, 0x… or a symbol such as c0") from None

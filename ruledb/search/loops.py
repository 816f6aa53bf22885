"""Small helpers over an LLVM builder: counted loops, words at an index, some words side by side, the mixer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

__all__ = ["I1", "I8", "I32", "I64", "LANES", "MIX", "PTR", "ROW", "Code"]

I64, I8, I1, PTR = ir.IntType(64), ir.IntType(8), ir.IntType(1), ir.PointerType()

LANES = 16
"""Words that are worked on side by side: their halves fill one register of AVX-512, or two of AVX2."""

ROW = 8
"""Words of a row, a cache line: all that one state of a machine holds."""

I32 = ir.IntType(32)
_ROW, _SIGN = ir.VectorType(I64, ROW), ir.VectorType(I32, ROW)
_WORDS, _HALVES, _BITS, _PLACES = (ir.VectorType(kind, LANES) for kind in (I64, I32, I1, PTR))

MIX = (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93)
"""Odd multipliers of the 64-bit mixer ``x *= a; x ^= x >> 32; x *= b``."""


class Code:
    """A builder with what the loops of a search need."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.b = builder

    @contextmanager
    def each(self, start: Any, end: Any, step: int = 1) -> Iterator[Any]:
        """A loop over i in start..end-1 by *step*; the body is written inside."""
        b = self.b
        head, body, done = (b.append_basic_block(n) for n in ("head", "body", "done"))
        entry = b.block
        b.branch(head)
        b.position_at_end(head)
        index = b.phi(I64)
        index.add_incoming(start, entry)
        b.cbranch(b.icmp_unsigned("<", index, end), body, done)
        b.position_at_end(body)
        yield index
        index.add_incoming(b.add(index, I64(step)), b.block)
        b.branch(head)
        b.position_at_end(done)

    def at(self, base: Any, index: Any, kind: ir.Type = I64) -> Any:
        """Element *index* of the array of *kind* at *base*."""
        return self.b.load(self.b.gep(base, [index], source_etype=kind), typ=kind)

    def put(self, base: Any, index: Any, value: Any) -> None:
        """Store *value* as element *index* of the array at *base*."""
        self.b.store(value, self.b.gep(base, [index], source_etype=value.type))

    def pointer(self, base: Any, words: Any) -> Any:
        """*base* advanced by 64-bit *words*."""
        return self.b.gep(base, [words], source_etype=I64)

    def fields(self, base: Any, names: tuple[str, ...], pointers: frozenset[str] = frozenset()) -> dict[str, Any]:
        """The int64 fields of a record by name; those in *pointers* as pointers."""
        words = {name: self.at(base, I64(i)) for i, name in enumerate(names)}
        return {name: self.b.inttoptr(word, PTR) if name in pointers else word for name, word in words.items()}

    def field(self, base: Any, names: tuple[str, ...], pointers: frozenset[str] = frozenset()) -> Callable[[str], Any]:
        """A function that reads one field of a record by its name, where and when it is called."""

        def read(name: str) -> Any:
            word = self.at(base, I64(names.index(name)))
            return self.b.inttoptr(word, PTR) if name in pointers else word

        return read

    def mix(self, value: Any, key: Any) -> Any:
        """The 64-bit mixer."""
        b = self.b
        x = b.mul(b.xor(value, key), I64(MIX[0]))
        return b.mul(b.xor(x, b.lshr(x, I64(32))), I64(MIX[1]))

    def words(self, base: Any, index: Any) -> Any:
        """`LANES` words side by side, from word *index* of the array at *base*."""
        return self.b.load(self.pointer(base, index), typ=_WORDS, align=8)

    def halves(self, words: Any, lowest: int) -> Any:
        """32 bits of each of *words*, from bit *lowest* on."""
        return self.b.trunc(self.b.lshr(words, ir.Constant(_WORDS, [lowest] * LANES)), _HALVES)

    def same(self, half: Any) -> Any:
        """The same 32 bits in every lane; *half* is a number or an i32."""
        b = self.b
        if isinstance(half, int):
            return ir.Constant(_HALVES, [half] * LANES)
        nothing = ir.Constant(_HALVES, ir.Undefined)
        return b.shuffle_vector(b.insert_element(nothing, half, I32(0)), nothing, self.same(0))

    def gathered(self, base: Any, indices: Any) -> Any:
        """The 32-bit words at *indices* of the array at *base*."""
        b = self.b
        name = f"llvm.masked.gather.v{LANES}i32.v{LANES}p0"
        kind = ir.FunctionType(_HALVES, [_PLACES, I32, _BITS, _HALVES])
        gather = b.module.globals.get(name) or ir.Function(b.module, kind, name)
        places = b.gep(base, [indices], source_etype=I32)
        places.type = _PLACES  # the builder takes what a vector of indices yields for one address
        return b.call(gather, [places, I32(4), ir.Constant(_BITS, [1] * LANES), self.same(0)])

    def low_bits(self, halves: Any) -> Any:
        """The lowest bit of each lane, side by side."""
        return self.b.bitcast(self.b.trunc(halves, _BITS), ir.IntType(LANES))

    def row(self, base: Any, number: int | Any) -> Any:
        """Row *number* of the array of rows at *base*."""
        index = I64(number * ROW) if isinstance(number, int) else self.b.mul(number, I64(ROW))
        return self.b.load(self.pointer(base, index), typ=_ROW, align=8)

    def digest(self, first: Any, second: Any) -> Any:
        """
        Eight bits of each lane of two rows' words, the lowest lane lowest: what all of its bits fold to. Those of the second row
        are turned by four, but for the last word's.
        """
        b = self.b

        def const(value: int, last: int | None = None) -> Any:
            return ir.Constant(_ROW, [value] * (ROW - 1) + [value if last is None else last])

        def folded(row: Any) -> Any:
            middle, high = b.and_(b.lshr(row, const(16)), const(0xFFFF)), b.lshr(row, const(32))
            high = b.xor(high, b.lshr(high, const(16)))
            middle, high = (b.and_(b.xor(lane, b.lshr(lane, const(8))), const(0xFF)) for lane in (middle, high))
            return b.or_(b.and_(row, const(0xFFFF)), b.or_(b.shl(middle, const(16)), b.shl(high, const(24))))

        other = folded(second)
        upper, lower = const(0xF0F0F0F0, 0), const(0x0F0F0F0F, 0)
        turned = b.or_(b.and_(b.shl(other, const(4)), upper), b.and_(b.lshr(other, const(4)), lower))
        return b.trunc(b.xor(folded(first), b.or_(turned, b.and_(other, const(0, 0xFF)))), _SIGN)

    def sign(self, base: Any, index: Any) -> Any:
        """`ROW` words of 32 bits, from 64-bit word *index* of the array at *base*."""
        return self.b.load(self.pointer(base, index), typ=_SIGN, align=8)

    def counter(self) -> "Counter":
        """A count that begins with 0 here."""
        return Counter(self)

    def is_zero(self, row: Any) -> Any:
        """Whether all words of a row are 0."""
        b = self.b
        differ = b.icmp_unsigned("!=", row, ir.Constant(row.type, [0] * ROW))
        return b.icmp_unsigned("==", b.bitcast(differ, I8), I8(0))


class Counter:
    """A count in a register, of what was put into an array."""

    def __init__(self, code: Code) -> None:
        self._code = code
        with code.b.goto_entry_block():
            self._count = code.b.alloca(I64)
        code.b.store(I64(0), self._count)

    @property
    def value(self) -> Any:
        """The count."""
        return self._code.b.load(self._count, typ=I64)

    def add(self, more: Any) -> None:
        """Count *more*."""
        self._code.b.store(self._code.b.add(self.value, more), self._count)

    def put_if(self, base: Any, word: Any, condition: Any) -> None:
        """
        Put *word* behind what is in the array at *base*, to stay there if *condition* holds: no branch, for no processor
        would guess it. The array has room for one word more.
        """
        self._code.put(base, self.value, word)
        self.add(self._code.b.zext(condition, I64))

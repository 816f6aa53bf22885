"""Small helpers over an LLVM builder: counted loops, words at an index, the mixer."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

__all__ = ["I1", "I8", "I64", "MIX", "PTR", "Code"]

I64, I8, I1, PTR = ir.IntType(64), ir.IntType(8), ir.IntType(1), ir.PointerType()

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

    def mix(self, value: Any, key: Any) -> Any:
        """The 64-bit mixer."""
        b = self.b
        x = b.mul(b.xor(value, key), I64(MIX[0]))
        return b.mul(b.xor(x, b.lshr(x, I64(32))), I64(MIX[1]))

    def bit(self, base: Any, index: Any) -> Any:
        """Bit *index* of the 64-bit words at *base*."""
        b = self.b
        word = self.at(base, b.lshr(index, I64(6)))
        return b.trunc(b.lshr(word, b.and_(index, I64(63))), I1)

"""
The last level of the search as one machine-code loop: apply every instruction to a block of states, probe every result.

For each instruction the loop calls the form's ``pack`` kernel, mixes the packed results, and looks them up: alone,
together with one other register, and (where asked) by their low 8 bits. A look-up is a bit filter that stays in cache, then
an exact hash table. Only what is found there is written out. Nothing else of a candidate is ever stored.

A fingerprint is the sum over the live registers of ``mix(packed value ^ key[slot])``: 64 bits over both fingerprint states.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from ruledb.search.kernels import MAX_INPUTS, PACK, KernelLibrary

__all__ = ["ALONE", "DESCRIPTOR", "LOW8", "MIX", "PARAMETERS", "compile_scan"]

_I64, _I8, _I1, _PTR = ir.IntType(64), ir.IntType(8), ir.IntType(1), ir.PointerType()

MIX = (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93)
"""Odd multipliers of the 64-bit mixer ``x *= a; x ^= x >> 32; x *= b``."""

ALONE, LOW8 = 1, 1 << 8
"""Bits of a descriptor's *probes*: the result alone, and its low 8 bits; bit ``1 + e``: together with slot e."""

DESCRIPTOR = ("kernel", *(f"in{i}" for i in range(MAX_INPUTS)), "constant0", "constant1", "slot", "probes", "output", "partner")
"""int64 columns of an instruction's row; *output* is the kernel's output that the row probes; *partner* the probe (1 + slot) of its
other output, which pairs with the new value, not the old; -1: there is none."""

PARAMETERS = (
    "n", "offset", "stride", "states", "values", "flags", "descriptors", "first", "count", "slots", "work", "keys",
    "filter", "filter_shift", "table", "table_shift", "low8", "hits", "capacity", "poison0", "poison1",
)  # fmt: skip
"""int64 parameters: block of *n* states from *offset*; *values* [slot][state][stride], *states* a slot;
*flags* [state][stride];
*work* holds (4 + slots) * n words; *table* words, 0 empty, ``1 << (64 - table_shift)`` of them and 64 more;
*low8* [slot][1024] words of bits; *hits* rows (descriptor, state, fingerprint, probe). Returns the number of hits, and in
*first* the descriptor to go on with where *hits* was too small for the rest."""


class _Code:
    """Small helpers over a builder: loops, words at an index, mixing."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.b = builder

    @contextmanager
    def each(self, start: Any, end: Any) -> Iterator[Any]:
        """A loop over i in start..end-1; the body is written inside."""
        b = self.b
        head, body, done = (b.append_basic_block(n) for n in ("head", "body", "done"))
        entry = b.block
        b.branch(head)
        b.position_at_end(head)
        index = b.phi(_I64)
        index.add_incoming(start, entry)
        b.cbranch(b.icmp_unsigned("<", index, end), body, done)
        b.position_at_end(body)
        yield index
        index.add_incoming(b.add(index, _I64(1)), b.block)
        b.branch(head)
        b.position_at_end(done)

    def at(self, base: Any, index: Any, kind: ir.Type = _I64) -> Any:
        return self.b.load(self.b.gep(base, [index], source_etype=kind), typ=kind)

    def put(self, base: Any, index: Any, value: Any) -> None:
        self.b.store(value, self.b.gep(base, [index], source_etype=value.type))

    def pointer(self, base: Any, words: Any) -> Any:
        return self.b.gep(base, [words], source_etype=_I64)

    def mix(self, value: Any, key: Any) -> Any:
        b = self.b
        x = b.mul(b.xor(value, key), _I64(MIX[0]))
        return b.mul(b.xor(x, b.lshr(x, _I64(32))), _I64(MIX[1]))

    def bit(self, base: Any, index: Any) -> Any:
        """Bit *index* of the 64-bit words at *base*."""
        b = self.b
        word = self.at(base, b.lshr(index, _I64(6)))
        return b.trunc(b.lshr(word, b.and_(index, _I64(63))), _I1)


def _asked(b: ir.IRBuilder, probes: Any, bit: Any) -> Any:
    return b.trunc(b.lshr(probes, bit), _I1)


def _hit(code: _Code, p: dict[str, Any], n_hits: Any, row: tuple[Any, ...]) -> None:
    b = code.b
    n = b.load(n_hits, typ=_I64)
    where = code.pointer(p["hits"], b.mul(n, _I64(len(row))))
    for column, value in enumerate(row):
        code.put(where, _I64(column), value)
    b.store(b.add(n, _I64(1)), n_hits)


def _in_table(code: _Code, p: dict[str, Any], fingerprint: Any) -> Any:
    """Whether the table holds *fingerprint*: linear probing from its top bits, at most to the next empty word."""
    b = code.b
    head, again, done = (b.append_basic_block(n) for n in ("look", "again", "looked"))
    entry, start = b.block, b.lshr(fingerprint, p["table_shift"])
    b.branch(head)
    b.position_at_end(head)
    at = b.phi(_I64)
    at.add_incoming(start, entry)
    word = code.at(p["table"], at)
    found = b.icmp_unsigned("==", word, fingerprint)
    b.cbranch(b.or_(found, b.icmp_unsigned("==", word, _I64(0))), done, again)
    b.position_at_end(again)
    at.add_incoming(b.add(at, _I64(1)), again)
    b.branch(head)
    b.position_at_end(done)
    return found


def compile_scan(library: KernelLibrary) -> int:
    """Address of the compiled loop, ``int64 scan(int64 parameters[])`` with `PARAMETERS`."""
    return library.address("scan", _module)


def _module() -> ir.Module:
    module = ir.Module("scan")
    function = ir.Function(module, ir.FunctionType(_I64, [_PTR]), "scan")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    code = _Code(b)
    p = {name: code.at(function.args[0], _I64(i)) for i, name in enumerate(PARAMETERS)}
    for name in ("values", "flags", "descriptors", "work", "keys", "filter", "table", "low8", "hits"):
        p[name] = b.inttoptr(p[name], _PTR)
    n_hits = b.alloca(_I64)
    b.store(_I64(0), n_hits)
    packed, mixed, other, bases = (code.pointer(p["work"], b.mul(_I64(i), p["n"])) for i in range(4))

    def array(slot: Any, state: int) -> Any:
        row = b.add(b.mul(slot, p["states"]), _I64(state))
        return code.pointer(p["values"], b.add(b.mul(row, p["stride"]), p["offset"]))

    # Row 0 adds nothing to a fingerprint; row 1 + e adds the register that the old states hold in slot e.
    with code.each(_I64(0), p["n"]) as i:
        code.put(bases, i, _I64(0))
    with code.each(_I64(0), p["slots"]) as slot:
        low, high, base = array(slot, 0), array(slot, 1), code.pointer(bases, b.mul(b.add(slot, _I64(1)), p["n"]))
        key = code.at(p["keys"], slot)
        with code.each(_I64(0), p["n"]) as i:
            both = b.or_(b.and_(code.at(low, i), _I64(0xFFFFFFFF)), b.shl(code.at(high, i), _I64(32)))
            code.put(base, i, code.mix(both, key))

    flags = [b.gep(p["flags"], [b.add(b.mul(_I64(s), p["stride"]), p["offset"])], source_etype=_I8) for s in (0, 1)]
    room = b.sub(p["capacity"], b.mul(p["n"], b.add(p["slots"], _I64(2))))
    full = b.append_basic_block("full")
    with code.each(p["first"], p["count"]) as number:
        row = code.pointer(p["descriptors"], b.mul(number, _I64(len(DESCRIPTOR))))
        d = {name: code.at(row, _I64(i)) for i, name in enumerate(DESCRIPTOR)}
        b.store(number, b.gep(function.args[0], [_I64(PARAMETERS.index("first"))], source_etype=_I64))
        go_on = b.append_basic_block("go_on")
        b.cbranch(b.icmp_signed("<=", b.load(n_hits, typ=_I64), room), go_on, full)
        b.position_at_end(go_on)
        inputs = [array(d[f"in{i}"], s) for i in range(MAX_INPUTS) for s in (0, 1)]
        second = b.icmp_unsigned("==", d["output"], _I64(1))
        outputs = [b.select(second, other, packed), b.select(second, packed, other)]
        kernel = b.inttoptr(d["kernel"], PACK.as_pointer())
        arguments = [p["n"], *inputs, *flags, d["constant0"], d["constant1"], p["poison0"], p["poison1"], *outputs]
        b.call(kernel, arguments)
        key = code.at(p["keys"], d["slot"])
        with code.each(_I64(0), p["n"]) as i:
            code.put(mixed, i, code.mix(code.at(packed, i), key))
        with b.if_then(b.icmp_signed(">", d["partner"], _I64(0))):
            key = code.at(p["keys"], b.sub(d["partner"], _I64(1)))
            with code.each(_I64(0), p["n"]) as i:
                code.put(other, i, code.mix(code.at(other, i), key))
        with b.if_then(_asked(b, d["probes"], _I64(LOW8.bit_length() - 1))):
            bitmap = code.pointer(p["low8"], b.mul(d["slot"], _I64(1024)))
            with code.each(_I64(0), p["n"]) as i:
                both = code.at(packed, i)
                small = b.or_(b.and_(both, _I64(0xFF)), b.and_(b.lshr(both, _I64(24)), _I64(0xFF00)))
                with b.if_then(code.bit(bitmap, small), likely=False):
                    _hit(code, p, n_hits, (number, i, small, _I64(LOW8)))
        with code.each(_I64(0), b.add(p["slots"], _I64(1))) as probe, b.if_then(_asked(b, d["probes"], probe)):
            base = b.select(b.icmp_signed("==", probe, d["partner"]), other, code.pointer(bases, b.mul(probe, p["n"])))
            with code.each(_I64(0), p["n"]) as i:
                fingerprint = b.add(code.at(mixed, i), code.at(base, i))
                with (
                    b.if_then(code.bit(p["filter"], b.lshr(fingerprint, p["filter_shift"])), likely=False),
                    b.if_then(_in_table(code, p, fingerprint)),
                ):
                    _hit(code, p, n_hits, (number, i, fingerprint, probe))
    b.store(p["count"], b.gep(function.args[0], [_I64(PARAMETERS.index("first"))], source_etype=_I64))
    b.ret(b.load(n_hits, typ=_I64))
    b.position_at_end(full)
    b.ret(b.load(n_hits, typ=_I64))
    return module

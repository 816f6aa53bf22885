"""
The last level of the search as one machine-code loop: apply every instruction to a block of states, probe every result.

For each instruction the loop calls the form's ``pack`` kernel, mixes the packed results, and looks them up: alone,
together with one other register, and (where asked) by their low 8 bits. A look-up is a bit filter that stays in cache, sixteen
candidates at a time, then an exact hash table, then the `verdict` on all states. What passes one step is gathered before the next
begins, so that loops have no branch to guess, and their loads overlap. Nothing else of a candidate is ever stored.

A fingerprint is the sum over the live registers of ``mix(packed value ^ key[slot])``: 64 bits over both fingerprint states.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from ruledb.search.kernels import MAX_INPUTS, PACK, KernelLibrary
from ruledb.search.layout import DESCRIPTOR, FIND_BITS, LOW8, N_FILTER_BIT, PARAMETERS, POINTERS
from ruledb.search.loops import I1, I8, I32, I64, LANES, PTR, Code
from ruledb.search.verdict import emit_verdict

__all__ = ["compile_scan"]

_GLANCE = 64
"""Candidates whose marks are one word."""

_USUAL = 4
"""Marks that are looked for in every such word."""


def compile_scan(library: KernelLibrary) -> int:
    """Address of the compiled loop, ``void scan(int64 parameters[])`` with `PARAMETERS`."""
    return library.address("scan", _module)


class _Scan:
    """The function while it is written."""

    def __init__(self, module: ir.Module) -> None:
        self.verdict = emit_verdict(module)
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR]), "scan")
        self.parameters = function.args[0]
        self.b = b = ir.IRBuilder(function.append_basic_block("entry"))
        self.code = code = Code(b)
        self.p = p = code.fields(self.parameters, PARAMETERS, POINTERS)
        self.full = function.append_basic_block("full")
        self.rounded = b.and_(b.add(p["n"], I64(_GLANCE - 1)), I64(-_GLANCE))
        rows = [code.pointer(p["work"], b.mul(I64(i), self.rounded)) for i in range(5)]
        self.packed, self.mixed, self.other, self.marks, self.bases = rows
        self.finds = code.pointer(self.bases, b.mul(b.add(p["slots"], I64(1)), self.rounded))

    def write(self) -> None:
        b, code, p = self.b, self.code, self.p
        self._bases()
        flags = [b.gep(p["flags"], [b.add(b.mul(I64(s), p["stride"]), p["offset"])], source_etype=I8) for s in (0, 1)]
        first = b.gep(self.parameters, [I64(PARAMETERS.index("first"))], source_etype=I64)
        with code.each(p["first"], p["count"]) as number:
            row = code.pointer(p["descriptors"], b.mul(number, I64(len(DESCRIPTOR))))
            d = code.fields(row, DESCRIPTOR, POINTERS)
            b.store(number, first)
            self._apply(d, flags)
            with code.each(I64(0), b.add(p["slots"], I64(1))) as probe, b.if_then(_asked(b, d["probes"], probe)):
                self._probe(row, number, d, probe)
            with b.if_then(_asked(b, d["probes"], I64(LOW8.bit_length() - 1))):
                self._probe_low8(row, number, d)
        b.store(p["count"], first)
        b.ret_void()
        b.position_at_end(self.full)
        b.ret_void()

    def _bases(self) -> None:
        """Row 0 adds nothing to a fingerprint; row 1 + e adds the register that the old states hold in slot e."""
        b, code, p = self.b, self.code, self.p
        with code.each(I64(0), p["n"]) as i:
            code.put(self.bases, i, I64(0))
        with code.each(I64(0), p["slots"]) as slot:
            low, high = self._old(slot, 0), self._old(slot, 1)
            base = code.pointer(self.bases, b.mul(b.add(slot, I64(1)), self.rounded))
            key = code.at(p["keys"], slot)
            with code.each(I64(0), p["n"]) as i:
                both = b.or_(b.and_(code.at(low, i), I64(0xFFFFFFFF)), b.shl(code.at(high, i), I64(32)))
                code.put(base, i, code.mix(both, key))

    def _old(self, slot: Any, state: int) -> Any:
        b, p = self.b, self.p
        row = b.add(b.mul(slot, p["states"]), I64(state))
        return self.code.pointer(p["values"], b.add(b.mul(row, p["stride"]), p["offset"]))

    def _apply(self, d: Any, flags: Any) -> None:
        """New values of the block behind one instruction: packed, and mixed."""
        b, code, p = self.b, self.code, self.p
        inputs = [self._old(d[f"in{i}"], s) for i in range(MAX_INPUTS) for s in (0, 1)]
        each = [code.at(d["constants"] if c else p["poison"], I64(s)) for c in (True, False) for s in (0, 1)]
        second = b.icmp_unsigned("==", d["output"], I64(1))
        outputs = [b.select(second, self.other, self.packed), b.select(second, self.packed, self.other)]
        b.call(b.inttoptr(d["pack"], PACK.as_pointer()), [p["n"], *inputs, *flags, *each, *outputs])
        key = code.at(p["keys"], d["slot"])
        with code.each(I64(0), p["n"]) as i:
            code.put(self.mixed, i, code.mix(code.at(self.packed, i), key))
        with b.if_then(b.icmp_signed(">", d["partner"], I64(0))):
            key = code.at(p["keys"], b.sub(d["partner"], I64(1)))
            with code.each(I64(0), p["n"]) as i:
                code.put(self.other, i, code.mix(code.at(self.other, i), key))

    def _probe(self, row: Any, number: Any, d: Any, probe: Any) -> None:
        b, code, p = self.b, self.code, self.p
        with_new = b.icmp_signed("==", probe, d["partner"])
        base = b.select(with_new, self.other, code.pointer(self.bases, b.mul(probe, self.rounded)))
        shift = code.same(b.trunc(p["filter_shift"], I32))
        with self._each_group() as (group, i):
            upper = code.halves(b.add(code.words(self.mixed, i), code.words(base, i)), 32)
            words = code.gathered(p["filter"], b.lshr(upper, shift))
            self._mark(group, b.and_(*(_bit(code, words, b.lshr(upper, code.same(n))) for n in N_FILTER_BIT)))
        self._judge(row, number, lambda i: self._listed(b.add(code.at(self.mixed, i), code.at(base, i))))

    def _probe_low8(self, row: Any, number: Any, d: Any) -> None:
        b, code, p = self.b, self.code, self.p
        bitmap = code.pointer(p["low8"], b.mul(d["slot"], I64(1024)))
        lists = code.pointer(p["low8_lists"], b.shl(d["slot"], I64(16)))
        with self._each_group() as (group, i):
            both = code.words(self.packed, i)
            small = b.or_(b.and_(code.halves(both, 0), code.same(0xFF)), b.and_(code.halves(both, 24), code.same(0xFF00)))
            self._mark(group, _bit(code, code.gathered(bitmap, b.lshr(small, code.same(5))), small))
        self._judge(row, number, lambda i: code.at(lists, self._low_bytes(i)))

    def _low_bytes(self, i: Any) -> Any:
        b, both = self.b, self.code.at(self.packed, i)
        return b.or_(b.and_(both, I64(0xFF)), b.and_(b.lshr(both, I64(24)), I64(0xFF00)))

    @contextmanager
    def _each_group(self) -> Iterator[tuple[Any, Any]]:
        """A loop over the block, `LANES` candidates at a time: the number of the group and of its first candidate."""
        with self.code.each(I64(0), self.b.udiv(self.rounded, I64(LANES))) as group:
            yield group, self.b.mul(group, I64(LANES))

    def _mark(self, group: Any, bits: Any) -> None:
        """One bit a candidate: 1 where the filter lets it pass."""
        self.code.put(self.marks, group, self.code.low_bits(bits))

    def _gathered(self) -> Any:
        """Put the numbers of the candidates that are marked into `finds`; how many they are."""
        b, code = self.b, self.code
        found = code.counter()
        with code.each(I64(0), b.udiv(self.rounded, I64(_GLANCE))) as word:
            start = b.mul(word, I64(_GLANCE))
            missing = b.sub(I64(_GLANCE), b.sub(self.p["n"], start))
            # What is marked beyond the block's end counts for nothing.
            beyond = b.select(b.icmp_signed(">", missing, I64(0)), missing, I64(0))
            marks = b.and_(code.at(self.marks, word), b.lshr(I64(-1), beyond))
            places, left = code.pointer(self.finds, found.value), marks
            for turn in range(_USUAL):
                code.put(places, I64(turn), b.add(start, b.cttz(left, I1(0))))
                left = b.and_(left, b.sub(left, I64(1)))
            with b.if_then(b.icmp_unsigned("!=", left, I64(0)), likely=False):
                self._gather_more(b.add(found.value, I64(_USUAL)), start, left)
            found.add(b.ctpop(marks))
        return found.value

    def _gather_more(self, first: Any, start: Any, marks: Any) -> None:
        b = self.b
        entry, body, over = b.block, b.append_basic_block("more"), b.append_basic_block("gathered")
        b.branch(body)
        b.position_at_end(body)
        place, left = b.phi(I64), b.phi(I64)
        self.code.put(self.finds, place, b.add(start, b.cttz(left, I1(0))))
        rest = b.and_(left, b.sub(left, I64(1)))
        for phi, begin, then in ((place, first, b.add(place, I64(1))), (left, marks, rest)):
            phi.add_incoming(begin, entry)
            phi.add_incoming(then, body)
        b.cbranch(b.icmp_unsigned("!=", rest, I64(0)), body, over)
        b.position_at_end(over)

    def _listed(self, fingerprint: Any) -> Any:
        """The list of *fingerprint*, 0 if the table lacks it: linear probing from its top bits, at most to the next empty pair."""
        b, code, p = self.b, self.code, self.p
        head, again, over = (b.append_basic_block(n) for n in ("look", "again", "looked"))
        entry, start = b.block, b.shl(b.lshr(fingerprint, p["table_shift"]), I64(1))
        b.branch(head)
        b.position_at_end(head)
        at = b.phi(I64)
        at.add_incoming(start, entry)
        word = code.at(p["table"], at)
        here = b.or_(b.icmp_unsigned("==", word, fingerprint), b.icmp_unsigned("==", word, I64(0)))
        b.cbranch(here, over, again)
        b.position_at_end(again)
        at.add_incoming(b.add(at, I64(2)), again)
        b.branch(head)
        b.position_at_end(over)
        return code.at(p["table"], b.add(at, I64(1)))

    def _judge(self, row: Any, number: Any, listed: Callable[[Any], Any]) -> None:
        """Have the marked candidates judged for which *listed* finds a list."""
        b, code = self.b, self.code
        marked, found = self._gathered(), code.counter()
        with code.each(I64(0), marked) as turn:
            i = code.at(self.finds, turn)
            chosen = listed(i)
            found.put_if(self.finds, b.or_(b.shl(chosen, I64(FIND_BITS)), i), b.icmp_unsigned("!=", chosen, I64(0)))
        on = b.append_basic_block("on")
        no_room = b.call(self.verdict, [self.parameters, row, number, self.finds, found.value])
        b.cbranch(no_room, self.full, on)
        b.position_at_end(on)


def _bit(code: Code, halves: Any, numbers: Any) -> Any:
    """The bits of *halves* whose numbers are the lowest five bits of *numbers*, lane by lane."""
    return code.b.lshr(halves, code.b.and_(numbers, code.same(31)))


def _asked(b: ir.IRBuilder, probes: Any, bit: Any) -> Any:
    return b.trunc(b.lshr(probes, bit), I1)


def _module() -> ir.Module:
    module = ir.Module("scan")
    _Scan(module).write()
    return module

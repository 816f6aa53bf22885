"""
What happens, in machine code, with a candidate whose fingerprint some target has: it is run on all states of the search.

The classes of a fingerprint are listed by *kind*. Where a candidate needs what a whole list, or a kind, forbids, nothing is
run for it. Else it is run on the two states of the sign, and the *sign*, a hash of all live locations there, is compared with
those in the list. Only what then is cheaper than what was found is run on all states. What differs in a live location on any
state never leaves the loop.
"""

from typing import Any

from llvmlite import ir

from ruledb.search.kernels import MAX_INPUTS, STEP
from ruledb.search.layout import CLASS_BITS, COST_BITS, COST_GUARD, DESCRIPTOR, KIND_BITS, PARAMETERS, POINTERS, SIGN_BITS
from ruledb.search.loops import I1, I8, I64, PTR, ROW, Code
from ruledb.search.states import N_FINGERPRINT, N_SIGN

__all__ = ["Candidate", "emit_verdict"]


def emit_verdict(module: ir.Module) -> ir.Function:
    """
    ``int1 verdict(parameters, row, number, i, list)``: put the classes of *list* that state *i* of the block, behind row
    *number*, agrees with into the hits. 1: there was no room.
    """
    function = ir.Function(module, ir.FunctionType(I1, [PTR, PTR, I64, I64, I64]), "verdict")
    function.linkage = "internal"
    function.attributes.add("noinline")
    parameters, row, number, i, chosen = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    code = Code(b)
    p, d = code.field(parameters, PARAMETERS, POINTERS), code.field(row, DESCRIPTOR, POINTERS)
    n_hits = b.gep(parameters, [I64(PARAMETERS.index("n_hits"))], source_etype=I64)
    n_finds = b.gep(parameters, [I64(PARAMETERS.index("n_finds"))], source_etype=I64)
    b.store(b.add(b.load(n_finds, typ=I64), I64(1)), n_finds)
    state = b.add(p("offset"), i)
    mask = b.or_(code.at(p("masks"), state), d("mask"))
    entries = code.pointer(p("lists"), chosen)
    length, forbidden = code.at(entries, I64(0)), code.at(entries, I64(1))
    refused, look, full, fits = (b.append_basic_block(n) for n in ("refused", "look", "full", "fits"))
    b.cbranch(b.icmp_unsigned("==", b.and_(mask, forbidden), I64(0)), look, refused)
    b.position_at_end(refused)
    b.ret(I1(0))
    b.position_at_end(look)
    room = b.icmp_unsigned("<=", b.add(b.load(n_hits, typ=I64), length), p("capacity"))
    b.cbranch(room, fits, full)
    b.position_at_end(full)
    b.ret(I1(1))
    b.position_at_end(fits)
    candidate = Candidate(code, p, d, state)
    for turn in range(N_SIGN):
        candidate.run_on(I64(turn))
    cost = b.add(code.at(p("costs"), state), d("cost"))
    turned = b.or_(
        b.and_(b.shl(cost, I64(COST_BITS)), I64((1 << 3 * COST_BITS) - 1)),
        b.lshr(cost, I64(2 * COST_BITS)),
    )
    last, wanted = b.alloca(I64), b.alloca(I64)
    b.store(I64(-1), last)
    with code.each(I64(2), b.add(length, I64(2))) as position:
        entry = code.at(entries, position)
        which, kind, sign = _parts(b, entry, (CLASS_BITS, KIND_BITS, SIGN_BITS))
        with b.if_then(b.icmp_unsigned("!=", kind, b.load(last, typ=I64))):
            b.store(kind, last)
            b.store(candidate.wanted_sign(kind, mask), wanted)
        with b.if_then(b.icmp_unsigned("==", sign, b.load(wanted, typ=I64))):
            limits = code.pointer(p("limits"), b.shl(which, I64(1)))
            cheaper = b.icmp_unsigned("!=", b.and_(b.sub(code.at(p("dearest"), which), cost), I64(COST_GUARD)), I64(0))
            better = b.or_(
                b.icmp_unsigned("<", cost, code.at(limits, I64(0))),
                b.icmp_unsigned("<", turned, code.at(limits, I64(1))),
            )
            with b.if_then(b.and_(cheaper, better)), b.if_then(candidate.agrees(which, kind)):
                place = b.load(n_hits, typ=I64)
                hit = code.pointer(p("hits"), b.shl(place, I64(1)))
                code.put(hit, I64(0), which)
                code.put(hit, I64(1), b.or_(b.shl(number, I64(32)), state))
                b.store(b.add(place, I64(1)), n_hits)
    b.ret(I1(0))
    return function


class Candidate:
    """An instruction behind a *state* of the level; it is run on one state of the search after the other, as far as is needed."""

    def __init__(self, code: Code, p: Any, d: Any, state: Any) -> None:
        self.code, self.p, self.d, self.state = code, p, d, state
        with code.b.goto_entry_block():
            self._done = code.b.alloca(I64)
        code.b.store(I64(0), self._done)

    def run_on(self, turn: Any) -> None:
        """Run it on the state whose turn it is, into a row of its own."""
        b, code, p, d = self.code.b, self.code, self.p, self.d
        k = self._state_of(turn)
        row = code.pointer(p("rows"), b.mul(k, I64(ROW)))
        with code.each(I64(0), p("slots")) as slot:
            code.put(row, slot, code.at(self._column(slot, k), self.state))
        inputs = [code.pointer(self._column(d(f"in{i}"), k), self.state) for i in range(MAX_INPUTS)]
        flags = b.gep(p("flags"), [b.add(b.mul(k, p("stride")), self.state)], source_etype=I8)
        each = [code.pointer(base, k) for base in (d("constants"), p("poison"))]
        # The flags are the low byte of the word behind the registers; an output that there is not goes nowhere, behind all rows.
        outputs = [code.pointer(row, place) for place in (self._place("out0", k), self._place("out1", k), p("slots"))]
        kernel = b.inttoptr(d("step"), STEP.as_pointer())
        b.call(kernel, [I64(1), *inputs, flags, *each, I64(0), *outputs])
        b.store(b.add(turn, I64(1)), self._done)

    def wanted_sign(self, kind: Any, mask: Any) -> Any:
        """The sign that an entry of *kind* has if the candidate agrees with it; none has it if the kind forbids the candidate."""
        b, code, p = self.code.b, self.code, self.p
        live = code.row(p("kinds"), kind)
        mixed = [code.mixed_row(b.and_(code.row(p("rows"), N_FINGERPRINT + k), live), code.row(p("keys"), 1 + k)) for k in range(N_SIGN)]
        sign = b.lshr(code.total(b.add(*mixed)), I64(64 - SIGN_BITS))
        return b.select(b.icmp_unsigned("==", b.and_(mask, code.at(p("forbidden"), kind)), I64(0)), sign, I64(-1))

    def agrees(self, which: Any, kind: Any) -> Any:
        """Whether it agrees with class *which* on every state. The fingerprint states come last: there it mostly does."""
        b, code, p = self.code.b, self.code, self.p
        live = code.row(p("kinds"), kind)
        head, test, again, over = (b.append_basic_block(n) for n in ("states", "test", "again", "over"))
        entry, first = b.block, b.mul(which, p("states"))
        b.branch(head)
        b.position_at_end(head)
        turn = b.phi(I64)
        turn.add_incoming(I64(0), entry)
        b.cbranch(b.icmp_unsigned("<", turn, p("states")), test, over)
        b.position_at_end(test)
        with b.if_then(b.icmp_unsigned(">=", turn, b.load(self._done, typ=I64))):
            self.run_on(turn)
        k = self._state_of(turn)
        differs = b.and_(b.xor(code.row(p("rows"), k), code.row(p("classes"), b.add(first, turn))), live)
        b.cbranch(code.is_zero(differs), again, over)
        last = b.block
        b.position_at_end(again)
        turn.add_incoming(b.add(turn, I64(1)), again)
        b.branch(head)
        b.position_at_end(over)
        agrees = b.phi(I1)
        agrees.add_incoming(I1(1), head)
        agrees.add_incoming(I1(0), last)
        return agrees

    def _state_of(self, turn: Any) -> Any:
        b, n = self.code.b, self.p("states")
        shifted = b.add(turn, I64(N_FINGERPRINT))
        return b.select(b.icmp_unsigned("<", shifted, n), shifted, b.sub(shifted, n))

    def _column(self, slot: Any, k: Any) -> Any:
        """The values of *slot* on state *k*, of the whole level."""
        b, p = self.code.b, self.p
        return self.code.pointer(p("values"), b.mul(b.add(b.mul(slot, p("states")), k), p("stride")))

    def _place(self, output: str, k: Any) -> Any:
        b, slot = self.code.b, self.d(output)
        nowhere = b.mul(b.sub(self.p("states"), k), I64(ROW))
        return b.select(b.icmp_signed("<", slot, I64(0)), nowhere, slot)


def _parts(b: ir.IRBuilder, word: Any, widths: tuple[int, ...]) -> list[Any]:
    """The fields of *word*, lowest first, which fill it."""
    starts = [sum(widths[:i]) for i in range(len(widths))]
    return [b.and_(b.lshr(word, I64(start)), I64((1 << n) - 1)) for start, n in zip(starts, widths, strict=True)]

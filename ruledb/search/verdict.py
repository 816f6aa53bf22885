"""
What happens, in machine code, with candidates whose fingerprints some targets have: they are run on all states of the search.

The classes of a fingerprint are a list. Where a candidate needs what the whole list forbids, nothing is run for it. Else it is
run on the two states of the sign, and the *sign*, some bits of each lane there, is compared with that of each class, in the
lanes that are live. Only what then is cheaper than what was found is run on the other states. What differs in a live location on
any state never leaves the loop.
"""

from typing import Any

from llvmlite import ir

from ruledb.search.kernels import MAX_INPUTS, STEP
from ruledb.search.layout import COST_BITS, COST_GUARD, DESCRIPTOR, ENTRY, FIND_BITS, HEAD, PARAMETERS, POINTERS
from ruledb.search.loops import I1, I8, I32, I64, PTR, ROW, Code
from ruledb.search.states import N_FINGERPRINT, N_SIGN

__all__ = ["Candidate", "emit_verdict"]


def emit_verdict(module: ir.Module) -> ir.Function:
    """
    ``int1 verdict(parameters, row, number, finds, count)``: put the classes that agree with *finds*, behind row *number*, into
    the hits. A find is a list and the number of a state of the block (`FIND_BITS`). The finds are overwritten. 1: there was no room.
    """
    function = ir.Function(module, ir.FunctionType(I1, [PTR, PTR, I64, PTR, I64]), "verdict")
    function.linkage = "internal"
    function.attributes.add("noinline")
    parameters, row, number, finds, count = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    code = Code(b)
    p, d = code.field(parameters, PARAMETERS, POINTERS), code.field(row, DESCRIPTOR, POINTERS)
    n_hits = b.gep(parameters, [I64(PARAMETERS.index("n_hits"))], source_etype=I64)
    n_finds = b.gep(parameters, [I64(PARAMETERS.index("n_finds"))], source_etype=I64)
    b.store(b.add(b.load(n_finds, typ=I64), count), n_finds)
    full = b.append_basic_block("full")
    allowed = _allowed(code, p, d, finds, count)
    with code.each(I64(0), allowed) as turn:
        within, entries = _parts(code, p, code.at(finds, turn))
        state = b.add(p("offset"), within)
        length, fits = code.at(entries, I64(0)), b.append_basic_block("fits")
        b.cbranch(b.icmp_unsigned("<=", b.add(b.load(n_hits, typ=I64), length), p("capacity")), fits, full)
        b.position_at_end(fits)
        candidate = Candidate(code, p, d, state)
        mask = b.or_(code.at(p("masks"), state), d("mask"))
        cost = b.add(code.at(p("costs"), state), d("cost"))
        turned = b.or_(
            b.and_(b.shl(cost, I64(COST_BITS)), I64((1 << 3 * COST_BITS) - 1)),
            b.lshr(cost, I64(2 * COST_BITS)),
        )
        sign = candidate.sign()
        with code.each(I64(0), length) as position:
            entry = code.pointer(entries, b.add(I64(len(HEAD)), b.mul(position, I64(ENTRY))))
            which, kind = (b.zext(code.at(entry, I64(half), I32), I64) for half in (0, 1))
            live = code.sign(p("signed"), b.mul(kind, I64(ENTRY - 1)))
            differs = b.and_(b.xor(sign, code.sign(entry, I64(1))), live)
            with b.if_then(code.is_zero(differs), likely=False):
                limits = code.pointer(p("limits"), b.shl(which, I64(1)))
                may = b.icmp_unsigned("==", b.and_(mask, code.at(p("forbidden"), kind)), I64(0))
                cheaper = b.icmp_unsigned("!=", b.and_(b.sub(code.at(p("dearest"), which), cost), I64(COST_GUARD)), I64(0))
                better = b.or_(
                    b.icmp_unsigned("<", cost, code.at(limits, I64(0))),
                    b.icmp_unsigned("<", turned, code.at(limits, I64(1))),
                )
                with b.if_then(b.and_(may, b.and_(cheaper, better))), b.if_then(candidate.agrees(which, kind)):
                    place = b.load(n_hits, typ=I64)
                    hit = code.pointer(p("hits"), b.shl(place, I64(1)))
                    code.put(hit, I64(0), which)
                    code.put(hit, I64(1), b.or_(b.shl(number, I64(32)), state))
                    b.store(b.add(place, I64(1)), n_hits)
    b.ret(I1(0))
    b.position_at_end(full)
    b.ret(I1(1))
    return function


def _allowed(code: Code, p: Any, d: Any, finds: Any, count: Any) -> Any:
    """Keep, of *finds*, those that the whole of their list does not forbid; how many they are."""
    b = code.b
    kept = code.counter()
    with code.each(I64(0), count) as turn:
        find = code.at(finds, turn)
        within, entries = _parts(code, p, find)
        mask = b.or_(code.at(p("masks"), b.add(p("offset"), within)), d("mask"))
        kept.put_if(finds, find, b.icmp_unsigned("==", b.and_(mask, code.at(entries, I64(HEAD.index("forbidden")))), I64(0)))
    return kept.value


def _parts(code: Code, p: Any, find: Any) -> tuple[Any, Any]:
    """The number of the state in the block, and the list."""
    b = code.b
    return b.and_(find, I64((1 << FIND_BITS) - 1)), code.pointer(p("lists"), b.lshr(find, I64(FIND_BITS)))


class Candidate:
    """An instruction behind a *state* of the level; it is run on one state of the search after the other, as far as is needed."""

    def __init__(self, code: Code, p: Any, d: Any, state: Any) -> None:
        self.code, self.p, self.d, self.state = code, p, d, state
        with code.b.goto_entry_block():
            self._done = code.b.alloca(I64)
        for turn in range(N_SIGN):
            self._run_on(I64(turn))

    def sign(self) -> Any:
        """Some bits of each lane, on the states of the sign."""
        return self.code.digest(*(self.code.row(self.p("rows"), N_FINGERPRINT + turn) for turn in range(N_SIGN)))

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
            self._run_on(turn)
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

    def _run_on(self, turn: Any) -> None:
        """Run it on the state whose turn it is, into a row of its own."""
        b, code, p, d = self.code.b, self.code, self.p, self.d
        k = self._state_of(turn)
        row = code.pointer(p("rows"), b.mul(k, I64(ROW)))
        with code.each(I64(0), p("slots")) as slot:
            code.put(row, slot, code.at(self._column(slot, k), self.state))
        inputs = [code.pointer(self._column(d(f"in{i}"), k), self.state) for i in range(MAX_INPUTS)]
        flags = b.gep(p("flags"), [b.add(b.mul(k, p("stride")), self.state)], source_etype=I8)
        each = [code.pointer(base, k) for base in (d("constants"), p("poison"))]
        # The flags are the low byte of a row's last word; an output that there is not goes nowhere, behind all rows.
        outputs = [code.pointer(row, place) for place in (self._place("out0", k), self._place("out1", k), I64(ROW - 1))]
        kernel = b.inttoptr(d("step"), STEP.as_pointer())
        b.call(kernel, [I64(1), *inputs, flags, *each, I64(0), *outputs])
        b.store(b.add(turn, I64(1)), self._done)

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

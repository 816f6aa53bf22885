"""
What happens, in machine code, with a candidate whose fingerprint some target has: it is run on all states of the search.

Candidates that are too dear or need what the target forbids are turned away before that. What differs in a live location
on any state never leaves the loop.
"""

from typing import Any

from llvmlite import ir

from ruledb.search.kernels import MAX_INPUTS, STEP
from ruledb.search.layout import CLASS, COST_BITS, COST_GUARD, DESCRIPTOR, PARAMETERS, POINTERS
from ruledb.search.loops import I1, I8, I64, PTR, Code
from ruledb.search.states import N_FINGERPRINT

__all__ = ["emit_verdict"]

_OUTPUTS = 3
"""Words of results a state: two registers, and the flags in the low byte."""


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
    p = code.fields(parameters, PARAMETERS, POINTERS)
    d = code.fields(row, DESCRIPTOR, POINTERS)
    done = b.alloca(I64)
    b.store(I64(0), done)
    n_hits = b.gep(parameters, [I64(PARAMETERS.index("n_hits"))], source_etype=I64)
    n_finds = b.gep(parameters, [I64(PARAMETERS.index("n_finds"))], source_etype=I64)
    b.store(b.add(b.load(n_finds, typ=I64), I64(1)), n_finds)
    state = b.add(p["offset"], i)
    mask = b.or_(code.at(p["masks"], state), d["mask"])
    cost = b.add(code.at(p["costs"], state), d["cost"])
    turned = b.or_(
        b.and_(b.shl(cost, I64(COST_BITS)), I64((1 << 3 * COST_BITS) - 1)),
        b.lshr(cost, I64(2 * COST_BITS)),
    )
    length = code.at(p["lists"], chosen)
    room = b.icmp_unsigned("<=", b.add(b.load(n_hits, typ=I64), length), p["capacity"])
    full = b.append_basic_block("full")
    fits = b.append_basic_block("fits")
    b.cbranch(room, fits, full)
    b.position_at_end(full)
    b.ret(I1(1))
    b.position_at_end(fits)
    with code.each(I64(1), b.add(length, I64(1))) as position:
        which = code.at(p["lists"], b.add(chosen, position))
        record = code.pointer(p["classes"], b.mul(which, p["class_words"]))
        head = code.fields(record, CLASS)
        limits = code.pointer(p["limits"], b.shl(which, I64(1)))
        allowed = b.icmp_unsigned("==", b.and_(mask, head["forbidden"]), I64(0))
        cheaper = b.icmp_unsigned("!=", b.and_(b.sub(head["cost"], cost), I64(COST_GUARD)), I64(0))
        wanted = b.or_(
            b.icmp_unsigned("<", cost, code.at(limits, I64(0))),
            b.icmp_unsigned("<", turned, code.at(limits, I64(1))),
        )
        with b.if_then(b.and_(b.and_(allowed, cheaper), wanted)):
            agrees = _agreement(code, p, d, record, head, state, done)
            with b.if_then(agrees):
                place = b.load(n_hits, typ=I64)
                hit = code.pointer(p["hits"], b.shl(place, I64(1)))
                code.put(hit, I64(0), which)
                code.put(hit, I64(1), b.or_(b.shl(number, I64(32)), state))
                b.store(b.add(place, I64(1)), n_hits)
    b.ret(I1(0))
    return function


def _agreement(code: Code, p: Any, d: Any, record: Any, head: Any, state: Any, done: Any) -> Any:
    """Whether the candidate agrees with the class on every state. The fingerprint states come last: there it mostly does."""
    b = code.b
    head_block, test, again, over = (b.append_basic_block(n) for n in ("states", "test", "again", "over"))
    entry = b.block
    b.branch(head_block)
    b.position_at_end(head_block)
    turn = b.phi(I64)
    turn.add_incoming(I64(0), entry)
    b.cbranch(b.icmp_unsigned("<", turn, p["states"]), test, over)
    b.position_at_end(test)
    shifted = b.add(turn, I64(N_FINGERPRINT))
    k = b.select(b.icmp_unsigned("<", shifted, p["states"]), shifted, b.sub(shifted, p["states"]))
    with b.if_then(b.icmp_unsigned(">=", turn, b.load(done, typ=I64))):
        _run(code, p, d, state, k)
        b.store(b.add(turn, I64(1)), done)
    result = code.pointer(p["results"], b.mul(k, I64(_OUTPUTS)))
    wanted = code.pointer(record, b.add(I64(len(CLASS)), b.add(p["slots"], b.mul(turn, b.add(p["slots"], I64(1))))))
    flags = b.zext(code.at(b.gep(result, [I64(2)], source_etype=I64), I64(0), I8), I64)
    with b.goto_entry_block():
        wrong = b.alloca(I64)
    b.store(b.and_(b.xor(flags, code.at(wanted, p["slots"])), head["live_flags"]), wrong)
    with code.each(I64(0), p["slots"]) as slot:
        old = code.at(_column(code, p, slot, k), state)
        first = b.select(b.icmp_signed("==", slot, d["out0"]), code.at(result, I64(0)), old)
        value = b.select(b.icmp_signed("==", slot, d["out1"]), code.at(result, I64(1)), first)
        live = code.at(record, b.add(slot, I64(len(CLASS))))
        differs = b.and_(b.xor(value, code.at(wanted, slot)), live)
        b.store(b.or_(b.load(wrong, typ=I64), differs), wrong)
    b.cbranch(b.icmp_unsigned("==", b.load(wrong, typ=I64), I64(0)), again, over)
    last = b.block
    b.position_at_end(again)
    turn.add_incoming(b.add(turn, I64(1)), again)
    b.branch(head_block)
    b.position_at_end(over)
    agrees = b.phi(I1)
    agrees.add_incoming(I1(1), head_block)
    agrees.add_incoming(I1(0), last)
    return agrees


def _column(code: Code, p: Any, slot: Any, k: Any) -> Any:
    """The values of *slot* on state *k*, of the whole level."""
    b = code.b
    return code.pointer(p["values"], b.mul(b.add(b.mul(slot, p["states"]), k), p["stride"]))


def _run(code: Code, p: Any, d: Any, state: Any, k: Any) -> None:
    """The instruction on one state, into *results*."""
    b = code.b
    result = code.pointer(p["results"], b.mul(k, I64(_OUTPUTS)))
    inputs = [code.pointer(_column(code, p, d[f"in{i}"], k), state) for i in range(MAX_INPUTS)]
    flags = b.gep(p["flags"], [b.add(b.mul(k, p["stride"]), state)], source_etype=I8)
    each = [code.pointer(p["poison"] if name == "poison" else d[name], k) for name in ("constants", "poison")]
    outputs = [code.pointer(result, I64(n)) for n in range(_OUTPUTS)]
    kernel = b.inttoptr(d["step"], STEP.as_pointer())
    b.call(kernel, [I64(1), *inputs, flags, *each, I64(0), *outputs])

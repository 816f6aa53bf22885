"""Wrong accesses, divisions, stack operations and jumps are caught by the comparison with the emulator."""

# ruff: noqa: ARG005 - the mistakes share one signature, few need all of it

from dataclasses import replace

import pytest
from form_list import memory_cases
from memory_conformance import compare_in_memory, states_in_memory
from test_mutants import Mutant, _in_table, _instead, _patched, _result

from ruledb.proof.oracle import Oracle
from ruledb.semantics import divide, forms, memory, move, stack, symbolic
from ruledb.semantics.control import jump
from ruledb.semantics.memory import Access, Kind
from ruledb.semantics.terms import Effect, Output


@pytest.fixture(scope="module")
def oracle():
    """One emulator for the module."""
    return Oracle()


_ACCESS, _EFFECT, _ADDRESS = symbolic._Writer.access, symbolic._effect, symbolic._address


def _stored(change):
    """Every store changed."""

    def access(self, *more):
        return _ACCESS(self, *(change(self.t, a) if a.kind is Kind.STORE else a for a in more))

    return _patched(symbolic._Writer, "access", access)


def _lost(*kinds):
    """Accesses of some kinds are not recorded."""
    return _patched(symbolic._Writer, "access", lambda self, *more: _ACCESS(self, *(a for a in more if a.kind not in kinds)))


def _swapped(t, access):
    value = access.value
    return replace(access, value=t.concat(*(t.extract(value, i + 7, i) for i in range(0, value.bv_width(), 8))))


def _loads_swapped(t, before, address, n_bytes):
    value = memory.free_loads(t, before, address, n_bytes)
    return _swapped(t, Access(Kind.LOAD, address, value)).value


def _with_loads(model):
    """Loads take their value from another model."""

    def effect(t, state, bound, instruction, _):
        return _EFFECT(t, state, bound, instruction, model)

    return _patched(symbolic, "_effect", effect)


def _next_address(t, state, mem):
    return t.add(_ADDRESS(t, state, mem), t.const(1, 64))


MUTANTS = [
    Mutant("store: bytes in reverse", "mov add", _stored(_swapped)),
    Mutant("store: a narrow one", "mov or", _stored(lambda t, a: replace(a, value=t.extract(a.value, 7, 0)))),
    Mutant("store: a wide one", "setb setne", _stored(lambda t, a: replace(a, value=t.zext(a.value, 16)))),
    Mutant("store: one byte on", "mov sete", _stored(lambda t, a: replace(a, address=t.add(a.address, t.const(1, 64))))),
    Mutant("store: lost", "inc xadd push", _lost(Kind.STORE)),
    Mutant("load: lost", "cmp test pop imul", _lost(Kind.LOAD)),
    Mutant("load: bytes in reverse", "mov cmp imul", _with_loads(_loads_swapped)),
    Mutant("address: one byte on", "mov add neg", _patched(symbolic, "_address", _next_address)),
    Mutant("address: scale dropped", "xor adc", _patched(symbolic, "_address", lambda t, s, m: _ADDRESS(t, s, replace(m, scale=1)))),
    Mutant("movbe: as mov", "movbe", _instead(move.mov)),
    Mutant("push: rsp stays", "push", _result(lambda t, r, src, sp: sp, 1)),
    Mutant("push: stores 0", "push", _result(lambda t, r, src, sp: t.const(0, r.bv_width()))),
    Mutant("pop: rsp stays", "pop", _result(lambda t, r, top, sp: sp, 1)),
    Mutant("pop: moves rsp", "pop", _in_table(lambda f: lambda t, top, sp: Effect(f(t, t.not_(top), sp).results))),
    Mutant("pop: address of the old rsp", "pop", _patched(forms, "_popped_to", lambda operand, _: operand)),
    Mutant("pop rsp: the increment stays", "pop", _patched(symbolic, "reversed", lambda pairs: pairs, missing=True)),
    Mutant("leave: rsp stays at rbp", "leave", _in_table(lambda f: lambda t, frame, bp: Effect((Output(frame), Output(bp))))),
    Mutant("leave: rbp stays", "leave", _in_table(lambda f: lambda t, frame, bp: Effect((Output(bp), *stack.leave(t, frame, bp).results[1:])))),
    Mutant("div: signed", "div", _patched(divide, "_unsigned", divide._signed)),
    Mutant("idiv: unsigned", "idiv", _patched(divide, "_signed", divide._unsigned)),
    Mutant("div: halves exchanged", "div idiv", _patched(divide, "_halves", lambda t, a, b, q, r: _HALVES(t, a, b, r, q))),
    Mutant("div: never traps", "div idiv", _lost(Kind.DIVISION, Kind.SIGNED_DIVISION)),
    Mutant("jump: inverted", "jne jl jbe", _in_table(lambda f: lambda t, *flags: Effect(taken=t.not_(f(t, *flags).taken)))),
    Mutant("jump: never", "jo ja jp", _in_table(lambda f: jump(lambda t, *_: t.const(0, 1)))),
]  # fmt: skip

_HALVES = divide._halves


def _is_caught(oracle, mnemonic):
    chosen = [c for c in memory_cases() if c.instruction.mnemonic == mnemonic]
    return any(compare_in_memory(oracle, c, states_in_memory(c, 24)) for c in chosen)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_mutant_in_memory_is_caught(oracle, monkeypatch, mutant):
    """Each deliberate mistake makes terms and emulator differ, in every mnemonic that it spoils."""
    mnemonics = mutant.mnemonics.split()
    mutant.make(monkeypatch, mnemonics)
    assert [m for m in mnemonics if not _is_caught(oracle, m)] == []

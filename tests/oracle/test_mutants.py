"""Wrong semantics are caught: the conformance comparison reports each of a list of deliberate mistakes."""

# ruff: noqa: ARG005 - the mistakes share one signature, few need all of it

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

import pytest
from conformance import compare, states_of
from form_list import cases, shape

from ruledb.proof.oracle import Oracle
from ruledb.semantics import arith, bits, bitwise, control, move, shift, symbolic
from ruledb.semantics.forms import FORMS
from ruledb.semantics.terms import Effect, Output, Terms


@pytest.fixture(scope="module")
def oracle():
    """One emulator for the module."""
    return Oracle()


@dataclass(frozen=True)
class Mutant:
    """A mistake: the mnemonics that it spoils, and how to make it."""

    name: str
    mnemonics: str
    make: Callable


def _in_table(change, *, writes: str | None = None):
    """Replace the semantics f of every form of the mutant's mnemonics by change(f)."""

    def make(monkeypatch, mnemonics):
        for mnemonic in mnemonics:
            rows = [
                replace(f, semantics=change(f.semantics), writes=f.writes if writes is None else f.writes | {writes})
                for f in FORMS[mnemonic]
            ]
            # the comparison shall catch the mistake, not the check of the table's line
            monkeypatch.setitem(FORMS, mnemonic, tuple(replace(row, undefined=row.writes) for row in rows))

    return make


def _instead(function):
    """Use *function* in place of the semantics."""
    return _in_table(lambda _: function)


def _patched(owner, name, value, *, missing: bool = False):
    """Replace one function of a module or class, or (*missing*) hide a builtin there."""
    return lambda monkeypatch, _: monkeypatch.setattr(owner, name, value, raising=not missing)


def _flag(name: str, term, **conditions):
    """Replace the value of one flag by term(t, result, *operands)."""

    def change(function):
        def mutated(t, *operands):
            effect = function(t, *operands)
            result = effect.results[0].value if effect.results else None
            old = effect.flags.get(name, Output(t.const(0, 1)))
            return Effect(effect.results, effect.flags | {name: replace(old, value=term(t, result, *operands), **conditions)})

        return mutated

    return _in_table(change, writes=name)


def _result(term, index: int = 0):
    """Replace the value of one result by term(t, result, *operands)."""

    def change(function):
        def mutated(t, *operands):
            effect = function(t, *operands)
            results = list(effect.results)
            results[index] = replace(results[index], value=term(t, results[index].value, *operands))
            return Effect(tuple(results), effect.flags)

        return mutated

    return _in_table(change)


def _outputs(change_output):
    """Change every flag's output."""

    def change(function):
        def mutated(t, *operands):
            effect = function(t, *operands)
            return Effect(effect.results, {name: change_output(t, name, output) for name, output in effect.flags.items()})

        return mutated

    return _in_table(change)


def _le(t, a, b):
    return t.not_(t.ult(b, a))


def _without_zero_extension(self, register, output):
    if register.width != 32:
        return _REGISTER(self, register, output)
    old = symbolic.register_term(self.t, self.state, register.family)
    return self._store(register.family, old, symbolic._merged(self.t, old, register, output.value), self.t.const(1, 1), self.t.const(1, 1))


_REGISTER, _MERGED, _READ, _PARITY = symbolic._Writer.register, symbolic._merged, symbolic._read, Terms.parity


def _low_read(t, state, operand, width):
    low = operand.resized(8) if getattr(operand, "high", False) else operand
    return _READ(t, state, low, width)


def _low_merge(t, old, register, value):
    return _MERGED(t, old, register.resized(8) if register.high else register, value)


def _long_parity(t, a):
    width = a.bv_width()
    folded = a
    while width > 8:
        width //= 2
        folded = t.xor(t.extract(folded, width - 1, 0), t.extract(folded, 2 * width - 1, width))
    return _PARITY(t, folded)


def _cmov_keeping_the_upper_half(t, dst, src, zf):
    return Effect((Output(src, written=zf),))


def _scan_clobbering(function):
    return lambda t, src: Effect((replace(function(t, src).results[0], specified=None),), function(t, src).flags)


def _unmasked_index(t, width, offset):
    return t.zext(offset, width) if offset.bv_width() < width else offset


def _address_without_scale(t, state, mem):
    return _ADDRESS(t, state, replace(mem, scale=1))


def _address_without_displacement(t, state, mem):
    return _ADDRESS(t, state, replace(mem, displacement=0))


_ADDRESS = symbolic._address


def _masked_to(bits):
    return lambda t, width, count: t.zext(t.and_(count, t.const(bits, 8)), width)


def _high_signed(t, high, src, acc):
    return high if src.bv_width() == 8 else arith._signed_halves(t, src, acc)[0]


def _turning(function):
    """The flags follow the count modulo the width."""

    def mutated(t, dst, count):
        effect = function(t, dst, count)
        turned = t.not_(t.is_zero(t.and_(count, t.const(dst.bv_width() - 1, 8))))
        return Effect(effect.results, {name: replace(output, written=turned) for name, output in effect.flags.items()})

    return mutated


def _flags_of_low_byte(t, result):
    return {"SF": Output(t.sign(result)), "ZF": Output(t.is_zero(t.extract(result, 7, 0))), "PF": Output(t.parity(result))}


def _sign_one_below(t, result):
    return {"SF": Output(t.bit(result, result.bv_width() - 2)), "ZF": Output(t.is_zero(result)), "PF": Output(t.parity(result))}


MUTANTS = [
    Mutant("add: CF by <= instead of <", "add", _flag("CF", lambda t, r, a, b: _le(t, r, a))),
    Mutant("sub: CF by <= instead of <", "sub", _flag("CF", lambda t, r, a, b: _le(t, a, b))),
    Mutant("cmp: CF by signed <", "cmp", _flag("CF", lambda t, r, a, b: t.slt(a, b))),
    Mutant("add: OF as of sub", "add", _flag("OF", lambda t, r, a, b: t.sign(t.and_(t.xor(a, b), t.xor(a, r))))),
    Mutant("sub: OF as of add", "sub", _flag("OF", lambda t, r, a, b: t.sign(t.and_(t.xor(a, r), t.xor(b, r))))),
    Mutant("add: AF from bit 3", "add", _flag("AF", lambda t, r, a, b: t.bit(t.xor(t.xor(a, b), r), 3))),
    Mutant("sub: AF from bit 5", "sub", _flag("AF", lambda t, r, a, b: t.bit(t.xor(t.xor(a, b), r), 5))),
    Mutant("adc: without carry", "adc", _in_table(lambda f: lambda t, a, b, cf: f(t, a, b, t.const(0, 1)))),
    Mutant("sbb: without borrow", "sbb", _in_table(lambda f: lambda t, a, b, cf: f(t, a, b, t.const(0, 1)))),
    Mutant("adc: CF forgets the wrap by the carry", "adc", _flag("CF", lambda t, r, a, b, cf: t.ult(r, a))),
    Mutant("sbb: CF forgets the borrow", "sbb", _flag("CF", lambda t, r, a, b, cf: t.ult(a, b))),
    Mutant("sbb: operands exchanged", "sbb", _in_table(lambda f: lambda t, a, b, cf: f(t, b, a, cf))),
    Mutant("inc: writes CF", "inc", _flag("CF", lambda t, r, a: t.is_zero(r))),
    Mutant("dec: adds", "dec", _instead(arith.inc)),
    Mutant("inc: OF never set", "inc", _flag("OF", lambda t, r, a: t.const(0, 1))),
    Mutant("neg: CF inverted", "neg", _flag("CF", lambda t, r, a: t.is_zero(a))),
    Mutant("neg: OF as SF", "neg", _flag("OF", lambda t, r, a: t.sign(r))),
    Mutant("neg: AF never set", "neg", _flag("AF", lambda t, r, a: t.const(0, 1))),
    Mutant("not: negates", "not", _result(lambda t, r, a: t.neg(a))),
    Mutant("mul: signed high half", "mul", _result(_high_signed)),
    Mutant("imul: unsigned high half", "imul", _patched(arith, "_signed_halves", lambda t, a, b: (*arith._unsigned_halves(t, a, b), t.const(0, 1)))),
    Mutant("mul: halves exchanged", "mul", _in_table(lambda f: lambda t, s, a: Effect(f(t, s, a).results[::-1], f(t, s, a).flags))),
    Mutant("mul: CF never set", "mul", _flag("CF", lambda t, r, s, a: t.const(0, 1))),
    Mutant("imul: CF inverted", "imul", _flag("CF", lambda t, r, a, b: t.eq(t.sext(arith._signed_halves(t, a, b)[1], 2 * a.bv_width()), t.mul(t.sext(a, 2 * a.bv_width()), t.sext(b, 2 * b.bv_width()))))),
    Mutant("imul: OF from the high half's sign", "imul", _flag("OF", lambda t, r, a, b: t.sign(arith._signed_halves(t, a, b)[0]))),
    Mutant("and: OF kept from the sign", "and", _flag("OF", lambda t, r, a, b: t.sign(r))),
    Mutant("or: CF set", "or", _flag("CF", lambda t, r, a, b: t.const(1, 1))),
    Mutant("test: ZF inverted", "test", _flag("ZF", lambda t, r, a, b: t.not_(t.is_zero(t.and_(a, b))))),
    Mutant("xor: as or", "xor", _instead(bitwise.or_)),
    Mutant("parity inverted", "add and", _patched(Terms, "parity", lambda self, a: self.not_(_PARITY(self, a)))),
    Mutant("parity of the whole result", "add and", _patched(Terms, "parity", _long_parity)),
    Mutant("parity without bit 7", "add", _patched(Terms, "parity", lambda self, a: _PARITY(self, self.and_(a, self.const(0x7F, a.bv_width()))))),
    Mutant("SF from the bit below the sign", "sub", _patched(arith, "result_flags", _sign_one_below)),
    Mutant("ZF of the low byte", "sub", _patched(arith, "result_flags", _flags_of_low_byte)),
    Mutant("shift count masked to 6 bits", "shl shr", _patched(shift, "_masked", _masked_to(63))),
    Mutant("shift count masked to 5 bits", "sar rol", _patched(shift, "_masked", _masked_to(31))),
    Mutant("shl: count 0 clobbers flags", "shl", _outputs(lambda t, name, o: replace(o, written=None))),
    Mutant("rol: count 0 clobbers flags", "rol", _outputs(lambda t, name, o: replace(o, written=None))),
    Mutant("sar: as shr", "sar", _instead(shift.shr)),
    Mutant("shr: as sar", "shr", _instead(shift.sar)),
    Mutant("shr: OF never set", "shr", _flag("OF", lambda t, r, a, n: t.const(0, 1))),
    Mutant("shl: CF from the sign", "shl", _flag("CF", lambda t, r, a, n: t.sign(a))),
    Mutant("sar: CF one bit late", "sar", _flag("CF", lambda t, r, a, n: t.bit(r, 0))),
    Mutant("shl: OF defined for every count", "shl", _outputs(lambda t, name, o: replace(o, defined=None) if name == "OF" else o)),
    Mutant("rol: one too far", "rol", _in_table(lambda f: lambda t, a, n: f(t, a, t.add(n, t.const(1, 8))))),
    Mutant("ror: as rol", "ror", _instead(shift.rol)),
    Mutant("rol: CF from the sign", "rol", _flag("CF", lambda t, r, a, n: t.sign(r))),
    Mutant("ror: OF as of rol", "ror", _flag("OF", lambda t, r, a, n: t.xor(t.sign(r), t.bit(r, 0)))),
    Mutant("rol: full turn keeps CF", "rol", _in_table(_turning)),
    Mutant("rol: writes ZF", "rol", _flag("ZF", lambda t, r, a, n: t.is_zero(r))),
    Mutant("shld: as shrd", "shld", _instead(shift.shrd)),
    Mutant("shld: fills with its own bits", "shld", _in_table(lambda f: lambda t, a, b, n: f(t, a, a, n))),
    Mutant("shrd: CF from the low bit", "shrd", _flag("CF", lambda t, r, a, b, n: t.bit(a, 0))),
    Mutant("shrd: fills with zeros", "shrd", _in_table(lambda f: lambda t, a, b, n: f(t, a, t.const(0, a.bv_width()), n))),
    Mutant("bt: offset not taken modulo the width", "bt", _patched(bitwise, "_index", _unmasked_index)),
    Mutant("bt: CF inverted", "bt", _flag("CF", lambda t, r, a, i: t.not_(t.bit(t.lshr(a, bitwise._index(t, a.bv_width(), i)), 0)))),
    Mutant("bt: writes ZF", "bt", _flag("ZF", lambda t, r, a, i: t.is_zero(a))),
    Mutant("bts: as btr", "bts", _instead(bitwise.btr)),
    Mutant("btc: as bts", "btc", _instead(bitwise.bts)),
    Mutant("bsf: index of the highest bit", "bsf", _instead(bitwise.bsr)),
    Mutant("bsr: counts from the top", "bsr", _result(lambda t, r, s: t.sub(t.const(s.bv_width() - 1, s.bv_width()), r))),
    Mutant("bsf: 0 clobbers the destination", "bsf", _in_table(_scan_clobbering)),
    Mutant("bsr: ZF from the result", "bsr", _flag("ZF", lambda t, r, s: t.is_zero(r))),
    Mutant("bswap: halves only", "bswap", _result(lambda t, r, a: t.concat(t.extract(a, a.bv_width() // 2 - 1, 0), t.extract(a, a.bv_width() - 1, a.bv_width() // 2)))),
    Mutant("movsx: as movzx", "movsx movsxd cdqe cbw", _result(lambda t, r, s: t.zext(s, r.bv_width()))),
    Mutant("movzx: as movsx", "movzx", _result(lambda t, r, s: t.sext(s, r.bv_width()))),
    Mutant("cdq: clears", "cdq cqo", _result(lambda t, r, a: t.const(0, r.bv_width()))),
    Mutant("xchg: second operand stays", "xchg", _result(lambda t, r, a, b: b, 1)),
    Mutant("xchg: nothing moves", "xchg", _in_table(lambda f: lambda t, a, b: Effect(f(t, b, a).results))),
    Mutant("setcc: inverted", "sete setl seta", _result(lambda t, r, *flags: t.xor(r, t.const(1, 8)))),
    Mutant("setcc: all ones", "setb", _result(lambda t, r, cf: t.sext(cf, 8))),
    Mutant("setl: sign only", "setl", _instead(control.setcc(lambda t, sf, of: sf))),
    Mutant("setbe: without zero", "setbe", _instead(control.setcc(lambda t, cf, zf: cf))),
    Mutant("cmov: inverted", "cmove cmovl", _in_table(lambda f: lambda t, a, b, *flags: f(t, b, a, *flags))),
    Mutant("cmovle: and for or", "cmovle", _instead(move.cmov(lambda t, zf, sf, of: t.and_(zf, t.xor(sf, of))))),
    Mutant("cmov r32: keeps the upper half where false", "cmove", _instead(_cmov_keeping_the_upper_half)),
    Mutant("cmc: sets", "cmc", _instead(lambda t, cf: control.stc(t))),
    Mutant("clc: sets", "clc", _instead(control.stc)),
    Mutant("lea: scale dropped", "lea", _patched(symbolic, "_address", _address_without_scale)),
    Mutant("lea: displacement dropped", "lea", _patched(symbolic, "_address", _address_without_displacement)),
    Mutant("popcnt: one bit missing", "popcnt", _in_table(lambda f: lambda t, s: f(t, t.and_(s, t.const(-2, s.bv_width()))))),
    Mutant("popcnt: ZF never set", "popcnt", _flag("ZF", lambda t, r, s: t.const(0, 1))),
    Mutant("popcnt: CF as ZF", "popcnt", _flag("CF", lambda t, r, s: t.is_zero(s))),
    Mutant("lzcnt: as tzcnt", "lzcnt", _instead(bits.tzcnt)),
    Mutant("tzcnt: 0 gives the highest index", "tzcnt", _result(lambda t, r, s: bitwise.lowest_bit(t, s))),
    Mutant("lzcnt: CF as ZF", "lzcnt", _flag("CF", lambda t, r, s: t.is_zero(r))),
    Mutant("tzcnt: ZF of the source", "tzcnt", _flag("ZF", lambda t, r, s: t.is_zero(s))),
    Mutant("andn: inverts the second operand", "andn", _in_table(lambda f: lambda t, a, b: f(t, b, a))),
    Mutant("andn: SF never set", "andn", _flag("SF", lambda t, r, a, b: t.const(0, 1))),
    Mutant("andn: CF of the sign", "andn", _flag("CF", lambda t, r, a, b: t.sign(r))),
    Mutant("blsi: as blsr", "blsi", _result(lambda t, r, s: bits.blsr(t, s).results[0].value)),
    Mutant("blsi: ZF inverted", "blsi", _flag("ZF", lambda t, r, s: t.not_(t.is_zero(r)))),
    Mutant("blsr: as blsmsk", "blsr", _result(lambda t, r, s: bits.blsmsk(t, s).results[0].value)),
    Mutant("blsr: CF inverted", "blsr", _flag("CF", lambda t, r, s: t.not_(t.is_zero(s)))),
    Mutant("blsr: OF of the sign", "blsr", _flag("OF", lambda t, r, s: t.sign(s))),
    Mutant("blsmsk: without the lowest 1", "blsmsk", _result(lambda t, r, s: t.lshr(r, t.const(1, r.bv_width())))),
    Mutant("blsmsk: ZF of the source", "blsmsk", _flag("ZF", lambda t, r, s: t.is_zero(s))),
    Mutant("blsmsk: CF never set", "blsmsk", _flag("CF", lambda t, r, s: t.const(0, 1))),
    Mutant("pdep: as pext", "pdep", _instead(bits.pext)),
    Mutant("pext: as pdep", "pext", _instead(bits.pdep)),
    Mutant("shlx: count not masked", "shlx", _instead(lambda t, a, n: Effect((Output(t.shl(a, n)),)))),
    Mutant("shrx: as sarx", "shrx", _instead(shift.sarx)),
    Mutant("sarx: as shrx", "sarx", _instead(shift.shrx)),
    Mutant("rorx: turns left", "rorx", _instead(lambda t, a, n: Effect((Output(shift._rotated_left(t, a, shift._turns(t, a, n))),)))),
    Mutant("mulx: halves exchanged", "mulx", _in_table(lambda f: lambda t, s, d: Effect(f(t, s, d).results[::-1]))),
    Mutant("mulx: signed", "mulx", _result(lambda t, r, s, d: arith._signed_halves(t, d, s)[0])),
    Mutant("adcx: adds OF", "adcx", _in_table(lambda f: lambda t, a, b, cf: f(t, a, b, t.not_(cf)))),
    Mutant("adcx: CF forgets the wrap by the carry", "adcx", _flag("CF", lambda t, r, a, b, cf: t.ult(r, a))),
    Mutant("adox: OF of the signed sum", "adox", _flag("OF", lambda t, r, a, b, of: t.sign(t.and_(t.xor(a, r), t.xor(b, r))))),
    Mutant("adox: without carry", "adox", _result(lambda t, r, a, b, of: t.add(a, b))),
    Mutant("xadd: source stays", "xadd", _result(lambda t, r, a, b: b, 1)),
    Mutant("xadd: destination stays", "xadd", _result(lambda t, r, a, b: a)),
    Mutant("xadd: CF by <= instead of <", "xadd", _flag("CF", lambda t, r, a, b: _le(t, r, a))),
    Mutant("results written first to last", "xadd mulx", _patched(symbolic, "reversed", lambda pairs: pairs, missing=True)),
    Mutant("cmpxchg: exchanges always", "cmpxchg", _result(lambda t, r, a, b, c: b)),
    Mutant("cmpxchg: accumulator stays", "cmpxchg", _result(lambda t, r, a, b, c: c, 1)),
    Mutant("cmpxchg: flags of dst - acc", "cmpxchg", _flag("CF", lambda t, r, a, b, c: t.ult(a, c))),
    Mutant("32-bit writes keep the upper half", "mov add", _patched(symbolic._Writer, "register", _without_zero_extension)),
    Mutant("8- and 16-bit writes clear the rest", "mov add", _patched(symbolic, "_merged", lambda t, old, register, value: t.zext(value, 64))),
    Mutant("high byte read as low byte", "mov add", _patched(symbolic, "_read", _low_read)),
    Mutant("high byte written as low byte", "setb mov", _patched(symbolic, "_merged", _low_merge)),
]  # fmt: skip


def _is_caught(oracle, mnemonic):
    by_shape = {}
    for case in cases():
        if case.instruction.mnemonic == mnemonic:
            by_shape.setdefault(shape(case), []).append(case)
    rounds = zip_longest(*by_shape.values())  # one case of each shape first: most mistakes show early
    return any(compare(oracle, c, states_of(c, 1_000)) for c in chain(*rounds) if c is not None)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_mutant_is_caught(oracle, monkeypatch, mutant):
    """Each deliberate mistake makes terms and emulator differ, in every mnemonic that it spoils."""
    mnemonics = mutant.mnemonics.split()
    mutant.make(monkeypatch, mnemonics)
    assert [m for m in mnemonics if not _is_caught(oracle, m)] == []

"""Kernels compute what the terms say and what the emulator does, and are compiled once."""

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest
from asm import seq
from llvmlite import ir
from pysmt.environment import Environment

from ruledb.machine.canonical import rename
from ruledb.machine.codec import encode
from ruledb.machine.constant import Symbol
from ruledb.machine.registers import FLAGS, N_HARDWARE
from ruledb.machine.states import States, directed_states, poison
from ruledb.proof.replay import packed_flags, rflags_of
from ruledb.search import kernels
from ruledb.search.alphabet import DEEP_ROWS, ROWS, alphabet
from ruledb.search.evaluate import Evaluator
from ruledb.search.kernels import MAX_INPUTS, MAX_OUTPUTS, KernelLibrary, form_of
from ruledb.search.lowering import Lowering, UnsupportedTerm
from ruledb.search.states import UNIVERSES
from ruledb.semantics.symbolic import initial_state, run
from ruledb.semantics.terms import Terms

FAMILIES = UNIVERSES[4]
CONSTANTS = (29, -77, 5, 64)
ONES = (1 << 64) - 1


def letters():
    """One letter a form: every kernel that a search of any kind may ask for."""
    by_form = {form_of(x.instruction).instruction: x.instruction for x in alphabet(FAMILIES, (0, Symbol(0)), (*ROWS, *DEEP_ROWS))}
    return [by_form[key] for key in sorted(by_form, key=str)]


LETTERS = letters()


@pytest.fixture(scope="module")
def evaluator(library):
    """Kernels on the four registers of a search."""
    return Evaluator(library, FAMILIES)


def states(n, constant, fill=None):
    """Directed states with one value of the constant; undefined values are noise, or all *fill*."""
    made = directed_states(len(FAMILIES), (), n)
    noise = poison(n) if fill is None else np.full(n, fill, np.uint64)
    return States(made.registers, made.flags, np.full((1, n), constant & ONES, np.uint64), noise)


def by_terms(instruction, given, k):
    """Registers and flags after *instruction* on state *k*, by pySMT's own simplifier on the terms."""
    environment = Environment()
    t = Terms(environment)
    final = run(t, (instruction,), initial_state(t), is_pattern=False)

    def input_of(name, width):
        if name in FLAGS:
            return int(given.flags[k]) >> FLAGS.index(name) & 1
        if name == "c0":
            return int(given.constants[0, k])
        if name[0] == "r" and name[1:].isdigit():
            return int(given.registers[FAMILIES.index(int(name[1:])), k])
        return int(given.poison[k]) & ((1 << width) - 1)

    def value(term):
        free = environment.fvo.get_free_variables(term)
        inputs = {s: t.const(input_of(s.symbol_name(), s.bv_width()), s.bv_width()) for s in free}
        return environment.simplifier.simplify(environment.substituter.substitute(term, inputs)).constant_value()

    registers = {f: value(term) for f, term in final.registers.items()}
    return registers, {name: value(term) for name, term in final.flags.items()}


@pytest.mark.parametrize("instruction", LETTERS[::3], ids=str)
def test_kernels_agree_with_pysmt(evaluator, instruction):
    """What a kernel computes is what pySMT's simplifier makes of the same terms, undefined values included."""
    given = states(6, -77)
    registers, flags = evaluator.run((instruction,), given)
    for k in (1, 3, 5):
        expected, expected_flags = by_terms(instruction, given, k)
        assert {f: int(registers[FAMILIES.index(f), k]) for f in expected} == expected
        assert {name: int(flags[k]) >> FLAGS.index(name) & 1 for name in expected_flags} == expected_flags
        untouched = [i for i, f in enumerate(FAMILIES) if f not in expected]
        assert (registers[untouched, k] == given.registers[untouched, k]).all()


@pytest.mark.parametrize("constant", CONSTANTS)
def test_kernels_agree_with_the_emulator(evaluator, oracle, constant):
    """What a kernel computes is what the bytes do, where the manual defines it; undefined bits do follow the noise."""
    n = 24
    given = states(n, constant)
    rows = np.zeros((n, N_HARDWARE + 1), np.uint64)
    rows[:, list(FAMILIES)] = given.registers.T
    rows[:, N_HARDWARE] = rflags_of(given.flags)
    for instruction in LETTERS:
        (concrete,) = rename((instruction,), lambda r: r, lambda c: constant if isinstance(c, Symbol) else c)
        after = oracle.run(encode(concrete), rows)
        registers, flags = evaluator.run((instruction,), given)
        (low, low_flags), (high, high_flags) = (evaluator.run((instruction,), states(n, constant, fill)) for fill in (0, ONES))
        wrong = (after[:, list(FAMILIES)].T ^ registers) & ~(low ^ high)
        assert not wrong.any(), instruction
        assert not ((packed_flags(after) ^ flags) & ~(low_flags ^ high_flags)).any(), instruction


@pytest.mark.parametrize("constant", CONSTANTS[:2])
def test_pack_holds_the_low_halves_of_step(evaluator, constant):
    """The packed result is the low 32 bits of what `step` computes in either state."""
    n = 33
    given = states(2 * n, constant)
    pack = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (1 + 2 * MAX_INPUTS + 6 + MAX_OUTPUTS))
    for instruction in LETTERS:
        (bound,) = evaluator.bind((instruction,))
        if not bound.outputs:
            continue
        pair = [np.ascontiguousarray(given.registers[s, half]) for s in bound.inputs for half in (slice(n), slice(n, None))]
        flags = [np.ascontiguousarray(given.flags[half]) for half in (slice(n), slice(n, None))]
        packed = [np.empty(n, np.uint64) for _ in bound.outputs]
        value = constant if bound.constant else 0
        arguments = [a.ctypes.data for a in pair] + [0] * (2 * (MAX_INPUTS - len(bound.inputs))) + [f.ctypes.data for f in flags]
        arguments += [value, value, 0, 0] + [a.ctypes.data for a in packed] + [0] * (MAX_OUTPUTS - len(packed))
        pack(bound.kernel.pack)(n, *arguments)
        registers, _ = evaluator.run((instruction,), States(given.registers, given.flags, given.constants, np.zeros(2 * n, np.uint64)))
        for slot, both in zip(bound.outputs, packed, strict=True):
            low = np.uint64(0xFFFFFFFF)
            assert (both == (registers[slot, :n] & low | registers[slot, n:] << np.uint64(32))).all(), instruction


def test_forms_are_shared():
    """Instructions that differ in registers and constants have one form; equal registers and a constant 0 have another."""
    one, other = (form_of(seq(text)[0]) for text in ("add ebx, 5", "add esi, -1"))
    assert one.instruction == other.instruction
    assert (one.binding, other.binding) != ((), ())
    assert form_of(seq("add eax, ebx")[0]).instruction != form_of(seq("add eax, eax")[0]).instruction
    assert form_of(seq("shl eax, 1")[0]).instruction == form_of(seq("shl eax, 9")[0]).instruction
    assert form_of(seq("cmp eax, 0")[0]).instruction != form_of(seq("cmp eax, 9")[0]).instruction


def _refuse(*_):
    raise AssertionError("compiled")


def test_a_second_library_compiles_nothing(tmp_path, monkeypatch):
    """Objects on disk serve every later library, with the facts beside them."""
    forms = [form_of(i) for i in seq("add ebx, 5; sete bl; shl rbx, cl; xchg eax, ebx")]
    first = KernelLibrary(tmp_path)
    expected = first.kernels(forms)
    monkeypatch.setattr(KernelLibrary, "_object", _refuse)
    found = KernelLibrary(tmp_path).kernels(forms)
    facts = [(k.inputs, k.outputs, k.reads_flags, k.writes_flags) for k in expected]
    assert [(k.inputs, k.outputs, k.reads_flags, k.writes_flags) for k in found] == facts
    assert first.kernels(forms) == expected


def test_a_changed_meaning_is_compiled_anew(tmp_path, monkeypatch):
    """Objects are kept by a digest of sources, versions and host."""
    form = form_of(seq("inc ebx")[0])
    KernelLibrary(tmp_path).kernels([form])
    monkeypatch.setattr(kernels, "_code_digest", lambda: "0" * 64)
    monkeypatch.setattr(KernelLibrary, "_object", _refuse)
    with pytest.raises(AssertionError, match="compiled"):
        KernelLibrary(tmp_path).kernels([form])


def _operators(t):
    """A term for each operator that kernels compile, over a and b of each width, and what Python makes of it."""
    m = t.manager
    for width in (8, 64):
        a, b = t.symbol(f"a{width}", width), t.symbol(f"b{width}", width)
        yield m.BVAdd(a, b)
        yield m.BVSub(a, b)
        yield m.BVMul(a, b)
        yield m.BVAnd(a, b)
        yield m.BVOr(a, b)
        yield m.BVXor(a, b)
        yield m.BVNot(a)
        yield m.BVNeg(a)
        yield m.BVLShl(a, b)
        yield m.BVLShr(a, b)
        yield m.BVAShr(a, b)
        yield m.BVConcat(m.BVExtract(a, 0, 3), m.BVExtract(b, 4, 7))
        yield m.BVZExt(m.BVExtract(a, 2, 5), 8)
        yield m.BVSExt(m.BVExtract(a, 2, 5), 8)
        for compare in (m.BVULT, m.BVULE, m.BVSLT, m.BVSLE, m.Equals):
            yield m.Ite(compare(a, b), m.BV(1, 8), m.BV(0, 8))
        yield m.BVComp(a, b)
        yield m.Ite(m.Or(m.Not(m.Equals(a, b)), m.And(m.BVULT(a, b), m.Iff(m.BVSLT(a, b), m.TRUE()))), a, b)


def test_every_operator_is_lowered_as_pysmt_has_it():
    """Each operator, shifts by the width and more included, computes what pySMT's simplifier does, on pairs of edge values."""
    environment = Environment()
    t = Terms(environment)
    terms = list(_operators(t))
    word = ir.IntType(64)
    module = ir.Module("operators")
    for i, term in enumerate(terms):
        function = ir.Function(module, ir.FunctionType(word, [word, word]), f"f{i}")
        b = ir.IRBuilder(function.append_basic_block())

        def symbol(name, width, b=b, args=function.args):
            value = args["ab".index(name[0])]
            return value if width == 64 else b.trunc(value, ir.IntType(width))

        value = Lowering(b, symbol).lower(term)
        b.ret(value if value.type == word else b.zext(value, word))
    KernelLibrary()  # sets LLVM up for this machine
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), machine)
    engine.finalize_object()
    for i, term in enumerate(terms):
        function = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)(engine.get_function_address(f"f{i}"))
        free = sorted(environment.fvo.get_free_variables(term), key=str)
        for one in (0, 1, 7, 8, 63, 64, 0x80, 0xFF, 1 << 63, ONES, 0x5A):
            for other in (0, 1, 7, 8, 63, 64, 0x7F, 0x80, 0xFF, 1 << 63, ONES):
                values = dict(zip("ab", (one, other), strict=True))
                inputs = {s: t.const(values[s.symbol_name()[0]], s.bv_width()) for s in free}
                expected = environment.simplifier.simplify(environment.substituter.substitute(term, inputs)).constant_value()
                assert function(one, other) == expected, (term, one, other)


@pytest.mark.parametrize("name", ["BVUDiv", "BVURem", "BVSDiv", "BVRol"])
def test_an_operator_that_has_no_lowering_raises(name):
    """What kernels cannot compute is refused by name, never guessed."""
    environment = Environment()
    t = Terms(environment)
    m = environment.formula_manager
    a = t.symbol("a", 8)
    term = getattr(m, name)(a, 1 if name == "BVRol" else a)
    function = ir.Function(ir.Module("m"), ir.FunctionType(ir.VoidType(), []), "f")
    lowering = Lowering(ir.IRBuilder(function.append_basic_block()), lambda _, width: ir.IntType(width)(0))
    with pytest.raises(UnsupportedTerm, match="expected one that kernels can compile"):
        lowering.lower(term)

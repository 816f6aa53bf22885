"""The Bitwuzla back end of pySMT: every operator means what z3 and pySMT's simplifier say."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pysmt.exceptions import ConvertExpressionError, PysmtException
from pysmt.logics import QF_BV
from pysmt.typing import INT, ArrayType, BVType

from ruledb.proof.bitwuzla_solver import _KINDS
from ruledb.proof.solvers import Sat, Unknown, Unsat, ask, new_environment

WIDTH = 8
ENVIRONMENT = new_environment()
M = ENVIRONMENT.formula_manager
LEAVES = [M.Symbol(name, BVType(WIDTH)) for name in "abc"] + [M.BV(v, WIDTH) for v in (0, 1, 7, 8, 0x80, 0xFF)]
BINARY = ["BVAdd", "BVSub", "BVMul", "BVAnd", "BVOr", "BVXor", "BVLShl", "BVLShr", "BVAShr", "BVUDiv", "BVURem", "BVSDiv", "BVSRem"]
UNARY = ["BVNot", "BVNeg"]
COMPARE = ["BVULT", "BVULE", "BVSLT", "BVSLE", "Equals"]
PAIR = st.tuples


def _grown(inner):
    return st.one_of(
        st.builds(lambda name, a, b: getattr(M, name)(a, b), st.sampled_from(BINARY), inner, inner),
        st.builds(lambda name, a: getattr(M, name)(a), st.sampled_from(UNARY), inner),
        st.builds(lambda name, a, b, c, d: M.Ite(getattr(M, name)(a, b), c, d), st.sampled_from(COMPARE), inner, inner, inner, inner),
        st.builds(lambda a, b: M.BVConcat(M.BVExtract(a, 0, 2), M.BVExtract(b, 3, 7)), inner, inner),
        st.builds(lambda a, n: M.BVZExt(M.BVExtract(a, 0, n), WIDTH - 1 - n), inner, st.integers(0, WIDTH - 2)),
        st.builds(lambda a, n: M.BVSExt(M.BVExtract(a, 0, n), WIDTH - 1 - n), inner, st.integers(0, WIDTH - 2)),
        st.builds(lambda a, b: M.BVZExt(M.BVComp(a, b), WIDTH - 1), inner, inner),
    )


TERMS = st.recursive(st.sampled_from(LEAVES), _grown, max_leaves=6)


def _formulas(a, b):
    return M.And(M.Or(M.Not(M.Equals(a, b)), M.Iff(M.BVULT(a, b), M.TRUE())), M.Implies(M.BVSLT(b, a), M.Not(M.FALSE())))


@settings(max_examples=120)
@given(TERMS, TERMS)
def test_bitwuzla_agrees_with_z3(one, other):
    """Both solvers answer alike on random formulas of all operators, and a model satisfies its formula."""
    symbols = LEAVES[:3]
    for formula in (M.Not(M.Equals(one, other)), _formulas(one, other)):
        answers = [ask(ENVIRONMENT, formula, symbols, name, 20000) for name in ("bitwuzla", "z3")]
        assert type(answers[0]) is type(answers[1])
        for answer in answers:
            if isinstance(answer, Sat):
                values = {s: M.BV(v, WIDTH) for s, v in zip(symbols, answer.values, strict=True)}
                substituted = ENVIRONMENT.substituter.substitute(formula, values)
                assert ENVIRONMENT.simplifier.simplify(substituted).is_true()


@settings(max_examples=60)
@given(TERMS, st.tuples(*[st.integers(0, 255)] * 3))
def test_values_are_those_of_the_simplifier(term, values):
    """Under an assignment a term's value is what pySMT's simplifier computes; division by zero is SMT-LIB's."""
    symbols = LEAVES[:3]
    fixed = M.And([M.Equals(s, M.BV(v, WIDTH)) for s, v in zip(symbols, values, strict=True)])
    by_z3, by_bitwuzla = (ask(ENVIRONMENT, fixed, [term], name, 20000).values for name in ("z3", "bitwuzla"))
    assert by_z3 == by_bitwuzla
    simplified = ENVIRONMENT.simplifier.simplify(
        ENVIRONMENT.substituter.substitute(term, {s: M.BV(v, WIDTH) for s, v in zip(symbols, values, strict=True)})
    )
    if simplified.is_bv_constant():
        assert (simplified.constant_value(),) == by_bitwuzla


def test_arrays_convert():
    """Reading what was just written gives the value; another place keeps its own."""
    types = ArrayType(BVType(4), BVType(8))
    memory, i, j = M.Symbol("memory", types), M.Symbol("i", BVType(4)), M.Symbol("j", BVType(4))
    stored = M.Store(memory, i, M.BV(5, 8))
    assert isinstance(ask(ENVIRONMENT, M.Not(M.Equals(M.Select(stored, i), M.BV(5, 8))), [], "bitwuzla", 1000), Unsat)
    assert isinstance(ask(ENVIRONMENT, M.Not(M.Equals(M.Select(stored, j), M.BV(5, 8))), [], "bitwuzla", 1000), Sat)


def test_what_does_not_convert_raises():
    """Integers are refused, never guessed; asked in a query they leave it open, and the next query is answered."""
    integer = M.Symbol("n", INT)
    with ENVIRONMENT.factory.Solver(name="bitwuzla", logic=QF_BV) as solver, pytest.raises((ConvertExpressionError, PysmtException)):
        solver.converter.convert(M.Equals(integer, M.Int(3)))
    answer = ask(ENVIRONMENT, M.Equals(integer, M.Int(3)), [], "bitwuzla", 1000)
    assert isinstance(answer, Unknown)
    assert answer.reason.startswith("error")
    assert isinstance(ask(ENVIRONMENT, M.Equals(LEAVES[0], LEAVES[1]), [], "bitwuzla", 1000), Sat)


def test_assertions_can_be_taken_back():
    """A level that is popped counts no more, and assumptions count once."""
    a = LEAVES[0]
    with ENVIRONMENT.factory.Solver(name="bitwuzla", logic=QF_BV) as solver:
        solver.add_assertion(M.BVULT(a, M.BV(3, 8)))
        assert solver.solve()
        solver.push()
        solver.add_assertion(M.BVULT(M.BV(5, 8), a))
        assert not solver.solve()
        solver.pop()
        assert solver.solve()
        assert not solver.solve([M.Equals(a, M.BV(9, 8))])
        assert solver.solve()
        assert solver.get_value(M.BVULT(a, M.BV(3, 8))).is_true()


def test_every_operator_of_the_table_is_tried():
    """The random terms use every operator that converts, arrays and booleans included."""
    from pysmt import operators as op

    built = [getattr(M, name)(LEAVES[0], LEAVES[1]) for name in (*BINARY, *COMPARE)] + [getattr(M, name)(LEAVES[0]) for name in UNARY]
    kinds = {t.node_type() for t in built} | {op.AND, op.OR, op.NOT, op.IMPLIES, op.IFF, op.ITE, op.BV_CONCAT, op.BV_COMP}
    assert kinds | {op.ARRAY_SELECT, op.ARRAY_STORE} >= set(_KINDS)

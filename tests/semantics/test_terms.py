"""The term builder: every fold is an identity, and only known operators appear."""

from hypothesis import given, settings
from hypothesis import strategies as st
from pysmt import operators as op
from pysmt.environment import Environment

from ruledb.machine.instruction import parse_instruction
from ruledb.semantics.symbolic import initial_state, run
from ruledb.semantics.terms import Terms

_OPERATORS = {
    op.BV_CONSTANT, op.SYMBOL, op.BV_ADD, op.BV_SUB, op.BV_MUL, op.BV_NEG, op.BV_NOT, op.BV_AND, op.BV_OR, op.BV_XOR, op.BV_LSHL, op.BV_LSHR,
    op.BV_ASHR, op.BV_CONCAT, op.BV_EXTRACT, op.BV_ZEXT, op.BV_SEXT, op.BV_ULT, op.BV_ULE, op.BV_SLT, op.BV_SLE, op.EQUALS, op.BV_COMP, op.ITE,
    op.AND, op.OR, op.NOT,
}  # fmt: skip
_W = 8
_M = (1 << _W) - 1


def _signed(a):
    return a - (a >> (_W - 1) << _W)


_BINARY = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "and_": lambda a, b: a & b, "or_": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b, "shl": lambda a, b: a << b, "lshr": lambda a, b: a >> b, "ashr": lambda a, b: _signed(a) >> b,
}  # fmt: skip
_COMPARISONS = {"eq": lambda a, b: a == b, "ult": lambda a, b: a < b, "slt": lambda a, b: _signed(a) < _signed(b)}
_EDGES = st.one_of(st.sampled_from([0, 1, 2, 7, 8, 9, 127, 128, 254, 255]), st.integers(0, _M))


def _value(t, term, a, b):
    values = {t.symbol("a", _W): t.const(a, _W), t.symbol("b", _W): t.const(b, _W)}
    environment = t.manager.env  # a node's own simplify() would mix in pySMT's global environment, with wrong results
    return environment.simplifier.simplify(environment.substituter.substitute(term, values)).constant_value()


@st.composite
def _expressions(draw, depth=4):
    """A function that builds an 8-bit term, and one that computes its value."""
    kind = draw(
        st.sampled_from(["symbol", "constant"] if depth == 0 else ["symbol", "constant", "binary", "not_", "neg", "slice", "sign", "ite"])
    )
    if kind == "symbol":
        name = draw(st.sampled_from("ab"))
        return (lambda t: t.symbol(name, _W)), (lambda a, b: a if name == "a" else b)
    if kind == "constant":
        number = draw(_EDGES)
        return (lambda t: t.const(number, _W)), (lambda *_: number)
    build, compute = draw(_expressions(depth - 1))
    if kind == "not_":
        return (lambda t: t.not_(build(t))), (lambda a, b: ~compute(a, b) & _M)
    if kind == "neg":
        return (lambda t: t.neg(build(t))), (lambda a, b: -compute(a, b) & _M)
    build2, compute2 = draw(_expressions(depth - 1))
    if kind == "binary":
        name = draw(st.sampled_from(sorted(_BINARY)))
        return (lambda t: getattr(t, name)(build(t), build2(t))), (lambda a, b: _BINARY[name](compute(a, b), compute2(a, b)) & _M)
    low = draw(st.integers(0, _W))
    if kind == "slice":
        return (lambda t: t.extract(t.concat(build(t), build2(t)), low + _W - 1, low)), (
            lambda a, b: (compute(a, b) << _W | compute2(a, b)) >> low & _M
        )
    if kind == "sign":
        top, is_signed = draw(st.integers(0, _W - 1)), draw(st.booleans())

        def extended(t):
            part = t.extract(build(t), top, 0)
            whole = (t.sext if is_signed else t.zext)((t.sext if is_signed else t.zext)(part, _W + 4), 2 * _W)
            return t.extract(whole, low + _W - 1, low)

        def number_of(a, b):
            part = compute(a, b) & (1 << (top + 1)) - 1
            return (part - (part >> top << (top + 1)) if is_signed else part) >> low & _M

        return extended, number_of
    name = draw(st.sampled_from(sorted(_COMPARISONS)))
    build3, compute3 = draw(_expressions(depth - 1))

    def chosen(t):
        condition = getattr(t, name)(build(t), build2(t))
        return t.ite(t.not_(condition) if low & 1 else condition, build2(t), build3(t))

    return chosen, (lambda a, b: compute2(a, b) if _COMPARISONS[name](compute(a, b), compute2(a, b)) != bool(low & 1) else compute3(a, b))


@settings(max_examples=400, deadline=None)
@given(_expressions(), _EDGES, _EDGES)
def test_built_terms_have_the_value_of_their_operations(expression, a, b):
    """Whatever the builder folds, the term has the value that the operations have on numbers."""
    t = Terms(Environment())
    build, compute = expression
    term = build(t)
    assert term.bv_width() == _W
    assert _value(t, term, a, b) == compute(a, b)


@given(_EDGES)
def test_parity_is_even(a):
    """Parity is 1 where the low byte has an even number of ones."""
    t = Terms(Environment())
    assert _value(t, t.parity(t.symbol("a", _W)), a, 0) == (a.bit_count() % 2 == 0)


@given(_EDGES, _EDGES)
def test_comparisons_are_one_bit(a, b):
    """Comparisons are 1-bit terms with the value of the comparison, on symbols and on constants."""
    t = Terms(Environment())
    for name, compute in _COMPARISONS.items():
        for right in (t.symbol("b", _W), t.const(b, _W)):
            assert _value(t, getattr(t, name)(t.symbol("a", _W), right), a, b) == compute(a, b)
            assert _value(t, getattr(t, name)(t.const(a, _W), right), a, b) == compute(a, b)
        same = getattr(t, name)(t.symbol("a", _W), t.symbol("a", _W))
        assert same is t.const(int(name == "eq"), 1)


def test_one_bit_choices_fold():
    """A choice between the constants 1 and 0 is the condition itself, or its negation."""
    t = Terms(Environment())
    c, one, zero = t.symbol("c", 1), t.const(1, 1), t.const(0, 1)
    assert t.ite(c, one, zero) is c
    assert t.ite(c, zero, one) is t.not_(c)
    assert t.ite(one, c, zero) is t.ite(zero, one, c) is c
    assert t.eq(c, one) is c
    assert t.eq(c, zero) is t.not_(c)


def test_builder_takes_an_environment_or_its_manager():
    """An environment and its formula manager give the same nodes."""
    environment = Environment()
    assert Terms(environment).symbol("a", 8) is Terms(environment.formula_manager).symbol("a", 8)


def test_only_listed_operators_appear():
    """The terms of every form use the operators that its readers know, and no others."""
    t = Terms(Environment())
    texts = (
        "add al,bl;adc eax,ebx;sbb rax,c0;imul rax,rbx;mul rbx;imul bl;shl al,cl;sar rax,cl;ror ax,cl;shld ax,bx,cl;bsf rax,rbx;bsr ax,bx"
    )
    texts += ";btc rax,rbx;bswap rax;cmovle eax,ebx;setbe ah;neg ax;cqo;movsx eax,bl;lea ax,[rbx+rcx*4+c0];mov rax,c0;and ax,bx;cmc"
    seen, stack = set(), []
    for text in texts.split(";"):
        state = run(t, [parse_instruction(text)], initial_state(t), is_pattern=False)
        stack += [*state.registers.values(), *state.flags.values(), *state.defined.values()]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += node.args()
    assert {node.node_type() for node in seen} <= _OPERATORS

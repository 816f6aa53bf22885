"""
Equivalence queries: is there a state, a choice of undefined values and of constants on which the two sides differ?

Two encodings, built in different ways, for two solvers:

* ``functional``: both sides composed into terms over the inputs; the formula compares terms;
* ``relational``: every intermediate register and flag is a variable of its own, bound by one equation a step.

A location that the pattern leaves undefined may take any value in the replacement. Undefined values of either
side are free variables, so that nothing can depend on them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO

from pysmt.environment import Environment
from pysmt.fnode import FNode
from pysmt.logics import QF_BV
from pysmt.smtlib.script import smtlibscript_from_formula

from ruledb.machine.canonical import domains, families_in, text_digest
from ruledb.machine.instruction import Instruction
from ruledb.machine.registers import FLAG_BIT, FLAGS, N_LANES, family_mask, lane_bits
from ruledb.semantics.symbolic import State, flag_term, register_term, run
from ruledb.semantics.terms import Terms

__all__ = ["ENCODINGS", "Query", "build", "query_digest", "query_text"]


@dataclass(frozen=True, slots=True)
class Query:
    """
    *differs*: satisfiable iff some location of the mask differs. *by_location*: the same for single lanes and flags.
    *always*: what holds of every state and constant that counts. *defined*: mask of what the pattern always defines.
    """

    environment: Environment
    always: FNode
    by_location: dict[int, FNode]
    symbols: tuple[FNode, ...]
    defined: int

    def differs(self, mask: int) -> FNode:
        """The formula: some location of *mask* differs."""
        m = self.environment.formula_manager
        return m.And(self.always, m.Or([f for bit, f in self.by_location.items() if mask & bit]))


def _limits(t: Terms, pattern: Sequence[Instruction]) -> list[FNode]:
    """Each constant symbol is a sign-extended value of its domain."""
    m = t.manager
    return [
        m.Equals(c, t.sext(t.extract(c, bits - 1, 0), 64))
        for i, bits in enumerate(domains(pattern))
        if bits < 64
        for c in (t.symbol(f"c{i}", 64),)
    ]


def _functional(t: Terms, side: Sequence[Instruction], name: str, *, is_pattern: bool) -> tuple[State, list[FNode]]:
    return run(t, side, State(), side=name, is_pattern=is_pattern), []


def _relational(t: Terms, side: Sequence[Instruction], name: str, *, is_pattern: bool) -> tuple[State, list[FNode]]:
    """One variable for each location that a step changes, and the equations that bind them."""
    m, state, equations = t.manager, State(), []
    for number, instruction in enumerate(side):
        after = run(t, (instruction,), state, side=name, is_pattern=is_pattern)

        def named(kind: str, key: int | str, term: FNode, before: FNode | None, step: int = number) -> FNode:
            if term is before:
                return term
            variable = t.symbol(f"{name}!{kind}{key}@{step}", term.bv_width())
            equations.append(m.Equals(variable, term))
            return variable

        state = State(
            {f: named("r", f, v, state.registers.get(f)) for f, v in after.registers.items()},
            {f: named("f", f, v, state.flags.get(f)) for f, v in after.flags.items()},
            {k: named("d", k, v, state.defined.get(k)) for k, v in after.defined.items()},
            after.n_undefined,
        )
    return state, equations


ENCODINGS: dict[str, Callable[..., tuple[State, list[FNode]]]] = {"functional": _functional, "relational": _relational}
"""Name → how the state after one side is built."""


def build(environment: Environment, pattern: Sequence[Instruction], replacement: Sequence[Instruction], encoding: str) -> Query:
    """
    The query of whether *replacement* may stand for *pattern*, over every lane of the touched families and every flag.

    Raises:
        UnmodelledForm: An instruction has no semantics.

    """
    t = Terms(environment)
    m = environment.formula_manager
    left, left_equations = ENCODINGS[encoding](t, pattern, "left", is_pattern=True)
    right, right_equations = ENCODINGS[encoding](t, replacement, "right", is_pattern=False)
    by_location: dict[int, FNode] = {}

    def compare(bit: int, key: int | str, a: FNode, b: FNode) -> None:
        if a is b:
            by_location[bit] = m.FALSE()
            return
        unequal = m.Not(m.Equals(a, b))
        defined = left.defined.get(key)
        by_location[bit] = unequal if defined is None else m.And(m.Equals(defined, t.const(1, 1)), unequal)

    for family in sorted(families_in(pattern) | families_in(replacement)):
        a, b = register_term(t, left, family), register_term(t, right, family)
        for lane, (low, n) in enumerate(lane_bits):
            compare(1 << (N_LANES * family + lane), family, t.extract(a, low + n - 1, low), t.extract(b, low + n - 1, low))
    for name in FLAGS:
        compare(FLAG_BIT[name], name, flag_term(t, left, name), flag_term(t, right, name))
    always = m.And([*_limits(t, pattern), *left_equations, *right_equations])
    free = environment.fvo.get_free_variables(m.And(always, *by_location.values()))
    inputs = sorted((s for s in free if "!" not in s.symbol_name()), key=lambda s: s.symbol_name())
    undefined = sum(FLAG_BIT[k] if isinstance(k, str) else family_mask(k) for k in left.defined)
    return Query(environment, always, by_location, tuple(inputs), sum(by_location) & ~undefined)


def query_text(query: Query, mask: int) -> str:
    """SMT-LIB text of the query for *mask*."""
    script = smtlibscript_from_formula(query.differs(mask), QF_BV)
    buffer = StringIO()
    script.serialize(buffer)
    return buffer.getvalue()


def query_digest(query: Query, mask: int) -> str:
    """Content hash of the query's text: any change of meaning changes it."""
    return text_digest(query_text(query, mask))

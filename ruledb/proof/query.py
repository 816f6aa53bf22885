"""
Equivalence queries: is there a state, a choice of undefined values and of constants on which the two sides differ?

Two encodings, built in different ways, for two solvers:

* ``functional``: both sides composed into terms over the inputs; the formula compares terms;
* ``relational``: every intermediate register and flag is a variable of its own, bound by one equation a step.

A location that the pattern leaves undefined may take any value in the replacement. Undefined values of either
side are free variables, so that nothing can depend on them.

Memory follows a `Plan`: a load of the common trace is a free variable, the same on both sides; a space of its own is a function from
addresses to bytes (`Rows` in the functional encoding, `Arrays` in the relational one) under the side's stores in order, and what it
holds in the end is compared by one read at a free address.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO

from pysmt.environment import Environment
from pysmt.fnode import FNode
from pysmt.smtlib.script import smtlibscript_from_formula

from ruledb.machine.canonical import domains, families_in, text_digest
from ruledb.machine.instruction import Instruction
from ruledb.machine.registers import ACCESSES, FAULTS, FLAG_BIT, FLAGS, MEMORY, N_LANES, TAKEN, family_mask, lane_bits
from ruledb.proof.accesses import Elided, Own, Plan, Role, Shared, covers
from ruledb.proof.memory import Arrays, Memory, Rows, byte_at, load
from ruledb.proof.solvers import logic_of
from ruledb.semantics.memory import Access, Kind, LoadModel, distance
from ruledb.semantics.symbolic import State, flag_term, register_term, run
from ruledb.semantics.terms import Terms

__all__ = ["ENCODINGS", "Query", "build", "query_digest", "query_text"]


@dataclass(frozen=True, slots=True)
class Query:
    """
    *differs*: satisfiable iff some location of the mask differs. *by_location*: the same for single lanes and flags.
    *always*: what holds of every state and constant that counts. *defined*: mask of what the pattern always defines. *cells*: address
    and initial byte of the memory that was looked at. *left*, *right*: the accesses of both sides.
    """

    environment: Environment
    always: FNode
    by_location: dict[int, FNode]
    symbols: tuple[FNode, ...]
    defined: int
    cells: tuple[tuple[FNode, FNode], ...] = ()
    left: tuple[Access, ...] = ()
    right: tuple[Access, ...] = ()

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


def _functional(t: Terms, side: Sequence[Instruction], name: str, *, is_pattern: bool, memory: LoadModel) -> tuple[State, list[FNode]]:
    return run(t, side, State(), side=name, is_pattern=is_pattern, memory=memory), []


def _relational(t: Terms, side: Sequence[Instruction], name: str, *, is_pattern: bool, memory: LoadModel) -> tuple[State, list[FNode]]:
    """One variable for each location that a step changes, and the equations that bind them."""
    m, state, equations = t.manager, State(), []
    for number, instruction in enumerate(side):
        after = run(t, (instruction,), state, side=name, is_pattern=is_pattern, memory=memory)

        def named(kind: str, key: int | str, term: FNode, before: FNode | None, step: int = number) -> FNode:
            if term is before:
                return term
            variable = t.symbol(f"{name}!{kind}{key}@{step}", term.bv_width())
            equations.append(m.Equals(variable, term))
            return variable

        def named_access(i: int, access: Access) -> Access:
            address = None if access.address is None else named("a", i, access.address, None)
            return replace(access, address=address, value=named(f"m{8 * access.n_bytes}_", i, access.value, None))

        n = len(state.accesses)
        state = State(
            {f: named("r", f, v, state.registers.get(f)) for f, v in after.registers.items()},
            {f: named("f", f, v, state.flags.get(f)) for f, v in after.flags.items()},
            {k: named("d", k, v, state.defined.get(k)) for k, v in after.defined.items()},
            after.n_undefined,
            state.accesses + tuple(named_access(n + i, a) for i, a in enumerate(after.accesses[n:])),
            None if after.taken is None else named("t", "aken", after.taken, None),
        )
    return state, equations


ENCODINGS: dict[str, Callable[..., tuple[State, list[FNode]]]] = {"functional": _functional, "relational": _relational}
"""Name → how the state after one side is built."""

MEMORIES: dict[str, Callable[[Terms, str], Memory]] = {"functional": Rows, "relational": Arrays}
"""Name of the encoding → what memory is in it."""


class _Spaces:
    """The memory of a query: the spaces that both sides share, and one for each value that is taken from an earlier access."""

    def __init__(self, t: Terms, encoding: str) -> None:
        self._t, self._make = t, MEMORIES[encoding]
        self._made: dict[str, Memory] = {}

    def __getitem__(self, name: str) -> Memory:
        if name not in self._made:
            self._made[name] = self._make(self._t, f"memory_{name}")
        return self._made[name]

    def loads(self, roles: Sequence[Role]) -> LoadModel:
        """What the loads of a side with *roles* see."""

        def model(t: Terms, before: tuple[Access, ...], address: FNode, n_bytes: int) -> FNode:
            match roles[len(before)]:
                case Shared(number):
                    return t.symbol(f"load{number}_{8 * n_bytes}", 8 * n_bytes)
                case Elided(source):
                    given = replace(before[source], kind=Kind.STORE)
                    since = [a for a in before[source + 1 :] if a.kind is Kind.STORE]
                    return load(t, self[f"elided{len(before)}"], [given, *since], address, n_bytes)
                case Own(space):
                    return load(t, self[space], stores_of(before, roles, space), address, n_bytes)

        return model

    def constraints(self) -> list[FNode]:
        return [c for memory in self._made.values() for c in memory.constraints()]

    def cells(self) -> tuple[tuple[FNode, FNode], ...]:
        return tuple(cell for name, memory in self._made.items() if not name.startswith("elided") for cell in memory.cells())


def stores_of(accesses: Sequence[Access], roles: Sequence[Role], space: str) -> list[Access]:
    """The stores of *accesses* into a space of its own."""
    return [a for a, role in zip(accesses, roles, strict=False) if role == Own(space) and a.kind is Kind.STORE]


def _unequal(t: Terms, a: FNode, b: FNode) -> list[FNode]:
    return [] if a is b else [t.manager.Not(t.manager.Equals(a, b))]


def _trace_differs(t: Terms, left: Sequence[Access], right: Sequence[Access], plan: Plan) -> tuple[list[FNode], list[FNode]]:
    """Where the common trace differs: in addresses, divisions and what elided accesses rely on; and in stored values."""
    m, accesses, values = t.manager, [], []
    numbered = {role.number: a for a, role in zip(right, plan.right, strict=True) if isinstance(role, Shared)}
    for access, role in zip(left, plan.left, strict=True):
        match role:
            case Shared(number):
                other = numbered[number]
                if access.address is None or other.address is None:
                    accesses += _unequal(t, access.value, other.value)
                else:
                    accesses += _unequal(t, access.address, other.address)
                    values += _unequal(t, access.value, other.value) if access.kind is Kind.STORE else []
            case Elided(source) if access.address is None:
                accesses += _unequal(t, access.value, left[source].value)
            case Elided(source):
                accesses.append(m.Equals(covers(t, left[source], access), t.const(0, 1)))
            case _:
                pass
    return accesses, values


def _faults(t: Terms, left: Sequence[Access], right: Sequence[Access], plan: Plan) -> Iterator[FNode]:
    """Where a replacement accesses a byte of its own space that the pattern does not access, or stores to one that it only loads."""
    m = t.manager
    for access, role in zip(right, plan.right, strict=True):
        allowed = [a for a, r in zip(left, plan.left, strict=True) if r == role and (a.kind is Kind.STORE or access.kind is Kind.LOAD)]
        if not isinstance(role, Own) or any(a.address is access.address and a.n_bytes >= access.n_bytes for a in allowed):
            continue
        for i in range(access.n_bytes):
            assert access.address is not None
            byte = byte_at(t, access.address, i)
            outside = [_outside(t, byte, a) for a in allowed]
            if t.const(0, 1) not in outside:
                yield m.And([m.Equals(o, t.const(1, 1)) for o in outside])


def _falls_below(t: Terms, left: Sequence[Access], right: Sequence[Access], plan: Plan) -> Iterator[FNode]:
    """Where a doubtful access of the replacement lies below rsp, and none of the pattern that covers it does."""
    m, yes = t.manager, t.const(1, 1)
    for access in (right[i] for i in plan.doubtful):
        wide = [a for a in left if a.address is not None and a.n_bytes >= access.n_bytes]
        alike = [t.and_(covers(t, a, access), _is_below(t, a)) for a in wide]
        yield m.And(m.Equals(_is_below(t, access), yes), *(m.Not(m.Equals(c, yes)) for c in alike))


def _is_below(t: Terms, access: Access) -> FNode:
    """Whether an access starts below rsp as it is at that time (BV1)."""
    assert access.address is not None
    assert access.sp is not None
    return t.sign(t.sub(access.address, access.sp))


def _outside(t: Terms, address: FNode, access: Access) -> FNode:
    assert access.address is not None
    known = distance(address, access.address)
    if known is not None:
        return t.const(int(known >= access.n_bytes), 1)
    return t.not_(t.ult(t.sub(address, access.address), t.const(access.n_bytes, 64)))


def _content_differs(
    t: Terms, left: Sequence[Access], right: Sequence[Access], plan: Plan, spaces: _Spaces, dead: frozenset[str]
) -> Iterator[FNode]:
    """Where a space of its own holds another byte in the end."""
    at = t.symbol("at", 64)
    named = {role.space for role in (*plan.left, *plan.right) if isinstance(role, Own)}
    for space in sorted(named - dead):
        one, other = stores_of(left, plan.left, space), stores_of(right, plan.right, space)
        if one != other:
            yield from _unequal(t, spaces[space].byte(one, at), spaces[space].byte(other, at))


def build(
    environment: Environment,
    pattern: Sequence[Instruction],
    replacement: Sequence[Instruction],
    encoding: str,
    plan: Plan = Plan(),  # noqa: B008  # a frozen value
    *,
    dead: frozenset[str] = frozenset(),
    is_memory_live: bool = True,
) -> Query:
    """
    The query of whether *replacement* may stand for *pattern*, over every lane of the touched families, every flag, and effects.

    Args:
        plan: What the accesses of both sides are to each other.
        dead: Spaces whose content nobody reads behind the window.
        is_memory_live: Whether what is stored must be the same.

    Raises:
        UnmodelledForm: An instruction has no semantics.

    """
    t, m = Terms(environment), environment.formula_manager
    spaces = _Spaces(t, encoding)
    encode = ENCODINGS[encoding]
    left, left_equations = encode(t, pattern, "left", is_pattern=True, memory=spaces.loads(plan.left))
    right, right_equations = encode(t, replacement, "right", is_pattern=False, memory=spaces.loads(plan.right))
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
    if left.taken is not None and right.taken is not None:
        compare(TAKEN, "taken", left.taken, right.taken)
    if left.accesses or right.accesses:
        accesses, values = _trace_differs(t, left.accesses, right.accesses, plan)
        by_location[ACCESSES] = m.Or(accesses)
        sides = left.accesses, right.accesses, plan
        by_location[FAULTS] = m.Or([*_faults(t, *sides), *_falls_below(t, *sides)])
        if is_memory_live:
            by_location[MEMORY] = m.Or([*values, *_content_differs(t, left.accesses, right.accesses, plan, spaces, dead)])
    always = m.And([*_limits(t, pattern), *left_equations, *right_equations, *spaces.constraints()])
    free = set(environment.fvo.get_free_variables(m.And(always, *by_location.values())))
    free.update(*(environment.fvo.get_free_variables(a.address) for a in (*left.accesses, *right.accesses) if a.address is not None))
    inputs = sorted((s for s in free if "!" not in s.symbol_name()), key=lambda s: str(s.symbol_name()))
    undefined = sum(FLAG_BIT[k] if isinstance(k, str) else family_mask(k) for k in left.defined)
    defined = sum(by_location) & ~undefined
    return Query(environment, always, by_location, tuple(inputs), defined, spaces.cells(), left.accesses, right.accesses)


def query_text(query: Query, mask: int) -> str:
    """SMT-LIB text of the query for *mask*."""
    formula = query.differs(mask)
    script = smtlibscript_from_formula(formula, logic_of(query.environment, formula))
    buffer = StringIO()
    script.serialize(buffer)
    return buffer.getvalue()


def query_digest(query: Query, mask: int) -> str:
    """Content hash of the query's text: any change of meaning changes it."""
    return text_digest(query_text(query, mask))

"""
Prove, refute, or say that neither was possible: may *replacement* stand for *pattern*?

A rule is proved by one solver on one encoding of the query and confirmed by another solver on the other; what either leaves
open stays `Undecided`. Every (pattern, replacement) is proved lane by lane, so that one rule carries all it preserves.

A memory policy may forbid what no state of one thread shows. Where a pair is refuted, it is asked once more as if all memory
were private: the answer is a state that shows the difference, or that only the policy forbids it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pysmt.fnode import FNode

from ruledb.machine.instruction import Instruction, sequence_text
from ruledb.machine.march import BASELINE
from ruledb.machine.policy import STRICT, Conditions
from ruledb.machine.registers import ACCESSES, EFFECTS, FAULTS, RSP, family_mask, mask_text
from ruledb.machine.rule import Proof
from ruledb.proof.accesses import Plan, below_stack, describe, plans
from ruledb.proof.admission import doubtful, foreign_writes, refusal, written_families
from ruledb.proof.examples import crosses_page, is_tame
from ruledb.proof.query import Query, build, query_digest
from ruledb.proof.solvers import Answer, Sat, Unknown, Unsat, ask, new_environment, solver_version
from ruledb.semantics.memory import Access, distance, free_loads
from ruledb.semantics.symbolic import IMAGE, State, register_term, run
from ruledb.semantics.terms import Terms

__all__ = [
    "FIRST",
    "LIMITS_MS",
    "SECOND",
    "Counterexample",
    "Proved",
    "Prover",
    "Refuted",
    "Undecided",
    "Verdict",
    "foreign_writes",
    "written_families",
]

FIRST = ("functional", "bitwuzla")
"""Encoding and solver of the proof."""

SECOND = ("relational", "z3")
"""Encoding and solver of the confirmation."""

LIMITS_MS = (100, 1000, 5000)
"""Time limits of one try after another. What goes beyond the needed locations is not worth the last."""

_RENEWED = 256
"""Queries between two fresh environments: pySMT never frees a term."""

_ROUNDS = 16
"""How often lanes that differ are dropped before the rest is given up."""

_ALWAYS = sum(EFFECTS.values()) | family_mask(RSP)
"""What every replacement must preserve where either side touches it."""

_EFFECTS = sum(EFFECTS.values())


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Inputs by name (``r<family>``, flag, ``c<i>``), and bytes of *memory* by address, on which the two sides differ in *locations*."""

    inputs: dict[str, int]
    locations: int
    memory: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proved:
    """Both solvers answered that nothing in *preserves* can differ; *always_defined* is what the pattern always defines."""

    preserves: int
    always_defined: int
    proofs: tuple[Proof, ...]
    ms: float


@dataclass(frozen=True, slots=True)
class Refuted:
    """
    The replacement is wrong: a state shows it, or (without one) *reason* names what it may not do.

    *by_policy*: no state of one thread shows it; the memory policy forbids it.
    """

    counterexample: Counterexample | None
    reason: str
    ms: float = 0.0
    by_policy: bool = False


@dataclass(frozen=True, slots=True)
class Undecided:
    """No answer: a time limit, or two solvers that disagree. Never a rule."""

    reason: str
    ms: float


Verdict = Proved | Refuted | Undecided


@dataclass(frozen=True, slots=True)
class _Claim:
    """What is to be proved: a pair, what its accesses are to each other, and what of memory need not agree."""

    pattern: tuple[Instruction, ...]
    replacement: tuple[Instruction, ...]
    plan: Plan = Plan()  # noqa: RUF009  # a frozen value
    dead: frozenset[str] = frozenset()
    is_memory_live: bool = True

    @property
    def text(self) -> str:
        return f"{sequence_text(self.pattern)} => {sequence_text(self.replacement)}"


class Prover:
    """Asks two solvers, each on its own encoding, within *limits_ms*. Terms are shared between queries, and dropped now and then."""

    def __init__(
        self, limits_ms: Sequence[int] = LIMITS_MS, first: tuple[str, str] = FIRST, second: tuple[str, str] | None = SECOND
    ) -> None:
        """Without *second* nothing is confirmed, and nothing must become a rule: for measuring one solver."""
        self.limits_ms, self.first, self.second = tuple(limits_ms), first, second
        self._environment, self._queries = new_environment(), 0
        self._known_accesses: dict[tuple[Instruction, ...], tuple[tuple[Access, ...], bool]] = {}

    def prove(
        self,
        pattern: Sequence[Instruction],
        replacement: Sequence[Instruction],
        required: int,
        *,
        plausible: int = -1,
        scratch: int = 0,
        conditions: Conditions = STRICT,
        march: str = BASELINE,
        is_memory_live: bool = True,
        wants_state: bool = True,
    ) -> Verdict:
        """
        Whether *replacement* may stand for *pattern* where *required* is live, and what else it preserves.

        Args:
            required: Location mask that must be preserved. Locations that neither side touches need not be asked about. Effects on
                memory, rsp and a closing jump always must.
            plausible: Locations worth asking about beyond *required*: tests have not shown them to differ.
            scratch: Lanes of registers that are dead and may be overwritten.
            conditions: What may be assumed of memory.
            march: The level of the processor; what the pattern needs, it has besides.
            is_memory_live: Whether stored bytes must agree.
            wants_state: Whether a refutation about memory is worth more queries, for a state that shows it.

        Raises:
            UnmodelledForm: An instruction has no semantics.

        """
        if reason := doubtful(pattern, march):
            return Undecided(reason, 0.0)
        if reason := refusal(pattern, replacement, scratch, march):
            return Refuted(None, reason)
        claims, why = self._claims(pattern, replacement, conditions, is_memory_live=is_memory_live)
        verdict: Verdict = Refuted(None, f"policy {conditions.policy}: {why}")
        for claim in claims:
            found = self._proved(claim, required, plausible)
            if isinstance(found, Proved):
                return found
            verdict = verdict if isinstance(verdict, Undecided) else found
        if isinstance(verdict, Refuted) and (why or _has_image(verdict)):
            if not wants_state:  # what loads of the common trace return is an input that no state of memory has
                return Refuted(None, verdict.reason, verdict.ms)
            return self._shown(pattern, replacement, required, conditions, verdict, is_memory_live=is_memory_live)
        return verdict

    def query(
        self, pattern: Sequence[Instruction], replacement: Sequence[Instruction], required: int, conditions: Conditions = STRICT
    ) -> tuple[Query, int]:
        """
        The query of the first encoding, and the mask that it is asked about.

        Raises:
            ValueError: The policy admits no such replacement, so that there is nothing to ask.

        """
        claims, why = self._claims(pattern, replacement, conditions, is_memory_live=True)
        if not claims:
            raise ValueError(f"{sequence_text(pattern)} => {sequence_text(replacement)}: {why}")
        query = self._query(claims[0], self.first)
        return query, sum(bit for bit in query.by_location if bit & (required | _ALWAYS))

    def _accesses(self, side: Sequence[Instruction]) -> tuple[tuple[Access, ...], bool]:
        """The accesses of a side, and whether rsp is known to end no lower than it starts."""
        key = tuple(side)
        if key not in self._known_accesses:
            t = Terms(self._environment)
            state = run(t, side, State(), memory=free_loads)
            rise = distance(register_term(t, state, RSP), register_term(t, State(), RSP))
            self._known_accesses[key] = state.accesses, rise is not None and rise >> 63 == 0
        return self._known_accesses[key]

    def _claims(
        self, pattern: Sequence[Instruction], replacement: Sequence[Instruction], conditions: Conditions, *, is_memory_live: bool
    ) -> tuple[list[_Claim], str]:
        """Claims of which one must hold, and what both sides access; "" where neither accesses anything."""
        (left, is_popped), (right, _) = self._accesses(pattern), self._accesses(replacement)
        sides = tuple(pattern), tuple(replacement)
        if not left and not right:
            return [_Claim(*sides)], ""
        if not is_popped:  # what the window leaves on the stack is not below it
            conditions = replace(conditions, private_bytes=0, dead_bytes=0)
        is_dead = conditions.dead_bytes >= conditions.private_bytes
        dead = frozenset({"below"}) if is_dead else frozenset()
        if below_stack(left, right):
            return [], "the replacement accesses memory below rsp where the window does not"
        found = plans(Terms(self._environment), left, right, conditions)
        claims = [_Claim(*sides, plan, dead, is_memory_live) for plan in found]
        return claims, f"the window does {describe(left)}; the replacement {describe(right)}"

    def _shown(
        self,
        pattern: Sequence[Instruction],
        replacement: Sequence[Instruction],
        required: int,
        conditions: Conditions,
        verdict: Refuted,
        *,
        is_memory_live: bool,
    ) -> Refuted:
        """*verdict* with a state that shows it; or with the reason that only the policy forbids the replacement."""
        claims, _ = self._claims(pattern, replacement, replace(conditions, policy="plain"), is_memory_live=is_memory_live)
        if not claims:
            return Refuted(None, verdict.reason, verdict.ms)
        query = self._query(claims[0], self.first)
        t, total = Terms(self._environment), verdict.ms
        needed = sum(bit for bit in query.by_location if bit & (required | _ALWAYS))
        tame = is_tame(t, query)
        visible = needed & ~(FAULTS | ACCESSES)
        wanted = (
            (visible, tame),
            (needed & FAULTS, t.manager.And(tame, crosses_page(t, query))),
            (visible, t.manager.TRUE()),
        )
        for mask, beside in wanted:
            answer = self._decide(query, mask, self.first, self.limits_ms, beside)
            total += answer.ms
            if isinstance(answer, Sat):
                differing, example = _read(query, answer, mask)
                return Refuted(example, f"differs in {mask_text(differing)}", total)
        # What is left may fault where nothing is mapped, or mapped to be read only: no state of ours shows that.
        answer = self._decide(query, needed, self.first, self.limits_ms)
        total += answer.ms
        if isinstance(answer, Unsat):
            reason = verdict.reason.removeprefix(f"policy {conditions.policy}: ")
            return Refuted(None, f"only the memory policy {conditions.policy} forbids it: {reason}", total, by_policy=True)
        return Refuted(None, verdict.reason, total)

    def _proved(self, claim: _Claim, required: int, plausible: int) -> Verdict:
        query = self._query(claim, self.first)
        required |= _ALWAYS
        needed = sum(bit for bit in query.by_location if bit & required)
        mask = sum(bit for bit in query.by_location if bit & (required | plausible))
        total = 0.0
        for _ in range(_ROUNDS):
            answer = self._decide(query, mask, self.first, self._patience(mask, needed))
            total += answer.ms
            match answer:
                case Sat():
                    differing, example = _read(query, answer, mask)
                    if differing & needed:
                        return Refuted(example, f"differs in {mask_text(differing & needed)}", total)
                    mask &= ~differing
                case Unknown(_, reason):
                    if mask == needed:
                        return Undecided(reason, total)
                    mask = needed
                case Unsat():
                    return self._confirmed(claim, query, (mask, needed), total)
        return Undecided(f"more than {_ROUNDS} rounds of lanes that differ", total)

    def _query(self, claim: _Claim, opinion: tuple[str, str]) -> Query:
        self._queries += 1
        if self._queries % _RENEWED == 0:
            self._environment, self._known_accesses = new_environment(), {}
        return build(
            self._environment,
            claim.pattern,
            claim.replacement,
            opinion[0],
            claim.plan,
            dead=claim.dead,
            is_memory_live=claim.is_memory_live,
        )

    def _patience(self, mask: int, needed: int) -> tuple[int, ...]:
        """Time limits for a query about *mask*."""
        return self.limits_ms if mask == needed or len(self.limits_ms) == 1 else self.limits_ms[:-1]

    @staticmethod
    def _decide(query: Query, mask: int, opinion: tuple[str, str], limits_ms: Sequence[int], beside: FNode | None = None) -> Answer:
        """The first definite answer within growing limits; with *beside*, to whether both it and the difference can hold."""
        terms = [*query.symbols, *query.by_location.values(), *(term for cell in query.cells for term in cell)]
        formula = query.differs(mask)
        if beside is not None:
            formula = query.environment.formula_manager.And(formula, beside)
        answer: Answer = Unknown(0.0, "no time limit given")
        for limit in limits_ms:
            answer = ask(query.environment, formula, terms, opinion[1], limit)
            if not isinstance(answer, Unknown) or answer.reason != "timeout":
                break
        return answer

    def _confirmed(self, claim: _Claim, query: Query, masks: tuple[int, int], total: float) -> Verdict:
        """The second opinion, on the whole mask, or where that takes too long on what is needed."""
        mask, needed = masks
        if self.second is None:
            return Proved(mask & ~_EFFECTS, query.defined & ~_EFFECTS, (self._proof(query, mask, self.first),), total)
        other = self._query(claim, self.second)
        answer: Answer = Unknown(0.0, "not asked")
        for tried in dict.fromkeys((mask, needed)):
            answer = self._decide(other, tried, self.second, self._patience(tried, needed))
            total += answer.ms
            mask = tried
            if not isinstance(answer, Unknown):
                break
        match answer:
            case Unsat():
                proofs = (self._proof(query, mask, self.first), self._proof(other, mask, self.second))
                return Proved(mask & ~_EFFECTS, query.defined & ~_EFFECTS, proofs, total)
            case Sat():
                return Undecided(f"{self.first[1]} and {self.second[1]} disagree on {claim.text}", total)
            case Unknown(_, reason):
                return Undecided(f"{self.second[1]}: {reason}", total)

    def _proof(self, query: Query, mask: int, opinion: tuple[str, str]) -> Proof:
        encoding, solver = opinion
        return Proof(encoding, solver, solver_version(solver), max(self.limits_ms), query_digest(query, mask))


def _has_image(verdict: Refuted) -> bool:
    """Whether the state of a refutation says where the program is loaded, which an emulator cannot always follow."""
    return verdict.counterexample is not None and IMAGE in verdict.counterexample.inputs


def _read(query: Query, answer: Sat, mask: int) -> tuple[int, Counterexample]:
    """Which locations of *mask* differ in the model, and the model's inputs."""
    n, m = len(query.symbols), len(query.symbols) + len(query.by_location)
    inputs = {s.symbol_name(): v for s, v in zip(query.symbols, answer.values[:n], strict=True)}
    differing = sum(bit for bit, value in zip(query.by_location, answer.values[n:m], strict=True) if value and bit & mask)
    memory = dict(zip(answer.values[m::2], answer.values[m + 1 :: 2], strict=True))
    return differing, Counterexample(inputs, differing, memory)

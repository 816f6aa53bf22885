"""
Prove, refute, or say that neither was possible: may *replacement* stand for *pattern*?

A rule is proved by one solver on one encoding of the query and confirmed by another solver on the other; what either leaves
open stays `Undecided`. Every (pattern, replacement) is proved lane by lane, so that one rule carries all it preserves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ruledb.machine.instruction import Instruction, sequence_text
from ruledb.machine.registers import families_of, family_mask, mask_text
from ruledb.machine.rule import Proof
from ruledb.proof.query import Query, build, query_digest
from ruledb.proof.solvers import Answer, Sat, Unknown, Unsat, ask, new_environment, solver_version
from ruledb.semantics.symbolic import reads_and_writes

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


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Inputs by name (``r<family>``, flag, ``c<i>``) on which the two sides differ in *locations*."""

    inputs: dict[str, int]
    locations: int


@dataclass(frozen=True, slots=True)
class Proved:
    """Both solvers answered that nothing in *preserves* can differ; *always_defined* is what the pattern always defines."""

    preserves: int
    always_defined: int
    proofs: tuple[Proof, ...]
    ms: float


@dataclass(frozen=True, slots=True)
class Refuted:
    """The replacement is wrong: a state shows it, or (without one) *reason* names what it may not do."""

    counterexample: Counterexample | None
    reason: str
    ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Undecided:
    """No answer: a time limit, or two solvers that disagree. Never a rule."""

    reason: str
    ms: float


Verdict = Proved | Refuted | Undecided


def written_families(instructions: Sequence[Instruction]) -> frozenset[int]:
    """Families that *instructions* may write."""
    return frozenset().union(*map(_written, instructions))


@lru_cache(maxsize=1 << 14)
def _written(instruction: Instruction) -> frozenset[int]:
    return frozenset(families_of(reads_and_writes(instruction)[1]))


def foreign_writes(pattern: Sequence[Instruction], replacement: Sequence[Instruction], scratch: int = 0) -> int:
    """Mask of the families that *replacement* writes although neither *pattern* does nor *scratch* allows it."""
    foreign = written_families(replacement) - written_families(pattern) - set(families_of(scratch))
    return sum(family_mask(f) for f in foreign)


class Prover:
    """Asks two solvers, each on its own encoding, within *limits_ms*. Terms are shared between queries, and dropped now and then."""

    def __init__(
        self, limits_ms: Sequence[int] = LIMITS_MS, first: tuple[str, str] = FIRST, second: tuple[str, str] | None = SECOND
    ) -> None:
        """Without *second* nothing is confirmed, and nothing must become a rule: for measuring one solver."""
        self.limits_ms, self.first, self.second = tuple(limits_ms), first, second
        self._environment, self._queries = new_environment(), 0

    def prove(
        self, pattern: Sequence[Instruction], replacement: Sequence[Instruction], required: int, *, plausible: int = -1, scratch: int = 0
    ) -> Verdict:
        """
        Whether *replacement* may stand for *pattern* where *required* is live, and what else it preserves.

        Args:
            required: Location mask that must be preserved. Locations that neither side touches need not be asked about.
            plausible: Locations worth asking about beyond *required*: tests have not shown them to differ.
            scratch: Lanes of registers that are dead and may be overwritten.

        Raises:
            UnmodelledForm: An instruction has no semantics.

        """
        if foreign := foreign_writes(pattern, replacement, scratch):
            return Refuted(None, f"scratch: the replacement writes {mask_text(foreign)}, which the pattern does not write")
        query = self._query(pattern, replacement, self.first)
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
                    return self._confirmed(pattern, replacement, query, (mask, needed), total)
        return Undecided(f"more than {_ROUNDS} rounds of lanes that differ", total)

    def _query(self, pattern: Sequence[Instruction], replacement: Sequence[Instruction], opinion: tuple[str, str]) -> Query:
        self._queries += 1
        if self._queries % _RENEWED == 0:
            self._environment = new_environment()
        return build(self._environment, pattern, replacement, opinion[0])

    def _patience(self, mask: int, needed: int) -> tuple[int, ...]:
        """Time limits for a query about *mask*."""
        return self.limits_ms if mask == needed or len(self.limits_ms) == 1 else self.limits_ms[:-1]

    @staticmethod
    def _decide(query: Query, mask: int, opinion: tuple[str, str], limits_ms: Sequence[int]) -> Answer:
        """The first definite answer within growing limits."""
        terms = [*query.symbols, *query.by_location.values()]
        answer: Answer = Unknown(0.0, "no time limit given")
        for limit in limits_ms:
            answer = ask(query.environment, query.differs(mask), terms, opinion[1], limit)
            if not isinstance(answer, Unknown) or answer.reason != "timeout":
                break
        return answer

    def _confirmed(
        self, pattern: Sequence[Instruction], replacement: Sequence[Instruction], query: Query, masks: tuple[int, int], total: float
    ) -> Verdict:
        """The second opinion, on the whole mask, or where that takes too long on what is needed."""
        mask, needed = masks
        if self.second is None:
            return Proved(mask, query.defined, (self._proof(query, mask, self.first),), total)
        other = self._query(pattern, replacement, self.second)
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
                return Proved(mask, query.defined, proofs, total)
            case Sat():
                both = f"{sequence_text(pattern)} => {sequence_text(replacement)}"
                return Undecided(f"{self.first[1]} and {self.second[1]} disagree on {both}", total)
            case Unknown(_, reason):
                return Undecided(f"{self.second[1]}: {reason}", total)

    def _proof(self, query: Query, mask: int, opinion: tuple[str, str]) -> Proof:
        encoding, solver = opinion
        return Proof(encoding, solver, solver_version(solver), max(self.limits_ms), query_digest(query, mask))


def _read(query: Query, answer: Sat, mask: int) -> tuple[int, Counterexample]:
    """Which locations of *mask* differ in the model, and the model's inputs."""
    n = len(query.symbols)
    inputs = {s.symbol_name(): v for s, v in zip(query.symbols, answer.values[:n], strict=True)}
    differing = sum(bit for bit, value in zip(query.by_location, answer.values[n:], strict=True) if value and bit & mask)
    return differing, Counterexample(inputs, differing)

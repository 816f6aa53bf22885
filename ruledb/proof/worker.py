"""
Prove the candidates of one window, cheapest first, in a process of its own.

Work and results are plain data with rule *text*: pySMT's terms mean nothing outside their process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ruledb.cost import size_of, time_of
from ruledb.machine.canonical import bind, domains, example_families, families_in
from ruledb.machine.codec import CodecError
from ruledb.machine.instruction import Instruction, Label, parse_sequence, sequence_text
from ruledb.machine.registers import ALL_FLAGS, family_mask
from ruledb.machine.rule import Proof, Rule
from ruledb.machine.states import directed_states, extended
from ruledb.proof.oracle import Oracle, OracleFault
from ruledb.proof.prover import Proved, Prover, Refuted, Undecided
from ruledb.proof.replay import replay_counterexample, replay_rule
from ruledb.proof.replay_memory import needs_memory
from ruledb.proof.weakest import prove_weakest
from ruledb.search.agreement import agreeing
from ruledb.search.evaluate import Evaluator
from ruledb.search.kernels import KernelLibrary
from ruledb.semantics.forms import features

__all__ = ["Goal", "Outcome", "Verdict", "Work", "Worker"]

_MAX_UNDECIDED = 3
"""Undecided candidates of one goal after which it is given up."""

Costs = tuple[tuple[int, int], tuple[int, int, int, int]]


@dataclass(frozen=True, slots=True)
class Goal:
    """One live-out set of a window, and the candidates for it (canonical text)."""

    target: int
    live: int
    count: int
    witness: str
    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict that is known already, or a new one: see `ruledb.store.store.StoredProof`."""

    replacement: str
    required: int
    preserves: int
    verdict: str
    reason: str
    opinions: tuple[tuple[str, str, str, int, str], ...]
    ms: float
    example: tuple[dict[str, int], int, bool] | None = None
    policy: str = "none"
    assumes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """A canonical window with its witness constants, what is live behind it, and the verdicts known so far."""

    pattern: str
    constants: tuple[int, ...]
    models: tuple[str, ...]
    goals: tuple[Goal, ...]
    known: Mapping[tuple[str, int], Verdict] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Rules and verdicts that a work came to; *improved*: the targets that got a rule, and its digest."""

    pattern: str
    rules: tuple[Rule, ...]
    verdicts: tuple[Verdict, ...]
    improved: dict[int, str]


class Worker:
    """Holds what is dear to set up: kernels, an emulator, a prover."""

    def __init__(self, cache: Path | None, limits_ms: Sequence[int]) -> None:
        self._library, self._oracle, self._prover = KernelLibrary(cache), Oracle(), Prover(limits_ms)

    def prove(self, work: Work) -> Outcome:
        """The outcome of *work*."""
        return _WindowProof(self._library, self._oracle, self._prover, work).run()


class _WindowProof:
    """The proofs of one window while they are made."""

    def __init__(self, library: KernelLibrary, oracle: Oracle, prover: Prover, work: Work) -> None:
        self.oracle, self.prover, self.work = oracle, prover, work
        self.pattern = parse_sequence(work.pattern)
        self.families = sorted(families_in(self.pattern))
        self.evaluator = Evaluator(library, self.families)
        self.named = sum(map(family_mask, self.families)) | ALL_FLAGS
        self.in_memory = needs_memory(self.pattern)
        self.states = directed_states(len(self.families), domains(self.pattern))
        self.before = self._costs(self.pattern)
        self.seen: dict[tuple[str, int], Verdict | None] = dict(work.known)
        self.rules: dict[str, Rule] = {}
        self.verdicts: list[Verdict] = []

    def run(self) -> Outcome:
        improved: dict[int, str] = {}
        for goal in self.work.goals:
            for model in self.work.models:
                rule = self._best(goal, model)
                if rule is not None:
                    improved.setdefault(goal.target, rule.digest)
        return Outcome(self.work.pattern, tuple(self.rules.values()), tuple(self.verdicts), improved)

    def _costs(self, side: Sequence[Instruction]) -> Costs | None:
        """Size and time of a canonical sequence on example registers and the witness's constants; None where it has no encoding."""
        try:
            concrete = bind(side, example_families((*self.pattern, *side)), self.work.constants)
            size = size_of(concrete)
        except (CodecError, ValueError, IndexError):
            return None
        return size, time_of(concrete, size[0])

    def _best(self, goal: Goal, model: str) -> Rule | None:
        """The rule with the cheapest candidate that is proved for *goal*, under one cost model."""
        which = ("size", "time").index(model)
        if self.before is None:
            return None
        known = {i.mnemonic for i in self.pattern}
        ranked = []
        for number, text in enumerate(goal.candidates):
            candidate = parse_sequence(text)
            costs = self._costs(candidate)
            if costs is not None and costs[which] < self.before[which]:
                # Of equals, what looks most like the pattern; then what the alphabet has first.
                ranked.append((costs[which], len({i.mnemonic for i in candidate} - known), number, text, costs))
        undecided = 0
        for *_, text, costs in sorted(ranked):
            rule = self.rules.get(text)
            if rule is not None and not goal.live & ~rule.preserves:
                return rule
            verdict = self._verdict(goal, text)
            if verdict is not None and verdict.verdict == "proved":
                return self._rule(goal, text, verdict, costs)
            undecided += verdict is not None and verdict.verdict == "unknown"
            if undecided == _MAX_UNDECIDED:
                break  # the other candidates are as hard
        return None

    def _rule(self, goal: Goal, text: str, verdict: Verdict, costs: Costs) -> Rule:
        assert self.before is not None
        size, time = (tuple(b - a for b, a in zip(before, after, strict=True)) for before, after in zip(self.before, costs, strict=True))
        rule = Rule(
            self.pattern,
            parse_sequence(text),
            verdict.preserves,
            (size[0], size[1]),
            (time[0], time[1], time[2], time[3]),
            branch=_condition(self.pattern, candidate=parse_sequence(text)),
            policy=verdict.policy,
            assumes=verdict.assumes,
            proofs=tuple(Proof(*p) for p in verdict.opinions),
            witness=goal.witness,
        )
        known = self.rules.get(text)
        self.rules[text] = rule if known is None else known.merged(rule)
        return self.rules[text]

    def _verdict(self, goal: Goal, text: str) -> Verdict | None:
        """The verdict on one candidate; None where a test state refutes it already."""
        key = text, goal.live
        if key not in self.seen:
            replacement = parse_sequence(text)
            # Kernels know no memory: there, all is worth asking.
            plausible = self.named if self.in_memory else agreeing(self.evaluator, self.pattern, replacement, self.states)
            self.seen[key] = None
            if not goal.live & self.named & ~plausible:
                verdict = self.seen[key] = self._asked(goal, text, replacement, plausible)
                self.verdicts.append(verdict)
        return self.seen[key]

    def _asked(self, goal: Goal, text: str, replacement: tuple[Instruction, ...], plausible: int) -> Verdict:
        conditions, found = prove_weakest(self.prover, self.pattern, replacement, goal.live, plausible=plausible)
        match found:
            case Proved(preserves, always_defined, proofs, ms):
                opinions = tuple((p.encoding, p.solver, p.version, p.limit_ms, p.query_digest) for p in proofs)
                try:
                    seen = replay_rule(self.oracle, self.pattern, replacement, preserves & always_defined, conditions)
                except OracleFault as fault:
                    return Verdict(text, goal.live, 0, "unknown", f"emulator: {fault}", opinions, ms)
                if seen.differing or not seen.runs:
                    reason = "the emulator contradicts the proof" if seen.differing else "no constants to replay it with"
                    return Verdict(text, goal.live, 0, "unknown", reason, opinions, ms)
                policy = conditions.policy if any("memory" in features(i) for i in self.pattern) else "none"
                return Verdict(text, goal.live, preserves, "proved", "", opinions, ms, None, policy, conditions.assumes)
            case Refuted(example, reason, ms):
                kept = None
                if example is not None and not self.in_memory:
                    self.states = extended(self.states, self.families, example.inputs)
                if example is not None:
                    confirmed = replay_counterexample(self.oracle, self.pattern, replacement, example).differing != 0
                    kept = (example.inputs, example.locations, confirmed)
                return Verdict(text, goal.live, 0, "refuted", reason, (), ms, kept)
            case Undecided(reason, ms):
                return Verdict(text, goal.live, 0, "unknown", reason, (), ms)
        raise AssertionError(sequence_text(replacement))


def _condition(pattern: Sequence[Instruction], candidate: Sequence[Instruction]) -> str:
    """The condition of the jump that closes *candidate*, where one closes the pattern."""
    return candidate[-1].mnemonic.removeprefix("j") if any(isinstance(o, Label) for o in pattern[-1].operands) else ""

"""The worker: rules for what holds, verdicts for all that was asked, and nothing asked twice."""

import pytest
from asm import mask, seq

from ruledb.machine.registers import mask_text
from ruledb.machine.rule import Proof
from ruledb.proof import worker as worker_module
from ruledb.proof.oracle import OracleFault
from ruledb.proof.prover import Proved, Prover, Undecided
from ruledb.proof.replay import Outcome as Replayed
from ruledb.proof.worker import Goal, Verdict, Work, Worker

PATTERN = "mov r0d, r1d; add r0d, c0"
GOOD, BAD, DEAR = "lea r0d, [r1+c0]", "lea r0d, [r1]", "mov r0d, r1d; sub r0d, -c0"
LIVE = mask("r0")


@pytest.fixture(scope="module")
def worker(kernel_cache):
    """A worker with short limits."""
    return Worker(kernel_cache, (100, 2000))


def work(*candidates, live=LIVE, models=("size", "time"), pattern=PATTERN, constants=(29,), **more):
    """A work with one goal."""
    return Work(pattern, constants, models, (Goal(7, live, 5, "vm-O0:0x401000", candidates),), **more)


def test_a_good_candidate_becomes_a_rule(worker):
    """The rule holds what was proved, where it was seen, and what it saves."""
    outcome = worker.prove(work(GOOD, BAD, DEAR))
    (rule,) = outcome.rules
    assert (rule.pattern, rule.replacement) == (seq(PATTERN), seq(GOOD))
    assert not LIVE & ~rule.preserves
    assert rule.dead == "CF PF AF ZF SF OF"
    assert rule.size == (2, 1)
    assert rule.time[1] > 0
    assert len(rule.proofs) == 2
    assert rule.witness == "vm-O0:0x401000"
    assert outcome.improved == {7: rule.digest}


def test_a_bad_candidate_becomes_nothing(worker):
    """A candidate that a test state refutes is no rule, and the target is not improved."""
    outcome = worker.prove(work(BAD))
    assert outcome.rules == ()
    assert not outcome.improved


def test_what_the_prover_refutes_is_a_verdict_with_a_state(worker, monkeypatch):
    """Where no test state shows the difference the prover does, and the emulator confirms its state."""
    monkeypatch.setattr(worker_module, "agreeing", lambda *_: -1)
    outcome = worker.prove(work(BAD))
    assert {v.verdict for v in outcome.verdicts} == {"refuted"}
    inputs, locations, confirmed = outcome.verdicts[0].example
    assert confirmed
    assert locations & LIVE
    assert "c0" in inputs


def test_what_costs_as_much_is_not_asked(worker):
    """Only a candidate that is cheaper by a model in use is worth a proof."""
    assert worker.prove(work(DEAR, PATTERN)).verdicts == ()


def test_the_models_may_differ(worker):
    """Either model gets its cheapest candidate."""
    outcome = worker.prove(work("xor r0d, r0d", "mov r0d, 0", pattern="mov r0, 0", constants=()))
    assert {str(r.replacement[0]) for r in outcome.rules} == {"xor r0d, r0d"}
    flags = worker.prove(work("xor r0d, r0d", "mov r0d, 0", pattern="mov r0, 0", constants=(), live=mask("r0 CF")))
    assert {str(r.replacement[0]) for r in flags.rules} == {"mov r0d, 0"}


class Counting(Prover):
    """A prover that remembers what it was asked."""

    def __init__(self):
        super().__init__((100, 2000))
        self.asked = []

    def prove(self, pattern, replacement, required, **options):
        """Remember, then prove."""
        self.asked.append(("; ".join(map(str, replacement)), required))
        return super().prove(pattern, replacement, required, **options)


@pytest.fixture
def counting(worker, monkeypatch):
    """The worker's prover, counting."""
    made = Counting()
    monkeypatch.setattr(worker, "_prover", made)
    return made


def known(text, verdict):
    """A verdict from the database."""
    opinions = tuple(
        (p.encoding, p.solver, p.version, p.limit_ms, p.query_digest) for p in [Proof("functional", "bitwuzla", "1", 1, "a")] * 2
    )
    return {(text, LIVE): Verdict(text, LIVE, LIVE, verdict, "", opinions if verdict == "proved" else (), 1.0)}


@pytest.mark.parametrize(("verdict", "n_rules"), [("proved", 1), ("refuted", 0), ("unknown", 0)])
def test_known_verdicts_are_not_asked_again(worker, counting, verdict, n_rules):
    """What the database knows is taken from there, whatever it is."""
    outcome = worker.prove(work(GOOD, known=known(GOOD, verdict)))
    assert counting.asked == []
    assert outcome.verdicts == ()
    assert len(outcome.rules) == n_rules


def test_nothing_is_asked_twice(worker, counting, monkeypatch):
    """Both cost models share the verdicts of one work."""
    monkeypatch.setattr(worker_module, "agreeing", lambda *_: -1)
    outcome = worker.prove(work(GOOD, BAD, "lea r0d, [r1+1]"))
    assert len(counting.asked) == len(set(counting.asked))
    assert len(outcome.verdicts) == len(counting.asked)


@pytest.mark.parametrize(
    ("replayed", "reason"),
    [(Replayed(64, 1), "contradicts"), (Replayed(0, 0), "no constants"), (OracleFault("left the code"), "left the code")],
)
def test_a_proof_that_cannot_be_replayed_is_no_proof(worker, monkeypatch, replayed, reason):
    """Where the emulator contradicts, or cannot run, the verdict is unknown, and there is no rule."""

    def replay(*_):
        if isinstance(replayed, Exception):
            raise replayed
        return replayed

    monkeypatch.setattr(worker_module, "replay_rule", replay)
    outcome = worker.prove(work(GOOD))
    assert outcome.rules == ()
    assert {v.verdict for v in outcome.verdicts} == {"unknown"}
    assert reason in outcome.verdicts[0].reason


def test_undecided_is_unknown(worker, monkeypatch):
    """What the solvers leave open is stored as unknown, and is no rule."""
    monkeypatch.setattr(Prover, "prove", lambda *_, **__: Undecided("timeout", 5.0))
    outcome = worker.prove(work(GOOD))
    assert outcome.rules == ()
    assert [(v.verdict, v.reason) for v in outcome.verdicts[:1]] == [("unknown", "timeout")]


def test_a_wrong_proof_is_caught_by_the_emulator(worker, monkeypatch):
    """A prover that claims too much is contradicted by the bytes."""
    monkeypatch.setattr(worker_module, "agreeing", lambda *_: -1)
    monkeypatch.setattr(Prover, "prove", lambda *_, **__: Proved(LIVE, LIVE, (), 1.0))
    outcome = worker.prove(work(BAD))
    assert outcome.rules == ()
    assert outcome.verdicts[0].reason == "the emulator contradicts the proof"


def test_several_goals_share_a_rule(worker, counting):
    """A goal that a rule of the same work serves gets no second proof."""
    goals = (Goal(1, mask("r0"), 3, "a:0x1", (GOOD,)), Goal(2, mask("r0d"), 4, "b:0x2", (GOOD,)))
    outcome = worker.prove(Work(PATTERN, (29,), ("size", "time"), goals))
    assert set(outcome.improved) == {1, 2}
    assert len(outcome.rules) == 1
    assert len(counting.asked) == 1
    assert mask_text(outcome.rules[0].preserves) == "r0 r1"

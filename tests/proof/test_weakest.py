"""The least that must be assumed of memory."""

import pytest
from asm import mask, seq

from ruledb.machine.policy import STRICT
from ruledb.proof.prover import Proved, Refuted, Undecided
from ruledb.proof.replay import replay_rule
from ruledb.proof.weakest import conditions_for, prove_weakest


@pytest.mark.parametrize(
    ("left", "right", "live", "text"),
    [
        ("mov r0d, r1d; add r0d, 5", "lea r0d, [r1+5]", "r0", "policy strict"),
        ("mov r0d, dword ptr [r1+c0]; add r2d, r0d", "add r2d, dword ptr [r1+c0]", "r2", "policy strict"),
        ("mov r0d, dword ptr [rip+c0]; add r1d, r0d", "add r1d, dword ptr [rip+c0]", "r1", "policy strict"),
        ("lea r0, [rip+c0]; mov r1d, dword ptr [r0+c1]", "mov r1d, dword ptr [rip+(c0 + c1)]", "r1", "policy strict"),
        ("lea r0, [r1+c0]; mov r2d, dword ptr [r0+c1]", "mov r2d, dword ptr [r1+(c0 + c1)]", "r2", "policy strict"),
        ("sub r0d, r1d; test r0d, r0d; jne L", "sub r0d, r1d; jne L", "r0", "policy strict"),
        ("push r0; pop r1", "mov r1, r0", "r1", "policy strict, assuming private(rsp-8), dead(rsp-8)"),
        ("push r0; push r1; pop r2; pop r3", "mov r2, r1; mov r3, r0", "r2 r3", "policy strict, assuming private(rsp-16), dead(rsp-16)"),
        ("mov qword ptr [rsp+c0], r0; mov r1, qword ptr [rsp+c0]", "mov qword ptr [rsp+c0], r0; mov r1, r0", "r1", "policy stack"),
        (
            "mov qword ptr [r2+c0], r0; mov r1, qword ptr [r2+c0]",
            "mov qword ptr [r2+c0], r0; mov r1, r0",
            "r1",
            "policy stack, assuming stack(r2)",
        ),
    ],
)
def test_the_first_policy_that_suffices_is_taken(prover, oracle, left, right, live, text):
    """Nothing is assumed that the proof does not need, and the emulator sees no difference on registers and constants of its choice."""
    conditions, verdict = prove_weakest(prover, seq(left), seq(right), mask(live), plausible=0)
    assert isinstance(verdict, Proved)
    assert str(conditions) == text
    seen = replay_rule(oracle, seq(left), seq(right), verdict.preserves & verdict.always_defined, conditions)
    assert seen.runs > 0
    assert not seen.differing


def test_what_no_policy_allows_is_refuted(prover):
    """Without a policy that suffices the verdict is that of the strict one."""
    conditions, verdict = prove_weakest(prover, seq("mov dword ptr [r0], r1d"), seq("mov dword ptr [r0], r2d"), 0)
    assert (conditions, type(verdict)) == (STRICT, Refuted)


def test_what_is_left_open_stays_open(prover, monkeypatch):
    """A policy under which no solver answers leaves the whole undecided."""
    monkeypatch.setattr(
        type(prover), "prove", lambda *_, conditions, **__: Undecided("timeout", 1.0) if conditions.bases else Refuted(None, "no")
    )
    conditions, verdict = prove_weakest(prover, seq("mov r0, qword ptr [r1]"), seq("mov r0, qword ptr [r1]"), 0)
    assert isinstance(verdict, Undecided)
    assert conditions.bases


def test_nothing_is_assumed_of_windows_without_memory():
    """Windows of registers alone are tried once."""
    assert list(conditions_for(seq("mov r0d, r1d; lea r0, [r0+8]"))) == [STRICT]

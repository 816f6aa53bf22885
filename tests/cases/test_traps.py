"""Rewrites that look right and are wrong: the checker refuses them, and no rule performs them."""

from dataclasses import dataclass

import pytest
from asm import RULES, rule
from reading import cases

from ruledb.checking import check
from ruledb.machine.canonical import bind, canonicalise, to_canonical_mask
from ruledb.machine.instruction import sequence_text
from ruledb.machine.policy import Conditions
from ruledb.machine.registers import ALL_REGISTERS, family_mask
from ruledb.proof.prover import written_families
from ruledb.request import unmodelled
from ruledb.semantics.symbolic import reads_and_writes

TRAPS = cases("traps", "output")


SHARED_WITH_THREADS = [t for t in TRAPS if "threads" in t.features]


@pytest.mark.parametrize("trap", [t for t in TRAPS if t not in SHARED_WITH_THREADS], ids=str)
def test_the_checker_refuses(trap, prover):
    """The wrong output is different, with a state on which the emulator saw it."""
    answer = check(trap.window, trap.other, trap.live, trap.scratch, prover, march=trap.march)
    assert answer.verdict == "different"
    assert answer.confirmed
    assert answer.left != answer.right


@pytest.mark.parametrize("trap", SHARED_WITH_THREADS, ids=str)
def test_the_checker_refuses_what_only_other_threads_see(trap, prover):
    """What no state of one thread shows is refused by the memory policy or a barrier, which the reason names."""
    answer = check(trap.window, trap.other, trap.live, trap.scratch, prover)
    assert answer.verdict == "different"
    assert answer.reason.startswith(("only the memory policy strict forbids it", "barrier lock"))
    assert not answer.confirmed


@pytest.mark.parametrize("policy", ["strict", "stack", "private", "plain"])
@pytest.mark.parametrize("trap", [t for t in TRAPS if "memory" in t.features and not unmodelled((*t.window, *t.other))], ids=str)
def test_no_policy_performs_a_trap_of_one_thread(trap, policy, prover):
    """Promises about memory let through what other threads would see, and nothing else."""
    answer = check(trap.window, trap.other, trap.live, trap.scratch, prover, march=trap.march, conditions=Conditions(policy))
    assert answer.verdict == ("equivalent" if trap in SHARED_WITH_THREADS and (policy, trap.id) in _PROMISED else "different")


_PROMISED = {("plain", "store-first-dropped"), ("plain", "load-doubled")}
"""Policies under which a trap of several threads is none."""


@pytest.mark.parametrize("trap", [t for t in TRAPS if not unmodelled(t.window)], ids=str)
def test_the_checker_accepts_the_window_itself(trap, prover):
    """Each window stands for itself: the refusal is about the output."""
    assert check(trap.window, trap.window, trap.live, 0, prover, march=trap.march).verdict == "equivalent"


@dataclass(frozen=True)
class Rewrite:
    """A trap's window after a rule was applied to a part of it."""

    rule: object
    window: tuple


def rewrites(trap, rules):
    """Every window that one application of a rule makes of the trap's; the instructions between a part's stay where they are."""
    by_pattern = {}
    for each in rules:
        by_pattern.setdefault(sequence_text(each.pattern), []).append(each)
    untouched = ALL_REGISTERS & ~sum(map(family_mask, written_families(trap.window)))
    behind = [trap.live | untouched]
    for instruction in reversed(trap.window[1:]):
        reads, _, kills = reads_and_writes(instruction)
        behind.append(behind[-1] & ~kills | reads)
    behind.reverse()
    n = len(trap.window)
    for start in range(n):
        for end in range(start + 1, n + 1):
            for literal in (False, True):
                canonical = canonicalise(trap.window[start:end], literal=literal)
                for each in by_pattern.get(canonical.text, ()):
                    if not to_canonical_mask(behind[end - 1], canonical, each.touched) & ~each.preserves:
                        replacement = bind(each.replacement, canonical.families, canonical.constants)
                        yield Rewrite(each, (*trap.window[:start], *replacement, *trap.window[end:]))


def fallen_for(rules, prover):
    """Rewrites of traps that are wrong."""

    def is_wrong(trap, made):
        return made.window == trap.other or check(trap.window, made.window, trap.live, 0, prover, march=trap.march).verdict != "equivalent"

    return [
        f"{trap}: {made.rule.text}"
        for trap in TRAPS
        if not unmodelled(trap.window)
        for made in rewrites(trap, rules)
        if is_wrong(trap, made)
    ]


def test_no_rule_falls_for_a_trap(trained, prover):
    """Whatever rules make of any part of a trap's window is right."""
    assert fallen_for([*trained[0].rules(), *RULES], prover) == []


@pytest.mark.parametrize(
    ("pattern", "replacement", "preserves"),
    [
        ("mov r0d, 0", "xor r0d, r0d", "r0 all"),
        ("add r0d, r1d", "lea r0d, [r0+r1]", "r0 r1 all"),
        ("add r0d, c0; test r0d, r0d", "add r0d, c0", "r0 SF ZF OF"),
        ("or r0d, 0", "", "r0"),
        ("neg r0d", "not r0d; inc r0d", "r0 CF"),
        ("imul r0d, r1d, 2", "mov r0d, r1d; shl r0d, 1", "r0 r1 CF"),
    ],
)
def test_wrong_rules_fall_for_traps(prover, pattern, replacement, preserves):
    """A rule that claims too much is seen to perform a trap."""
    assert fallen_for([rule(pattern, replacement, preserves)], prover)

"""Prover and emulator agree about random windows with memory: what is proved is never seen to differ, what is refuted is."""

import random

import pytest
from asm import code

from ruledb.machine.policy import read_conditions
from ruledb.machine.registers import ALL_FLAGS, ALL_REGISTERS, FLAG_BIT, RSP, family_mask
from ruledb.proof.prover import FIRST, Proved, Prover, Refuted
from ruledb.proof.replay import replay_counterexample, replay_rule

_REGISTERS = ("rax", "rcx", "rdx")
_NARROW = {"rax": ("al", "ax", "eax"), "rcx": ("cl", "cx", "ecx"), "rdx": ("dl", "dx", "edx")}
_ADDRESSES = ("[rdi]", "[rdi+2]", "[rsi]", "[rsi+rax]", "[rbp-8]", "[rbp-6]", "[rsp+8]")
_PLAIN = ("mov {r}, {s}", "lea {r}, [{s}+8]", "add {r}, {s}", "push {r}", "pop {r}", "xor {n}, {n}", "mov {r}, 5")
_LOADS = ("mov {n}, {m}", "add {n}, {m}", "cmp {n}, {m}", "cmove {w}, {m}")
_STORES = ("mov {m}, {n}", "or {m}, {n}", "xadd {m}, {n}", "cmpxchg {m}, {r}")


def _instruction(rng: random.Random) -> str:
    r, s = rng.choice(_REGISTERS), rng.choice(_REGISTERS)
    n = rng.choice((*_NARROW[r], r))
    shape = rng.choice((*_PLAIN, *_LOADS * 2, *_STORES * 2))
    return shape.format(r=r, s=s, n=n, w=r, m=rng.choice(_ADDRESSES))


def _changed(rng: random.Random, window: list[str]) -> list[str]:
    """A window that is sometimes the same in effect: two instructions exchanged, one dropped, one repeated, one other."""
    other, i = list(window), rng.randrange(len(window))
    match rng.randrange(4):
        case 0 if len(other) > 1:
            j = (i + 1) % len(other)
            other[i], other[j] = other[j], other[i]
        case 1 if len(other) > 1:
            del other[i]
        case 2:
            other.insert(i, other[i])
        case _:
            other[i] = _instruction(rng)
    return other


_CONDITIONS = (
    ("strict", ()), ("stack", ()), ("stack", ("stack(rbp)",)), ("private", ("stack(rbp)",)), ("plain", ()), ("strict", ("private(rsp-8)", "dead(rsp-8)")),
)  # fmt: skip


_FLAGS = ALL_FLAGS & ~FLAG_BIT["AF"]
"""Of these instructions, AF alone may be undefined: what differs in an undefined value need not show in the emulator."""


def _agrees(prover, oracle, rng) -> str:
    """What was seen of one random pair: proved, refuted, confirmed or undecided."""
    window = [_instruction(rng) for _ in range(rng.randint(1, 4))]
    left, right = code("; ".join(window)), code("; ".join(_changed(rng, window)))
    conditions = read_conditions(*rng.choice(_CONDITIONS))
    live = rng.choice((0, ALL_REGISTERS, ALL_REGISTERS | _FLAGS)) | family_mask(RSP)
    verdict = prover.prove(left, right, live, plausible=0, scratch=ALL_REGISTERS, conditions=conditions)
    match verdict:
        case Proved(preserves, always_defined):
            seen = replay_rule(oracle, left, right, preserves & always_defined, conditions)
            assert not seen.differing, (left, right, conditions)
            return "proved"
        case Refuted(None):
            return "refuted"
        case Refuted(example):
            seen = replay_counterexample(oracle, left, right, example)
            return "confirmed" if seen.differing else "unconfirmed"
    return "undecided"


def _counts(oracle, n: int, seed: int) -> dict[str, int]:
    rng, prover = random.Random(seed), Prover((2000,), FIRST, None)
    counts: dict[str, int] = {}
    for _ in range(n):
        what = _agrees(prover, oracle, rng)
        counts[what] = counts.get(what, 0) + 1
    return counts


def test_prover_and_emulator_agree_about_memory(oracle):
    """No proof is contradicted, and every state that a refutation gives shows in the emulator."""
    counts = _counts(oracle, 150, 11)
    assert counts["proved"] > 10
    assert counts["confirmed"] > 50
    assert counts.get("unconfirmed", 0) == 0


@pytest.mark.long
def test_prover_and_emulator_agree_about_memory_at_length(oracle):
    """The same on thousands of pairs."""
    counts = _counts(oracle, 5_000, 12)
    assert counts.get("unconfirmed", 0) == 0

"""Under how little can be assumed of memory a replacement holds: policies tried from the most careful one on."""

from collections.abc import Iterator, Sequence

from ruledb.machine.instruction import Instruction, Mem
from ruledb.machine.policy import STRICT, Conditions
from ruledb.machine.registers import RSP
from ruledb.proof.prover import Proved, Prover, Undecided, Verdict
from ruledb.semantics.forms import bind, features

__all__ = ["conditions_for", "prove_weakest"]


def conditions_for(pattern: Sequence[Instruction]) -> Iterator[Conditions]:
    """
    What is worth assuming of *pattern*, least first: nothing; that what it pushes is dead; that its bases address the frame; both.

    The policies ``private`` and ``plain`` are not among them: a user, or an analysis of the whole function, has to give them.
    """
    yield STRICT
    accesses = [o for i in pattern for o in i.operands if isinstance(o, Mem) and "memory" in features(i)]
    pushed = _pushed_bytes(pattern)
    bases = frozenset(o.base.family for o in accesses if o.base is not None) - {RSP}
    if pushed:
        yield Conditions("strict", private_bytes=pushed, dead_bytes=pushed)
    if any(o.base is not None for o in accesses):
        yield Conditions("stack")
        for base in sorted(bases):
            yield Conditions("stack", frozenset({base}))
    if pushed and bases:
        for base in sorted(bases):
            yield Conditions("stack", frozenset({base}), pushed, pushed)


def _pushed_bytes(pattern: Sequence[Instruction]) -> int:
    """How far below rsp *pattern* pushes, counted from where it starts."""
    depth = lowest = 0
    for instruction in pattern:
        if instruction.mnemonic in ("push", "pop"):
            n_bytes = bind(instruction).widths[0] // 8
            depth += n_bytes if instruction.mnemonic == "push" else -n_bytes
            lowest = max(lowest, depth)
    return lowest


def prove_weakest(
    prover: Prover,
    pattern: Sequence[Instruction],
    replacement: Sequence[Instruction],
    required: int,
    *,
    plausible: int = -1,
    wants_state: bool = False,
) -> tuple[Conditions, Verdict]:
    """
    The verdict under the first of `conditions_for` that proves the replacement; where none does, that under the strict policy.

    A verdict that is left open under one of them is returned, so that it is stored as such. *wants_state* is as for `Prover.prove`.
    """
    verdicts = {}
    for conditions in conditions_for(pattern):
        verdict = prover.prove(pattern, replacement, required, plausible=plausible, conditions=conditions, wants_state=wants_state)
        if isinstance(verdict, Proved):
            return conditions, verdict
        verdicts[conditions] = verdict
    undecided = [(c, v) for c, v in verdicts.items() if isinstance(v, Undecided)]
    return undecided[0] if undecided else (STRICT, verdicts[STRICT])

"""
Replay in the emulator: run the bytes of both sides from the same states and compare what is left.

This is the independent witness. It shares no meaning with the prover: only encodings go in and machine states come out. Windows
with memory run in memory, from states whose pointers are equal, overlap, or lie far apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ruledb.machine.canonical import bind, domains, example_families
from ruledb.machine.codec import CodecError, encode
from ruledb.machine.constant import symbols_in
from ruledb.machine.instruction import Instruction, Label, Mem
from ruledb.machine.policy import STRICT, Conditions
from ruledb.machine.registers import EFFECTS, FAULTS, FLAGS, N_HARDWARE, RSP, VIRTUAL
from ruledb.machine.states import Words, directed_states
from ruledb.proof.differing import differing, hardware_mask, packed_flags, rflags_of
from ruledb.proof.memory_states import content, pointer_rows
from ruledb.proof.oracle import STATUS_BITS, Oracle
from ruledb.proof.prover import Counterexample
from ruledb.proof.replay_memory import needs_memory, run_pair, window_code
from ruledb.semantics.symbolic import IMAGE

__all__ = [
    "Outcome", "differing", "example_row", "hardware_mask", "packed_flags", "replay_counterexample", "replay_rule", "rflags_of",
]  # fmt: skip

_STATES = 64
_CONSTANTS = 6
_EFFECTS = sum(EFFECTS.values())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a replay saw: *runs* states on both sides; *differing*, a location mask over hardware families; the first such state."""

    runs: int
    differing: int
    left: tuple[int, ...] = ()
    right: tuple[int, ...] = ()


def _code(instructions: Sequence[Instruction], families: Sequence[int], constants: Sequence[int]) -> bytes:
    return b"".join(map(encode, bind(instructions, families, constants)))


def replay_rule(
    oracle: Oracle,
    pattern: Sequence[Instruction],
    replacement: Sequence[Instruction],
    mask: int,
    conditions: Conditions = STRICT,
) -> Outcome:
    """
    Both sides from edge and random states, with several values for the constants; *mask* over canonical families.

    Leave out of *mask* what the pattern does not define; effects on memory always count. ``runs == 0`` says that no constants could be
    encoded on both sides, or that the pattern never ran to its end.
    """
    families = example_families((*pattern, *replacement))
    bits = domains(pattern)
    states = directed_states(N_HARDWARE, bits, _STATES)
    rows = np.zeros((_STATES, 17), np.uint64)
    rows[:, :16] = states.registers.T
    rows[:, 16] = rflags_of(states.flags)
    tried = {tuple(int(v) for v in column) for column in states.constants.astype(np.int64).T[:24]} | {(1,) * len(bits), (12,) * len(bits)}
    runs = 0
    for constants in sorted(tried)[:: max(1, len(tried) // _CONSTANTS)]:
        if needs_memory(pattern, replacement):
            seen = _replay_in_memory(oracle, (pattern, replacement), (families, _addressable(pattern, constants)), rows, mask, conditions)
            runs += seen.runs
            if seen.differing:
                return Outcome(runs, seen.differing, seen.left, seen.right)
            continue
        try:
            codes = [_code(side, families, constants) for side in (pattern, replacement)]
        except (CodecError, ValueError):
            continue
        left, right = (oracle.run(code, rows) for code in codes)
        runs += _STATES
        found, first = differing(left, right, hardware_mask(mask, families))
        if found:
            return Outcome(runs, found, tuple(left[first].tolist()), tuple(right[first].tolist()))
    return Outcome(runs, 0)


_LOW_ADDRESS = 0x40000800


def _addressable(pattern: Sequence[Instruction], constants: Sequence[int]) -> tuple[int, ...]:
    """*constants*, those of rip-relative addresses where the emulator has memory."""
    rip = {s for i in pattern for o in i.operands if isinstance(o, Mem) and o.rip for s in symbols_in(o.displacement)}
    return tuple(_LOW_ADDRESS + value % 16 if i in rip else value for i, value in enumerate(constants))


def _replay_in_memory(
    oracle: Oracle,
    sides: tuple[Sequence[Instruction], Sequence[Instruction]],
    binding: tuple[Sequence[int], Sequence[int]],
    rows: Words,
    mask: int,
    conditions: Conditions,
) -> Outcome:
    try:
        bound = [bind(side, *binding, _ANYWHERE) for side in sides]
        codes = window_code(bound[0]), window_code(bound[1])
    except (CodecError, ValueError):
        return Outcome(0, 0)
    frame = set(hardware_families(conditions.frame, binding[0])) if conditions.policy == "private" else set()
    apart = frame | ({RSP} if conditions.private_bytes else set())
    wanted = hardware_mask(mask, binding[0]) | _EFFECTS
    runs = 0
    for seed, row in enumerate(pointer_rows(rows, (*bound[0], *bound[1]), apart.__contains__)):
        pair = run_pair(oracle, codes, row, content(seed % 4, {}), wanted, conditions)
        runs += pair is not None
        if pair is not None and pair.differing:
            return Outcome(runs, pair.differing, tuple(pair.left.state.tolist()), tuple(pair.right.state.tolist()))
    return Outcome(runs, 0)


_ANYWHERE = Label("0x0")
"""Target of closing jumps in the emulator: `window_code` sees to where they go."""


def hardware_families(named: frozenset[int], families: Sequence[int]) -> tuple[int, ...]:
    """*named* with canonical registers replaced by their hardware *families*."""
    return tuple(families[f - VIRTUAL] if f >= VIRTUAL else f for f in named)


def example_row(example: Counterexample, families: Sequence[int] = ()) -> Words:
    """The row of the emulator that *example* describes; canonical registers are in *families*."""
    row = np.zeros(N_HARDWARE + 1, np.uint64)
    for name, value in example.inputs.items():
        if name in FLAGS:
            row[N_HARDWARE] |= np.uint64(value << STATUS_BITS[name])
        elif name[0] == "r" and name[1:].isdigit():
            (family,) = hardware_families(frozenset({int(name[1:])}), families)
            row[family] = value
    return row


def replay_counterexample(
    oracle: Oracle, pattern: Sequence[Instruction], replacement: Sequence[Instruction], example: Counterexample
) -> Outcome:
    """Both sides from the state of *example*: do its locations differ in the emulator, too?"""
    families = example_families((*pattern, *replacement))
    row = example_row(example, families)
    constants = [example.inputs.get(f"c{i}", 1) for i in range(len(domains(pattern)))]
    mask = hardware_mask(example.locations, families) | FAULTS  # what faults never gets to where the example differs
    try:
        if not needs_memory(pattern, replacement):
            left, right = (oracle.run(_code(side, families, constants), row[None]) for side in (pattern, replacement))
            found, _ = differing(left, right, mask)
            return Outcome(1, found, tuple(left[0].tolist()), tuple(right[0].tolist()))
        image = example.inputs.get(IMAGE, 0)
        one, other = (window_code(bind(side, families, constants, _ANYWHERE), image) for side in (pattern, replacement))
    except (CodecError, ValueError):
        return Outcome(0, 0)
    pair = run_pair(oracle, (one, other), row, content(0, example.memory), mask, None)
    if pair is None:
        return Outcome(0, 0)
    return Outcome(1, pair.differing, tuple(pair.left.state.tolist()), tuple(pair.right.state.tolist()))

"""
Replay in the emulator: run the bytes of both sides from the same states and compare what is left.

This is the independent witness. It shares no meaning with the prover: only encodings go in and machine states come out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ruledb.machine.canonical import bind, domains, example_families
from ruledb.machine.codec import CodecError, encode
from ruledb.machine.instruction import Instruction
from ruledb.machine.registers import FLAG_BIT, FLAGS, N_HARDWARE, N_LANES, VIRTUAL, lane_bits
from ruledb.machine.states import Flags, Words, directed_states
from ruledb.proof.oracle import STATUS_BITS, Oracle, flag_column, rflags_column
from ruledb.proof.prover import Counterexample

__all__ = ["Outcome", "differing", "hardware_mask", "packed_flags", "replay_counterexample", "replay_rule", "rflags_of"]

_STATES = 64
_CONSTANTS = 6


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a replay saw: *runs* states on both sides; *differing*, a location mask over hardware families; the first such state."""

    runs: int
    differing: int
    left: tuple[int, ...] = ()
    right: tuple[int, ...] = ()


def hardware_mask(mask: int, families: Sequence[int]) -> int:
    """*mask* with the canonical registers renamed to their hardware *families*."""
    plain = mask & ~(((1 << N_LANES * len(families)) - 1) << (N_LANES * VIRTUAL))
    for k, family in enumerate(families):
        plain |= (mask >> (N_LANES * (VIRTUAL + k)) & 0b1111) << (N_LANES * family)
    return plain


def rflags_of(flags: Flags) -> Words:
    """The oracle's rflags column of packed flags (bit i is flag i of `FLAGS`)."""
    return rflags_column({name: flags >> np.uint8(i) & np.uint8(1) for i, name in enumerate(FLAGS)}, flags.shape[0])


def packed_flags(rows: Words) -> Flags:
    """Packed flags of the oracle's rows."""
    packed = sum(flag_column(rows, name) << np.uint64(i) for i, name in enumerate(FLAGS))
    return np.asarray(packed, np.uint8)


def differing(left: Words, right: Words, mask: int) -> tuple[int, int]:
    """Locations of *mask* (hardware families) in which any row of the oracle differs, and the first such row."""
    found, first = 0, left.shape[0]
    for family in range(N_HARDWARE):
        for lane, (low, n) in enumerate(lane_bits):
            bit = 1 << (N_LANES * family + lane)
            if mask & bit:
                rows = np.flatnonzero((left[:, family] ^ right[:, family]) >> np.uint64(low) & np.uint64((1 << n) - 1))
                if rows.size:
                    found, first = found | bit, min(first, int(rows[0]))
    for name in FLAGS:
        if mask & FLAG_BIT[name]:
            rows = np.flatnonzero((left[:, 16] ^ right[:, 16]) >> np.uint64(STATUS_BITS[name]) & np.uint64(1))
            if rows.size:
                found, first = found | FLAG_BIT[name], min(first, int(rows[0]))
    return found, first


def _code(instructions: Sequence[Instruction], families: Sequence[int], constants: Sequence[int]) -> bytes:
    return b"".join(map(encode, bind(instructions, families, constants)))


def replay_rule(oracle: Oracle, pattern: Sequence[Instruction], replacement: Sequence[Instruction], mask: int) -> Outcome:
    """
    Both sides from edge and random states, with several values for the constants; *mask* over canonical families.

    Leave out of *mask* what the pattern does not define. ``runs == 0`` says that no constants could be encoded on both sides.
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


def replay_counterexample(
    oracle: Oracle, pattern: Sequence[Instruction], replacement: Sequence[Instruction], example: Counterexample
) -> Outcome:
    """Both sides from the state of *example*: do its locations differ in the emulator, too?"""
    families = example_families((*pattern, *replacement))
    row = np.zeros((1, 17), np.uint64)
    n_symbols = len(domains(pattern))
    constants = [example.inputs.get(f"c{i}", 1) for i in range(n_symbols)]
    for name, value in example.inputs.items():
        if name in FLAGS:
            row[0, 16] |= np.uint64(value << STATUS_BITS[name])
        elif name[0] == "r":
            family = int(name[1:])
            row[0, families[family - VIRTUAL] if family >= VIRTUAL else family] = value
    try:
        left, right = (oracle.run(_code(side, families, constants), row) for side in (pattern, replacement))
    except (CodecError, ValueError):
        return Outcome(0, 0)
    found, _ = differing(left, right, hardware_mask(example.locations, families))
    return Outcome(1, found, tuple(left[0].tolist()), tuple(right[0].tolist()))

"""
May one window replace another? The answer of the prover, and where that is no, a state that shows it, seen in the emulator.

Where an instruction has no semantics the emulator alone can still show a difference; it can never show equivalence. What no state of one
thread shows, a barrier or the memory policy may still forbid: the reason says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ruledb.machine.codec import CodecError
from ruledb.machine.instruction import Instruction, constants_of
from ruledb.machine.march import BASELINE
from ruledb.machine.policy import STRICT, Conditions
from ruledb.machine.registers import EFFECTS, FLAG_BIT, FLAGS, MEMORY, N_HARDWARE, RSP, Register, families_of, flags_of, mask_text
from ruledb.machine.states import Words, directed_states
from ruledb.proof.differing import differing, rflags_of
from ruledb.proof.memory_states import content, pointer_rows
from ruledb.proof.oracle import STATUS_BITS, Oracle, OracleFault, Run
from ruledb.proof.prover import Counterexample, Proved, Prover, Refuted, Undecided
from ruledb.proof.replay import example_row
from ruledb.proof.replay_memory import Pair, needs_memory, run_pair, window_code
from ruledb.request import barriers, runs_alone, unmodelled
from ruledb.search.targets import live_bits
from ruledb.semantics.forms import features
from ruledb.semantics.symbolic import IMAGE

__all__ = ["Answer", "Seen", "check", "seen_json", "state_json"]

_STATES = 4096
_STATES_IN_MEMORY = 192


@dataclass(frozen=True, slots=True)
class Seen:
    """One side in the emulator: the row behind it, the bytes that differ from the other side's, and what it did besides."""

    row: tuple[int, ...]
    memory: Mapping[int, int] = field(default_factory=dict)
    is_taken: bool = False
    faults: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """
    *verdict* is ``equivalent``, ``different``, ``unknown`` or ``unsupported``.

    Attributes:
        state: The inputs that tell the two apart, as one row of the oracle; None where there is none.
        memory: Bytes of that state by address.
        left, right: Each side behind it.
        confirmed: Whether the emulator saw the difference.

    """

    verdict: str
    reason: str = ""
    state: tuple[int, ...] | None = None
    memory: Mapping[int, int] = field(default_factory=dict)
    left: Seen | None = None
    right: Seen | None = None
    confirmed: bool = False
    proof: Proved | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    """Two windows, and the mask of what must agree behind them."""

    left: tuple[Instruction, ...]
    right: tuple[Instruction, ...]
    live: int


def check(
    left: tuple[Instruction, ...],
    right: tuple[Instruction, ...],
    live: int,
    scratch: int,
    prover: Prover,
    *,
    conditions: Conditions = STRICT,
    march: str = BASELINE,
    is_memory_live: bool = True,
) -> Answer:
    """Whether *right* may replace *left* where *live* is live and *scratch* is dead, under *conditions* on memory."""
    effects = sum(EFFECTS.values()) & ~(0 if is_memory_live else MEMORY)
    question = _Question(left, right, live | effects)
    if reason := unmodelled(left) or unmodelled(right):
        seen = _search(question, _rows(left, right)) if runs_alone(left) and runs_alone(right) else None
        return seen or _by_barriers(left, right) or Answer("unsupported", reason)
    options: Any = {"conditions": conditions, "march": march, "is_memory_live": is_memory_live}
    match prover.prove(left, right, live, plausible=0, scratch=scratch, **options):
        case Proved() as proof:
            accesses = any("memory" in features(i) for i in (*left, *right))
            return Answer("equivalent", str(conditions) if accesses else "", proof=proof)
        case Undecided(reason, _):
            return Answer("unknown", reason)
        case Refuted(None, reason, _, by_policy):
            return (None if by_policy else _search(question, _rows(left, right))) or Answer("different", reason)
        case Refuted(Counterexample() as example, reason, _):
            row = example_row(example)[None]
            # A difference that lies in an undefined value shows in some other state, if at all.
            seen = _search(question, row, example) or _search(question, _rows(left, right, row))
            return seen or Answer("different", f"{reason}, where a value is undefined", tuple(row[0].tolist()), example.memory)
    raise AssertionError


def _by_barriers(left: Sequence[Instruction], right: Sequence[Instruction]) -> Answer | None:
    """A refusal where the replacement has other barriers than the window: what they do, to other threads too, would change."""
    one, other = barriers(left), barriers(right)
    if one == other:
        return None
    instruction, reason = (one or other)[0]
    return Answer("different", f"barrier {reason}: the window and its replacement do not both have {instruction}")


def _rows(left: Sequence[Instruction], right: Sequence[Instruction], near: Words | None = None) -> Words:
    """Directed states; half of them with the registers of *near* where the two sides read them."""
    special = [c for c in constants_of((*left, *right)) if isinstance(c, int)]
    in_memory = needs_memory(left, right)
    n = _STATES_IN_MEMORY if in_memory else _STATES
    states = directed_states(N_HARDWARE, (), n, special)
    rows = np.zeros((n, N_HARDWARE + 1), np.uint64)
    rows[:, :N_HARDWARE] = states.registers.T
    rows[:, N_HARDWARE] = rflags_of(states.flags)
    if near is not None:
        rng = np.random.default_rng(3)
        keep = rng.random((n, N_HARDWARE)) < 0.7
        rows[:, :N_HARDWARE] = np.where(keep, near[0, :N_HARDWARE], rows[:, :N_HARDWARE])
    if in_memory:
        pointed = pointer_rows(rows, (*left, *right))
        rows[1::4], rows[2::4], rows[3::4] = pointed[1::4], pointed[2::4], pointed[3::4]
    return rows


def _search(question: _Question, rows: Words, example: Counterexample | None = None) -> Answer | None:
    """The first of *rows* (with the memory of *example*) on which the emulator sees something live differ."""
    image = example.inputs.get(IMAGE, 0) if example else 0
    try:
        codes = window_code(question.left, image), window_code(question.right, image)
    except CodecError:
        return None
    if needs_memory(question.left, question.right):
        return _search_in_memory(question, codes, rows, dict(example.memory) if example else {})
    oracle = Oracle()
    try:
        one, other = (oracle.run(code, rows) for code in codes)
    except OracleFault:
        return None
    found, first = differing(one, other, question.live)
    if not found:
        return None
    left, right = (Seen(tuple(side[first].tolist())) for side in (one, other))
    return Answer("different", f"differs in {mask_text(found)}", tuple(rows[first].tolist()), {}, left, right, confirmed=True)


def _search_in_memory(question: _Question, codes: tuple[bytes, bytes], rows: Words, cells: dict[int, int]) -> Answer | None:
    oracle = Oracle()
    for seed, row in enumerate(rows):
        pair = run_pair(oracle, codes, row, content(seed % 4, cells), question.live, None)
        if pair is not None and pair.differing:
            before = cells | {a: values[0] for a, values in pair.bytes_differing.items()}
            reason = f"differs in {mask_text(pair.differing)}"
            left, right = _seen(pair, pair.left, 1), _seen(pair, pair.right, 2)
            return Answer("different", reason, tuple(row.tolist()), before, left, right, confirmed=True)
    return None


def _seen(pair: Pair, run: Run, side: int) -> Seen:
    memory = {a: values[side] for a, values in pair.bytes_differing.items()}
    return Seen(tuple(run.state.tolist()), memory, run.is_taken, bool(run.fault))


def state_json(row: Sequence[int], mask: int | None = None, memory: Mapping[int, int] | None = None) -> dict[str, Any]:
    """A row by names: registers in hexadecimal, flags as 0 and 1, bytes of memory; with *mask* only its live parts."""
    registers: dict[str, str] = {}
    for family in range(N_HARDWARE) if mask is None else families_of(mask):
        if family < N_HARDWARE and (mask is not None or row[family] or family == RSP):
            bits = (1 << 64) - 1 if mask is None else live_bits(mask, family)
            registers[str(Register(family, 64))] = hex(row[family] & bits)
    names = FLAGS if mask is None else flags_of(mask)
    return {
        "regs": registers,
        "flags": {f: row[N_HARDWARE] >> STATUS_BITS[f] & 1 for f in names if mask is None or mask & FLAG_BIT[f]},
        "memory": {hex(a): hex(v) for a, v in sorted((memory or {}).items())},
    }


def seen_json(seen: Seen, mask: int) -> dict[str, Any]:
    """One side: as `state_json`, with whether it faults and, of what ends in a jump, whether that is taken."""
    return state_json(seen.row, mask, seen.memory) | {"fault": seen.faults, "taken": seen.is_taken}

"""What a user asks about a window: assembly text, live-out lists and scratch registers, read into values."""

import re
from collections.abc import Sequence

from ruledb.machine.codec import CodecError, UnknownMnemonic, encode_at, normalise
from ruledb.machine.instruction import Instruction, Label, Operand, Other, SyntaxProblem, parse_sequence
from ruledb.machine.policy import Conditions, read_conditions
from ruledb.machine.registers import ALL_FLAGS, EFFECTS, FLAG_BIT, RSP, families_of, family_mask, parse_mask
from ruledb.proof.prover import written_families
from ruledb.semantics.forms import barrier, features

__all__ = [
    "RequestError", "barriers", "conditions_of", "live_mask", "read_window", "register_list", "runs_alone", "unmodelled", "unsearchable",
]  # fmt: skip


class RequestError(ValueError):
    """A request cannot be understood; the message names what was given, what is expected and what to do."""


def read_window(text: str, *, may_be_empty: bool = False) -> tuple[Instruction, ...]:
    """
    The instructions of *text* as the decoder would give them.

    A closing jump has any name as its target. Local labels (``1:``, ``jne 1f``) become offsets in the window.

    Args:
        may_be_empty: Whether no instruction at all is one, too: what replaces a window may be nothing.

    Raises:
        RequestError: A line is no instruction, no such instruction exists, or there is none.

    """
    lines, labels = _without_labels(text)
    try:
        parsed = parse_sequence("\n".join(lines))
    except SyntaxProblem as problem:
        raise RequestError(f"{problem}") from None
    if not parsed and not may_be_empty:
        raise RequestError("no instruction given; expected Intel syntax such as 'mov eax, ebx; add eax, 1', or - for standard input")
    window = tuple(map(_normal, parsed))
    return _with_offsets(window, labels) if labels else window


_LABEL = re.compile(r"\s*(\w+):(?!\w)")


def _without_labels(text: str) -> tuple[list[str], dict[str, int]]:
    """The instructions of *text*, one a line, and for each label the number of the one behind it."""
    lines: list[str] = []
    labels: dict[str, int] = {}
    for piece in text.replace(";", "\n").splitlines():
        rest = piece.partition("#")[0]
        while (label := _LABEL.match(rest)) is not None and label[1] not in _SEGMENTS:
            labels[label[1]] = len(lines)
            rest = rest[label.end() :]
        lines += [rest] if rest.strip() else []
    return lines, labels


_SEGMENTS = frozenset({"cs", "ds", "es", "fs", "gs", "ss"})


def _with_offsets(window: tuple[Instruction, ...], labels: dict[str, int]) -> tuple[Instruction, ...]:
    """*window* with its jumps to *labels* (``1``, or ``1f`` and ``1b``) as jumps to offsets from its start."""
    offsets = [0] * (len(window) + 1)
    placed = window
    for _ in range(len(window) + 2):  # a jump only grows with distance, so this settles
        placed = tuple(Instruction(i.mnemonic, tuple(_offset(o, labels, offsets) for o in i.operands)) for i in window)
        sizes = [len(encode_at(i, start)) for i, start in zip(placed, offsets, strict=False)]
        offsets = [sum(sizes[:n]) for n in range(len(window) + 1)]
    return placed


def _offset(operand: Operand, labels: dict[str, int], offsets: list[int]) -> Operand:
    if not isinstance(operand, Label):
        return operand
    name = operand.name if operand.name in labels else operand.name.rstrip("fb")
    return Label(hex(offsets[labels[name]])) if name in labels else operand


def _normal(instruction: Instruction) -> Instruction:
    """The instruction as the decoder would give it; one that is real, but not for our encoder, as it stands."""
    try:
        return normalise(instruction)
    except UnknownMnemonic as problem:
        raise RequestError(f"{problem}; expected an x86-64 instruction") from None
    except CodecError as problem:
        if any(isinstance(o, Label | Other) for o in instruction.operands):
            return instruction
        raise RequestError(f"{problem}") from None


def unmodelled(instructions: tuple[Instruction, ...]) -> str:
    """Why a window cannot be reasoned about: its first barrier, or a jump that does not close it; empty if it can."""
    for number, instruction in enumerate(instructions):
        if reason := barrier(instruction):
            return f"{instruction}: {reason} is not modelled"
        if number < len(instructions) - 1 and any(isinstance(o, Label) for o in instruction.operands):
            return f"{instruction}: a branch is modelled at a window's end only"
    return ""


def unsearchable(instructions: tuple[Instruction, ...]) -> str:
    """Why a single window cannot be searched for: `unmodelled`, or what goes beyond registers and flags; empty if it can."""
    if reason := unmodelled(instructions):
        return reason
    found = [(i, sorted(missing)) for i in instructions if (missing := features(i) - {"memory", "branch"})]
    return f"{found[0][0]}: {found[0][1][0]} is not searched" if found else ""


def barriers(instructions: Sequence[Instruction]) -> list[tuple[Instruction, str]]:
    """The instructions that a replacement must keep, since other threads see them, each with the barrier's name."""
    named = [(i, barrier(i) or "") for i in instructions]
    return [(i, name if name == "lock" else "fence") for i, name in named if name == "lock" or i.mnemonic in _FENCES]


_FENCES = frozenset({"mfence", "lfence", "sfence"})


def runs_alone(instructions: tuple[Instruction, ...]) -> bool:
    """Whether the emulator can run the window: nothing leaves it but a closing jump."""
    return not any(i.mnemonic.startswith(("call", "ret", "jmp", "loop", "rep", "syscall", "int")) for i in instructions) and all(
        _is_number(o.name) for i in instructions[:-1] for o in i.operands if isinstance(o, Label)
    )


def _is_number(name: str) -> bool:
    return name.startswith("0x")


def conditions_of(policy: str, assumes: Sequence[str]) -> Conditions:
    """
    The conditions of the options ``--policy`` and ``--assume``.

    Raises:
        RequestError: One is unknown.

    """
    try:
        return read_conditions(policy, assumes)
    except ValueError as problem:
        raise RequestError(f"{problem}") from None


def live_mask(instructions: tuple[Instruction, ...], live_out: str | None, live_flags: str | None) -> int:
    """
    The location mask of the lists *live_out* and *live_flags* (None: all written registers, no flags). rsp is always live.

    Raises:
        RequestError: A name is no register, or no flag.

    """
    flags = 0
    for word in (live_flags or "").replace(",", " ").split():
        if word.lower() == "all":
            flags |= ALL_FLAGS
        elif word.upper() in FLAG_BIT:
            flags |= FLAG_BIT[word.upper()]
        else:
            raise RequestError(f"--live-flags {word}: expected some of {' '.join(FLAG_BIT)}, or all")
    if live_out is None:
        registers = sum(family_mask(f) for f in written_families(instructions)) if not unmodelled(instructions) else 0
    else:
        registers = register_list("--live-out", live_out)
    return registers | flags | family_mask(RSP)


def register_list(option: str, text: str) -> int:
    """
    The mask of a list of registers.

    Raises:
        RequestError: A name is no register.

    """
    try:
        mask = parse_mask(text)
    except ValueError:
        mask = -1
    if mask < 0 or mask & (ALL_FLAGS | sum(EFFECTS.values())) or any(f >= 16 for f in families_of(mask)):
        raise RequestError(f"{option} {text}: expected register names such as rax, ecx, dl")
    return mask

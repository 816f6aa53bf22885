"""What a user asks about a window: assembly text, live-out lists and scratch registers, read into values."""

from ruledb.machine.codec import CodecError, UnknownMnemonic, normalise
from ruledb.machine.instruction import Instruction, Label, Mem, Other, SyntaxProblem, parse_sequence
from ruledb.machine.registers import ALL_FLAGS, FLAG_BIT, RSP, families_of, family_mask, parse_mask
from ruledb.proof.prover import written_families
from ruledb.semantics.forms import barrier

__all__ = ["RequestError", "live_mask", "read_window", "register_list", "runs_alone", "unmodelled"]


class RequestError(ValueError):
    """A request cannot be understood; the message names what was given, what is expected and what to do."""


def read_window(text: str, *, may_be_empty: bool = False) -> tuple[Instruction, ...]:
    """
    The instructions of *text* as the decoder would give them.

    Args:
        may_be_empty: Whether no instruction at all is one, too: what replaces a window may be nothing.

    Raises:
        RequestError: A line is no instruction, no such instruction exists, or there is none.

    """
    try:
        parsed = parse_sequence(text)
    except SyntaxProblem as problem:
        raise RequestError(f"{problem}") from None
    if not parsed and not may_be_empty:
        raise RequestError("no instruction given; expected Intel syntax such as 'mov eax, ebx; add eax, 1', or - for standard input")
    return tuple(map(_normal, parsed))


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
    """Why a window cannot be reasoned about: its first barrier; empty if it can."""
    for instruction in instructions:
        if reason := barrier(instruction):
            return f"{instruction}: {reason} is not modelled"
    return ""


def runs_alone(instructions: tuple[Instruction, ...]) -> bool:
    """Whether the emulator can run the window without memory: no access, no jump."""
    operands = [o for i in instructions for o in i.operands]
    return not any(isinstance(o, Label) or (isinstance(o, Mem) and o.width) for o in operands)


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
    if mask < 0 or mask & ALL_FLAGS or any(f >= 16 for f in families_of(mask)):
        raise RequestError(f"{option} {text}: expected register names such as rax, ecx, dl")
    return mask
